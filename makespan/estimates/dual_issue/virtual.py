"""A virtual SM as a device: it executes programs cycle by cycle, hides its `Truth`, and answers with noise.

Schedulers are greedy; pairs of them share lanes; banks, operand cache and control codes delay.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from makespan.estimates.dual_issue.arbiter import Arbiter, Bubbles
from makespan.estimates.dual_issue.device import (
    IssueInstruction,
    IssueProgram,
    IssueRun,
    Opcode,
    SmDescription,
    check_run,
)
from makespan.estimates.dual_issue.registers import ZERO
from makespan.estimates.dual_issue.truth import Conflicts, Truth, blocks, closed_form_cycles
from makespan.host.errors import InputError

NAME = "vgk110"


@dataclass(slots=True)
class VirtualSm:
    """A virtual SM; equal seeds and equal sequences of runs give equal measurements.

    Args:
        formula: whether to use the closed form where there is one; both agree within half a percent.
    """

    _truth: Truth = field(default_factory=Truth)
    seed: int = 0
    formula: bool = True
    _random: random.Random = field(init=False, repr=False)
    _noiseless: Truth = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._noiseless = replace(self._truth, noise=0.0)
        self._random = random.Random(self.seed)  # noqa: S311 - noise, not a secret

    @property
    def sm(self) -> SmDescription:
        """Return the description of the SM."""
        return self._truth.sm

    def run(self, program: IssueProgram, warps: int, loops: int) -> IssueRun:
        """Let `warps` warps execute the program `loops` times each."""
        check_run(self.sm, program, warps, loops)
        exact = self._exact(program, warps, loops)
        # one for all times of a run
        factor = max(1 + self._random.gauss(0, self._truth.noise), 0.0) if self._truth.noise else 1.0
        return IssueRun(exact.cycles * factor, tuple(sample * factor for sample in exact.clock_samples))

    def _exact(self, program: IssueProgram, warps: int, loops: int) -> IssueRun:
        cycles = closed_form_cycles(self._truth, program, warps, loops) if self.formula else None
        return simulate(self._noiseless, program, warps, loops) if cycles is None else IssueRun(cycles, ())


def parse_device(text: str) -> VirtualSm:
    """Return the device that `vgk110[:option=value,...]` names.

    Raises:
        InputError: another device, an unknown option, or a value that is none.
    """
    name, _, rest = text.partition(":")
    if name != NAME:
        raise InputError(f"unknown device {name!r}; there is {NAME}, as {NAME}:noise=0.0002,seed=1; or --import a CSV")
    given: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        if key not in _OPTIONS or key in given:
            raise InputError(f"device option {key!r} is unknown or given twice; there are {', '.join(_OPTIONS)}")
        try:
            given[key] = _OPTIONS[key][0](value)
        except (ValueError, OverflowError):
            raise InputError(f"device option {key}={value!r} is no value of it; such as {_OPTIONS[key][1]}") from None
    seed = given.pop("seed", 0)
    return VirtualSm(replace(Truth(), **given), seed)


def _bubbles(text: str) -> Bubbles:
    start, end = map(int, text.split("/"))
    return Bubbles(start, end)


# How each is read, and an example.
_OPTIONS: dict[str, tuple[Callable[[str], object], str]] = {
    "noise": (float, "0.0002"),
    "seed": (int, "1"),
    "conflicts": (Conflicts, "strict"),
    "arbiter": (Arbiter, "round-robin"),
    "bubbles": (_bubbles, "1/4"),
    "latency": (int, "9"),
}


# Iterations, and instructions of a warp, that are executed before a loop's time is extrapolated.
_LEAST_WINDOW, _LEAST_INSTRUCTIONS = 2, 500


@lru_cache(2**12)
def simulate(truth: Truth, program: IssueProgram, warps: int, loops: int) -> IssueRun:
    """Return the result of a noiseless execution of `loops` iterations.

    A long loop is executed for a window of iterations and for two windows, and extrapolated from the difference. The
    cost of the loop itself is a share of the whole time; clock samples, which are taken inside of an iteration, do not
    have it.
    """
    window = max(_LEAST_WINDOW, -(-_LEAST_INSTRUCTIONS // len(program)))
    if loops <= 2 * window:
        cycles, samples = _SmSimulation(truth, program, warps, loops).run()
    else:
        half, _ = _SmSimulation(truth, program, warps, window).run()
        full, samples = _SmSimulation(truth, program, warps, 2 * window).run()
        cycles = full + (loops - 2 * window) * (full - half) / window  # each further window adds as much as the second
    dual = truth.is_dual(program.instructions)
    return IssueRun(cycles / (1 - (truth.dual_overhead if dual else truth.overhead)), samples)


@dataclass(frozen=True, slots=True)
class _Slot:
    """An instruction at its slot, with all that an SM has to know of it.

    Args:
        needed: registers that an arithmetic instruction reads through the ports of the banks.
        with_next: whether codes and registers let the next instruction issue in the same cycle.
        on_shared_lanes: whether it would then need the shared lanes.
        block: the block that begins here; None inside of one.
        bubble: cycles that the scheduler loses after the block that ends here.
    """

    gap: int
    sources: tuple[int, ...]
    written: int | None
    needed: frozenset[int]
    keeps: bool
    is_clock: bool
    with_next: bool
    on_shared_lanes: bool
    block: int | None
    bubble: int


def _slots(truth: Truth, code: tuple[IssueInstruction, ...]) -> list[_Slot]:
    slots = []
    for number, block in enumerate(blocks(code)):
        for at, one in enumerate(block):
            follower = block[at + 1] if at + 1 < len(block) else None
            together = follower is not None and truth.pairs(one, follower)
            slots.append(
                _Slot(
                    gap=truth.gaps[one.code],
                    sources=one.sources,
                    written=None if one.destination == ZERO else one.destination,
                    needed=frozenset(one.sources if one.is_arithmetic else ()),
                    keeps=one.code in truth.keeps,
                    is_clock=one.opcode is Opcode.S2R,
                    with_next=together,
                    on_shared_lanes=together and follower is not None and one.is_arithmetic and follower.is_arithmetic,
                    block=number if at == 0 else None,
                    bubble=truth.bubble(block) if at + 1 == len(block) else 0,
                )
            )
    return slots


@dataclass(slots=True)
class _SimulatedWarp:
    number: int
    iteration: int = 0
    place: int = 0
    free: int = 0  # when its last instruction lets the next one issue
    clock: int = 0  # when it can read the clock again
    at: int = 0  # when its next instruction can issue, if a scheduler takes it
    written: dict[int, int] = field(default_factory=dict)  # when a register can be read


@dataclass(slots=True)
class _Scheduler:
    warps: list[_SimulatedWarp]  # those that have not finished
    free: int = 0
    debt: float = 0.0  # parts of issue cycles that conflicts have cost and that no cycle was lost for so far
    last: _SimulatedWarp | None = None  # the warp that issued last, unless it has finished
    cached: frozenset[int] = frozenset()

    def choice(self, now: int) -> _SimulatedWarp | None:
        """Return the warp that issued last, or else the one that has been able to for longest."""
        if now < self.free:
            return None
        if self.last is not None and self.last.at <= now:
            return self.last
        return min((warp for warp in self.warps if warp.at <= now), key=lambda warp: warp.at, default=None)

    @property
    def next(self) -> int:
        """Return the earliest cycle in which the scheduler could issue; it must have a warp."""
        return max(min(warp.at for warp in self.warps), self.free)


class _SmSimulation:
    def __init__(self, truth: Truth, program: IssueProgram, warps: int, loops: int) -> None:
        self.truth, self.loops = truth, loops
        self.slots = _slots(truth, program.instructions)
        self.is_cached = len(self.slots) <= truth.sm.icache_instructions
        self.arrived: dict[tuple[int, int], int] = {}
        self.penalties: dict[frozenset[int], float] = {}
        self.samples: list[float] = []
        self.end = 0
        everybody = [_SimulatedWarp(number) for number in range(warps)]
        self.schedulers = [_Scheduler(everybody[start :: truth.sm.schedulers]) for start in range(truth.sm.schedulers)]
        self.pairs = list(zip(self.schedulers[::2], self.schedulers[1::2], strict=True))
        self.losers = [1] * len(self.pairs)
        for warp in everybody:
            warp.at = self.earliest(warp)

    def run(self) -> tuple[float, tuple[float, ...]]:
        now = 0
        while running := [scheduler for scheduler in self.schedulers if scheduler.warps]:
            now = max(now, min(scheduler.next for scheduler in running))
            for number in range(len(self.pairs)):
                self.cycle(number, now)
            now += 1
        return self.end, tuple(self.samples)

    def cycle(self, number: int, now: int) -> None:
        """Simulate one cycle of a pair of schedulers; if both want the shared lanes, one loses the cycle."""
        picked = [(scheduler, warp) for scheduler in self.pairs[number] if (warp := scheduler.choice(now)) is not None]
        if len(picked) == 2 and all(self.slots[warp.place].on_shared_lanes for _, warp in picked):
            duals = [self.size(warp, now) for _, warp in picked]
            if duals == [2, 2]:
                loser = self.losers[number]
                del picked[loser]
                if self.truth.arbiter is Arbiter.ROUND_ROBIN:  # the other one loses next time
                    self.losers[number] = 1 - loser
        for scheduler, warp in picked:
            self.issue(scheduler, warp, now)

    def size(self, warp: _SimulatedWarp, now: int) -> int:
        """Return how many instructions of a warp issue now: one, or two if the second one's operands are there."""
        if not self.slots[warp.place].with_next:
            return 1
        return 2 if self.operands(warp, self.slots[warp.place + 1]) <= now else 1

    def issue(self, scheduler: _Scheduler, warp: _SimulatedWarp, now: int) -> None:
        group = self.slots[warp.place : warp.place + self.size(warp, now)]
        last = group[-1]
        needed = group[0].needed if len(group) == 1 else group[0].needed | last.needed
        stall = self.stall(scheduler, needed - scheduler.cached if scheduler.last is warp else needed)
        for slot in group:
            if slot.written is not None:
                warp.written[slot.written] = now + self.truth.latency
        if last.is_clock:
            warp.clock = now + self.truth.clock_interval
            if warp.number == 0 and warp.iteration == self.loops - 1:
                self.samples.append(float(now))
        scheduler.last, scheduler.cached = warp, needed if last.keeps else frozenset()
        scheduler.free = now + 1 + stall + last.bubble
        warp.free = now + max(last.gap, 1)
        self.end = max(self.end, scheduler.free)
        self.advance(scheduler, warp, len(group))

    def advance(self, scheduler: _Scheduler, warp: _SimulatedWarp, by: int) -> None:
        warp.place += by
        if warp.place == len(self.slots):
            warp.place, warp.iteration = 0, warp.iteration + 1
            if warp.iteration == self.loops:
                scheduler.warps.remove(warp)
                scheduler.last = None
                return
        warp.at = self.earliest(warp)

    def stall(self, scheduler: _Scheduler, read: frozenset[int]) -> int:
        if read not in self.penalties:
            self.penalties[read] = self.truth.penalty(read)
        scheduler.debt += self.penalties[read]
        stall = int(scheduler.debt)  # whole cycles are lost now, the rest is carried over
        scheduler.debt -= stall
        return stall

    def operands(self, warp: _SimulatedWarp, slot: _Slot) -> int:
        """Return the cycle in which all sources of an instruction have been computed."""
        written, at = warp.written, 0
        for register in slot.sources:
            at = max(at, written.get(register, 0))
        return at

    def earliest(self, warp: _SimulatedWarp) -> int:
        """Return the first cycle in which the next instruction of a warp can issue."""
        slot = self.slots[warp.place]
        at = max(warp.free, self.operands(warp, slot))
        if slot.is_clock:
            at = max(at, warp.clock)
        if slot.block is not None:
            key = (slot.block, 0 if self.is_cached else warp.iteration)  # a loop that fits the cache is fetched once
            at = max(at, self.arrived.setdefault(key, at + self.truth.miss_cycles))
        return at
