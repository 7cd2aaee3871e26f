"""Both ends of a margin are answers of the analysis, next to each other."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.sensitivity import execution_factor, shortest_period, slowest_clock
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
from makespan.deadlines.verdict import DeadlineAnswer
from tests.deadlines.toy import analysis

_P = (GpuPartition("sm", ServerPolicy.EDF),)


def _set(*times: tuple[int, int, int]) -> TaskSet:
    tasks = (
        one_kernel(f"t{n}", wcet, period, deadline, partition="sm") for n, (wcet, period, deadline) in enumerate(times)
    )
    return TaskSet(tuple(tasks), _P)


def proves(task_set: TaskSet) -> bool:
    return analysis(task_set).answer is DeadlineAnswer.YES


def _scaled(task_set: TaskSet, factor: Fraction) -> TaskSet:
    def longer(segment: JobSegment) -> JobSegment:
        return replace(segment, wcet=ceil(segment.wcet * factor))

    tasks = (replace(task, segments=tuple(map(longer, task.segments))) for task in task_set.tasks)
    return replace(task_set, tasks=tuple(tasks))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 200), st.integers(1, 200)), min_size=1, max_size=4))
def test_the_factor_holds_and_the_next_thousandth_fails(times: list[tuple[int, int, int]]) -> None:
    task_set = _set(*times)
    margin = execution_factor(task_set, analysis, proves)
    if margin.holds is not None:
        assert analysis(_scaled(task_set, margin.holds)).answer is DeadlineAnswer.YES
    if margin.fails is not None:
        assert analysis(_scaled(task_set, margin.fails)).answer is not DeadlineAnswer.YES
        assert margin.breaks
    if margin.holds is not None and margin.fails is not None:
        assert margin.fails - margin.holds == Fraction(1, 1000)


def test_the_factor_of_one_kernel_leaves_the_others_alone() -> None:
    margin = execution_factor(_set((10, 100, 50), (20, 100, 60)), analysis, proves, only="t0")
    assert (margin.holds, margin.fails) == (Fraction(3), Fraction(3001, 1000))  # 30 + 20 <= 50, 31 + 20 is not
    assert margin.breaks == ("t0",)


def test_a_factor_below_one_says_how_much_faster_the_kernels_must_become() -> None:
    margin = execution_factor(_set((80, 100, 40)), analysis, proves)
    assert (margin.holds, margin.fails) == (Fraction(1, 2), Fraction(501, 1000))


def test_overload_at_the_far_end_is_evidence() -> None:
    margin = execution_factor(_set((50, 100, 100)), analysis, proves)
    assert margin.holds == 2
    assert margin.refuted


def test_the_shortest_period_is_where_utilisation_reaches_one() -> None:
    margin = shortest_period(_set((10, 100, 100), (10, 20, 100)), analysis, proves, "t0")
    assert (margin.holds, margin.fails) == (Fraction(20), Fraction(19))


def test_a_long_period_is_told_in_thousandths_of_it_and_never_too_short() -> None:
    asked: list[TaskSet] = []

    def counted(task_set: TaskSet) -> bool:
        asked.append(task_set)
        return proves(task_set)

    long = 10**12 + 1
    margin = shortest_period(_set((long // 3, long, long), (long // 2, long, long)), analysis, counted, "t0")
    holds, fails = (Fraction(-(-count * long // 1000)) for count in (667, 666))  # t0 asks for a third, t1 for half
    assert (margin.holds, margin.fails) == (holds, fails)
    assert len(asked) < 15


def test_a_period_that_is_too_short_says_how_long_it_has_to_be() -> None:
    margin = shortest_period(_set((10, 5, 100)), analysis, proves, "t0")
    assert (margin.holds, margin.fails) == (Fraction(10), Fraction(9))


def test_only_kernels_get_longer() -> None:
    segments = (
        JobSegment(SegmentKind.CPU, 10),
        JobSegment(SegmentKind.COPY, 20, "h2d", 5),
        JobSegment(SegmentKind.KERNEL, 30, "sm", attained=20),
    )
    task_set = TaskSet(
        (GpuTask("t", segments, 100, 80, priority=1, core="c", wait=HostWait.SPIN),),
        _P,
        (),
        (CopyEngine("h2d", ServerPolicy.FIFO),),
    )
    seen: list[GpuTask] = []

    def proves_and_remembers(system: TaskSet) -> bool:
        seen.append(system.tasks[0])
        return proves(system)

    margin = execution_factor(task_set, analysis, proves_and_remembers)
    assert margin.holds == Fraction(70_000 // 30, 1000)  # the toy counts CPU time and kernels
    twice = (*segments[:2], JobSegment(SegmentKind.KERNEL, 60, "sm", attained=40))
    assert twice in [task.segments for task in seen]


def test_tasks_that_data_starts_change_their_period_with_the_head() -> None:
    tasks = (
        *(one_kernel(name, 10, 100, 60, partition="sm") for name in "abc"),
        one_kernel("d", 10, 100, 55, partition="sm"),
        one_kernel("apart", 1, 100, 100, partition="sm"),
    )
    several = (TaskChain("abc", ("a", "b", "c"), ChainStart.DATA), TaskChain("ad", ("a", "d"), ChainStart.DATA))
    line, tree = TaskSet(tasks[:3], _P, several[:1]), TaskSet(tasks, _P, several)
    for name in "abc":
        margin = shortest_period(line, analysis, proves, name)
        assert (margin.holds, margin.fails) == (Fraction(30), Fraction(29))
        assert shortest_period(tree, analysis, proves, name).holds == 41  # the one apart leaves 99 / 100
    assert shortest_period(tree, analysis, proves, "apart").holds == 2  # the others leave 6 / 10


def test_the_slowest_clock_is_proven_at_both_ends() -> None:
    cycles, deadline = 1000, Fraction(1, 1000)  # in a millisecond: 1 MHz

    def at(clock_hz: Fraction) -> TaskSet:
        wcet = ceil(cycles / clock_hz * 10**12)
        return TaskSet((one_kernel("t", wcet, 10**12, int(deadline * 10**12), partition="sm"),), _P)

    margin = slowest_clock(at, Fraction(8_000_000), analysis, proves)
    assert (margin.holds, margin.fails) == (Fraction(1_000_000), Fraction(992_000))
    too_slow = slowest_clock(at, Fraction(500_000), analysis, proves)
    assert (too_slow.holds, too_slow.fails) == (Fraction(1_000_000), Fraction(999_500))


def test_a_system_that_no_factor_saves_has_no_margin() -> None:
    late = one_kernel("t", 1, 10, 5, jitter=5, partition="sm")
    margin = execution_factor(TaskSet((late,), _P), analysis, proves)
    assert (margin.holds, margin.fails) == (None, Fraction(1, 1000))
