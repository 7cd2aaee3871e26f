"""What one task asks of a resource in every activation of its family, and how many activations can meet there."""

from collections.abc import Iterator
from typing import NamedTuple

from makespan.schedulability.known import Known
from makespan.schedulability.operations import CORE, Graph, Operation
from makespan.schedulability.slices import with_switches
from makespan.schedulability.task import Kind, Slices, Task


class Demand(NamedTuple):
    """Work of at most `work` ticks in every activation, from `first` on.

    Args:
        end: from the event until it is done, at most; None: nobody knows.
        first: the first operation that it belongs to.
        last: the last one.
    """

    task: Task
    work: int
    end: int | None
    first: Operation
    last: Operation

    @property
    def late(self) -> int | None:
        """From when it may begin until it is done, at most."""
        return None if self.end is None else self.end - self.first.earliest

    @property
    def at_once(self) -> int | None:
        """How many jobs may wait for it or have it run at one instant, at most; None: nobody knows.

        A job whose thread spins keeps the CPU time of the next one from its core, and so what comes after that.
        """
        before = self.task.segments[: self.first.index]
        if self.task.spins and any(segment.kind is Kind.CPU for segment in before):
            return 1
        return None if self.late is None else max(1, -(self.late // -self.task.period))


def demands(known: Known, place: str, task: Task, slices: Slices | None = None) -> Iterator[Demand]:
    """What a task asks of a resource; a thread that spins asks for its core without a break.

    With `slices` the switches to its context are included.
    """
    graph = known.graph
    if task.spins and place == f"{CORE} {task.core}":
        yield _spun(known, place, task)
        return
    for number in graph.of[task.name]:
        operation = graph.operations[number]
        if operation.place == place:
            work = operation.wcet if slices is None else with_switches(operation.wcet, slices)
            yield Demand(task, work, known.end[number], operation, operation)


def _spun(known: Known, place: str, task: Task) -> Demand:
    """All segments of a job with their launches and their waiting for servers."""
    numbers = known.graph.of[task.name]
    work, end, whole = 0, known.end[numbers[-1]], known.since[numbers[-1]]
    for number in numbers:
        operation, span = known.graph.operations[number], known.span[number]
        if operation.place == place:
            work += operation.wcet
        elif span is None or whole is None:
            end = None
        else:
            work += span + task.segments[operation.index].delay
    if whole is not None and end is not None:
        work = min(work, whole, end)
    return Demand(task, work, end, known.graph.operations[numbers[0]], known.graph.operations[numbers[-1]])


def activations(length: int, period: int) -> int:
    """How many others, earlier or later by whole periods at least, are less than `length` away.

    >>> activations(10, 10), activations(11, 10)
    (0, 1)
    """
    return max(0, -(length // -period) - 1)


def is_early(graph: Graph, demand: Demand, last: Operation) -> bool:
    """Whether work of a later activation may go before the last operation of a path on its resource."""
    if demand.task is last.task and not graph.is_server(last.place):
        return False
    return demand.first is not last and not graph.is_before(last, demand.first)
