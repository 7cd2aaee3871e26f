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
    kernels = [kernel_load(f"partition {p.name}", task_set.on(p.name)) for p in task_set.partitions]
    return (*kernels, *(_core_load(f"core {name}", tasks) for name, tasks in task_set.cores.items()))


def kernel_load(name: str, tasks: Sequence[Task], places: int = 1) -> Load:
    """What the kernels of tasks demand of so many partitions together."""
    demand = utilisation(tasks) / places
    shown = ((task.wcet if task.attained is None else task.attained, task.period) for task in tasks)
    supposes = tuple(task.name for task in tasks if task.is_kernel_vouched_for)
    return Load(name, demand.numerator, demand.denominator, ratio(shown) / places, supposes)


def _core_load(name: str, tasks: Sequence[Task]) -> Load:
    demand = ratio((task.cpu, task.period) for task in tasks)
    supposes = tuple(task.name for task in tasks if task.cpu)
    return Load(name, demand.numerator, demand.denominator, demand, supposes)
