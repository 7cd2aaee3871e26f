"""Loads and names in the words of a terminal."""

from collections.abc import Sequence

from makespan.deadlines.verdict import ResourceLoad

_NAMES = 5  # in one line


def percent(load: ResourceLoad) -> str:
    """Return how much of the time is demanded, at most; never 100.0 % for more than that.

    >>> from fractions import Fraction
    >>> percent(Load("gpu", 1, 3, Fraction(1, 3))), percent(Load("gpu", 1000001, 1000000, Fraction(1)))
    ('33.4 %', '100.1 % at most, and no more is shown than there is')
    """
    thousandths = -(-1000 * load.numerator // load.denominator)
    share = f"{thousandths // 10}.{thousandths % 10} %"
    if load.is_refuted:
        return f"{share}, more than there is"
    return f"{share} at most, and no more is shown than there is" if load.is_overload else share


def list_names(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def count_of(count: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
