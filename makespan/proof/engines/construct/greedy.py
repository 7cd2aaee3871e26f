"""Bad schedules made in one pass: cheap lower bounds on the worst case of any instance.

Each warp follows the path that it is given; a rule, or a scheduling policy, says which ready warps go first. Which one
is worst depends on the instance, so all are tried and the longest schedule is kept.
"""

from itertools import accumulate, chain

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.schedule import Schedule
from makespan.model.simulate import run, runs
from makespan.model.simulate.choices import Choices, WarpRoutes, choose_routes
from makespan.model.simulate.policies import FAIR_RULES, STARVING_RULES
from makespan.proof.engines.limits import Limits


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
        if not made:
            made += runs.rule_runs(instance, chosen, FAIR_RULES[:1], instance.warps - 1, lambda: False)
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
    if is_large := runs.is_compiled(instance, chosen):
        with limits.preparing():
            from makespan.model.simulate import runner

            runner.load()
    return is_large


def schedules(instance: Instance, limits: Limits, chosen: WarpRoutes | None = None) -> list[Schedule]:
    """Return one schedule per group that holds the laggard and per rule, on the longest routes, while time lasts."""
    chosen = chosen or _routes(instance)
    rules = STARVING_RULES if instance.machine.scheduler is SchedulerPromise.ANY else FAIR_RULES
    lasts = accumulate(group.warps for group in instance.groups)
    made = (runs.rule_runs(instance, chosen, rules, last - 1, lambda: limits.expired) for last in lasts)
    return list(chain.from_iterable(made))


def _of_policies(instance: Instance, limits: Limits, chosen: WarpRoutes) -> list[Schedule]:
    longest = runs.longest_run(instance, chosen, lambda: limits.expired)
    return [] if longest is None else [longest]
