"""A small, plainly sufficient analysis: enough to test what asks an analysis, without the real one."""

from makespan.deadlines.task import GpuTask, SegmentKind, TaskSet
from makespan.deadlines.utilisation import server_load
from makespan.deadlines.verdict import ChainVerdict, DeadlineAnswer, TaskSetVerdict, TaskVerdict


def analysis(task_set: TaskSet) -> TaskSetVerdict:
    """One job of every other kernel of the partition may come first; utilisation must not exceed 1."""
    loads = tuple(server_load(p.name, task_set.on(p.name), p.name) for p in task_set.partitions)
    overloaded = {load.name for load in loads if load.is_overload}
    tasks = tuple(_verdict(task, task_set, _place(task) in overloaded) for task in task_set.tasks)
    late = {verdict.task for verdict in tasks if verdict.answer is not DeadlineAnswer.YES}
    chains = tuple(
        ChainVerdict(
            c.name,
            None,
            None,
            DeadlineAnswer.UNKNOWN if late & set(c.tasks) or _apart(task_set, c.tasks) else DeadlineAnswer.YES,
            "toy",
        )
        for c in task_set.chains
    )
    return TaskSetVerdict(task_set, loads, tasks, chains)


def _verdict(task: GpuTask, task_set: TaskSet, overloaded: bool) -> TaskVerdict:
    response = (
        task.jitter
        + task.cpu
        + sum(segment.wcet for other in task_set.on(_place(task)) for segment in other.on(_place(task)))
    )
    answer = DeadlineAnswer.YES if response <= task.deadline and not overloaded else DeadlineAnswer.UNKNOWN
    return TaskVerdict(task.name, response, answer, (), False, "toy")


def _apart(task_set: TaskSet, names: tuple[str, ...]) -> bool:
    """The toy proves chains only on one partition."""
    return len({_place(task_set.by_name[name]) for name in names}) > 1


def _place(task: GpuTask) -> str:
    """The partition of its kernels."""
    return next((segment.resource for segment in task.of(SegmentKind.KERNEL)), None) or ""
