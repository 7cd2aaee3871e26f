"""What a task file says, as values: exact times in seconds, and for every kernel where its execution time comes from.

`task_set` turns a description into whole ticks once all execution times are known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from makespan.errors import InputError
from makespan.machine import GivenRange, Machine
from makespan.schedulability.task import MAX_TICKS, Activation, Chain, Partition, Policy, Task, TaskSet
from makespan.schedulability.units import PICOSECOND, shown_time, ticks_up

if TYPE_CHECKING:
    from makespan.machine.gpus import Gpu
    from makespan.question import KernelQuestion


class Priorities(StrEnum):
    """How priorities are meant; there is no default, because systems differ and a wrong guess is unsafe."""

    LARGER_FIRST = "larger-first"
    SMALLER_FIRST = "smaller-first"
    RATE_MONOTONIC = "rate-monotonic"
    DEADLINE_MONOTONIC = "deadline-monotonic"

    @property
    def is_given(self) -> bool:
        """Whether every task says its own number."""
        return self in (Priorities.LARGER_FIRST, Priorities.SMALLER_FIRST)


@dataclass(frozen=True, slots=True)
class GivenTime:
    """An execution time in seconds that the user vouches for."""

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
        evidence: why the path that the bundle fixed, if it did, is the only one.
    """

    path: Path
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A kernel to be solved for a machine.

    Args:
        question: `launch.grid` has all blocks, and is None only beside `warps`, for one block; `blocks_per_sm` says how
            many of them fit on one SM at the same time: neither more nor fewer.
        machine: None for that of the GPU; where nobody says which, the default of the kernel, see `LaunchedKernel`.
        evidence: why the path that `take` or `trace` fixes is the only one.
        holds: for how long its ports are held, see `machine.narrowed`.
    """

    question: "KernelQuestion"
    machine: Machine | None = None
    evidence: str | None = None
    holds: Mapping[str, GivenRange] = field(default_factory=dict)


Source: TypeAlias = GivenTime | GivenCycles | BundleFile | KernelLaunch
"""Where the execution time of a kernel comes from."""


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as described; times in seconds, the rest as in `task.Task`, priorities as they were given."""

    name: str
    source: Source
    period: Fraction
    deadline: Fraction
    jitter: Fraction = Fraction(0)
    offset: Fraction | None = None
    priority: int | None = None
    before: Fraction = Fraction(0)
    after: Fraction = Fraction(0)
    core: str | None = None
    partition: str | None = None

    @property
    def times(self) -> dict[str, Fraction]:
        """The times that must be whole ticks, by name."""
        named = {
            "period": self.period,
            "deadline": self.deadline,
            "jitter": self.jitter,
            "offset": self.offset,
            "cpu_before": self.before,
            "cpu_after": self.after,
        }
        return {name: time for name, time in named.items() if time is not None}


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """A partition, and how many SMs it has."""

    partition: Partition
    sms: int = 1


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A chain as described; its deadline in seconds."""

    name: str
    tasks: tuple[str, ...]
    activation: Activation
    deadline: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A whole task file.

    Args:
        where: the file, for messages.
        clock: hertz of the SM clock that counts cycles, at least; needed where a source is in cycles.
        clock_by: who says so, where the file does not.
        tick: seconds; None: half a picosecond, or as large a part of it as makes every time an even number of ticks.
        card: the GPU whose SMs the partitions are; None where nobody says which.
    """

    where: str
    tasks: tuple[TaskEntry, ...]
    partitions: tuple[PartitionEntry, ...]
    chains: tuple[ChainEntry, ...] = ()
    clock: Fraction | None = None
    tick: Fraction | None = None
    priorities: Priorities | None = None
    card: "Gpu | None" = None
    clock_by: str | None = None

    def sms_of(self, task: TaskEntry) -> tuple[int, ...]:
        """The numbers of SMs that may run the kernel of a task: those of every partition while it has none."""
        sizes = (entry.sms for entry in self.partitions if task.partition in (None, entry.partition.name))
        return tuple(sorted(set(sizes)))

    @property
    def sms(self) -> dict[str, int]:
        """How many SMs each partition has, by its name."""
        return {entry.partition.name: entry.sms for entry in self.partitions}

    def with_sms(self, sms: Mapping[str, int]) -> "Description":
        """The same with so many SMs of each of these partitions."""
        changed = (replace(entry, sms=sms.get(entry.partition.name, entry.sms)) for entry in self.partitions)
        return replace(self, partitions=tuple(changed))


@dataclass(frozen=True, slots=True)
class ExecutionTime:
    """How long a kernel takes, in seconds.

    Args:
        at_most: in every run.
        at_least: in some run; None where nobody knows.
        is_shown: whether that run is one of the kernel, or only one of its control flow.
    """

    at_most: Fraction
    at_least: Fraction | None = None
    is_shown: bool = True


def task_set(description: Description, execution_times: Mapping[str, ExecutionTime]) -> tuple[TaskSet, Fraction]:
    """The task set in whole ticks, and the seconds of a tick; only execution times are ever rounded, up.

    What is rounded is no time that a run is known to take.

    Args:
        execution_times: by task.

    Raises:
        InputError: tasks, partitions and chains that do not fit each other, priorities that are missing or
            contradictory, times that are no whole number of the ticks that the file asks for, or too many of them.
    """
    try:
        tick = _tick(description, execution_times)
        ranks = _ranks(description)
        tasks = tuple(_task(entry, execution_times[entry.name], tick, ranks) for entry in description.tasks)
        chains = tuple(_chain(entry, tick) for entry in description.chains)
        return TaskSet(tasks, tuple(entry.partition for entry in description.partitions), chains), tick
    except InputError as error:
        raise InputError(f"{description.where}: {error}") from None


def common_tick(times: Iterable[Fraction]) -> Fraction:
    """The largest time of which a picosecond and all `times` are whole multiples.

    >>> common_tick([Fraction(1, 1000)]), common_tick([Fraction(1, 3 * 10**9)])
    (Fraction(1, 1000000000000), Fraction(1, 3000000000000))
    """
    found = PICOSECOND
    for time in times:
        found = Fraction(gcd(found.numerator, time.numerator), lcm(found.denominator, time.denominator))
    return found


def _tick(description: Description, execution_times: Mapping[str, ExecutionTime]) -> Fraction:
    if description.tick is not None:
        return description.tick
    times = [time for entry in description.tasks for time in entry.times.values()]
    times += [chain.deadline for chain in description.chains if chain.deadline is not None]
    times += [time for both in execution_times.values() for time in (both.at_most, both.at_least) if time is not None]
    found = common_tick(times) / 2  # then bounds hold between ticks, too: theorem 4
    longest = max(times)
    if longest > MAX_TICKS * found:
        raise InputError(
            f"{shown_time(longest)} and other times have no common measure but {float(found):.1e} s, too fine to"
            ' count with: give a longer tick, such as tick = "1ns"'
        )
    return found


def _whole(time: Fraction, tick: Fraction, what: str) -> int:
    ticks = time / tick
    if ticks.denominator != 1:
        raise InputError(f"{what} of {shown_time(time)} is no whole number of ticks of {shown_time(tick)}")
    return ticks.numerator


def _task(entry: TaskEntry, time: ExecutionTime, tick: Fraction, ranks: Mapping[str, int | None]) -> Task:
    whole = {name: _whole(time, tick, f"task {entry.name}: {name}") for name, time in entry.times.items()}
    return Task(
        entry.name,
        ticks_up(time.at_most, tick),
        whole["period"],
        whole["deadline"],
        whole["jitter"],
        whole.get("offset"),
        ranks[entry.name],
        whole["cpu_before"],
        whole["cpu_after"],
        entry.core,
        entry.partition,
        _attained(time, tick),
        time.is_shown,
    )


def _attained(time: ExecutionTime, tick: Fraction) -> int | None:
    """As `Task.attained`."""
    known = time.at_most if time.at_least is None else time.at_least
    if (known / tick).denominator != 1:
        return 0
    return None if time.at_least is None else ticks_up(known, tick)


def _chain(entry: ChainEntry, tick: Fraction) -> Chain:
    deadline = None if entry.deadline is None else _whole(entry.deadline, tick, f"chain {entry.name}: deadline")
    return Chain(entry.name, entry.tasks, entry.activation, deadline)


def _ranks(description: Description) -> dict[str, int | None]:
    """Priorities where a larger number is more urgent."""
    convention = description.priorities
    if convention is None or convention.is_given:
        _check_given(description)
    if convention is None:
        return dict.fromkeys((entry.name for entry in description.tasks), None)
    if convention.is_given:
        sign = 1 if convention is Priorities.LARGER_FIRST else -1
        return {entry.name: None if entry.priority is None else sign * entry.priority for entry in description.tasks}
    if (numbered := next((e for e in description.tasks if e.priority is not None), None)) is not None:
        raise InputError(f"task {numbered.name} has a priority of its own beside priorities = {str(convention)!r}")
    monotonic = {
        entry.name: entry.period if convention is Priorities.RATE_MONOTONIC else entry.deadline
        for entry in description.tasks
    }
    order = sorted(set(monotonic.values()), reverse=True)
    return {name: order.index(time) + 1 for name, time in monotonic.items()}


def _check_given(description: Description) -> None:
    """Priorities come with their meaning, and are not missing where they matter."""
    policies = {entry.partition.name: entry.partition.policy for entry in description.partitions}
    for entry in description.tasks:
        if entry.priority is not None and description.priorities is None:
            raise InputError(
                f"task {entry.name} has priority {entry.priority}, and nothing says what this means:"
                ' give priorities = "larger-first" or "smaller-first" at the top (--priorities for CSV)'
            )
        ranked = entry.core is not None or policies.get(entry.partition or "") is Policy.FIXED_PRIORITY
        if ranked and entry.priority is None:
            where = f"core {entry.core}" if entry.core is not None else f"partition {entry.partition}"
            raise InputError(
                f"task {entry.name} has no priority, and {where} schedules by priorities: give every task a priority,"
                ' or priorities = "rate-monotonic" or "deadline-monotonic" at the top (--priorities for CSV)'
            )
