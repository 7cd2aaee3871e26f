"""Thread time: in-order issue of one thread, each instruction as soon as its operands are ready.

    issue_i = max(t, ready of every register that i reads)
    t       = issue_i + delay of i
    ready   = issue_i + latency of i, for every register that i writes

All of these are exact functions of `lat`, which is what every access to global memory takes; all other latencies, and
all issue delays, are numbers of the GPU.

Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from makespan.estimates.kleimenov_popova.device import Timing
from makespan.estimates.kleimenov_popova.piecewise import PiecewiseLinear, RationalNumber
from makespan.host.errors import UnsupportedError

# Half the time of two iterations from a fresh state, for each trip, and no back edge, as in the paper; or up to 64
# iterations from the state at the entry, with the back edge, and then the increment of the last 16.
LoopRule: TypeAlias = Literal["unroll2", "exact"]
UNROLLED = 2  # iterations whose time stands for all, as in the paper
MAX_SIMULATED = 64  # iterations that the exact rule follows one by one
PERIOD = 16  # the last of them, whose increment is extrapolated
MAX_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Single:
    """An instruction in a sequence.

    Args:
        number: of the instruction in its kernel.
        kind: the class whose latency and issue delay it has.
        reads: registers it waits for, predicates among them.
        writes: registers that are ready after its latency.
        is_back_edge: whether it is the unconditional branch back to the head of its loop.
    """

    number: int
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_back_edge: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop: `trips` iterations of its body."""

    label: str
    body: "Sequence"
    trips: int


SequenceStep: TypeAlias = Single | Repeat


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of steps that are executed one after the other."""

    steps: tuple[SequenceStep, ...] = field(default=())

    def executions(self, *, with_back_edges: bool) -> Mapping[Single, int]:
        """Return how often each instruction is executed."""
        found: Counter[Single] = Counter()
        for step in self.steps:
            if isinstance(step, Repeat):
                inner = step.body.executions(with_back_edges=with_back_edges)
                found.update({single: count * step.trips for single, count in inner.items()})
            elif with_back_edges or not step.is_back_edge:
                found[step] += 1
        return found

    @property
    def loops(self) -> tuple[Repeat, ...]:
        """Return all loops in it, outer ones first."""
        own = [step for step in self.steps if isinstance(step, Repeat)]
        return tuple(loop for outer in own for loop in (outer, *outer.body.loops))


class ThreadTime(NamedTuple):
    """The time of one thread: cycles as a function of `lat`, and the sum of its issue delays in cycles."""

    cycles: PiecewiseLinear
    delay: RationalNumber


def thread_time(sequence: Sequence, timing: Timing, rule: LoopRule = "unroll2") -> ThreadTime:
    """Return the time of a lone thread that executes a sequence.

    Where the exact rule extends a loop whose increments are not periodic yet, the result may fall at some latency;
    its running maximum stands for it.

    Raises:
        InputError: a latency or delay that is missing.
        UnsupportedError: more instructions than can be followed.
    """
    cycles = _Recurrence(timing, rule).run(sequence).time
    executions = sequence.executions(with_back_edges=rule == "exact")
    delay = sum((count * timing.delay(single.kind) for single, count in executions.items()), start=Fraction(0))
    return ThreadTime(cycles.running_maximum(), delay)  # the fixed points need a time that never falls


def unrolled_times(sequence: Sequence, timing: Timing) -> dict[str, PiecewiseLinear]:
    """Return the cycles of two iterations from a fresh state of every loop, by its label; inner loops come first."""
    recurrence = _Recurrence(timing, "unroll2")
    return {loop.label: recurrence.run(loop.body, trips=UNROLLED).time for loop in reversed(sequence.loops)}


@dataclass(slots=True)
class _IssueState:
    """The earliest next issue, and when registers are ready; those without an entry are ready at 0."""

    time: PiecewiseLinear = field(default_factory=PiecewiseLinear)
    ready: dict[str, PiecewiseLinear] = field(default_factory=dict)


@dataclass(slots=True)
class _Recurrence:
    timing: Timing
    rule: LoopRule
    steps_left: int = MAX_STEPS

    def run(self, sequence: Sequence, state: _IssueState | None = None, trips: int = 1) -> _IssueState:
        """Return the state after `trips` executions of a sequence; a state of None is a fresh one."""
        state = state or _IssueState()
        for _ in range(trips):
            for step in sequence.steps:
                if isinstance(step, Single):
                    self._issue(step, state)
                elif step.trips and self.rule == "unroll2":
                    self._unrolled(step, state)
                elif step.trips:
                    self._simulated(step, state)
        return state

    def _issue(self, step: Single, state: _IssueState) -> None:
        if step.is_back_edge and self.rule == "unroll2":
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            raise UnsupportedError(
                f"more than {MAX_STEPS} instructions would be followed one by one; use --loop unroll2"
            )
        issue = state.time
        for register in step.reads:
            if register in state.ready:
                issue = issue.maximum(state.ready[register])  # stall on use
        state.time = issue.plus_line(self.timing.delay(step.kind))  # the dispatcher is taken up that long
        for register in step.writes:
            state.ready[register] = issue.plus_line(*self.timing.latency(step.kind))

    def _unrolled(self, loop: Repeat, state: _IssueState) -> None:
        two = self.run(loop.body, trips=UNROLLED)  # from a fresh state, whatever is ready at the entry
        state.time = state.time.plus(two.time, Fraction(loop.trips, UNROLLED))
        for register, ready in two.ready.items():
            # what is ready before the end of the loop holds up nothing, so the published max(0, ...) needs no code
            state.ready[register] = state.time.plus(ready.plus(two.time, -1))

    def _simulated(self, loop: Repeat, state: _IssueState) -> None:
        count = min(loop.trips, MAX_SIMULATED)
        self.run(loop.body, state, trips=count - min(PERIOD, count))  # until the increments may be periodic
        before = state.time
        self.run(loop.body, state, trips=min(PERIOD, count))
        if loop.trips > count:  # all further trips are taken to cost what the last period did
            further = PiecewiseLinear().plus(state.time.plus(before, -1), Fraction(loop.trips - count, PERIOD))
            state.time = state.time.plus(further)
            for register in {name for single in loop.body.executions(with_back_edges=True) for name in single.writes}:
                if register in state.ready:
                    state.ready[register] = state.ready[register].plus(further)  # moves with the time
