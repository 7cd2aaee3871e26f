"""The proofs of theorems 1S and 1' with lapses, and of lemma K, as programs that are run on random schedules.

A random schedule is made with the definition of a cycle (`semantics`) alone, and everything that the proofs speak of is
computed here from the machine, the path and the cycles of each warp. (docs/theory.md, 14 and 17.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor
from random import Random
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES, PlaceLapses, longest_windows
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, InstructionTiming
from makespan.model.schedule import WHOLE_SM
from makespan.model.simulate.semantics import (
    Disturbance,
    SmState,
    disturbances,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    settled_states,
    start_states,
)
from tests.lapsing import barriers_between

SLOT = "slot"
"""The name of the pool of issue slots."""

Names = tuple[str, ...]
"""The pools of a gate by name, sorted."""

Prices = dict[Names, dict[str, Fraction]]
"""By gate what a port of each of its pools costs."""


class PortNeed(NamedTuple):
    """A port of one of these pools, which an instruction holds for so many cycles."""

    pools: Names
    least: int
    most: int


class Pools:
    """The pools of a machine by name, and what the theorems say of their gates."""

    def __init__(self, machine: Machine) -> None:
        every = machine.ports
        self.capacity = {ports.name: ports.capacity for ports in every}
        self.shared = {ports.name for ports in every if ports.shared}
        slot = () if machine.issue_width is None else (PortNeed((SLOT,), 1, 1),)
        if machine.issue_width is not None:
            self.capacity[SLOT] = machine.issue_width
        self.needs: dict[str, tuple[PortNeed, ...]] = {
            unit.name: (
                *slot,
                PortNeed((unit.name,), unit.interval, unit.interval),
                *(PortNeed(tuple(sorted(use.resources)), use.least, use.most) for use in unit.uses),
            )
            for unit in machine.units
        }

    def gates(self, units: Iterable[str]) -> list[Names]:
        """The gates of these classes."""
        return list(dict.fromkeys(need.pools for unit in sorted(set(units)) for need in self.needs[unit]))

    def ports(self, gate: Names) -> int:
        """The ports of all pools of a gate."""
        return sum(self.capacity[name] for name in gate)

    def prices(self, gates: Iterable[Names], random: Random) -> Prices:
        """Prices of these gates: all pools alike, or one of them alone."""
        found: Prices = {}
        for gate in gates:
            found[gate] = dict.fromkeys(gate, Fraction(1, self.ports(gate)))
            if random.random() < 0.3:
                alone = random.choice(gate)
                found[gate] = dict.fromkeys(gate, Fraction(0)) | {alone: Fraction(1, self.capacity[alone])}
        return found

    def most_held(self, units: Iterable[str], names: Iterable[str], since: int = 0) -> int:
        """f of the text: the ports of these names that a warp of these classes can hold in one cycle."""
        wanted, chosen = set(names), sorted(set(units))
        last = max((need.most for unit in chosen for need in self.needs[unit]), default=0)
        return sum(
            max(
                sum(need.most > k and not wanted.isdisjoint(need.pools) for need in self.needs[unit]) for unit in chosen
            )
            for k in range(since, last)
        )

    def fillable(self, z: int, units: Sequence[Iterable[str]], parts: Sequence[int]) -> Iterator[Names]:
        """The gates of z that others, and z itself, can fill, from the classes and the partition of every warp."""
        for gate in self.gates(units[z]):
            shared = [name for name in gate if name in self.shared]
            ports = self.most_held(units[z], gate, 1) if self.ports(gate) > 1 else 0
            for warp, names in enumerate(units):
                if warp != z:
                    ports += self.most_held(names, gate if parts[warp] == parts[z] else shared)
            if ports >= self.ports(gate):
                yield gate

    def charge(self, unit: str, k: int, prices: Prices, *, shared: bool = False) -> Fraction:
        """u of the text, for the k-th cycle; `shared` asks of pools that all partitions share alone."""

        def paid(need: PortNeed, price: dict[str, Fraction]) -> Fraction:
            both = (price[name] for name in need.pools if name in price and (name in self.shared or not shared))
            return max(both, default=Fraction(0))

        held = [need for need in self.needs[unit] if need.most > k]
        return max(
            (sum((paid(need, price) for need in held), Fraction(0)) for price in prices.values()), default=Fraction(0)
        )

    def longest(self, unit: str) -> int:
        """The cycles after which an instruction of a class holds nothing."""
        return max(need.most for need in self.needs[unit])


class LapseStep(NamedTuple):
    """An instruction of a schedule, with its choices."""

    cycle: int
    warp: int
    place: int
    latency: int
    uses: tuple[tuple[int, int], ...]


class PassedBarrier(NamedTuple):
    """A barrier that a warp passes: its place, and the cycles in which the warp came there and went on."""

    place: int
    came: int
    passed: int


@dataclass
class LapsingRun:
    """A schedule, with all that happens in it.

    Args:
        instance: the instance.
        parts: the partition of each warp.
        steps: by warp its instructions.
        barriers: by warp the barriers that it passes.
        ends: by warp the cycle in which it has finished.
        lapses: by cycle the partitions that lapse.
        withheld: the cycles and warps that are withheld.
        makespan: cycles.
    """

    instance: Instance
    parts: tuple[int, ...]
    steps: list[list[LapseStep]] = field(default_factory=list)
    barriers: list[list[PassedBarrier]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    lapses: dict[int, tuple[int, ...]] = field(default_factory=dict)
    withheld: set[tuple[int, int]] = field(default_factory=set)
    makespan: int = 0

    def phase_of(self, step: LapseStep) -> int:
        """The number of barriers that its warp has passed before an instruction."""
        return sum(barrier.passed <= step.cycle for barrier in self.barriers[step.warp])

    def end_of_phase(self, warp: int, phase: int) -> int:
        """The cycle in which a warp comes to the barrier that ends a phase, or has finished."""
        barriers = self.barriers[warp]
        return barriers[phase].came if phase < len(barriers) else self.ends[warp]

    def chain(self) -> list[int]:
        """By phase the warp that keeps all others of its block waiting, the one that finishes last in the end."""
        blocks = self.instance.block_of_warp() if self.instance.has_barriers else (0,) * len(self.parts)
        z = max(range(len(self.parts)), key=lambda warp: self.ends[warp])
        crew, found = [warp for warp, block in enumerate(blocks) if block == blocks[z]], list[int]()
        for phase in range(len(self.barriers[z])):
            there = [warp for warp in crew if len(self.barriers[warp]) >= phase]
            found.append(max(there, key=lambda warp: self.end_of_phase(warp, phase)))
        return [*found, z]


def random_run(random: Random, instance: Instance) -> LapsingRun:
    """A random walk through the definition. Some keep one warp out where they can, some lapse as soon as they can."""
    programs, blocks = tuple(instance.programs()), range(instance.warps)
    state = random.choice(list(start_states(instance)))
    run = LapsingRun(instance, state.partitions or (0,) * instance.warps)
    run.steps, run.barriers, run.ends = [[] for _ in blocks], [[] for _ in blocks], [-1 for _ in blocks]
    came = dict[int, int]()
    victim, spite, haste = random.choice([None, *blocks]), random.random(), random.random()

    def pass_barriers(warp: int, begins: Sequence[int], now: int, after: SmState) -> None:
        for place in barriers_between(programs[warp], begins, after.places[warp]):
            run.barriers[warp].append(PassedBarrier(place, came.pop(warp, now), now))
        at = after.places[warp]
        if after.lapses is not None and after.lapses.arrived[warp] and programs[warp].places[at].unit == BARRIER:
            came.setdefault(warp, now)
        has_ended = at == programs[warp].end and not after.waits[warp] and not (after.pending and after.pending[warp])
        if has_ended and run.ends[warp] < 0:
            run.ends[warp] = now

    def disturbed(options: list[Disturbance]) -> Disturbance:
        if random.random() < spite and (bad := [each for each in options if victim in each.kept_out]):
            return random.choice(bad)
        return random.choice(
            [each for each in options if each.lapsing or each.withheld or random.random() > haste] or options
        )

    for warp in blocks:
        pass_barriers(warp, programs[warp].starts, 0, state)
    while not has_finished(instance, state):
        cycle = disturbed(list(disturbances(instance, state)))
        sets = list(issue_sets(instance, cycle.state, cycle.kept_out))
        taken = random.choice(sets)
        if random.random() < spite:
            taken = random.choice([each for each in sets if victim not in each] or sets)
        moves = [random.choice(list(issue_outcomes(instance, state, warp, chosen))) for warp, chosen in taken.items()]
        after = random.choice(list(settled_states(instance, next_state(instance, cycle.state, moves, cycle.withheld))))
        if cycle.lapsing:
            run.lapses[run.makespan] = cycle.lapsing
        run.withheld |= {(run.makespan, warp) for warp, _ in cycle.withheld}
        begins = dict(enumerate(state.places))
        for move in moves:
            run.steps[move.warp].append(
                LapseStep(run.makespan, move.warp, state.places[move.warp], move.latency, move.uses)
            )
            begins[move.warp] = move.target
        run.makespan += 1
        for warp in blocks:
            pass_barriers(warp, (begins[warp],), run.makespan, after)
        state = after
    return run


# --- theorems 1S and 1' -------------------------------------------------------------------------------------------


@dataclass
class PhaseLedger:
    """A warp in one phase: what it waits for, and the cycles in which it waits for nothing of its own.

    Args:
        starts: when each of its instructions in the phase could be issued first, in the schedule (`B` of the text).
        alone: the same for the warp alone, from the beginning of the phase on (`T`).
        issued: the cycles in which they are issued.
        units: their classes; "" for the barrier or the end that closes the phase.
    """

    starts: list[int]
    alone: list[int]
    issued: list[int]
    units: list[str]


@dataclass
class LapseLedger:
    """The inequalities of theorem 1S or 1' with lapses, of one schedule.

    Args:
        run: the schedule.
        random: chooses prices.
        without: what is left out of the proof on purpose, to see that the inequalities notice.
    """

    run: LapsingRun
    random: Random
    without: str = ""
    kinds: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.instance, self.parts = self.run.instance, self.run.parts
        self.machine, self.programs = self.instance.machine, tuple(self.instance.programs())
        self.pools = Pools(self.machine)
        self.latencies = {unit.name: unit.latency.most for unit in self.machine.units}
        self.windows = dict(longest_windows(line for program in self.programs for line in program.lines))
        has_barriers = self.instance.has_barriers
        self.blocks = self.instance.block_of_warp() if has_barriers else tuple(0 for _ in self.programs)
        self.units = [program.units - {BARRIER} for program in self.programs]
        # the prices are chosen once, so that all hits are paid at the same
        self.prices = self.pools.prices(self.pools.gates(frozenset().union(*self.units)), self.random)
        self.counting = {z: self._counting(z) for z in (None, *range(len(self.programs)))}

    @cached_property
    def held(self) -> dict[int, Counter[tuple[str, int | None]]]:
        """By cycle the ports that are held, by pool and, where it has one, partition."""
        found = dict[int, Counter[tuple[str, int | None]]]()
        units = {unit.name: unit for unit in self.machine.units}
        for step in (step for steps in self.run.steps for step in steps):
            unit = units[self._unit(step)]
            taken = {unit.name: unit.interval, SLOT: 1}
            taken |= {use.resources[which]: held for use, (which, held) in zip(unit.uses, step.uses, strict=True)}
            for name, cycles in taken.items():
                pool = name, None if name in self.pools.shared else self.parts[step.warp]
                for cycle in range(step.cycle, step.cycle + cycles):
                    found.setdefault(cycle, Counter())[pool] += 1
        return found

    def _unit(self, step: LapseStep) -> str:
        return self.programs[step.warp].places[step.place].unit

    def _timing(self, warp: int, place: int) -> InstructionTiming:
        """Stall and latency at most; a warp that blocks has no tokens, and its latency for a stall."""
        program = self.programs[warp]
        unit = program.places[place].unit
        if unit == BARRIER:
            return program.timings[place] if program.timings else InstructionTiming(0, (0, 0))
        return program.timings[place] if program.timings else InstructionTiming(self.latencies[unit], (1, 1))

    def _lapses(self, warp: int, place: int) -> PlaceLapses:
        program = self.programs[warp]
        return program.lapses[place] if program.lapses else NO_LAPSES

    def _visited(self, warp: int, phase: int) -> list[int]:
        """The places of a warp in a phase, the barrier that ends it included."""
        places = [step.place for step in self.run.steps[warp] if self.run.phase_of(step) == phase]
        return places + [barrier.place for barrier in self.run.barriers[warp][phase : phase + 1]]

    def inequalities(self) -> Iterator[tuple[str, Fraction | int]]:
        """Every inequality of the proof, as its name and the larger side less the smaller one."""
        if not self.instance.has_barriers:  # then the proof holds for every warp, up to its end
            for z in range(self.instance.warps):
                yield from self._of_chain([z])
            return
        yield from self._of_chain(self.run.chain())

    def _of_chain(self, chain: list[int]) -> Iterator[tuple[str, Fraction | int]]:
        self.spent, begin, room = Counter[str](), 0, Fraction(0)
        crew = [warp for warp in range(len(self.parts)) if self.blocks[warp] == self.blocks[chain[0]]]
        others = [step for w in range(len(self.parts)) if w not in crew for step in self.run.steps[w]]
        for phase, y in enumerate(chain):
            end, passed = self.run.end_of_phase(y, phase), [self.run.barriers[w][phase : phase + 1] for w in crew]
            assert {barrier.passed for barriers in passed for barrier in barriers} <= {end}
            issued = [step for w in crew for step in self.run.steps[w] if self.run.phase_of(step) == phase]
            total = sum((self._total(y, step) for step in issued), Fraction(0))
            before = self.spent["full"]
            yield from self._of_phase(y, phase, begin, [*issued, *others])
            if self.instance.blocks == 1 or not self.instance.has_barriers:
                yield "floor", floor(total) - (self.spent["full"] - before)
            room, begin = room + total, end
        if self.instance.has_barriers:
            assert begin == self.run.makespan
        if others:
            yield "floor", floor(room + sum(self._total(None, step) for step in others)) - self.spent["full"]
        yield "credits", self._credits(chain) - self.spent["lapse"]
        yield "late", self._late(chain) - self.spent["withheld"]
        self.kinds += self.spent

    def _of_phase(
        self, y: int, phase: int, begin: int, payers: list[LapseStep]
    ) -> Iterator[tuple[str, Fraction | int]]:
        """Lemmas D and G for a warp in a phase; `payers` are the instructions that may hold what it waits for."""
        hits = 0
        ledger = self._own_times(y, phase, begin)
        for start, alone, issued, unit in zip(ledger.starts, ledger.alone, ledger.issued, ledger.units, strict=True):
            for cycle in range(start, issued):
                kind = self._kind(y, cycle)
                self.spent[kind] += 1
                hits += kind != self.without
                if kind == "full":
                    yield "gate", self._is_full(y, unit, cycle) - 1
                    yield "charge", sum(self._paid(y, step, cycle) for step in payers) - 1
            yield "issue", begin + alone + hits - issued

    def _kind(self, y: int, cycle: int) -> str:
        lapsing = self.run.lapses.get(cycle, ())
        if {WHOLE_SM, self.parts[y]} & set(lapsing) or (self.without == "elsewhere" and lapsing):
            return "lapse"
        return "withheld" if (cycle, y) in self.run.withheld else "full"

    def _credits(self, chain: list[int]) -> int:
        """The credit that the paths give to the partition of z, or to all where the chain may change it."""
        total = 0
        for warp, phase in ((w, k) for w, passed in enumerate(self.run.barriers) for k in range(len(passed) + 1)):
            lapses = [self._lapses(warp, place) for place in self._visited(warp, phase)]
            total += 0 if self.without == "fences" else sum(place.fence for place in lapses)
            if self.parts[warp] == self.parts[chain[0]] or (
                self.instance.has_barriers and self.without != "one partition"
            ):
                total += sum(place.credit for place in lapses)
        return total

    def _late(self, chain: list[int]) -> int:
        """The windows of the lines that the chain needs, in each of its partitions, and its misses."""
        needed, misses = set[tuple[int, str]](), 0
        for phase, y in enumerate(chain):
            places = self._visited(y, phase)
            if self.without == "misses at barriers":
                places = [place for place in places if self.programs[y].places[place].unit != BARRIER]
            misses += sum(self._lapses(y, place).misses for place in places)
            part = self.parts[chain[0]] if self.without == "one window" else self.parts[y]
            needed |= {(part, line.name) for place in self._visited(y, phase) for line in self._lapses(y, place).lines}
        return misses + sum(self.windows[name] for _, name in needed)

    def _own_times(self, y: int, phase: int, begin: int) -> PhaseLedger:
        """What y waits for in a phase, by the equations as they stand."""
        steps = [step for step in self.run.steps[y] if self.run.phase_of(step) == phase]
        names, due = [self._unit(step) for step in steps], self._pending(y, phase)
        times = [self._timing(y, step.place) for step in steps]
        issued = [step.cycle for step in steps]
        closing = self.run.barriers[y][phase : phase + 1]
        if closing:
            times.append(self._timing(y, closing[0].place))
        else:
            times.append(InstructionTiming(0, (0, 0), (), tuple({*due, *(t for one in times for t in one.sets)})))
        issued.append(self.run.end_of_phase(y, phase))
        names.append("")
        ledger = PhaseLedger([], [], issued, names)
        for j, name in enumerate(names):
            gates = self.pools.gates([name]) if name else []
            fixed = [0]  # cycles from the beginning of the phase
            fixed += [due.get(token, 0) for token in times[j].awaits]
            fixed += [self._occupied(y, phase, gate) for gate in gates]
            waits = list[tuple[int, int]]()  # the number of an instruction, and cycles from its issue
            for i in range(j):
                waits.append((i, sum(timing.stall for timing in times[i:j])))
                if {*times[i].sets} & {*times[j].awaits} and self.without != "tokens":
                    waits.append((i, times[i].latency[1]))
                for need in self.pools.needs[names[i]]:
                    single = [g for g in gates if self.pools.ports(g) == 1 and g[0] in need.pools]
                    waits += [(i, need.most) for _ in single if self.without != "own port"]
            ledger.alone.append(max([*fixed, *(ledger.alone[i] + cycles for i, cycles in waits)]))
            ledger.starts.append(max([*(begin + c for c in fixed), *(issued[i] + cycles for i, cycles in waits)]))
        return ledger

    def _pending(self, y: int, phase: int) -> dict[int, int]:
        """For how long tokens can be pending at the beginning of a phase (`ρ`), along the path of y."""
        left: dict[int, int] = {}
        if self.without == "pending":
            return left
        for before in range(phase):
            for place in self._visited(y, before):
                timing = self._timing(y, place)
                left = {token: c - timing.stall for token, c in left.items() if token not in timing.awaits}
                for token in timing.sets:
                    left[token] = max(timing.latency[1] - timing.stall, left.get(token, 0))
                left = {token: cycles for token, cycles in left.items() if cycles > 0}
        return left

    def _occupied(self, y: int, phase: int, gate: Names) -> int:
        """For how long instructions of earlier phases can hold ports of a gate (`c_k`)."""
        longest = 0
        for warp, steps in enumerate(self.run.steps):
            if self.blocks[warp] == self.blocks[y] and self.without != "occupied":
                for step in (step for step in steps if self.run.phase_of(step) < phase):
                    stall = self._timing(warp, step.place).stall if self.programs[warp].timings else 1
                    held = (need for need in self.pools.needs[self._unit(step)] if {*need.pools} & {*gate})
                    longest = max([longest, *(need.most - stall for need in held)])
        return longest

    def _counting(self, z: int | None) -> Prices:
        """Prices of the gates that others, and z itself, can fill; of all gates if z is None."""
        if z is None:
            return self.prices
        return {gate: self.prices[gate] for gate in self.pools.fillable(z, self.units, self.parts)}

    def _is_full(self, y: int, unit: str, cycle: int) -> int:
        """1 if a gate of the class that counts is full, else 0."""
        held = self.held.get(cycle, Counter())

        def is_full(name: str) -> bool:
            pool = name, None if name in self.pools.shared else self.parts[y]
            return held[pool] >= self.pools.capacity[name]

        gates = self.pools.gates([unit]) if unit else []
        return int(any(gate in self.counting[y] and all(map(is_full, gate)) for gate in gates))

    def _paid(self, y: int, step: LapseStep, cycle: int) -> Fraction:
        """What an instruction pays for a hit in a cycle."""
        k = cycle - step.cycle
        return Fraction(0) if k < 0 else self._charge(y, step, k)

    def _charge(self, y: int | None, step: LapseStep, k: int) -> Fraction:
        """What an instruction pays in its k-th cycle for a hit of y; if y is None, of any warp of its partition."""
        unit, prices = self._unit(step), self.counting[y]
        if y is None:
            return self.pools.charge(unit, k, prices)
        if step.warp == y:
            several = {gate: price for gate, price in prices.items() if self.pools.ports(gate) > 1}
            stall = self._timing(y, step.place).stall
            return Fraction(0) if k < stall or self.without == "own" else self.pools.charge(unit, k, several)
        elsewhere = self.parts[step.warp] != self.parts[y]
        if elsewhere and self.without == "shared":
            return Fraction(0)
        return self.pools.charge(unit, k, prices, shared=elsewhere)

    def _total(self, y: int | None, step: LapseStep) -> Fraction:
        """What an instruction may pay in all."""
        cycles = range(self.pools.longest(self._unit(step)))
        return sum((self._charge(y, step, k) for k in cycles), Fraction(0))
