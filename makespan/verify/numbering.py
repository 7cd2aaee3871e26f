"""Which number each warp has on its SM, for the checker: warps are numbered as they are launched, block after block."""

from makespan.model.instance import Instance
from makespan.model.machine import Machine, WarpAssignment


def matter(machine: Machine) -> bool:
    """Return whether the numbers of warps say to which partition they belong."""
    return machine.partitions > 1 and machine.assignment is WarpAssignment.MODULO


def numbers(instance: Instance) -> list[int]:
    """For every warp, in the order in which a bundle lists them, its number.

    A bundle lists warps by group, then by block, then as they are launched. The blocks are launched one after another,
    and each of them launches its warps in the order that the bundle states, or else group after group.
    """
    crews = [group.warps // instance.blocks for group in instance.groups]
    launched = list(instance.order) or [crew for crew, warps in enumerate(crews) for _ in range(warps)]
    listed, before = [], 0  # for every group, where the next of its warps stands in the list
    for group in instance.groups:
        listed.append(before)
        before += group.warps
    found = [0] * instance.warps
    for number, launching in enumerate(launched * instance.blocks):
        found[listed[launching]] = number
        listed[launching] += 1
    return found


def partitions(instance: Instance) -> list[int] | None:
    """For every warp the partition to which it belongs; None where the machine does not say."""
    machine = instance.machine
    if machine.partitions == 1:
        return [0] * instance.warps
    return [number % machine.partitions for number in numbers(instance)] if matter(machine) else None
