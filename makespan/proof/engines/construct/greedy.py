"""Bad schedules made in one pass: cheap lower bounds on the worst case of any instance.

Each warp follows the path that it is given; a rule, or a scheduling policy, says which ready warps go first. Which one
is worst depends on the instance, so all are tried and the longest schedule is kept.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import accumulate
from math import inf

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.schedule import Schedule
from makespan.model.simulate import run, runner
from makespan.model.simulate.choices import Choices, WarpRoutes, choose_routes
from makespan.model.simulate.policies import (
    FAIR_RULES,
    STARVING_RULES,
    PriorityRule,
    RulePolicy,
    SchedulingPolicy,
    simulate_policies,
    warps_of_partition,
)
from makespan.proof.engines.limits import Limits

_CYCLES_PER_LOOK = 256


def longest(instance: Instance, limits: Limits, enough: int) -> Schedule:
    """Return the longest that is found: no policy takes longer, unless a limit stops this first.

    Args:
        instance: what runs.
        limits: once they are reached, only what has been found by then counts; always at least one schedule.
        enough: cycles that no schedule exceeds.

    Raises:
        UnsupportedError: an instance with a feature of multiprocessors and a scheduler that promises something.
    """
    chosen = _routes(instance)
    if instance.machine.scheduler is SchedulerPromise.FAIR:
        made = schedules(instance, limits, chosen)
        made += filter(None, () if made else (_run(instance, chosen, instance.warps - 1, FAIR_RULES[0], Limits(inf)),))
        return max(made, key=lambda schedule: schedule.makespan)
    ways = [schedules, _of_policies]
    if load(instance, chosen, limits):
        ways.reverse()  # compiled code is quicker
    found: list[Schedule] = []
    for way in ways:
        found += way(instance, limits, chosen)
        if any(schedule.makespan == enough for schedule in found):
            break
    return max(found, key=lambda schedule: schedule.makespan, default=None) or run(instance, "oldest")


def _routes(instance: Instance) -> WarpRoutes:
    return choose_routes(instance if instance.is_multiprocessor else instance.relaxed, Choices())


def load(instance: Instance, chosen: WarpRoutes, limits: Limits) -> bool:
    """Load or compile what runs the policies, where the instance is large enough for that; return whether it is."""
    if is_large := runner.is_compiled(instance, chosen):
        with limits.preparing():
            runner.load()
    return is_large


def schedules(instance: Instance, limits: Limits, chosen: WarpRoutes | None = None) -> list[Schedule]:
    """Return one schedule per group that holds the laggard and per rule, on the longest routes, while time lasts."""
    chosen = chosen or _routes(instance)
    rules = STARVING_RULES if instance.machine.scheduler is SchedulerPromise.ANY else FAIR_RULES
    found: list[Schedule] = []
    for last in accumulate(group.warps for group in instance.groups):
        for rule in rules:
            made = _run(instance, chosen, last - 1, rule, limits)
            if made is None:
                return found
            found.append(made)
    return found


def _of_policies(instance: Instance, limits: Limits, chosen: WarpRoutes) -> list[Schedule]:
    longest = runner.longest_run(instance, chosen, lambda: limits.expired)
    return [] if longest is None else [longest]


def _run(instance: Instance, chosen: WarpRoutes, laggard: int, rule: PriorityRule, limits: Limits) -> Schedule | None:
    if instance.is_multiprocessor:
        policies = _rules_of_partitions(instance, chosen, laggard, rule)
        return simulate_policies(instance, policies, chosen, lambda: limits.expired)
    paths = chosen.paths
    units = {unit.name: unit for unit in instance.machine.units}
    begin = accumulate((group.warps for group in instance.groups), initial=0)
    letters = [
        string
        for group, first in zip(instance.groups, begin, strict=False)
        for string in [[group.program.places[at].unit for at in paths[first]]] * group.warps
    ]
    done = [0] * len(paths)
    ready: dict[str, list[tuple[tuple[int, ...], int]]] = {unit: [] for unit in units}
    free = instance.machine.capacities
    arrivals, releases = defaultdict[int, list[int]](list), defaultdict[int, list[str]](list)
    block_of = instance.block_of_warp()
    gates = {block: _BlockGate(warps) for block, warps in Counter(block_of).items()}
    cycles: list[tuple[int, ...]] = []

    def come(warps: Iterable[int]) -> None:
        """Let these warps stand at their next place; who passes a barrier comes to the place after it."""
        coming = deque(warps)
        while coming:
            warp = coming.popleft()
            unit = letters[warp][done[warp]] if done[warp] < len(letters[warp]) else None
            if unit in ready:
                heappush(ready[unit], (rule(len(cycles), warp, done[warp], warp == laggard), warp))
                continue
            for passing in gates[block_of[warp]].reach(warp, ended=unit is None):
                done[passing] += 1
                coming.append(passing)

    come(range(len(paths)))
    left = instance.machine.issue_width or len(paths)
    while arrivals or any(ready.values()):
        if len(cycles) % _CYCLES_PER_LOOK == 0 and limits.expired:
            return None
        issued: list[int] = []
        for unit in releases.pop(len(cycles), ()):
            free[unit] += 1  # before anything is issued: a port is free in the cycle in which its interval ends
        # work conservation: as long as a slot is left and a ready warp finds a port, one issues
        while len(issued) < left and (able := [unit for unit, queue in ready.items() if queue and free[unit]]):
            unit = min(able, key=lambda unit: ready[unit][0])
            warp = heappop(ready[unit])[1]
            issued.append(warp)
            done[warp] += 1
            free[unit] -= 1
            releases[len(cycles) + units[unit].interval].append(unit)
            arrivals[len(cycles) + units[unit].latency.most].append(warp)
        cycles.append(tuple(sorted(issued)))
        come(arrivals.pop(len(cycles), ()))
    return Schedule(tuple(cycles), paths, () if instance.machine.fixed_latencies else chosen.latencies)


def _rules_of_partitions(
    instance: Instance, chosen: WarpRoutes, laggard: int, rule: PriorityRule
) -> list[SchedulingPolicy]:
    """Return the rule for every partition, each with a laggard of its own: the last of its warps up to `laggard`."""
    warps = [warps_of_partition(chosen.partitions, part) for part in range(instance.machine.partitions)]
    return [RulePolicy(rule, {max((warp for warp in own if warp <= laggard), default=-1)}) for own in warps]


class _BlockGate:
    """The barrier of one block: opens when all of its warps that have not ended wait at it."""

    def __init__(self, warps: int) -> None:
        self._running = warps
        self._waiting: list[int] = []

    def reach(self, warp: int, *, ended: bool) -> list[int]:
        """Note that a warp has come to the barrier or to its end; return who passes now."""
        if ended:
            self._running -= 1
        else:
            self._waiting.append(warp)
        if len(self._waiting) < self._running or not self._waiting:
            return []
        passing, self._waiting = self._waiting, []
        return passing
