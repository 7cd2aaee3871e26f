"""The time to launch a grid, as a straight line in its number of blocks, by the warps of a block."""

from collections.abc import Iterable, Mapping
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from makespan.errors import InputError, MeasurementError
from makespan.estimators.line import Line, fit_line
from makespan.estimators.parameter import LEAST_R_SQUARED, TOO_FEW


class LaunchLine(NamedTuple):
    """`blocks * x1 + x2` seconds for a grid.

    Args:
        x1: seconds per block.
        x2: seconds.
    """

    x1: float
    x2: float

    def seconds(self, blocks: int) -> float:
        """The launch time of a grid."""
        return blocks * self.x1 + self.x2


class EmptyKernel(NamedTuple):
    """A measurement: how long a kernel without work took, in seconds."""

    blocks: int
    warps_per_block: int
    seconds: float


MOST_SCATTER = 0.1
"""Of launch times about their line, over their mean: more is no line, unless it rises and explains them by R^2."""


class LaunchFit(NamedTuple):
    """A line through the launch times of blocks of one size.

    Args:
        mean: of the times, in seconds.
        doubts: what speaks against it.
    """

    line: Line
    mean: float
    doubts: tuple[str, ...] = ()

    @property
    def launch(self) -> LaunchLine:
        """Its two numbers."""
        return LaunchLine(float(self.line.slope), float(self.line.intercept))


def fit_launches(measured: Iterable[EmptyKernel], *, force: bool = False) -> Mapping[int, LaunchFit]:
    """The line of least squares for every number of warps of a block; a flat one is fine.

    Args:
        force: take times that are on no line.

    Raises:
        InputError: a measurement that is none.
        MeasurementError: fewer than two sizes of the grid, a line that falls or begins below zero, or times that
            scatter about it by more than a tenth of their mean while R^2 is below 0.98.

    Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021: one regression per block size.
    """
    by_warps: dict[int, list[tuple[int, float]]] = {}
    for blocks, warps, seconds in measured:
        if blocks < 1 or warps < 1 or not (isfinite(seconds) and seconds > 0):
            raise InputError(f"no launch of an empty kernel: {blocks} blocks of {warps} warps in {seconds} s")
        by_warps.setdefault(warps, []).append((blocks, seconds))
    return {warps: _fit(points, warps, force=force) for warps, points in sorted(by_warps.items())}


def _fit(points: list[tuple[int, float]], warps: int, *, force: bool) -> LaunchFit:
    if len({blocks for blocks, _ in points}) < 2:
        raise MeasurementError(f"blocks of {warps} warps: one size of the grid is no line; measure at least two")
    found = LaunchFit(fit_line(points), fmean(seconds for _, seconds in points))
    line = found.launch
    if line.x1 < 0 or line.x2 < 0:
        raise MeasurementError(
            f"blocks of {warps} warps: launch time {line.x1:g} s/block * blocks + {line.x2:g} s cannot be negative;"
            " measure again, with larger grids or more repetitions"
        )
    if found.line.scatter is None:
        return found._replace(doubts=(TOO_FEW,))
    is_line = found.line.r_squared is None or found.line.r_squared >= LEAST_R_SQUARED
    if is_line or found.line.scatter <= MOST_SCATTER * found.mean:
        return found
    doubt = f"the times scatter about the line by {found.line.scatter / found.mean:.0%} of their mean"
    if not force:
        raise MeasurementError(f"blocks of {warps} warps: {doubt}; measure again, or --force")
    return found._replace(doubts=(doubt,))


def relative_error(measured: float, predicted: float) -> float:
    """`|(measured - predicted) / measured|`, the error metric of the paper.

    Raises:
        InputError: a measured time that is not positive.
    """
    if not (isfinite(measured) and measured > 0):
        raise InputError(f"the measured time must be positive and finite, not {measured:g} s")
    return abs((measured - predicted) / measured)
