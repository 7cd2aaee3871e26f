"""A virtual multiprocessor: every run is a schedule that the simulator makes of a machine that is known.

What a compiler counts (how long a reader waits) is a stall; what a unit holds is the machine. A planted scheduler idles
in cycles in which a warp is ready.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, pairwise

from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.hardware.sm_programs import (
    ALL,
    ALL_WARPS,
    BANK,
    CHAIN,
    CHASE,
    CLOCK,
    CONFLICTS,
    LEVELS,
    LOG,
    ONE,
    ONE_WARPS,
    PAIR,
    PAIRED,
    SINGLE,
    STREAM,
    chains,
)
from makespan.model.instance import Instance
from makespan.model.machine import Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import Choices, run
from tests.estimates.microbench.virtual_lapses import VirtualLapses

SHORT = (8, 24)
"""Shorter chains and streams than those of the program: the simulator needs no clock that is read."""
REMARKS = {"gpu": "virtual SM", "driver": "none", "clocks": "cycles of the simulator", "virtual": "yes"}


@dataclass(frozen=True, slots=True)
class VirtualSm:
    """What is true of it.

    Args:
        unit_of: the class of each operation.
        latency: of an operation whose reader is of the same kind.
        later: more cycles if (writer, reader) are these two.
        hold: cycles of the memory unit for one word of a bank, and more for each further one.
        partition: to which one a warp belongs.
        clock_stall: cycles between two readings of the clock of a warp alone.
        noise: every time is up to so many cycles longer.
        lapses: what instructions cost besides their ports; None for what has no rows in the samples.
        idles: in how many of a thousand cycles in which the scheduler could issue it does not.
    """

    units: tuple[UnitClass, ...]
    unit_of: Mapping[str, str]
    latency: Mapping[str, int]
    later: Mapping[tuple[str, str], int] = field(default_factory=dict)
    hold: tuple[int, int] = (1, 1)
    walks: tuple[int, int, int] = (30, 200, 400)
    partitions: int = 4
    partition: tuple[int, ...] = (0, 1, 2, 3) * 2
    clock_stall: int = 2
    noise: int = 0
    idles: int = 0
    seed: int = 0
    lapses: VirtualLapses | None = None

    def samples(self) -> Iterator[MicrobenchSample]:
        """What the program prints."""
        clock = random.Random(self.seed)
        planted = [] if self.lapses is None else self.lapses.samples()
        for what, counts, time in chain(self._runs(), planted):
            is_log = what[0] == LOG
            yield MicrobenchSample(what, counts, time if is_log else time + clock.randint(0, self.noise))  # type: ignore[arg-type]
        for policy in ("lrr", "gto", "random"):
            yield from self._log(policy, clock)

    def _runs(self) -> Iterator[tuple[tuple[str, str, str], tuple[int, int], int]]:
        for name, reader, _ in chains(self.latency):
            for count in SHORT:
                letters = [name if step % 2 == 0 else reader for step in range(count + 1)]
                stalls = [self._wait(*both) for both in pairwise(letters)]
                yield (CHAIN, name, reader), (1, count), self._chain(letters, stalls)
        for words in CONFLICTS:
            for count in SHORT:
                wait = self.latency["shared"] + (words - 1) * self.hold[1]
                yield (CHAIN, "shared", str(words)), (1, count), self._chain(["shared"] * (count + 1), [wait] * count)
        for name in self.latency:
            for where, every in ((ONE, ONE_WARPS), (ALL, ALL_WARPS)) if name in SINGLE else ():
                for warps in every:
                    for count in SHORT:
                        yield (STREAM, name, where), (warps, count), self._stream(name, count, warps, where)
        for pair in combinations(range(PAIRED), 2):
            same = self.partition[pair[0]] == self.partition[pair[1]]
            time = self._stream("fp32", max(SHORT), 2, ONE if same else ALL)
            yield (PAIR, "fp32", "{}-{}".format(*pair)), (2, max(SHORT)), time
        for level, latency in zip(LEVELS, self.walks, strict=True):
            yield from (((CHASE, level, "-"), (1, steps), 90 + steps * latency) for steps in (256, 1024))
        for words in CONFLICTS:
            for count in SHORT:
                yield (BANK, "shared", str(words)), (8, count), self._bank(words, count)

    def _wait(self, writer: str, reader: str) -> int:
        return self.latency[writer] + self.later.get((writer, reader), 0)

    def _bank(self, words: int, count: int) -> int:
        """Time of loads by two warps of each partition, which hold the memory unit of all."""
        held = self.hold[0] + (words - 1) * self.hold[1]
        unit = UnitClass("L", 1, uses=(Use(("memory",), held, held),))
        machine = Machine(
            "m",
            (unit,),
            1,
            partitions=self.partitions,
            assignment=WarpAssignment.MODULO,
            resources=(PortResource("memory", 1, shared=True),),
        )
        return _time(machine, "L" * count, 8)

    def _stream(self, name: str, count: int, warps: int, where: str) -> int:
        return _time(self._machine(1 if where == ONE else self.partitions), self.unit_of[name] * count, warps)

    def _machine(self, partitions: int) -> Machine:
        return Machine("m", self.units, 1, partitions=partitions, assignment=WarpAssignment.MODULO)

    def _chain(self, names: list[str], stalls: list[int]) -> int:
        letters = "".join(self.unit_of[name] for name in names)
        return _last(_schedule(self._machine(1), letters, 1, (*stalls, 1)))

    def _log(self, policy: str, clock: random.Random) -> Iterator[MicrobenchSample]:
        """When each warp of one partition read the clock; a scheduler that idles delays all that comes after."""
        machine = Machine("m", (UnitClass("K", 1),), 1)
        for warps in range(1, 5):
            schedule = _schedule(machine, "K" * 12, warps, (self.clock_stall,) * 12, policy)
            late, steps = 0, [0] * warps
            for cycle, issued in enumerate(schedule.cycles):
                late += bool(issued) and any(steps) and warps > 1 and clock.randrange(1000) < self.idles
                for warp in issued:
                    steps[warp] += 1
                    yield MicrobenchSample((LOG, CLOCK, f"{policy}.{warp}"), (warps, steps[warp]), cycle + late + 1)  # type: ignore[arg-type]


@cache
def _time(machine: Machine, letters: str, warps: int) -> int:
    return _last(_schedule(machine, letters, warps, (1,) * len(letters)))


def _last(schedule: Schedule) -> int:
    """The cycle of the last issue."""
    return max(cycle for cycle, issued in enumerate(schedule.cycles) if issued) + 1


def _schedule(machine: Machine, letters: str, warps: int, stalls: tuple[int, ...], policy: str = "lrr") -> Schedule:
    places = tuple(ProgramPlace(letter, (at + 1,)) for at, letter in enumerate(letters))
    program = Program(places, (0,), timings=tuple(InstructionTiming(stall) for stall in stalls))
    return run(Instance.of(program, warps, machine), policy, Choices())
