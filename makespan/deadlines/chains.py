"""Chains of tasks that hand data on: which task starts which, and how old data can become.

In a chain by data, the end of a job is the arrival of the next task's job; that task's deadline and jitter count from
there, and its period is that of the task at the head. A task that several chains lead to waits for all of them. In a
periodic chain each task has a timer, which is strictly periodic with any phase; a job reads its input after its arrival
and writes its output at its end.
"""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from makespan.deadlines.task import ChainStart, GpuTask, SegmentKind, TaskSet
from makespan.host.errors import InputError


def predecessors(task_set: TaskSet) -> dict[str, tuple[str, ...]]:
    """Return the tasks that start each task that data starts, each such task after those that start it.

    Raises:
        InputError: a task is started in a circle, by tasks that go back to different heads, or by data and a timer; its
            offset or its period contradicts the task that starts it.
    """
    starts: dict[str, dict[str, None]] = {}
    for chain in task_set.chains:
        if chain.activation is ChainStart.DATA:
            for name, follower in zip(chain.tasks, chain.tasks[1:], strict=False):
                starts.setdefault(follower, {})[name] = None
    _refuse_timers(task_set, starts)
    order = _sources_first(starts)
    for name in order:  # sources first, so that what a task inherits from its head is checked
        for source in starts[name]:
            _check_follower(task_set.by_name[name], task_set.by_name[source])
    found = {name: tuple(starts[name]) for name in order}
    _refuse_two_heads(found)
    return found


def heads(starts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the task whose arrivals start each task that data starts; `starts` is the result of `predecessors`."""
    found: dict[str, str] = {}
    for name, sources in starts.items():
        found[name] = found.get(sources[0], sources[0])  # any source will do: all go back to one head
    return found


def family_heads(task_set: TaskSet) -> dict[str, str]:
    """Return the head of the family of every task, which is the task itself if no data starts it."""
    first = heads(predecessors(task_set))
    return {name: first.get(name, name) for name in task_set.by_name}


def independent_parts(task_set: TaskSet) -> list[tuple[GpuTask, ...]]:
    """Return the tasks in groups that share neither cores nor servers nor data.

    Raises:
        InputError: chains by data that contradict themselves.
    """
    family = family_heads(task_set)
    groups: list[tuple[set[object], list[str]]] = []
    for task in task_set.tasks:
        shared: set[object] = {("family", family[task.name]), ("core", task.core)}
        shared = (shared | {(s.kind, s.resource) for s in task.of(SegmentKind.COPY, SegmentKind.KERNEL)}) - {
            ("core", None)
        }
        names = [task.name]
        for group in [group for group in groups if group[0] & shared]:  # merge all groups that the task links
            shared |= group[0]
            names = group[1] + names
            groups.remove(group)
        groups.append((shared, names))
    return [tuple(task for task in task_set.tasks if task.name in names) for _, names in groups]


def _refuse_two_heads(starts: Mapping[str, tuple[str, ...]]) -> None:
    first = heads(starts)
    for name, sources in starts.items():
        if len(origins := dict.fromkeys(first.get(source, source) for source in sources)) > 1:
            one, other, *_ = origins
            raise InputError(
                f"task {name} waits for data that go back to {one} and to {other}, which arrive by themselves: let one"
                " task start both, or read the data of one with a timer (a chain with activation periodic)"
            )


def _refuse_timers(task_set: TaskSet, starts: Mapping[str, Mapping[str, None]]) -> None:
    for chain in task_set.chains:
        if chain.activation is ChainStart.PERIODIC and (both := [name for name in chain.tasks if name in starts]):
            raise InputError(
                f"task {both[0]} has a timer in chain {chain.name}, but data of {', '.join(starts[both[0]])} starts it"
            )


def _sources_first(starts: Mapping[str, Mapping[str, None]]) -> list[str]:
    try:
        return [name for name in TopologicalSorter(starts).static_order() if name in starts]
    except CycleError as error:
        raise InputError(f"task {error.args[1][0]} is in a circle of tasks that start each other by data") from None


def _check_follower(task: GpuTask, source: GpuTask) -> None:
    if task.period != source.period:
        raise InputError(
            f"task {task.name} has another period than {source.name}, which starts it by data: make them equal"
        )
    if task.offset is not None:
        raise InputError(f"task {task.name} has an offset, but data of {source.name} starts it: remove one of them")


def sampled_latency(tasks: Sequence[GpuTask], responses: Sequence[int]) -> int:
    """Return the longest time from a change of the input of a chain of timers to the first output that shows it.

    It also bounds the age of data: from reading the input until an output that uses it is replaced. Phases, offsets
    and jitter do not matter, since responses count from the arrivals.

    Source: Davare, Zhu, Di Natale, Pinello, Kanajan and Sangiovanni-Vincentelli, DAC 2007; for the age:
        Guenzel, Teper, Chen, von der Brueggen and Chen, ECRTS 2023.
    """
    return sum(task.period + response for task, response in zip(tasks, responses, strict=True))  # theorem 7


def chain_latencies(
    activation: ChainStart, tasks: Sequence[GpuTask], responses: Sequence[int | None], end: int | None
) -> tuple[int | None, int | None]:
    """Return bounds on the reaction and the age of a chain, None where none is known.

    Args:
        responses: The bounds on the responses of the tasks; only a chain of timers needs them.
        end: The bound from the arrival at the head to the end of the last task; only a chain by data needs it.
    """
    if activation is ChainStart.PERIODIC:
        known = [response for response in responses if response is not None]
        both = sampled_latency(tasks, known) if len(known) == len(tasks) else None
        return both, both
    return end, None if end is None or tasks[0].offset is None else end + tasks[0].period
