"""The proof of theorem 1Q as a program: its inequalities in every cycle of a random schedule with queues.

Schedules are walks through the states of `tests.queue_oracle`, which knows the rules of docs/model.md alone.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from random import Random
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES, PlaceLapses
from makespan.model.program import InstructionTiming
from tests.bounds.lapse_ledger import SLOT, Names, Pools, Prices
from tests.queue_oracle import QueueOracle, QueueState


class WatchedOracle(QueueOracle):
    """The oracle, which notes the ports that are held in a cycle beside each state that may follow."""

    def __init__(self, instance: Instance, partitions: tuple[int, ...]) -> None:
        super().__init__(instance, partitions)
        self.held: list[list[int]] = []

    def _moved(self, state: QueueState, held: list[list[int]], issuing: list[int]) -> Iterator[QueueState]:
        for after in super()._moved(state, held, issuing):
            self.held.append([len(ports) for ports in held])
            yield after


@dataclass
class QueuedStep:
    """An instruction: its warp, its place, and the cycles of its issue and of its service."""

    warp: int
    place: int
    issued: int
    served: int = -1


class QueuedCycle(NamedTuple):
    """What happens in a cycle.

    Args:
        held: the ports that are held, by pool.
        there: by partition and queue whether something is in the queue.
        lapsing: the partitions that lapse.
        withheld: the warps that are withheld.
    """

    held: list[int]
    there: tuple[tuple[bool, ...], ...]
    lapsing: set[int]
    withheld: set[int]


@dataclass
class QueuedRun:
    """A schedule with queues: by warp its instructions and its end, and all its cycles."""

    instance: Instance
    parts: tuple[int, ...]
    steps: list[list[QueuedStep]]
    ends: list[int]
    cycles: list[QueuedCycle] = field(default_factory=list)


def random_queued_run(random: Random, instance: Instance) -> QueuedRun:
    """A random walk through the states; many keep one warp out where they can."""
    parts = random.choice(list(instance.assignments()))
    oracle, warps = WatchedOracle(instance, parts), range(instance.warps)
    state = random.choice(oracle.start_states())
    run = QueuedRun(instance, parts, [[] for _ in warps], [-1 for _ in warps])
    victim, spite = random.choice(warps), random.random()
    while True:
        for warp in warps:
            if run.ends[warp] < 0 and oracle.has_ended(state, warp):
                run.ends[warp] = len(run.cycles)
        if all(end >= 0 for end in run.ends):
            return run
        oracle.held = []
        every = list(enumerate(oracle.next_states(state)))
        held = oracle.held
        waiting = [each for each in every if each[1].places[victim] == state.places[victim]]
        chosen, after = random.choice(waiting if waiting and random.random() < spite else every)
        issuing = [warp for warp in warps if after.places[warp] != state.places[warp]]
        for warp in issuing:
            run.steps[warp].append(QueuedStep(warp, state.places[warp], len(run.cycles)))
        left = {who for part in after.queues for queue in part for who in queue}
        there = [[bool(queue) for queue in part] for part in state.queues]
        for step in (step for steps in run.steps for step in steps if step.served < 0):
            unit = instance_unit(oracle, step)
            if unit in oracle.queue_of:
                there[parts[step.warp]][oracle.queue_of[unit]] = True
            if (step.warp, step.place) not in left:
                step.served = len(run.cycles)
        given = list(state.credit)
        for warp in issuing:
            given[parts[warp]] += lapses_of(oracle, warp, after.places[warp]).credit
        run.cycles.append(
            QueuedCycle(
                held[chosen],
                tuple(tuple(part) for part in there),
                {part for part, credit in enumerate(given) if credit > after.credit[part]},
                {warp for warp in warps if warp not in issuing and after.misses[warp] < state.misses[warp]},
            )
        )
        state = after


def instance_unit(oracle: QueueOracle, step: QueuedStep) -> str:
    return oracle.programs[step.warp].places[step.place].unit


def lapses_of(oracle: QueueOracle, warp: int, place: int) -> PlaceLapses:
    program = oracle.programs[warp]
    return program.lapses[place] if program.lapses and place < program.end else NO_LAPSES


class QueueLedger:
    """The inequalities of theorem 1Q, for each warp of one schedule.

    Args:
        run: the schedule.
        random: chooses prices.
        without: what is left out of the proof on purpose, to see that the inequalities notice.
    """

    def __init__(self, run: QueuedRun, random: Random, without: str = "") -> None:
        self.run, self.without, self.kinds = run, without, Counter[str]()
        self.instance, self.parts, self.machine = run.instance, run.parts, run.instance.machine
        self.programs, self.pools = tuple(run.instance.programs()), Pools(run.instance.machine)
        self.latencies = {unit.name: unit.latency.most for unit in self.machine.units}
        self.queue_of = {unit: n for n, queue in enumerate(self.machine.queues) for unit in queue.units}
        self.units = [program.units for program in self.programs]
        every = self.pools.gates(frozenset().union(*self.units))
        self.prices = self.pools.prices(every, random)
        queued = frozenset().union(*self.units) & self.queue_of.keys()
        behind = {name for unit in queued for need in self.pools.needs[unit] for name in need.pools} - {SLOT}
        self.behind = [gate for gate in every if behind.intersection(gate)]

    def _unit(self, step: QueuedStep) -> str:
        return self.programs[step.warp].places[step.place].unit

    def _timing(self, step: QueuedStep) -> InstructionTiming:
        program = self.programs[step.warp]
        if program.timings:
            return program.timings[step.place]
        return InstructionTiming(self.latencies[self._unit(step)], (1, 1))

    def inequalities(self) -> Iterator[tuple[str, Fraction | int]]:
        """Every inequality of the proof, as its name and the larger side less the smaller one."""
        for z in range(self.instance.warps):
            yield from self._of_warp(z)

    def _of_warp(self, z: int) -> Iterator[tuple[str, Fraction | int]]:
        steps, counting = self.run.steps[z], self._counting(z)
        alone, end_alone = self._alone(steps)
        hits = dict[int, str]()
        for j in range(len(steps)):
            for cycle, kind in self._hits(steps, j):
                # of several instructions the one in a queue says most
                hits[cycle] = "queue" if "queue" in (kind, hits.get(cycle)) else kind
        for cycle, kind in hits.items():
            if self.parts[z] in self.run.cycles[cycle].lapsing:
                hits[cycle] = "lapse"
            elif kind != "queue" and z in self.run.cycles[cycle].withheld:
                hits[cycle] = "withheld"
        spent = Counter(hits.values())
        self.kinds += spent
        counted = [cycle for cycle, kind in hits.items() if kind != self.without]
        for step, time in zip(steps, alone, strict=True):
            yield "issue", time + sum(cycle < step.issued for cycle in counted) - step.issued
            if step.served >= 0:
                yield "service", time + sum(cycle < step.served for cycle in counted) - step.served
        end = self.run.ends[z]
        yield "end", end_alone + sum(cycle < end for cycle in counted) - end
        payers = [step for warp in self.run.steps for step in warp]
        for cycle, kind in hits.items():
            if kind in ("queue", "left out"):
                yield "full", self._is_full(z, cycle, counting) - 1
                yield "charge", sum(self._paid(z, step, cycle, counting) for step in payers) - 1
        total = sum(
            self._charge(z, step, k, counting) for step in payers for k in range(self.pools.longest(self._unit(step)))
        )
        yield "floor", floor(total) - spent["queue"] - spent["left out"]
        credit = sum(
            self.programs[step.warp].lapses[step.place].credit
            for step in payers
            if self.programs[step.warp].lapses and self.parts[step.warp] == self.parts[z]
        )
        yield "credits", credit - spent["lapse"]
        lapses = self.programs[z].lapses
        yield "misses", sum(lapses[step.place].misses for step in steps if lapses) - spent["withheld"]

    def _singles(self, later: QueuedStep, earlier: QueuedStep) -> list[int]:
        """For how long an instruction may hold each single port that a later one needs."""
        gates = [gate for gate in self.pools.gates([self._unit(later)]) if self.pools.ports(gate) == 1]
        needs = self.pools.needs[self._unit(earlier)]
        return [need.most for gate in gates for need in needs if gate[0] in need.pools]

    def _alone(self, steps: list[QueuedStep]) -> tuple[list[int], int]:
        """T of section 14: the time of each instruction of a warp that is alone and has no queues, and of its end."""
        times, alone = [self._timing(step) for step in steps], list[int]()
        for j, step in enumerate(steps):
            waits = [0]
            for i in range(j):
                waits.append(alone[i] + sum(timing.stall for timing in times[i:j]))
                if {*times[i].sets} & {*times[j].awaits}:
                    waits.append(alone[i] + times[i].latency[1])
                waits += [alone[i] + cycles for cycles in self._singles(step, steps[i])]
            alone.append(max(waits))
        results = (alone[i] + one.latency[1] for i, one in enumerate(times) if one.sets)
        return alone, max([alone[-1] + times[-1].stall, *results])

    def _hits(self, steps: list[QueuedStep], j: int) -> Iterator[tuple[int, str]]:
        """The hits of the j-th instruction of a warp, and whether it is in a queue or left out."""
        step, now = steps[j], len(self.run.cycles)
        times, ahead = [self._timing(one) for one in steps], bool(self.programs[step.warp].timings)
        begin, served = 0, step.served if step.served >= 0 else now
        for i in range(j):
            base = steps[i].issued if ahead else steps[i].served
            begin = max(begin, base + sum(timing.stall for timing in times[i:j]))
            if {*times[i].sets} & {*times[j].awaits}:
                begin = max(begin, steps[i].served + times[i].latency[1])
        queue = self.queue_of.get(self._unit(step))
        before = [one for one in steps[:j] if self.queue_of.get(self._unit(one)) == queue]
        for cycle in range(min(begin, step.issued), served):
            is_own = any(
                0 <= one.served <= cycle < one.served + most for one in steps[:j] for most in self._singles(step, one)
            )
            if is_own and self.without != "own port":
                continue
            if cycle < step.issued:
                yield cycle, "left out"
            elif all(0 <= one.served < cycle for one in before) or self.without == "order":
                yield cycle, "queue"

    def _counting(self, z: int) -> Prices:
        """Prices of the gates that count for z: those behind queues, and those of section 14."""
        found = [] if self.without == "behind" else list(self.behind)
        found += self.pools.fillable(z, self.units, self.parts)
        return {gate: self.prices[gate] for gate in found}

    def _is_full(self, z: int, cycle: int, counting: Prices) -> int:
        """1 if a gate that counts is full of what is served by then, or a queue of the partition serves, else 0."""
        part, numbers = self.parts[z], self.machine.number_of_pool[self.parts[z]]
        own = [step for warp in self.run.steps for step in warp if self.parts[step.warp] == part]
        if self.without != "serving" and any(
            step.served == cycle and self._unit(step) in self.queue_of for step in own
        ):
            return 1

        def is_full(name: str) -> bool:
            if name == SLOT:
                return sum(step.issued == step.served == cycle for step in own) >= self.pools.capacity[name]
            return self.run.cycles[cycle].held[numbers[name]] >= self.pools.capacity[name]

        return int(any(all(map(is_full, gate)) for gate in counting))

    def _paid(self, z: int, step: QueuedStep, cycle: int, counting: Prices) -> Fraction:
        begin = step.issued if self.without == "from issue" else step.served
        return Fraction(0) if not 0 <= begin <= cycle else self._charge(z, step, cycle - begin, counting)

    def _charge(self, z: int, step: QueuedStep, k: int, counting: Prices) -> Fraction:
        """What an instruction pays in the k-th cycle from its service on."""
        unit, prices = self._unit(step), counting
        if step.warp == z:
            is_late = k >= self._timing(step).stall
            behind: list[Names] = [] if self.without == "own" else self.behind
            several = [gate for gate in counting if self.pools.ports(gate) > 1 and is_late]
            prices = {gate: counting[gate] for gate in counting if gate in behind or gate in several}
        elsewhere = self.parts[step.warp] != self.parts[z]
        paid = self.pools.charge(unit, k, prices, shared=elsewhere)
        serves = not k and unit in self.queue_of and not elsewhere and self.without != "served"
        return max(paid, Fraction(1)) if serves else paid
