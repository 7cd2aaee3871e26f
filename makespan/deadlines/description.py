"""The content of a task file as values: exact times in seconds, and the sources of execution times.

`task_set` turns a description into whole ticks once all execution times are known. No time is rounded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    Slices,
    TaskChain,
    TaskSet,
    least_unit,
)
from makespan.host.errors import InputError, prefix_errors
from makespan.model.machine import GivenRange, Machine
from makespan.model.units import PICOSECOND

if TYPE_CHECKING:
    from makespan.kernels.question import KernelQuestion
    from makespan.model.machine.gpus import Gpu


class Priorities(StrEnum):
    """A meaning of priorities; there is no default, because systems differ and a wrong guess is unsafe."""

    LARGER_FIRST = "larger-first"
    SMALLER_FIRST = "smaller-first"
    RATE_MONOTONIC = "rate-monotonic"
    DEADLINE_MONOTONIC = "deadline-monotonic"
    AUDSLEY = "audsley"
    """found by a search, once all times are known; `task_set` gives those by deadlines"""

    @property
    def is_given(self) -> bool:
        """Return whether every task says its own number."""
        return self in (Priorities.LARGER_FIRST, Priorities.SMALLER_FIRST)


@dataclass(frozen=True, slots=True)
class GivenTime:
    """A time in seconds, at most, that the user vouches for."""

    seconds: Fraction
    evidence: str


@dataclass(frozen=True, slots=True)
class GivenCycles:
    """An execution time in cycles that the user vouches for."""

    cycles: int
    evidence: str


@dataclass(frozen=True, slots=True)
class BundleFile:
    """The result that `makespan solve --bundle` left; it is verified before it is used.

    Args:
        evidence: Why the path that the bundle fixed, if it did, is the only one.
    """

    path: Path
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A kernel to be solved for a machine.

    Args:
        question: Its `launch.grid` has all blocks, and is None only beside `warps`, for one block; `blocks_per_sm` says
            how many of them fit on one SM at the same time, neither more nor fewer.
        machine: None means the machine of the GPU or, where no GPU is named, the default of the kernel, see
            `LaunchedKernel`.
        evidence: Why the path that `take` or `trace` fixes is the only one.
        holds: For how long its ports are held, see `machine.narrow_intervals`.
    """

    question: "KernelQuestion"
    machine: Machine | None = None
    evidence: str | None = None
    holds: Mapping[str, GivenRange] = field(default_factory=dict)


TimeSource: TypeAlias = GivenTime | GivenCycles | BundleFile | KernelLaunch
"""A source of the execution time of a kernel."""


@dataclass(frozen=True, slots=True)
class CpuEntry:
    """CPU time of every job on the core of its task, in seconds, at most."""

    seconds: Fraction


@dataclass(frozen=True, slots=True)
class ServedEntry:
    """A copy or a kernel of every job.

    Args:
        kind: Whether it is a copy or a kernel.
        resource: Its copy engine or partition; None means a kernel that is still to be assigned.
        launch: The time from the end of what comes before it until it is ready there; None where the file gives none.
    """

    kind: SegmentKind
    source: TimeSource
    resource: str | None = None
    launch: GivenTime | None = None


def execution_keys(name: str, kinds: Iterable[SegmentKind]) -> dict[int, str]:
    """Return the names of the execution times of a task, by the indices of its copies and kernels.

    >>> execution_keys("filter", [SegmentKind.CPU, SegmentKind.KERNEL])
    {1: 'filter'}
    >>> execution_keys("dnn", [SegmentKind.COPY, SegmentKind.KERNEL])
    {0: 'dnn[0]', 1: 'dnn[1]'}
    """
    served = [index for index, kind in enumerate(kinds) if kind is not SegmentKind.CPU]
    return {index: name if len(served) == 1 else f"{name}[{index}]" for index in served}


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as described; times in seconds, the rest as in `task.Task`, priorities as they were given.

    Args:
        wait: None means that the file says nothing: then a thread with a core is taken to spin, as CUDA does by
            default; this is a condition of the verdict, and not the worse of the two ways.
    """

    name: str
    segments: tuple[CpuEntry | ServedEntry, ...]
    period: Fraction
    deadline: Fraction
    jitter: Fraction = Fraction(0)
    offset: Fraction | None = None
    priority: int | None = None
    core: str | None = None
    wait: HostWait | None = None
    context: str | None = None

    @property
    def keys(self) -> dict[int, str]:
        """Return the names of its execution times, see `execution_keys`."""
        return execution_keys(
            self.name, (SegmentKind.CPU if isinstance(s, CpuEntry) else s.kind for s in self.segments)
        )

    @property
    def executions(self) -> dict[str, ServedEntry]:
        """Return its copies and kernels by the names of their execution times."""
        keys = self.keys
        return {keys[index]: part for index, part in enumerate(self.segments) if isinstance(part, ServedEntry)}

    @property
    def is_assumed_to_spin(self) -> bool:
        """Return whether its thread waits on a core, and nothing says how."""
        return self.core is not None and self.wait is None and bool(self.executions)

    @property
    def times(self) -> tuple[Fraction, ...]:
        """Return the times that it gives itself."""
        own = (self.period, self.deadline, self.jitter, Fraction(0) if self.offset is None else self.offset)
        cpu = (part.seconds for part in self.segments if isinstance(part, CpuEntry))
        launches = (part.launch.seconds for part in self.executions.values() if part.launch is not None)
        return (*own, *cpu, *launches)


@dataclass(frozen=True, slots=True)
class SlicesEntry:
    """The rule by which contexts take a partition in turn, as in `task.Slices`; times in seconds.

    The evidence says who vouches for the time of a switch.
    """

    length: Fraction
    switch: Fraction
    evidence: str


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """A partition with its number of SMs, and the slices of its contexts; `partition` is without them."""

    partition: GpuPartition
    sms: int = 1
    slices: SlicesEntry | None = None

    @property
    def times(self) -> tuple[Fraction, ...]:
        """Return the times that it gives itself."""
        return () if self.slices is None else (self.slices.length, self.slices.switch)


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A chain as described; its deadline in seconds."""

    name: str
    tasks: tuple[str, ...]
    activation: ChainStart
    deadline: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A whole task file.

    Args:
        where: The file, for messages.
        clock: The least frequency in hertz of the SM clock that counts cycles; it is needed where a source is in
            cycles.
        clock_by: Who says so, where the file does not.
        step: The seconds of the shortest step of walks through all schedules; None means what divides all times.
            Nothing else depends on it.
        card: The GPU whose SMs the partitions are; None where no GPU is named.
    """

    where: str
    tasks: tuple[TaskEntry, ...]
    partitions: tuple[PartitionEntry, ...]
    chains: tuple[ChainEntry, ...] = ()
    clock: Fraction | None = None
    step: Fraction | None = None
    priorities: Priorities | None = None
    card: "Gpu | None" = None
    clock_by: str | None = None
    engines: tuple[CopyEngine, ...] = ()

    @property
    def executions(self) -> dict[str, ServedEntry]:
        """Return all copies and kernels by the names of their execution times."""
        return {key: part for task in self.tasks for key, part in task.executions.items()}

    def sms_of(self, kernel: ServedEntry) -> tuple[int, ...]:
        """Return the numbers of SMs that may run a kernel: those of every partition while it has none."""
        sizes = (entry.sms for entry in self.partitions if kernel.resource in (None, entry.partition.name))
        return tuple(sorted(set(sizes)))

    @property
    def sms(self) -> dict[str, int]:
        """Return how many SMs each partition has, by its name."""
        return {entry.partition.name: entry.sms for entry in self.partitions}

    def with_sms(self, sms: Mapping[str, int]) -> "Description":
        """Return the same with these numbers of SMs of the partitions."""
        changed = (replace(entry, sms=sms.get(entry.partition.name, entry.sms)) for entry in self.partitions)
        return replace(self, partitions=tuple(changed))


@dataclass(frozen=True, slots=True)
class ExecutionTime:
    """The time that a copy or a kernel takes, in seconds.

    Args:
        at_most: A bound for every run.
        at_least: The time of some run; None where no run is known.
        is_shown: Whether that run is one of the kernel itself, or only one of its control flow.
    """

    at_most: Fraction
    at_least: Fraction | None = None
    is_shown: bool = True


def task_set(description: Description, execution_times: Mapping[str, ExecutionTime]) -> tuple[TaskSet, Fraction]:
    """Return the task set in ticks that divide all times, and are short enough for continuous time.

    Args:
        execution_times: The times of `Description.executions`, by the same names.

    Returns:
        The task set, and the seconds of a tick.

    Raises:
        InputError: tasks, partitions, copy engines and chains that do not fit each other, priorities that are missing
            or contradictory, or times of more ticks than any file can ask for.
    """
    unit = least_unit(_longest_way(description))  # theorem 4
    with prefix_errors(description.where):
        tick = _tick(description, execution_times, unit)
        return _in_ticks(description, execution_times, tick, unit), tick


def _longest_way(description: Description) -> int:
    """Return how many segments may come one after the other in what one arrival starts, at most."""
    by_data = [chain.tasks for chain in description.chains if chain.activation is ChainStart.DATA]
    linked = {name for names in by_data for name in names}
    alone = max((len(entry.segments) for entry in description.tasks), default=1)
    return max(alone, sum(len(entry.segments) for entry in description.tasks if entry.name in linked))


def common_tick(times: Iterable[Fraction]) -> Fraction:
    """Return the largest time of which a picosecond and all `times` are whole multiples.

    >>> common_tick([Fraction(1, 1000)]), common_tick([Fraction(1, 3 * 10**9)])
    (Fraction(1, 1000000000000), Fraction(1, 3000000000000))
    """
    found = PICOSECOND
    for time in times:
        found = Fraction(gcd(found.numerator, time.numerator), lcm(found.denominator, time.denominator))
    return found


def _tick(description: Description, execution_times: Mapping[str, ExecutionTime], unit: int) -> Fraction:
    """Return a tick that `unit` times divides every time: theorem 4."""
    times = [time for entry in description.tasks for time in entry.times]
    times += [chain.deadline for chain in description.chains if chain.deadline is not None]
    times += [time for entry in description.partitions for time in entry.times]
    times += [time for both in execution_times.values() for time in (both.at_most, both.at_least) if time is not None]
    return common_tick(times) / unit  # then every time is a multiple of `unit` ticks


def _in_ticks(description: Description, times: Mapping[str, ExecutionTime], tick: Fraction, unit: int) -> TaskSet:
    ranks = _ranks(description)

    def ticks(time: Fraction) -> int:
        found = time / tick
        if found.denominator != 1:
            raise ValueError(f"{time} s are no whole number of ticks of {tick} s")
        return found.numerator

    def if_said(time: Fraction | None) -> int | None:
        return None if time is None else ticks(time)

    def segment_of(part: CpuEntry | ServedEntry, key: str) -> JobSegment:
        if isinstance(part, CpuEntry):
            return JobSegment(SegmentKind.CPU, ticks(part.seconds))
        time, delay = times[key], 0 if part.launch is None else ticks(part.launch.seconds)
        return JobSegment(part.kind, ticks(time.at_most), part.resource, delay, if_said(time.at_least), time.is_shown)

    def task_of(entry: TaskEntry) -> GpuTask:
        keys = entry.keys
        return GpuTask(
            entry.name,
            tuple(segment_of(part, keys.get(index, "")) for index, part in enumerate(entry.segments)),
            ticks(entry.period),
            ticks(entry.deadline),
            ticks(entry.jitter),
            if_said(entry.offset),
            ranks[entry.name],
            entry.core,
            HostWait.SPIN if entry.is_assumed_to_spin else entry.wait,
            entry.context,
        )

    def partition_of(entry: PartitionEntry) -> GpuPartition:
        slices = None if entry.slices is None else Slices(ticks(entry.slices.length), ticks(entry.slices.switch))
        return replace(entry.partition, slices=slices)

    found = TaskSet(
        tuple(map(task_of, description.tasks)),
        tuple(map(partition_of, description.partitions)),
        tuple(TaskChain(c.name, c.tasks, c.activation, if_said(c.deadline)) for c in description.chains),
        description.engines,
        unit,
    )
    _refuse_ambiguous(description)
    return found


def _ranks(description: Description) -> dict[str, int | None]:
    """Return the priorities such that a larger number is more urgent."""
    convention = description.priorities
    if convention is not None and convention.is_given:
        sign = 1 if convention is Priorities.LARGER_FIRST else -1  # larger is more urgent from here on
        return {entry.name: None if entry.priority is None else sign * entry.priority for entry in description.tasks}
    if (numbered := next((e for e in description.tasks if e.priority is not None), None)) is not None:
        if convention is not None:
            raise InputError(f"task {numbered.name} has a priority of its own beside priorities = {str(convention)!r}")
        raise InputError(
            f"task {numbered.name} has priority {numbered.priority}, and nothing says what this means:"
            ' give priorities = "larger-first" or "smaller-first" at the top (--priorities for CSV)'
        )
    if convention is None:
        return dict.fromkeys((entry.name for entry in description.tasks), None)
    monotonic = {
        entry.name: entry.period if convention is Priorities.RATE_MONOTONIC else entry.deadline
        for entry in description.tasks
    }
    order = sorted(set(monotonic.values()), reverse=True)  # the shortest last, with the largest number
    return {name: order.index(time) + 1 for name, time in monotonic.items()}


def _refuse_ambiguous(description: Description) -> None:
    """Refuse two execution times of one name: a task a with two kernels has a[0], as a task a[0] would."""
    seen: set[str] = set()
    for entry in description.tasks:
        if twice := seen.intersection(entry.executions):
            raise InputError(
                f"{min(twice)} is the name of two execution times, for a task with several copies and kernels numbers"
                f" them so: give task {entry.name} another name"
            )
        seen.update(entry.executions)
