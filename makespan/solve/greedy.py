"""Bad schedules made in one pass: cheap lower bounds on the worst case of any instance.

Each warp follows the path that it is given; a rule says which ready warps go first. Which rule is worst
depends on the instance, so all are tried and the longest schedule is kept.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import accumulate

from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Schedule
from makespan.solve.limits import Limits

Rule = Callable[[int, int, bool], tuple[int, ...]]
"""(warp, instructions done, whether it is the laggard) -> sort key; the smallest execute first."""

RULES: tuple[Rule, ...] = (
    lambda warp, done, laggard: (done, laggard, warp),  # furthest behind first
    lambda warp, done, laggard: (laggard, done, warp),  # one laggard, the others side by side
    lambda warp, done, laggard: (laggard, -done, warp),  # one laggard, the others one after another
)


def schedules(instance: Instance, limits: Limits) -> list[Schedule]:
    """One schedule per group that holds the laggard and per rule; always at least one."""
    paths = tuple(path for group in instance.groups for path in [longest_path(group.program)] * group.warps)
    found: list[Schedule] = []
    for last in accumulate(group.warps for group in instance.groups):
        for rule in RULES:
            if found and limits.expired:
                return found
            found.append(_run(instance, paths, last - 1, rule))
    return found


def longest_path(program: Program) -> tuple[int, ...]:
    """A path with the most instructions."""
    left = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        left[number] = 1 + max(left[after] for after in program.places[number].successors)
    path = [max(program.starts, key=left.__getitem__)]
    while (after := max(program.places[path[-1]].successors, key=left.__getitem__)) != program.end:
        path.append(after)
    return tuple(path)


def _run(instance: Instance, paths: tuple[tuple[int, ...], ...], laggard: int, rule: Rule) -> Schedule:
    capacities = instance.machine.capacities
    begin = accumulate((group.warps for group in instance.groups), initial=0)
    letters = [
        string
        for group, first in zip(instance.groups, begin, strict=False)
        for string in [[group.program.places[at].unit for at in paths[first]]] * group.warps
    ]
    done = [0] * len(paths)
    ready: dict[str, list[tuple[tuple[int, ...], int]]] = {unit: [] for unit in capacities}
    for warp, string in enumerate(letters):
        heappush(ready[string[0]], (rule(warp, 0, warp == laggard), warp))
    cycles = []
    while any(ready.values()):
        moved = [heappop(ready[u])[1] for u, c in capacities.items() for _ in range(min(c, len(ready[u])))]
        for warp in moved:
            done[warp] += 1
            if done[warp] < len(letters[warp]):
                heappush(ready[letters[warp][done[warp]]], (rule(warp, done[warp], warp == laggard), warp))
        cycles.append(tuple(sorted(moved)))
    return Schedule(tuple(cycles), paths)
