"""Theorem 1Q: theorem 1S where instructions go through queues (docs/theory.md, 17).

Let z be the warp that finishes last. If it is left out and no gate of its own is full, then some queue of its partition
is not empty in that cycle. The first instruction in that queue is served in the cycle, for which it pays 1 at least, or
a gate of it is full. So the gates of all classes with queues count, and so do those that share a pool with them. At all
of these z pays itself, too, in every cycle from its service on: its instructions may be what the first one waits for.
"""

from collections.abc import Iterable

from makespan.model.instance import Instance
from makespan.model.program import BARRIER
from makespan.verify import machine_form as form
from makespan.verify.gates import GatePrices
from makespan.verify.interference import Company, HitBound, one_after_another
from makespan.verify.machine_form import PoolGate
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_STEPS = 20_000_000


def bound(instance: Instance) -> int:
    """Return an upper bound on every schedule of an instance without barriers, in cycles."""
    try:
        return _QueueBound(instance, ProofSteps(MOST_STEPS)).bound()
    except TooMuchWork:
        # In every cycle the stall of an instruction passes, or its latency or hold does, which may begin later.
        return 2 * one_after_another(instance)


class _QueueBound(HitBound):
    """Theorem 1Q for one instance; every step takes from `work`."""

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        super().__init__(instance, work)
        self._queued = form.queued_units(instance) & {*self._used}
        of_queued = [hold.pools for unit in self._queued for hold in form.issue_holds(instance.machine)[unit]]
        pools = {name for names in of_queued for name in names if name != form.SLOT}
        self._behind = frozenset(gate for gate in self.gates.every if gate & pools)

    def full(self, group: int, company: Company) -> frozenset[PoolGate]:
        """Return the gates that count. How many ports behind queues a warp holds at one time is not known."""
        return super().full(group, company) | self._behind

    def price(self, gates: Iterable[PoolGate], prices: GatePrices, among: PoolGate | None) -> dict[str, int]:
        """Return by class what an instruction of another warp pays: U+ in the partition of z, U' elsewhere."""
        every = tuple(gates)
        found = super().price(every, prices, among)
        if among is None:
            for unit in self._queued:
                found[unit] = max(found[unit], prices.scale + self.gates.paid(unit, every, prices, since=1))
        return found

    def own(self, group: int, gates: Iterable[PoolGate], prices: GatePrices) -> list[int]:
        """Return o+: for every place what z pays itself."""
        several = {gate for gate in gates if not self.gates.is_single(gate)}
        known: dict[tuple[str, int], int] = {}
        for place, timing in zip(self.programs[group].places, self._timings[group], strict=True):
            key = place.unit, timing.stall
            if place.unit != BARRIER and key not in known:
                known[key] = self._own(*key, several, prices)
        places = zip(self.programs[group].places, self._timings[group], strict=True)
        return [known.get((place.unit, timing.stall), 0) for place, timing in places]

    def _own(self, unit: str, stall: int, several: set[PoolGate], prices: GatePrices) -> int:
        """Return what one instruction of z pays: until its stall has passed at gates behind queues only."""
        behind, both = tuple(self._behind), tuple(self._behind | several)

        def paid(since: int) -> int:
            later = max(since, stall)
            before = self.gates.paid(unit, behind, prices, since=since) - self.gates.paid(
                unit, behind, prices, since=later
            )
            return before + self.gates.paid(unit, both, prices, since=later)

        return max(paid(0), prices.scale + paid(1)) if unit in self._queued else paid(0)
