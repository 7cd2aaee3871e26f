"""A second opinion on kernels: the analyses of the PROSA project, as the package `response-time-analysis` has them.

Its theorems are proven in Rocq; its program is not. It gets our own arrival curves, which are exact for every size of
number and different for every task: its own ones divide floating-point numbers, and it drops a task's equals with it.

Source: Bozhko and Brandenburg, Abstract Response-Time Analysis, ECRTS 2020.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, cast

from makespan.deadlines.arrivals import Stream, arrivals_within, first_multiple
from makespan.deadlines.task import ServerPolicy


@dataclass(frozen=True)
class ArrivalCurve:
    """The most kernels that become ready in an interval; `number` tells streams with equal times apart."""

    period: int
    jitter: int
    number: int

    def max_arrivals(self, delta: int) -> int:
        """Return the most in `delta` ticks, where an interval from an instant to itself has one tick."""
        return 0 if delta <= 0 else arrivals_within(delta - 1, self.period, self.jitter)

    __call__ = max_arrivals

    def steps(self) -> Iterator[int]:
        """Yield all lengths after which one more tick has room for more kernels."""
        return chain((0,), count(first_multiple(-self.jitter, self.period, 1), self.period))


def prosa_bounds(streams: Sequence[Stream], policy: ServerPolicy) -> tuple[int | None, ...]:
    """Return the longest time from ready to end for the kernels of each stream; None without a bound.

    By `fifo` it is the longest of all for every stream. No stream may be wild or, where deadlines rule, have a lag. The
    computation may take very long near full utilisation.
    """
    from response_time_analysis import edf, fifo, fp
    from response_time_analysis.model import IdealProcessor, TaskSet, taskset

    tasks = _tasks(streams)
    members: TaskSet = taskset(*tasks)
    supply = IdealProcessor()
    if policy is ServerPolicy.FIFO:
        return (fifo.rta(members, supply).response_time_bound,) * len(streams)
    rta = fp.rta if policy is ServerPolicy.FIXED_PRIORITY else edf.rta
    return tuple(rta(members, task, supply).response_time_bound for task in tasks)


def _tasks(streams: Sequence[Stream]) -> list[Any]:
    """Return the streams as tasks of the package, shifted: it allows no deadline below 1 and no priority below 0."""
    from response_time_analysis.model import WCET, Deadline, FullyNonPreemptive, Priority, Task

    first, least = min(s.deadline for s in streams), min(s.priority for s in streams)
    return [
        Task(
            cast("Any", ArrivalCurve(s.period, s.delay, number)),
            FullyNonPreemptive(WCET(s.wcet)),
            Deadline(s.deadline - first + 1),
            Priority(s.priority - least),
        )
        for number, s in enumerate(streams)
    ]
