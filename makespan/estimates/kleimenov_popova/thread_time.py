"""The time of one thread as a function of `lat`, and as an expression in names.

`lat` is what every access to global memory takes; all other latencies, and all issue delays, are numbers of the GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from makespan.estimates.kleimenov_popova.gpu_timing import VARIABLE, Timing
from makespan.estimates.kleimenov_popova.maxplus import MAX_TERMS, MaxPlus, Order, TooManyTermsError
from makespan.estimates.kleimenov_popova.piecewise import PiecewiseLinear, RationalNumber
from makespan.estimates.kleimenov_popova.recurrence import UNROLLED, IssueState, LoopRule, Recurrence, Repeat, Sequence
from makespan.host.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class _InCycles:
    """The arithmetic of times that are functions of `lat`."""

    timing: Timing

    def zero(self) -> PiecewiseLinear:
        return PiecewiseLinear.line(0)

    def delay(self, kind: str) -> PiecewiseLinear:
        return PiecewiseLinear.line(self.timing.delay(kind))

    def latency(self, kind: str) -> PiecewiseLinear:
        return PiecewiseLinear.line(0, 1) if kind == VARIABLE else PiecewiseLinear.line(self.timing.latency(kind))

    def left_over(self, ready: PiecewiseLinear, time: PiecewiseLinear, loop: str, register: str) -> PiecewiseLinear:
        del loop, register
        return (ready - time).maximum(self.zero())

    def further(self, before: PiecewiseLinear, after: PiecewiseLinear, times: RationalNumber) -> PiecewiseLinear:
        return (after - before).scaled(times)


@dataclass(frozen=True, slots=True)
class _InNames:
    """The arithmetic of times that are expressions in names; `rests` has what `rest_LOOP_REGISTER` stands for."""

    order: Order
    rests: dict[str, tuple[MaxPlus, MaxPlus]] = field(default_factory=dict)

    def zero(self) -> MaxPlus:
        return MaxPlus.zero(self.order)

    def delay(self, kind: str) -> MaxPlus:
        return MaxPlus.name(f"del_{kind}", self.order)

    def latency(self, kind: str) -> MaxPlus:
        return MaxPlus.name(latency_name(kind), self.order)

    def left_over(self, ready: MaxPlus, time: MaxPlus, loop: str, register: str) -> MaxPlus:
        # no sum of ready can exceed the time
        if all(any(self.order.covers(more, less) for more in time.sums) for less in ready.sums):
            return self.zero()
        name = f"rest_{loop}_{register}"
        self.rests[name] = (ready, time)
        return MaxPlus.name(name, self.order)

    def further(self, before: MaxPlus, after: MaxPlus, times: RationalNumber) -> MaxPlus:
        del before, after, times
        raise UnsupportedError(f"an expression in names has no differences: it needs --loop {LoopRule.UNROLL2}")


def latency_name(kind: str) -> str:
    """Return the name that the latency of a class has in an expression."""
    return "lat" if kind == VARIABLE else f"lat_{kind}"


class ThreadTime(NamedTuple):
    """The time of one thread: cycles as a function of `lat`, and the sum of its issue delays in cycles."""

    cycles: PiecewiseLinear
    delay: RationalNumber


def thread_time(sequence: Sequence, timing: Timing, rule: LoopRule = LoopRule.UNROLL2) -> ThreadTime:
    """Return the time of a lone thread that executes a sequence.

    Where `LoopRule.EXACT` extends a loop whose increments are not periodic yet, the result may fall at some latency;
    its running maximum stands for it.

    Raises:
        InputError: a latency or delay that is missing.
        UnsupportedError: more instructions than can be followed.
    """
    recurrence = Recurrence(_InCycles(timing), rule)
    cycles = recurrence.run(sequence).time
    kinds = _kinds(sequence)
    executions = sequence.executions(with_back_edges=recurrence.issues_back_edges)
    delay = sum((count * timing.delay(kinds[number]) for number, count in executions.items()), start=Fraction(0))
    return ThreadTime(cycles.running_maximum(), delay)  # the fixed points need a time that never falls


def _kinds(sequence: Sequence) -> dict[int, str]:
    found: dict[int, str] = {}
    for step in sequence.steps:
        found |= _kinds(step.body) if isinstance(step, Repeat) else {step.number: step.kind}
    return found


class TimeExpression(NamedTuple):
    """A time as an expression in names; `text` says why there is none if `value` is None."""

    name: str
    text: str
    value: MaxPlus | None


def expressions(sequence: Sequence, timing: Timing) -> tuple[TimeExpression, ...]:
    """Return the time of two iterations of every loop, inner ones first, and of the whole sequence, in names.

    Sums that can never be the largest are left out, given that no latency is below the issue delay of its class where
    `timing` says so.
    """
    order = Order(
        {
            latency_name(kind): f"del_{kind}"
            for kind in timing.delays
            if kind in timing.latencies and timing.latencies[kind] >= timing.delays[kind]
        }
    )
    arithmetic = _InNames(order)
    found = [
        _expression(f"T2_{loop.label}", partial(_run, arithmetic, loop.body, UNROLLED))
        for loop in reversed(sequence.loops)
    ]
    found.append(_expression("time", partial(_run, arithmetic, sequence, 1)))
    # only rests that an expression reaches are shown
    waiting = [name for expression in found if expression.value for name in expression.value.names]
    used = set[str]()
    while waiting:
        name = waiting.pop()
        if name in arithmetic.rests and name not in used:
            used.add(name)
            waiting += [inner for value in arithmetic.rests[name] for inner in value.names]
    rests = [
        TimeExpression(name, f"max(0, ({ready}) - ({time}))", None)
        for name, (ready, time) in arithmetic.rests.items()
        if name in used
    ]
    return (*found, *rests)


def _run(arithmetic: _InNames, sequence: Sequence, trips: int) -> IssueState[MaxPlus]:
    return Recurrence(arithmetic).run(sequence, trips=trips)


def _expression(name: str, run: Callable[[], IssueState[MaxPlus]]) -> TimeExpression:
    try:
        value = run().time
    except TooManyTermsError:
        return TimeExpression(name, f"(the largest of more than {MAX_TERMS} sums)", None)
    return TimeExpression(name, str(value), value)
