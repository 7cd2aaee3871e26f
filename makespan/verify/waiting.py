"""How long a warp can wait for ports and issue slots (docs/theory.md, theorem 1'), for the checker."""

from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.verify.paths import total


class ClassShare(NamedTuple):
    """Who uses a class.

    Args:
        rivals: how many other warps may use it.
        theirs: the most instructions that they execute.
        own: the most that the warp itself executes.
        waits: whether it may wait for the class at all.
    """

    rivals: int
    theirs: int
    own: int
    waits: bool


def binding_width(instance: Instance) -> int | None:
    """The issue width, where it can bind: a warp issues one instruction a cycle at most, and a port takes one."""
    width, units = instance.machine.issue_width, set().union(*(group.program.units for group in instance.groups))
    ports = sum(unit.capacity for unit in instance.machine.units if unit.name in units)
    return width if width is not None and width < min(ports, instance.warps) else None


def shares(instance: Instance) -> list[dict[str, ClassShare]]:
    """By class, for every group as the one of the warp that waits."""
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
    """Return the most cycles in which a warp does not issue, though all that it issued is over by its largest latency.

    In such a cycle all ports of its class are held, or `issue width` instructions of as many `others` are issued. The
    latter are `b` of a class at most, and the ports of a class are held for so many cycles in all; the cycle in which
    an instruction is issued counts for one of both only. With fewer ports than slots (or as many) it is worse if it
    counts for the ports, so only the rest after division by the ports is left for slots.

    Args:
        machine: what they run on.
        others: how many other warps there are.
        shares: for every class.
    """
    width = machine.issue_width
    cycles = slots = 0
    for unit in machine.units:
        share = shares[unit.name]
        if not share.waits or not _can_be_held(unit, share.rivals):
            slots += share.theirs
            continue
        held = share.theirs * unit.interval + share.own * max(unit.interval - unit.latency.most, 0)
        full, rest = divmod(held, unit.capacity)
        cycles += full
        slots += min(share.theirs, rest) if width is None or width >= unit.capacity else share.theirs
    if width is None or width > others:
        return cycles
    return cycles + slots // width


def _can_be_held(unit: UnitClass, rivals: int) -> bool:
    """Whether so many warps, and the one that waits, can hold all ports at once, each with an instruction per cycle."""
    return (rivals + 1) * unit.interval > unit.capacity  # one less by the warp that waits
