"""What the formats share: what they must refuse or say, and the jobs of a hyperperiod."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import lcm
from typing import NamedTuple

from makespan.errors import InputError, UnsupportedError
from makespan.schedulability.task import Activation, Policy, Task, TaskSet

MOST_JOBS = 100_000


@dataclass(frozen=True, slots=True)
class Exported:
    """Texts by file name, and what a reader of them must know: where they are another system than the task set."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


class Job(NamedTuple):
    """One job of a task that is taken as strictly periodic; times in ticks."""

    task: Task
    arrival: int


def refuse_unassigned(task_set: TaskSet) -> None:
    """Refuse tasks that have no partition.

    Raises:
        InputError: naming them.
    """
    if missing := [task.name for task in task_set.unassigned]:
        raise InputError(f"no partition runs {', '.join(missing)}: assign them before the export")


def refuse_data(task_set: TaskSet, tool: str) -> None:
    """Refuse tasks that the end of another one starts.

    Raises:
        UnsupportedError: naming the first chain of such tasks.
    """
    for chain in task_set.chains:
        if chain.activation is Activation.DATA and len(chain.tasks) > 1:
            raise UnsupportedError(
                f"{tool} knows no tasks that start when another one ends, counted from there, and chain {chain.name}"
                " has some"
            )


def periodic_note(task_set: TaskSet, length: str) -> Iterator[str]:
    """What a single pattern of arrivals leaves out."""
    if any(task.offset is None for task in task_set.tasks):
        yield (
            f"every task is strictly periodic, from its offset or from 0, for {length}; here jobs of tasks without an"
            " offset may come later, at any phase: what is in time there may be late here"
        )


def timer_note(task_set: TaskSet) -> Iterator[str]:
    """That latencies are nobody's business there."""
    if timed := [chain.name for chain in task_set.chains if chain.activation is Activation.PERIODIC]:
        yield f"chains of timers are left out, which change no schedule: {', '.join(timed)}"


def refuse_cpu(task_set: TaskSet, tool: str) -> None:
    """Refuse tasks with CPU time.

    Raises:
        UnsupportedError: naming the first.
    """
    for task in task_set.tasks:
        if task.cpu:
            raise UnsupportedError(f"{tool} knows no tasks that wait for the GPU, and {task.name} has CPU time")


def refuse_policies(task_set: TaskSet, tool: str, *known: Policy) -> None:
    """Refuse partitions with tasks whose policy the tool does not have.

    Raises:
        UnsupportedError: naming the first.
    """
    for partition in task_set.partitions:
        if partition.policy not in known and task_set.on(partition.name):
            raise UnsupportedError(
                f"{tool} can express {' and '.join(known)}, and partition {partition.name} has {partition.policy}"
            )


def hyperperiod(tasks: tuple[Task, ...]) -> int:
    """The least common multiple of the periods, in ticks.

    Raises:
        UnsupportedError: more than `MOST_JOBS` jobs arrive in it.
    """
    length = lcm(*(task.period for task in tasks))
    jobs = sum(length // task.period for task in tasks)
    if jobs > MOST_JOBS:
        raise UnsupportedError(
            f"{jobs} jobs arrive in a hyperperiod, more than {MOST_JOBS}: choose periods that divide"
        )
    return length


def jobs(tasks: tuple[Task, ...], until: int) -> Iterator[Job]:
    """The jobs that arrive before `until`, task by task; a task without an offset begins at 0."""
    for task in tasks:
        yield from (Job(task, arrival) for arrival in range(task.offset or 0, until, task.period))
