"""The second opinion on a schedule: every rule of the machine, checked cycle by cycle."""

from collections import Counter
from collections.abc import Iterable, Sequence

from makespan.errors import InvalidScheduleError
from makespan.instance import Instance
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule


def replay(instance: Instance, schedule: Schedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    Raises:
        InvalidScheduleError: a path that the program does not have, a warp that executes twice in a
            cycle or after its end or while it waits at a barrier, more or fewer instructions of a class
            than work conservation demands, or warps left unfinished.
    """
    paths = schedule.paths
    programs = tuple(instance.programs())
    if len(paths) != len(programs):
        raise InvalidScheduleError(f"{len(paths)} paths for {len(programs)} warps")
    for pair in {
        (id(program), id(path)): (program, path) for program, path in zip(programs, paths, strict=True)
    }.values():
        _check_path(*pair)
    units = {
        id(path): [program.places[place].unit for place in path] for program, path in zip(programs, paths, strict=True)
    }
    letters = [units[id(path)] for path in paths]
    capacities = instance.machine.capacities
    done = [0] * len(paths)
    waiting: Counter[str] = Counter()
    gate = _Gate(instance, letters, done)
    arriving: Iterable[int] = range(len(paths))
    for cycle, executing in enumerate((*schedule.cycles, None)):
        for warp in gate.passed(arriving):
            waiting[letters[warp][done[warp]]] += 1
        if executing is None:
            break
        used = _used(cycle, executing, letters, done)
        for unit, capacity in capacities.items():
            if used[unit] != min(capacity, waiting[unit]):
                raise InvalidScheduleError(
                    f"cycle {cycle}: {used[unit]} instructions of class {unit} where work conservation demands"
                    f" {min(capacity, waiting[unit])} ({waiting[unit]} ready, capacity {capacity})"
                )
        if not executing:
            raise InvalidScheduleError(f"cycle {cycle}: nothing executes")
        waiting -= used
        for warp in executing:
            done[warp] += 1
        arriving = executing
    unfinished = [warp for warp, path in enumerate(paths) if done[warp] < len(path)]
    if unfinished:
        raise InvalidScheduleError(f"warp {unfinished[0]} has not finished after {schedule.makespan} cycles")
    return schedule.makespan


def _used(cycle: int, executing: Sequence[int], letters: Sequence[Sequence[str]], done: Sequence[int]) -> Counter[str]:
    """How many units of each class a cycle uses."""
    if len(set(executing)) != len(executing):
        raise InvalidScheduleError(f"cycle {cycle}: a warp executes two instructions")
    if not all(0 <= warp < len(letters) and done[warp] < len(letters[warp]) for warp in executing):
        raise InvalidScheduleError(f"cycle {cycle}: a warp executes that does not exist or has finished")
    used = Counter(letters[warp][done[warp]] for warp in executing)
    if used[BARRIER]:
        raise InvalidScheduleError(f"cycle {cycle}: a warp executes that waits at a barrier")
    return used


class _Gate:
    """The barriers of all blocks: who waits at one, and for how many warps of the block."""

    def __init__(self, instance: Instance, letters: Sequence[Sequence[str]], done: list[int]) -> None:
        self._letters, self._done = letters, done
        self._block = instance.block_of_warp()
        self._running = Counter(self._block)
        self._waiting: dict[int, list[int]] = {block: [] for block in range(instance.blocks)}

    def passed(self, arriving: Iterable[int]) -> list[int]:
        """The warps that are ready now, given those that have come to their next place; the others wait or ended."""
        ready = []
        coming = list(arriving)
        while coming:
            for warp in coming:
                letters, at = self._letters[warp], self._done[warp]
                if at == len(letters):
                    self._running[self._block[warp]] -= 1
                elif letters[at] == BARRIER:
                    self._waiting[self._block[warp]].append(warp)
                else:
                    ready.append(warp)
            touched = {self._block[warp] for warp in coming}
            coming = []
            for block in touched:
                if len(self._waiting[block]) == self._running[block]:
                    coming += self._waiting[block]
                    self._waiting[block] = []
            for warp in coming:
                self._done[warp] += 1
        return ready


def _check_path(program: Program, path: tuple[int, ...]) -> None:
    if not path or path[0] not in program.starts:
        raise InvalidScheduleError(f"a path begins at {path[:1]}, not at one of {program.starts}")
    if not all(0 <= place < program.end for place in path):
        raise InvalidScheduleError("a path visits a place that its program does not have")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if after not in program.places[place].successors:
            raise InvalidScheduleError(f"a path goes from place {place} to {after}, which does not follow it")
