"""One SM as every proof of this checker reads it: pools of ports, what an instruction holds of them, who is where.

The engines have a reading of their own (`makespan.model`), which the checker does not use: were both to share one, a
slip in it would be in the proof and in its check. Section 14 of docs/theory.md has the terms.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program

SLOT = ""  # the pool of issue slots; no class and no resource has an empty name

PoolGate = frozenset[str]
"""A gate: pools of which an instruction needs a port of any one. It is full when all ports of all of them are held."""


class PoolHold(NamedTuple):
    """A hold (G, a, b): a port of one of the `pools`, which are the `gate`, for `least` to `most` cycles from issue on.

    Witnesses tell the pools apart by their positions, so their order is that of the machine.
    """

    pools: tuple[str, ...]
    gate: PoolGate
    least: int
    most: int


def class_holds(unit: UnitClass) -> list[PoolHold]:
    """Return the holds of an instruction but its issue slot: first the port of its class, then its uses in order."""
    uses = ((use.resources, use.least, use.most) for use in unit.uses)
    every = (((unit.name,), unit.interval, unit.interval), *uses)
    return [PoolHold(pools, frozenset(pools), least, most) for pools, least, most in every]


def issue_holds(machine: Machine) -> dict[str, list[PoolHold]]:
    """Return by class all holds of an instruction; where the issue width is limited, the slot is the last one."""
    slot = [] if machine.issue_width is None else [PoolHold((SLOT,), frozenset({SLOT}), 1, 1)]
    return {unit.name: class_holds(unit) + slot for unit in machine.units}


def pool_capacities(machine: Machine) -> dict[str, int]:
    """Return the ports of every pool as the warps of one partition see them: their own, and those that all share."""
    slots = {} if machine.issue_width is None else {SLOT: machine.issue_width}
    return {ports.name: ports.capacity for ports in machine.ports} | slots


def shared_pools(machine: Machine) -> PoolGate:
    """Return the pools that all partitions share; issue slots are never among them."""
    return frozenset(ports.name for ports in machine.ports if ports.shared)


def numbered_pools(machine: Machine) -> tuple[list[tuple[str, int]], list[dict[str, int]]]:
    """Return all pools of the SM as (name, ports), and for every partition the number that each name has there."""
    pools: list[tuple[str, int]] = []
    numbers: list[dict[str, int]] = [{} for _ in range(machine.partitions)]
    shared = shared_pools(machine)
    for name, ports in pool_capacities(machine).items():
        for part, of_partition in enumerate(numbers):
            if not part or name not in shared:  # the first partition makes a shared pool, all others refer to it
                pools.append((name, ports))
            of_partition[name] = len(pools) - 1
    return pools, numbers


def used_units(instance: Instance) -> dict[str, UnitClass]:
    """Return the classes that some program uses, by name, in the order of the machine."""
    used = frozenset[str]().union(*(group.program.units for group in instance.groups))
    return {unit.name: unit for unit in instance.machine.units if unit.name in used}


def binding_width(instance: Instance) -> int | None:
    """Return the issue width where it can bind: a warp issues one instruction a cycle at most, and a port takes one."""
    width, ports = instance.machine.issue_width, sum(unit.capacity for unit in used_units(instance).values())
    return width if width is not None and width < min(ports, instance.warps) else None


def place_timings(program: Program, units: Mapping[str, UnitClass], *, longest: bool) -> Sequence[InstructionTiming]:
    """Return a timing for every place. A warp that blocks stalls for the `longest` or else the least latency."""
    # For a bound from above the longest is right, since theorems 1S and E' rest on upper ends alone; for a bound from
    # below the least.
    if program.timings:
        return program.timings
    spans = {name: (unit.latency.least, unit.latency.most) for name, unit in units.items()} | {BARRIER: (0, 0)}
    return [InstructionTiming(spans[place.unit][longest], spans[place.unit]) for place in program.places]


def has_lapses(instance: Instance) -> bool:
    """Return whether schedulers may lapse, lines may be late, or instructions go through queues."""
    places = chain.from_iterable(group.program.lapses for group in instance.groups)
    return any(map(any, places)) or has_queues(instance)


def has_queues(instance: Instance) -> bool:
    """Return whether instructions of a class that some program uses go through a queue."""
    return bool(queued_units(instance))


def queued_units(instance: Instance) -> frozenset[str]:
    """Return the classes that some program uses and whose instructions go through a queue."""
    return (
        frozenset(chain.from_iterable(queue.units for queue in instance.machine.queues)) & used_units(instance).keys()
    )


def numbers_matter(machine: Machine) -> bool:
    """Return whether the numbers of warps say to which partition they belong."""
    return machine.partitions > 1 and machine.assignment is WarpAssignment.MODULO


def warp_numbers(instance: Instance) -> list[int]:
    """Return for every warp, in the order in which a bundle lists them, its number on its SM."""
    # A bundle lists warps by group, then by block, then as they are launched. The blocks are launched one after
    # another, and each of them launches its warps in the order that the bundle states, or else group after group.
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


def warp_partitions(instance: Instance) -> list[int] | None:
    """Return for every warp the partition to which it belongs; None means that the adversary chooses."""
    machine = instance.machine
    if machine.partitions == 1:
        return [0] * instance.warps
    return [number % machine.partitions for number in warp_numbers(instance)] if numbers_matter(machine) else None
