"""The part of the time that tasks demand, as exact ratios."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, TaskSet, core_label
from makespan.deadlines.verdict import ResourceLoad


def exact_sum(parts: Iterable[tuple[int, int]]) -> Fraction:
    """Return the exact sum of `amount / every`.

    >>> exact_sum([(1, 3), (1, 6)])
    Fraction(1, 2)
    """
    return sum((Fraction(amount, every) for amount, every in parts), Fraction(0))


ONE = 1 << 192  # finer than any ratio of times that a task file has
"""The number that means 1 in `scaled_sum`."""


def scaled_sum(parts: Iterable[tuple[int, int]]) -> int:
    """Return the sum of `amount / every` in units of `1 / ONE`, too small by less than one unit for each part.

    Exact sums of many ratios have denominators with thousands of digits; where a lower bound will do, this is fast.
    """
    return sum(amount * ONE // every for amount, every in parts)


def excess(parts: Sequence[tuple[int, int]]) -> int:
    """Return the sign of the sum of `amount / every` less 1, exactly.

    >>> excess([(1, 3), (2, 3)]), excess([(1, 3), (2, 3), (1, 10**80)]), excess([(10**80 - 1, 10**80)])
    (0, 1, -1)
    """
    about = scaled_sum(parts)
    if about > ONE:  # rounded down and yet above 1
        return 1
    if about + len(parts) < ONE:  # rounded up and yet below 1
        return -1
    exact = exact_sum(parts)  # only sums next to 1 pay for exact fractions
    return (exact > 1) - (exact < 1)


def utilisation(tasks: Iterable[GpuTask], resource: str | None = None) -> Fraction:
    """Return the utilisation of the kernels of these tasks, or of what they have on one server.

    Above 1 no scheduler meets all deadlines.

    Source: Liu and Layland, Journal of the ACM 20(1), 1973.
    """
    return exact_sum((segment.wcet, task.period) for task in tasks for segment in segments_on(task, resource))


def segments_on(task: GpuTask, resource: str | None = None) -> tuple[JobSegment, ...]:
    """Return the kernels of a task, or its segments on one partition or copy engine."""
    return task.of(SegmentKind.KERNEL) if resource is None else task.on(resource)


def resource_loads(task_set: TaskSet) -> tuple[ResourceLoad, ...]:
    """Return the load of every partition, copy engine and CPU core, in the order of the task set."""
    found = [server_load(server.resource, task_set.on(server.name), server.name) for server in task_set.servers]
    for name, tasks in task_set.cores.items():
        # without spinning, whose least time is not known: the load refutes
        demand = exact_sum((task.cpu, task.period) for task in tasks)
        supposes = tuple(task.name for task in tasks if task.cpu)
        found.append(ResourceLoad(core_label(name), demand.numerator, demand.denominator, demand, supposes))
    return tuple(found)


def server_load(name: str, tasks: Sequence[GpuTask], resource: str | None = None, partitions: int = 1) -> ResourceLoad:
    """Return what tasks demand of a server, or their kernels of a number of partitions together."""
    demand = utilisation(tasks, resource) / partitions
    shown = ((segment.known, task.period) for task in tasks for segment in segments_on(task, resource))
    supposes = tuple(
        task.name for task in tasks if any(segment.is_vouched_for for segment in segments_on(task, resource))
    )
    return ResourceLoad(name, demand.numerator, demand.denominator, exact_sum(shown) / partitions, supposes)
