"""The work that one family can demand of a resource, in each activation and in any window of a given length.

Source: docs/schedulability_theory.md, lemmas 2 and 3.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from makespan.deadlines.arrivals import StepFunction
from makespan.deadlines.operations import BoundTable, Graph, TaskOperation
from makespan.deadlines.task import GpuTask, SegmentKind, ServerPolicy, Slices, core_label


class Demand(NamedTuple):
    """Work of at most `work` ticks in every activation, from the operation `first` on.

    Args:
        end: The longest time from the event until it is done; None if no bound is known.
        first: The first operation that it belongs to.
        last: The last operation that it belongs to.
    """

    task: GpuTask
    work: int
    end: int | None
    first: TaskOperation
    last: TaskOperation

    @property
    def late(self) -> int | None:
        """Return the longest time from when it may begin until it is done."""
        return None if self.end is None else self.end - self.first.earliest

    @property
    def at_once(self) -> int | None:
        """Return how many jobs, at most, wait for it or run it at one instant; None if no bound is known.

        A job whose thread spins keeps the CPU time of the next one from its core, and so what comes after that.
        """
        before = self.task.segments[: self.first.index]
        if self.task.spins and any(segment.kind is SegmentKind.CPU for segment in before):
            return 1
        # events in `late` ticks, T apart
        return None if self.late is None else max(1, -(self.late // -self.task.period))


def demands(known: BoundTable, resource: str, head: str, slices: Slices | None = None) -> tuple[Demand, ...]:
    """Return the demand of a family on a resource; a thread that spins demands its core without a break.

    With `slices` the switches to its contexts are included.
    """

    def found() -> tuple[Demand, ...]:
        return tuple(
            demand
            for task in known.graph.families_at[resource][head]
            for demand in _task_work(known, resource, task, slices)
        )

    return known.kept((demands, resource, head, slices), (head,), found)


def _task_work(known: BoundTable, resource: str, task: GpuTask, slices: Slices | None) -> Iterator[Demand]:
    graph = known.graph
    # on its core a spinning job is one segment from release to end
    if task.spins and resource == core_label(task.core):
        yield _spinning_work(known, task)
        return
    for number in graph.of[task.name]:
        operation = graph.operations[number]
        if operation.resource == resource:
            work = operation.wcet if slices is None else with_switches(operation.wcet, slices)
            yield Demand(task, work, known.end[number], operation, operation)


def _spinning_work(known: BoundTable, task: GpuTask) -> Demand:
    """Return all segments of a job with launches and waiting for servers, no more than the job takes."""
    numbers = known.graph.of[task.name]
    first, last = known.graph.operations[numbers[0]], known.graph.operations[numbers[-1]]
    work, end, since = known.whole(task), known.end[last.number], known.since[last.number]
    if work is None or end is None or since is None:
        return Demand(task, 0, None, first, last)
    return Demand(task, min(work, since, end), end, first, last)  # each of the three bounds the time that it can spin


def with_switches(work: int, slices: Slices) -> int:
    """Return the time of a kernel with the switches to its context, at most, whatever comes between its slices.

    >>> with_switches(25, Slices(10, 2))
    31
    """
    return work + -(-work // slices.length) * slices.switch  # first in its context for one turn a slice: theorem 10


def overlapping_activations(length: int, period: int) -> int:
    """Return how many other activations, whole periods earlier or later, are less than `length` away.

    >>> overlapping_activations(10, 10), overlapping_activations(11, 10)
    (0, 1)
    """
    return max(0, -(length // -period) - 1)  # those n >= 1 with n T < length


MOST_CASES = 12
"""Operations of a family on one resource whose order in a window is looked at."""


class WindowWork(NamedTuple):
    """Work in a window that begins with this work or with what comes before it in its activation.

    Args:
        start: The time from the start of the window at which it may begin in the first activation; None if it was
            before.
        first: The time at which it may begin in the next activation, less a period.
    """

    work: int
    start: int | None
    first: int


class Workload(NamedTuple):
    """The work of one family on one resource in a window.

    Args:
        stairs: The work for each length of the window; None where it is not known.
        most: A bound for any window; None without one.
    """

    stairs: StepFunction | None
    most: int | None

    def within(self, length: int) -> int:
        """Return the most ticks that the work takes of a window of this length."""
        if self.stairs is None:
            if self.most is None:
                raise ValueError("nothing bounds what a family asks for")
            return self.most
        found = self.stairs.at(length)
        return found if self.most is None else min(found, self.most)


class PeriodicWork(NamedTuple):
    """The work of a family that comes once in a period.

    Args:
        rows: All of it, each work with how much later it may be than at the earliest.
        joint: All of it as one row.
        cases: All that can follow, for each operation that may be the first one in the window. It is empty where the
            order is not known, or where activations overlap.
    """

    period: int
    rows: tuple[tuple[int, int], ...]
    joint: tuple[int, int]
    cases: tuple[tuple[WindowWork, ...], ...]

    @property
    def stairs(self) -> StepFunction:
        """Return `within` as a table."""
        once = [row.start + 1 for case in self.cases for row in case if row.start is not None]
        later = [row.first + 1 for case in self.cases for row in case]
        again = [1 - late for _, late in (self.joint, *self.rows)]
        return StepFunction.of(self.within, self.period, self.joint[0], once, again + later)

    def within(self, length: int) -> int:
        """Return the most ticks that the work takes of a window of this length, the least of all bounds.

        Source: Chen, Nelissen, Huang and others, Real-Time Systems 55(1), 2019; Bletsas, Audsley, Huang, Chen
            and Nelissen, Leibniz Transactions on Embedded Systems 5(1), 2018.
        """
        work, late = self.joint
        found = -((length + late) // -self.period) * work  # lemma 2 for all operations together
        if len(self.rows) > 1:
            # lemma 2 for each
            found = min(found, sum(-((length + late) // -self.period) * work for work, late in self.rows))
        if self.cases:
            # lemma 3: the worst first one
            found = min(found, max(_begun_work(case, self.period, length) for case in self.cases))
        return found


def _begun_work(case: Sequence[WindowWork], period: int, length: int) -> int:
    """Return the work that begins in a window, counted whole."""
    found = 0
    for work, start, first in case:
        later = -((first - length) // period) - 1  # activations n >= 1 with n period + first < length
        found += work * ((start is not None and start < length) + max(0, later))
    return found


def work_in_any_window(known: BoundTable, demands: Sequence[Demand], resource: str, stages: int) -> Workload | None:
    """Return the work in any window, where each operation begins so early that it is done by its bound.

    The result is None where nothing bounds the work.

    Args:
        stages: The number of operations that become ready in the window: on a FIFO server only what is there at these
            instants goes before them.
    """
    graph, head = known.graph, known.graph.family[demands[0].task.name]
    stages = stages if graph.policies.get(resource) is ServerPolicy.FIFO else 0
    key = work_in_any_window, resource, stages, *((demand.first.number, demand.work) for demand in demands)
    return known.kept(key, (head,), lambda: _work_in_any_window(graph, demands, stages))


def _work_in_any_window(graph: Graph, demands: Sequence[Demand], stages: int) -> Workload | None:
    """Return the same; `stages` is 0 unless the resource is a FIFO server."""
    period = demands[0].task.period
    most = _waiting_work(demands, stages) if stages else None  # first in, first out: later work cannot go before
    ends = [demand.end for demand in demands if demand.end is not None]
    if len(ends) < len(demands) or sum(demand.work for demand in demands) > period:  # lemma 2 needs c <= T
        return None if most is None else Workload(None, most)
    # the jitter of lemma 2 is R - c, not R
    begins = [end - demand.work for demand, end in zip(demands, ends, strict=True)]
    rows = tuple((d.work, max(0, begin - d.first.earliest)) for d, begin in zip(demands, begins, strict=True))
    work = sum(work for work, _ in rows)
    latest = max(ends) - min(demand.first.earliest for demand in demands)
    cases = _orders(graph, demands, begins, is_ready=False) if latest <= period else ()  # lemma 3 needs E_m - e_1 <= T
    stairs = PeriodicWork(period, rows, (work, max(0, latest - work)), cases).stairs
    return Workload(stairs if most is None or stairs.values[0] < most else None, most)


def _waiting_work(demands: Sequence[Demand], stages: int) -> int | None:
    """Return the work that is waiting or running already when operations become ready."""
    known = [times * demand.work for demand in demands if (times := demand.at_once) is not None]
    return stages * sum(known) if len(known) == len(demands) else None


def work_since_idle(known: BoundTable, demands: Sequence[Demand]) -> Workload | None:
    """Return the work in a window before which everything that had been ready was done; None without a bound."""
    key = work_since_idle, *((demand.first.number, demand.work) for demand in demands)
    return known.kept(key, (known.graph.family[demands[0].task.name],), lambda: _work_since_idle(known, demands))


def _work_since_idle(known: BoundTable, demands: Sequence[Demand]) -> Workload | None:
    rows, begins = [], []
    for demand in demands:
        ready = known.ready(demand.first)
        if ready is None or demand.end is None:
            return None
        begins.append(ready)
        # after idle time only what becomes ready in the window counts
        rows.append((demand.work, ready - demand.first.earliest))
    work, period = sum(work for work, _ in rows), demands[0].task.period
    latest = max(begins) - min(demand.first.earliest for demand in demands)
    cases = _orders(known.graph, demands, begins, is_ready=True)  # theorem 9 asks nothing of T here
    return Workload(PeriodicWork(period, tuple(rows), (work, latest), cases).stairs, most=None)


def _orders(
    graph: Graph, demands: Sequence[Demand], begins: Sequence[int], *, is_ready: bool
) -> tuple[tuple[WindowWork, ...], ...]:
    """Return the cases of lemma 3, one for each operation that may be the first of its family in a window.

    Args:
        begins: The latest time at which each begins or, with `is_ready`, is ready.
    """
    if not 1 < len(demands) <= MOST_CASES:
        return ()
    if not all(graph.is_before(a.first, b.first) for a, b in pairwise(demands)):  # concurrent ones have no order
        return ()
    early = demands[0].first.earliest
    at = [0]  # when each begins, if all are as close together as they can be
    for one, other in pairwise(demands):  # what is between them takes a tick each
        at.append(at[-1] + one.work + graph.between(one.last.number, other.first.number))
    if at[-1] > demands[0].task.period:  # the next activation could begin between them
        return ()
    found = []
    for k, begin in enumerate(begins):
        latest = begin if is_ready else begins[-1] - at[-1] + at[k]  # only the end of the last one counts
        found.append(
            tuple(
                WindowWork(demand.work, at[i] - at[k] if i >= k else None, early - latest + at[i])
                for i, demand in enumerate(demands)
            )
        )
    return tuple(found)
