"""Bounds for all tasks at once, where they depend on each other: the least fixed point of all analyses together.

Kernels wait for CPU time before them, CPU time waits for kernels, and tasks wait for data of others. Each bound grows
with the others, so they are raised, from what a task takes alone, until nothing changes. A task whose bound grows
without end has none, and neither has a task that needs that bound.

Source: Tindell and Clark, Microprocessing and Microprogramming 40, 1994. Proof: docs/schedulability_theory.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from makespan.errors import InputError
from makespan.schedulability.arrivals import OutOfStepsError, Steps, Stream
from makespan.schedulability.chains import predecessors
from makespan.schedulability.response import Bound, kernel_bounds
from makespan.schedulability.suspension import Rival, oblivious, stretch
from makespan.schedulability.task import Partition, Policy, Task, TaskSet

HORIZON = 100
"""A bound of more than so many periods, deadlines or jitters, whichever is longest in the task set, is none."""

APART = "CPU times and kernel one by one"
TOGETHER = "CPU times and kernel together"
OBLIVIOUS = "waiting for kernels as CPU time"

_Found = TypeVar("_Found")
_Analysis = Callable[[int, Sequence[Rival], int, Steps], int | None]


@dataclass(frozen=True, slots=True)
class Response:
    """Proven for every job of a task; in ticks.

    Args:
        ready: from the event at the head of its chain by data, or its own arrival, until the kernel is ready.
        kernel: from there until the end of the kernel.
        total: from the arrival until the end of the job.
        end: from the event until the end of the job.
        parts: what `total` consists of.
        way: how CPU time and kernel were put together; None without CPU time.
    """

    ready: int
    kernel: int
    total: int
    end: int
    parts: tuple[tuple[str, int], ...]
    way: str | None


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an analysis stops undecided; nothing here counts seconds, so that an answer is the same on every machine.

    Args:
        one: additions for one bound of one kernel.
        total: additions in all.
        attempts: schedules that are simulated to find a late job, for each task without a proof.
        jobs: of all these schedules together.
    """

    one: int = 1_000_000
    total: int = 10_000_000
    attempts: int = 60
    jobs: int = 200_000


@dataclass(frozen=True, slots=True)
class Responses:
    """What is proven of each task, None where nothing is.

    Args:
        stopped: the tasks for which the limits did not suffice.
        streams: what comes to each partition, in the order of its tasks.
        starts: whose end starts a task that data starts.
        lost: for each task without a bound, the first one that lost it among those that it needs, and itself.
    """

    of: Mapping[str, Response | None]
    stopped: frozenset[str]
    streams: Mapping[str, tuple[Stream, ...]]
    starts: Mapping[str, str]
    lost: Mapping[str, str]


def responses(task_set: TaskSet, limits: Limits) -> Responses:
    """Bounds for all tasks.

    Raises:
        InputError: a task without a partition, chains by data that contradict themselves, or a task with CPU time
            whose deadline is longer than its period.
    """
    system = _System(task_set, limits)
    for _ in system.rounds():
        pass
    return system.found


def responses_in_time(task_set: TaskSet, limits: Limits) -> Responses | None:
    """The same if every bound is within its deadline, else None; known as soon as one has risen above it.

    Raises:
        InputError: as `responses`.
    """
    system = _System(task_set, limits)
    for now in system.rounds():
        for task in task_set.tasks:
            response = now[task.name]
            if response is None or response.total > task.deadline:
                return None
    return system.found


class _System:
    def __init__(self, task_set: TaskSet, limits: Limits) -> None:
        for task in task_set.tasks:
            _check(task)
        self.tasks, self.limits, self.steps = task_set, limits, Steps(limits.total)
        self.starts = predecessors(task_set)
        self.order = [task for task in task_set.tasks if task.name not in self.starts]
        self.order += [task_set.by_name[name] for name in self.starts]
        self.hosts = [(partition, task_set.on(partition.name)) for partition in task_set.partitions]
        self.horizon = HORIZON * max(max(t.period, t.deadline, t.jitter) for t in task_set.tasks)
        self.rivals = {task.name: _rivals(task, task_set) for task in task_set.tasks}
        self.now: dict[str, Response | None] = {}
        self.kernels: dict[str, tuple[Bound, ...] | None] = {}
        self.known: dict[str, tuple[Stream, ...]] = {}
        self.stopped: set[str] = set()
        self.lost: list[str] = []

    def rounds(self) -> Iterator[Mapping[str, Response | None]]:
        """Raise bounds until nothing changes; only the last ones are bounds, the others are below them."""
        for task in self.order:
            self.now[task.name] = self._alone(task)
        before: dict[str, Response | None] = {}
        while before != self.now:
            before = self.now
            yield before
            ready = {task.name: self._ready(task) for task in self.order}
            for partition, tasks in self.hosts:
                self._serve(partition, tasks, ready)
            self.now = {task.name: self._response(task, ready[task.name]) for task in self.order}
            self.lost += [name for name, now in self.now.items() if now is None and before[name] is not None]

    @property
    def found(self) -> Responses:
        """What holds after the last round."""
        return Responses(self.now, frozenset(self.stopped), self.known, self.starts, self._first_lost())

    def _first_lost(self) -> dict[str, str]:
        """For each task without a bound, the first that lost it of those that it needs, directly or not, and itself."""
        needs = {name: self._needs(self.tasks.by_name[name]) for name in self.lost}
        found: dict[str, str] = {}
        for first in self.lost:
            todo = [] if first in found else [first]
            while todo:
                name = todo.pop()
                found[name] = first
                todo += [other for other in needs if other not in found and other not in todo and name in needs[other]]
        return found

    def _needs(self, task: Task) -> set[str]:
        """The tasks whose bounds go into that of this one."""
        policy, tasks = next((p.policy, tasks) for p, tasks in self.hosts if p.name == task.partition)
        if policy is Policy.FIXED_PRIORITY:
            tasks = tuple(other for other in tasks if _urgency(other) >= _urgency(task))
        late = {other.name for other in (*self.rivals[task.name], *(other for other in tasks if other.before))}
        return late | {self.starts[other.name] for other in (task, *tasks) if other.name in self.starts}

    def _alone(self, task: Task) -> Response:
        ready = (self._event(task) or 0) + task.jitter + task.before
        end = ready + task.wcet + task.after
        return Response(ready, task.wcet, task.jitter + task.cpu + task.wcet, end, (), None)

    def _event(self, task: Task) -> int | None:
        """From the event at the head of the chain to the arrival; None if nothing bounds it."""
        if task.name not in self.starts:
            return 0
        first = self.now[self.starts[task.name]]
        return None if first is None else first.end

    def _ready(self, task: Task) -> tuple[int, int] | None:
        """From the event to the release, and from there to the kernel; None if nothing bounds them."""
        event = self._event(task)
        if event is None or (task.before and self.now[task.name] is None):
            return None
        lag = self._stretch(task, task.before) if task.before else 0
        return None if lag is None else (event + task.jitter, lag)

    def _stretch(self, task: Task, cpu: int) -> int | None:
        rivals = self._rivals_of(task)
        return None if rivals is None else self._within(task, stretch, cpu + self._pending(task), rivals)

    def _pending(self, task: Task) -> int:
        """CPU time of earlier jobs of the task that may still not have ended when one is released."""
        now = self.now[task.name]
        return 0 if now is None else (-(-now.end // task.period) - 1) * task.cpu

    def _within(self, task: Task, analysis: _Analysis, cpu: int, rivals: list[Rival]) -> int | None:
        return self._limited(task, lambda steps: analysis(cpu, rivals, self.horizon, steps))

    def _limited(self, task: Task, bound: Callable[[Steps], _Found | None]) -> _Found | None:
        """A bound, or None where the limits do not suffice for it."""
        allowed = min(self.limits.one, self.steps.left)
        steps = Steps(allowed)
        try:
            return bound(steps)
        except OutOfStepsError:
            self.stopped.add(task.name)
            return None
        finally:
            self.steps.left -= allowed - max(0, steps.left)

    def _rivals_of(self, task: Task) -> list[Rival] | None:
        """The tasks that go before on the core, as far as bounds are known by now."""
        found = []
        for other in self.rivals[task.name]:
            now, event = self.now[other.name], self._event(other)
            if now is None or event is None:
                return None
            found.append(
                Rival(other.period, other.before, other.after, event + other.jitter, now.ready, now.kernel, now.end)
            )
        return found

    def _serve(
        self, partition: Partition, tasks: tuple[Task, ...], ready: Mapping[str, tuple[int, int] | None]
    ) -> None:
        """Bounds for the kernels of a partition, unless they are known from the last round."""
        streams = tuple(_stream(task, ready[task.name], partition.policy) for task in tasks)
        if self.known.get(partition.name) == streams:
            return
        self.known[partition.name] = streams
        for at, task in enumerate(tasks):
            self.kernels[task.name] = self._kernel(task, streams, at, partition.policy)

    def _kernel(self, task: Task, streams: tuple[Stream, ...], at: int, policy: Policy) -> tuple[Bound, ...] | None:
        if self.now[task.name] is None:
            return None
        arrival = streams[at].lag + (0 if policy is Policy.EDF else task.jitter)
        since = (0, arrival, streams[at].delay)
        return self._limited(task, lambda steps: kernel_bounds(streams, at, policy, since, steps))

    def _response(self, task: Task, ready: tuple[int, int] | None) -> Response | None:
        bounds = self.kernels[task.name]
        if self.now[task.name] is None or ready is None or bounds is None:
            return None
        found = self._without_cpu(task, ready, bounds) if not task.cpu else self._with_cpu(task, ready, bounds)
        if found is None or found.end > self.horizon or task.cpu > task.period:
            return None
        return found

    def _without_cpu(self, task: Task, ready: tuple[int, int], bounds: tuple[Bound, ...]) -> Response:
        waiting, own, whole = bounds
        return Response(sum(ready), waiting.response, own.response, whole.response, _parts(task, own, 0, 0), None)

    def _with_cpu(self, task: Task, ready: tuple[int, int], bounds: tuple[Bound, ...]) -> Response | None:
        """The best of the bounds that hold."""
        release, lag = ready
        waiting, own, whole = bounds
        ways: list[Response] = []
        after = self._stretch(task, task.after) if task.after else 0
        if after is not None:
            parts = _parts(task, own, lag, after)
            total, end = own.response + after, whole.response + after
            ways.append(Response(sum(ready), waiting.response, total, end, parts, APART))
        rivals, pending = self._rivals_of(task), self._pending(task)
        if rivals is not None:
            kernel = waiting.response
            alone = not pending and all(r.priority != task.priority for r in self.rivals[task.name])
            for analysis, way in ((stretch, TOGETHER), *(((oblivious, OBLIVIOUS),) if alone else ())):
                length = self._within(task, analysis, task.cpu + pending + kernel, rivals)
                if length is not None:
                    parts = (
                        *(("jitter", task.jitter), ("CPU", task.cpu), ("kernel with waiting", kernel)),
                        ("interference on the core", length - task.cpu - kernel),
                    )
                    total, end = task.jitter + length, release + length
                    ways.append(Response(sum(ready), kernel, total, end, parts, way))
        if not ways:
            return None
        best = min(ways, key=lambda response: response.total)
        least = min(response.end for response in ways)
        return Response(best.ready, best.kernel, best.total, least, best.parts, best.way)


def _check(task: Task) -> None:
    if task.partition is None:
        raise InputError(f"task {task.name} has no partition: assign it, then analyse")
    if task.cpu and task.deadline > task.period:
        raise InputError(
            f"task {task.name} has CPU time and a deadline longer than its period: no analysis covers that; shorten "
            "the deadline or leave the CPU time out"
        )


def _rivals(task: Task, task_set: TaskSet) -> list[Task]:
    """The others with CPU time that go before the task on its core, or may."""
    if not task.cpu:
        return []
    return [
        other
        for other in task_set.tasks
        if other is not task and other.cpu and other.core == task.core and _urgency(other) >= _urgency(task)
    ]


def _urgency(task: Task) -> int:
    return 0 if task.priority is None else task.priority


def _stream(task: Task, ready: tuple[int, int] | None, policy: Policy) -> Stream:
    """Deadlines of EDF count from the arrival, so what else is jitter is part of the lag there."""
    jitter, lag = (0, 0) if ready is None else ready
    known, deadline = ready is not None, task.deadline - task.jitter
    if policy is Policy.EDF and known:
        jitter, lag, deadline = jitter - task.jitter, lag + task.jitter, task.deadline
    return Stream(task.wcet, task.period, jitter, lag, deadline, _urgency(task), is_wild=not known)


def _parts(task: Task, own: Bound, lag: int, after: int) -> tuple[tuple[str, int], ...]:
    waiting = own.response - task.jitter - lag - own.blocking - task.wcet
    parts = (
        *(("jitter", task.jitter), ("CPU before the kernel", lag), ("blocking", own.blocking)),
        *(("interference", waiting), ("kernel", task.wcet), ("CPU after the kernel", after)),
    )
    return tuple(part for part in parts if part[1])
