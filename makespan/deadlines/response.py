"""Worst-case response times of kernels that one server serves one at a time, without preemption.

Time is discrete here: everything happens at whole ticks; `holistic` makes bounds for continuous time of it. All bounds
are least fixed points in whole numbers; the theorems with their proofs are in docs/schedulability_theory.md. Kernels of
one task are served in the order of their arrival.

Glossary: C execution time, T period, B blocking, w the start of a kernel after the start of its busy window, d an
absolute deadline, q the number of kernels of the same task that come before in the window.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from itertools import count
from math import lcm

from makespan.deadlines.arrivals import MOST_ACTIVATIONS, StepBudget, Stream, first_multiple, least_fixed_point
from makespan.deadlines.operations import BoundTable, TaskOperation, urgency
from makespan.deadlines.task import ServerPolicy
from makespan.deadlines.utilisation import ONE, excess, scaled_sum
from makespan.deadlines.workload import overlapping_activations


@dataclass(frozen=True, slots=True)
class KernelBound:
    """The longest time until a kernel ends, and the part that a less urgent one takes that had begun, in ticks."""

    response: int
    blocking: int


@dataclass(frozen=True, slots=True)
class AnalysedOperation:
    """An operation, and what else its family demands of the server in a busy window; times in ticks.

    Args:
        stream: The operation itself.
        each: The work of an earlier activation.
        firsts: The same for the earliest activation in the window, with how late after the event the first operation
            may be ready, at most; there is a case for each operation that may be that first one.
        late: How much later after the event any operation of the family may be ready than any other.
        ahead: The work of the same activation before the operation is ready.
        beside: The work of the same activation or a later one at any time.
        blockers: What operations of the family that do not go before leave when the window begins, at most, each with
            its deadline as in `Stream`.
        is_handed_over: Whether it is ready at the instant at which a less urgent one of its activation leaves the
            server: then no other can have begun.
    """

    stream: Stream
    each: int
    firsts: tuple[tuple[int, int], ...]
    late: int
    ahead: int = 0
    beside: int = 0
    blockers: tuple[tuple[int, int], ...] = ()
    is_handed_over: bool = False

    @classmethod
    def alone(cls, stream: Stream) -> "AnalysedOperation":
        """Return an operation whose family has nothing else on the server."""
        return cls(stream, stream.wcet, ((stream.wcet, stream.delay),), stream.delay)

    @property
    def is_alone(self) -> bool:
        """Return whether its family has nothing else on the server."""
        return self.each == self.stream.wcet and not (self.ahead or self.beside or self.blockers)

    def is_too_long(self, busy: int | None) -> bool:
        """Return whether a busy window of this length is too long to look through; None is endless."""
        # each activation has a case for each operation, so long windows cost too much; alone it has one
        return not self.is_alone and (busy is None or busy > MOST_ACTIVATIONS * self.stream.period)

    @property
    def whole(self) -> Stream:
        """Return the demand of the whole family as one stream."""
        return Stream(self.each, self.stream.period, self.late)

    def before(self, q: int) -> list[tuple[int, int | None]]:
        """Return the work before the operation after `q` earlier activations, and its earliest event or None."""
        rest = self.ahead + self.beside
        if not q:  # no earlier activation: the event may be as early as its delay allows
            return [(rest, None)]
        rest += (q - 1) * self.each
        return [(rest + work, q * self.stream.period - delay) for work, delay in self.firsts]


def kernel_bounds(
    own: AnalysedOperation, rivals: Sequence[Stream], policy: ServerPolicy, since: Sequence[int], steps: StepBudget
) -> tuple[KernelBound, ...] | None:
    """Return the longest time until an operation ends, for each entry of `since`; None if nothing bounds it.

    Args:
        rivals: The streams of other families on the server.
        since: The instants to count from, each as the most that can lie between it and the moment at which the kernel
            is ready: 0 from there, `delay` from the event, and nothing between 0 and the lag.

    Raises:
        OutOfStepsError: the analysis takes longer than allowed.
    """
    if policy is ServerPolicy.FIXED_PRIORITY:
        return _fixed_priority(own, rivals, since, steps)
    if any(stream.is_wild for stream in rivals):  # without urgency whatever has no bound may go before
        return None
    if policy is ServerPolicy.FIFO:
        # FIFO is EDF with E = 0 and the anchor at readiness
        own = replace(own, stream=_ordered_by_readiness(own.stream), blockers=())
        rivals = [_ordered_by_readiness(stream) for stream in rivals]
    return _EdfAnalysis(own, rivals, steps).bounds(since)


def _ordered_by_readiness(stream: Stream) -> Stream:
    return Stream(stream.wcet, stream.period, stream.delay)


def busy_period(streams: Sequence[Stream], blocking: int, steps: StepBudget) -> int | None:
    """Return the least L > 0 with `blocking` + the kernels that can come in L ticks <= L; None if there is none.

    Source: Davis, Burns, Bril and Lukkien, Real-Time Systems 35(3), 2007.
    """
    full, is_late = _excess(streams), blocking > 0 or any(s.delay for s in streams)
    if full > 0 or (full == 0 and is_late):  # at a utilisation of 1 any blocking or jitter is never worked off
        return None
    rows = [(s.wcet, s.period, s.delay) for s in streams]
    # What any solution must exceed, without the ceilings; scaled sums are too small, so it stays a lower bound.
    early = blocking * ONE + scaled_sum((c * j, t) for c, t, j in rows)
    start = max(sum(c for c, _, _ in rows), -(-early // (ONE - _load(streams))) if full < 0 else 0)
    return least_fixed_point(
        lambda length: blocking - sum(c * (-(length + j) // t) for c, t, j in rows), start, len(rows), steps
    )


def _excess(streams: Sequence[Stream]) -> int:
    return excess([(s.wcet, s.period) for s in streams])


def _load(streams: Sequence[Stream]) -> int:
    return scaled_sum((s.wcet, s.period) for s in streams)


def _fixed_priority(
    own: AnalysedOperation, rivals: Sequence[Stream], since: Sequence[int], steps: StepBudget
) -> tuple[KernelBound, ...] | None:
    """Return the bounds of theorem 1; equal priorities go in any order, so each goes before each other.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996; Davis, Burns, Bril and Lukkien, Real-Time
        Systems 35(3), 2007.
    """
    rank, streams = own.stream.priority, rivals
    rivals = [s for s in streams if s.priority >= rank]  # equal priorities go in any order: count each as more urgent
    # begun a tick before the window at least
    blocking = max((s.wcet - 1 for s in streams if s.priority < rank), default=0)
    blocking = 0 if own.is_handed_over else max((blocking, *(rest for rest, _ in own.blockers)))
    if any(s.is_wild for s in rivals) or _excess([own.whole, *rivals]) > 0:  # wild streams of less urgency only block
        return None
    busy = busy_period([own.whole, *rivals], max(blocking, own.ahead), steps)
    if own.is_too_long(busy):
        return None
    repeats = _repeats(own, rivals, busy)
    best = [0] * len(since)
    for q in count():  # the first kernel of a window need not be the worst: that was the flaw of the first CAN analysis
        for start, event in _starts(own, q, rivals, blocking, steps):
            ends = [start + own.stream.wcet - _latest(own.ahead - x, event) for x in since]
            best = [max(pair) for pair in zip(best, ends, strict=True)]
        following = min((q + 1) * own.stream.period - delay for _, delay in own.firsts)
        if q + 1 == repeats or (busy is not None and _is_over(busy, following, own.ahead, best, since)):
            break
    return tuple(KernelBound(most, blocking) for most in best)


def _latest(instant: int, event: int | None) -> int:
    return instant if event is None else max(instant, event)


def _repeats(own: AnalysedOperation, rivals: Sequence[Stream], busy: int | None) -> int:
    """Return a number of earlier activations from which on a busy window is no worse than it was."""
    period, late = own.stream.period, own.ahead + own.whole.delay  # theorem 3
    return -(-late // period) + _hyperperiod((own.stream, *rivals), busy) // period + (not own.is_alone)


def _hyperperiod(streams: Sequence[Stream], busy: int | None) -> int:
    """Return the least common multiple of the periods, or of as many as exceed the busy window."""
    found = 1
    for stream in streams:
        found = lcm(found, stream.period)
        if busy is not None and found >= busy:  # the window ends first, so a longer multiple changes nothing
            break
    return found


def _is_over(busy: int, event: int, ahead: int, best: Sequence[int], since: Sequence[int]) -> bool:
    """Return whether no event from `event` on can be worse, because all end with the busy window."""
    return event >= busy or all(busy - max(ahead - x, event) <= most for most, x in zip(best, since, strict=True))


def _starts(
    own: AnalysedOperation, q: int, rivals: Sequence[Stream], blocking: int, steps: StepBudget
) -> Iterator[tuple[int, int | None]]:
    """Yield the latest start after `q` earlier activations, with the earliest event, in each case."""
    rows = [(s.wcet, s.period, s.delay) for s in rivals]
    spare = ONE - _load(rivals)  # too large by rounding, so `start` is too small: a safe first value
    least = scaled_sum((c * (j + 1), t) for c, t, j in rows)
    for work, event in own.before(q):
        before = blocking + work
        start = -(-(least + before * ONE) // spare)
        yield least_fixed_point(_demand(before, rows), start, len(rows) + 1, steps), event


def _demand(before: int, rows: Sequence[tuple[int, int, int]]) -> Callable[[int], int]:
    return lambda w: before + sum(c * ((w + j) // t + 1) for c, t, j in rows)


_OF_A_RELEASE = 8
"""The additions that a release costs at least."""


class _EdfAnalysis:
    """The analysis of kernels in the order of their absolute deadlines, equal ones in any order: theorem 2.

    A release here is the instant that deadlines count from, after which the kernel may still not be ready for the lag.
    With deadlines of 0 after the moment at which a kernel is ready, this is first in, first out.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996; Spuri, INRIA RR-2873, 1996, for jitter.
    """

    def __init__(self, own: AnalysedOperation, rivals: Sequence[Stream], steps: StepBudget) -> None:
        self.family, self.own, self.rivals, self.steps = own, own.stream, rivals, steps

    def bounds(self, since: Sequence[int]) -> tuple[KernelBound, ...] | None:
        """Return the worst bounds over all releases that matter, counted from the start of the window."""
        streams = (self.family.whole, *self.rivals)
        if _excess(streams) > 0:
            return None
        own, ahead = self.own, self.family.ahead
        busy = busy_period(streams, 0, self.steps)  # all kernels count in it, also one that blocks
        if self.family.is_too_long(busy):
            return None
        horizon = self._horizon(busy)
        best = [KernelBound(own.wcet + x, 0) for x in since]
        for release, every, blocking in self._releases(horizon):
            latest = [max(ahead - x, release - max(0, x - own.lag)) for x in since]
            if busy is not None and all(busy - late <= most.response for late, most in zip(latest, best, strict=True)):
                break
            self._look_at(release, every, blocking, latest, best)
        return tuple(best)

    def _look_at(self, release: int, every: int, blocking: int, latest: Sequence[int], best: list[KernelBound]) -> None:
        """Keep in `best` what is worse for a kernel with this release, for any number of earlier activations.

        Args:
            every: The work of all rivals that are due before, however late they come.
            blocking: The rest of one with a later deadline, which goes before only if it has begun.
        """
        own, family = self.own, self.family
        self.steps.spend(_OF_A_RELEASE)
        most_earlier = max((release + delay) // own.period for _, delay in family.firsts)
        # an upper bound on what a look can give, without a fixed point
        top = blocking + max(work for work, _ in family.before(max(0, most_earlier))) + every + own.wcet
        if all(top - late <= most.response for late, most in zip(latest, best, strict=True)):
            return
        for work, event in self._before(release):
            self.steps.spend(len(best))
            before = blocking + work
            events = [_latest(late, event) for late in latest]
            if any(before + every + own.wcet - event > most.response for event, most in zip(events, best, strict=True)):
                end = self._start(before, release) + own.wcet
                for index, event_or_later in enumerate(events):
                    if end - event_or_later > best[index].response:
                        best[index] = KernelBound(end - event_or_later, blocking)

    def _before(self, release: int) -> Iterator[tuple[int, int | None]]:
        """Yield the work before with the earliest event, for each number of earlier activations that matters."""
        own, family = self.own, self.family
        yield from family.before(0)
        for at, (_, delay) in enumerate(family.firsts):
            # fewer gain nothing: the event may be as late with more
            first = max(1, (release - own.jitter + delay) // own.period)
            for q in range(first, (release + delay) // own.period + 1):
                yield family.before(q)[at]

    def _start(self, before: int, release: int) -> int:
        """Return the latest start for this release, after `before` ticks and the rivals that are due earlier."""
        due = release + self.own.deadline
        rows = [(s.wcet, s.period, s.delay, due - s.deadline) for s in self.rivals if due - s.deadline >= -s.lag]

        def demand(w: int) -> int:
            return before + sum(c * ((min(w, last) + j) // t + 1) for c, t, j, last in rows)

        return least_fixed_point(demand, max(before, release), len(rows) + 1, self.steps)

    def _horizon(self, busy: int | None) -> int:
        """Return the release from which on releases only repeat, or the end of the busy window if it is less."""
        regular = max((s.deadline - self.own.deadline - s.lag for s in self.rivals), default=0)
        repeated = max(0, regular) + _hyperperiod((self.own, *self.rivals), busy)
        if busy is None:  # full utilisation: theorem 3 bounds the releases to look at
            return repeated
        return busy if not self.family.is_alone else min(busy, repeated)

    def _releases(self, horizon: int) -> Iterator[tuple[int, int, int]]:
        """Yield, ascending, the releases at which the work before changes, with `every` and `blocking`."""
        own, least = self.own, -self.own.lag
        due = [s.deadline - own.deadline - s.lag for s in self.rivals]  # from which release on each goes before
        counted = [_jobs(s, first, least) for s, first in zip(self.rivals, due, strict=True)]
        every = sum(s.wcet * jobs for s, jobs in zip(self.rivals, counted, strict=True))
        events = [(least, -1, 0)]  # a release, whose rivals, and after which time it happens again
        events += [(first_multiple(-delay, own.period, least), -1, own.period) for _, delay in self.family.firsts]
        events += [(first, index, 0) for index, first in enumerate(due) if first > least]
        events += [
            (first_multiple(first - s.jitter, s.period, max(first, least)), index, s.period)
            for index, (s, first) in enumerate(zip(self.rivals, due, strict=True))
        ]
        events = [event for event in events if event[0] < horizon]
        heapify(events)
        later = [(first, s.wcet - 1) for s, first in zip(self.rivals, due, strict=True)]
        # its own family may block, too
        later += [(deadline - own.deadline, rest) for rest, deadline in self.family.blockers]
        later.sort(reverse=True)
        while events:
            release = events[0][0]
            while events and events[0][0] == release:
                self.steps.spend(1)
                _, index, again = events[0]
                if again and release + again < horizon:
                    heapreplace(events, (release + again, index, again))
                else:
                    heappop(events)
                if index >= 0:
                    jobs = _jobs(self.rivals[index], due[index], release)
                    every += self.rivals[index].wcet * (jobs - counted[index])
                    counted[index] = jobs
            while later and later[-1][0] <= release:  # with this release they go before, so they no longer block
                later.pop()
            yield release, every, max((rest for _, rest in later), default=0)


def _jobs(stream: Stream, first: int, release: int) -> int:
    """Return how many kernels of a rival go before one with this release, if one released at `first` is the first."""
    return (release - first + stream.jitter) // stream.period + 1 if release >= first else 0


def operation_stream(known: BoundTable, operation: TaskOperation, lag: int | None) -> Stream:
    """Return an operation as a stream; deadlines count from the arrival, or by `edf-release` the release.

    Args:
        lag: The longest time from the arrival until it is ready; by `edf-release` its jitter and what follows the
            release.
    """
    task, arrival = operation.task, known.arrival(operation.task)
    if arrival is None or lag is None:  # it may still block for at most its time: keep the stream
        return Stream(operation.wcet, task.period, priority=urgency(task), is_wild=True)
    arrival, deadline = arrival - known.graph.earliest(task), task.deadline
    if known.graph.policies[operation.resource] is not ServerPolicy.EDF:
        arrival, lag, deadline = arrival + task.jitter, lag - task.jitter, deadline - task.jitter
    return Stream(operation.wcet, task.period, arrival, lag, deadline, urgency(task))


def analysed_operation(
    known: BoundTable, operation: TaskOperation, own: Stream, family: Sequence[TaskOperation]
) -> AnalysedOperation | None:
    """Return an operation with what its family demands of the server; None as long as that has no bound."""
    graph, task = known.graph, operation.task
    end = known.end[operation.number]
    latest = [instant for other in family if (instant := known.ready(other)) is not None]
    if own.is_wild or end is None or len(latest) < len(family):
        return None
    policy, event = graph.policies[operation.resource], graph.earliest(task)
    is_ranked = policy is ServerPolicy.FIXED_PRIORITY
    until = end if policy is not ServerPolicy.FIFO else own.delay + event + 1  # what is ready later does not go before
    ready: list[tuple[int, int]] = []
    ahead = beside = 0
    blockers = []
    for other, at in zip(family, latest, strict=True):
        if is_ranked and urgency(other.task) < urgency(task):  # it blocks only if it has begun
            blockers.append((other.wcet - 1, 0))
            continue
        ready.append((at - event, other.wcet))
        ahead += other.wcet * graph.is_before(other, operation)
        beside += other.wcet * graph.is_concurrent(other.task, task)
        if other is operation:
            continue
        if not graph.is_before(operation, other):
            beside += other.wcet * overlapping_activations(until - other.earliest, task.period)
        if not is_ranked:
            deadline = other.task.deadline
            blockers.append((other.wcet - 1, deadline if policy is ServerPolicy.EDF else deadline - other.task.jitter))
    source = graph.operations[operation.sources[0]] if operation.is_handed_over else None
    is_handed_over = source is not None and is_ranked and urgency(source.task) < urgency(task)
    if source is not None and is_handed_over:  # it has kept the server from all that goes before
        ahead = source.wcet - 1
    firsts = tuple((sum(work for other, work in ready if other >= delay), delay) for delay, _ in ready)
    each, earliest = sum(work for _, work in ready), min(event, *(other.earliest for other in family))
    late = max(delay for delay, _ in ready) + event - earliest
    return AnalysedOperation(own, each, firsts, late, ahead, beside, tuple(blockers), is_handed_over)
