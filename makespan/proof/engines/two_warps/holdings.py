"""For how long which ports are held, by number, and what two warps can take of them."""

from functools import cache
from itertools import product
from math import prod

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass

Holding = tuple[tuple[int, ...], ...]
"""For every pool the cycles for which each port in use is still held, sorted."""

Chosen = tuple[tuple[int, int], ...]
"""What an instruction holds of each use of its class: which of the resources, and for how many cycles."""


class Holdings:
    """The ports of a machine with one partition; number 0 is that all are free.

    A holding is that of an event in cycle 0, where ports are held that the event has taken, or of what it leaves, in
    which all are free again that cannot keep anybody waiting in cycle 1.

    Attributes:
        one_slot: whether only one instruction can be issued in a cycle.
        size: how many holdings, and ways from one to another, have been met.
    """

    def __init__(self, instance: Instance) -> None:
        machine = instance.machine
        self.one_slot = instance.issue_width == 1
        pools = {pool.name: number for number, pool in enumerate(machine.pools)}
        self._capacities = [pool.capacity for pool in machine.pools]
        self._units = {unit.name: unit for unit in machine.units}
        self._ways = {unit.name: list(_ways(unit, pools)) for unit in machine.units}
        free: Holding = ((),) * len(pools)
        self._known: list[Holding] = [free]
        self._numbers = {free: 0}
        self.size = 1
        self.later, self.left = cache(self._later), cache(self._left)
        self.free, self.taken = cache(self._free), cache(self._taken)

    def _number(self, holding: Holding) -> int:
        number = self._numbers.setdefault(holding, len(self._known))
        if number == len(self._known):
            self._known.append(holding)
            self.size += 1
        return number

    def _later(self, number: int, cycle: int) -> int:
        """So many cycles later."""
        return self._number(
            tuple(tuple(left - cycle for left in ports if left > cycle) for ports in self._known[number])
        )

    def _left(self, number: int) -> int:
        """What an event leaves."""
        return self._number(tuple(tuple(left for left in ports if left > 1) for ports in self._known[number]))

    def _free(self, number: int, unit: str) -> int:
        """Return the first cycle in which an instruction of a class finds all the ports that it needs."""
        return min(max(self._wait(number, pool) for pool in pools) for _, pools in self._ways[unit])

    def _wait(self, number: int, pool: int) -> int:
        ports = self._known[number][pool]
        missing = len(ports) - self._capacities[pool]
        return ports[missing] if missing >= 0 else 0

    def _taken(self, number: int, unit: str) -> tuple[tuple[Chosen, int], ...]:
        """Return every way in which an instruction of a class can take ports in cycle 0, with the holding then."""
        uses = self._units[unit].uses
        found = []
        for which, pools in self._ways[unit]:
            if any(self._wait(number, pool) for pool in pools):
                continue
            for cycles in product(*(range(use.least, use.most + 1) for use in uses)):
                held = list(self._known[number])
                for pool, count in zip(pools, (self._units[unit].interval, *cycles), strict=True):
                    held[pool] = tuple(sorted((*held[pool], count)))
                found.append((tuple(zip(which, cycles, strict=True)), self._number(tuple(held))))
        self.size += len(found)
        return tuple(found)


def most_ways(machine: Machine) -> int:
    """In how many ways an instruction can hold what its class uses, at most."""
    return max(prod(len(use.resources) * (use.most - use.least + 1) for use in unit.uses) for unit in machine.units)


def _ways(unit: UnitClass, pools: dict[str, int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Which resource is chosen for each use, and the pools, by number, of which the instruction takes a port then."""
    return [
        (which, (pools[unit.name], *(pools[use.resources[n]] for use, n in zip(unit.uses, which, strict=True))))
        for which in product(*(range(len(use.resources)) for use in unit.uses))
    ]
