"""Two warps: the exact longest or shortest schedule, from all pairs of places (docs/theory.md, 8).

There is no evidence but the instance. On the basic machine R(p, q) cycles remain when the warps stand at the places p
and q, which one line says of the pairs behind: in one cycle both execute, or one of them where both need the only port
of a class, and the adversary chooses what it may. `two_warp_waits` has the recursion for all other machines.
"""

from dataclasses import replace

from makespan.model.instance import Instance
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.verify.machine_form import binding_width
from makespan.verify.paths import Choose
from makespan.verify.refusal import ProofBudget, TooMuchWork
from makespan.verify.rule import ClaimedBound, Extremes, ProofRule, ProvePieces
from makespan.verify.two_warp_waits import by_waits

MOST_PAIRS = 40_000_000


def two_warps(instance: Instance, choose: Choose = max, effort: ProofBudget | None = None) -> int | None:
    """Return the longest (or shortest) schedule of two warps, exactly, in cycles; None if it takes too long."""
    if instance.warps != 2 or instance.has_barriers:
        return None
    # a width that cannot bind, as of two slots, changes nothing: then the short recursion below is exact
    if not replace(instance.machine, issue_width=binding_width(instance)).is_basic:
        return by_waits(instance, choose, effort)
    first, second = instance.programs()
    try:
        with (effort or ProofBudget(1)).part(MOST_PAIRS) as pairs:
            pairs.spend(_edges(first) * second.end + _edges(second) * first.end)
    except TooMuchWork:
        return None
    return _pairs(
        first, second, {unit for unit, capacity in instance.machine.capacities.items() if capacity == 1}, choose
    )


def _edges(program: Program) -> int:
    return sum(len(place.successors) for place in program.places)


def _pairs(first: Program, second: Program, alone: set[str], choose: Choose) -> int:
    """Return R(starts): R(p, q) are the cycles that remain, found backwards from both ends (docs/theory.md, 8)."""
    rows: list[list[int]] = [[]] * (first.end + 1)
    rows[first.end] = _alone(second, choose)
    first_alone = _alone(first, choose)
    lowest = {after: p for p in range(first.end - 1, -1, -1) for after in first.places[p].successors}
    for p in range(first.end - 1, -1, -1):
        unit, successors = first.places[p]
        steps = [rows[after] for after in successors]
        moved = steps[0] if len(steps) == 1 else list(map(choose, zip(*steps, strict=True)))
        rows[p] = _row(second, unit if unit in alone else "", moved, first_alone[p], choose)
        for after in successors:
            if lowest[after] == p and after not in first.starts:
                rows[after] = []  # no row to come needs it
    return choose(rows[p][q] for p in first.starts for q in second.starts)


def _row(second: Program, single: str, moved: list[int], last: int, choose: Choose) -> list[int]:
    """Return R(p, q) for every q.

    Args:
        second: the program whose places q are.
        single: the class of p if it has a single port.
        moved: the cycles that remain for every q once the first warp has executed.
        last: R(p, end).
        choose: the choice of the adversary.
    """
    row = [0] * second.end + [last]
    for q in range(second.end - 1, -1, -1):
        other, others = second.places[q]
        if other == single:  # only one of them executes, and the adversary chooses which
            row[q] = 1 + choose((moved[q], choose(row[after] for after in others)))
        else:
            row[q] = 1 + (moved[others[0]] if len(others) == 1 else choose(moved[after] for after in others))
    return row


def _alone(program: Program, choose: Choose) -> list[int]:
    ahead = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        ahead[number] = 1 + choose(ahead[after] for after in program.places[number].successors)
    return ahead


def _prove(claim: ClaimedBound, _: ProvePieces) -> Extremes | None:
    instance, effort = claim.instance, claim.effort
    if instance.warps != 2:
        return None
    if instance.is_multiprocessor or not (longest := two_warps(instance, max, effort)):
        raise TooMuchWork  # or a machine that other rules know
    return Extremes(two_warps(instance, min, effort) if claim.best_case else None, longest)


RULE = ProofRule(Upper.TWO_WARP_DP, "all pairs of places", _prove, absence="{name} does not apply to {warps} warps")
