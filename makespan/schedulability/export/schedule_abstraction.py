"""Job sets for the schedule-abstraction graph: one CSV a partition, all jobs of a hyperperiod.

Columns, in whole ticks: task, job, earliest and latest release, least and most cost, absolute deadline, priority (a
smaller number first). The least cost is 1 tick, because no lower bound on execution times is known.

Source: Nasri and Brandenburg, "An Exact and Sustainable Analysis of Non-Preemptive Scheduling", RTSS 2017, and the
input format of its implementation.
"""

import csv
from collections.abc import Iterator
from fractions import Fraction
from io import StringIO

from makespan.errors import UnsupportedError
from makespan.schedulability.export.common import (
    Exported,
    Job,
    hyperperiod,
    jobs,
    periodic_note,
    refuse_cpu,
    refuse_data,
    timer_note,
)
from makespan.schedulability.task import Policy, Task, TaskSet

HEADER = ("Task ID", "Job ID", "Arrival min", "Arrival max", "Cost min", "Cost max", "Deadline", "Priority")
_TOOL = "the schedule-abstraction graph"
_LARGEST = 2**63 - 1


def written(task_set: TaskSet, tick: Fraction, stem: str) -> Exported:
    """One CSV for each partition that runs a kernel."""
    del tick
    refuse_cpu(task_set, _TOOL)
    refuse_data(task_set, _TOOL)
    used = [partition for partition in task_set.partitions if task_set.on(partition.name)]
    files = {
        f"{stem}.{number}.csv": _table(task_set.on(partition.name), partition.policy)
        for number, partition in enumerate(used, 1)
    }
    return Exported(files, tuple(_notes(task_set)))


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield from periodic_note(task_set, "one hyperperiod")
    yield "among equal priorities the task of the smaller number goes first; here any of them may"
    yield from timer_note(task_set)


def _table(tasks: tuple[Task, ...], policy: Policy) -> str:
    if policy in (Policy.FIFO, Policy.EDF_RELEASE) and any(task.jitter for task in tasks):
        raise UnsupportedError(f"{_TOOL} gives each job a fixed priority, which {policy} with jitter has not")
    until = max(task.offset or 0 for task in tasks) + hyperperiod(tasks)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for number, job in enumerate(jobs(tasks, until), 1):
        writer.writerow(_row(tasks.index(job.task) + 1, number, job, policy))
    return text.getvalue()


def _row(task_number: int, number: int, job: Job, policy: Policy) -> tuple[int, ...]:
    task, deadline = job.task, job.arrival + job.task.deadline
    if deadline > _LARGEST:
        raise UnsupportedError(f"{_TOOL} counts in 64 bits, too few for task {task.name}: choose a longer tick")
    fixed = {Policy.FIXED_PRIORITY: -(task.priority or 0), Policy.FIFO: job.arrival}
    priority = fixed.get(policy, deadline)
    return task_number, number, job.arrival, job.arrival + task.jitter, 1, task.wcet, deadline, priority
