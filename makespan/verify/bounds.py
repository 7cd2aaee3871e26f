"""Upper bounds that follow from the instance alone, and the exact value of two warps. docs/theory.md has the proofs."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from makespan.model.instance import Instance
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.verify import alignment, interference, issue_slots, pairs, phases
from makespan.verify.fair import theorem_f
from makespan.verify.machine_form import used_units
from makespan.verify.paths import Choose, total
from makespan.verify.refusal import ProofBudget, TooMuchWork
from makespan.verify.two_warps import two_warps as beyond_basic
from makespan.verify.waiting import binding_width, most_waiting, shares

MOST_PAIRS = 40_000_000


def is_multiprocessor(instance: Instance) -> bool:
    """Return whether it has partitions, resources, or warps that run ahead, of which only theorem 1S and E' speak."""
    return instance.is_multiprocessor


def pessimistic(instance: Instance) -> int:
    """Return the pessimistic bound, in cycles: theorem 1', or theorem 1S for a real multiprocessor."""
    # In every cycle a latency of the last finisher z passes, or z waits for ports or for an issue slot, which `waiting`
    # bounds. With barriers a chain of warps stands for z: `phases.pessimistic`.
    if is_multiprocessor(instance):
        return interference.bound(instance)
    if instance.has_barriers:
        return phases.pessimistic(instance)
    machine = instance.machine
    longest = {unit.name: unit.latency.most for unit in machine.units}
    return max(
        total(group.program, longest) + most_waiting(machine, instance.warps - 1, own)
        for group, own in zip(instance.groups, shares(instance), strict=True)
    )


def theorem_a(instance: Instance) -> int | None:
    """Return sum |s_w| - sum k_w + max k_w cycles; None unless at most two classes of capacity 1 are used."""
    # This is theorem E with weights 0 and 1, and bundles from before theorem E name it. `k_w` counts disjoint adjacent
    # unequal pairs on the path of warp w.
    used = used_units(instance).values()
    if not instance.machine.is_basic or len(used) > 2 or any(unit.capacity > 1 for unit in used):
        return None
    return pairs.bound(instance, [pairs.disjoint(instance)])


CLOSED_FORMS: Mapping[Upper, Callable[[Instance, ProofBudget], int | None]] = {
    Upper.THEOREM_A: lambda instance, _: theorem_a(instance),
    Upper.ISSUE_SLOTS: lambda instance, _: issue_slots.bound(instance),
    Upper.THEOREM_F: lambda instance, _: theorem_f(instance),
    Upper.THEOREM_L: alignment.bound,
    Upper.THEOREM_1S: lambda instance, _: interference.bound(instance),
}
"""Bounds that the instance alone proves, by the name of their proof; None where a premise fails.

Those that may take long count their work, and raise `TooMuchWork`.
"""


def two_warps(instance: Instance, choose: Choose = max, effort: ProofBudget | None = None) -> int | None:
    """Return the longest (or shortest) schedule of two warps, exactly, in cycles; None if it takes too long."""
    if instance.warps != 2 or instance.has_barriers:
        return None
    # a width that cannot bind, as of two slots, changes nothing: then the short recursion below is exact
    if not replace(instance.machine, issue_width=binding_width(instance)).is_basic:
        return beyond_basic(instance, choose, effort)
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
        row = [0] * second.end + [first_alone[p]]
        for q in range(second.end - 1, -1, -1):
            other, others = second.places[q]
            if unit == other and unit in alone:  # only one of them executes, and the adversary chooses which
                row[q] = 1 + choose((moved[q], choose(row[after] for after in others)))
            else:
                row[q] = 1 + (moved[others[0]] if len(others) == 1 else choose(moved[after] for after in others))
        rows[p] = row
        for after in successors:
            if lowest[after] == p and after not in first.starts:
                rows[after] = []  # no row to come needs it
    return choose(rows[p][q] for p in first.starts for q in second.starts)


def _alone(program: Program, choose: Choose) -> list[int]:
    ahead = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        ahead[number] = 1 + choose(ahead[after] for after in program.places[number].successors)
    return ahead
