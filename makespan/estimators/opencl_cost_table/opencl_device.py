"""A device that OpenCL finds, timed by its own profiling events."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from makespan.errors import InputError, MeasurementError
from makespan.estimators import opencl
from makespan.estimators.opencl_cost_table import opencl_code
from makespan.estimators.opencl_cost_table.device import Benchmark, Element, Executed, Run
from makespan.estimators.opencl_cost_table.experiments import LARGEST, MOST_CHAINED
from makespan.estimators.opencl_cost_table.expression import Iteration
from makespan.estimators.opencl_cost_table.reference import DTYPES, Values

_DTYPES: Mapping[Element, Any] = {"float": np.float32, "int": np.int32, "double": np.float64}
_PERIOD = 997


def find(number: int) -> "OpenCLDevice":
    """The device of a number, from 0 on.

    Raises:
        InputError: there are fewer.
        MeasurementError: there is no OpenCL, or the device cannot time what it does.
    """
    return OpenCLDevice(opencl.find(number))


class OpenCLDevice:
    """Args: what pyopencl calls a device."""

    is_virtual = False

    def __init__(self, device: Any) -> None:
        self._cl, self.name, self._context, self._queue = opencl.opened(device)
        self.driver = opencl.printable(f"{device.platform.name} {device.version}, driver {device.driver_version}")
        self.max_work_group = int(device.max_work_group_size)
        self.has_double = bool(device.double_fp_config)
        self._host = np.ones(LARGEST, np.uint8)
        self._kept: dict[object, Any] = {}

    def transfer(self, size: int, *, back: bool) -> Run:
        """Move `size` bytes."""
        buffer = self._once("transfer", lambda: self._buffer(self._host))
        host = self._host[:size]
        ends = {"dest": host, "src": buffer} if back else {"dest": buffer, "src": host}
        return lambda: self._microseconds(self._cl.enqueue_copy, self._queue, is_blocking=False, **ends)

    def benchmark(self, kernel: Benchmark, work_items: int, group: int) -> Run:
        """Run a kernel of the suite."""
        if work_items * np.dtype(_DTYPES[kernel.element]).itemsize > 2 * LARGEST:
            raise InputError(f"{work_items} work-items are more than the suite has memory for")
        built = self._once(kernel.source, lambda: self._built(kernel.source, "benchmark"))
        buffers = self._once(kernel.element, lambda: self._arrays(kernel.element))
        number = _DTYPES[kernel.element](kernel.number(work_items))
        return lambda: self._microseconds(built, self._queue, (work_items,), (group,), *buffers, number)

    def iteration(self, iteration: Iteration, data: Mapping[str, Values], group: int) -> Executed:
        """Run the kernel of a domain iteration once for its result; it can be run again for its time."""
        built = self._built(opencl_code.source(iteration), opencl_code.KERNEL)
        result = np.empty(iteration.array.shape, DTYPES[iteration.body.type])
        with opencl.explained(self.name, "allocating memory"):
            out = self._cl.Buffer(self._context, self._cl.mem_flags.WRITE_ONLY, result.nbytes)
        arrays = [self._buffer(data[array.name]) for array in iteration.arrays]
        launch = (self._queue, (iteration.work_items,), (group,), *arrays, out)
        self._microseconds(built, *launch)
        with opencl.explained(self.name, "reading the result"):
            self._cl.enqueue_copy(self._queue, result, out)
        return Executed(result, lambda: self._microseconds(built, *launch))

    def _microseconds(self, enqueue: Any, *arguments: Any, **options: Any) -> float:
        with opencl.explained(self.name, "running"):
            event = enqueue(*arguments, **options)
            event.wait()
            return float(event.profile.end - event.profile.start) / 1e3

    def _built(self, source: str, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._cl.CompilerWarning)
            try:
                return self._cl.Kernel(self._cl.Program(self._context, source).build(cache_dir=False), name)
            except self._cl.Error as error:
                raise MeasurementError(f"{self.name}: a kernel does not build; its build log:\n{error}") from None

    def _arrays(self, element: Element) -> Sequence[Any]:
        """`in`, `out` and `c` of the kernels of the suite."""
        kind = _DTYPES[element]
        places = np.arange(LARGEST // 4) % _PERIOD
        whole = (places + 1) if element == "int" else 1 + places / _PERIOD
        source = self._buffer(whole.astype(kind))
        return source, self._buffer(np.zeros_like(whole, kind)), self._buffer(whole[:MOST_CHAINED].astype(kind))

    def _buffer(self, content: Values) -> Any:
        flags = self._cl.mem_flags
        with opencl.explained(self.name, "allocating memory"):
            return self._cl.Buffer(
                self._context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(content)
            )

    def _once(self, key: object, make: Any) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]
