"""The second opinion on a schedule: every rule of the machine, checked cycle by cycle."""

from collections import Counter

from makespan.errors import InvalidScheduleError
from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Schedule


def replay(instance: Instance, schedule: Schedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    Raises:
        InvalidScheduleError: a path that the program does not have, a warp that executes twice in a
            cycle or after its end, more or fewer instructions of a class than work conservation
            demands, or warps left unfinished.
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
    waiting = Counter(string[0] for string in letters)
    done = [0] * len(paths)
    for cycle, executing in enumerate(schedule.cycles):
        if len(set(executing)) != len(executing):
            raise InvalidScheduleError(f"cycle {cycle}: a warp executes two instructions")
        if not all(0 <= warp < len(paths) and done[warp] < len(letters[warp]) for warp in executing):
            raise InvalidScheduleError(f"cycle {cycle}: a warp executes that does not exist or has finished")
        used = Counter(letters[warp][done[warp]] for warp in executing)
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
            if done[warp] < len(letters[warp]):
                waiting[letters[warp][done[warp]]] += 1
    unfinished = [warp for warp, path in enumerate(paths) if done[warp] < len(path)]
    if unfinished:
        raise InvalidScheduleError(f"warp {unfinished[0]} has not finished after {schedule.makespan} cycles")
    return schedule.makespan


def _check_path(program: Program, path: tuple[int, ...]) -> None:
    if not path or path[0] not in program.starts:
        raise InvalidScheduleError(f"a path begins at {path[:1]}, not at one of {program.starts}")
    if not all(0 <= place < program.end for place in path):
        raise InvalidScheduleError("a path visits a place that its program does not have")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if after not in program.places[place].successors:
            raise InvalidScheduleError(f"a path goes from place {place} to {after}, which does not follow it")
