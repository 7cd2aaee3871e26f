"""Scenarios that are expected to make tasks late: critical instants of the literature, and the hyperperiod."""

from collections.abc import Iterator
from math import lcm

from makespan.schedulability.courses import Course, cut_at, full, packed, reach, scenario_of
from makespan.schedulability.simulation import Scenario
from makespan.schedulability.task import Policy, Task, TaskSet

MOST_JOBS = 400
_MOST_SHIFTS = 12
_EDF = (Policy.EDF, Policy.EDF_RELEASE)


def hyperperiod(task_set: TaskSet) -> int:
    """The least time after which the pattern of strictly periodic arrivals repeats, in ticks."""
    return lcm(*(task.period for task in task_set.tasks))


def periodic(task_set: TaskSet, *, most_jobs: int = MOST_JOBS) -> Scenario:
    """Every task strictly periodic from its offset or from 0, no jitter, full execution times, for one hyperperiod.

    With different offsets for two hyperperiods after the last one. Longer ones are cut at `most_jobs` jobs, and the
    words of the scenario say so.
    """
    offsets = [task.offset or 0 for task in task_set.tasks]
    length = hyperperiod(task_set)
    until = max(offsets) + (length if len(set(offsets)) == 1 else 2 * length)
    cut = cut_at(task_set, until, most_jobs)
    words = "periodic from the offsets" if any(offsets) else "synchronous periodic release"
    words += f", {'the hyperperiod' if len(set(offsets)) == 1 else 'two hyperperiods'} of {length} ticks"
    if cut < until:
        words += f" cut at {cut} ticks, {most_jobs} jobs"
    courses = {task.name: full(task, task.offset or 0, task.offset or 0, cut) for task in task_set.tasks}
    return scenario_of(task_set, courses, tuple(task_set.by_name), words)


def critical(task_set: TaskSet, name: str, *, most_jobs: int = MOST_JOBS) -> Iterator[Scenario]:
    """The instants at which analyses expect the worst for a task; everybody runs for as long as allowed.

    All tasks are released together, as late as their jitter allows and then as soon as it allows, the task last among
    equals. One tick before, a kernel that the policy would let wait has begun: the longest one. Under EDF the
    task's own release may have to come later, such that its deadline meets that of another job. FIFO needs no more
    than the common release. Strictly periodic tasks arrive at their offsets all the same.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996, for both policies; Tindell and Clark, Microprocessing and
    Microprogramming 40, 1994, for jitter.
    """
    target = task_set.by_name[name]
    start = 1 + max(task.jitter for task in task_set.tasks) + max(task.before for task in task_set.tasks)
    until = cut_at(task_set, start + reach(task_set), most_jobs)
    courses = {task.name: packed(task, start, until) for task in task_set.tasks}
    order = _target_last(task_set, name)
    policy = _policy(task_set, target)
    shifts = _deadlines_met(task_set, target, until - start) if policy in _EDF else (0,)
    for shift in shifts:
        shifted = courses | {name: _later(target, policy, start, shift % target.period, until + target.period)}
        words = "common release" + ", as late as jitter allows" * any(task.jitter for task in task_set.tasks)
        if shift:
            words += f", {name} {shift} ticks later"
        yield scenario_of(task_set, shifted, order, words)
        for blocker in _blockers(task_set, target, shift):
            early = packed(blocker, start - 1 - blocker.before, until)
            words_blocked = f"{words}, one tick after the kernel of {blocker.name} has begun"
            yield scenario_of(task_set, shifted | {blocker.name: early}, order, words_blocked)
    yield periodic(task_set, most_jobs=most_jobs)


def _later(task: Task, policy: Policy, start: int, shift: int, until: int) -> Course:
    """Like `packed` with the first deadline so much later; under EDF jitter does not move it, so it still helps."""
    if policy is Policy.EDF and task.offset is None:
        return full(task, start - task.jitter + shift, start, until)
    return packed(task, start + shift, until)


def _policy(task_set: TaskSet, task: Task) -> Policy:
    return next(partition.policy for partition in task_set.partitions if partition.name == task.partition)


def _target_last(task_set: TaskSet, name: str) -> tuple[str, ...]:
    return (*(other for other in task_set.by_name if other != name), name)


def _blockers(task_set: TaskSet, target: Task, shift: int) -> list[Task]:
    """Of the kernels that would have to wait for the target, the longest; under FIFO none would."""
    policy = _policy(task_set, target)
    others = [task for task in task_set.on(target.partition or "") if task is not target and task.offset is None]
    if policy is Policy.FIXED_PRIORITY:
        urgency = target.priority or 0
        others = [task for task in others if (task.priority or 0) < urgency]
    elif policy in _EDF:
        due = shift + target.deadline - target.jitter
        others = [task for task in others if task.deadline - task.jitter > due]
    else:
        others = []
    return sorted(others, key=lambda task: -task.wcet)[:1]


def _deadlines_met(task_set: TaskSet, target: Task, length: int) -> list[int]:
    """How much later than all others the target may be released such that its deadline is that of another's job."""
    due = target.deadline - target.jitter
    found = {0}
    for task in task_set.on(target.partition or ""):
        jobs = min(MOST_JOBS, length // task.period + 1)
        found.update(k * task.period + task.deadline - task.jitter - due for k in range(jobs))
    return sorted(shift for shift in found if 0 <= shift <= length)[:_MOST_SHIFTS]
