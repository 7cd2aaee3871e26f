"""Bad schedules made in one pass: cheap lower bounds on the worst case of any instance.

Each warp follows the path that it is given; a rule says which ready warps go first. Which rule is worst
depends on the instance, so all are tried and the longest schedule is kept.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Schedule
from makespan.solve.limits import Limits

Rule = Callable[[int, int, bool], tuple[int, ...]]
"""(warp, instructions done, whether it is the laggard) -> sort key; the smallest execute first."""

RULES: tuple[Rule, ...] = (
    lambda warp, done, laggard: (done, warp + laggard),  # furthest behind first
    lambda warp, done, laggard: (laggard, done, warp),  # one laggard, the others side by side
    lambda warp, done, laggard: (laggard, -done, warp),  # one laggard, the others one after another
)


def schedules(instance: Instance, limits: Limits) -> list[Schedule]:
    """One schedule per rule and per group that holds the laggard; always at least one."""
    found: list[Schedule] = []
    for paths in _path_sets(instance):
        for rule in RULES:
            if found and limits.expired:
                return found
            found.append(_run(instance, paths, rule))
    return found


def _path_sets(instance: Instance) -> list[list[tuple[int, ...]]]:
    """Longest paths for everybody, the laggard (the last warp of a group) put at the end of the order."""
    longest = {group.program: longest_path(group.program) for group in instance.groups}
    return [[longest[program] for program in instance.programs()]]


def longest_path(program: Program) -> tuple[int, ...]:
    """A path with the most instructions."""
    left = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        left[number] = 1 + max(left[after] for after in program.places[number].successors)
    path = [max(program.starts, key=left.__getitem__)]
    while (after := max(program.places[path[-1]].successors, key=left.__getitem__)) != program.end:
        path.append(after)
    return tuple(path)


def _run(instance: Instance, paths: Sequence[tuple[int, ...]], rule: Rule) -> Schedule:
    warps = len(paths)
    capacities = instance.machine.capacities
    letters = [
        [program.places[at].unit for at in path] for program, path in zip(instance.programs(), paths, strict=True)
    ]
    done = [0] * warps
    ready: dict[str, list[tuple[tuple[int, ...], int]]] = {unit: [] for unit in capacities}
    for warp in range(warps):
        ready[letters[warp][0]].append((rule(warp, 0, warp == warps - 1), warp))
    for queue in ready.values():
        heapify(queue)
    cycles = []
    while any(ready.values()):
        moved = [heappop(ready[u])[1] for u, c in capacities.items() for _ in range(min(c, len(ready[u])))]
        for warp in moved:
            done[warp] += 1
            if done[warp] < len(paths[warp]):
                heappush(ready[letters[warp][done[warp]]], (rule(warp, done[warp], warp == warps - 1), warp))
        cycles.append(tuple(sorted(moved)))
    return Schedule(tuple(cycles), tuple(paths))
