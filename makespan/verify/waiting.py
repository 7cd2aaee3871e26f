"""How long a warp can wait for ports and issue slots (docs/theory.md, theorem 1'), for the checker."""

from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.verify.machine_form import used_units
from makespan.verify.paths import total


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


def binding_width(instance: Instance) -> int | None:
    """Return the issue width where it can bind: a warp issues one instruction a cycle at most, and a port takes one."""
    width, ports = instance.machine.issue_width, sum(unit.capacity for unit in used_units(instance).values())
    return width if width is not None and width < min(ports, instance.warps) else None


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
