"""Verdicts with walks: what they add to proven bounds, and that they say where they end."""

from dataclasses import replace
from fractions import Fraction

import pytest

from makespan.deadlines.analysis import analyse
from makespan.deadlines.exactness import sharpen_verdict
from makespan.deadlines.exploration import explore
from makespan.deadlines.task import (
    ChainStart,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.verdict import DeadlineAnswer, Miss, TaskSetVerdict
from makespan.host.errors import BrokenPromiseError

GPU = GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY)


def suspending(factor: int = 1) -> TaskSet:
    """Two tasks that wait for kernels: no theorem proves the deadline of `b`."""
    cpu, kernel = JobSegment(SegmentKind.CPU, 1), JobSegment(SegmentKind.KERNEL, 1, "gpu")
    a = GpuTask("a", (kernel, cpu), 8, 7, priority=2, core="cpu", wait=HostWait.BLOCK)
    b = GpuTask("b", (cpu, kernel, replace(cpu, wcet=2)), 5, 5, priority=1, core="cpu", wait=HostWait.BLOCK)
    return longer(TaskSet((a, b), (GpuPartition("gpu", ServerPolicy.FIFO),)), factor)


def longer(task_set: TaskSet, factor: int) -> TaskSet:
    def task_of(task: GpuTask) -> GpuTask:
        segments = tuple(replace(segment, wcet=segment.wcet * factor) for segment in task.segments)
        return replace(task, segments=segments, period=task.period * factor, deadline=task.deadline * factor)

    return replace(task_set, tasks=tuple(map(task_of, task_set.tasks)))


def last(verdict: TaskSetVerdict, most_states: int = 2000) -> TaskSetVerdict:
    *_, found = sharpen_verdict(verdict, tick=Fraction(1, 10**6), most_states=most_states)
    return found


def test_a_walk_by_ticks_is_exact() -> None:
    before = analyse(suspending(), evidence=False)
    after = last(before)
    assert [task.response for task in before.tasks] == [3, 9]
    assert [(task.response, task.is_exact) for task in after.tasks] == [(3, True), (5, True)]
    assert after.tasks[1].method.endswith(" states, exact")
    assert not after.tasks[1].is_attained
    assert after.notes[-1].startswith("all schedules in steps of a tick, ")


def test_long_times_get_bounds_and_the_first_that_are_in_time_answer() -> None:
    """With ticks a million times as short there are too many states, but the grid of what divides all times has few."""
    after = last(analyse(suspending(10**6), evidence=False), most_states=500)
    assert [(task.response, task.is_exact) for task in after.tasks] == [(3 * 10**6, False), (5 * 10**6, False)]
    assert after.answer is DeadlineAnswer.YES
    assert "in steps of 1 s" in after.tasks[1].method
    assert after.notes[-1].endswith(" states: a, b; more than 500 states in steps of a tick: a, b")


def test_a_walk_that_contradicts_a_bound_or_a_schedule_raises() -> None:
    verdict = analyse(suspending(), evidence=False)
    low = replace(verdict, tasks=(verdict.tasks[0], replace(verdict.tasks[1], response=4)))
    with pytest.raises(BrokenPromiseError, match="b may take 5 ticks, and the bound was 4: trust neither, and report"):
        last(low)
    high = replace(verdict, tasks=(replace(verdict.tasks[0], response=9, is_exact=True), verdict.tasks[1]))
    with pytest.raises(BrokenPromiseError, match="a may take 3 ticks, and the exact response was 9"):
        last(high)
    with pytest.raises(BrokenPromiseError, match="b takes longer in a schedule than the 5 ticks of all: report it"):
        last(verdict.with_miss(Miss("b", 0, 20, "made up")))


def test_a_task_that_is_late_is_refuted_by_a_schedule() -> None:
    tight = suspending().tasks[0], replace(suspending().tasks[1], deadline=4)
    verdict = analyse(replace(suspending(), tasks=tight), evidence=False)
    after = last(verdict)
    assert after.answer is DeadlineAnswer.NO
    miss = after.tasks[1].miss
    assert miss is not None
    assert miss.completion - miss.arrival == 5
    assert miss.scenario == "the longest response of b in all schedules"
    assert (after.tasks[1].response, after.tasks[1].is_exact) == (5, True)


def test_times_that_nobody_has_shown_refute_nothing() -> None:
    a, b = suspending().tasks
    segments = tuple(replace(s, attained=0) if s.kind is SegmentKind.KERNEL else s for s in a.segments)
    unknown = replace(suspending(), tasks=(replace(a, segments=segments), replace(b, deadline=4)))
    after = last(analyse(unknown, evidence=False))
    assert after.tasks[1].response == 5
    assert (after.tasks[1].miss is None) == (explore(replace(unknown, tasks=unknown.tasks[1:])).response["b"] <= 4)


def racing(attained: int | None) -> TaskSet:
    """If the first kernel of `a` takes 1 tick of its 2, its second one comes before the second one of `b`."""

    def kernel(place: str, wcet: int) -> JobSegment:
        return JobSegment(SegmentKind.KERNEL, wcet, place, attained=None if attained is None else min(attained, wcet))

    a = GpuTask("a", (kernel("gpu", 2), kernel("other", 1)), 4, 9, priority=2)
    b = GpuTask("b", (kernel("other", 2), kernel("other", 1)), 10, 4, priority=1)
    return TaskSet((a, b), (GPU, GpuPartition("other", ServerPolicy.FIFO)))


def test_a_kernel_that_is_shown_to_take_its_time_refutes_nothing_by_taking_less() -> None:
    given, shown = (last(analyse(racing(attained), evidence=False)) for attained in (None, 2))
    assert [(v.tasks[1].response, v.tasks[1].is_exact) for v in (given, shown)] == [(5, True), (5, True)]
    assert (given.answer, given.supposes) == (DeadlineAnswer.NO, ("a", "b"))
    assert (shown.answer, shown.tasks[1].miss) == (DeadlineAnswer.UNKNOWN, None)
    assert not shown.tasks[1].is_attained
    assert explore(racing(2), is_short=lambda _: False).response["b"] == 4


def test_chains_get_shorter_with_their_tasks() -> None:
    first = one_kernel("first", 2, 9, 9, priority=1, partition="gpu")
    second = one_kernel("second", 3, 9, 9, priority=2, partition="gpu")
    other = one_kernel("other", 1, 9, 9, priority=3, partition="gpu")
    chains = tuple(
        TaskChain(str(activation), names, activation)
        for activation, names in ((ChainStart.DATA, ("first", "second")), (ChainStart.PERIODIC, ("other", "first")))
    )
    before = analyse(TaskSet((first, second, other), (GPU,), chains), evidence=False)
    after = last(before, 20_000)
    responses = {task.task: task.response for task in after.tasks}
    assert (after.chains[0].reaction, after.chains[0].age) == (6, None)
    assert after.chains[1].reaction == 9 + 9 + (responses["other"] or 0) + (responses["first"] or 0)
    assert all(
        old.reaction is None or (new.reaction or 0) <= old.reaction
        for old, new in zip(before.chains, after.chains, strict=True)
    )


def test_offsets_make_a_walk_a_bound() -> None:
    tasks = tuple(replace(task, offset=0) for task in suspending().tasks)
    after = last(analyse(replace(suspending(), tasks=tasks), evidence=False))
    assert [(task.response, task.is_exact) for task in after.tasks] == [(3, False), (5, False)]


def test_what_is_not_explored_is_said() -> None:
    tasks = tuple(replace(task, priority=1) for task in suspending().tasks)
    equal = longer(replace(suspending(), tasks=tasks), 1000)
    after = last(analyse(equal, evidence=False), most_states=50)
    assert after.notes[-1] == (
        "tasks a and b of core cpu have the same priority: no walk bounds what may happen between its steps; more than"
        " 50 states in steps of a tick: a, b"
    )
