"""Thread time: in-order issue of one thread, each instruction as soon as its operands are ready.

    issue_i = max(t, ready of every register that i reads)
    t       = issue_i + delay of i
    ready   = issue_i + latency of i, for every register that i writes

The same recurrence gives a number of cycles as a function of `lat`, the latency of global memory (`PiecewiseLinear`),
and an expression in the names of latencies and delays (`MaxPlus`).

Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from makespan.estimates.kleimenov_popova.piecewise import RationalNumber
from makespan.host.errors import UnsupportedError


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

    def executions(self, *, with_back_edges: bool) -> Mapping[int, int]:
        """Return how often each instruction is executed."""
        found: Counter[int] = Counter()
        for step in self.steps:
            if isinstance(step, Repeat):
                inner = step.body.executions(with_back_edges=with_back_edges)
                found.update({number: count * step.trips for number, count in inner.items()})
            elif with_back_edges or not step.is_back_edge:
                found[step.number] += 1
        return found

    @property
    def loops(self) -> tuple[Repeat, ...]:
        """Return all loops in it, outer ones first."""
        own = [step for step in self.steps if isinstance(step, Repeat)]
        return tuple(loop for outer in own for loop in (outer, *outer.body.loops))


UNROLLED = 2  # iterations whose time stands for all, as in the paper
MAX_SIMULATED = 64  # iterations that LoopRule.EXACT follows one by one
PERIOD = 16  # the last of them, whose increment is extrapolated
MAX_STEPS = 100_000


class LoopRule(StrEnum):
    """The rule by which the time of a loop follows from its body."""

    # half the time of two iterations from a fresh state, for each trip; the back edge costs nothing (the paper)
    UNROLL2 = "unroll2"
    # up to 64 iterations from the state at the entry, then the increment of the last 16; the back edge counts
    EXACT = "exact"


class _TimeValue(Protocol):
    def __add__(self, other: Self, /) -> Self: ...
    def maximum(self, other: Self, /) -> Self: ...
    def scaled(self, factor: RationalNumber, /) -> Self: ...


V = TypeVar("V", bound=_TimeValue)


class Arithmetic(Protocol[V]):
    """The operations from which the recurrence makes times."""

    def zero(self) -> V:
        """Return the time zero."""

    def delay(self, kind: str) -> V:
        """Return the issue delay of a kind of instruction."""

    def latency(self, kind: str) -> V:
        """Return the latency of a kind of instruction."""

    def left_over(self, ready: V, time: V, loop: str, register: str) -> V:
        """Return how long a register is not ready after the end of an unrolled loop: `max(0, ready - time)`."""

    def further(self, before: V, after: V, times: RationalNumber) -> V:
        """Return the multiple of the time between two moments."""


@dataclass(slots=True)
class IssueState(Generic[V]):
    """The earliest next issue, and when registers are ready; those without an entry are ready at 0."""

    time: V
    ready: dict[str, V] = field(default_factory=dict)


@dataclass(slots=True)
class Recurrence(Generic[V]):
    """A run of the recurrence over sequences of instructions.

    Raises:
        UnsupportedError: more instructions than can be followed one by one.
    """

    arithmetic: Arithmetic[V]
    rule: LoopRule = LoopRule.UNROLL2
    steps_left: int = MAX_STEPS

    def run(self, sequence: Sequence, state: IssueState[V] | None = None, trips: int = 1) -> IssueState[V]:
        """Return the state after `trips` executions of a sequence; a state of None is a fresh one."""
        state = state or IssueState(self.arithmetic.zero())
        for _ in range(trips):
            for step in sequence.steps:
                if isinstance(step, Single):
                    self._issue(step, state)
                elif step.trips and self.rule is LoopRule.UNROLL2:
                    self._unrolled(step, state)
                elif step.trips:
                    self._simulated(step, state)
        return state

    @property
    def issues_back_edges(self) -> bool:
        """Return whether unconditional back edges take their issue delay."""
        return self.rule is LoopRule.EXACT

    def _issue(self, step: Single, state: IssueState[V]) -> None:
        if step.is_back_edge and not self.issues_back_edges:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            raise UnsupportedError(
                f"more than {MAX_STEPS} instructions would be followed one by one; use --loop {LoopRule.UNROLL2}"
            )
        issue = state.time
        for register in step.reads:
            if register in state.ready:
                issue = issue.maximum(state.ready[register])  # stall on use
        state.time = issue + self.arithmetic.delay(step.kind)  # the dispatcher is taken up that long
        for register in step.writes:
            state.ready[register] = issue + self.arithmetic.latency(step.kind)

    def _unrolled(self, loop: Repeat, state: IssueState[V]) -> None:
        two = self.run(loop.body, trips=UNROLLED)  # from a fresh state, whatever is ready at the entry
        state.time = state.time + two.time.scaled(Fraction(loop.trips, UNROLLED))
        for register, ready in two.ready.items():
            rest = self.arithmetic.left_over(ready, two.time, loop.label, register)
            state.ready[register] = state.time + rest

    def _simulated(self, loop: Repeat, state: IssueState[V]) -> None:
        count = min(loop.trips, MAX_SIMULATED)
        self.run(loop.body, state, trips=count - min(PERIOD, count))  # until the increments may be periodic
        before = state.time
        self.run(loop.body, state, trips=min(PERIOD, count))
        if loop.trips > count:  # all further trips are taken to cost what the last period did
            further = self.arithmetic.further(before, state.time, Fraction(loop.trips - count, PERIOD))
            state.time = state.time + further
            for register in _written_registers(loop.body):
                if register in state.ready:
                    state.ready[register] = state.ready[register] + further  # moves with the time


def _written_registers(body: Sequence) -> frozenset[str]:
    found = {name for step in body.steps if isinstance(step, Single) for name in step.writes}
    inner = (_written_registers(step.body) for step in body.steps if isinstance(step, Repeat))
    return frozenset(found.union(*inner))
