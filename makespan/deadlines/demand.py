"""What one task asks of a resource in every activation of its family, and how many activations can meet there."""

from collections.abc import Iterator
from typing import NamedTuple

from makespan.deadlines.known import KnownBounds
from makespan.deadlines.operations import TaskOperation
from makespan.deadlines.slices import with_switches
from makespan.deadlines.task import GpuTask, SegmentKind, Slices, core_label


class Demand(NamedTuple):
    """Work of at most `work` ticks in every activation, from `first` on.

    Args:
        end: from the event until it is done, at most; None: nobody knows.
        first: the first operation that it belongs to.
        last: the last one.
    """

    task: GpuTask
    work: int
    end: int | None
    first: TaskOperation
    last: TaskOperation

    @property
    def late(self) -> int | None:
        """From when it may begin until it is done, at most."""
        return None if self.end is None else self.end - self.first.earliest

    @property
    def at_once(self) -> int | None:
        """Return how many jobs may wait for it or have it run at one instant, at most; None: nobody knows.

        A job whose thread spins keeps the CPU time of the next one from its core, and so what comes after that.
        """
        before = self.task.segments[: self.first.index]
        if self.task.spins and any(segment.kind is SegmentKind.CPU for segment in before):
            return 1
        return None if self.late is None else max(1, -(self.late // -self.task.period))


def demands(known: KnownBounds, place: str, head: str, slices: Slices | None = None) -> tuple[Demand, ...]:
    """What a family asks of a resource; a thread that spins asks for its core without a break.

    With `slices` the switches to its contexts are included.
    """

    def found() -> tuple[Demand, ...]:
        return tuple(
            demand for task in known.graph.families_at[place][head] for demand in _task_work(known, place, task, slices)
        )

    return known.kept((demands, place, head, slices), (head,), found)


def _task_work(known: KnownBounds, place: str, task: GpuTask, slices: Slices | None) -> Iterator[Demand]:
    graph = known.graph
    if task.spins and place == core_label(task.core):
        yield _spinning_work(known, task)
        return
    for number in graph.of[task.name]:
        operation = graph.operations[number]
        if operation.place == place:
            work = operation.wcet if slices is None else with_switches(operation.wcet, slices)
            yield Demand(task, work, known.end[number], operation, operation)


def _spinning_work(known: KnownBounds, task: GpuTask) -> Demand:
    """Return all segments of a job with their launches and their waiting for servers, no more than the job takes."""
    numbers = known.graph.of[task.name]
    first, last = known.graph.operations[numbers[0]], known.graph.operations[numbers[-1]]
    work, end, since = known.whole(task), known.end[last.number], known.since[last.number]
    if work is None or end is None or since is None:
        return Demand(task, 0, None, first, last)
    return Demand(task, min(work, since, end), end, first, last)


def overlapping_activations(length: int, period: int) -> int:
    """Return how many others, earlier or later by whole periods at least, are less than `length` away.

    >>> activations(10, 10), activations(11, 10)
    (0, 1)
    """
    return max(0, -(length // -period) - 1)
