"""The time to launch a grid, as a straight line in its number of blocks, by the warps of a block."""

from math import isfinite
from typing import NamedTuple

from makespan.errors import InputError


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


def relative_error(measured: float, predicted: float) -> float:
    """`|(measured - predicted) / measured|`, the error metric of the paper.

    Raises:
        InputError: a measured time that is not positive.
    """
    if not (isfinite(measured) and measured > 0):
        raise InputError(f"the measured time must be positive and finite, not {measured:g} s")
    return abs((measured - predicted) / measured)
