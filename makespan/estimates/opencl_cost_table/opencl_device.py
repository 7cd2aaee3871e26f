"""A device that OpenCL finds, timed by its own profiling events."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.opencl import Opened, printable
from makespan.estimates.opencl_cost_table.device import Benchmark, Element, TimedRun
from makespan.estimates.opencl_cost_table.expression import Array, Iteration
from makespan.estimates.opencl_cost_table.suite import LARGEST, MOST_CHAINED
from makespan.host.errors import InputError

_DTYPES: Mapping[Element, Any] = {"float": np.float32, "int": np.int32, "double": np.float64}
_PERIOD = 997


class OpenCLDevice:
    """The device of a number, from 0 on; raises as `Opened` does."""

    is_virtual = False

    def __init__(self, number: int = 0) -> None:
        self._opened = Opened(number)
        device, self.name = self._opened.device, self._opened.name
        self.driver = printable(f"{device.platform.name} {device.version}, driver {device.driver_version}")
        self.max_work_group = int(device.max_work_group_size)
        self.has_double = bool(device.double_fp_config)
        self._host = np.ones(LARGEST, np.uint8)
        self._kept: dict[object, Any] = {}

    def transfer(self, size: int, *, back: bool) -> TimedRun:
        """Return a run that moves `size` bytes to the device, or back from it."""
        buffer = self._once("transfer", lambda: self._buffer(self._host))
        host = self._host[:size]
        ends = {"dest": host, "src": buffer} if back else {"dest": buffer, "src": host}
        opened = self._opened
        return lambda: self._microseconds(opened.cl.enqueue_copy, opened.queue, is_blocking=False, **ends)

    def benchmark(self, kernel: Benchmark, work_items: int, group: int) -> TimedRun:
        """Return a run of a kernel of the suite."""
        if work_items * np.dtype(_DTYPES[kernel.element]).itemsize > 2 * LARGEST:
            raise InputError(f"{work_items} work-items are more than the suite has memory for")
        built = self._once(kernel.source, lambda: self._opened.kernel(kernel.source, "benchmark"))
        buffers = self._once(kernel.element, lambda: self._arrays(kernel.element))
        number = _DTYPES[kernel.element](kernel.number(work_items))
        return lambda: self._microseconds(built, self._opened.queue, (work_items,), (group,), *buffers, number)

    def iteration(self, iteration: Iteration, group: int) -> TimedRun:
        """Return a run of the kernel of a domain iteration on random data."""
        built = self._opened.kernel(iteration.opencl, "iteration")
        arrays = [self._buffer(values(array)) for array in iteration.arrays]
        buffers = (*arrays, self._opened.buffer(iteration.bytes_out))
        return lambda: self._microseconds(built, self._opened.queue, (iteration.work_items,), (group,), *buffers)

    def _microseconds(self, enqueue: Any, *arguments: Any, **options: Any) -> float:
        return self._opened.nanoseconds(enqueue, *arguments, **options) / 1e3

    def _arrays(self, element: Element) -> Sequence[Any]:
        kind = _DTYPES[element]
        places = np.arange(LARGEST // 4) % _PERIOD
        whole = (places + 1) if element == "int" else 1 + places / _PERIOD
        source = self._buffer(whole.astype(kind))
        return source, self._buffer(np.zeros_like(whole, kind)), self._buffer(whole[:MOST_CHAINED].astype(kind))

    def _buffer(self, content: NDArray[Any]) -> Any:
        return self._opened.buffer(content.nbytes, np.ascontiguousarray(content))

    def _once(self, key: object, make: Any) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def values(array: Array) -> NDArray[Any]:
    """Return random elements of an array, always the same: floats of 0.5..1.5, or integers of 0..99."""
    draw = np.random.default_rng(0)
    numbers = draw.random(array.shape) + 0.5 if array.type == "float" else draw.integers(0, 100, array.shape)
    return numbers.astype(_DTYPES[array.type.value])
