"""How often the jobs of a task can come, in exact whole numbers, and what an analysis may spend on that.

The bounds here are arrival curves. A function of the length of a window that rises in steps, and in the end by the same
amount in every period, is kept as a table (`StepFunction`).

Glossary: C execution time, T period, J jitter, D deadline, all in ticks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

MOST_ACTIVATIONS = 20
"""Earlier activations in one busy window that are looked at, where several operations of a family meet in it."""


def arrivals_within(length: int, period: int, jitter: int) -> int:
    """Return the most jobs that become ready in a closed interval, `length` ticks from its first instant to its last.

    Jobs arrive at least `period` apart and each becomes ready at most `jitter` later.

    >>> arrivals_within(0, 10, 0), arrivals_within(10, 10, 0), arrivals_within(0, 10, 25)
    (1, 2, 3)

    Source: Audsley, Burns, Richardson, Tindell and Wellings, Software Engineering Journal 8(5), 1993.
    """
    return (length + jitter) // period + 1  # whole numbers only: floats are too small by one beyond 2^53


def first_multiple(first: int, period: int, least: int) -> int:
    """Return the first of `first`, `first + period` and so on that is at least `least`.

    >>> first_multiple(3, 10, 0), first_multiple(3, 10, 14)
    (3, 23)
    """
    return first + max(0, -((first - least) // period)) * period  # -(x // -y) rounds up without a float


@dataclass(frozen=True, slots=True)
class Stream:
    """The kernels of one task as their partition sees them; times in ticks.

    A job's kernel is ordered by an instant at most `jitter` after the event that all is counted from, and is ready at
    most `lag` after that instant: the release, or under `edf` the arrival. A stream that nothing bounds (`is_wild`) may
    still be known to consist of kernels of at most `wcet`.

    Args:
        wcet: The longest time of one kernel.
        period: The least distance of two events.
        deadline: The time from that instant to the absolute deadline by which an EDF partition orders.
        priority: A larger number is more urgent, for a partition with fixed priorities.
        is_wild: Whether jitter and lag have no bound.
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
        """Return the longest time from the event until the kernel is ready."""
        return self.jitter + self.lag


class OutOfStepsError(Exception):
    """An analysis would take longer than its limit; it is caught where a bound is asked for."""


class StepBudget:
    """A number of additions that analyses may still spend, so that limits do not depend on the speed of a machine."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int) -> None:
        """Take this number of additions out of the budget.

        Raises:
            OutOfStepsError: fewer are left.
        """
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError


def least_fixed_point(demand: Callable[[int], int], start: int, cost: int, steps: StepBudget) -> int:
    """Return the least x of at least `start` with `demand(x) <= x`, for a demand that never shrinks.

    Args:
        cost: The steps that one evaluation takes.

    Raises:
        OutOfStepsError: it takes too long, or there is none.
    """
    steps.spend(cost)
    # monotone, so every iterate is below the least fixed point, and the first that holds is it
    while (more := demand(start)) > start:
        steps.spend(cost)
        start = more
    return start


class StepFunction(NamedTuple):
    """A function of lengths of at least 1 that never falls.

    Args:
        rise: The rise in every period.
        end: The last length of the table; from a period before it on the function has settled.
        starts: The lengths from which on each of `values` holds; the first one is 1.
    """

    period: int
    rise: int
    end: int
    starts: tuple[int, ...]
    values: tuple[int, ...]

    @classmethod
    def of(
        cls, value: Callable[[int], int], period: int, rise: int, once: Iterable[int], again: Iterable[int]
    ) -> "StepFunction":
        """Return the table of a function.

        Args:
            once: The lengths at which it may rise.
            again: Lengths at which it may rise, and every whole number of periods before and after them; it has settled
                from the last of all of these lengths on.

        >>> stairs = StepFunction.of(lambda length: 3 * -(-length // 10) + 2 * (length > 4), 10, 3, once=[5], again=[1])
        >>> [stairs.at(length) for length in (1, 4, 5, 10, 11, 1000)]
        [3, 3, 5, 5, 8, 302]
        """
        once, again = tuple(once), tuple(again)
        end = max((1, *once, *again)) + period  # one period after all rises, in which every recurring rise is seen
        starts = {1, *(start for start in once if start >= 1)}
        starts.update(*(range((start - 1) % period + 1, end + 1, period) for start in again))
        found = sorted(starts)
        return cls(period, rise, end, tuple(found), tuple(map(value, found)))

    def at(self, length: int) -> int:
        """Return the value for a length."""
        # go back by whole periods into the table; each of them adds `rise`
        periods = max(0, -((self.end - length) // self.period))
        return periods * self.rise + self.values[bisect_right(self.starts, length - periods * self.period) - 1]
