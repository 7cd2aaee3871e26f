"""Tasks with GPU kernels as values, in whole ticks of time.

A task's jobs arrive at least `period` apart. A job is released at most `jitter` after its arrival, runs on the CPU for
at most `before`, then its kernel for at most `wcet` on the task's partition of the GPU, then on the CPU for at most
`after`. All of it must be done `deadline` after the arrival. A kernel that has started runs to its end: a partition
serves one kernel at a time, without preemption. CPU cores schedule preemptively by the same priorities.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from makespan.errors import InputError
from makespan.machine.values import shown

MAX_TICKS = 10**24
MAX_TASKS = 1000
MAX_NAME = 80


class Policy(StrEnum):
    """How a partition chooses among the kernels that wait for it."""

    FIXED_PRIORITY = "fixed-priority"
    """the most urgent task first; equal priorities in any order"""
    EDF = "edf"
    """the earliest absolute deadline first: arrival + deadline; equal ones in any order"""
    EDF_RELEASE = "edf-release"
    """the earliest of release + deadline - jitter first, as one does who sees only releases; equal ones in any order"""
    FIFO = "fifo"
    """in the order in which kernels become ready, as in one stream; those of one moment in any order"""


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the GPU that serves one kernel at a time: an SM, several, or all of them."""

    name: str
    policy: Policy

    def __post_init__(self) -> None:
        check_name(self.name, "a partition")
        if not isinstance(self.policy, Policy):
            raise InputError(f"policy of {self.name} must be one of {', '.join(Policy)}, not {shown(self.policy)}")


@dataclass(frozen=True, slots=True)
class Task:
    """A recurring job of the system; all times in ticks.

    Args:
        wcet: proven upper bound on the execution time of the kernel.
        period: the least distance of two arrivals.
        deadline: from the arrival of a job until its end.
        jitter: at most so long from the arrival of a job until its release.
        offset: arrival of the first job of a strictly periodic task; None: any, and jobs may come later than that.
        priority: larger is more urgent; needed where a policy of fixed priorities, or a CPU core, serves the task.
        before: proven upper bound on the CPU time before the kernel.
        after: proven upper bound on the CPU time after the kernel.
        core: the CPU core of both; needed if one of them is not 0.
        partition: name of the partition that runs the kernel; None: not assigned yet.
        attained: how long a run of the kernel is shown to take, at most `wcet`; 0: not known in whole ticks; None:
            `wcet`, because the user says that a job may take so long.
        is_shown: whether the kernel itself is shown to run for `attained`, and not only some path of its control flow,
            which no input need lead to.
    """

    name: str
    wcet: int
    period: int
    deadline: int
    jitter: int = 0
    offset: int | None = None
    priority: int | None = None
    before: int = 0
    after: int = 0
    core: str | None = None
    partition: str | None = None
    attained: int | None = None
    is_shown: bool = True

    def __post_init__(self) -> None:
        check_name(self.name, "a task")
        self._check("execution time", self.wcet, 1)
        self._check("period", self.period, 1)
        self._check("deadline", self.deadline, 1)
        self._check("jitter", self.jitter, 0)
        self._check("CPU time before the kernel", self.before, 0)
        self._check("CPU time after the kernel", self.after, 0)
        if self.offset is not None:
            self._check("offset", self.offset, 0)
        if self.priority is not None and (isinstance(self.priority, bool) or not isinstance(self.priority, int)):
            raise InputError(f"priority of task {self.name} must be a whole number, not {shown(self.priority)}")
        if self.attained is not None:
            self._check("attained time", self.attained, 0)
            if self.attained > self.wcet:
                raise InputError(f"task {self.name} cannot take {self.attained} ticks, and {self.wcet} at most")
        if self.core is None and (self.before or self.after):
            raise InputError(f"task {self.name} has CPU time and no core: say which core runs it")

    def _check(self, what: str, value: object, least: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{what} of task {self.name} must be a whole number of ticks, not {shown(value)}")
        if not least <= value <= MAX_TICKS:
            raise InputError(
                f"{what} of task {self.name} must be at least {least} and at most 1e24 ticks, not {shown(value)}"
            )

    @property
    def cpu(self) -> int:
        """CPU time of a job, at most."""
        return self.before + self.after

    @property
    def is_vouched_for(self) -> bool:
        """Whether some time that its jobs may take is only given: nobody has shown that one takes so long."""
        return self.is_kernel_vouched_for or self.cpu > 0

    @property
    def is_kernel_vouched_for(self) -> bool:
        """The same of the kernel alone."""
        return self.attained is None or not self.is_shown


class Activation(StrEnum):
    """What starts the next task of a chain."""

    PERIODIC = "periodic"
    """its own timer; it reads what its predecessor wrote last"""
    DATA = "data"
    """the end of its predecessor's job"""


@dataclass(frozen=True, slots=True)
class Chain:
    """Tasks that hand data on, first to last, and how long that may take in ticks; None: only to be computed."""

    name: str
    tasks: tuple[str, ...]
    activation: Activation
    deadline: int | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "a chain")
        if not self.tasks:
            raise InputError(f"chain {self.name} has no task")
        twice = next((name for at, name in enumerate(self.tasks) if name in self.tasks[:at]), None)
        if twice is not None:
            raise InputError(f"chain {self.name} is cyclic: it comes back to task {twice}; a chain visits a task once")
        if self.deadline is not None and not 1 <= self.deadline <= MAX_TICKS:
            raise InputError(f"deadline of chain {self.name} must be 1..1e24 ticks, not {shown(self.deadline)}")


@dataclass(frozen=True)
class TaskSet:
    """Tasks, the partitions that they run on, and the chains that they form."""

    tasks: tuple[Task, ...]
    partitions: tuple[Partition, ...]
    chains: tuple[Chain, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.tasks) <= MAX_TASKS:
            raise InputError(f"a task set has 1..{MAX_TASKS} tasks, not {len(self.tasks)}")
        if not self.partitions:
            raise InputError("a task set needs at least one partition of the GPU")
        for what, values in (("task", self.tasks), ("partition", self.partitions), ("chain", self.chains)):
            _refuse_twice(what, [value.name for value in values])
        self._check_references()

    def _check_references(self) -> None:
        policies = {partition.name: partition.policy for partition in self.partitions}
        for task in self.tasks:
            if task.partition is not None and task.partition not in policies:
                raise InputError(
                    f"task {task.name} runs on an unknown partition {task.partition}; there are {', '.join(policies)}"
                )
            ranked = task.core is not None or policies.get(task.partition or "") is Policy.FIXED_PRIORITY
            if ranked and task.priority is None:
                where = f"core {task.core}" if task.core is not None else f"partition {task.partition}"
                raise InputError(f"task {task.name} has no priority, and {where} schedules by priorities")
        for chain in self.chains:
            if unknown := [name for name in chain.tasks if name not in self.by_name]:
                raise InputError(f"chain {chain.name} names an unknown task {unknown[0]}")

    @cached_property
    def by_name(self) -> dict[str, Task]:
        """Each task by its name."""
        return {task.name: task for task in self.tasks}

    def on(self, partition: str) -> tuple[Task, ...]:
        """The tasks whose kernels run there."""
        return tuple(task for task in self.tasks if task.partition == partition)

    @property
    def unassigned(self) -> tuple[Task, ...]:
        """The tasks that have no partition yet."""
        return tuple(task for task in self.tasks if task.partition is None)

    @property
    def cores(self) -> dict[str, tuple[Task, ...]]:
        """The tasks of each CPU core."""
        names = dict.fromkeys(task.core for task in self.tasks if task.core is not None)
        return {name: tuple(task for task in self.tasks if task.core == name) for name in names}

    def assigned(self, places: Mapping[str, str]) -> "TaskSet":
        """The same tasks; each that `places` names runs on the partition that it gives."""
        return replace(self, tasks=tuple(replace(t, partition=places.get(t.name, t.partition)) for t in self.tasks))


def check_name(name: object, what: str) -> None:
    """Accept a short printable name.

    Raises:
        InputError: anything else.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InputError(f"the name of {what} must be 1..{MAX_NAME} printable characters, not {shown(name)}")


def _refuse_twice(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two of the {what}s are named {name}; names must differ")
        seen.add(name)
