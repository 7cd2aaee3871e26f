"""How often the jobs of a task can come, in exact whole numbers, and the steps that an analysis may take.

Glossary: C execution time, T period, J jitter, D deadline, all in ticks.
"""

from collections.abc import Callable
from dataclasses import dataclass

MOST_ACTIVATIONS = 20
"""Earlier activations in one busy window that are looked at, where several operations of a family meet in it."""


def arrivals_within(length: int, period: int, jitter: int) -> int:
    """Return the most jobs that become ready in a closed interval, `length` ticks from its first instant to its last.

    Jobs arrive at least `period` apart and each becomes ready at most `jitter` later.

    >>> arrivals_within(0, 10, 0), arrivals_within(10, 10, 0), arrivals_within(0, 10, 25)
    (1, 2, 3)

    Source: Audsley, Burns, Richardson, Tindell and Wellings, Software Engineering Journal 8(5), 1993.
    """
    return (length + jitter) // period + 1


def first_multiple(first: int, period: int, least: int) -> int:
    """Return the first of `first`, `first + period` and so on that is at least `least`.

    >>> first_multiple(3, 10, 0), first_multiple(3, 10, 14)
    (3, 23)
    """
    return first + max(0, -((first - least) // period)) * period


@dataclass(frozen=True, slots=True)
class Stream:
    """The kernels of one task as their partition sees them; times in ticks.

    A job's kernel is ordered by an instant at most `jitter` after the event that all is counted from, and is ready at
    most `lag` after that instant: the release, or under `edf` the arrival. A stream that nothing bounds (`is_wild`) may
    still be known to consist of kernels of at most `wcet`.

    Args:
        wcet: of one kernel, at most.
        period: least distance of two events.
        deadline: from that instant to the absolute deadline by which an EDF partition orders.
        priority: larger is more urgent, for a partition with fixed priorities.
        is_wild: whether jitter and lag are not bounded.
    """

    wcet: int
    period: int
    jitter: int = 0
    lag: int = 0
    deadline: int = 0
    priority: int = 0
    is_wild: bool = False

    @property
    def delay(self) -> int:
        """From the event until the kernel is ready, at most."""
        return self.jitter + self.lag


class OutOfStepsError(Exception):
    """An analysis would take longer than its limit; caught where a bound is asked for."""


class StepBudget:
    """A number of additions that analyses may still spend, so that limits do not depend on the speed of a machine."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int) -> None:
        """Take some.

        Raises:
            OutOfStepsError: there are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError


def least_fixed_point(demand: Callable[[int], int], start: int, cost: int, steps: StepBudget) -> int:
    """Return the least x of at least `start` with `demand(x) <= x`, for a demand that never shrinks.

    Args:
        cost: steps that one evaluation takes.

    Raises:
        OutOfStepsError: it takes too long, or there is none.
    """
    steps.spend(cost)
    while (more := demand(start)) > start:
        steps.spend(cost)
        start = more
    return start
