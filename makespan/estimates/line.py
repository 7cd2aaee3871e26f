"""A straight line through measured points, by least squares, without rounding."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from makespan.host.errors import InputError


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A line y = intercept + slope x.

    Args:
        intercept_error: standard error of the intercept; None with no more than two points, as that of the slope.
        scatter: standard deviation of the y about the line; None with no more than two points.
        r_squared: share of the variation of y that the line explains; None if y does not vary.
    """

    intercept: Fraction
    slope: Fraction
    intercept_error: float | None
    slope_error: float | None
    scatter: float | None
    r_squared: Fraction | None

    def at(self, x: int) -> Fraction:
        """Return the y of the line."""
        return self.intercept + self.slope * x


def fit_line(points: Iterable[tuple[float | Fraction, float | Fraction]]) -> FittedLine:
    """Return the line of least squares; floats count as the binary fractions that they are.

    >>> line = fit_line([(32, 544), (64, 672), (128, 928), (256, 1440)])
    >>> int(line.slope), int(line.at(1)), line.slope_error
    (4, 420, 0.0)

    Raises:
        InputError: less than two different x.
    """
    exact = [(Fraction(x), Fraction(y)) for x, y in points]  # sums of squares would cancel in floats
    if len({x for x, _ in exact}) < 2:
        raise InputError("a line needs points at two different x at least")
    count = len(exact)
    mean_x, mean_y = (sum(values, Fraction(0)) / count for values in zip(*exact, strict=True))
    spread = _total((x - mean_x) ** 2 for x, _ in exact)
    slope = _total((x - mean_x) * (y - mean_y) for x, y in exact) / spread
    intercept = mean_y - slope * mean_x
    residual = _total((y - intercept - slope * x) ** 2 for x, y in exact)
    variation = _total((y - mean_y) ** 2 for _, y in exact)
    variance = residual / (count - 2) if count > 2 else None  # the line itself takes two degrees of freedom
    return FittedLine(
        intercept=intercept,
        slope=slope,
        intercept_error=None if variance is None else sqrt(variance * (Fraction(1, count) + mean_x**2 / spread)),
        slope_error=None if variance is None else sqrt(variance / spread),
        scatter=None if variance is None else sqrt(variance),
        r_squared=1 - residual / variation if variation else None,
    )


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))
