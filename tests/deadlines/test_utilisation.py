"""Utilisation as exact ratios."""

from fractions import Fraction

from makespan.deadlines.analysis import analyse
from makespan.deadlines.task import CopyEngine, Kind, Partition, Policy, Segment, Task, TaskSet, Wait, one_kernel
from makespan.deadlines.utilisation import loads, server_load, utilisation
from makespan.deadlines.verdict import Answer, Load
from tests.deadlines.sets import kernel, partition_of

_ENGINES = (CopyEngine("h2d", Policy.FIFO),)


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


def test_partitions_copy_engines_and_cores_have_loads() -> None:
    """Every segment of `a` counts, those that are launched late as well; only `b` is shown to take its time."""
    segments = (
        Segment(Kind.CPU, 2),
        Segment(Kind.COPY, 3, "h2d", delay=1),
        Segment(Kind.KERNEL, 4, "x"),
        Segment(Kind.KERNEL, 1, "x", attained=0),
    )
    tasks = (
        Task("a", segments, 20, 20, priority=1, core="cpu", wait=Wait.SPIN),
        one_kernel("b", 1, 8, 8, partition="x", attained=1),
    )
    found = loads(TaskSet(tasks, (Partition("x", Policy.FIFO), Partition("y", Policy.EDF)), (), _ENGINES))
    assert [(load.name, load.numerator, load.denominator) for load in found] == [
        ("partition x", 3, 8), ("partition y", 0, 1), ("copy engine h2d", 3, 20), ("core cpu", 1, 10)
    ]  # fmt: skip
    assert [load.attained for load in found] == [Fraction(13, 40), 0, Fraction(3, 20), Fraction(1, 10)]
    assert [load.supposes for load in found] == [("a",), (), ("a",), ("a",)]


def test_several_partitions_share_a_load() -> None:
    assert server_load("two", [kernel("a", 3, 4), kernel("b", 2, 4)], places=2).attained == Fraction(5, 8)


def test_overload_is_a_refutation() -> None:
    verdict = analyse(partition_of(kernel("a", 3, 5, 2), kernel("b", 3, 5, 1)), evidence=False)
    assert verdict.loads == (Load("partition gpu", 6, 5, Fraction(6, 5), ("a", "b")),)
    assert verdict.answer is Answer.NO
    assert [(task.response, task.answer) for task in verdict.tasks] == [(5, Answer.YES), (None, Answer.UNKNOWN)]
    assert verdict.tasks[1].method == "no bound: partition gpu is overloaded"
