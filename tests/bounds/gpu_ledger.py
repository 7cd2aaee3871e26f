"""The proof of theorem G with lapses as a program: the links of a random run of a tiny GPU, and who pays for them.

Runs are walks through the states of `tests.lapse_oracle`, which knows the rules of docs/model.md alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import NamedTuple, TypeVar

from makespan.model.gpu import GpuInstance
from makespan.model.lapses import PlaceLapses
from makespan.model.program import BARRIER
from tests.bounds.lapse_ledger import Pools
from tests.lapse_oracle import WHOLE_SM, LapsingGpu, OracleSm, OracleWarp

T = TypeVar("T")


class GpuIssue(NamedTuple):
    """An instruction: its cycle, warp of the block and class; and the number of its phase."""

    cycle: int
    warp: int
    unit: str
    phase: int


@dataclass
class BlockLink:
    """A block in its slot.

    Args:
        sm: its SM.
        slot: its slot.
        begin: the cycle in which it gets its room.
        delay: the cycles after which its warps begin.
        end: the cycle in which it has ended.
        issued: its instructions.
        came: by phase and warp the cycle in which the warp has come to the end of the phase.
        withheld: the cycles and warps that are withheld.
    """

    sm: int
    slot: int
    begin: int
    delay: int
    end: int = -1
    issued: list[GpuIssue] = field(default_factory=list)
    came: dict[tuple[int, int], int] = field(default_factory=dict)
    withheld: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class GpuRun:
    """All links of a run, the lapses of each SM by cycle, the last dispatch and the end of all."""

    links: list[BlockLink] = field(default_factory=list)
    lapses: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    last: int = 0
    makespan: int = 0


class WalkingGpu(LapsingGpu):
    """The oracle, which goes one random way."""

    def walk(self, random: Random) -> GpuRun:
        """A random run; some lapse as soon as they can, and some withhold warps where they can."""
        gpu, run, left = self.gpu, GpuRun(), self.gpu.blocks
        sms = [OracleSm(((),) * gpu.resident) for _ in range(gpu.sms)]
        there: dict[tuple[int, int], BlockLink] = {}
        haste, now = random.random(), 0
        while True:
            empty = [(m, s) for m, sm in enumerate(sms) for s, warps in enumerate(sm.slots) if not warps]
            for m, s in random.sample(empty, min(left, len(empty))):
                left, run.last = left - 1, now
                link = there[m, s] = BlockLink(m, s, now, random.randint(0, gpu.dispatch))
                run.links.append(link)
                warps = tuple(self._at(n, OracleWarp(0, link.delay)) for n, _ in enumerate(self.programs))
                sms[m] = sms[m]._replace(slots=(*sms[m].slots[:s], warps, *sms[m].slots[s + 1 :]))
            if not any(any(sm.slots) for sm in sms):
                run.makespan = now
                return run
            for m, sm in enumerate(sms):
                own = {s: there[m, s] for s, warps in enumerate(sm.slots) if warps}
                sms[m], run.lapses[m, now] = self._step(sm, own, now, random, haste)
                for s, link in own.items():
                    if not sms[m].slots[s]:
                        link.end = now + 1
            now += 1

    def _step(
        self, sm: OracleSm, links: dict[int, BlockLink], now: int, random: Random, haste: float
    ) -> tuple[OracleSm, set[int]]:
        """A cycle of an SM, and its lapses."""
        if not links:
            return self._pass(sm), set()

        def pick(options: Iterable[T]) -> T:
            return random.choice(sorted(options, key=repr))

        ready = pick(self._arrive(sm))
        whole = list(self._lapse(ready, WHOLE_SM))
        after, kept, lapsing = ready, ready, {WHOLE_SM}
        if whole and random.random() < haste:
            after = kept = pick(whole)
        else:
            options = sorted(self._partitions_lapse(ready), key=repr)
            many = [each for each in options if each[1]]
            begun, parts = random.choice(many if many and random.random() < haste else options)
            kept, lapsing = pick(self._withhold(begun, parts)), set(parts)
            after = pick(self._issue(kept, parts))
        for s, link in links.items():
            for n, program in enumerate(self.programs):
                states = [each.slots[s][n] for each in (sm, ready, kept, after)]
                self._note(link, n, now, states)
                for at in range(states[2].place, states[3].place):
                    link.issued.append(GpuIssue(now, n, program.places[at].unit, self.phase(n, at)))
        passed = self._pass(after)
        for s, link in links.items():
            for n, program in enumerate(self.programs):
                warp = passed.slots[s][n] if passed.slots[s] else OracleWarp(program.end)
                if warp.place == program.end and not warp.wait:
                    link.came.setdefault((self.phase(n, program.end), n), now + 1)
        return passed, lapsing

    def _note(self, link: BlockLink, n: int, now: int, states: list[OracleWarp]) -> None:
        """Note whether a warp is withheld, and the barriers to which it has come."""
        before, ready, kept, _ = states
        if kept.withheld:
            link.withheld.add((now, n))
        program = self.programs[n]
        for at in range(before.place, ready.place):
            if program.places[at].unit == BARRIER:
                link.came.setdefault((self.phase(n, at), n), now)
        if ready.arrived:
            link.came.setdefault((self.phase(n, ready.place), n), now)

    def phase(self, n: int, at: int) -> int:
        """The number of barriers before a place."""
        return sum(place.unit == BARRIER for place in self.programs[n].places[:at])

    def partition(self, link: BlockLink, n: int) -> int:
        """The partition of a warp of a block."""
        return self._partition(link.slot, n)

    def lapses_of(self, n: int, at: int) -> PlaceLapses:
        """The lapses of a place of a warp of the block."""
        return self._lapses(self.programs[n], at)


class GpuLedger:
    """The inequalities of theorem G with lapses, of one run.

    Args:
        gpu: the GPU, whose latencies leave no choice.
        random: goes one way, and chooses prices.
        without: what is left out of the proof on purpose, to see that the inequalities notice.
    """

    def __init__(self, gpu: GpuInstance, random: Random, without: str = "") -> None:
        self.gpu, self.without, self.kinds = gpu, without, Counter[str]()
        self.walking = WalkingGpu(gpu)
        self.programs, self.run = self.walking.programs, self.walking.walk(random)
        self.pools, self.machine = Pools(gpu.machine), gpu.machine
        units = frozenset().union(*(program.units for program in self.programs))
        self.prices = self.pools.prices(self.pools.gates(units), random)
        self.several = {gate: price for gate, price in self.prices.items() if self.pools.ports(gate) > 1}
        self.latencies = {unit.name: unit.latency.most for unit in self.machine.units}
        self.longest = max(self.pools.longest(unit) for unit in units)

    def inequalities(self) -> Iterator[tuple[str, Fraction | int]]:
        """Every inequality of the proof, as its name and the larger side less the smaller one."""
        run, spent = self.run, Counter[str]()
        before = [link for link in run.links if link.begin < run.last]
        slots = self.gpu.sms * self.gpu.resident
        covered = sum(min(link.end, run.last) - link.begin for link in before)
        assert covered == slots * run.last, "every slot is taken until the last block gets its room"
        for link in run.links:
            hits = Counter[str]()
            yield from self._of_link(link, hits)
            spent += hits
        own_time = (self.longest - 1) * len(before)
        yield "ports", own_time + sum(self._room_of_ports(link) for link in before) - spent["full before"]
        credit = sum(self._credit(n) for n in range(len(self.programs)))
        factor = 1 if self.without == "R" else self.gpu.resident
        yield "lapses", factor * credit * len(before) - spent["lapse before"]
        lines = {line.name: line.window for program in self.programs for line in program.lines}
        parts = 1 if self.without == "K" else min(self.machine.partitions, len(self.programs))
        late = slots * parts * sum(lines.values())
        own_misses = sum(self._misses(link, run.last) for link in before)
        yield "withheld", late + own_misses - spent["withheld before"]

    def _credit(self, n: int) -> int:
        lapses = [self.walking.lapses_of(n, at) for at in range(self.programs[n].end)]
        return sum(place.credit + place.fence for place in lapses)

    def _room_of_ports(self, link: BlockLink) -> Fraction:
        """What the instructions of a block pay for the chains of all slots before the last dispatch."""
        total, chain = Fraction(0), self._chain(link)
        for one in link.issued:
            if one.cycle < self.run.last:
                cycles, is_own = range(self.pools.longest(one.unit)), one.warp == chain[one.phase]
                every = sum(self.pools.charge(one.unit, k, self.prices) for k in cycles)
                later = sum(self.pools.charge(one.unit, k, self.several) for k in cycles[self.latencies[one.unit] :])
                total += (self.gpu.resident - is_own) * every + is_own * later
        return total

    def _chain(self, link: BlockLink) -> list[int]:
        """By phase the warp that comes last."""
        phases = range(1 + max(phase for phase, _ in link.came))
        there = [[n for phase, n in link.came if phase == number] for number in phases]
        return [max(crew, key=lambda n, k=k: link.came[k, n]) for k, crew in enumerate(there)]  # type: ignore[misc]

    def _misses(self, link: BlockLink, until: int) -> int:
        """The misses of the chain of a link, until a cycle."""
        begin, found = link.begin, 0
        for phase, y in enumerate(self._chain(link)):
            places = [at for at in range(self.programs[y].end) if self.walking.phase(y, at) == phase]
            found += sum(self.walking.lapses_of(y, at).misses for at in places) if begin < until else 0
            begin = link.came[phase, y]
        return found

    def _of_link(self, link: BlockLink, hits: Counter[str]) -> Iterator[tuple[str, Fraction | int]]:
        begin, alone = link.begin + link.delay, link.delay
        lapses_late = 0
        for phase, y in enumerate(self._chain(link)):
            own, part = (
                [one for one in link.issued if one.warp == y and one.phase == phase],
                self.walking.partition(link, y),
            )
            starts, ends, times = self._own_times(link, own, phase, begin, link.came[phase, y])
            alone += times[-1]
            units = [one.unit for one in own] + [""]
            for start, end, unit in zip(starts, ends, units, strict=True):
                for cycle in range(start, end):
                    kind = self._kind(link, y, part, cycle)
                    hits[kind] += 1
                    hits[f"{kind} before"] += cycle < self.run.last
                    lapses_late += kind == "lapse" and cycle >= link.begin + self.walking.expiry
                    if kind == "full":
                        yield "gate", self._is_full(link, part, unit, cycle) - 1
                        if cycle >= link.begin + self.longest - 1:
                            yield "charge", self._paid(link, y, phase, cycle) - 1
            begin = link.came[phase, y]
        self.kinds += Counter({kind: hits[kind] for kind in ("full", "lapse", "withheld")})
        counted = sum(hits[kind] for kind in ("full", "lapse", "withheld") if kind != self.without)
        yield "link", alone + counted - (link.end - link.begin)
        if not any(program.has_barriers for program in self.programs):
            yield "partition", self._room(link, part) - lapses_late

    def _room(self, link: BlockLink, part: int) -> int:
        """The credit of a partition that can be spent in a link, but in its first cycles: of blocks that are there."""
        total = 0
        for other in self.run.links:
            if other.sm == link.sm and other.begin < link.end and other.end > link.begin:
                for n, program in enumerate(self.programs):
                    lapses = [self.walking.lapses_of(n, at) for at in range(program.end)]
                    is_left_out = self.without == "own credit" and other is link
                    total += sum(place.fence for place in lapses)
                    if self.walking.partition(other, n) == part and not is_left_out:
                        total += sum(place.credit for place in lapses)
        return total

    def _kind(self, link: BlockLink, y: int, part: int, cycle: int) -> str:
        if {WHOLE_SM, part} & self.run.lapses[link.sm, cycle]:
            return "lapse"
        return "withheld" if (cycle, y) in link.withheld else "full"

    def _own_times(
        self, link: BlockLink, own: list[GpuIssue], phase: int, begin: int, came: int
    ) -> tuple[list[int], list[int], list[int]]:
        """B, the cycles of the issues, and T, for a warp in a phase, its end included."""
        earlier = [one for one in link.issued if one.phase < phase]
        starts, ends, alone = list[int](), [*(one.cycle for one in own), came], list[int]()
        for j in range(len(ends)):
            gates = self.pools.gates([own[j].unit]) if j < len(own) else []
            held = [need.most - 1 for one in earlier for need in self.pools.needs[one.unit] if need.pools in gates]
            first = max([0, *held])
            waits = [(i, sum(self.latencies[one.unit] for one in own[i:j])) for i in range(j)]
            waits += [
                (i, need.most)
                for i in range(j)
                for need in self.pools.needs[own[i].unit]
                if need.pools in gates and self.pools.ports(need.pools) == 1
            ]
            alone.append(max([first, *(alone[i] + cycles for i, cycles in waits)]))
            starts.append(max([begin + first, *(ends[i] + cycles for i, cycles in waits)]))
        return starts, ends, alone

    def _on_sm(self, link: BlockLink) -> Iterator[tuple[BlockLink, GpuIssue]]:
        for other in self.run.links:
            if other.sm == link.sm:
                for one in other.issued:
                    yield other, one

    def _is_full(self, link: BlockLink, part: int, unit: str, cycle: int) -> int:
        """1 if a gate of the class is full, else 0."""
        held = Counter[str]()
        for other, one in self._on_sm(link):
            for need in self.pools.needs[one.unit]:
                (name,) = need.pools
                is_here = name in self.pools.shared or self.walking.partition(other, one.warp) == part
                held[name] += is_here and one.cycle <= cycle < one.cycle + need.most
        gates = self.pools.gates([unit]) if unit else []
        return int(any(held[name] >= self.pools.capacity[name] for (name,) in gates))

    def _paid(self, link: BlockLink, y: int, phase: int, cycle: int) -> Fraction:
        """What all instructions of the SM pay for a hit of a chain; those from before the link pay nothing."""
        total, chain = Fraction(0), self._chain(link)
        for other, one in self._on_sm(link):
            k = cycle - one.cycle
            if k < 0 or one.cycle < link.begin:
                continue
            if other is link and one.warp == chain[one.phase]:
                is_own = one.phase == phase and k >= self.latencies[one.unit] and self.without != "own"
                total += self.pools.charge(one.unit, k, self.several) if is_own else 0
                continue
            elsewhere = self.walking.partition(other, one.warp) != self.walking.partition(link, y)
            total += self.pools.charge(one.unit, k, self.prices, shared=elsewhere)
        return total
