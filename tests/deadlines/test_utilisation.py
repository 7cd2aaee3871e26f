"""Utilisation as exact ratios."""

from fractions import Fraction

from makespan.deadlines.analysis import analyse
from makespan.deadlines.task import (
    CopyEngine,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.utilisation import resource_loads, server_load, utilisation
from makespan.deadlines.verdict import DeadlineAnswer, ResourceLoad
from tests.deadlines.sets import kernel, partition_of

_ENGINES = (CopyEngine("h2d", ServerPolicy.FIFO),)


def test_a_load_is_exact_where_floating_point_is_not() -> None:
    """Three thirds are 1 and no overload; one tick more of 10^24 is one."""
    thirds = [kernel(name, 1, 3) for name in "abc"]
    assert utilisation(thirds) == 1
    assert not resource_loads(partition_of(*thirds))[0].is_overload
    period = 10**24
    over = [kernel("a", period - 1, period), kernel("b", 1, period - 1)]
    assert utilisation(over) > 1
    assert float(utilisation(over)) == 1.0
    assert resource_loads(partition_of(*over))[0].is_overload


def test_partitions_copy_engines_and_cores_have_loads() -> None:
    """Every segment of `a` counts, those that are launched late as well; only `b` is shown to take its time."""
    segments = (
        JobSegment(SegmentKind.CPU, 2),
        JobSegment(SegmentKind.COPY, 3, "h2d", delay=1),
        JobSegment(SegmentKind.KERNEL, 4, "x"),
        JobSegment(SegmentKind.KERNEL, 1, "x", attained=0),
    )
    tasks = (
        GpuTask("a", segments, 20, 20, priority=1, core="cpu", wait=HostWait.SPIN),
        one_kernel("b", 1, 8, 8, partition="x", attained=1),
    )
    found = resource_loads(
        TaskSet(tasks, (GpuPartition("x", ServerPolicy.FIFO), GpuPartition("y", ServerPolicy.EDF)), (), _ENGINES)
    )
    assert [(load.name, load.numerator, load.denominator) for load in found] == [
        ("partition x", 3, 8), ("partition y", 0, 1), ("copy engine h2d", 3, 20), ("core cpu", 1, 10)
    ]  # fmt: skip
    assert [load.attained for load in found] == [Fraction(13, 40), 0, Fraction(3, 20), Fraction(1, 10)]
    assert [load.supposes for load in found] == [("a",), (), ("a",), ("a",)]


def test_several_partitions_share_a_load() -> None:
    assert server_load("two", [kernel("a", 3, 4), kernel("b", 2, 4)], partitions=2).attained == Fraction(5, 8)


def test_overload_is_a_refutation() -> None:
    verdict = analyse(partition_of(kernel("a", 3, 5, 2), kernel("b", 3, 5, 1)), evidence=False)
    assert verdict.loads == (ResourceLoad("partition gpu", 6, 5, Fraction(6, 5), ("a", "b")),)
    assert verdict.answer is DeadlineAnswer.NO
    assert [(task.response, task.answer) for task in verdict.tasks] == [
        (5, DeadlineAnswer.YES),
        (None, DeadlineAnswer.UNKNOWN),
    ]
    assert verdict.tasks[1].method == "no bound: partition gpu is overloaded"
