"""Theorem 1S for the checker: a warp alone, and how often others can keep it from issuing (docs/theory.md, 14).

Let z be the warp that finishes last. Alone it is a max-plus system: it issues when the stall before is over, what it
awaits is there, and ports of pools with a single port, which it holds itself, are free. Beside others a *hit* is a
cycle in which that much holds and z is left out. Then, by work conservation, some *gate* of its class is full (lemma
G): all ports of all pools of which a port would do for one hold of the instruction. By induction over its places z
issues no later than alone plus the hits so far (lemma D), however short latencies and intervals are. Each gate has
prices of its pools such that all of its ports together cost 1. So a hit costs 1 of what instructions hold in that
cycle, and an instruction, in the k-th cycle after its issue, pays no more than what it then holds of the dearest gate:
summed up, that bounds the hits. Any prices prove a bound, so which ones the engine chose does not matter here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat, zip_longest
from math import lcm
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER, Program
from makespan.model.result import Upper
from makespan.verify import machine_form as form
from makespan.verify.machine_form import PoolGate, place_timings
from makespan.verify.paths import PhaseRegion, along, keep_latest
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.rule import ProofRule

MOST_STEPS = 20_000_000
PoolPrices = Mapping[PoolGate, Mapping[str, int]]
"""By gate the price of a port of each of its pools, in units of 1 / scale."""


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
        holds: by class what an instruction holds, its issue slot included.
        scale: all prices are whole in units of 1 / scale.
        cut: of every program its phases between barriers.
    """

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        self._instance, self._work = instance, work
        machine = instance.machine
        self._capacity, self.shared = form.pool_capacities(machine), form.shared_pools(machine)
        self.holds = form.issue_holds(machine)
        self.programs = [group.program for group in instance.groups]
        self.classes = [sorted(program.units) for program in self.programs]
        used = sorted(set().union(*self.classes))
        self.gates = list(dict.fromkeys(hold.gate for unit in used for hold in self.holds[unit]))
        self.scale = lcm(*self._capacity.values(), *(self._size(gate) for gate in self.gates))
        units = {unit.name: unit for unit in machine.units}
        self._timings = [place_timings(program, units, longest=True) for program in self.programs]
        self.cut = [list(_phases(program, work)) for program in self.programs]

    def bound(self) -> int:
        """Return the smallest bound of all prices tried."""
        alone = [self.alone(group) for group in range(len(self.programs))]
        totals = []
        for prices in self.prices():
            try:
                totals.append(self._with(prices, alone))
            except TooMuchWork:
                if not totals:
                    raise
                break
        return min(totals)

    def _size(self, gate: PoolGate) -> int:
        return sum(self._capacity[name] for name in gate)

    def prices(self) -> Iterator[PoolPrices]:
        """Yield all pools of a gate at one price; then, of one gate at a time, only one of them at any."""
        even = {gate: dict.fromkeys(gate, self.scale // self._size(gate)) for gate in self.gates}
        yield even
        for gate in self.gates:
            for name in sorted(gate) if len(gate) > 1 else ():
                yield {**even, gate: {name: self.scale // self._capacity[name]}}

    # Who is there

    def companies(self) -> Iterator[tuple[int, Company, Company]]:
        """Yield (group of z, all others, those of its block) for every group and partition to which z may belong."""
        # With several blocks nothing is supposed of the partition: it may be another one in each phase.
        instance, parts = self._instance, self._instance.machine.partitions
        numbers = [group.warps for group in instance.groups]
        nobody = [0] * len(numbers)
        fixed = None if parts == 1 or self._in_blocks else form.warp_partitions(instance)
        if fixed is None:
            seats = -(-instance.warps // parts) - 1
            of_block = [warps // instance.blocks for warps in numbers]
            for group in range(len(numbers)):
                self._work.spend(len(numbers))
                every, own = (Company(nobody, nobody, _less(who, group), seats) for who in (numbers, of_block))
                yield group, every, own
            return
        inside = [nobody.copy() for _ in range(parts)]
        for part, group in zip(fixed, instance.group_of_warp(), strict=True):
            inside[part][group] += 1
        for here in dict.fromkeys(map(tuple, inside)):
            rest = [total - own for total, own in zip(numbers, here, strict=True)]
            for group, warps in enumerate(here):
                if warps:
                    self._work.spend(len(here))
                    company = Company(_less(here, group), rest, nobody, 0)
                    yield group, company, company

    @property
    def _in_blocks(self) -> bool:
        """Return whether some warps are in other blocks than z, so that they may be in any phase at any time."""
        return self._instance.blocks > 1

    # What z waits for

    def full(self, group: int, company: Company) -> frozenset[PoolGate]:
        """Return the gates of z's instructions of which all ports can be held at one time: those that count."""
        found = set()
        for gate in {hold.gate for unit in self.classes[group] for hold in self.holds[unit]}:
            self._work.spend(len(self.classes))
            here = [self._most_held(classes, gate, 0) for classes in self.classes]
            there = [self._most_held(classes, gate & self.shared, 0) for classes in self.classes]
            held = company.most(here, there)
            if not self._is_single(gate):  # z is kept out in this cycle, so its last issue was before
                held += self._most_held(self.classes[group], gate, 1)
            if held >= self._size(gate):
                found.add(gate)
        return frozenset(found)

    def _most_held(self, classes: Sequence[str], gate: PoolGate, first: int) -> int:
        """Return how many ports of a gate a warp can hold at one time, if it issued in each cycle before."""
        # Its last instruction was issued `first` cycles ago at least: f_G of docs/theory.md.
        rows = [[hold.most for hold in self.holds[unit] if hold.gate & gate] for unit in classes]
        ends = sorted({first, *(most for row in rows for most in row)})
        self._work.spend(1 + sum(map(len, rows)) * len(ends))
        return sum((b - a) * max(sum(most > a for most in row) for row in rows) for a, b in pairwise(ends))

    def _is_single(self, gate: PoolGate) -> bool:
        """Return whether it has one port: then, in a hit, z does not hold it itself."""
        return self._size(gate) == 1

    def _rates(
        self, unit: str, gates: Iterable[PoolGate], prices: PoolPrices, among: PoolGate | None
    ) -> list[tuple[int, int, int]]:
        """Return rows (first, last, paid): an instruction pays so much in each cycle from `first` after its issue."""
        # That is u_(X,k), the most over the gates. Only pools `among` these take part; None means that all do.
        holds = self.holds[unit]
        ends = sorted({0, *(hold.most for hold in holds)})
        chosen = [gate for gate in gates if any(hold.gate & gate for hold in holds)]
        self._work.spend(1 + len(ends) * len(holds) * (1 + sum(map(len, chosen))))
        found = []
        for first, last in pairwise(ends):  # between two ends of holds nothing changes
            paid = [
                sum(
                    max((cost for name, cost in prices[gate].items() if name in _both(hold.gate, among)), default=0)
                    for hold in holds
                    if hold.most > first
                )
                for gate in chosen
            ]
            found.append((first, last, max(paid, default=0)))
        return found

    def _with(self, prices: PoolPrices, alone: Sequence[Sequence[int]]) -> int:
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
                known[gates] = self.heavy(gates, prices, None), self.heavy(gates, prices, self.shared)
            here, there = known[gates]
            own = self.along(group, self.own(group, gates, prices))
            for phase, cycles in enumerate(alone[group]):
                self._work.spend(len(here))
                hits = company.most([row[phase] for row in here], [row[phase] for row in there]) + own[phase]
                if self._in_blocks:
                    worst[phase] = max(worst[phase], cycles * self.scale + hits)
                else:
                    worst[phase] = max(worst[phase], cycles + hits // self.scale)
        if not self._in_blocks:
            return sum(worst)
        total = sum(worst)  # and whatever other blocks execute, in any phase
        for crew, row in zip(self._instance.groups, self.heavy(ever, prices, None), strict=True):
            total += (crew.warps - crew.warps // self._instance.blocks) * sum(row)
        return total // self.scale

    def heavy(self, gates: Iterable[PoolGate], prices: PoolPrices, among: PoolGate | None) -> list[list[int]]:
        """Return for every group and phase the most that a warp pays: U, or U' if `among` are the shared pools."""
        price = self.price(gates, prices, among)
        return [
            self.along(group, [price.get(place.unit, 0) for place in program.places])
            for group, program in enumerate(self.programs)
        ]

    def price(self, gates: Iterable[PoolGate], prices: PoolPrices, among: PoolGate | None) -> dict[str, int]:
        """Return by class what an instruction pays in all its cycles."""
        ordered = sorted(gates, key=sorted)
        return {
            unit: sum((last - first) * paid for first, last, paid in self._rates(unit, ordered, prices, among))
            for unit in sorted(set().union(*self.classes))
        }

    def own(self, group: int, gates: Iterable[PoolGate], prices: PoolPrices) -> list[int]:
        """Return o: for every place what z pays itself, from the cycle on in which it may issue again."""
        # Of a gate with a single port it pays nothing: in a hit z does not hold that port.
        program = self.programs[group]
        ordered = sorted((gate for gate in gates if not self._is_single(gate)), key=sorted)
        rates = {unit: self._rates(unit, ordered, prices, None) for unit in self.classes[group]}
        paid = [0] * program.end
        for at, place in enumerate(program.places):
            if place.unit != BARRIER:
                again = self._timings[group][at].stall
                paid[at] = sum(max(0, last - max(first, again)) * cost for first, last, cost in rates[place.unit])
        return paid

    def along(self, group: int, weights: Sequence[int]) -> list[int]:
        """Return for every phase the largest sum on a path of a program, 0 for phases that it does not have."""
        depth = max(map(len, self.cut))
        self._work.spend(len(weights))
        found = [along(self.programs[group], weights, phase=phase) for phase in self.cut[group]]
        return found + [0] * (depth - len(found))

    # z alone

    def alone(self, group: int) -> list[int]:
        """Return T_k: for every phase the longest time until a warp comes to the next barrier, or ends."""
        # Ports that anybody may still hold when a later phase begins are waited for in full, so that all hits come
        # later and are due to instructions of the phase itself.
        cut = self.cut[group]
        left = self._residuals(group) if len(cut) > 1 and self.programs[group].timings else {}
        return [
            self._of_phase(group, *of) for of in zip(cut, chain([{}], repeat(left)), self._still_held(), strict=False)
        ]

    def _still_held(self) -> Iterator[dict[str, int]]:
        """Yield c_k: for every phase, by pool, how long after its beginning an older instruction may hold a port."""
        found: dict[str, int] = {}
        for phases in zip_longest(*self.cut):
            yield found.copy()
            for program, phase in zip(self.programs, phases, strict=True):
                for at in phase.inside if phase else ():
                    holds = self.holds[program.places[at].unit]
                    stall = program.timings[at].stall if program.timings else 1  # a latency may be as short as that
                    self._work.spend(len(holds))
                    for hold in holds:
                        for name in hold.gate:
                            found[name] = max(found.get(name, 0), hold.most - stall)

    def _residuals(self, group: int) -> dict[int, dict[int, int]]:
        """Return rho: for every place behind a barrier, how long each token may be pending when a warp comes there."""
        program = self.programs[group]
        found: dict[int, dict[int, int]] = {start: {} for start in program.starts}
        entered: dict[int, dict[int, int]] = {}
        for at, (place, timing) in enumerate(zip(program.places, program.timings, strict=True)):
            after = {token: cycles - timing.stall for token, cycles in found[at].items() if token not in timing.awaits}
            for token in timing.sets:
                after[token] = max(after.get(token, 0), timing.latency[1] - timing.stall)
            for target in place.successors:
                self._work.spend(1 + len(after))
                keep_latest(found.setdefault(target, {}), after)
                if place.unit == BARRIER:
                    keep_latest(entered.setdefault(target, {}), after)
        return entered

    def _of_phase(
        self, group: int, phase: PhaseRegion, left: Mapping[int, dict[int, int]], still_held: Mapping[str, int]
    ) -> int:
        """Return the time alone in one phase."""
        # The state at a place is (arrival, when each token is there, when each pool with one port is free again).
        # Places map it by maxima and constants, so where paths join the maximum of their states is exact.
        program, timings = self.programs[group], self._timings[group]
        states: dict[int, tuple[int, dict[int, int], dict[str, int]]] = {}
        longest = 0
        for begin in phase.begins:
            pending = dict(left.get(begin, {}))
            self._work.spend(1 + len(pending))
            longest = max(longest, self._arrive(program, begin, 0, pending))
            states[begin] = 0, pending, {}
        for at in phase.inside:
            arrival, pending, held = states.pop(at)
            place, holds, timing = program.places[at], self.holds[program.places[at].unit], timings[at]
            self._work.spend(1 + len(holds))
            issue = max((arrival, *(pending.get(token, 0) for token in timing.awaits)))
            issue = max((issue, *(self._free_again(hold.gate, held, still_held) for hold in holds)))
            single = {name: issue + hold.most for hold in holds for name in hold.pools if self._capacity[name] == 1}
            keep_latest(held, single)
            keep_latest(pending, dict.fromkeys(timing.sets, issue + timing.latency[1]))
            arrival = issue + timing.stall
            for number, target in enumerate(place.successors, start=1):
                if target == program.end or program.places[target].unit == BARRIER:
                    longest = max(longest, self._arrive(program, target, arrival, pending))
                    continue  # at a barrier the phase is over
                if target not in states and number == len(place.successors):
                    states[target] = arrival, pending, held  # no other path needs these dictionaries
                    continue
                first, tokens, ports = states.get(target, (0, {}, {}))
                self._work.spend(len(pending) + len(held))
                keep_latest(tokens, pending)
                keep_latest(ports, held)
                states[target] = max(first, arrival), tokens, ports
        return longest

    def _free_again(self, gate: PoolGate, held: Mapping[str, int], still_held: Mapping[str, int]) -> int:
        """Return when a gate is held neither by older phases any more, nor, if it has a single port, by z."""
        found = max(still_held.get(name, 0) for name in gate)
        return max((found, *(held.get(name, 0) for name in gate))) if self._is_single(gate) else found

    def _arrive(self, program: Program, at: int, arrival: int, pending: Mapping[int, int]) -> int:
        """Return when a warp that comes to a barrier, or the end, waits there for no token any more."""
        if at == program.end:
            self._work.spend(len(pending))
            return max((arrival, *pending.values()))
        awaits = program.timings[at].awaits if program.timings else ()
        return max((arrival, *(pending.get(token, 0) for token in awaits)))


def _less(numbers: Sequence[int], group: int) -> list[int]:
    return [number - (at == group) for at, number in enumerate(numbers)]


def _both(gate: PoolGate, among: PoolGate | None) -> PoolGate:
    return gate if among is None else gate & among


def _phases(program: Program, work: ProofSteps) -> Iterator[PhaseRegion]:
    """Yield the phases of a program; a warp that comes from a barrier to the end still waits there for its tokens."""
    begins = set(program.starts)
    while begins:
        inside, gates = set[int](), set[int]()
        stack = sorted(begins)
        while stack:
            at = stack.pop()
            work.spend()
            if at == program.end or at in inside or at in gates:
                continue
            if program.places[at].unit == BARRIER:
                gates.add(at)
            else:
                inside.add(at)
                stack += program.places[at].successors
        yield PhaseRegion(tuple(sorted(begins)), tuple(sorted(inside)))
        begins = {after for gate in gates for after in program.places[gate].successors}


RULE = ProofRule(
    Upper.THEOREM_1S,
    "theorem 1S",
    lambda claim, _: bound(claim.instance) if claim.instance.is_multiprocessor else None,
)
