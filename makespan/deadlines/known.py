"""What is known so far of every operation while bounds rise to their common fixed point; times in ticks."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from makespan.deadlines.operations import Graph, TaskOperation
from makespan.deadlines.task import GpuTask, SegmentKind

_ValueT = TypeVar("_ValueT")


class KnownBounds:
    """Bounds on every operation, by its number, None where there is none; at first what everything takes alone.

    Args:
        end: from the event, the arrival at the head of its family, until its end.
        since: from the arrival of its own task until its end.
        span: from when it is ready until its end.
        version: a number for each family, by its head, that changes with its bounds.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.end: list[int | None] = []
        self.since: list[int | None] = []
        self.span: list[int | None] = []
        self.version = dict.fromkeys(graph.families, 0)
        self._kept: dict[Hashable, tuple[tuple[int, ...], Any]] = {}
        for operation in graph.operations:
            took = operation.gap + operation.wcet
            self.end.append((self._latest(operation.sources) or 0) + took)
            self.since.append(took + (self.since[-1] or 0 if operation.index else 0))
            self.span.append(operation.wcet)

    def kept(self, key: Hashable, heads: Iterable[str], value: Callable[[], _ValueT]) -> _ValueT:
        """Return a value that depends on what is known of some families only, computed anew when that changes."""
        state = tuple(map(self.version.__getitem__, heads))
        before = self._kept.get(key)
        if before is None or before[0] != state:
            before = self._kept[key] = state, value()
        found: _ValueT = before[1]
        return found

    def of(self, operation: TaskOperation) -> tuple[int | None, int | None, int | None]:
        """Return all that is known of an operation."""
        number = operation.number
        return self.end[number], self.since[number], self.span[number]

    def ready(self, operation: TaskOperation) -> int | None:
        """From the event until an operation is ready, at most."""
        latest = self._latest(operation.sources)
        return None if latest is None else latest + operation.gap

    def arrival(self, task: GpuTask) -> int | None:
        """From the event until the task's job arrives, at most."""
        return self._latest(self.graph.operations[self.graph.of[task.name][0]].sources)

    def lag(self, operation: TaskOperation) -> int | None:
        """From the arrival of its task until an operation is ready, at most."""
        if not operation.index:
            return operation.gap
        before = self.since[operation.number - 1]
        return None if before is None else before + operation.gap

    def whole(self, task: GpuTask) -> int | None:
        """CPU time of a job and all its launches, copies and kernels with their waiting."""
        found = task.cpu
        for number, segment in zip(self.graph.of[task.name], task.segments, strict=True):
            if segment.kind is not SegmentKind.CPU:
                span = self.span[number]
                if span is None:
                    return None
                found += segment.delay + span
        return found

    def _latest(self, sources: tuple[int, ...]) -> int | None:
        latest = 0
        for source in sources:
            end = self.end[source]
            if end is None:
                return None
            latest = max(latest, end)
        return latest
