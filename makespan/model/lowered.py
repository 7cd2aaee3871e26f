"""A machine lowered once to pools of ports, and what an instruction holds of them: all that bounds and engines read.

Capacities, intervals, issue widths, partitions, `shared`, resources and uses are one notion here: an instruction holds
ports of pools for some cycles, and an issue slot is a port that is held for one cycle. The definition
(`simulate.semantics`) and the checker (`verify`) read the machine themselves, so that a mistake here shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple, Self

from makespan.model.machine import Machine, Pool, UnitClass
from makespan.model.program import BARRIER, Program

ISSUE_SLOT = ""
"""The name of the pools of issue slots, of which a machine with an issue width has one for each partition."""

PortsInUse = tuple[tuple[int, ...], ...]
"""For every pool the cycles for which each port in use is still held, sorted."""


HeldUses = tuple[tuple[int, int], ...]
"""What a schedule states of an instruction: for each use which of its pools, and for how many cycles."""


class PortHold(NamedTuple):
    """An instruction holds a port of one of these pools from its issue on; the adversary chooses which and how long.

    Args:
        pools: the names of classes, resources or `ISSUE_SLOT`; a schedule numbers them in this order. The pool of a
            name is that of the partition of the warp, or the one that all partitions share.
        least: the least cycles.
        most: the most cycles.
    """

    pools: tuple[str, ...]
    least: int
    most: int


class Reservation(NamedTuple):
    """All that an instruction holds; every hold is of other pools.

    Args:
        unit: its class.
        fixed: the holds that leave no choice, and that no schedule states: an issue slot where the machine has an issue
            width, and then a port of its class.
        uses: the holds that a schedule states, in its order.
    """

    unit: str
    fixed: tuple[PortHold, ...]
    uses: tuple[PortHold, ...]

    def __hash__(self) -> int:
        return hash(self.unit)  # equal reservations are mostly one object, and those of a class are few

    @classmethod
    def of(cls, unit: UnitClass, machine: Machine) -> Self:
        """Return what instructions of a class hold."""
        slot = () if machine.issue_width is None else (PortHold((ISSUE_SLOT,), 1, 1),)
        uses = tuple(PortHold(use.resources, use.least, use.most) for use in unit.uses)
        return cls(unit.name, (*slot, PortHold((unit.name,), unit.interval, unit.interval)), uses)

    @property
    def holds(self) -> tuple[PortHold, ...]:
        """Return all holds, the fixed ones first."""
        return (*self.fixed, *self.uses)

    @property
    def longest(self) -> int:
        """Return the most cycles for which a port is held."""
        return max((hold.most for hold in self.holds), default=0)

    @property
    def least_uses(self) -> HeldUses:
        """Return the uses of the first pools for the least cycles, which is all there is without a choice."""
        return tuple((0, hold.least) for hold in self.uses)

    def allows(self, uses: HeldUses) -> bool:
        """Return whether a schedule may state these uses."""
        return len(uses) == len(self.uses) and all(
            0 <= which < len(hold.pools) and hold.least <= cycles <= hold.most
            for hold, (which, cycles) in zip(self.uses, uses, strict=True)
        )

    @property
    def choices(self) -> int:
        """Return the number of ways to choose pools and cycles."""
        return prod(len(hold.pools) * (hold.most - hold.least + 1) for hold in self.uses)


NOTHING_HELD = Reservation(BARRIER, (), ())
"""What a barrier holds."""


class PortWay(NamedTuple):
    """A way to choose the pools that an instruction takes a port of.

    Args:
        chosen: for each use which of its pools.
        pools: for each hold the number of its pool in `LoweredMachine.pools`.
        cycles: every way to choose the cycles, of each hold.
    """

    chosen: tuple[int, ...]
    pools: tuple[int, ...]
    cycles: tuple[tuple[int, ...], ...]

    def uses(self, cycles: Sequence[int]) -> HeldUses:
        """Return what a schedule states of an instruction that is served in this way, for these cycles of each hold."""
        return tuple(zip(self.chosen, cycles[len(cycles) - len(self.chosen) :], strict=True))


class LoweredMachine(NamedTuple):
    """The pools of a machine, and what its instructions hold of them.

    Args:
        capacities: the ports of every name in one partition or, where all share it, in all; names in the order of the
            classes, then of the resources, then `ISSUE_SLOT`.
        shared: the names of what all partitions share.
        pools: partition by partition what each has for itself, then what all share.
        numbers: for every partition the pools that its warps can use, by name: their numbers in `pools`.
        by_class: what instructions of each class hold, in the order of the machine.
        latencies: the least and the largest latency of each class, and (0, 0) of a barrier.
    """

    capacities: Mapping[str, int]
    shared: frozenset[str]
    pools: tuple[Pool, ...]
    numbers: tuple[Mapping[str, int], ...]
    by_class: Mapping[str, Reservation]
    latencies: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, machine: Machine) -> Self:
        """Return the lowered form of a machine."""
        capacities = {ports.name: ports.capacity for ports in machine.ports}
        if machine.issue_width is not None:
            capacities[ISSUE_SLOT] = machine.issue_width
        shared = frozenset(ports.name for ports in machine.ports if ports.shared)
        parts: list[int | None] = [*range(machine.partitions), None]
        names = [(part, name) for part in parts for name in capacities if (name in shared) == (part is None)]
        is_parted = machine.partitions > 1
        return cls(
            capacities,
            shared,
            tuple(Pool(name, part if is_parted else None, capacities[name]) for part, name in names),
            tuple(
                {name: number for number, (home, name) in enumerate(names) if home in (None, part)}
                for part in range(machine.partitions)
            ),
            {unit.name: Reservation.of(unit, machine) for unit in machine.units},
            {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units} | {BARRIER: (0, 0)},
        )

    def reservation(self, program: Program, at: int) -> Reservation:
        """Return what the instruction at a place holds; a barrier holds nothing."""
        return self.by_class.get(program.places[at].unit, NOTHING_HELD)

    def latency(self, program: Program, at: int) -> tuple[int, int]:
        """Return the least and the most cycles after which the result of a place is there."""
        return program.timings[at].latency if program.timings else self.latencies[program.places[at].unit]

    def stall(self, program: Program, at: int) -> tuple[int, int]:
        """Return the least and the most cycles from an issue until its warp may come to the next place."""
        return (program.timings[at].stall,) * 2 if program.timings else self.latencies[program.places[at].unit]

    def reservations(self, *programs: Program) -> tuple[Reservation, ...]:
        """Return all different ones of these programs, in the order of the machine."""
        used = frozenset[str]().union(*(program.units for program in programs))
        return tuple(reservation for unit, reservation in self.by_class.items() if unit in used)

    def ways(self, reservation: Reservation, partition: int) -> Iterator[PortWay]:
        """Yield every way to choose pools in a partition."""
        numbers, holds = self.numbers[partition], reservation.holds
        cycles = tuple(product(*(range(hold.least, hold.most + 1) for hold in holds)))
        fixed = [0] * len(reservation.fixed)
        for chosen in product(*(range(len(hold.pools)) for hold in reservation.uses)):
            names = (hold.pools[which] for hold, which in zip(holds, (*fixed, *chosen), strict=True))
            yield PortWay(chosen, tuple(numbers[name] for name in names), cycles)
