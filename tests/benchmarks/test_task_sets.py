"""Random task sets have the sums, ranges, shapes and moments that their sources promise."""

from collections.abc import Callable
from fractions import Fraction
from math import lcm, log
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.task_sets import (
    deadline_monotonic,
    harmonised_periods,
    log_uniform_periods,
    rand_fixed_sum,
    rate_monotonic,
    tasks_of,
    uunifast,
    uunifast_discard,
    with_deadlines,
)
from makespan.deadlines.task import one_kernel

DRAWS = 4000
Draw = Callable[[Random, int, Fraction], tuple[Fraction, ...]]


@given(st.randoms(use_true_random=False), st.integers(1, 40), st.fractions(Fraction(1, 100), 1))
def test_the_sum_is_exact(random: Random, tasks: int, total: Fraction) -> None:
    for draw in (uunifast, uunifast_discard, rand_fixed_sum):
        found = draw(random, tasks, total)
        assert len(found) == tasks
        assert sum(found) == total
        assert min(found) >= 0


@given(st.randoms(use_true_random=False), st.integers(1, 40), st.fractions(Fraction(1, 100), 1))
def test_no_utilisation_is_above_one_even_where_the_sum_is(random: Random, tasks: int, share: Fraction) -> None:
    found = rand_fixed_sum(random, tasks, tasks * share)
    assert sum(found) == tasks * share
    assert 0 <= min(found) <= max(found) <= 1


@pytest.mark.parametrize("draw", [uunifast, rand_fixed_sum])
def test_utilisations_are_uniform_on_the_simplex(draw: Draw) -> None:
    """With sum 1, each of n is Beta(1, n - 1): mean 1/n, variance (n - 1)/(n^2 (n + 1)), P(x > 1/2) = 2^(1 - n)."""
    random, tasks = Random(1), 4
    drawn = [draw(random, tasks, Fraction(1)) for _ in range(DRAWS)]
    for at in range(tasks):
        values = [float(found[at]) for found in drawn]
        assert fmean(values) == pytest.approx(1 / 4, abs=0.012)
        assert fmean((value - 1 / 4) ** 2 for value in values) == pytest.approx(3 / 80, abs=0.003)
        assert fmean(value > 1 / 2 for value in values) == pytest.approx(1 / 8, abs=0.02)


def test_the_two_ways_to_draw_below_a_limit_have_one_distribution() -> None:
    """Of three numbers of 0..1 with sum 3/2: mean 1/2, and discarding and Stafford's table agree on all deciles."""
    kept = sorted(float(uunifast_discard(Random(n), 3, Fraction(3, 2))[n % 3]) for n in range(DRAWS))
    direct = sorted(float(rand_fixed_sum(Random(n + DRAWS), 3, Fraction(3, 2))[n % 3]) for n in range(DRAWS))
    assert max(abs(a - b) for a, b in zip(kept, direct, strict=True)) < 0.05
    for tenth in range(DRAWS // 10, DRAWS, DRAWS // 10):
        assert kept[tenth] == pytest.approx(direct[tenth], abs=0.03)
    assert fmean(direct) == pytest.approx(0.5, abs=0.015)


def test_what_cannot_be_is_refused() -> None:
    random = Random(0)
    with pytest.raises(ValueError, match="3 utilisations of at most 1/2 cannot sum to 2"):
        uunifast_discard(random, 3, Fraction(2), Fraction(1, 2))
    with pytest.raises(ValueError, match="2 utilisations of at most 1 cannot sum to 3"):
        rand_fixed_sum(random, 2, Fraction(3))
    with pytest.raises(ValueError, match="0 tasks cannot have a utilisation of 1"):
        uunifast(random, 0, Fraction(1))
    with pytest.raises(ValueError, match=r"not a range of multiples of 10 ticks: 15\.\.100"):
        log_uniform_periods(random, 3, 15, 100, 10)


def test_discarding_gives_up_where_almost_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.task_sets.MOST_DISCARDED", 3)
    with pytest.raises(ValueError, match="3 draws held no utilisations of at most 1: use rand_fixed_sum"):
        uunifast_discard(Random(0), 30, Fraction(299, 10))


def test_periods_are_as_many_in_each_order_of_magnitude() -> None:
    periods = log_uniform_periods(Random(2), DRAWS, 10, 100_000, 10)
    assert all(10 <= period <= 100_000 and period % 10 == 0 for period in periods)
    for power in range(1, 5):
        share = fmean(10**power <= period < 10 ** (power + 1) for period in periods)
        assert share == pytest.approx(1 / 4, abs=0.03)
    logs = [log(period / 10) / log(10_000) for period in log_uniform_periods(Random(3), DRAWS, 10**6, 10**10)]
    assert fmean(logs) - log(10**5) / log(10_000) == pytest.approx(1 / 2, abs=0.02)


@given(st.randoms(use_true_random=False), st.integers(1, 60), st.integers(1, 1000))
def test_the_hyperperiod_is_bounded(random: Random, tasks: int, unit: int) -> None:
    periods = harmonised_periods(random, tasks, unit)
    assert (25_200 * unit) % lcm(*periods) == 0


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.fractions(Fraction(1, 10), 1))
def test_tasks_have_what_was_drawn(random: Random, count: int, total: Fraction) -> None:
    periods = log_uniform_periods(random, count, 1000, 100_000)
    tasks = tasks_of(uunifast(random, count, total), periods, "gpu")
    exact = sum(Fraction(task.segments[0].wcet, task.period) for task in tasks)
    assert total - Fraction(count, 1000) <= exact <= total + Fraction(count, 1000)
    assert [task.deadline for task in tasks] == list(periods)
    assert all(task.segments[0].wcet <= task.deadline <= task.period for task in with_deadlines(random, tasks))
    assert with_deadlines(random, tasks, Fraction(1)) == tasks


def test_priorities_go_by_period_or_deadline() -> None:
    tasks = (one_kernel("a", 1, 30, 9, jitter=3), one_kernel("b", 1, 20, 8), one_kernel("c", 1, 30, 7))
    assert [task.priority for task in rate_monotonic(tasks)] == [2, 3, 1]
    assert [task.priority for task in deadline_monotonic(tasks)] == [3, 1, 2]
