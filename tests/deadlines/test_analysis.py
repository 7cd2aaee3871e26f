"""The verdict for a whole task set."""

from dataclasses import replace
from random import Random

import pytest

from makespan.deadlines import prosa
from makespan.deadlines.analysis import METHODS, analyse
from makespan.deadlines.exploration import explore
from makespan.deadlines.holistic import WINDOW, AnalysisLimits
from makespan.deadlines.task import ChainStart, GpuPartition, HostWait, ServerPolicy, TaskChain, TaskSet, one_kernel
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.host.errors import BrokenPromiseError
from tests.deadlines.sets import kernel, many_kernels, partition_of, small_kernels, small_systems

URGENT, LATER = kernel("urgent", 2, 10, 2), kernel("later", 4, 20, 1)


def test_a_verdict_says_what_a_bound_consists_of() -> None:
    verdict = analyse(partition_of(replace(URGENT, jitter=1), LATER))
    urgent, later = verdict.tasks
    assert (urgent.response, urgent.parts) == (6, (("jitter", 1), ("blocking", 3), ("kernel", 2)))
    assert (later.response, later.parts) == (6, (("kernel", 4), ("interference", 2)))
    assert urgent.is_exact
    assert later.is_exact
    assert urgent.method == METHODS[ServerPolicy.FIXED_PRIORITY]
    assert verdict.answer is DeadlineAnswer.YES


def test_cpu_time_is_a_part() -> None:
    task = one_kernel(
        *("t", 5, 20, 20), jitter=1, priority=1, before=2, after=3, core="cpu", wait=HostWait.BLOCK, partition="gpu"
    )
    found = analyse(TaskSet((task,), (GpuPartition("gpu", ServerPolicy.EDF),))).tasks[0]
    assert found.parts == (("jitter", 1), ("CPU", 5), ("kernel", 5))
    assert found.response == 11
    assert found.method == WINDOW
    assert not found.is_exact


def test_exact_bounds_are_reached_and_others_never_exceeded() -> None:
    random = Random(8)
    exact = 0
    for at in range(60):
        task_set = small_kernels(random) if at % 2 else small_systems(random)
        truth = explore(task_set, is_short=lambda _: False, most_states=700).response
        for verdict in analyse(task_set, evidence=False).tasks:
            longest = truth.get(verdict.task)
            if longest is not None and verdict.response is not None:
                assert verdict.response >= longest
                assert verdict.response == longest or not verdict.is_exact
                assert verdict.answer is not DeadlineAnswer.YES or longest <= task_set.by_name[verdict.task].deadline
                exact += verdict.is_exact
    assert exact > 30


def test_offsets_cpu_time_and_data_make_bounds_inexact() -> None:
    plain = partition_of(URGENT, LATER)
    assert all(task.is_exact for task in analyse(plain).tasks)
    with_offset = partition_of(URGENT, replace(LATER, offset=5))
    with_cpu = partition_of(
        URGENT, one_kernel("later", 4, 20, 20, priority=1, before=1, core="cpu", wait=HostWait.BLOCK, partition="gpu")
    )
    with_data = replace(
        partition_of(URGENT, kernel("next", 1, 10, 0), LATER),
        chains=(TaskChain("c", ("urgent", "next"), ChainStart.DATA),),
    )
    for task_set in (with_offset, with_cpu, with_data):
        assert not any(task.is_exact for task in analyse(task_set).tasks)
    assert analyse(with_offset).notes[0].startswith("offsets are not used")


def test_other_partitions_do_not_make_a_bound_inexact() -> None:
    other = one_kernel("other", 1, 9, 9, offset=3, partition="side")
    task_set = TaskSet(
        (URGENT, other), (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY), GpuPartition("side", ServerPolicy.FIFO))
    )
    assert [task.is_exact for task in analyse(task_set).tasks] == [True, False]


def test_a_bound_beyond_the_deadline_is_refuted_by_a_schedule() -> None:
    task_set = partition_of(URGENT, replace(LATER, deadline=5))
    verdict = analyse(task_set)
    assert verdict.answer is verdict.tasks[1].answer is DeadlineAnswer.NO
    miss = verdict.tasks[1].miss
    assert miss is not None
    assert miss.completion - miss.arrival > 5
    assert analyse(task_set, evidence=False).tasks[1].answer is DeadlineAnswer.UNKNOWN


def test_limits_leave_a_task_undecided_and_say_so() -> None:
    task_set = partition_of(*(kernel(name, 1, 10**9 + at, deadline=10**9) for at, name in enumerate("abcdefg")))
    verdict = analyse(task_set, limits=AnalysisLimits(one=5), evidence=False)
    assert verdict.answer is DeadlineAnswer.UNKNOWN
    assert {task.method for task in verdict.tasks} == {"no bound: the analysis stopped at its limit"}
    assert verdict.notes == (
        "stopped at the limit of 5 additions for a bound, 4400000 in all: a, b, c, d, e and 2 more",
    )


@pytest.mark.parametrize("policy", ServerPolicy)
def test_a_second_implementation_confirms_kernels(policy: ServerPolicy) -> None:
    """Under EDF it knows no jitter that leaves deadlines where they are."""
    jitter = 0 if policy is ServerPolicy.EDF else 3
    verdict = analyse(partition_of(replace(URGENT, jitter=jitter), LATER, policy=policy))
    assert verdict.notes == ("partition gpu: response-time-analysis computes the same bounds",)


def test_deadlines_far_apart_are_no_work_for_the_second_implementation() -> None:
    """It would walk from one to the other, a period at a time."""
    tasks = (kernel("a", 1, 3, deadline=2), kernel("b", 2, 10, deadline=10**12))
    verdict = analyse(partition_of(*tasks, policy=ServerPolicy.EDF))
    assert ([task.response for task in verdict.tasks], verdict.notes) == ([2, 3], ())


def test_two_implementations_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prosa, "prosa_bounds", lambda streams, policy: (5, 7))
    with pytest.raises(BrokenPromiseError, match=r"partition gpu: bounds of \[5, 6\] ticks, but"):
        analyse(partition_of(URGENT, LATER))


@pytest.mark.parametrize("policy", ServerPolicy)
@pytest.mark.parametrize("utilisation", [0.7, 0.9])
def test_twenty_tasks_are_decided_within_the_limits(policy: ServerPolicy, utilisation: float) -> None:
    verdict = analyse(many_kernels(Random(2), 20, utilisation, policy), evidence=False)
    assert all(task.response is not None for task in verdict.tasks)


def test_a_full_partition_without_a_bound_in_sight_stops() -> None:
    """One part in 10^15 below full, and jitter: windows without end, for all practical purposes."""
    tasks = [kernel("a", 1, 3, 1, jitter=1), kernel("b", 10**15, 15 * 10**14 + 1, 2)]
    for policy in ServerPolicy:
        verdict = analyse(partition_of(*tasks, policy=policy), limits=AnalysisLimits(one=30_000), evidence=False)
        assert verdict.answer is DeadlineAnswer.UNKNOWN


def test_an_empty_partition_is_no_obstacle() -> None:
    task_set = TaskSet(
        (URGENT,), (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY), GpuPartition("idle", ServerPolicy.EDF))
    )
    verdict = analyse(task_set)
    assert verdict.answer is DeadlineAnswer.YES
    assert len(verdict.notes) == 1
