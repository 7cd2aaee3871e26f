"""The segments of all tasks as one graph, and the bounds on each of them that are known so far.

An *activation* is one job of the task at the head of a chain by data, with the jobs of all tasks that it starts; those
tasks are a *family*. A task that no data starts is a family by itself. An *operation* is a segment of every activation.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from makespan.deadlines.chains import heads, predecessors
from makespan.deadlines.task import GpuTask, SegmentKind, ServerPolicy, Slices, TaskSet, core_label
from makespan.host.errors import InputError


@dataclass(frozen=True, slots=True)
class TaskOperation:
    """A segment of every activation; times in ticks.

    Args:
        number: Its number in `Graph.operations`.
        index: The index of the segment in its task.
        gap: The longest time from the ends of its sources, or the arrival, until it is ready.
        resource: The name of its resource, with what that is.
        sources: The operations whose ends it waits for; the head of a family has none.
        earliest: The least time from the event until it is ready: every operation takes a tick.
        is_handed_over: Whether it is ready at the instant at which its only source leaves the same server.
    """

    number: int
    task: GpuTask
    index: int
    wcet: int
    gap: int
    resource: str
    sources: tuple[int, ...]
    earliest: int
    is_handed_over: bool


class Graph:
    """All operations, each after its sources; nothing here changes while bounds are computed.

    Args:
        starts: The tasks whose ends start a task, for each task that data starts.
        of: The operations of each task, in their order.
        family: The head of each task.
        before: The tasks whose ends a task waits for, directly or not.
        slices: The slices of the partitions that contexts take in turn.
    """

    def __init__(self, task_set: TaskSet) -> None:
        if task_set.unassigned:
            # nothing bounds a kernel on an unknown partition
            raise InputError(f"task {task_set.unassigned[0].name} has no partition: assign it, then analyse")
        self.tasks = task_set
        self.starts: Mapping[str, tuple[str, ...]] = predecessors(task_set)
        first = heads(self.starts)
        self.family = {task.name: first.get(task.name, task.name) for task in task_set.tasks}
        self.operations: list[TaskOperation] = []
        self.of: dict[str, tuple[int, ...]] = {}
        self.before: dict[str, frozenset[str]] = {}
        self._between: dict[tuple[int, int], int] = {}
        self._places = {server.name: server.resource for server in task_set.servers}
        self.policies: Mapping[str, ServerPolicy] = {server.resource: server.policy for server in task_set.servers}
        sliced = {partition.resource: partition.slices for partition in task_set.partitions}
        self.slices: Mapping[str, Slices] = {resource: how for resource, how in sliced.items() if how is not None}
        for name in (*(name for name in task_set.by_name if name not in self.starts), *self.starts):
            self._add(task_set.by_name[name])

    def _add(self, task: GpuTask) -> None:
        starts = self.starts.get(task.name, ())
        self.before[task.name] = frozenset(starts).union(*(self.before[name] for name in starts))
        waits = tuple(self.of[name][-1] for name in starts)
        numbers = []
        for index, segment in enumerate(task.segments):
            resource = core_label(task.core) if segment.resource is None else self._places[segment.resource]
            gap = segment.delay + (0 if index else task.jitter)  # jitter delays the first segment, like a launch
            number, sources = len(self.operations), [self.operations[wait] for wait in waits]
            earliest = max((source.earliest + 1 for source in sources), default=0)  # each takes a tick at least
            # With no gap the server that a source leaves chooses when this one is ready: nothing has
            # begun between.
            is_handed_over = (
                resource in self.policies and not gap and [source.resource for source in sources] == [resource]
            )
            self.operations.append(
                TaskOperation(number, task, index, segment.wcet, gap, resource, waits, earliest, is_handed_over)
            )
            numbers.append(number)
            waits = (number,)
        self.of[task.name] = tuple(numbers)

    @cached_property
    def at(self) -> Mapping[str, tuple[int, ...]]:
        """Return the operations on each resource."""
        found: dict[str, list[int]] = {resource: [] for resource in self.policies}
        for operation in self.operations:
            found.setdefault(operation.resource, []).append(operation.number)
        return {resource: tuple(numbers) for resource, numbers in found.items()}

    @cached_property
    def families(self) -> Mapping[str, tuple[GpuTask, ...]]:
        """Return the tasks of each family, by its head."""
        found: dict[str, list[GpuTask]] = {}
        for name in self.of:
            found.setdefault(self.family[name], []).append(self.tasks.by_name[name])
        return {head: tuple(tasks) for head, tasks in found.items()}

    @cached_property
    def residents(self) -> Mapping[str, tuple[GpuTask, ...]]:
        """Return the tasks that may use each resource; a thread that spins uses its core even without CPU time."""
        found: dict[str, list[GpuTask]] = {}
        for task in self.tasks.tasks:
            places = {self.operations[number].resource for number in self.of[task.name]}
            for resource in places if task.core is None else places | {core_label(task.core)}:
                found.setdefault(resource, []).append(task)
        return {resource: tuple(tasks) for resource, tasks in found.items()}

    @cached_property
    def families_at(self) -> Mapping[str, Mapping[str, tuple[GpuTask, ...]]]:
        """Return the residents of each resource, by the head of their family, each after those that start it."""
        found: dict[str, dict[str, tuple[GpuTask, ...]]] = {}
        for resource, residents in self.residents.items():
            names = {task.name for task in residents}
            found[resource] = {
                head: tuple(task for task in self.families[head] if task.name in names)
                for head in dict.fromkeys(self.family[task.name] for task in residents)
            }
        return found

    @cached_property
    def rivals(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Return the heads of all other families, for each resource and each family that uses it."""
        return {
            resource: {head: tuple(other for other in heads if other != head) for head in heads}
            for resource, heads in self.families_at.items()
        }

    def earliest(self, task: GpuTask) -> int:
        """Return the least time from the event until a job of the task arrives."""
        return self.operations[self.of[task.name][0]].earliest

    def is_ranked(self, resource: str) -> bool:
        """Return whether fixed priorities decide on this resource."""
        return self.policies.get(resource, ServerPolicy.FIXED_PRIORITY) is ServerPolicy.FIXED_PRIORITY

    def is_server(self, resource: str) -> bool:
        """Return whether the resource serves one segment at a time, to its end; a core does not."""
        return resource in self.policies

    def is_concurrent(self, one: GpuTask, other: GpuTask) -> bool:
        """Return whether jobs of two tasks in one activation can overlap: neither waits for the other."""
        a, b = one.name, other.name
        return a != b and self.family[a] == self.family[b] and a not in self.before[b] and b not in self.before[a]

    def is_before(self, one: TaskOperation, other: TaskOperation) -> bool:
        """Return whether, in every activation, `one` has ended when `other` is ready."""
        if one.task is other.task:
            return one.index < other.index
        return one.task.name in self.before[other.task.name]

    def between(self, one: int, other: int) -> int:
        """Return how many operations run, at least, from the end of `one` until `other`, which needs it, is ready."""
        if (one, other) not in self._between:
            # sources come first in the numbering, so one pass finds all longest ways
            most = {one: 0}  # on the longest way from it to each
            for operation in self.operations[one + 1 : other + 1]:
                if ways := [most[source] for source in operation.sources if source in most]:
                    most[operation.number] = max(ways) + 1
            self._between[one, other] = most[other] - 1
        return self._between[one, other]

    def run(self, number: int) -> tuple[int, ...]:
        """Return the operations that lead to this one, from the head or the first that waits for several, and it."""
        found = [number]
        while len(sources := self.operations[found[-1]].sources) == 1:
            found.append(sources[0])
        return tuple(reversed(found))

    def paths(self, number: int, most: int) -> tuple[tuple[int, ...], ...]:
        """Return all ways from the head to an operation; none if there are more than `most`."""
        ways: list[tuple[int, ...]] = [(number,)]
        done: list[tuple[int, ...]] = []
        while ways:
            way = ways.pop()
            sources = self.operations[way[0]].sources
            if not sources:
                done.append(way)
            ways += [(source, *way) for source in sources]
            if len(ways) + len(done) > most:
                return ()  # too many: what the caller computes without them is a bound, too
        return tuple(done)


def urgency(task: GpuTask) -> int:
    """Return a number that is larger for what goes first where fixed priorities decide."""
    return 0 if task.priority is None else task.priority


_ValueT = TypeVar("_ValueT")


class BoundTable:
    """Bounds on every operation by its number, None where there is none; at first what everything takes alone.

    Args:
        end: From the event, the arrival at the head of its family, until its end.
        since: From the arrival of its own task until its end.
        span: From when it is ready until its end.
        version: A number for each family, by its head, that changes with its bounds.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.end: list[int | None] = []
        self.since: list[int | None] = []
        self.span: list[int | None] = []
        self.version = dict.fromkeys(graph.families, 0)
        self._kept: dict[Hashable, tuple[tuple[int, ...], Any]] = {}
        for operation in graph.operations:
            # alone: no smaller value can be a bound, so the least fixed point lies above
            took = operation.gap + operation.wcet
            self.end.append((self._latest(operation.sources) or 0) + took)
            self.since.append(took + (self.since[-1] or 0 if operation.index else 0))
            self.span.append(operation.wcet)

    def kept(self, key: Hashable, heads: Iterable[str], value: Callable[[], _ValueT]) -> _ValueT:
        """Return a value that depends on bounds of these families only, computed anew when one of them changes."""
        state = tuple(map(self.version.__getitem__, heads))
        before = self._kept.get(key)
        if before is None or before[0] != state:  # equal versions mean equal bounds, so the old value is right
            before = self._kept[key] = state, value()
        found: _ValueT = before[1]
        return found

    def of(self, operation: TaskOperation) -> tuple[int | None, int | None, int | None]:
        """Return the bounds on `end`, `since` and `span` of an operation."""
        number = operation.number
        return self.end[number], self.since[number], self.span[number]

    def ready(self, operation: TaskOperation) -> int | None:
        """Return the longest time from the event until an operation is ready."""
        latest = self._latest(operation.sources)
        return None if latest is None else latest + operation.gap

    def arrival(self, task: GpuTask) -> int | None:
        """Return the longest time from the event until the task's job arrives."""
        return self._latest(self.graph.operations[self.graph.of[task.name][0]].sources)

    def lag(self, operation: TaskOperation) -> int | None:
        """Return the longest time from the arrival of its task until an operation is ready."""
        if not operation.index:
            return operation.gap
        before = self.since[operation.number - 1]
        return None if before is None else before + operation.gap

    def whole(self, task: GpuTask) -> int | None:
        """Return the CPU time of a job and all its launches, copies and kernels with their waiting."""
        parts = zip(self.graph.of[task.name], task.segments, strict=True)
        spans = [self.span[number] for number, segment in parts if segment.kind is not SegmentKind.CPU]
        known = [span for span in spans if span is not None]
        delays = sum(segment.delay for segment in task.segments)
        return task.cpu + delays + sum(known) if len(known) == len(spans) else None

    def _latest(self, sources: tuple[int, ...]) -> int | None:
        known = [end for source in sources if (end := self.end[source]) is not None]
        return max(known, default=0) if len(known) == len(sources) else None
