"""What the formats share: what they must refuse, and the jobs of a hyperperiod."""

from collections.abc import Iterator
from math import lcm
from typing import NamedTuple

from makespan.errors import InputError, UnsupportedError
from makespan.schedulability.task import Policy, Task, TaskSet

MOST_JOBS = 100_000


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
