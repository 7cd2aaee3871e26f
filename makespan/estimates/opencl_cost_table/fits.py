"""From measured points to the numbers of a cost table: lines, work-group factor, saturation."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf

import numpy as np
import numpy.typing as npt

from makespan.estimates.line import fit_line
from makespan.estimates.opencl_cost_table.table import LinearCost, Saturation, WorkGroup

SIGNIFICANT = 2.0  # standard errors
CHOSEN = 4.0  # standard errors, for the best of many candidates
IRREGULAR = 0.1  # of the mean time: root mean square from which a law does not describe the times of a division
SAME = 0.05
SCALES = 60  # of the grid for the two exponentials
LEAST_SCALE, MOST_SCALE = 0.5, 256.0

Floats = npt.NDArray[np.float64]


def line(x: Sequence[float], microseconds: Sequence[float], *, through_origin: bool = False) -> LinearCost:
    """Return the line of ordinary least squares, with what is within two standard errors of 0 set to 0.

    Args:
        through_origin: store no intercept, for costs that have none by the model; it is fitted all the same, since
            what the points are differences of may have one.

    A slope that is not resolved takes its intercept with it: nothing is guessed. Negative intercepts become 0.
    """
    found = fit_line(zip(x, microseconds, strict=True))
    slope, icept = float(found.slope), float(found.intercept)
    se, icept_se = found.slope_error or 0.0, found.intercept_error or 0.0  # two points leave nothing to doubt them by
    r2 = None if found.r_squared is None else float(found.r_squared)
    if slope <= SIGNIFICANT * se:
        return LinearCost(slope=0.0, se=se, r2=r2, unresolved=True)
    kept = not through_origin and icept > SIGNIFICANT * icept_se
    return LinearCost(slope=slope, icept=icept if kept else 0.0, se=se, r2=r2)


def work_group(times: Mapping[int, float]) -> WorkGroup:
    """Return the factor 1 + B1 exp(-s/t1) + B2 exp(-s/t2) of a work-group size s, from the time at each size.

    The two scales are searched on a grid, B1 and B2 >= 0 follow by linear least squares (variable projection), and a
    Gauss-Newton step polishes all four. Residuals are relative, as the noise of times is; what counts is the error of
    the factor: other scales may fit as well.
    """
    sizes = np.array(sorted(times), float)
    factor = np.array([times[int(size)] for size in sizes])
    factor = factor / factor.min()  # relative to the best size of a work-group
    weights, target = 1 / factor, (factor - 1) / factor  # makes the residuals relative
    columns = {t: np.exp(-sizes / t) * weights for t in np.geomspace(LEAST_SCALE, MOST_SCALE, SCALES)}
    best, found = inf, (0.0, MOST_SCALE, 0.0, LEAST_SCALE)
    for short, long in combinations(columns, 2):
        b1, b2 = _from_zero(columns[long], columns[short], target)
        error = _squares(b1 * columns[long] + b2 * columns[short] - target)
        if error < best:
            best, found = error, (b1, long, b2, short)
    b1, t1, b2, t2 = _polish(found, sizes, weights, target)
    return WorkGroup(y0=1.0, b1=b1, t1=t1, b2=b2, t2=t2)


def _from_zero(first: Floats, second: Floats, target: Floats) -> tuple[float, float]:
    both, *_ = np.linalg.lstsq(np.column_stack([first, second]), target, rcond=None)
    if min(both) >= 0:  # else the best fit without negative factors uses one column alone
        return float(both[0]), float(both[1])
    alone = [max(0.0, float(column @ target) / float(column @ column)) for column in (first, second)]
    choices = ((alone[0], 0.0), (0.0, alone[1]))
    return min(choices, key=lambda pair: _squares(pair[0] * first + pair[1] * second - target))


def _polish(
    start: tuple[float, float, float, float], sizes: Floats, weights: Floats, target: Floats
) -> tuple[float, float, float, float]:
    """Return one Gauss-Newton step from `start`, if it leaves a smaller error and stays within the model."""

    def residuals(parameters: Sequence[float]) -> Floats:
        b1, t1, b2, t2 = parameters
        fitted: Floats = (b1 * np.exp(-sizes / t1) + b2 * np.exp(-sizes / t2)) * weights - target
        return fitted

    b1, t1, b2, t2 = start
    first, second = np.exp(-sizes / t1) * weights, np.exp(-sizes / t2) * weights
    slopes = np.column_stack([first, b1 * sizes / t1**2 * first, second, b2 * sizes / t2**2 * second])
    step, *_ = np.linalg.lstsq(slopes, -residuals(start), rcond=None)
    moved = tuple(float(value) for value in np.array(start) + step)
    inside = min(moved) >= 0 and min(moved[1], moved[3]) > 0
    if inside and _squares(residuals(moved)) < _squares(residuals(start)):
        return moved[0], moved[1], moved[2], moved[3]
    return tuple(map(float, start))  # type: ignore[return-value]


def saturation(
    microseconds: Mapping[int, float],
    work_items: int,
    *,
    errors: Mapping[int, float] | None = None,
    irregular: bool = False,
) -> Saturation:
    """Return the law of n operations from the time at each n, without what the kernel takes anyway.

    The candidate k with the least squares of {plateau: mean of the times up to k; line through (k, plateau) beyond}
    is where saturation begins. Without a plateau, k = 1, the law is `linear`; without a rise it is `count_free`.

    Args:
        errors: standard errors of the times. Since k is the best of many, a rise has to be four of them high.
        irregular: whether times that are no such law become a `table` of their own.
    """
    counts = np.array(sorted(microseconds), float)
    times = np.array([microseconds[int(n)] for n in counts])
    sure = np.array([(errors or {}).get(int(n), 0.0) for n in counts]) * CHOSEN
    pieces = {k: _two_pieces(counts, times, k) for k in range(int(counts[0]), int(counts[-1]))}
    k = min(pieces, key=lambda candidate: pieces[candidate][0])
    squares, rise, error = pieces[k]
    is_flat = rise <= SIGNIFICANT * error or rise * (counts[-1] - k) <= sure[-1]  # no rise that noise could not give
    if is_flat:
        squares = _squares(times - times.mean())
    off = float(np.sqrt(squares / len(times)))
    if irregular and times[0] > 0 and off > max(IRREGULAR * times.mean(), sure.max()):
        points = tuple((int(n), float(max(0.0, time) / times[0] / n)) for n, time in zip(counts, times, strict=True))
        return Saturation(kind="table", points=points)
    if is_flat:
        return Saturation(kind="count_free")
    tau = rise / work_items
    return Saturation(kind="linear", tau=tau) if k == 1 else Saturation(kind="sat", x_sat=k, tau=tau)


def as_published(law: Saturation, one: LinearCost) -> Saturation:
    """Return the law without `tau`, where operations beyond saturation cost what the first one costs, to `SAME`.

    T + T max(0, n - k), which is what is fitted, is the published T max(1, n - x_sat) with x_sat = k - 1.
    """
    if law.tau is None or one.unresolved or abs(law.tau - one.slope) > SAME * one.slope:
        return law
    return Saturation(kind=law.kind, x_sat=None if law.x_sat is None else law.x_sat - 1)


def _two_pieces(counts: Floats, times: Floats, k: int) -> tuple[float, float, float]:
    """Return squares, rise per operation and its standard error of a plateau up to k and a line from its end."""
    flat = counts <= k
    plateau = float(times[flat].mean())
    steps, above = counts[~flat] - k, times[~flat] - plateau
    rise = float(steps @ above) / float(steps @ steps)
    squares = _squares(times[flat] - plateau) + _squares(above - rise * steps)
    error = np.sqrt(squares / max(1, len(counts) - 2) / float(steps @ steps))
    return squares, rise, float(error)


def _squares(residuals: Floats) -> float:
    return float(residuals @ residuals)
