"""A lower bound on the shortest schedule."""

from makespan.feature import BARRIERS, PROGRAMS, SCHEDULER, TIMES
from makespan.instance import Instance

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER


def least_possible(instance: Instance) -> int:
    """Cycles that every schedule takes: the longest mandatory path, or the work of the busiest class or of the issue.

    Of N instructions on `capacity` ports the last one is issued after ceil(N / capacity) - 1 intervals at the earliest,
    and its latency passes, too.
    """
    instance.require(KNOWS, "the least possible")
    machine, groups = instance.machine, instance.groups
    latencies = {unit.name: unit.latency.least for unit in machine.units}
    found = [group.program.lightest(latencies) for group in groups]
    least = {unit: sum(group.warps * group.program.least(unit.name) for group in groups) for unit in machine.units}
    found += [
        (-(-work // unit.capacity) - 1) * unit.interval + unit.latency.least for unit, work in least.items() if work
    ]
    if machine.issue_width is not None:
        work = sum(group.warps * group.program.least() for group in groups)
        found.append(-(-work // machine.issue_width) - 1 + min(latencies.values()))
    return max(found)
