"""Theorem 1S for the checker: a warp alone, and how often others can keep it from issuing (docs/theory.md, 14).

Let z be the warp that finishes last. Alone it is a max-plus system: it issues when the stall before is over, what it
awaits is there, and ports of pools with a single port, which it holds itself, are free. Beside others a *hit* is a
cycle in which that much holds and z is left out. Then, by maximality, some *gate* of its class is full: all ports of
all pools of which one would do for one thing that the instruction holds. By induction over its places z issues no later
than alone plus the hits so far, however short latencies and intervals are. Each gate has prices of its pools such that
all of its ports together cost 1. So a hit costs 1 of what instructions hold in that cycle, and an instruction, in the
k-th cycle after its issue, pays no more than what it then holds of the dearest gate: summed up, that bounds the hits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat, zip_longest
from math import lcm
from typing import NamedTuple, TypeVar

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program
from makespan.verify import numbering
from makespan.verify.paths import along
from makespan.verify.refusal import StepBudget, TooMuchWork

MOST_STEPS = 20_000_000
_SLOT = ""
_Key = TypeVar("_Key", int, str)
PoolGate = frozenset[str]
PoolPrices = Mapping[PoolGate, Mapping[str, int]]


def bound(instance: Instance) -> int:
    """An upper bound on every schedule, in cycles; the sum of all instructions where more would take too long."""
    try:
        return HitBound(instance, StepBudget(MOST_STEPS)).bound()
    except TooMuchWork:
        return one_after_another(instance)


def one_after_another(instance: Instance) -> int:
    """In every cycle some stall or latency passes, or a port is held: else somebody issues, or a barrier opens."""
    held = {
        unit.name: max(unit.interval, unit.latency.most, *(use.most for use in unit.uses))
        for unit in instance.machine.units
    }
    total = 0
    for program, warps in ((group.program, group.warps) for group in instance.groups):
        cycles = [held.get(place.unit, 0) for place in program.places]
        for at, timing in enumerate(program.timings):
            cycles[at] = max(cycles[at], timing.stall, timing.latency[1])
        total += warps * along(program, cycles)
    return total


class _BarrierPhase(NamedTuple):
    """Where a warp stands when a barrier opens, and what it may execute until the next one."""

    begins: tuple[int, ...]
    inside: tuple[int, ...]


class PoolHold(NamedTuple):
    """One of these ports, or issue slots, for so many cycles at most."""

    gate: PoolGate
    most: int


class Company(NamedTuple):
    """The warps besides z, by group: in its partition, in others, and `seats` of the rest wherever they do most."""

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
            moved = min(left, warps)
            total += warps * least + moved * gain
            left -= moved
        return total


class HitBound:
    """One instance; every step takes from `work`."""

    def __init__(self, instance: Instance, work: StepBudget) -> None:
        self._instance, self._work = instance, work
        machine = instance.machine
        self._capacity, self.shared = _pools(machine)
        self.holds = _holds(machine)
        self.programs = [group.program for group in instance.groups]
        self.classes = [sorted(program.units) for program in self.programs]
        used = sorted(set().union(*self.classes))
        self.gates = list(dict.fromkeys(hold.gate for unit in used for hold in self.holds[unit]))
        self.scale = lcm(*self._capacity.values(), *(self._size(gate) for gate in self.gates))
        self._latency = {unit.name: unit.latency.most for unit in machine.units}
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
        """For every group, as that of z, the others, and those of its block: one for each partition where z may be."""
        instance, parts = self._instance, self._instance.machine.partitions
        numbers = [group.warps for group in instance.groups]
        nobody = [0] * len(numbers)
        fixed = None if parts == 1 or self._in_blocks else numbering.partitions(instance)
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
        """Return whether there are warps whom no barrier of z's block holds."""
        return self._instance.blocks > 1

    # What z waits for

    def full(self, group: int, company: Company) -> frozenset[PoolGate]:
        """Return the gates of z's instructions of which all ports can be held at one time."""
        found = set()
        for gate in {hold.gate for unit in self.classes[group] for hold in self.holds[unit]}:
            self._work.spend(len(self.classes))
            here = [self._most_held(classes, gate, 0) for classes in self.classes]
            there = [self._most_held(classes, gate & self.shared, 0) for classes in self.classes]
            held = company.most(here, there)
            if not self._is_single(gate):
                held += self._most_held(self.classes[group], gate, 1)
            if held >= self._size(gate):
                found.add(gate)
        return frozenset(found)

    def _most_held(self, classes: Sequence[str], gate: PoolGate, first: int) -> int:
        """Ports of a gate that a warp can hold at one time, with one instruction issued in each cycle before.

        Its last instruction was issued `first` cycles ago at least.
        """
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
        """From one cycle after issue to another, the most that an instruction pays in each, of pools `among` these."""
        holds = self.holds[unit]
        ends = sorted({0, *(hold.most for hold in holds)})
        chosen = [gate for gate in gates if any(hold.gate & gate for hold in holds)]
        self._work.spend(1 + len(ends) * len(holds) * (1 + sum(map(len, chosen))))
        found = []
        for first, last in pairwise(ends):
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
        """Return the bound at these prices."""
        depth = max(map(len, self.cut))
        worst = [0] * depth  # of every phase, times the scale where there are several blocks
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
        """For every group and phase the most that a warp pays."""
        price = self.price(gates, prices, among)
        return [
            self.along(group, [price.get(place.unit, 0) for place in program.places])
            for group, program in enumerate(self.programs)
        ]

    def price(self, gates: Iterable[PoolGate], prices: PoolPrices, among: PoolGate | None) -> dict[str, int]:
        """What an instruction of each class pays."""
        ordered = sorted(gates, key=sorted)
        return {
            unit: sum((last - first) * paid for first, last, paid in self._rates(unit, ordered, prices, among))
            for unit in sorted(set().union(*self.classes))
        }

    def own(self, group: int, gates: Iterable[PoolGate], prices: PoolPrices) -> list[int]:
        """For every place what z pays itself, in cycles in which it may issue again."""
        program = self.programs[group]
        ordered = sorted((gate for gate in gates if not self._is_single(gate)), key=sorted)
        rates = {unit: self._rates(unit, ordered, prices, None) for unit in self.classes[group]}
        paid = [0] * program.end
        for at, place in enumerate(program.places):
            if place.unit != BARRIER:
                again = program.timings[at].stall if program.timings else self._latency[place.unit]
                paid[at] = sum(max(0, last - max(first, again)) * cost for first, last, cost in rates[place.unit])
        return paid

    def along(self, group: int, weights: Sequence[int]) -> list[int]:
        """For every phase the largest sum on a path."""
        depth = max(map(len, self.cut))
        self._work.spend(len(weights))
        found = [along(self.programs[group], weights, phase=phase) for phase in self.cut[group]]
        return found + [0] * (depth - len(found))

    # z alone

    def alone(self, group: int) -> list[int]:
        """For every phase the longest time from its begin until a warp comes to the next barrier, or has finished.

        What ports are held at the begin of a later phase, by anybody, is waited for in full, so that hits come behind.
        """
        program, cut = self.programs[group], self.cut[group]
        left = self._residuals(program) if len(cut) > 1 and program.timings else {}
        return [
            self._of_phase(program, *of) for of in zip(cut, chain([{}], repeat(left)), self._still_held(), strict=False)
        ]

    def _still_held(self) -> Iterator[dict[str, int]]:
        """For every phase, and by pool, how long after its begin an instruction of one before may still hold a port."""
        found: dict[str, int] = {}
        for phases in zip_longest(*self.cut):
            yield found.copy()
            for program, phase in zip(self.programs, phases, strict=True):
                for at in phase.inside if phase else ():
                    holds, stall = (
                        self.holds[program.places[at].unit],
                        program.timings[at].stall if program.timings else 1,
                    )
                    self._work.spend(len(holds))
                    for hold in holds:
                        for name in hold.gate:
                            found[name] = max(found.get(name, 0), hold.most - stall)

    def _residuals(self, program: Program) -> dict[int, dict[int, int]]:
        """For every place, and the end, for how long a token may be pending when a warp comes there from a barrier."""
        found: dict[int, dict[int, int]] = {start: {} for start in program.starts}
        entered: dict[int, dict[int, int]] = {}
        for at, (place, timing) in enumerate(zip(program.places, program.timings, strict=True)):
            after = {token: cycles - timing.stall for token, cycles in found[at].items() if token not in timing.awaits}
            for token in timing.sets:
                after[token] = max(after.get(token, 0), timing.latency[1] - timing.stall)
            for target in place.successors:
                self._work.spend(1 + len(after))
                _join(found.setdefault(target, {}), after)
                if place.unit == BARRIER:
                    _join(entered.setdefault(target, {}), after)
        return entered

    def _of_phase(
        self, program: Program, phase: _BarrierPhase, left: Mapping[int, dict[int, int]], still_held: Mapping[str, int]
    ) -> int:
        """Arrival, when which token is there, and when which pool with one port is free again: at every place."""
        states: dict[int, tuple[int, dict[int, int], dict[str, int]]] = {}
        longest = 0
        for begin in phase.begins:
            pending = dict(left.get(begin, {}))
            self._work.spend(1 + len(pending))
            longest = max(longest, self._arrive(program, begin, 0, pending))
            states[begin] = 0, pending, {}
        for at in phase.inside:
            arrival, pending, held = states.pop(at)
            place, holds = program.places[at], self.holds[program.places[at].unit]
            timing = program.timings[at] if program.timings else None
            self._work.spend(1 + len(holds))
            issue = max((arrival, *(pending.get(token, 0) for token in (timing.awaits if timing else ()))))
            issue = max((issue, *(self._free_again(hold.gate, held, still_held) for hold in holds)))
            for name, most in ((name, hold.most) for hold in holds for name in hold.gate if self._capacity[name] == 1):
                held[name] = max(held.get(name, 0), issue + most)
            arrival = issue + (timing.stall if timing else self._latency[place.unit])
            for token in timing.sets if timing else ():
                pending[token] = max(pending.get(token, 0), issue + program.timings[at].latency[1])
            for number, target in enumerate(place.successors, start=1):
                if target == program.end or program.places[target].unit == BARRIER:
                    longest = max(longest, self._arrive(program, target, arrival, pending))
                    continue
                if target not in states and number == len(place.successors):
                    states[target] = arrival, pending, held  # nobody else needs them
                    continue
                first, tokens, ports = states.get(target, (0, {}, {}))
                self._work.spend(len(pending) + len(held))
                _join(tokens, pending)
                _join(ports, held)
                states[target] = max(first, arrival), tokens, ports
        return longest

    def _free_again(self, gate: PoolGate, held: Mapping[str, int], still_held: Mapping[str, int]) -> int:
        """When a gate is no more held by instructions of phases before, nor by z if it has a single port."""
        found = max(still_held.get(name, 0) for name in gate)
        return max((found, *(held.get(name, 0) for name in gate))) if self._is_single(gate) else found

    def _arrive(self, program: Program, at: int, arrival: int, pending: Mapping[int, int]) -> int:
        """When a warp that comes to a barrier, or the end, need not wait there for itself."""
        if at == program.end:
            self._work.spend(len(pending))
            return max((arrival, *pending.values()))
        awaits = program.timings[at].awaits if program.timings else ()
        return max((arrival, *(pending.get(token, 0) for token in awaits)))


def _join(into: dict[_Key, int], other: Mapping[_Key, int]) -> None:
    """The later of both."""
    for key, cycle in other.items():
        if cycle > into.get(key, 0):
            into[key] = cycle


def _less(numbers: Sequence[int], group: int) -> list[int]:
    """Without one warp of a group."""
    return [number - (at == group) for at, number in enumerate(numbers)]


def _both(gate: PoolGate, among: PoolGate | None) -> PoolGate:
    return gate if among is None else gate & among


def _pools(machine: Machine) -> tuple[dict[str, int], PoolGate]:
    """Ports by name, as one partition sees them, with its issue slots; and what all partitions share."""
    ports = [(one.name, one.capacity, one.shared) for one in machine.ports]
    if machine.issue_width is not None:
        ports.append((_SLOT, machine.issue_width, False))
    return {name: capacity for name, capacity, _ in ports}, frozenset(name for name, _, shared in ports if shared)


def _holds(machine: Machine) -> dict[str, list[PoolHold]]:
    """What an instruction of each class holds."""
    slot = [] if machine.issue_width is None else [PoolHold(frozenset({_SLOT}), 1)]
    return {
        unit.name: [
            PoolHold(frozenset({unit.name}), unit.interval),
            *(PoolHold(frozenset(use.resources), use.most) for use in unit.uses),
            *slot,
        ]
        for unit in machine.units
    }


def _phases(program: Program, work: StepBudget) -> Iterator[_BarrierPhase]:
    """Phase by phase; who comes from a barrier to the end still waits there for what is pending."""
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
        yield _BarrierPhase(tuple(sorted(begins)), tuple(sorted(inside)))
        begins = {after for gate in gates for after in program.places[gate].successors}
