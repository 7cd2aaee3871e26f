"""Tasks with GPU kernels as values; their times are whole numbers of ticks.

A task's jobs arrive at least `period` apart, or when data of other jobs does. A job is released at most `jitter` after
its arrival and runs through its segments: CPU time on a core, copies on a copy engine, kernels on a partition of the
GPU. All of it must be done `deadline` after the arrival. A copy or a kernel that has begun runs to its end: engines and
partitions serve one at a time, without preemption. CPU cores schedule preemptively, by the priorities of tasks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from makespan.host.errors import InputError
from makespan.model.machine.values import check_name, shown

MAX_TICKS = 10**100
"""More than any times with thirty digits need; it keeps numbers short enough to compute with."""

MAX_TASKS = 1000
MAX_SEGMENTS = 100


class ServerPolicy(StrEnum):
    """A rule by which a partition or copy engine chooses among what waits; of one task the earlier job goes first."""

    FIXED_PRIORITY = "fixed-priority"
    """the most urgent task first; equal priorities in any order"""
    EDF = "edf"
    """the earliest absolute deadline first: arrival + deadline; equal ones in any order"""
    EDF_RELEASE = "edf-release"
    """the earliest of release + deadline - jitter first, as one does who sees only releases; equal ones in any order"""
    FIFO = "fifo"
    """in the order in which they become ready, as in one stream; those of one moment in any order"""


@dataclass(frozen=True, slots=True)
class SegmentServer:
    """A server of one segment at a time, to its end, which never idles while one waits."""

    what: ClassVar[str] = "server"
    name: str
    policy: ServerPolicy

    def __post_init__(self) -> None:
        check_name(self.name, "a partition or copy engine")
        if not isinstance(self.policy, ServerPolicy):
            raise InputError(
                f"policy of {self.name} must be one of {', '.join(ServerPolicy)}, not {shown(self.policy)}"
            )

    @property
    def resource(self) -> str:
        """Return the name with what it is, which analyses, simulations, reports and pictures use."""
        return f"{self.what} {self.name}"


TIME_SLICED = "time-sliced"
"""The policy of a partition that contexts take in turn, as task files and reports name it."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The rule by which contexts, which are processes, take a partition in turn; times in ticks.

    A turn lasts for `length`, or until its context has no work left, and then the next context that has some is served.

    Args:
        length: The length of a turn, without the switch before it.
        switch: The longest time that a change from one context to another takes.
    """

    length: int
    switch: int = 0

    def __post_init__(self) -> None:
        for what, value, least in (("slice", self.length, 1), ("switch of contexts", self.switch, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_TICKS:
                raise InputError(f"a {what} must be {least}..1e100 whole ticks, not {shown(value)}")


@dataclass(frozen=True, slots=True)
class GpuPartition(SegmentServer):
    """A part of the GPU that serves one kernel at a time: an SM, several, or all of them.

    Args:
        slices: The rule by which contexts share it, None where they do not; `policy` is the order within a context.
    """

    what: ClassVar[str] = "partition"
    slices: Slices | None = None

    def __post_init__(self) -> None:
        SegmentServer.__post_init__(self)
        if self.slices is not None and self.policy is not ServerPolicy.FIFO:
            raise InputError(f"partition {self.name} is {TIME_SLICED}: within a context it is {ServerPolicy.FIFO}")


@dataclass(frozen=True, slots=True)
class CopyEngine(SegmentServer):
    """An engine that moves data between host and device: a GPU has one for both directions, or one for each."""

    what: ClassVar[str] = "copy engine"


def core_label(name: str | None) -> str:
    """Return the name of a CPU core with what it is, as `SegmentServer.resource` does for servers."""
    return f"core {name}"


class HostWait(StrEnum):
    """A way in which the host thread of a job waits while a copy or a kernel of the job waits and runs."""

    BLOCK = "block"
    """it leaves its core to others until the driver wakes it up"""
    SPIN = "spin"
    """it keeps its core busy, with its priority"""


class SegmentKind(StrEnum):
    """A kind of segment."""

    CPU = "cpu"
    COPY = "copy"
    KERNEL = "kernel"


@dataclass(frozen=True, slots=True)
class JobSegment:
    """A part of every job of a task, on one resource; times in ticks.

    Args:
        wcet: A proven upper bound on its execution time.
        resource: the name of the copy engine, or of the partition of the kernel; None means that the kernel is not yet
            assigned. It is always None for CPU time, which runs on the core of the task.
        delay: the longest time from the end of what comes before the segment until it is ready: what a launch takes. It
            occupies no resource.
        attained: how long a run of the segment is shown to take, at most `wcet`. 0 means that no such time is known,
            None that the user says that a job may take `wcet`.
        is_shown: whether the kernel itself is shown to run for `attained`, and not only some path of its control flow,
            which perhaps no input takes.
    """

    kind: SegmentKind
    wcet: int
    resource: str | None = None
    delay: int = 0
    attained: int | None = None
    is_shown: bool = True

    @property
    def is_vouched_for(self) -> bool:
        """Return whether its time is only given, so that it may be that no run takes it."""
        return self.attained is None or not self.is_shown or self.delay > 0

    @property
    def known(self) -> int:
        """Return the time that it is shown to take or, where the user gave its time, that; 0 if none is known."""
        return self.wcet if self.attained is None else self.attained


@dataclass(frozen=True, slots=True)
class GpuTask:
    """A recurring job of the system; all times in ticks.

    Args:
        segments: What each job runs through, in this order.
        period: The least distance of two arrivals.
        deadline: The time from the arrival of a job within which it must end.
        jitter: The longest time from the arrival of a job until its release.
        offset: The arrival of the first job of a strictly periodic task. None means any arrival, and later jobs may
            come later than a period after the one before.
        priority: A larger number is more urgent; it is needed where fixed priorities, or a CPU core, serve the task.
        core: The CPU core of its host thread; it is needed for CPU time.
        wait: How that thread waits; it is needed with a core and with copies or kernels.
        context: The process of its kernels; it is needed where contexts take turns.
    """

    name: str
    segments: tuple[JobSegment, ...]
    period: int
    deadline: int
    jitter: int = 0
    offset: int | None = None
    priority: int | None = None
    core: str | None = None
    wait: HostWait | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "a task")
        if self.context is not None:
            check_name(self.context, f"the context of task {self.name}")
        self._check("period", self.period, 1)
        self._check("deadline", self.deadline, 1)
        self._check("jitter", self.jitter, 0)
        if self.offset is not None:
            self._check("offset", self.offset, 0)
        if self.priority is not None and (isinstance(self.priority, bool) or not isinstance(self.priority, int)):
            raise InputError(f"priority of task {self.name} must be a whole number, not {shown(self.priority)}")
        if not 1 <= len(self.segments) <= MAX_SEGMENTS:
            raise InputError(f"a job of task {self.name} has 1..{MAX_SEGMENTS} segments, not {len(self.segments)}")
        for segment in self.segments:
            self._check_segment(segment)
        if self.core is None and any(segment.kind is SegmentKind.CPU for segment in self.segments):
            raise InputError(f"task {self.name} has CPU time and no core: say which core runs it")
        if self.core is not None and self.wait is None and any(s.kind is not SegmentKind.CPU for s in self.segments):
            raise InputError(f"task {self.name} has a core: say what its thread does while it waits, block or spin")

    def _check_segment(self, segment: JobSegment) -> None:
        self._check(f"{'CPU' if segment.kind is SegmentKind.CPU else 'execution'} time", segment.wcet, 1)
        self._check("launch delay", segment.delay, 0)
        if segment.attained is not None:
            self._check("attained time", segment.attained, 0)
            if segment.attained > segment.wcet:
                raise InputError(f"task {self.name} cannot take {segment.attained} ticks, and {segment.wcet} at most")
        if segment.kind is SegmentKind.CPU and (segment.resource is not None or segment.delay):
            raise InputError(f"CPU time of task {self.name} is on its core, and nobody launches it")
        if segment.kind is SegmentKind.COPY and segment.resource is None:
            raise InputError(f"a copy of task {self.name} has no engine: say which copy engine serves it")

    def _check(self, what: str, value: object, least: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{what} of task {self.name} must be a whole number of ticks, not {shown(value)}")
        if not least <= value <= MAX_TICKS:
            raise InputError(
                f"{what} of task {self.name} must be at least {least} and at most 1e100 ticks, not {shown(value)}"
            )

    def of(self, *kinds: SegmentKind) -> tuple[JobSegment, ...]:
        """Return its segments of these kinds."""
        return tuple(segment for segment in self.segments if segment.kind in kinds)

    def on(self, resource: str) -> tuple[JobSegment, ...]:
        """Return its segments on a copy engine or partition."""
        return tuple(segment for segment in self.segments if segment.resource == resource)

    @property
    def cpu(self) -> int:
        """Return the CPU time of a job, at most, without the time that it spins."""
        return sum(segment.wcet for segment in self.of(SegmentKind.CPU))

    @property
    def spins(self) -> bool:
        """Return whether its thread keeps a core busy while it waits."""
        return self.core is not None and self.wait is HostWait.SPIN

    @property
    def is_unassigned(self) -> bool:
        """Return whether some kernel has no partition yet."""
        return any(segment.resource is None for segment in self.of(SegmentKind.KERNEL))

    @property
    def is_vouched_for(self) -> bool:
        """Return whether some time of its jobs is only given, so that it may be that no job takes it."""
        return any(segment.is_vouched_for for segment in self.segments)

    def assigned(self, partition: str | None) -> "GpuTask":
        """Return the same task with its kernels that have no partition on this one."""
        free = [segment for segment in self.of(SegmentKind.KERNEL) if segment.resource is None]
        segments = (replace(segment, resource=partition) if segment in free else segment for segment in self.segments)
        return replace(self, segments=tuple(segments))


def one_kernel(
    name: str,
    wcet: int,
    period: int,
    deadline: int,
    *,
    jitter: int = 0,
    offset: int | None = None,
    priority: int | None = None,
    before: int = 0,
    after: int = 0,
    core: str | None = None,
    wait: HostWait | None = None,
    partition: str | None = None,
    attained: int | None = None,
    is_shown: bool = True,
) -> GpuTask:
    """Return the most common task: a kernel with CPU time before and after it, each left out where it is 0.

    >>> [str(segment.kind) for segment in one_kernel("filter", 4, 10, 10, partition="SM0").segments]
    ['kernel']
    """
    parts = (
        *((JobSegment(SegmentKind.CPU, before),) if before else ()),
        JobSegment(SegmentKind.KERNEL, wcet, partition, 0, attained, is_shown),
        *((JobSegment(SegmentKind.CPU, after),) if after else ()),
    )
    return GpuTask(name, parts, period, deadline, jitter, offset, priority, core, wait)


class ChainStart(StrEnum):
    """An event that starts the next task of a chain."""

    PERIODIC = "periodic"
    """its own timer; it reads what its predecessor wrote last"""
    DATA = "data"
    """the end of its predecessor's job"""


@dataclass(frozen=True, slots=True)
class TaskChain:
    """Tasks that hand data on, first to last; `deadline` is for the whole way in ticks, None if there is none."""

    name: str
    tasks: tuple[str, ...]
    activation: ChainStart
    deadline: int | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "a chain")
        if not self.tasks:
            raise InputError(f"chain {self.name} has no task")
        twice = next((name for at, name in enumerate(self.tasks) if name in self.tasks[:at]), None)
        if twice is not None:
            raise InputError(f"chain {self.name} is cyclic: it comes back to task {twice}; a chain visits a task once")
        if self.deadline is not None and not 1 <= self.deadline <= MAX_TICKS:
            raise InputError(f"deadline of chain {self.name} must be 1..1e100 ticks, not {shown(self.deadline)}")


def least_unit(segments: int) -> int:
    """Return the least number of ticks that must divide all times for bounds to hold in continuous time.

    Args:
        segments: The segments that follow each other on the longest way from an arrival through what its data starts.

    >>> least_unit(1), least_unit(3)
    (2, 10)

    Source: docs/schedulability_theory.md, theorem 4.
    """
    return 4 * segments - 2


@dataclass(frozen=True)
class TaskSet:
    """Tasks, the partitions and copy engines that serve them, and the chains that they form.

    Args:
        unit: 1 means that everything happens at whole ticks. Otherwise jobs arrive, and segments begin and end, at any
            instants. Then all times are multiples of this number of ticks, at least `least_unit`, and analyses round
            bounds up to multiples, so that they hold in continuous time.
    """

    tasks: tuple[GpuTask, ...]
    partitions: tuple[GpuPartition, ...]
    chains: tuple[TaskChain, ...] = ()
    engines: tuple[CopyEngine, ...] = ()
    unit: int = 1

    def __post_init__(self) -> None:
        if not 1 <= len(self.tasks) <= MAX_TASKS:
            raise InputError(f"a task set has 1..{MAX_TASKS} tasks, not {len(self.tasks)}")
        _refuse_equal_names("tasks", self.tasks)
        _refuse_equal_names("partitions or copy engines", self.servers)
        _refuse_equal_names("chains", self.chains)
        for task in self.tasks:
            self._check_places(task)
        for chain in self.chains:
            if unknown := [name for name in chain.tasks if name not in self.by_name]:
                raise InputError(f"chain {chain.name} names an unknown task {unknown[0]}")
        if broken := [time for time in self._times if time % self.unit]:
            raise InputError(f"every time must be a whole multiple of {self.unit} ticks, and {broken[0]} is none")

    def _check_places(self, task: GpuTask) -> None:
        known = {SegmentKind.KERNEL: self.partitions, SegmentKind.COPY: self.engines}
        for segment in task.segments:
            names = [server.name for server in known.get(segment.kind, ())]
            if segment.resource is not None and segment.resource not in names:
                what = "partition" if segment.kind is SegmentKind.KERNEL else "copy engine"
                there = f"there are {', '.join(names)}" if names else "there is none"
                raise InputError(f"task {task.name} runs on an unknown {what} {segment.resource}; {there}")
        sliced = [p.name for p in self.partitions if p.slices is not None and task.on(p.name)]
        if sliced and task.context is None:
            raise InputError(
                f"task {task.name} has no context, and partition {sliced[0]} is {TIME_SLICED}: say of which process it"
                " is"
            )
        ranked = [s.resource for s in self.servers if s.policy is ServerPolicy.FIXED_PRIORITY and task.on(s.name)]
        if task.priority is None and (task.core is not None or ranked):
            where = core_label(task.core) if task.core is not None else ranked[0]
            raise InputError(
                f"task {task.name} has no priority, and {where} schedules by priorities: give every task a"
                ' priority, or priorities = "rate-monotonic" or "deadline-monotonic" at the top (--priorities for CSV)'
            )

    @cached_property
    def by_name(self) -> dict[str, GpuTask]:
        """Return the tasks by their names."""
        return {task.name: task for task in self.tasks}

    @property
    def servers(self) -> tuple[SegmentServer, ...]:
        """Return all servers, which serve one segment at a time."""
        return (*self.partitions, *self.engines)

    def on(self, server: str) -> tuple[GpuTask, ...]:
        """Return the tasks that have a segment there."""
        return tuple(task for task in self.tasks if task.on(server))

    @property
    def unassigned(self) -> tuple[GpuTask, ...]:
        """Return the tasks with a kernel that has no partition yet."""
        return tuple(task for task in self.tasks if task.is_unassigned)

    @property
    def cores(self) -> dict[str, tuple[GpuTask, ...]]:
        """Return the tasks of each CPU core."""
        names = dict.fromkeys(task.core for task in self.tasks if task.core is not None)
        return {name: tuple(task for task in self.tasks if task.core == name) for name in names}

    @property
    def _times(self) -> Iterator[int]:
        for task in self.tasks:
            yield from (task.period, task.deadline, task.jitter, task.offset or 0)
            for segment in task.segments:
                yield from (segment.wcet, segment.delay, segment.attained or 0)
        yield from (chain.deadline for chain in self.chains if chain.deadline is not None)
        for slices in (partition.slices for partition in self.partitions):
            yield from () if slices is None else (slices.length, slices.switch)

    def up(self, ticks: int) -> int:
        """Return the least multiple of `unit` that is no less.

        >>> TaskSet((one_kernel("a", 4, 10, 10),), (), unit=2).up(7)
        8
        """
        return -(-ticks // self.unit) * self.unit

    def finer(self, count: int) -> "TaskSet":
        """Return the same system in ticks that are `count` times as short; `unit` has as many of them as before."""

        def segment_of(segment: JobSegment) -> JobSegment:
            attained = None if segment.attained is None else count * segment.attained
            return replace(segment, wcet=count * segment.wcet, delay=count * segment.delay, attained=attained)

        def task_of(task: GpuTask) -> GpuTask:
            segments = tuple(map(segment_of, task.segments))
            offset = None if task.offset is None else count * task.offset
            period, deadline, jitter = count * task.period, count * task.deadline, count * task.jitter
            return replace(task, segments=segments, period=period, deadline=deadline, jitter=jitter, offset=offset)

        sliced = {p.name: Slices(count * p.slices.length, count * p.slices.switch) for p in self.partitions if p.slices}
        partitions = tuple(replace(partition, slices=sliced.get(partition.name)) for partition in self.partitions)
        chains = tuple(replace(c, deadline=c.deadline and count * c.deadline) for c in self.chains)
        return replace(self, tasks=tuple(map(task_of, self.tasks)), partitions=partitions, chains=chains)

    def assigned(self, places: Mapping[str, str]) -> "TaskSet":
        """Return the tasks with the kernels that have no partition on the one that `places` gives for their task."""
        return replace(self, tasks=tuple(task.assigned(places.get(task.name)) for task in self.tasks))


def _refuse_equal_names(what: str, values: Iterable[SegmentServer | GpuTask | TaskChain]) -> None:
    seen: set[str] = set()
    for value in values:
        if value.name in seen:
            raise InputError(f"two {what} are named {value.name}; names must differ")
        seen.add(value.name)
