"""Refusals, notes and the length of tables, as several formats need them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from makespan.deadlines.task import ChainStart, GpuPartition, ServerPolicy, TaskSet
from makespan.host.errors import InputError, UnsupportedError

MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class ExportedTexts:
    """Texts by file name, and notes on where they are another system than the task set."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def refuse_unknown_here(task_set: TaskSet) -> None:
    """Refuse what no tool here knows: tasks without a partition, and contexts that take a partition in turn.

    Raises:
        InputError: naming the tasks, or the first partition.
    """
    if missing := [task.name for task in task_set.unassigned]:
        raise InputError(f"no partition runs {', '.join(missing)}: assign them before the export")
    for partition in task_set.partitions:
        if partition.slices is not None and task_set.on(partition.name):
            raise UnsupportedError(
                f"partition {partition.name} is time-sliced, and no tool here knows contexts that take turns:"
                " leave its tasks out"
            )


def periodic_note(task_set: TaskSet, length: str) -> Iterator[str]:
    """Yield what a single pattern of arrivals leaves out."""
    if any(task.offset is None for task in task_set.tasks):
        yield (
            f"every task is strictly periodic, from its offset or from 0, for {length}; here jobs of tasks without an"
            " offset may come later, at any phase: what is in time there may be late here"
        )


def timer_note(task_set: TaskSet) -> Iterator[str]:
    """Yield a note on chains of timers, whose latencies no other tool here computes."""
    if timed := [chain.name for chain in task_set.chains if chain.activation is ChainStart.PERIODIC]:
        yield f"chains of timers are left out, which change no schedule: {', '.join(timed)}"


def refuse_cpu(task_set: TaskSet, tool: str) -> None:
    """Refuse tasks with CPU time.

    Raises:
        UnsupportedError: naming the first.
    """
    for task in task_set.tasks:
        if task.cpu:
            raise UnsupportedError(
                f"{tool} knows no tasks that wait for the GPU, and {task.name} has CPU time: choose pycpa or rt-app"
            )


def refuse_policies(task_set: TaskSet, tool: str, *known: ServerPolicy) -> None:
    """Refuse partitions and copy engines with tasks whose policy the tool does not have.

    Raises:
        UnsupportedError: naming the first.
    """
    for server in task_set.servers:
        if server.policy not in known and (served := task_set.on(server.name)):
            what = "partition" if isinstance(server, GpuPartition) else "copy engine"
            raise UnsupportedError(
                f"{tool} can express {' and '.join(known)}, and {what} {server.name}, which serves {served[0].name},"
                f" has {server.policy}: choose another tool"
            )


def hyperperiod(periods: Sequence[int]) -> int:
    """Return the least common multiple, in ticks, of the periods at which rows of a table come.

    Raises:
        UnsupportedError: more than `MOST_ROWS` of them come in it.
    """
    length = lcm(*periods)
    rows = sum(length // period for period in periods)
    if rows > MOST_ROWS:
        raise UnsupportedError(
            f"{rows} jobs and precedence constraints fall into a hyperperiod, more than {MOST_ROWS}: choose periods"
            " that divide"
        )
    return length
