"""The pessimistic bound, theorem 1': a latency of the last finisher passes, or it waits (docs/theory.md, 2 and 7).

There is no evidence but the instance. In every cycle before the end a latency of the last finisher z passes, or z waits
for ports or issue slots that others use; `most_waiting` bounds the cycles of waiting by what the others have to do.
With barriers a chain of warps stands for z: each of them is the last to come to the barrier at which the next one takes
over. On a real multiprocessor theorem 1S (`interference`) is the pessimistic bound.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.result import Upper
from makespan.verify import interference, phases
from makespan.verify.paths import Choose, PhaseRegion, along, total
from makespan.verify.refusal import TooMuchWork
from makespan.verify.rule import ProofRule


class ClassShare(NamedTuple):
    """The use that warps make of a class.

    Args:
        rivals: U_X, how many other warps may use it.
        theirs: N_X, the most instructions that they execute.
        own: the instructions of the warp that waits: the most if one warp waits, the fewest if a chain does.
        waits: whether the warp may wait for the class at all.
    """

    rivals: int
    theirs: int
    own: int
    waits: bool


def pessimistic(instance: Instance) -> int:
    """Return the pessimistic bound, in cycles: theorem 1', or theorem 1S for a real multiprocessor."""
    if instance.is_multiprocessor:
        return interference.bound(instance)
    if instance.has_barriers:
        return _of_chain(instance)
    machine = instance.machine
    longest = {unit.name: unit.latency.most for unit in machine.units}
    return max(
        total(group.program, longest) + most_waiting(machine, instance.warps - 1, own)
        for group, own in zip(instance.groups, shares(instance), strict=True)
    )


def _of_chain(instance: Instance) -> int:
    """Return the bound of theorem 1' with barriers, in cycles, for a chain of warps in the place of z."""
    # Each of the chain is the last to come to the barrier at which the next one takes over, and the last of them is z.
    # In every cycle a latency of the chain passes, or it waits for a port or an issue slot. In phase k it executes no
    # more than the longest, and of a class no less than the smallest, share of any group in that phase.
    machine = instance.machine
    longest = {unit.name: unit.latency.most for unit in machine.units}
    try:
        cut = phases.phases(instance)
    except TooMuchWork:  # in every cycle a latency passes, or a port is held
        either = {unit.name: max(unit.latency.most, unit.interval) for unit in machine.units}
        return sum(group.warps * total(group.program, either) for group in instance.groups)
    return _along(instance, cut, longest, max) + most_waiting(machine, instance.warps - 1, chain_shares(instance, cut))


def chain_shares(instance: Instance, cut: Sequence[Sequence[PhaseRegion]]) -> dict[str, ClassShare]:
    """Return by class the use that such a chain, as the warp that waits, and all other warps make of it."""
    found = {}
    for unit in instance.machine.capacities:
        one = {unit: 1}
        users = sum(group.warps for group in instance.groups if unit in group.program.units)
        work = sum(group.warps * total(group.program, one) for group in instance.groups)
        own = _along(instance, cut, one, min)  # what the chain executes beyond it counts with the others, at no less
        found[unit] = ClassShare(max(users - 1, 0), work - own, own, users > 0)
    return found


def _along(instance: Instance, cut: Sequence[Sequence[PhaseRegion]], weights: Mapping[str, int], choose: Choose) -> int:
    rows = []
    for program, own in zip((group.program for group in instance.groups), cut, strict=True):
        weighed = [weights.get(place.unit, 0) for place in program.places]
        rows.append([along(program, weighed, choose, phase) for phase in own])
    return sum(map(choose, zip_longest(*rows, fillvalue=0)))


def shares(instance: Instance) -> list[dict[str, ClassShare]]:
    """Return for every group, as that of the warp that waits, the use of each class."""
    units = list(instance.machine.capacities)
    most = [{unit: total(group.program, {unit: 1}) for unit in units} for group in instance.groups]
    counted = list(zip(instance.groups, most, strict=True))
    users = {unit: sum(group.warps for group, own in counted if own[unit]) for unit in units}
    work = {unit: sum(group.warps * own[unit] for group, own in counted) for unit in units}
    return [
        {
            unit: ClassShare(users[unit] - (count > 0), work[unit] - count, count, count > 0)
            for unit, count in own.items()
        }
        for own in most
    ]


def most_waiting(machine: Machine, others: int, shares: dict[str, ClassShare]) -> int:
    """Return the most cycles that no latency of the warp covers and in which it does not issue (theorem 1').

    In such a cycle all ports of its class are held, or `issue width` instructions of as many `others` are issued. Each
    port-cycle counts for one of both only. With fewer ports than slots (or as many) it is worse if it counts for the
    ports, so only the rest after division by the ports is left for slots.

    Args:
        machine: what they run on.
        others: the number of other warps.
        shares: the use of every class.
    """
    width = machine.issue_width
    cycles = slots = 0
    for unit in machine.units:
        share = shares[unit.name]
        # outside of Z the warp never waits for the ports, so that all instructions of the class may take slots
        if not share.waits or not _can_be_held(unit, share.rivals):
            slots += share.theirs
            continue
        # P_X; an own instruction holds its port beyond its latency at most, as it covers the cycles before
        held = share.theirs * unit.interval + share.own * max(unit.interval - unit.latency.most, 0)
        full, rest = divmod(held, unit.capacity)
        cycles += full
        # y_X
        slots += min(share.theirs, rest) if width is None or width >= unit.capacity else share.theirs
    if width is None or width > others:
        return cycles
    return cycles + slots // width


def _can_be_held(unit: UnitClass, rivals: int) -> bool:
    # a warp holds `interval` ports at most, having issued in each cycle; the one that waits issues nothing in this one
    return (rivals + 1) * unit.interval > unit.capacity


RULE = ProofRule(
    Upper.PESSIMISTIC,
    "M^L + M^C",
    lambda claim, _: pessimistic(claim.instance),
    is_given=lambda _: True,  # it needs no evidence, and every other rule is held against it
)
