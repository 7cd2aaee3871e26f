"""Max-plus expressions in names: the largest of several sums, such as `lat_setp + del_bra + max(del_i32, lat_f64)`."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from makespan.estimates.kleimenov_popova.piecewise import RationalNumber, decimal_text

MAX_TERMS = 64

_Sum: TypeAlias = tuple[tuple[str, RationalNumber], ...]  # names with their positive coefficients, in order of names


class TooManyTermsError(Exception):
    """An expression with more sums than a reader follows."""


@dataclass(frozen=True, slots=True)
class Order:
    """The known order of the values of names, none of which is negative.

    Args:
        above: pairs of names (more, less) with value(more) >= value(less).
    """

    above: Mapping[str, str]

    def covers(self, more: _Sum, less: _Sum) -> bool:
        """Return whether one sum is at least another, whatever the values."""
        rest = dict(more)
        for name, count in less:
            rest[name] = rest.get(name, 0) - count
        for high, low in self.above.items():
            if rest.get(high, 0) > 0:  # value(high) = value(low) + something that is not negative
                rest[low] = rest.get(low, 0) + rest.pop(high)
        return all(count >= 0 for count in rest.values())


@dataclass(frozen=True, slots=True)
class MaxPlus:
    """The largest of some sums, without those that another one covers.

    Raises:
        TooManyTermsError: more than `MAX_TERMS` sums.
    """

    sums: frozenset[_Sum]
    order: Order

    @classmethod
    def zero(cls, order: Order) -> "MaxPlus":
        """Return the empty sum."""
        return cls(frozenset([()]), order)

    @classmethod
    def name(cls, name: str, order: Order) -> "MaxPlus":
        """Return a single name."""
        return cls(frozenset([((name, 1),)]), order)

    def __add__(self, other: "MaxPlus") -> "MaxPlus":
        return self._of(_add_sums(a, b) for a in self.sums for b in other.sums)

    def scaled(self, factor: RationalNumber) -> "MaxPlus":
        """Return the multiple by a constant that is not negative."""
        return self._of(tuple((name, count * factor) for name, count in each if count * factor) for each in self.sums)

    def maximum(self, other: "MaxPlus") -> "MaxPlus":
        """Return the larger of both."""
        return self if self == other else self._of(self.sums | other.sums)

    def value(self, values: Mapping[str, RationalNumber]) -> RationalNumber:
        """Return the value for these values of the names."""
        return max(sum((values[name] * count for name, count in each), start=Fraction(0)) for each in self.sums)

    @property
    def names(self) -> Set[str]:
        """Return every name in it."""
        return {name for each in self.sums for name, _ in each}

    def __str__(self) -> str:
        """Return what all sums share, plus the largest of what remains of each."""
        least = {name: min(dict(each).get(name, 0) for each in self.sums) for name in self.names}
        # stands in front of the maximum
        common = tuple((name, count) for name, count in sorted(least.items()) if count > 0)
        rests = sorted(
            _sum_text(_add_sums(each, tuple((name, -count) for name, count in common))) for each in self.sums
        )
        if len(rests) == 1:
            return _sum_text(common)
        largest = f"max({', '.join(rests)})"
        return f"{_sum_text(common)} + {largest}" if common else largest

    def _of(self, sums: Iterable[_Sum]) -> "MaxPlus":
        found = frozenset(_uncovered_sums(set(sums), self.order))  # else additions multiply the number of sums
        if len(found) > MAX_TERMS:
            raise TooManyTermsError
        return MaxPlus(found, self.order)


def _add_sums(one: _Sum, other: _Sum) -> _Sum:
    counts = dict(one)
    for name, count in other:
        counts[name] = counts.get(name, 0) + count
    return tuple(sorted((name, count) for name, count in counts.items() if count))


def _uncovered_sums(sums: Set[_Sum], order: Order) -> Iterator[_Sum]:
    kept: list[_Sum] = []
    for each in sorted(sums, key=str):
        if not any(order.covers(other, each) for other in kept):
            kept = [other for other in kept if not order.covers(each, other)]
            kept.append(each)
    yield from kept


def _sum_text(each: _Sum) -> str:
    parts = [name if count == 1 else f"{decimal_text(count)}*{name}" for name, count in each]
    return " + ".join(parts) or "0"
