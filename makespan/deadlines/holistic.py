"""Bounds for all tasks at once, where they depend on each other: the least fixed point of all analyses together.

Kernels wait for CPU time before them, CPU time waits for kernels, and tasks wait for data of others. Each bound grows
with the others, so they are raised, from what a task takes alone, until nothing changes. A task whose bound grows
without end has none, and neither has a task that needs that bound.

Where events may lie between ticks every bound is rounded up to a multiple of the unit of the task set: theorem 4.

Source: Tindell and Clark, Microprocessing and Microprogramming 40, 1994. Proof: docs/schedulability_theory.md.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from makespan.deadlines.arrivals import OutOfStepsError, StepBudget, Stream
from makespan.deadlines.busy_window import PathWindows, oblivious_response
from makespan.deadlines.operations import BoundTable, Graph, TaskOperation, urgency
from makespan.deadlines.response import (
    AnalysedOperation,
    KernelBound,
    analysed_operation,
    kernel_bounds,
    operation_stream,
)
from makespan.deadlines.task import GpuTask, SegmentKind, ServerPolicy, TaskSet, least_unit
from makespan.host.errors import InputError

HORIZON = 10
"""A bound of more than this many periods, deadlines or jitters, whichever is longest in the task set, is dropped."""

MOST_ROUNDS = 200
"""Rounds in which bounds may rise; one that still rises then is dropped, for it may creep on for ever."""

MOST_PATHS = 16
"""Ways through a graph with joins that are looked at as a whole."""

WINDOW = "segments in one window (theorem 8)"
TURNS = "contexts in turn (theorem 10)"
OBLIVIOUS = "waiting as CPU time (Chen and others 2019)"

_BoundT = TypeVar("_BoundT")


@dataclass(frozen=True, slots=True)
class Response:
    """The proven response of every job of a task, in ticks.

    Args:
        total: The time from the arrival until the end of the job.
        end: The time from the event, the arrival at the head of its family, until the end of the job.
        parts: What `total` consists of.
        way: What bounds it, where it is not the theorem of the policy for a single segment.
    """

    total: int
    end: int
    parts: tuple[tuple[str, int], ...]
    way: str | None


@dataclass(frozen=True, slots=True)
class AnalysisLimits:
    """Limits at which an analysis stops undecided; none counts seconds, so that answers depend on no machine.

    Args:
        one: The additions for one bound of one kernel.
        total: The additions in all.
        attempts: The schedules that are simulated to find a late job, for each task without a proof.
        jobs: The jobs of all these schedules together.
    """

    one: int = 1_000_000
    total: int = 4_400_000
    attempts: int = 60
    jobs: int = 30_000


@dataclass(frozen=True, slots=True)
class ServerBounds:
    """The streams of a server, one for each operation, and the bounds from ready to end, None where none holds.

    Args:
        is_plain: Whether each is the first segment of its task and all that its family has there.
    """

    policy: ServerPolicy
    streams: tuple[Stream, ...]
    spans: tuple[int | None, ...]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Responses:
    """The proven responses of all tasks, None where nothing is proven.

    Args:
        stopped: The tasks for which the limits did not suffice.
        served: The bounds by the theorem of its policy, for each server.
        starts: The tasks whose ends start a task, for each task that data starts.
        lost: For each task without a bound, the task that lost its bound first among those that it needs.
    """

    of: Mapping[str, Response | None]
    stopped: frozenset[str]
    served: Mapping[str, ServerBounds]
    starts: Mapping[str, tuple[str, ...]]
    lost: Mapping[str, str]


def responses(task_set: TaskSet, limits: AnalysisLimits) -> Responses:
    """Return bounds for all tasks.

    Raises:
        InputError: a task without a partition, chains by data that contradict themselves, or a unit of too few ticks.
    """
    system = _HolisticAnalysis(task_set, limits)
    for _ in system.rounds():
        pass
    return system.found


def responses_in_time(task_set: TaskSet, limits: AnalysisLimits) -> Responses | None:
    """Return the same if every bound is within its deadline, else None, as soon as one has risen above it.

    Raises:
        InputError: as `responses`.
    """
    system = _HolisticAnalysis(task_set, limits)
    for now in system.rounds():
        for task in task_set.tasks:
            total = now[task.name]
            if total is None or total > task.deadline:
                return None
    return system.found


class _HolisticAnalysis:
    def __init__(self, task_set: TaskSet, limits: AnalysisLimits) -> None:
        self.tasks, self.limits, self.steps = task_set, limits, StepBudget(limits.total)
        self.graph = Graph(task_set)
        least = least_unit(1 + max(operation.earliest for operation in self.graph.operations))  # theorem 4
        if 1 < task_set.unit < least:
            raise InputError(f"a unit of {task_set.unit} ticks is too short for these tasks: take {least} at least")
        self.known = BoundTable(self.graph)
        self.horizon = HORIZON * max(max(t.period, t.deadline, t.jitter) for t in task_set.tasks)
        self.windows = PathWindows(self.known, self.horizon)
        self.served = [resource for resource in self.graph.policies if resource not in self.graph.slices]
        self.total = {task.name: self.known.since[self.graph.of[task.name][-1]] for task in task_set.tasks}
        self.ways: dict[str, str | None] = {}
        self.bounds: dict[int, tuple[KernelBound, ...] | None] = {}
        self.streams: dict[str, tuple[Stream, ...]] = {}
        self.asked: dict[int, tuple[AnalysedOperation | None, tuple[Stream, ...]]] = {}
        self.stopped: set[str] = set()
        self.lost: list[str] = []

    def rounds(self) -> Iterator[Mapping[str, int | None]]:
        """Raise bounds until nothing changes; only the last ones are bounds, the others are below them."""
        # The least fixed point: theorem 6. It starts from what everything takes alone and only rises, so no
        # round may be skipped.
        before, number = None, 0
        while before != (now := (self.total.copy(), *map(tuple, (self.known.end, self.known.since, self.known.span)))):
            before, number = now, number + 1
            yield self.total
            for resource in self.served:
                self._serve(resource)
            for operation in self.graph.operations:
                self._raise(operation, is_late=number > MOST_ROUNDS)

    @property
    def found(self) -> Responses:
        """Return the bounds after the last round."""
        served = {resource: self._what_is_served(resource) for resource in self.served}
        of = {task.name: self._response(task) for task in self.tasks.tasks}
        return Responses(of, frozenset(self.stopped), served, self.graph.starts, self._first_lost())

    def _what_is_served(self, resource: str) -> ServerBounds:
        operations = [self.graph.operations[number] for number in self.graph.at[resource]]
        bounds = [self.bounds[operation.number] for operation in operations]
        owns = [self.asked[operation.number][0] for operation in operations]
        return ServerBounds(
            self.graph.policies[resource],
            self.streams[resource],
            tuple(None if bound is None else bound[0].response for bound in bounds),
            all(own is not None and own.is_alone for own in owns) and not any(o.index for o in operations),
        )

    # One server, by the theorems of its policy

    def _serve(self, resource: str) -> None:
        """Bound what a server serves by the theorem of its policy, unless the last round did for the same."""
        operations = [self.graph.operations[number] for number in self.graph.at[resource]]
        streams = tuple(operation_stream(self.known, operation, self._lag(operation)) for operation in operations)
        families = [self.graph.family[operation.task.name] for operation in operations]
        self.streams[resource] = streams
        for operation, mine, head in zip(operations, streams, families, strict=True):
            rivals = tuple(s for s, other in zip(streams, families, strict=True) if other != head)
            family = [o for o, other in zip(operations, families, strict=True) if other == head]
            own = analysed_operation(self.known, operation, mine, family)
            if self.asked.get(operation.number) != (own, rivals):  # the same question has the same answer
                self.asked[operation.number] = own, rivals
                self.bounds[operation.number] = self._served(operation, own, rivals)

    def _lag(self, operation: TaskOperation) -> int | None:
        """Return the longest time from the arrival of the task until the operation is ready.

        By releases, deadlines count from the release. Then the jitter counts in full: what takes long for a job that
        came early does so for one that came late.
        """
        task = operation.task
        if not operation.index or self.graph.policies[operation.resource] is not ServerPolicy.EDF_RELEASE:
            return self.known.lag(operation)
        before = self.graph.of[task.name][: operation.index]
        since_release = _sum_of_bounds(task.segments[0].delay, self._window(task, before))
        return _sum_of_bounds(task.jitter + operation.gap, _least_bound((since_release, self.known.since[before[-1]])))

    def _served(
        self, operation: TaskOperation, own: AnalysedOperation | None, rivals: tuple[Stream, ...]
    ) -> tuple[KernelBound, ...] | None:
        if own is None:
            return None
        policy = self.graph.policies[operation.resource]
        arrival = own.stream.lag + (0 if policy is ServerPolicy.EDF else operation.task.jitter)
        since = (0, arrival, own.stream.delay)  # from readiness: span; from the arrival; from the event
        return self._limited(operation.task, lambda steps: kernel_bounds(own, rivals, policy, since, steps))

    # One operation, by windows

    def _raise(self, operation: TaskOperation, *, is_late: bool) -> None:
        """Set the least of all bounds that hold, or none if it still rises in a round that `is_late`."""
        known, number = self.known, operation.number
        if known.end[number] is None:
            return
        before = known.of(operation)
        self._bound(operation)
        if known.end[number] is None:  # the others need it, and would stay as they are
            known.since[number] = known.span[number] = None
        if before != known.of(operation):
            known.version[self.graph.family[operation.task.name]] += 1
            if is_late:  # It may creep on for ever. To drop a bound is safe: what is infinite claims nothing.
                self.stopped.add(operation.task.name)
                known.end[number] = known.since[number] = known.span[number] = None
                if self.total[operation.task.name] is not None:
                    self.total[operation.task.name] = None
                    self.lost.append(operation.task.name)

    def _bound(self, operation: TaskOperation) -> None:
        known, number, task = self.known, operation.number, operation.task
        served = self.bounds.get(number)
        spans = [self._window(task, (number,))]  # every bound that holds may be taken: the least of them counts
        ends: list[int | None] = []
        sinces: list[int | None] = []
        if served is not None:
            spans.append(self.tasks.up(served[0].response))
            sinces.append(self.tasks.up(served[1].response))
            ends.append(self.tasks.up(self.graph.earliest(task) + served[2].response))
        known.span[number] = span = _least_bound(spans)
        run = self.graph.run(number)  # every suffix of it is a path whose length bounds the same end
        firsts = [(self.graph.operations[first], run[at:]) for at, first in enumerate(run[:-1])]
        ends += [
            _sum_of_bounds(known.ready(operation), span),
            self._least_window((known.ready(o), path) for o, path in firsts),
        ]
        since = self._least_window((known.lag(first), path) for first, path in firsts if first.task is task)
        sinces += [_sum_of_bounds(known.lag(operation), span), since]
        if len(self.graph.operations[run[0]].sources) > 1:  # a join: no single path leads back to the event
            ends.append(self._longest_way(operation))
        known.end[number], known.since[number] = self._within(_least_bound(ends)), self._within(_least_bound(sinces))
        if number == self.graph.of[task.name][-1]:
            self._close(task, number, None if served is None else self.tasks.up(served[1].response))

    def _within(self, bound: int | None) -> int | None:
        return None if bound is None or bound > self.horizon else bound  # beyond it bounds grow without end

    def _window(self, task: GpuTask, path: tuple[int, ...]) -> int | None:
        length = self._limited(task, lambda steps: self.windows.length(path, steps))
        return None if length is None else self.tasks.up(length)

    def _least_window(self, windows: Iterable[tuple[int | None, tuple[int, ...]]]) -> int | None:
        """Return the least sum of when a path is ready and its length, for paths to the same end."""
        hopes = [(_sum_of_bounds(ready, self.windows.at_least(path)), ready, path) for ready, path in windows]
        least: int | None = None
        for hope, ready, path in sorted((hope, ready, path) for hope, ready, path in hopes if hope is not None):
            if least is not None and hope >= least:
                break  # lengths only grow
            length = self._window(self.graph.operations[path[-1]].task, path)
            least = _least_bound((least, _sum_of_bounds(ready, length)))
        return least

    def _longest_way(self, operation: TaskOperation) -> int | None:
        """Return a bound from the event, the worst of all ways: one of them was never free."""
        found = []
        for path in self.graph.paths(operation.number, MOST_PATHS):
            length = self._window(operation.task, path)
            if length is None:  # a bound must cover every way
                return None
            found.append(self.graph.operations[path[0]].gap + length)
        return max(found, default=None)

    def _close(self, task: GpuTask, last: int, served: int | None) -> None:
        """Set the bound of a whole job, and what it implies for the end of its last segment."""
        since = self.known.since[last]
        as_cpu_time = self._limited(task, lambda steps: oblivious_response(self.known, task, self.horizon, steps))
        total = self._within(_least_bound((since, as_cpu_time)))  # theorem 5 beside the windows
        takes_turns = any(
            self.graph.operations[number].resource in self.graph.slices for number in self.graph.of[task.name]
        )
        window = TURNS if takes_turns else WINDOW
        self.ways[task.name] = None if total == served else window if total == since else OBLIVIOUS
        end = _least_bound((self.known.end[last], _sum_of_bounds(self.known.arrival(task), total)))
        if total is None or end is None:
            self.lost.append(task.name)
            total = end = None  # both or none, since each is needed where the other is
        self.total[task.name] = self.known.since[last] = total
        self.known.end[last] = end

    def _limited(self, task: GpuTask, bound: Callable[[StepBudget], _BoundT | None]) -> _BoundT | None:
        """Return a bound, or None where the limits do not suffice for it."""
        allowed = min(self.limits.one, self.steps.left)
        steps = StepBudget(allowed)
        try:
            return bound(steps)
        except OutOfStepsError:
            self.stopped.add(task.name)
            return None
        finally:
            self.steps.left -= allowed - max(0, steps.left)  # also what a question spent that was given up

    # What is said of it

    def _response(self, task: GpuTask) -> Response | None:
        last = self.graph.of[task.name][-1]
        total, end = self.total[task.name], self.known.end[last]
        if total is None or end is None:
            return None
        return Response(total, end, self._parts(task, total), self.ways[task.name])

    def _parts(self, task: GpuTask, total: int) -> tuple[tuple[str, int], ...]:
        bounds = self.bounds.get(self.graph.of[task.name][-1])
        blocking = bounds[1].blocking if bounds is not None and self.ways[task.name] is None else 0
        own = [
            ("jitter", task.jitter),
            ("launches", sum(segment.delay for segment in task.segments)),
            ("blocking", self.tasks.up(blocking)),
            *((word, sum(segment.wcet for segment in task.of(kind))) for kind, word in _WORDS.items()),
        ]
        waiting = ("interference", total - sum(ticks for _, ticks in own))
        return tuple(part for part in (*own, waiting) if part[1])

    def _first_lost(self) -> dict[str, str]:
        """Return the task that lost its bound first among those that a task without one needs."""
        needs = {name: self._needs(self.tasks.by_name[name]) for name in self.lost}
        found: dict[str, str] = {}
        for first in self.lost:  # in the order in which they lost their bounds
            todo = [] if first in found else [first]
            while todo:
                name = todo.pop()
                found[name] = first
                todo += [other for other in needs if other not in found and other not in todo and name in needs[other]]
        return found

    def _needs(self, task: GpuTask) -> set[str]:
        """Return the tasks whose bounds the bound of this task depends on."""
        found = {other.name for other in self.graph.families[self.graph.family[task.name]]}
        for resource in {self.graph.operations[number].resource for number in self.graph.of[task.name]}:
            for number in self.graph.at[resource]:
                other = self.graph.operations[number].task
                if not self.graph.is_ranked(resource) or urgency(other) >= urgency(task):
                    found.add(other.name)
        return found


_WORDS = {SegmentKind.CPU: "CPU", SegmentKind.COPY: "copies", SegmentKind.KERNEL: "kernel"}


def _least_bound(bounds: Sequence[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _sum_of_bounds(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
