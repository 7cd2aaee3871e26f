"""Values, refusals and notes that every format needs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from makespan.deadlines.task import ChainStart, TaskSet
from makespan.host.errors import InputError, UnsupportedError


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


def timer_note(task_set: TaskSet) -> Iterator[str]:
    """Yield a note on chains of timers, whose latencies no other tool here computes."""
    if timed := [chain.name for chain in task_set.chains if chain.activation is ChainStart.PERIODIC]:
        yield f"chains of timers are left out, which change no schedule: {', '.join(timed)}"
