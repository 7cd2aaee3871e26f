"""A lower bound on the shortest schedule."""

from makespan.instance import Instance


def least_possible(instance: Instance) -> int:
    """Cycles that every schedule takes: the longest mandatory path, or the work of the busiest class."""
    work = (
        -(-sum(group.warps * group.program.least(unit) for group in instance.groups) // capacity)
        for unit, capacity in instance.machine.capacities.items()
    )
    return max(*work, *(group.program.least() for group in instance.groups))
