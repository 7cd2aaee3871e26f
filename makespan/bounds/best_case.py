"""A lower bound on the shortest schedule."""

from makespan.instance import Instance
from makespan.program import Program


def least_possible(instance: Instance) -> int:
    """Cycles that every schedule takes: the longest mandatory path, or the work of the busiest class."""
    work = (
        -(-sum(group.warps * _least(group.program, unit) for group in instance.groups) // capacity)
        for unit, capacity in instance.machine.capacities.items()
    )
    return max(*work, *(_least(group.program) for group in instance.groups))


def _least(program: Program, unit: str | None = None) -> int:
    best = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        place = program.places[number]
        best[number] = (unit in (None, place.unit)) + min(best[after] for after in place.successors)
    return min(best[start] for start in program.starts)
