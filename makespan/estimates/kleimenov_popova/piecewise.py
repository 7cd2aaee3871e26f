"""Piecewise linear functions of the memory latency `lat >= 0`, exact: sums, differences, multiples and maxima."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

RationalNumber: TypeAlias = int | Fraction
_Knot: TypeAlias = tuple[RationalNumber, RationalNumber]


def exact(value: float) -> RationalNumber:
    """Return the same number without rounding; whole ones as int, which is faster."""
    return int(value) if value == int(value) else Fraction(value)


@dataclass(frozen=True, slots=True)
class PiecewiseLinear:
    """A continuous function: straight between its knots, and of one slope after the last.

    Args:
        knots: points (lat, value) in rising order of lat; the first is at 0.
        slope: after the last knot.
    """

    knots: tuple[_Knot, ...]
    slope: RationalNumber

    @classmethod
    def line(cls, intercept: RationalNumber, slope: RationalNumber = 0) -> "PiecewiseLinear":
        """Return the function `intercept + slope * lat`."""
        return cls(((0, intercept),), slope)

    def __call__(self, lat: RationalNumber) -> RationalNumber:
        """Return the value at one latency, exactly."""
        at = bisect_right(self.knots, lat, key=lambda knot: knot[0]) - 1
        x, y = self.knots[at]
        return y + (self._slope(at) * (lat - x) if lat != x else 0)

    @property
    def slopes(self) -> tuple[RationalNumber, ...]:
        """Return the slope after each knot."""
        return tuple(self._slope(at) for at in range(len(self.knots)))

    def _slope(self, at: int) -> RationalNumber:
        if at + 1 == len(self.knots):
            return self.slope
        (a, b), (c, d) = self.knots[at : at + 2]
        return (d - b) / Fraction(c - a)

    def __add__(self, other: "PiecewiseLinear") -> "PiecewiseLinear":
        if len(self.knots) == len(other.knots) == 1:
            return PiecewiseLinear.line(self.knots[0][1] + other.knots[0][1], self.slope + other.slope)
        return _through(((x, self(x) + other(x)) for x in _places(self, other)), self.slope + other.slope)

    def __sub__(self, other: "PiecewiseLinear") -> "PiecewiseLinear":
        return self + other.scaled(-1)

    def scaled(self, factor: RationalNumber) -> "PiecewiseLinear":
        """Return the multiple by a constant."""
        return PiecewiseLinear(tuple((x, y * factor) for x, y in self.knots), self.slope * factor)

    def maximum(self, other: "PiecewiseLinear") -> "PiecewiseLinear":
        """Return the larger of both at every latency."""
        places = _places(self, other)
        ours, theirs = [self(x) for x in places], [other(x) for x in places]
        differences = [a - b for a, b in zip(ours, theirs, strict=True)]
        tail = self.slope - other.slope
        if tail >= 0 and min(differences) >= 0:  # above at all knots and after the last, so everywhere
            return self
        if tail <= 0 and max(differences) <= 0:
            return other
        found = []
        for at, (x, d) in enumerate(zip(places, differences, strict=True)):
            found.append((x, max(ours[at], theirs[at])))
            rise = tail if at + 1 == len(places) else (differences[at + 1] - d) / Fraction(places[at + 1] - x)
            crossing = x - d / Fraction(rise) if d * rise < 0 else x  # where the difference changes its sign
            if crossing > x and (at + 1 == len(places) or crossing < places[at + 1]):
                found.append((crossing, self(crossing)))
        end = max(self.slope, other.slope)
        return _through(found, end)

    def running_maximum(self) -> "PiecewiseLinear":
        """Return the largest value so far: the least function above this one that never falls."""
        found = [self.knots[0]]
        highest = self.knots[0][1]
        for (x, y), slope in zip(self.knots, self.slopes, strict=True):
            if slope <= 0:
                continue
            # where the piece passes the highest value so far
            start = x if y >= highest else x + (highest - y) / Fraction(slope)
            end = next((a for a, _ in self.knots if a > x), None)
            if end is not None and start >= end:
                continue
            found.append((start, max(y, highest)))
            if end is not None:
                highest = self(end)
                found.append((end, highest))
        return _through(_distinct(found), max(self.slope, 0))

    @property
    def is_convex(self) -> bool:
        """Return whether it is the maximum of the lines that it consists of."""
        return all(a <= b for a, b in pairwise(self.slopes))

    @property
    def lines(self) -> tuple[tuple[RationalNumber, RationalNumber], ...]:
        """Return intercept and slope of every piece, from small latencies to large ones."""
        pairs = zip(self.knots, self.slopes, strict=True)
        return tuple((y - slope * x, slope) for (x, y), slope in pairs)

    def numeric(self) -> Callable[[float], float]:
        """Return the same function in floating point, which is faster."""
        xs = [float(x) for x, _ in self.knots]
        ys = [float(y) for _, y in self.knots]
        slopes = [float(slope) for slope in self.slopes]

        def value(lat: float) -> float:
            at = max(bisect_right(xs, lat) - 1, 0)
            return ys[at] + slopes[at] * (lat - xs[at])

        return value

    def __str__(self) -> str:
        """Return `max(50 + 4*lat, 80 + lat)`, or the pieces with their ranges if the function is not convex."""
        texts = [_line(*line) for line in self.lines]
        if len(texts) == 1:
            return texts[0]
        if self.is_convex:
            return f"max({', '.join(texts)})"
        ends = [f" while lat <= {decimal_text(x)}" for x, _ in self.knots[1:]]
        return "; ".join(text + end for text, end in zip(texts, [*ends, " after that"], strict=True))


def decimal_text(number: RationalNumber) -> str:
    """Return a number in decimal, with up to ten significant digits."""
    return f"{float(number):.10g}"


def _line(intercept: RationalNumber, slope: RationalNumber) -> str:
    if slope == 0:
        return decimal_text(intercept)
    product = "lat" if slope == 1 else f"{decimal_text(slope)}*lat"
    return product if intercept == 0 else f"{decimal_text(intercept)} + {product}"


def _places(one: PiecewiseLinear, other: PiecewiseLinear) -> Sequence[RationalNumber]:
    if len(one.knots) == len(other.knots) == 1:
        return (0,)
    return sorted({x for x, _ in one.knots} | {x for x, _ in other.knots})


def _distinct(points: Sequence[_Knot]) -> Iterator[_Knot]:
    """Yield the last of the points at each latency."""
    for at, point in enumerate(points):
        if at + 1 == len(points) or points[at + 1][0] != point[0]:
            yield point


def _through(points: "Iterator[_Knot] | Sequence[_Knot]", slope: RationalNumber) -> PiecewiseLinear:
    """Return the function through some points, without knots on a straight line."""
    kept: list[_Knot] = []
    for x, y in points:
        while len(kept) > 1 and _is_straight(kept[-2], kept[-1], (x, y)):  # the knot between lies on a straight line
            kept.pop()
        kept.append((x, y))
    if len(kept) > 1 and kept[-1][1] - kept[-2][1] == slope * (kept[-1][0] - kept[-2][0]):
        kept.pop()
    return PiecewiseLinear(tuple(kept), slope)


def _is_straight(a: _Knot, b: _Knot, c: _Knot) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) == (c[1] - a[1]) * (b[0] - a[0])
