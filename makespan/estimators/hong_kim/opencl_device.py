"""The microbenchmarks on an OpenCL device of this computer."""

import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from makespan.errors import MeasurementError
from makespan.estimators import opencl
from makespan.estimators.hong_kim.samples import MemorySample, ThroughputSample
from makespan.estimators.hong_kim.sources import (
    SPREAD,
    UNROLLED,
    MemoryPlan,
    memory_source,
    operations,
    throughput_source,
)

_LEAST_CACHE = 1 << 20
_GROUP = 64
_GROUPS_PER_UNIT = 32


class OpenCLDevice:
    """A device, with a queue that takes times.

    Raises:
        MeasurementError: no OpenCL here, or a device that cannot time what it does.
        InputError: no device of that number.
    """

    def __init__(self, number: int = 0) -> None:
        self._device = opencl.find(number)
        self._cl, self.name, self._context, self._queue = opencl.opened(self._device)

    def measure_memory(self, plan: MemoryPlan) -> tuple[MemorySample, ...]:
        """Runs of the three kernels, with one work-group; in seconds.

        Raises:
            MeasurementError: a kernel that does not build or run, or a time that is no time.
        """
        with opencl.explained(self.name, "measuring"):
            return tuple(self._memory(plan))

    def measure_throughput(self, *, rounds: int, repeats: int) -> tuple[ThroughputSample, ...]:
        """Runs of all operations on the whole device; raises as `measure_memory` does."""
        with opencl.explained(self.name, "measuring"):
            return tuple(self._throughput(rounds, repeats))

    def _memory(self, plan: MemoryPlan) -> Iterator[MemorySample]:
        import numpy as np

        program = self._built(memory_source("opencl", plan))
        flush = self._buffer(plan.caches * max(self._device.global_mem_cache_size, _LEAST_CACHE))
        stride = flush.size // 4 // max(plan.steps) // 64 * 64 + 32
        elements = stride * max(plan.steps)
        chain = (np.arange(elements, dtype=np.uint32) + np.uint32(stride)) % np.uint32(elements)
        most = max(plan.warps) * plan.warp_size
        chained, floats = self._buffer(chain.nbytes), self._buffer(4 * plan.loads * most * SPREAD)
        out = self._buffer(4 * most)
        self._cl.enqueue_copy(self._queue, chained, chain)
        kernels = {name: self._cl.Kernel(program, name) for name in ("latency", "coalesced", "uncoalesced")}
        for _ in range(plan.repeats):
            for steps in plan.steps:
                walk = (chained, np.uint32(stride), np.uint32(steps), out)
                yield self._sample(kernels, "latency", steps, 1, walk, flush)
            for name in ("coalesced", "uncoalesced"):
                for warps in plan.warps:
                    items, requests = warps * plan.warp_size, warps * plan.loads
                    yield self._sample(kernels, name, requests, items, (floats, np.uint64(most), out), flush)

    def _sample(
        self, kernels: dict[str, Any], name: str, requests: int, items: int, arguments: tuple[Any, ...], flush: Any
    ) -> MemorySample:
        import numpy as np

        self._cl.enqueue_fill_buffer(self._queue, flush, np.uint32(1), 0, flush.size).wait()
        return MemorySample(name, requests, self._timed(kernels[name], items, items, arguments), in_seconds=True)

    def _throughput(self, rounds: int, repeats: int) -> Iterator[ThroughputSample]:
        import numpy as np

        program = self._built(throughput_source("opencl", rounds=rounds, repeats=repeats))
        size = _GROUP * _GROUPS_PER_UNIT * self._device.max_compute_units
        arguments = (self._buffer(4 * size), np.float32(0.5), np.float32(1.0001), np.int32(rounds))
        for name in operations("opencl"):
            kernel = self._cl.Kernel(program, f"run_{name}")
            self._timed(kernel, size, _GROUP, arguments)  # the first run warms up
            applied = rounds * UNROLLED * (4 if name.endswith("4") else 1)
            for _ in range(repeats):
                yield ThroughputSample(name, applied, size, self._timed(kernel, size, _GROUP, arguments))

    def _timed(self, kernel: Any, items: int, group: int, arguments: tuple[Any, ...]) -> Fraction:
        """Seconds of one launch, by the clock of the device."""
        event = kernel(self._queue, (items,), (group,), *arguments)
        event.wait()
        nanoseconds = event.profile.end - event.profile.start
        if nanoseconds <= 0:
            raise MeasurementError(f"{self.name}: a launch took {nanoseconds} ns by its clock; measure longer ones")
        return Fraction(nanoseconds, 10**9)

    def _built(self, source: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._cl.CompilerWarning)  # some compilers talk whenever they build
            return self._cl.Program(self._context, source).build()

    def _buffer(self, size: int) -> Any:
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
