"""The time to launch a grid, as a straight line in its number of blocks, by the warps of a block."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from makespan.errors import InputError, MeasurementError
from makespan.estimators.line import fit_line


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


def fit_launches(measured: Iterable[EmptyKernel]) -> Mapping[int, LaunchLine]:
    """The line of least squares for every number of warps of a block.

    Raises:
        InputError: a measurement that is none.
        MeasurementError: fewer than two sizes of the grid, or a line that falls or begins below zero.

    Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021: one regression per block size.
    """
    by_warps: dict[int, list[tuple[int, float]]] = {}
    for blocks, warps, seconds in measured:
        if blocks < 1 or warps < 1 or not (isfinite(seconds) and seconds > 0):
            raise InputError(f"no launch of an empty kernel: {blocks} blocks of {warps} warps in {seconds} s")
        by_warps.setdefault(warps, []).append((blocks, seconds))
    return {warps: _fit(points, warps) for warps, points in sorted(by_warps.items())}


def _fit(points: list[tuple[int, float]], warps: int) -> LaunchLine:
    if len({blocks for blocks, _ in points}) < 2:
        raise MeasurementError(f"blocks of {warps} warps: one size of the grid is no line; measure at least two")
    fitted = fit_line(points)
    line = LaunchLine(float(fitted.slope), float(fitted.intercept))
    if line.x1 < 0 or line.x2 < 0:
        raise MeasurementError(
            f"blocks of {warps} warps: launch time {line.x1:g} s/block * blocks + {line.x2:g} s cannot be negative;"
            " measure again, with larger grids or more repetitions"
        )
    return line


def relative_error(measured: float, predicted: float) -> float:
    """`|(measured - predicted) / measured|`, the error metric of the paper.

    Raises:
        InputError: a measured time that is not positive.
    """
    if not (isfinite(measured) and measured > 0):
        raise InputError(f"the measured time must be positive and finite, not {measured:g} s")
    return abs((measured - predicted) / measured)
