"""Gates and their prices: what instructions pay in theorems 1S, E' and G (docs/theory.md, 14).

A warp that is ready is left out only if some gate of its instruction is full: all ports of all pools of which a port
would do for one hold (lemma G). Each gate has prices of its pools such that all of its ports together cost 1. So a
cycle in which a gate is full costs 1 of what instructions hold then. An instruction pays in each cycle after its issue
what it then holds, at the gate where that is dearest. Any prices prove a bound, so the checker tries some of its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from makespan.model.machine import Machine
from makespan.verify.machine_form import PoolGate, issue_holds, pool_capacities, shared_pools
from makespan.verify.refusal import ProofSteps


class GatePrices(NamedTuple):
    """The price of a port of each pool of a gate, in units of 1 / `scale`: all ports of a gate cost `scale`."""

    scale: int
    costs: Mapping[PoolGate, Mapping[str, int]]


class Gates:
    """The gates of some classes of a machine; every step takes from `work`.

    Attributes:
        holds: by class what an instruction holds, its issue slot included.
        every: all gates.
        shared: the pools that all partitions share.
    """

    def __init__(self, machine: Machine, units: Iterable[str], work: ProofSteps) -> None:
        every = issue_holds(machine)
        self.holds = {unit: every[unit] for unit in units}
        self.every = list(dict.fromkeys(hold.gate for holds in self.holds.values() for hold in holds))
        self.shared = shared_pools(machine)
        self._capacity, self._work = pool_capacities(machine), work

    def size(self, gate: PoolGate) -> int:
        """Return the number of its ports."""
        return sum(self._capacity[name] for name in gate)

    def is_single(self, gate: PoolGate) -> bool:
        """Return whether it has one port: then a warp that the gate keeps out does not hold it itself."""
        return self.size(gate) == 1

    def even(self, gates: Collection[PoolGate]) -> GatePrices:
        """Return the prices at which all pools of a gate cost the same."""
        scale = lcm(*map(self.size, gates))
        return GatePrices(scale, {gate: dict.fromkeys(gate, scale // self.size(gate)) for gate in gates})

    def prices(self) -> Iterator[GatePrices]:
        """Yield even prices; then, of one gate at a time, those at which only one of its pools costs anything."""
        scale = lcm(*self._capacity.values(), *map(self.size, self.every))
        even = {gate: dict.fromkeys(gate, scale // self.size(gate)) for gate in self.every}
        yield GatePrices(scale, even)
        for gate in self.every:
            for name in sorted(gate) if len(gate) > 1 else ():
                yield GatePrices(scale, {**even, gate: {name: scale // self._capacity[name]}})

    def most_held(self, units: Iterable[str], gate: PoolGate, first: int) -> int:
        """Return f: the most ports of a gate that a warp with such instructions can hold at one time.

        It issued at most one instruction in each cycle, and the last one `first` cycles ago at least.
        """
        rows = [[hold.most for hold in self.holds[unit] if hold.gate & gate] for unit in units]
        ends = sorted({first, *(most for row in rows for most in row)})
        self._work.spend(1 + sum(map(len, rows)) * len(ends))
        return sum((b - a) * max(sum(most > a for most in row) for row in rows) for a, b in pairwise(ends))

    def paid(
        self,
        unit: str,
        gates: Iterable[PoolGate],
        prices: GatePrices,
        *,
        since: int = 0,
        among: PoolGate | None = None,
    ) -> int:
        """Return what an instruction pays from the cycle `since` after its issue on: the sum of u over these cycles.

        Only pools `among` these take part; None means that all do.
        """
        holds = self.holds[unit]
        ends = sorted({since, *(hold.most for hold in holds if hold.most > since)})
        chosen = [prices.costs[gate] for gate in gates if any(hold.gate & gate for hold in holds)]
        self._work.spend(1 + len(ends) * len(holds) * (1 + sum(map(len, chosen))))
        total = 0
        for first, last in pairwise(ends):  # between two ends of holds nothing changes
            held = [hold.gate if among is None else hold.gate & among for hold in holds if hold.most > first]
            total += (last - first) * max((_price(held, costs) for costs in chosen), default=0)
        return total


def _price(held: Iterable[PoolGate], costs: Mapping[str, int]) -> int:
    """Return what an instruction pays at a gate that has a port of one pool out of each of these sets."""
    return sum(max((cost for name, cost in costs.items() if name in pools), default=0) for pools in held)
