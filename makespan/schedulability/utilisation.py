"""Which part of the time tasks demand, as exact ratios."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from makespan.schedulability.task import Task, TaskSet
from makespan.schedulability.verdict import Load


def ratio(parts: Iterable[tuple[int, int]]) -> Fraction:
    """The exact sum of `amount / every`.

    >>> ratio([(1, 3), (1, 6)])
    Fraction(1, 2)
    """
    return sum((Fraction(amount, every) for amount, every in parts), Fraction(0))


ONE = 1 << 192
"""What `scaled` means by 1."""


def scaled(parts: Iterable[tuple[int, int]]) -> int:
    """The sum of `amount / every` in units of `1 / ONE`, too small by less than one unit for each part.

    Exact sums of many ratios have denominators with thousands of digits; where a lower bound will do, this is fast.
    """
    return sum(amount * ONE // every for amount, every in parts)


def excess(parts: Sequence[tuple[int, int]]) -> int:
    """The sign of the sum of `amount / every` less 1, exactly.

    >>> excess([(1, 3), (2, 3)]), excess([(1, 3), (2, 3), (1, 10**80)]), excess([(10**80 - 1, 10**80)])
    (0, 1, -1)
    """
    about = scaled(parts)
    if about > ONE:
        return 1
    if about + len(parts) < ONE:
        return -1
    exact = ratio(parts)
    return (exact > 1) - (exact < 1)


def utilisation(tasks: Iterable[Task]) -> Fraction:
    """Of a partition that runs the kernels of these tasks; above 1, no scheduler meets all deadlines.

    Source: Liu and Layland, Journal of the ACM 20(1), 1973.
    """
    return ratio((task.wcet, task.period) for task in tasks)


def density(tasks: Iterable[Task]) -> Fraction:
    """Of kernels of these tasks, each of which must fit between its release and its deadline.

    At most 1 suffices for preemptive EDF only: kernels are not preempted, so it proves nothing about a partition.

    Raises:
        ZeroDivisionError: a task whose jitter is as long as its deadline, which has no time left.

    Source: Liu, Real-Time Systems, Prentice Hall 2000, theorem 6.2.
    """
    return ratio((task.wcet, max(0, min(task.deadline - task.jitter, task.period))) for task in tasks)


def loads(task_set: TaskSet) -> tuple[Load, ...]:
    """Of every partition, then of every CPU core, in the order of the task set."""
    partitions = {partition.name: utilisation(task_set.on(partition.name)) for partition in task_set.partitions}
    cores = {name: ratio((task.cpu, task.period) for task in tasks) for name, tasks in task_set.cores.items()}
    named = [(f"partition {name}", load) for name, load in partitions.items()]
    named += [(f"core {name}", load) for name, load in cores.items()]
    return tuple(Load(name, load.numerator, load.denominator) for name, load in named)
