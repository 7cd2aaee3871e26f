"""Times, loads and names in the words of a terminal. Bounds are rounded up and what is left is rounded down."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor

from makespan.schedulability.units import shown_time
from makespan.schedulability.verdict import Load

_DIGITS = 6
_NAMES = 5  # in one line


def up(seconds: Fraction) -> str:
    """A bound from above for people, to six digits.

    >>> up(Fraction(1, 3)), down(Fraction(1, 3))
    ('333.334 ms', '333.333 ms')
    """
    return shown_time(rounded(seconds, ceil))


def down(seconds: Fraction) -> str:
    """What is left at least, to six digits; negative if it is too little."""
    left = -rounded(-seconds, ceil) if seconds < 0 else rounded(seconds, floor)
    return f"-{shown_time(-left)}" if left < 0 else shown_time(left)


def slack(ticks: int, tick: Fraction) -> str:
    """What is left at least until a deadline; a single tick is nothing, since events may lie between ticks."""
    return down((0 if 0 <= ticks <= 1 else ticks) * tick)


def percent(load: Load) -> str:
    """How much of the time is demanded, at most; never 100.0 % for more than that.

    >>> percent(Load("gpu", 1, 3, Fraction(1, 3))), percent(Load("gpu", 1000001, 1000000, Fraction(1)))
    ('33.4 %', '100.1 % at most, and no more is shown than there is')
    """
    thousandths = -(-1000 * load.numerator // load.denominator)
    share = f"{thousandths // 10}.{thousandths % 10} %"
    if load.is_refuted:
        return f"{share}, more than there is"
    return f"{share} at most, and no more is shown than there is" if load.is_overload else share


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def many(count: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def rounded(seconds: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    """To so many significant digits."""
    if seconds == 0:
        return seconds
    size = abs(seconds)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    if size < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent + 1 - _DIGITS)
    return rounding(seconds / unit) * unit
