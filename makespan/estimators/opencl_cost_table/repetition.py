"""When a measured time is known well enough."""

import time
from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean, median, stdev
from typing import NamedTuple

LEAST, MOST = 5, 200
RELATIVE = 0.01


class Measurement(NamedTuple):
    """Repeated runs of one thing: times in microseconds.

    Args:
        se: standard error of the mean.
        runs: how many there were.
        median: what fits use, since a run that was held up does not move it.
        converged: whether the standard error is within the tolerance.
    """

    mean: float
    se: float
    runs: int
    median: float
    converged: bool


def summary(times: Sequence[float], tolerance: float) -> Measurement:
    """Summarise at least two runs.

    >>> measured = summary([10, 12, 11, 13, 9], 0.01)
    >>> measured.mean, round(measured.se, 8), f"{measured.se / measured.mean:.2%}"
    (11.0, 0.70710678, '6.43%')
    """
    mean, se = fmean(times), stdev(times) / sqrt(len(times))
    return Measurement(mean, se, len(times), median(times), se <= tolerance * mean)


def repeated(
    run: Callable[[], float],
    *,
    tolerance: float = RELATIVE,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Warm up once, then run until the standard error is within `tolerance` of the mean: 5 to 200 times.

    Args:
        run: runs once and returns microseconds.
        seconds: stop after so long, once there are 5 runs; None: no matter how long.
    """
    run()
    begin, times, mean, squares = clock(), list[float](), 0.0, 0.0
    while len(times) < MOST:
        times.append(run())
        above = times[-1] - mean
        mean += above / len(times)
        squares += above * (times[-1] - mean)  # Welford: the squares of distances from the mean so far
        if len(times) >= LEAST and _is_known(squares, len(times), mean, tolerance):
            break
        if len(times) >= LEAST and seconds is not None and clock() - begin >= seconds:
            break
    return summary(times, tolerance)


def _is_known(squares: float, runs: int, mean: float, tolerance: float) -> bool:
    """Whether the standard error of the mean is within the tolerance."""
    return squares / (runs - 1) / runs <= (tolerance * mean) ** 2
