"""A device that takes as long as a table says, give or take noise: what the suite must find out, without OpenCL."""

from collections.abc import Mapping

import numpy as np

from makespan.estimates.opencl_cost_table import reference
from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.device import Benchmark, Executed, TimedRun
from makespan.estimates.opencl_cost_table.expression import Iteration
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, predict
from makespan.estimates.opencl_cost_table.reference import ArrayValues
from makespan.estimates.opencl_cost_table.table import OpenClCostTable
from makespan.host.errors import InputError

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

    def iteration(self, iteration: Iteration, data: Mapping[str, ArrayValues], group: int) -> Executed:
        """Return the result by numpy, with a run that takes the time that its counts cost."""
        counts = count(iteration, interval_bytes=self._hidden.interval_bytes)
        time = predict(self._hidden, LaunchWork(counts, iteration.work_items, group)).kernel
        return Executed(reference.evaluate(iteration, data), self._noisy(time))

    def _noisy(self, microseconds: float) -> TimedRun:
        return lambda: max(0.0, microseconds * (1 + self._noise * float(self._random.standard_normal())))
