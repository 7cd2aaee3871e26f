"""Bounds of tasks whose segments wait for each other, against exhaustive search."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.deadlines import interference
from makespan.deadlines.arrivals import StepFunction
from makespan.deadlines.exploration import explore
from makespan.deadlines.holistic import OBLIVIOUS, WINDOW, AnalysisLimits, Responses, responses
from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
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
from makespan.deadlines.workload import PeriodicWork
from makespan.host.errors import InputError
from tests.deadlines.sets import small_systems, system_of
from tests.deadlines.test_exploration import TRUTHS

LIMITS = AnalysisLimits()


def proven(task_set: TaskSet) -> Responses:
    return responses(task_set, LIMITS)


def check(task_set: TaskSet, *, is_short: bool, most_states: int = 700) -> int:
    """How many bounds were compared with the truth; none is below it."""
    found = proven(task_set).of
    truth = explore(task_set, is_short=lambda _: is_short, most_states=most_states) if any(found.values()) else None
    if truth is None:
        return 0
    bounds = {name: response for name, response in found.items() if response is not None}
    for name, response in bounds.items():
        assert response.total >= truth.response.get(name, 0)
        assert response.end >= truth.end.get(name, 0)
        assert sum(ticks for _, ticks in response.parts) == response.total
    return len(bounds.keys() & truth.response.keys())


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_schedule_takes_longer_than_the_bounds(random: Random, is_short: bool) -> None:
    check(small_systems(random), is_short=is_short)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_schedule_of_chains_takes_longer_than_the_bounds(random: Random, is_short: bool) -> None:
    check(small_systems(random, is_chained=True), is_short=is_short)


@pytest.mark.parametrize("line", TRUTHS)
def test_no_bound_is_below_what_another_program_finds(line: str) -> None:
    known = json.loads(line)
    for response, total, end in zip(proven(system_of(known)).of.values(), known["response"], known["end"], strict=True):
        assert response is None or (response.total >= total and response.end >= end)


def test_random_systems_are_worth_the_comparison() -> None:
    random = Random(2)
    assert sum(check(small_systems(random), is_short=False) for _ in range(40)) > 30


def on_core(name: str, times: tuple[int, int, int], period: int, priority: int, partition: str) -> GpuTask:
    before, wcet, after = times
    return one_kernel(
        *(name, wcet, period, period),
        priority=priority,
        before=before,
        after=after,
        core="cpu",
        wait=HostWait.BLOCK,
        partition=partition,
    )


def own_partitions(*tasks: GpuTask) -> TaskSet:
    """Every task has its partition, so that only the core is shared."""
    names = dict.fromkeys(segment.resource or "" for task in tasks for segment in task.of(SegmentKind.KERNEL))
    return TaskSet(tasks, tuple(GpuPartition(name, ServerPolicy.FIFO) for name in names))


def system(*rows: tuple[int, int, int, int]) -> TaskSet:
    """Before, kernel, after and period of each task, the most urgent one first, all on one core."""
    return own_partitions(
        *(
            on_core(f"t{at}", (before, wcet, after), period, -at, f"g{at}")
            for at, (before, wcet, after, period) in enumerate(rows)
        )
    )


def totals(task_set: TaskSet) -> tuple[int | None, ...]:
    return tuple(None if response is None else response.total for response in proven(task_set).of.values())


def arrivals_only(work: PeriodicWork) -> StepFunction:
    """What a job that never waits could take: wrong for tasks with kernels."""
    period, each = work.period, work.joint[0]
    return StepFunction.of(lambda length: -(-length // period) * each, period, each, (), [1])


def test_cpu_time_after_a_wait_comes_back_to_back_with_the_next_job() -> None:
    """8..10 the end of a job, 12..14 and 15..17 the next one, whose kernel is short: 6 ticks in 10."""
    task_set = system((2, 6, 2, 12), (4, 1, 0, 40))
    assert tuple(explore(task_set).response.values()) == totals(task_set) == (10, 11)


@pytest.mark.parametrize(
    ("rows", "claimed", "least", "ours"),
    [
        (((2, 6, 2, 12), (4, 1, 0, 40)), 9, 11, 11),
        (((1, 1, 0, 2), (1, 2, 2, 9), (1, 1, 0, 35)), 9, 13, 15),
        (((1, 1, 0, 2), (1, 1, 3, 14), (3, 1, 0, 38)), 15, 21, 23),
    ],
)
def test_wrong_jitter_claims_less_than_what_happens(
    rows: tuple[tuple[int, int, int, int], ...],
    claimed: int,
    least: int,
    ours: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task_set = system(*rows)
    assert list(explore(task_set).response.values())[-1] == least
    assert totals(task_set)[-1] == ours
    monkeypatch.setattr(PeriodicWork, "stairs", property(arrivals_only))
    assert totals(task_set)[-1] == claimed


def test_workload_is_the_most_that_fits_any_window() -> None:
    """Jobs that end as late as the first may and as early as the others can, at every distance."""
    group = PeriodicWork(10, ((2, 0), (3, 5)), (5, 3), ()).stairs  # done 2 and 8 ticks after the event, at most
    for length in range(1, 40):
        best = 0
        for gap in range(3 + 1):  # the wait of the first job; the others' waits are 0
            for start in range(10):
                pieces = [(0, 2), (2 + gap, 5 + gap)]
                pieces += [(10 * k, 10 * k + 5) for k in range(1, 6)]
                inside = sum(max(0, min(b, start + length) - max(a, start)) for a, b in pieces)
                best = max(best, inside)
        assert best <= group.at(length) <= 5 * (length // 10 + 2)


def test_each_way_can_be_the_best() -> None:
    found = proven(system((2, 1, 3, 39), (1, 2, 2, 27), (1, 1, 3, 27), (3, 2, 3, 26))).of.values()
    assert [r and (r.way, r.total) for r in found] == [(WINDOW, 6), (WINDOW, 10), (WINDOW, 13), (OBLIVIOUS, 24)]
    alone = proven(own_partitions(one_kernel("alone", 3, 9, 9, partition="g"))).of["alone"]
    assert alone is not None
    assert (alone.way, alone.total) == (None, 3)


def test_waiting_as_cpu_time_needs_different_priorities() -> None:
    """With equal ones, an earlier job of the same task may still run in the window."""
    task_set = system((2, 1, 3, 39), (1, 2, 2, 27), (1, 1, 3, 27), (3, 2, 3, 26))
    levelled = replace(task_set, tasks=tuple(replace(task, priority=0) for task in task_set.tasks))
    assert all(response is None or response.way != OBLIVIOUS for response in proven(levelled).of.values())


def test_a_core_at_its_limit_has_no_bound_for_the_least_urgent() -> None:
    tasks = own_partitions(on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (1, 1, 3), 20, 1, "b"))
    found = proven(tasks).of
    assert found["a"] is not None
    assert found["b"] is None


def test_what_needs_a_bound_that_does_not_exist_has_none() -> None:
    """`b` may run late without end, and `c` waits for its kernels; `a` does not."""
    a, b = on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (1, 1, 3), 20, 1, "b")
    c, d = (one_kernel(name, 1, 100, 100, partition=resource) for name, resource in (("c", "b"), ("d", "a")))
    found = proven(own_partitions(a, b, c, d))
    assert [name for name, response in found.of.items() if response is None] == ["b", "c"]
    assert found.lost == {"b": "b", "c": "b"}


def test_kernels_that_come_first_are_ready_in_time_whatever_follows() -> None:
    """Nothing bounds the jobs of `b`, but its kernels wait for nothing: so `c` has a bound."""
    a, b = on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (0, 1, 5), 20, 1, "b")
    c = one_kernel("c", 1, 100, 100, partition="b")
    assert totals(own_partitions(a, b, c)) == (6, None, 2)


def test_unassigned_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="task t has no partition: assign it, then analyse"):
        proven(TaskSet((one_kernel("t", 1, 10, 10),), (GpuPartition("g", ServerPolicy.FIFO),)))


def test_limits_stop_windows_on_cores() -> None:
    stopped = responses(system((2, 6, 2, 12), (4, 1, 0, 40)), AnalysisLimits(total=3))
    assert stopped.stopped
    assert set(stopped.of.values()) == {None}


def test_a_job_that_may_end_after_the_next_arrival_has_a_bound() -> None:
    """`late` takes longer than its period if `hog` comes twice: then its next job waits for it, too."""
    hog = replace(on_core("hog", (6, 1, 0), 10, 2, "h"), jitter=2)
    task_set = own_partitions(hog, on_core("late", (3, 1, 0), 10, 1, "g"))
    assert tuple(explore(task_set).response.values()) == totals(task_set) == (9, 16)


def check_overlapping() -> int:
    """How many bounds beyond the period were compared with the truth, on cores that are so full."""
    random = Random(3)
    overlapping = 0
    for _ in range(60):
        tasks = []
        for number in range(2):
            period, times = random.randint(3, 8), random.choice(((1, 0), (0, 1), (2, 0), (1, 1), (2, 1), (3, 0)))
            task = on_core(f"t{number}", (times[0], 1, times[1]), period, number, random.choice("gh"))
            tasks.append(replace(task, jitter=random.choice((0, 1, 3))))
        task_set = own_partitions(*tasks)
        found = proven(task_set).of
        late = {task.name for task in tasks if (r := found[task.name]) is not None and r.end > task.period}
        truth = explore(task_set, most_states=600).response if late else {}
        for name, longest in truth.items():
            response = found[name]
            assert response is None or response.total >= longest
            overlapping += name in late
    return overlapping


def test_jobs_that_overlap_never_take_longer_than_the_bounds() -> None:
    assert check_overlapping() > 20


def test_without_earlier_jobs_the_bounds_would_be_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "overlapping_activations", lambda length, period: 0)
    with pytest.raises(AssertionError):
        check_overlapping()


def test_what_follows_a_thread_that_spins_may_begin_at_its_end() -> None:
    spinning = one_kernel("a", 1, 100, 100, priority=1, before=1, core="CPU", wait=HostWait.SPIN, partition="SM0")
    follower, other = (
        GpuTask(name, (JobSegment(SegmentKind.CPU, 1),), 100, 100, priority=1, core="CPU") for name in "bc"
    )
    task_set = TaskSet(
        (spinning, follower, other),
        (GpuPartition("SM0", ServerPolicy.FIFO),),
        (TaskChain("a to b", ("a", "b"), ChainStart.DATA),),
    )
    assert check(task_set, is_short=True) == 3
    assert totals(task_set)[2] == 4


def test_what_waits_for_several_may_begin_at_the_end_of_any_of_them() -> None:
    def of(name: str, wcet: int, resource: str, count: int = 1, priority: int = 2) -> GpuTask:
        kind = SegmentKind.KERNEL if resource == "SM0" else SegmentKind.COPY
        return GpuTask(name, (JobSegment(kind, wcet, resource),) * count, 100, 100, priority=priority)

    ways = (("head", "short", "join"), ("head", "long", "join"))
    family = (of("head", 1, "in"), of("short", 3, "SM0"), of("long", 1, "out", 3), of("join", 2, "SM0"))
    task_set = TaskSet(
        (*family, of("other", 1, "SM0", priority=1)),
        (GpuPartition("SM0", ServerPolicy.FIXED_PRIORITY),),
        tuple(TaskChain(" to ".join(way), way, ChainStart.DATA) for way in ways),
        (CopyEngine("in", ServerPolicy.FIFO), CopyEngine("out", ServerPolicy.FIFO)),
    )
    assert check(task_set, is_short=True) == 5
    assert totals(task_set)[4] == 6


def test_who_is_released_early_may_wait_for_one_that_was_released_late() -> None:
    two = (JobSegment(SegmentKind.KERNEL, 5, "SM0"), JobSegment(SegmentKind.KERNEL, 3, "SM1"))
    tasks = (GpuTask("bunched", two, 8, 12, jitter=4), GpuTask("other", two[1:], 20, 2))
    task_set = TaskSet(tasks, (GpuPartition("SM0", ServerPolicy.FIFO), GpuPartition("SM1", ServerPolicy.EDF_RELEASE)))
    assert check(task_set, is_short=True) == 2
    assert explore(task_set, most_states=10000).response["other"] == 6
