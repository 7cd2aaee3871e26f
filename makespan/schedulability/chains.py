"""Chains of tasks that hand data on: who starts whom, and how old data can become.

In a chain by data, the end of a job is the arrival of the next task's job; that task's deadline and jitter count from
there, and its period is that of the task at the head. In a periodic chain each task has a timer, which is strictly
periodic with any phase; a job reads its input after its arrival and writes its output at its end.
"""

from collections.abc import Mapping, Sequence

from makespan.errors import InputError
from makespan.schedulability.task import Activation, Task, TaskSet


def predecessors(task_set: TaskSet) -> dict[str, str]:
    """The task whose jobs start those of each task that is started by data, heads first.

    Raises:
        InputError: a task is started by two others, in a circle, or by data and a timer; its offset or its period
            contradicts the task that starts it.
    """
    starts: dict[str, str] = {}
    for chain in task_set.chains:
        if chain.activation is Activation.DATA:
            for name, follower in zip(chain.tasks, chain.tasks[1:], strict=False):
                if starts.setdefault(follower, name) != name:
                    raise InputError(f"task {follower} is started by both {starts[follower]} and {name}; choose one")
    _refuse_timers(task_set, starts)
    order = _heads_first(starts)
    for name in order:
        _check_follower(task_set.by_name[name], task_set.by_name[starts[name]])
    return {name: starts[name] for name in order}


def _refuse_timers(task_set: TaskSet, starts: Mapping[str, str]) -> None:
    for chain in task_set.chains:
        if chain.activation is Activation.PERIODIC and (both := [name for name in chain.tasks if name in starts]):
            raise InputError(
                f"task {both[0]} has a timer in chain {chain.name}, but data of {starts[both[0]]} starts it"
            )


def _heads_first(starts: Mapping[str, str]) -> list[str]:
    depth: dict[str, int] = {}
    for name in starts:
        path = [name]
        while path[-1] in starts:
            if len(path) > len(starts):
                raise InputError(f"task {name} is in a circle of tasks that start each other by data")
            path.append(starts[path[-1]])
        depth[name] = len(path)
    return sorted(starts, key=lambda name: depth[name])


def _check_follower(task: Task, first: Task) -> None:
    if task.period != first.period:
        raise InputError(
            f"task {task.name} has a period of {task.period} ticks, but {first.name}, which starts it by data, one of "
            f"{first.period}: make them equal"
        )
    if task.offset is not None:
        raise InputError(f"task {task.name} has an offset, but data of {first.name} starts it: remove one of them")


def sampled_latency(tasks: Sequence[Task], responses: Sequence[int]) -> int:
    """Of a chain of timers: the longest time from a change of the input to the first output that shows it.

    It also bounds the age of data: from reading the input until an output that uses it is replaced. Phases, offsets
    and jitter do not matter, since responses count from the arrivals.

    Source: Davare, Zhu, Di Natale, Pinello, Kanajan and Sangiovanni-Vincentelli, DAC 2007; for the age:
        Guenzel, Teper, Chen, von der Brueggen and Chen, ECRTS 2023.
    """
    return sum(task.period + response for task, response in zip(tasks, responses, strict=True))
