"""Bounds of kernels on one partition, against exhaustive search, a second implementation and each other."""

from math import lcm
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from response_time_analysis.model import Periodic

from makespan.deadlines import prosa, response
from makespan.deadlines.arrivals import OutOfStepsError, StepBudget, Stream, arrivals_within, first_multiple
from makespan.deadlines.exploration import explore
from makespan.deadlines.response import AnalysedOperation, KernelBound, busy_period, kernel_bounds
from makespan.deadlines.task import ServerPolicy, TaskSet
from makespan.deadlines.utilisation import resource_loads
from tests.deadlines.sets import kernel, many_kernels, partition_of, small_kernels, streams_of

PLENTY = 10**7


def alone(
    streams: list[Stream], at: int, policy: ServerPolicy, since: int, steps: StepBudget
) -> tuple[KernelBound, ...] | None:
    """One of several streams, each a family of its own."""
    rivals = [*streams[:at], *streams[at + 1 :]]
    return kernel_bounds(AnalysedOperation.alone(streams[at]), rivals, policy, (since,), steps)


def bounds(streams: list[Stream], policy: ServerPolicy, steps: int = PLENTY) -> list[int | None]:
    """From the event until the end."""
    found = [alone(streams, at, policy, s.delay, StepBudget(steps)) for at, s in enumerate(streams)]
    return [None if each is None else each[0].response for each in found]


def from_ready(streams: list[Stream], policy: ServerPolicy) -> list[int | None]:
    found = [alone(streams, at, policy, 0, StepBudget(PLENTY)) for at in range(len(streams))]
    return [None if each is None else each[0].response for each in found]


def bounds_of(task_set: TaskSet) -> list[int | None]:
    return bounds(streams_of(task_set), task_set.partitions[0].policy)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=100, deadline=None)
def test_bounds_are_exactly_the_worst_of_all_schedules(random: Random, is_short: bool) -> None:
    task_set = small_kernels(random)
    truth = explore(task_set, is_short=lambda _: is_short, most_states=3000).response
    if truth:
        assert bounds_of(task_set) == list(truth.values())


@pytest.mark.parametrize("policy", ServerPolicy)
def test_full_partitions_with_jitter_have_bounds(policy: ServerPolicy) -> None:
    """The busy window never ends, so the search stops where it repeats."""
    task_set = partition_of(kernel("a", 1, 2, 2, jitter=3), kernel("b", 2, 4, 1, jitter=1), policy=policy)
    assert busy_period(streams_of(task_set), 0, StepBudget(PLENTY)) is None
    assert bounds_of(task_set) == list(explore(task_set).response.values())


def test_a_full_partition_repeats_only_once_all_deadlines_are_in_reach() -> None:
    """Looking as far as a common multiple of the periods would find 2 for the second task."""
    tasks = kernel("a", 1, 2, deadline=5, jitter=3), kernel("b", 1, 2, deadline=1, jitter=1)
    for policy, expected in ((ServerPolicy.EDF_RELEASE, [6, 3]), (ServerPolicy.EDF, [6, 2])):
        task_set = partition_of(*tasks, policy=policy)
        assert bounds_of(task_set) == list(explore(task_set).response.values()) == expected


@pytest.mark.parametrize("policy", ServerPolicy)
def test_a_full_partition_repeats_only_once_late_kernels_have_come(policy: ServerPolicy) -> None:
    """Four kernels are ready at once: looking as far as a common multiple of the periods would find the first only."""
    assert from_ready([Stream(3, 3, jitter=9)], policy) == [12]


@given(st.randoms(use_true_random=False), st.sampled_from(ServerPolicy))
@settings(max_examples=60, deadline=None)
def test_prosa_computes_the_same_bounds(random: Random, policy: ServerPolicy) -> None:
    streams = []
    for _ in range(random.randint(1, 6)):
        period = random.randint(8, 60)
        wcet, jitter = random.randint(1, period // 8), random.choice((0, random.randint(0, 3 * period)))
        streams.append(Stream(wcet, period, jitter, 0, random.randint(-5, 80), random.randint(-1, 2)))
    ours: list[int | None] = from_ready(streams, policy)
    if policy is ServerPolicy.FIFO:
        ours = [max(each for each in ours if each is not None)] * len(ours)
    assert list(prosa.prosa_bounds(streams, policy)) == ours


@pytest.mark.parametrize("policy", ServerPolicy)
def test_equal_tasks_all_count(policy: ServerPolicy) -> None:
    """Two tasks with equal numbers: each waits for the other, also in the second implementation."""
    streams = [Stream(3, 20, deadline=20), Stream(3, 20, deadline=20), Stream(3, 20, deadline=20)]
    assert bounds(streams, policy) == [9, 9, 9]
    assert prosa.prosa_bounds(streams, policy) == (9, 9, 9)


@pytest.mark.parametrize("policy", ServerPolicy)
def test_times_beyond_floating_point_are_exact(policy: ServerPolicy) -> None:
    """Twice 10^20 + 1 in a period of that length is one job, and one tick more is a second one."""
    period = 10**20 + 1
    assert arrivals_within(period - 1, period, 0) == 1
    assert arrivals_within(period, period, 0) == 2
    assert Periodic(period).max_arrivals(period + 1) == 1  # wrong: why the package gets our curves
    streams = [Stream(1, period, deadline=2 * period, priority=1), Stream(period - 1, 2 * period, deadline=2 * period)]
    small = [Stream(1, 11, deadline=22, priority=1), Stream(10, 22, deadline=22)]
    assert bounds(small, policy) == [10 if policy is ServerPolicy.FIXED_PRIORITY else 11, 11]
    assert bounds(streams, policy) == [period - 1 if policy is ServerPolicy.FIXED_PRIORITY else period, period]
    assert prosa.prosa_bounds(streams, policy)[1] == period


@pytest.mark.parametrize("policy", ServerPolicy)
def test_scaled_times_scale_up_to_the_tick_of_blocking(policy: ServerPolicy) -> None:
    """In k times finer ticks, a bound is k R, or k (R + 1) - 1 with blocking: continuous time adds less than a tick."""
    random = Random(5)
    for _ in range(60):
        streams = streams_of(small_kernels(random))
        fine = [Stream(3 * s.wcet, 3 * s.period, 3 * s.jitter, 3 * s.lag, 3 * s.deadline, s.priority) for s in streams]
        for coarse, scaled in zip(bounds(streams, policy), bounds(fine, policy), strict=True):
            assert coarse is not None
            assert scaled is not None
            assert 3 * coarse <= scaled <= 3 * coarse + 2


def test_more_work_never_shortens_a_bound() -> None:
    random = Random(6)
    for _ in range(200):
        task_set = small_kernels(random)
        streams, policy = streams_of(task_set), task_set.partitions[0].policy
        before = bounds(streams[1:], policy)
        for less, more in zip(before, bounds(streams, policy)[1:], strict=True):
            assert less is not None
            assert more is not None
            assert less <= more


def test_overload_has_no_bound_but_more_urgent_kernels_have() -> None:
    task_set = partition_of(kernel("a", 3, 5, 2), kernel("b", 3, 5, 1), kernel("c", 2, 100, 1))
    assert bounds_of(task_set) == [5, None, None]
    assert bounds(streams_of(task_set), ServerPolicy.EDF) == [None] * 3
    assert bounds(streams_of(task_set), ServerPolicy.FIFO) == [None] * 3


def test_a_stream_that_nothing_bounds_blocks_once_at_most() -> None:
    wild = Stream(7, 50, priority=0, is_wild=True)
    assert bounds([Stream(2, 10, priority=1), wild], ServerPolicy.FIXED_PRIORITY)[0] == 8
    assert bounds([Stream(2, 10, priority=0), wild], ServerPolicy.FIXED_PRIORITY)[0] is None
    assert bounds([Stream(2, 10), wild], ServerPolicy.EDF)[0] is None


@pytest.mark.parametrize("policy", ServerPolicy)
def test_limits_stop_the_search(policy: ServerPolicy) -> None:
    """Almost full, with periods so different that a busy window has more than 10^9 kernels of the short one."""
    streams = [Stream(1, 3), Stream(10**9, 15 * 10**8 + 1, deadline=1, priority=1)]
    with pytest.raises(OutOfStepsError):
        bounds(streams, policy, steps=20_000)


@pytest.mark.parametrize("policy", ServerPolicy)
def test_twenty_tasks_take_few_steps(policy: ServerPolicy) -> None:
    streams = streams_of(many_kernels(Random(1), 20, 0.9, policy))
    steps = StepBudget(500_000)
    for at, own in enumerate(streams):
        assert alone(streams, at, policy, own.delay, steps) is not None


def test_multiples_start_at_the_least() -> None:
    for first in range(-7, 8):
        for least in range(-7, 8):
            found = first_multiple(first, 3, least)
            assert found == min(x for x in range(first, first + 60, 3) if x >= least)


def test_a_fixed_priority_task_can_be_worst_after_its_first_job() -> None:
    """Three kernels of 10 of 25, 35 and 35 ticks: the second job of the least urgent takes longest."""
    task_set = partition_of(kernel("a", 10, 25, 3), kernel("b", 10, 35, 2), kernel("c", 10, 35, 1))
    assert bounds_of(task_set) == [19, 29, 35]
    assert bounds_of(partition_of(kernel("a", 10, 25, 3), kernel("b", 10, 35, 2), kernel("c", 10, 70, 1)))[2] == 30


def test_edf_by_arrivals_and_by_releases_differ_where_there_is_jitter() -> None:
    """A job of `b` is due 5 after it arrives, 3 after the latest release: by an early release it goes before `a`."""
    tasks = kernel("a", 2, 8, deadline=3), kernel("b", 1, 2, deadline=5, jitter=2)
    for policy, expected in ((ServerPolicy.EDF, [3, 5]), (ServerPolicy.EDF_RELEASE, [4, 5])):
        task_set = partition_of(*tasks, policy=policy)
        assert bounds_of(task_set) == list(explore(task_set).response.values()) == expected


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_edf_bounds_with_jitter_beyond_periods_are_exactly_the_worst(random: Random) -> None:
    tasks = []
    for number in range(2):
        period = random.randint(2, 7)
        wcet, jitter = random.randint(1, min(3, period)), random.randint(0, 2 * period)
        tasks.append(kernel(f"t{number}", wcet, period, 0, random.randint(1, 16), jitter))
    task_set = partition_of(*tasks, policy=ServerPolicy.EDF)
    truth = (
        {}
        if resource_loads(task_set)[0].is_overload
        else explore(task_set, is_short=lambda _: False, most_states=1000).response
    )
    if truth:
        assert bounds_of(task_set) == list(truth.values())


def test_under_edf_jitter_lets_a_kernel_block_only_while_none_of_its_task_is_ahead() -> None:
    """The kernel of `b` that is ahead of `a` counts in full; another one that has begun before cannot count as well."""
    streams = [Stream(1, 20, deadline=4), Stream(3, 30, lag=6, deadline=9)]
    assert bounds(streams, ServerPolicy.EDF)[0] == 4
    task_set = partition_of(kernel("a", 1, 20, 0, 4), kernel("b", 3, 30, 0, 9, 6), policy=ServerPolicy.EDF)
    assert explore(task_set).response["a"] == 4


@pytest.mark.parametrize("policy", ServerPolicy)
def test_a_window_that_repeats_is_walked_through_once(policy: ServerPolicy) -> None:
    """One part in 10^6 below full, the window has millions of kernels; all of them are as in the first periods."""
    period = 3 * 10**6 + 3
    streams = [Stream(10**6, period, 2 * period), Stream(2 * 10**6, period, period)]
    busy = busy_period(streams, 0, StepBudget(PLENTY))
    assert busy is not None
    assert busy > 10**6 * period
    found, steps = bounds(streams, policy, steps=1000), [3 * 10**6 + 2 * period, 3 * 10**6 + period]
    assert found[0] is not None
    assert all(bound is not None and bound >= least for bound, least in zip(found, steps, strict=True))


def test_stopping_where_the_window_repeats_changes_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(11)
    sets = [small_kernels(random) for _ in range(150)]
    found = [bounds_of(task_set) for task_set in sets]
    monkeypatch.setattr(response, "_hyperperiod", lambda streams, busy: lcm(*(s.period for s in streams), busy or 1))
    assert [bounds_of(task_set) for task_set in sets] == found
