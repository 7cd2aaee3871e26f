"""Piecewise linear functions of the memory latency `lat >= 0`, exact: sums, multiples and maxima."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, zip_longest
from typing import NamedTuple, TypeAlias

RationalNumber: TypeAlias = int | Fraction


def exact(value: float) -> RationalNumber:
    """Return the same number without rounding; whole ones as int, which is faster."""
    return int(value) if value == int(value) else Fraction(value)


class LinearPiece(NamedTuple):
    """The line `intercept + slope * lat`, which counts from `start` on."""

    start: RationalNumber
    intercept: RationalNumber
    slope: RationalNumber

    def __call__(self, lat: RationalNumber) -> RationalNumber:
        """Return the value at one latency."""
        return self.intercept + self.slope * lat if self.slope else self.intercept

    def __str__(self) -> str:
        """Return the line as a sum, such as `50 + 4*lat`."""
        if not self.slope:
            return _decimal_text(self.intercept)
        product = "lat" if self.slope == 1 else f"{_decimal_text(self.slope)}*lat"
        return f"{_decimal_text(self.intercept)} + {product}" if self.intercept else product


@dataclass(frozen=True, slots=True)
class PiecewiseLinear:
    """A continuous function of `lat`.

    Args:
        pieces: the lines that it follows, by rising `start`, the first from 0 on; each ends where the next one starts.
    """

    pieces: tuple[LinearPiece, ...] = (LinearPiece(0, 0, 0),)

    def __call__(self, lat: RationalNumber) -> RationalNumber:
        """Return the value at one latency, exactly."""
        return self.piece_at(lat)(lat)

    def plus_line(self, intercept: RationalNumber, slope: RationalNumber = 0) -> "PiecewiseLinear":
        """Return the sum with a line."""
        return PiecewiseLinear(tuple(LinearPiece(x, a + intercept, b + slope) for x, a, b in self.pieces))

    def plus(self, other: "PiecewiseLinear", factor: RationalNumber = 1) -> "PiecewiseLinear":
        """Return the sum with a multiple of another function."""
        return _through(
            LinearPiece(start, a.intercept + factor * b.intercept, a.slope + factor * b.slope)
            for start, _, a, b in self._beside(other)
        )

    def maximum(self, other: "PiecewiseLinear") -> "PiecewiseLinear":
        """Return the larger of both at every latency."""
        found = []
        for start, end, a, b in self._beside(other):
            lead, rise = a(start) - b(start), a.slope - b.slope
            higher, lower = (a, b) if (lead, rise) >= (0, 0) else (b, a)  # where both are equal, the steeper one leads
            found.append(higher._replace(start=start))
            if lead * rise < 0:  # the lines cross somewhere behind the start
                crossing = start - lead / Fraction(rise)
                if end is None or crossing < end:
                    found.append(lower._replace(start=crossing))
        return _through(found)

    def running_maximum(self) -> "PiecewiseLinear":
        """Return the largest value so far: the least function above this one that never falls."""
        found, highest = [], self(0)
        for piece, end in zip_longest(self.pieces, self.starts[1:]):
            passes = piece.start  # where the piece begins to be above all values so far
            if piece.slope <= 0 or piece(passes) < highest:
                found.append(LinearPiece(piece.start, highest, 0))
                if piece.slope <= 0:
                    continue
                passes = (highest - piece.intercept) / Fraction(piece.slope)
            if end is None or passes < end:
                found.append(piece._replace(start=passes))
                highest = highest if end is None else piece(end)
        return _through(found)

    @property
    def is_convex(self) -> bool:
        """Return whether it is the maximum of the lines that it consists of."""
        return all(before.slope <= after.slope for before, after in pairwise(self.pieces))

    def numeric(self) -> Callable[[float], float]:
        """Return the same function in floating point, which is faster."""
        starts = [float(start) for start in self.starts]
        values = [float(piece(piece.start)) for piece in self.pieces]
        slopes = [float(piece.slope) for piece in self.pieces]

        def value(lat: float) -> float:
            at = max(bisect_right(starts, lat) - 1, 0)
            return values[at] + slopes[at] * (lat - starts[at])

        return value

    def __str__(self) -> str:
        """Return `max(50 + 4*lat, 80 + lat)`, or the pieces with their ranges if the function is not convex."""
        texts = [str(piece) for piece in self.pieces]
        if len(texts) == 1:
            return texts[0]
        if self.is_convex:
            return f"max({', '.join(texts)})"
        ends = [f" while lat <= {_decimal_text(start)}" for start in self.starts[1:]]
        return "; ".join(text + end for text, end in zip(texts, [*ends, " after that"], strict=True))

    @property
    def starts(self) -> list[RationalNumber]:
        """Return the latencies at which the pieces start."""
        return [piece.start for piece in self.pieces]

    def piece_at(self, lat: RationalNumber) -> LinearPiece:
        """Return the line that the function follows at one latency."""
        at = bisect_right(self.pieces, lat, key=lambda piece: piece.start) - 1 if len(self.pieces) > 1 else 0
        return self.pieces[at]

    def _beside(
        self, other: "PiecewiseLinear"
    ) -> Iterator[tuple[RationalNumber, RationalNumber | None, LinearPiece, LinearPiece]]:
        """Yield every range in which both functions are lines: its start, its end or None, and the two lines."""
        starts = sorted({*self.starts, *other.starts})
        for start, end in zip_longest(starts, starts[1:]):
            yield start, end, self.piece_at(start), other.piece_at(start)


def _through(pieces: Iterable[LinearPiece]) -> PiecewiseLinear:
    """Return the function of some pieces, without those that go on with the line before."""
    kept: list[LinearPiece] = []
    for piece in pieces:
        if not kept or piece[1:] != kept[-1][1:]:
            kept.append(piece)
    return PiecewiseLinear(tuple(kept))


def _decimal_text(number: RationalNumber) -> str:
    return f"{float(number):.10g}"
