"""Which full ports keep an instruction out on a real multiprocessor.

An instruction holds ports of pools (`makespan.model.lowered`). The *gate* of a hold is all pools that it may take a
port of: the instruction is kept out if and only if every pool of one of its gates is full. (docs/theory.md, 14.)
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from makespan.model.lowered import LoweredMachine, PortHold, Reservation

Gate = tuple[str, ...]
"""The names of pools, sorted; they are those in the partition of the warp that is kept out."""


class PortGates(LoweredMachine):
    """A lowered machine with the gates of its instructions."""

    def gates(self, reservations: Iterable[Reservation]) -> tuple[Gate, ...]:
        """Return the different gates of these instructions, in their order."""
        return tuple(dict.fromkeys(gate_of(hold) for reservation in reservations for hold in reservation.holds))

    def capacity(self, gate: Gate) -> int:
        """Return how many ports have to be held at the same time to keep an instruction out."""
        return sum(self.capacities[name] for name in gate)

    def is_own(self, gate: Gate) -> bool:
        """Return whether a single port is all there is: a warp that keeps itself out there does so in its own time."""
        return self.capacity(gate) == 1

    def charge(self, reservation: Reservation, prices: Mapping[Gate, Mapping[str, int]], *, since: int = 0) -> int:
        """Return the most that an instruction can add to keeping another one out, from its `since`-th cycle on."""
        holds = reservation.holds

        def dearest(cycle: int) -> int:
            # the other one waits at a single gate in a cycle, so only the dearest of them counts
            return max((_price_held(holds, price, cycle) for price in prices.values()), default=0)

        return sum_over_cycles((hold.most for hold in holds), dearest, since)

    def most_held(self, reservations: Iterable[Reservation], names: Iterable[str], *, since: int = 0) -> int:
        """Return how many ports of these names a warp can hold in one cycle that issues one of these in each cycle."""
        price, wanted = dict.fromkeys(names, 1), [reservation.holds for reservation in reservations]

        def most(age: int) -> int:
            return max((_price_held(holds, price, age) for holds in wanted), default=0)

        # in one cycle there is one instruction of every age, so the sum over ages is what they hold together
        return sum_over_cycles((hold.most for holds in wanted for hold in holds), most, since)


def gate_of(hold: PortHold) -> Gate:
    """Return the gate of a hold."""
    return tuple(sorted(hold.pools))


def _price_held(holds: Iterable[PortHold], price: Mapping[str, int], cycle: int) -> int:
    return sum(max(price.get(name, 0) for name in hold.pools) for hold in holds if hold.most > cycle)


def sum_over_cycles(ends: Iterable[int], value: Callable[[int], int], since: int) -> int:
    """Return the sum over the cycles from `since` on of a value that changes only in cycles `ends`, and ends as 0."""
    steps = sorted({since, *(end for end in ends if end > since)})
    return sum((end - begin) * value(begin) for begin, end in pairwise(steps))
