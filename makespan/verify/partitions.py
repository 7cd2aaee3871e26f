"""Partitions that have nothing in common: each is a question of its own (docs/theory.md, 8, proposition Q).

The evidence has a bound of each different partition, with evidence of its own. The checker finds the partitions itself,
and proves each bound by the rule that it names. The last partition ends with the whole, so the largest bound is one of
the whole.
"""

from collections.abc import Iterator
from dataclasses import replace

from makespan.model.instance import Group, Instance
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment
from makespan.model.result import Upper
from makespan.verify.machine_form import shared_pools, used_units, warp_partitions
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound, ProofRule, ProvePieces

MOST_STEPS = 1_000_000


def questions(instance: Instance) -> list[Instance] | None:
    """Return different questions such that every schedule of a partition is one of some of them, or None."""
    # It needs partitions without a scheduler's promise, that nothing in use is shared, and no barrier. Then what a warp
    # may do depends on its own partition alone, and the last of them ends with the longest. Where warps are spread
    # evenly in any way, each choice of so many warps can be those of a partition.
    machine = instance.machine
    if machine.partitions == 1 or instance.has_barriers or machine.scheduler is not SchedulerPromise.ANY:
        return None
    alone = _alone(machine, frozenset(used_units(instance)))
    if shared_pools(alone):
        return None  # partitions meet at a port, so the schedule of one depends on that of another
    try:
        crews = dict.fromkeys(_crews(instance, ProofSteps(MOST_STEPS)))
    except TooMuchWork:
        return None
    found = []
    for crew in crews:
        groups = (Group(group.program, warps) for group, warps in zip(instance.groups, crew, strict=True) if warps)
        found.append(Instance(tuple(groups), alone))
    return found


def _alone(machine: Machine, used: frozenset[str]) -> Machine:
    units = tuple(unit for unit in machine.units if unit.name in used)
    names = {name for unit in units for use in unit.uses for name in use.resources}
    resources = tuple(resource for resource in machine.resources if resource.name in names)
    return replace(
        machine, units=units, resources=resources, partitions=1, assignment=WarpAssignment.ANY, operations=()
    )


def _crews(instance: Instance, work: ProofSteps) -> Iterator[tuple[int, ...]]:
    """Yield how many warps of each group a partition can have."""
    numbers, parts = [group.warps for group in instance.groups], instance.machine.partitions
    if (fixed := warp_partitions(instance)) is not None:
        rows = [[0] * len(numbers) for _ in range(parts)]
        work.spend(parts * len(numbers))
        for part, group in zip(fixed, instance.group_of_warp(), strict=True):
            rows[part][group] += 1
        yield from (tuple(row) for row in rows if any(row))
        return
    # the adversary spreads warps evenly, so a partition has one of two sizes, and any warps may be together
    for size in dict.fromkeys((-(-instance.warps // parts), instance.warps // parts)):
        if size:
            yield from _spread(numbers, size, work)


def _spread(numbers: list[int], size: int, work: ProofSteps) -> Iterator[tuple[int, ...]]:
    stack: list[tuple[tuple[int, ...], int]] = [((), size)]
    while stack:
        chosen, left = stack.pop()
        at = len(chosen)
        work.spend(1 + at)
        if at == len(numbers):
            yield chosen
            continue
        least = max(0, left - sum(numbers[at + 1 :]))
        for count in range(least, min(left, numbers[at]) + 1):  # the last one is taken from the stack first
            work.spend()
            stack.append(((*chosen, count), left - count))


def _prove(claim: ClaimedBound, again: ProvePieces) -> int | None:
    if not claim.partitions:
        return None
    longest = max(partition.upper for _, partition in claim.partitions)
    proven = again(claim.partitions)
    if claim.evidence == RULE.name and longest > claim.upper:
        raise Refused(f"upper {claim.upper} reported by partitions, one of which takes up to {longest}")
    return max(proven.values())


RULE = ProofRule(
    Upper.PARTITIONS,
    "its partitions, one by one",
    _prove,
    is_given=lambda claim: claim.partitions,
    absence="upper is reported by {name}, but none are given",
    may_fall_short=True,  # a partition of which too little is proven again leaves the claim unproven
)
