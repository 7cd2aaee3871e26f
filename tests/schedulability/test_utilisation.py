"""Utilisation and density as exact ratios."""

from fractions import Fraction

import pytest

from makespan.schedulability.analysis import analyse
from makespan.schedulability.task import Partition, Policy, Task, TaskSet
from makespan.schedulability.utilisation import density, loads, utilisation
from makespan.schedulability.verdict import Answer, Load
from tests.schedulability.sets import kernel, partition_of


def test_a_load_is_exact_where_floating_point_is_not() -> None:
    """Three thirds are 1 and no overload; one tick more of 10^24 is one."""
    thirds = [kernel(name, 1, 3) for name in "abc"]
    assert utilisation(thirds) == 1
    assert not loads(partition_of(*thirds))[0].is_overload
    period = 10**24
    over = [kernel("a", period - 1, period), kernel("b", 1, period - 1)]
    assert utilisation(over) > 1
    assert float(utilisation(over)) == 1.0
    assert loads(partition_of(*over))[0].is_overload


def test_density_counts_the_time_between_release_and_deadline() -> None:
    tasks = [kernel("a", 1, 10, deadline=6, jitter=2), kernel("b", 1, 8, deadline=20)]
    assert density(tasks) == Fraction(1, 4) + Fraction(1, 8)
    with pytest.raises(ZeroDivisionError):
        density([kernel("a", 1, 10, deadline=2, jitter=2)])


def test_partitions_and_cores_have_loads() -> None:
    tasks = (
        Task("a", 1, 4, 4, before=1, after=1, core="cpu", priority=1, partition="x"),
        Task("b", 1, 8, 8, partition="x"),
    )
    found = loads(TaskSet(tasks, (Partition("x", Policy.FIFO), Partition("y", Policy.EDF))))
    assert [(load.name, load.numerator, load.denominator) for load in found] == [
        ("partition x", 3, 8), ("partition y", 0, 1), ("core cpu", 1, 2)
    ]  # fmt: skip
    assert [load.attained for load in found] == [Fraction(3, 8), 0, Fraction(1, 2)]


def test_overload_is_a_refutation() -> None:
    verdict = analyse(partition_of(kernel("a", 3, 5, 2), kernel("b", 3, 5, 1)), evidence=False)
    assert verdict.loads == (Load("partition gpu", 6, 5, Fraction(6, 5), ("a", "b")),)
    assert verdict.answer is Answer.NO
    assert [(task.response, task.answer) for task in verdict.tasks] == [(5, Answer.YES), (None, Answer.UNKNOWN)]
    assert verdict.tasks[1].method == "no bound: partition gpu is overloaded"
