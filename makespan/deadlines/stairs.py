"""Functions of a length that rise in steps and in the end by the same in every period, as tables."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple


class StepFunction(NamedTuple):
    """A function of lengths of at least 1 that never falls.

    Args:
        rise: in every period.
        end: the last length of the table; as far and a period before it the function has settled.
        starts: lengths from which on each of `values` holds, the first one 1.
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
            once: lengths at which it may rise.
            again: lengths at which it may rise, and every whole number of periods before and after them; it has settled
                from the last of all of these lengths on.

        >>> stairs = Stairs.of(lambda length: 3 * -(-length // 10) + 2 * (length > 4), 10, 3, once=[5], again=[1])
        >>> [stairs.at(length) for length in (1, 4, 5, 10, 11, 1000)]
        [3, 3, 5, 5, 8, 302]
        """
        once, again = tuple(once), tuple(again)
        end = max((1, *once, *again)) + period
        starts = {1, *(start for start in once if start >= 1)}
        starts.update(*(range((start - 1) % period + 1, end + 1, period) for start in again))
        found = sorted(starts)
        return cls(period, rise, end, tuple(found), tuple(map(value, found)))

    def at(self, length: int) -> int:
        """Return the value for a length."""
        periods = max(0, -((self.end - length) // self.period))
        return periods * self.rise + self.values[bisect_right(self.starts, length - periods * self.period) - 1]
