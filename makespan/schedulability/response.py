"""Worst-case response times of kernels that one partition serves one at a time, without preemption.

Time is discrete: everything happens at whole ticks. All bounds are least fixed points in whole numbers; the theorems
with their proofs are in docs/schedulability_theory.md. Kernels of one task are served in the order of their arrival.

Glossary: C execution time, T period, B blocking, w the start of a kernel after the start of its busy window, d an
absolute deadline, q how many kernels of the same task come before in the window.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from math import lcm

from makespan.schedulability.arrivals import Steps, Stream, least_fixed_point, multiples
from makespan.schedulability.task import Policy
from makespan.schedulability.utilisation import ONE, excess, scaled


@dataclass(frozen=True, slots=True)
class Bound:
    """Ticks until a kernel ends, at most, and how many of them a less urgent one takes that has started before."""

    response: int
    blocking: int


def kernel_bounds(
    streams: Sequence[Stream], at: int, policy: Policy, since: Sequence[int], steps: Steps
) -> tuple[Bound, ...] | None:
    """For each entry of `since`, the longest time until a kernel of stream `at` ends; None if nothing bounds it.

    Args:
        since: from which instant to count, as the most that can lie between it and the moment at which the kernel is
            ready: 0 from there, `delay` from the event; nothing between 0 and the lag.

    Raises:
        OutOfStepsError: the analysis takes longer than allowed.
    """
    if policy is Policy.FIXED_PRIORITY:
        return _fixed_priority(streams, at, since, steps)
    if any(stream.is_wild for stream in streams):
        return None
    if policy is Policy.FIFO:
        streams = [replace(s, jitter=s.delay, lag=0, deadline=0) for s in streams]
    return _Edf(streams, at, steps).bounds(since)


def busy_period(streams: Sequence[Stream], blocking: int, steps: Steps) -> int | None:
    """The least length L > 0 with `blocking` + the kernels that can come in L ticks <= L; None if there is none.

    Source: Davis, Burns, Bril and Lukkien, Real-Time Systems 35(3), 2007.
    """
    full, is_late = _excess(streams), blocking > 0 or any(s.delay for s in streams)
    if full > 0 or (full == 0 and is_late):
        return None
    rows = [(s.wcet, s.period, s.delay) for s in streams]
    early = blocking * ONE + scaled((c * j, t) for c, t, j in rows)
    start = max(sum(c for c, _, _ in rows), -(-early // (ONE - _load(streams))) if full < 0 else 0)
    return least_fixed_point(
        lambda length: blocking - sum(c * (-(length + j) // t) for c, t, j in rows), start, len(rows), steps
    )


def _excess(streams: Sequence[Stream]) -> int:
    return excess([(s.wcet, s.period) for s in streams])


def _load(streams: Sequence[Stream]) -> int:
    return scaled((s.wcet, s.period) for s in streams)


def _fixed_priority(streams: Sequence[Stream], at: int, since: Sequence[int], steps: Steps) -> tuple[Bound, ...] | None:
    """Equal priorities in any order: each may go before each other.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996; Davis, Burns, Bril and Lukkien, Real-Time
        Systems 35(3), 2007.
    """
    own = streams[at]
    rivals = [s for number, s in enumerate(streams) if number != at and s.priority >= own.priority]
    blocking = max((s.wcet - 1 for s in streams if s.priority < own.priority), default=0)
    if any(s.is_wild for s in (own, *rivals)) or _excess([own, *rivals]) > 0:
        return None
    busy = busy_period([own, *rivals], blocking, steps)
    repeats = _repeats(own, rivals, busy)
    best = [0] * len(since)
    for q, start in _starts(own, rivals, blocking, steps):
        event = q * own.period - own.delay
        best = [max(most, start + own.wcet - max(-x, event)) for most, x in zip(best, since, strict=True)]
        following = event + own.period
        if q + 1 == repeats or (busy is not None and _is_over(busy, following, best, since)):
            break
    return tuple(Bound(most, blocking) for most in best)


def _repeats(own: Stream, rivals: Sequence[Stream], busy: int | None) -> int:
    """From how many kernels of the task on a busy window is no worse than it was."""
    return -(-own.delay // own.period) + _hyperperiod((own, *rivals), busy) // own.period


def _hyperperiod(streams: Sequence[Stream], busy: int | None) -> int:
    """The least common multiple of the periods, or of the first ones where that is as long as the busy window."""
    found = 1
    for stream in streams:
        found = lcm(found, stream.period)
        if busy is not None and found >= busy:
            break
    return found


def _is_over(busy: int, event: int, best: Sequence[int], since: Sequence[int]) -> bool:
    """Whether no kernel whose event is no earlier than `event` can be worse: all end with the busy window."""
    return event >= busy or all(busy - max(-x, event) <= most for most, x in zip(best, since, strict=True))


def _starts(own: Stream, rivals: Sequence[Stream], blocking: int, steps: Steps) -> Iterator[tuple[int, int]]:
    """For q = 0, 1, ...: the latest start of a kernel after q others of its task."""
    rows = [(s.wcet, s.period, s.delay) for s in rivals]
    spare = ONE - _load(rivals)
    least = blocking * ONE + scaled((c * (j + 1), t) for c, t, j in rows)
    q = start = 0
    while True:
        before = blocking + q * own.wcet
        start = max(start, -(-(least + q * own.wcet * ONE) // spare))
        start = least_fixed_point(_demand(before, rows), start, len(rows) + 1, steps)
        yield q, start
        q, start = q + 1, start + own.wcet


def _demand(before: int, rows: Sequence[tuple[int, int, int]]) -> Callable[[int], int]:
    return lambda w: before + sum(c * ((w + j) // t + 1) for c, t, j in rows)


class _Edf:
    """Kernels in the order of their absolute deadlines, equal ones in any order.

    A release here is the instant that deadlines count from, after which the kernel may still not be ready for the lag.
    With deadlines of 0 after the moment at which a kernel is ready, this is first in, first out.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996; Spuri, INRIA RR-2873, 1996, for jitter.
    """

    def __init__(self, streams: Sequence[Stream], at: int, steps: Steps) -> None:
        self.streams, self.own, self.steps = streams, streams[at], steps
        self.rivals = [s for number, s in enumerate(streams) if number != at]

    def bounds(self, since: Sequence[int]) -> tuple[Bound, ...] | None:
        """The worst over all releases, counted from the start of the window, that are worth a look."""
        if _excess(self.streams) > 0:
            return None
        own = self.own
        busy = busy_period(self.streams, 0, self.steps)
        horizon = self._horizon(busy)
        best = [Bound(own.wcet + x, 0) for x in since]
        for release in self._releases():
            latest = [max(-x, release - max(0, x - own.lag)) for x in since]
            if release >= horizon or (
                busy is not None and all(busy - late <= most.response for late, most in zip(latest, best, strict=True))
            ):
                break
            self._look_at(release, latest, best)
        return tuple(best)

    def _look_at(self, release: int, latest: Sequence[int], best: list[Bound]) -> None:
        """Keep in `best` what is worse for a kernel with this release, whatever number q of others is before it."""
        own, due = self.own, release + self.own.deadline
        rows = [
            (s.wcet, s.period, s.delay, due - s.deadline) for s in self.rivals if due - s.deadline >= -s.lag
        ]  # kernels with a later deadline go before only if they have started
        blocking = max((s.wcet - 1 for s in self.rivals if s.deadline > due + s.lag), default=0)
        every = sum(c * ((last + j) // t + 1) for c, t, j, last in rows)
        self.steps.spend(len(self.rivals) + 1)
        for q in range((release + own.lag) // own.period, (release + own.delay) // own.period + 1):
            self.steps.spend(1)
            before = blocking + q * own.wcet
            events = [max(late, q * own.period - own.delay) for late in latest]
            if any(before + every + own.wcet - event > most.response for event, most in zip(events, best, strict=True)):
                end = self._start(before, rows, max(before, release)) + own.wcet
                for index, event in enumerate(events):
                    if end - event > best[index].response:
                        best[index] = Bound(end - event, blocking)

    def _start(self, before: int, rows: Sequence[tuple[int, int, int, int]], least: int) -> int:
        """The latest start of a kernel after `before` ticks of others and those of `rows` that are in time."""

        def demand(w: int) -> int:
            return before + sum(c * ((min(w, last) + j) // t + 1) for c, t, j, last in rows)

        return least_fixed_point(demand, least, len(rows) + 1, self.steps)

    def _horizon(self, busy: int | None) -> int:
        """Where the releases start over that a busy window repeats, or where it ends if that comes first."""
        regular = max((s.deadline - self.own.deadline - s.lag for s in self.rivals), default=0)
        repeated = max(0, regular) + _hyperperiod(self.streams, busy)
        return repeated if busy is None else min(busy, repeated)

    def _releases(self) -> Iterator[int]:
        """Ascending: wherever one more kernel can go before."""
        own = self.own
        sources = [iter([-own.lag]), multiples(-own.delay, own.period, -own.lag)]
        for s in self.rivals:
            first = s.deadline - own.deadline - s.lag
            if first >= -own.lag:
                sources.append(iter([first]))
            sources.append(multiples(first - s.jitter, s.period, max(first, -own.lag)))
        last = None
        for release in merge(*sources):
            self.steps.spend(1)
            if release != last:
                yield release
            last = release
