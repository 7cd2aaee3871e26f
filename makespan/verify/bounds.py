"""Upper bounds that follow from the instance alone, and the exact value of two warps. docs/theory.md has the proofs."""

from collections.abc import Callable, Iterable

from makespan.instance import Instance
from makespan.program import BARRIER, Program
from makespan.verify import phases

MOST_PAIRS = 40_000_000
_Choose = Callable[[Iterable[int]], int]


def total(program: Program, unit: str | None = None, choose: _Choose = max) -> int:
    """The largest (or smallest) number of instructions, of class `unit` or of any, on a path."""
    ahead = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        place = program.places[number]
        counts = place.unit != BARRIER if unit is None else place.unit == unit
        ahead[number] = counts + choose(ahead[after] for after in place.successors)
    return choose(ahead[start] for start in program.starts)


def pessimistic(instance: Instance) -> int:
    """M^L + M^C: the last finisher z executes, or it waits for a class that others saturate.

    In each cycle in which z waits for X, `sigma_X` of the others' X-instructions execute, of as many different warps;
    so there are at most floor(their total / sigma_X) such cycles, none where fewer than `sigma_X` others use X, and
    none where z does not use X. With barriers, see `phases.pessimistic`.
    """
    if instance.has_barriers:
        return phases.pessimistic(instance)
    capacities = instance.machine.capacities
    most = [{unit: total(group.program, unit) for unit in capacities} for group in instance.groups]
    counted = list(zip(instance.groups, most, strict=True))
    users = {unit: sum(group.warps for group, own in counted if own[unit]) for unit in capacities}
    work = {unit: sum(group.warps * own[unit] for group, own in counted) for unit in capacities}
    return max(
        total(group.program)
        + sum(
            (work[unit] - own[unit]) // capacity
            for unit, capacity in capacities.items()
            if own[unit] and users[unit] - 1 >= capacity
        )
        for group, own in counted
    )


def theorem_a(instance: Instance) -> int | None:
    """Theorem A: at most sum |s_w| - sum k_w + max k_w cycles; None unless at most two classes of capacity 1 are used.

    `k_w` counts disjoint adjacent unequal pairs on the path that warp w takes. Written as the maximum over z of
    |s_z| + (sum over w != z of |s_w| - k_w), every warp's path can be chosen by itself: z's longest, and for each
    other the one with the most |s| - k. With barriers a pair spans none, and max k_w is replaced by the sum over the
    phases of the most pairs that a warp can execute in each.
    """
    used = set().union(*(group.program.units for group in instance.groups))
    if not instance.machine.is_basic or len(used) > 2 or any(instance.machine.capacities[unit] > 1 for unit in used):
        return None
    unpaired = [_most_unpaired(group.program) for group in instance.groups]
    everybody = sum(group.warps * count for group, count in zip(instance.groups, unpaired, strict=True))
    if instance.has_barriers:
        chain = phases.most_pairs(instance)
        return None if chain is None else everybody + chain
    return everybody + max(total(g.program) - count for g, count in zip(instance.groups, unpaired, strict=True))


def _most_unpaired(program: Program) -> int:
    """The most |s| - k on a path.

    The scan from left to right is deterministic, so it is carried along the path: `single` is the class of the
    instruction just before, if no pair took it. Closing a pair adds nothing, any other instruction 1. (Theorem A holds
    for any fixed pairing; that this one is the largest matters only for how sharp the bound is.)
    """
    singles = [None, *sorted(program.units)]
    ahead: list[dict[str | None, int]] = [dict.fromkeys(singles, 0)] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        unit, successors = program.places[number]
        if unit == BARRIER:  # what stands before it is alone
            ahead[number] = dict.fromkeys(singles, max(ahead[next_][None] for next_ in successors))
            continue
        after_pair, after_single = (max(ahead[next_][single] for next_ in successors) for single in (None, unit))
        ahead[number] = {single: after_pair if single not in (None, unit) else 1 + after_single for single in singles}
    return max(ahead[start][None] for start in program.starts)


def two_warps(instance: Instance, choose: _Choose = max) -> int | None:
    """The longest (or shortest) schedule of two warps, exactly, by their pairs of places; None if they are too many."""
    if instance.warps != 2 or instance.has_barriers:
        return None
    first, second = instance.programs()
    if _edges(first) * second.end + _edges(second) * first.end > MOST_PAIRS:
        return None
    return _pairs(
        first, second, {unit for unit, capacity in instance.machine.capacities.items() if capacity == 1}, choose
    )


def _edges(program: Program) -> int:
    return sum(len(place.successors) for place in program.places)


def _pairs(first: Program, second: Program, alone: set[str], choose: _Choose) -> int:
    """Cycles that remain from every pair of places, both from the end; row p holds those of the first warp at p."""
    rows: list[list[int]] = [[]] * (first.end + 1)
    rows[first.end] = _alone(second, choose)
    first_alone = _alone(first, choose)
    lowest = {after: p for p in range(first.end - 1, -1, -1) for after in first.places[p].successors}
    for p in range(first.end - 1, -1, -1):
        unit, successors = first.places[p]
        steps = [rows[after] for after in successors]
        moved = steps[0] if len(steps) == 1 else list(map(choose, zip(*steps, strict=True)))
        row = [0] * second.end + [first_alone[p]]
        for q in range(second.end - 1, -1, -1):
            other, others = second.places[q]
            if unit == other and unit in alone:
                row[q] = 1 + choose((moved[q], choose(row[after] for after in others)))
            else:
                row[q] = 1 + (moved[others[0]] if len(others) == 1 else choose(moved[after] for after in others))
        rows[p] = row
        for after in successors:
            if lowest[after] == p and after not in first.starts:
                rows[after] = []  # no row to come needs it
    return choose(rows[p][q] for p in first.starts for q in second.starts)


def _alone(program: Program, choose: _Choose) -> list[int]:
    """Cycles that remain from every place, with nobody else."""
    ahead = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        ahead[number] = 1 + choose(ahead[after] for after in program.places[number].successors)
    return ahead


def best_case_floor(instance: Instance) -> int:
    """No schedule is shorter than a warp's shortest path, nor than the work of a class on all its units."""
    shortest = [total(group.program, choose=min) for group in instance.groups]
    for unit, capacity in instance.machine.capacities.items():
        work = sum(group.warps * total(group.program, unit, min) for group in instance.groups)
        shortest.append(-(-work // capacity))
    return max(shortest)
