"""What the suite and the evaluation ask of a device, real or virtual, and when a time of it is known well enough."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, stdev
from typing import Literal, NamedTuple, Protocol

import numpy as np

from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.expression import Iteration
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, predict
from makespan.estimates.opencl_cost_table.table import OpenClCostTable, RowCounts
from makespan.host.errors import InputError

LEAST, MOST = 5, 200  # runs of one measurement
RELATIVE = 0.01


class Measurement(NamedTuple):
    """The repeated runs of one kernel or transfer; times are in microseconds.

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


def repeat_run(
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
    run()  # warms up the device, and does not count
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
    return squares / (runs - 1) / runs <= (tolerance * mean) ** 2


TimedRun = Callable[[], float]  # runs once and returns the microseconds that the device says it took
Element = Literal["float", "int", "double"]
COLUMNS = 1024


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A kernel of the suite.

    Its arguments are `in` and `out`, with an element per work-item, `c` with 128 positive elements, all of type
    `element`, and a number `a`. The elements of `in` are 1..2, as integers 1..1000.

    Args:
        name: of the measured points.
        body: what it does, in OpenCL C.
        a: the number; None: how many rows of 1024 work-items there are.
        counts: what a work-item does, which a virtual device believes.
    """

    name: str
    body: str
    element: Element
    a: float | None
    counts: RowCounts

    def number(self, work_items: int) -> float:
        """Return the argument `a` of a launch."""
        return work_items // COLUMNS if self.a is None else self.a

    @property
    def source(self) -> str:
        """Return the kernel, called `benchmark`."""
        element = self.element
        extension = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if element == "double" else ""
        return (
            f"#pragma OPENCL FP_CONTRACT OFF\n{extension}"
            f"__kernel void benchmark(__global const {element} *in, __global {element} *out,"
            f" __global const {element} *c, const {element} a) {{\n    {self.body}\n}}\n"
        )


class TimedDevice(Protocol):
    """An OpenCL device that can time what it does."""

    @property
    def name(self) -> str:
        """Return the name of the device."""

    @property
    def is_virtual(self) -> bool:
        """Return whether it only computes its times, so that nothing is measured."""

    @property
    def driver(self) -> str:
        """Return name and version of the driver."""

    @property
    def max_work_group(self) -> int:
        """Return the work-items of the largest work-group."""

    @property
    def has_double(self) -> bool:
        """Return whether it knows floats of 64 bits."""

    def transfer(self, size: int, *, back: bool) -> TimedRun:
        """Return a run that moves `size` bytes to the device, or back from it."""

    def benchmark(self, kernel: Benchmark, work_items: int, group: int) -> TimedRun:
        """Return a run of a kernel of the suite."""

    def iteration(self, iteration: Iteration, group: int) -> TimedRun:
        """Return a run of the kernel of a domain iteration on random data."""


NOISE = 0.01
LARGEST_GROUP = 1024


class VirtualOpenClDevice:
    """A device that takes the counts of a kernel, prices them by its hidden table, and adds noise.

    Args:
        hidden: what it costs.
        noise: standard deviation of a time, relative to it.
        seed: equal seeds give equal times in equal order.
    """

    is_virtual = True

    def __init__(self, hidden: OpenClCostTable, *, noise: float = NOISE, seed: int = 0) -> None:
        if not 0 <= noise < 1:
            raise InputError(f"noise {noise}: a part of the time, from 0 to below 1")
        self.name = f"virtual {hidden.device.removeprefix('virtual ')}"
        self.driver = f"noise {noise:g}, seed {seed}"
        self.max_work_group = hidden.max_work_group or LARGEST_GROUP
        self.has_double = any(row.startswith("DOUBLE") for row in hidden.ops)
        self._hidden, self._noise, self._random = hidden, noise, np.random.default_rng(seed)

    def transfer(self, size: int, *, back: bool) -> TimedRun:
        """Return a run that takes the time that the table gives."""
        return self._noisy(self._hidden.transfer_microseconds(size, back=back))

    def benchmark(self, kernel: Benchmark, work_items: int, group: int) -> TimedRun:
        """Return a run that takes the time that the counts of the kernel cost."""
        return self._noisy(predict(self._hidden, LaunchWork(kernel.counts, work_items, group)).kernel)

    def iteration(self, iteration: Iteration, group: int) -> TimedRun:
        """Return a run that takes the time that the counts of the iteration cost, whatever the data."""
        counts = count(iteration, interval_bytes=self._hidden.interval_bytes)
        return self._noisy(predict(self._hidden, LaunchWork(counts, iteration.work_items, group)).kernel)

    def _noisy(self, microseconds: float) -> TimedRun:
        return lambda: max(0.0, microseconds * (1 + self._noise * float(self._random.standard_normal())))
