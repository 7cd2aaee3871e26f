"""Theorem 1S: a warp alone, and how often others can keep it from issuing (docs/theory.md, 14).

There is no evidence but the instance. Let z be the warp that finishes last. Alone it takes T (`alone`). Beside others a
*hit* is a cycle in which that much holds and z is left out. By induction over its places z issues no later than alone
plus the hits so far (lemma D), however short latencies and intervals are. In a hit a gate is full, so at any prices it
costs 1 of what instructions hold in that cycle (`gates`). What all instructions pay in all cycles bounds the hits.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER
from makespan.model.result import Upper
from makespan.verify import machine_form as form
from makespan.verify import phases
from makespan.verify.alone import TimesAlone
from makespan.verify.gates import GatePrices, Gates
from makespan.verify.machine_form import PoolGate
from makespan.verify.paths import along
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.rule import ProofRule

MOST_STEPS = 20_000_000


def bound(instance: Instance) -> int:
    """Return an upper bound on every schedule, in cycles: the sum of all instructions if theorem 1S takes too long."""
    try:
        return HitBound(instance, ProofSteps(MOST_STEPS)).bound()
    except TooMuchWork:
        return one_after_another(instance)


def one_after_another(instance: Instance) -> int:
    """Return the sum over all warps of their heaviest path, each place with its longest stall, latency or hold."""
    # In every cycle before the end one of these passes: else some warp issues, or a barrier opens.
    held = {
        unit.name: max(unit.latency.most, *(hold.most for hold in form.class_holds(unit)))
        for unit in instance.machine.units
    }
    total = 0
    for program, warps in ((group.program, group.warps) for group in instance.groups):
        cycles = [held.get(place.unit, 0) for place in program.places]
        for at, timing in enumerate(program.timings):
            cycles[at] = max(cycles[at], timing.stall, timing.latency[1])
        total += warps * along(program, cycles)
    return total


class Company(NamedTuple):
    """The warps besides z, by group: those in its partition, those elsewhere, and those who may be in either.

    Of the latter `seats` are in the partition of z: the adversary chooses those for whom it makes most.
    """

    beside: Sequence[int]
    elsewhere: Sequence[int]
    anywhere: Sequence[int]
    seats: int

    @classmethod
    def but_one(cls, instance: Instance, group: int, blocks: int = 1) -> "Company":
        """Return all warps but one of a group, of one of so many equal blocks, any of which may have a seat."""
        numbers = [crew.warps // blocks - (at == group) for at, crew in enumerate(instance.groups)]
        nobody = [0] * len(numbers)
        return cls(nobody, nobody, numbers, (instance.warps - 1) // instance.machine.partitions)

    def most(self, here: Sequence[int], there: Sequence[int]) -> int:
        """Return the largest sum of what each of them adds in the partition of z, and what in another."""
        total = sum(map(int.__mul__, self.beside, here)) + sum(map(int.__mul__, self.elsewhere, there))
        left = self.seats
        for gain, warps, least in sorted(
            ((a - b, warps, b) for a, b, warps in zip(here, there, self.anywhere, strict=True)), reverse=True
        ):
            moved = min(left, warps)  # those who gain most by being beside z take the seats first
            total += warps * least + moved * gain
            left -= moved
        return total


class HitBound:
    """Theorem 1S for one instance; every step takes from `work`.

    Attributes:
        gates: those of the classes that some program uses.
        cut: of every program its phases between barriers.
        classes: of every program those that it uses.
    """

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        self._instance, self._work = instance, work
        self.programs = [group.program for group in instance.groups]
        self.classes = [sorted(program.units) for program in self.programs]
        self._used = sorted(set().union(*self.classes))
        self.gates = Gates(instance.machine, self._used, work)
        units = {unit.name: unit for unit in instance.machine.units}
        self._timings = [form.place_timings(program, units, longest=True) for program in self.programs]
        self.cut = [list(phases.regions(program, work, whole=True)) for program in self.programs]
        self._times = TimesAlone(instance.machine, self.programs, self.cut, work)

    def bound(self) -> int:
        """Return the smallest bound of all prices tried."""
        alone = [self.alone(group) for group in range(len(self.programs))]
        totals = []
        for prices in self.gates.prices():
            try:
                totals.append(self._with(prices, alone))
            except TooMuchWork:
                if not totals:
                    raise
                break
        return min(totals)

    def alone(self, group: int) -> list[int]:
        """Return T_k of a group for every phase."""
        return self._times.of_phases(group)

    # Who is there

    def companies(self) -> Iterator[tuple[int, Company, Company]]:
        """Yield (group of z, all others, those of its block) for every group and partition to which z may belong."""
        # With several blocks nothing is supposed of the partition: it may be another one in each phase.
        instance, parts, groups = self._instance, self._instance.machine.partitions, range(len(self.programs))
        fixed = None if parts == 1 or self._in_blocks else form.warp_partitions(instance)
        if fixed is None:
            for group in groups:
                self._work.spend(len(groups))
                yield group, Company.but_one(instance, group), Company.but_one(instance, group, instance.blocks)
            return
        inside = [[0] * len(groups) for _ in range(parts)]
        for part, group in zip(fixed, instance.group_of_warp(), strict=True):
            inside[part][group] += 1
        for here in dict.fromkeys(map(tuple, inside)):
            rest = [crew.warps - own for crew, own in zip(instance.groups, here, strict=True)]
            for group in filter(here.__getitem__, groups):
                self._work.spend(len(here))
                beside = [number - (at == group) for at, number in enumerate(here)]
                company = Company(beside, rest, [0] * len(groups), 0)
                yield group, company, company

    @property
    def _in_blocks(self) -> bool:
        """Return whether some warps are in other blocks than z, so that they may be in any phase at any time."""
        return self._instance.blocks > 1

    # What z waits for

    def full(self, group: int, company: Company) -> frozenset[PoolGate]:
        """Return the gates of z's instructions of which all ports can be held at one time: those that count."""
        found = set()
        for gate in {hold.gate for unit in self.classes[group] for hold in self.gates.holds[unit]}:
            self._work.spend(len(self.classes))
            here = [self.gates.most_held(classes, gate, 0) for classes in self.classes]
            there = [self.gates.most_held(classes, gate & self.gates.shared, 0) for classes in self.classes]
            held = company.most(here, there)
            if not self.gates.is_single(gate):  # z is kept out in this cycle, so its last issue was before
                held += self.gates.most_held(self.classes[group], gate, 1)
            if held >= self.gates.size(gate):
                found.add(gate)
        return frozenset(found)

    def _with(self, prices: GatePrices, alone: Sequence[Sequence[int]]) -> int:
        depth = max(map(len, self.cut))
        # Barriers: phases add up, each with its own y. With several blocks all others' instructions are added once,
        # so `worst` is in units of 1 / scale there, and is rounded at the end.
        worst = [0] * depth
        known: dict[frozenset[PoolGate], tuple[list[list[int]], list[list[int]]]] = {}
        ever = set[PoolGate]()
        for group, everybody, company in self.companies():
            gates = self.full(group, everybody)
            ever |= gates
            if gates not in known:
                known[gates] = self.heavy(gates, prices, None), self.heavy(gates, prices, self.gates.shared)
            here, there = known[gates]
            own = self.along(group, self.own(group, gates, prices))
            for phase, cycles in enumerate(alone[group]):
                self._work.spend(len(here))
                hits = company.most([row[phase] for row in here], [row[phase] for row in there]) + own[phase]
                if self._in_blocks:
                    worst[phase] = max(worst[phase], cycles * prices.scale + hits)
                else:
                    worst[phase] = max(worst[phase], cycles + hits // prices.scale)
        if not self._in_blocks:
            return sum(worst)
        total = sum(worst)  # and whatever other blocks execute, in any phase
        for crew, row in zip(self._instance.groups, self.heavy(ever, prices, None), strict=True):
            total += (crew.warps - crew.warps // self._instance.blocks) * sum(row)
        return total // prices.scale

    def heavy(self, gates: Iterable[PoolGate], prices: GatePrices, among: PoolGate | None) -> list[list[int]]:
        """Return for every group and phase the most that a warp pays: U, or U' if `among` are the shared pools."""
        price = self.price(gates, prices, among)
        return [
            self.along(group, [price.get(place.unit, 0) for place in program.places])
            for group, program in enumerate(self.programs)
        ]

    def price(self, gates: Iterable[PoolGate], prices: GatePrices, among: PoolGate | None) -> dict[str, int]:
        """Return by class what an instruction pays in all its cycles."""
        every = tuple(gates)
        return {unit: self.gates.paid(unit, every, prices, among=among) for unit in self._used}

    def own(self, group: int, gates: Iterable[PoolGate], prices: GatePrices) -> list[int]:
        """Return o: for every place what z pays itself, from the cycle on in which it may issue again."""
        # Of a gate with a single port it pays nothing: in a hit z does not hold that port.
        several = [gate for gate in gates if not self.gates.is_single(gate)]
        known: dict[tuple[str, int], int] = {}
        for place, timing in zip(self.programs[group].places, self._timings[group], strict=True):
            if place.unit != BARRIER and (place.unit, timing.stall) not in known:
                known[place.unit, timing.stall] = self.gates.paid(place.unit, several, prices, since=timing.stall)
        places = zip(self.programs[group].places, self._timings[group], strict=True)
        return [known.get((place.unit, timing.stall), 0) for place, timing in places]

    def along(self, group: int, weights: Sequence[int]) -> list[int]:
        """Return for every phase the largest sum on a path of a program, 0 for phases that it does not have."""
        depth = max(map(len, self.cut))
        self._work.spend(len(weights))
        found = [along(self.programs[group], weights, phase=phase) for phase in self.cut[group]]
        return found + [0] * (depth - len(found))


RULE = ProofRule(
    Upper.THEOREM_1S,
    "theorem 1S",
    lambda claim, _: bound(claim.instance) if claim.instance.is_multiprocessor else None,
)
