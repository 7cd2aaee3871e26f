"""What an instruction holds on a real multiprocessor, and which full ports keep it out.

A *hold* is a port of one of some pools, for so many cycles from the issue on: that of its class, one for each of its
uses, and an issue slot of its partition. Its *gate* is all that the hold may take: the instruction is kept out if and
only if every pool of one of its gates is full. (docs/theory.md, 14.)
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from makespan.model.machine import Machine, UnitClass

SLOT = ""
"""Stands for the issue slots of a partition among the names of classes and resources."""

Gate = tuple[str, ...]
"""Names of classes or resources, sorted; the pools are those of these names in the partition of who is kept out."""


class Hold(NamedTuple):
    """A port of one of these, for `least`..`most` cycles."""

    gate: Gate
    least: int
    most: int


class Ports(NamedTuple):
    """A machine, as far as ports go.

    Args:
        capacities: of every name, in one partition or, where all share it, in all.
        shared: the names of what all partitions share.
        holds: of every class.
    """

    capacities: dict[str, int]
    shared: frozenset[str]
    holds: dict[str, tuple[Hold, ...]]

    @classmethod
    def of(cls, machine: Machine) -> "Ports":
        """Return an issue width that cannot bind is none."""
        capacities = {ports.name: ports.capacity for ports in machine.ports}
        slots: tuple[Hold, ...] = ()
        if machine.issue_width is not None:
            capacities[SLOT], slots = machine.issue_width, (Hold((SLOT,), 1, 1),)
        shared = frozenset(ports.name for ports in machine.ports if ports.shared)
        return cls(capacities, shared, {unit.name: (*_holds(unit), *slots) for unit in machine.units})

    def gates(self, units: Iterable[str]) -> tuple[Gate, ...]:
        """Those of these classes, in the order of the machine."""
        wanted = set(units)
        return tuple(dict.fromkeys(h.gate for unit, held in self.holds.items() if unit in wanted for h in held))

    def capacity(self, gate: Gate) -> int:
        """Return how many ports have to be held at the same time to keep one out."""
        return sum(self.capacities[name] for name in gate)

    def is_own(self, gate: Gate) -> bool:
        """Whether a single port is all there is: how long a warp keeps itself out is then a matter of its own time."""
        return self.capacity(gate) == 1

    def charge(self, unit: str, prices: Mapping[Gate, Mapping[str, int]], *, since: int = 0) -> int:
        """What an instruction can add to keeping another one out, from its `since`-th cycle on.

        In each cycle, it helps at one gate: the dearest, by the prices of the ports that it may then hold there.
        """
        holds = self.holds[unit]

        def dearest(cycle: int) -> int:
            return max((_held(holds, price, cycle) for price in prices.values()), default=0)

        return over_cycles((hold.most for hold in holds), dearest, since)

    def most_held(self, units: Iterable[str], names: Iterable[str], *, since: int = 0) -> int:
        """How many ports of these names a warp of these classes can hold in one cycle, as it issues one in each."""
        price, wanted = dict.fromkeys(names, 1), [self.holds[unit] for unit in units]

        def most(cycle: int) -> int:
            return max((_held(holds, price, cycle) for holds in wanted), default=0)

        return over_cycles((hold.most for holds in wanted for hold in holds), most, since)


def _holds(unit: UnitClass) -> tuple[Hold, ...]:
    return (
        Hold((unit.name,), unit.interval, unit.interval),
        *(Hold(tuple(sorted(use.resources)), use.least, use.most) for use in unit.uses),
    )


def _held(holds: Iterable[Hold], price: Mapping[str, int], cycle: int) -> int:
    return sum(max(price.get(name, 0) for name in hold.gate) for hold in holds if hold.most > cycle)


def over_cycles(ends: Iterable[int], value: Callable[[int], int], since: int) -> int:
    """The sum over the cycles from `since` on of a value that changes only in cycles `ends`, and is 0 in the end."""
    steps = sorted({since, *(end for end in ends if end > since)})
    return sum((end - begin) * value(begin) for begin, end in pairwise(steps))
