"""The second opinion on a schedule: every rule of the machine, checked cycle by cycle."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from makespan.errors import InvalidScheduleError
from makespan.feature import BARRIERS, PROGRAMS, SCHEDULER, TIMES
from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER


def replay(instance: Instance, schedule: Schedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    Raises:
        InvalidScheduleError: a path that the program does not have, a latency out of range, a warp that executes
            twice in a cycle, after its end, while a latency passes or while it waits at a barrier, more or fewer
            instructions of a class than work conservation demands, a warp that goes before another against the promise
            of the scheduler, warps left unfinished, or cycles after their end.
    """
    instance.require(KNOWS, "replay")
    letters = _letters(instance, schedule)
    latencies = _latencies(instance, schedule, letters)
    done = [0] * len(letters)
    is_ready = [False] * len(letters)
    waiting = dict.fromkeys(instance.machine.capacities, 0)
    ports = _Ports(instance)
    turns = _Turns(instance)
    gate = _Gate(instance, letters, done)
    arrivals = defaultdict[int, list[int]](list, {0: list(range(len(letters)))})
    ready = 0
    for cycle, executing in enumerate((*schedule.cycles, None)):
        for warp in gate.passed(arrivals.pop(cycle)) if cycle in arrivals else ():
            ready += 1
            is_ready[warp] = True
            waiting[letters[warp][done[warp]]] += 1
            turns.wait(cycle, warp, letters[warp][done[warp]])
        if executing is None:
            break
        if not gate.unfinished:
            raise InvalidScheduleError(f"cycle {cycle}: all warps have finished already")
        if not executing and not ready:
            continue  # nobody could
        used = _used(cycle, executing, letters, done, is_ready)
        ports.take(cycle, used, waiting)
        turns.take(cycle, executing, ports.free)
        ready -= len(executing)
        for warp in executing:
            waiting[letters[warp][done[warp]]] -= 1
            is_ready[warp] = False
            done[warp] += 1
            arrivals[cycle + next(latencies[warp])].append(warp)
    if gate.unfinished:
        raise InvalidScheduleError(
            f"{gate.unfinished} of {len(letters)} warps have not finished after {schedule.makespan} cycles"
        )
    return schedule.makespan


def _letters(instance: Instance, schedule: Schedule) -> list[list[str]]:
    """The class of every place on the path of every warp, barriers included; equal paths are read once."""
    programs, paths = tuple(instance.programs()), schedule.paths
    if len(paths) != len(programs):
        raise InvalidScheduleError(f"{len(paths)} paths for {len(programs)} warps")
    units: dict[tuple[int, int], list[str]] = {}
    for program, path in zip(programs, paths, strict=True):
        if (id(program), id(path)) not in units:
            _check_path(program, path)
            units[id(program), id(path)] = [program.places[place].unit for place in path]
    return [units[id(program), id(path)] for program, path in zip(programs, paths, strict=True)]


def _latencies(instance: Instance, schedule: Schedule, letters: list[list[str]]) -> list[Iterator[int]]:
    """For every warp the latencies of what it executes, in order."""
    ranges = {unit.name: unit.latency for unit in instance.machine.units}
    if not schedule.latencies and instance.machine.fixed_latencies:
        return [(ranges[unit].most for unit in own if unit != BARRIER) for own in letters]
    if len(schedule.latencies) != len(letters):
        raise InvalidScheduleError(f"latencies of {len(schedule.latencies)} warps are given, of {len(letters)}")
    for warp, (own, chosen) in enumerate(zip(letters, schedule.latencies, strict=True)):
        allowed = [ranges[unit] for unit in own if unit != BARRIER]
        if len(chosen) != len(allowed):
            raise InvalidScheduleError(f"warp {warp} has {len(chosen)} latencies for {len(allowed)} instructions")
        for latency, within in zip(chosen, allowed, strict=True):
            if not within.least <= latency <= within.most:
                raise InvalidScheduleError(f"warp {warp} has a latency of {latency}, which is not in {within}")
    return list(map(iter, schedule.latencies))


class _Ports:
    """Which ports are held, and whether the number of instructions issued is the one that work conservation demands."""

    def __init__(self, instance: Instance) -> None:
        self._units = instance.machine.units
        self._width = instance.machine.issue_width
        self._frees: dict[str, deque[tuple[int, int]]] = {unit.name: deque() for unit in self._units}
        self.free = instance.machine.capacities

    def take(self, cycle: int, used: Mapping[str, int], waiting: Mapping[str, int]) -> None:
        """Hold a port for everything that is used, after the ports that are free in this cycle again."""
        issued, demand = 0, 0
        for unit in self._units:
            name, frees = unit.name, self._frees[unit.name]
            while frees and frees[0][0] <= cycle:
                self.free[name] += frees.popleft()[1]
            free, ready, count = self.free[name], waiting[name], used.get(name, 0)
            most = min(free, ready)
            if count > most or (self._width is None and count < most):
                raise InvalidScheduleError(
                    f"cycle {cycle}: {count} instructions of class {name} where work conservation demands"
                    f" {'' if self._width is None else 'at most '}{most}"
                    f" ({ready} ready, {free} of {unit.capacity} ports free)"
                )
            issued += count
            demand += most
            if count:
                self.free[name] -= count
                frees.append((cycle + unit.interval, count))
        if self._width is not None and issued != min(self._width, demand):
            raise InvalidScheduleError(
                f"cycle {cycle}: {issued} instructions issued where work conservation demands"
                f" {min(self._width, demand)} (issue width {self._width}, {demand} could be issued)"
            )


class _Turns:
    """What a fair scheduler promises; nothing is kept for any other."""

    def __init__(self, instance: Instance) -> None:
        self._is_fair = instance.machine.scheduler is Scheduler.FAIR
        self._waiting: dict[str, dict[int, int]] = {name: {} for name in instance.machine.capacities}
        self._unit = [""] * instance.warps
        self._issued = [-1] * instance.warps

    def wait(self, cycle: int, warp: int, unit: str) -> None:
        """From this cycle on the warp is ready for the class."""
        if self._is_fair:
            self._waiting[unit][warp] = cycle
            self._unit[warp] = unit

    def take(self, cycle: int, executing: Sequence[int], free: Mapping[str, int]) -> None:
        """These warps issue, which leaves so many ports free."""
        if not self._is_fair:
            return
        since = {warp: self._waiting[self._unit[warp]].pop(warp) for warp in executing}
        for warp in executing:
            for unit, waiting in self._waiting.items():
                if waiting and (free[unit] or unit == self._unit[warp]):
                    self._check(cycle, warp, since[warp], waiting)
        for warp in executing:
            self._issued[warp] = cycle

    def _check(self, cycle: int, warp: int, since: int, waiting: Mapping[int, int]) -> None:
        """The warps that wait come in the order in which they became ready."""
        for other, earlier in waiting.items():
            if earlier >= since:
                return
            if self._issued[other] < self._issued[warp]:
                raise InvalidScheduleError(
                    f"cycle {cycle}: warp {warp} goes before warp {other}, which was ready and issued earlier:"
                    " the scheduler is not fair"
                )


def _used(
    cycle: int,
    executing: Sequence[int],
    letters: Sequence[Sequence[str]],
    done: Sequence[int],
    is_ready: Sequence[bool],
) -> dict[str, int]:
    """How many instructions of each class a cycle issues."""
    used: dict[str, int] = {}
    if len(set(executing)) != len(executing):
        raise InvalidScheduleError(f"cycle {cycle}: a warp executes two instructions")
    for warp in executing:
        if not 0 <= warp < len(letters) or done[warp] == len(letters[warp]):
            raise InvalidScheduleError(f"cycle {cycle}: a warp executes that does not exist or has finished")
        if not is_ready[warp]:
            why = "waits at a barrier" if letters[warp][done[warp]] == BARRIER else "waits for a latency to pass"
            raise InvalidScheduleError(f"cycle {cycle}: warp {warp} executes, but {why}")
        unit = letters[warp][done[warp]]
        used[unit] = used.get(unit, 0) + 1
    return used


class _Gate:
    """The barriers of all blocks: who waits at one, and for how many warps of the block."""

    def __init__(self, instance: Instance, letters: Sequence[Sequence[str]], done: list[int]) -> None:
        self._letters, self._done = letters, done
        self._block = instance.block_of_warp()
        self._running = Counter(self._block)
        self._waiting: dict[int, list[int]] = {block: [] for block in range(instance.blocks)}
        self.unfinished = len(letters)

    def passed(self, arriving: Iterable[int]) -> list[int]:
        """The warps that are ready now, given those that have come to their next place; the others wait or ended."""
        ready = []
        coming = list(arriving)
        while coming:
            for warp in coming:
                letters, at = self._letters[warp], self._done[warp]
                if at == len(letters):
                    self._running[self._block[warp]] -= 1
                    self.unfinished -= 1
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
