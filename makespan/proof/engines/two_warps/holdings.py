"""The ways in which ports are held, by number, and what two warps can take of them."""

from functools import cache

from makespan.model.lowered import HeldUses, LoweredMachine, PortsInUse, Reservation


class Holdings:
    """The ports of a machine with one partition; number 0 is that all are free.

    A holding is that of an event in cycle 0, where ports are held that the event has taken, or of what it leaves, in
    which all are free again that cannot keep anybody waiting in cycle 1.

    Attributes:
        size: how many holdings, and ways from one to another, have been met.
    """

    def __init__(self, lowered: LoweredMachine) -> None:
        self._capacities = [pool.capacity for pool in lowered.pools]
        self._ways = cache(lambda reservation: tuple(lowered.ways(reservation, 0)))
        free: PortsInUse = ((),) * len(lowered.pools)
        self._known: list[PortsInUse] = [free]
        self._numbers = {free: 0}
        self.size = 1
        self.later, self.left = cache(self._later), cache(self._left)
        self.free, self.taken = cache(self._free), cache(self._taken)

    def _number(self, holding: PortsInUse) -> int:
        number = self._numbers.setdefault(holding, len(self._known))
        if number == len(self._known):
            self._known.append(holding)
            self.size += 1
        return number

    def _later(self, number: int, cycle: int) -> int:
        """Return the holding a number of cycles later."""
        return self._number(
            tuple(tuple(left - cycle for left in ports if left > cycle) for ports in self._known[number])
        )

    def _left(self, number: int) -> int:
        """Return what an event leaves: all but the ports that are free again in the next cycle."""
        return self._number(tuple(tuple(left for left in ports if left > 1) for ports in self._known[number]))

    def _free(self, number: int, reservation: Reservation) -> int:
        """Return the first cycle in which an instruction finds all the ports that it needs."""
        return min(max(self._wait(number, pool) for pool in way.pools) for way in self._ways(reservation))

    def _wait(self, number: int, pool: int) -> int:
        ports = self._known[number][pool]
        missing = len(ports) - self._capacities[pool]
        return ports[missing] if missing >= 0 else 0

    def _taken(self, number: int, reservation: Reservation) -> tuple[tuple[HeldUses, int], ...]:
        """Return every way in which an instruction can take ports in cycle 0, with the holding then."""
        found = []
        for way in self._ways(reservation):
            if any(self._wait(number, pool) for pool in way.pools):
                continue
            for cycles in way.cycles:
                held = list(self._known[number])
                for pool, count in zip(way.pools, cycles, strict=True):
                    held[pool] = tuple(sorted((*held[pool], count)))
                found.append((way.uses(cycles), self._number(tuple(held))))
        self.size += len(found)
        return tuple(found)
