"""Both ends of a margin are answers of the analysis, next to each other."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from makespan.schedulability.sensitivity import execution_factor, shortest_period, slowest_clock
from makespan.schedulability.task import Activation, Chain, Partition, Policy, Task, TaskSet
from makespan.schedulability.verdict import Answer
from tests.schedulability.toy import analysis

_P = (Partition("sm", Policy.EDF),)


def _set(*times: tuple[int, int, int]) -> TaskSet:
    tasks = (Task(f"t{n}", wcet, period, deadline, partition="sm") for n, (wcet, period, deadline) in enumerate(times))
    return TaskSet(tuple(tasks), _P)


def proves(task_set: TaskSet) -> bool:
    return analysis(task_set).answer is Answer.YES


def _scaled(task_set: TaskSet, factor: Fraction) -> TaskSet:
    tasks = (replace(task, wcet=ceil(task.wcet * factor)) for task in task_set.tasks)
    return replace(task_set, tasks=tuple(tasks))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 200), st.integers(1, 200)), min_size=1, max_size=4))
def test_the_factor_holds_and_the_next_thousandth_fails(times: list[tuple[int, int, int]]) -> None:
    task_set = _set(*times)
    margin = execution_factor(task_set, analysis, proves)
    if margin.holds is not None:
        assert analysis(_scaled(task_set, margin.holds)).answer is Answer.YES
    if margin.fails is not None:
        assert analysis(_scaled(task_set, margin.fails)).answer is not Answer.YES
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


def test_a_period_that_is_too_short_says_how_long_it_has_to_be() -> None:
    margin = shortest_period(_set((10, 5, 100)), analysis, proves, "t0")
    assert (margin.holds, margin.fails) == (Fraction(10), Fraction(9))


def test_a_task_with_cpu_time_keeps_its_period_above_its_deadline() -> None:
    task = Task("t", 1, 100, 40, priority=1, before=1, core="c", partition="sm")
    margin = shortest_period(TaskSet((task,), _P), analysis, proves, "t")
    assert (margin.holds, margin.fails) == (Fraction(40), None)


def test_tasks_that_data_starts_change_their_period_with_the_head() -> None:
    tasks = (
        *(Task(name, 10, 100, 60, partition="sm") for name in "abc"),
        Task("d", 10, 100, 55, priority=1, before=1, core="c", partition="sm"),
        Task("apart", 1, 100, 100, partition="sm"),
    )
    several = (Chain("abc", ("a", "b", "c"), Activation.DATA), Chain("ad", ("a", "d"), Activation.DATA))
    line, tree = TaskSet(tasks[:3], _P, several[:1]), TaskSet(tasks, _P, several)
    for name in "abc":
        margin = shortest_period(line, analysis, proves, name)
        assert (margin.holds, margin.fails) == (Fraction(30), Fraction(29))
        assert shortest_period(tree, analysis, proves, name).holds == 55  # the deadline of d
    assert shortest_period(tree, analysis, proves, "apart").holds == 2  # the others leave 6 / 10


def test_the_slowest_clock_is_proven_at_both_ends() -> None:
    cycles, deadline = 1000, Fraction(1, 1000)  # in a millisecond: 1 MHz

    def at(clock_hz: Fraction) -> TaskSet:
        wcet = ceil(cycles / clock_hz * 10**12)
        return TaskSet((Task("t", wcet, 10**12, int(deadline * 10**12), partition="sm"),), _P)

    margin = slowest_clock(at, Fraction(8_000_000), analysis, proves)
    assert (margin.holds, margin.fails) == (Fraction(1_000_000), Fraction(992_000))
    too_slow = slowest_clock(at, Fraction(500_000), analysis, proves)
    assert (too_slow.holds, too_slow.fails) == (Fraction(1_000_000), Fraction(999_500))


def test_a_system_that_no_factor_saves_has_no_margin() -> None:
    late = Task("t", 1, 10, 5, jitter=5, partition="sm")
    margin = execution_factor(TaskSet((late,), _P), analysis, proves)
    assert (margin.holds, margin.fails) == (None, Fraction(1, 1000))
