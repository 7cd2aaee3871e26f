"""The microbenchmarks of memory and throughput on an OpenCL device of this computer; samples are in seconds."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from makespan.estimates.microbench.programs import (
    REPEATS,
    ROUNDS,
    SPREAD,
    UNROLLED,
    MemoryPlan,
    memory_source,
    operations,
    throughput_source,
)
from makespan.estimates.microbench.samples import PATTERNS, MicrobenchSample
from makespan.estimates.opencl import Opened
from makespan.host.errors import MeasurementError

_LEAST_CACHE = 1 << 20  # bytes, where a device names no cache
_GROUP, _GROUPS_PER_UNIT = 64, 32  # work-items of a group, and enough groups to fill a unit


def measure_memory(device: Opened, plan: MemoryPlan) -> Iterator[MicrobenchSample]:
    """Yield the runs of the three memory kernels, with one work-group.

    Raises:
        MeasurementError: a kernel that does not build or run, or a time that is no time.
    """
    import numpy as np

    (source,) = memory_source("opencl", plan).values()
    kernels = {name: device.kernel(source, name) for name in PATTERNS}
    flush = device.buffer(plan.caches * max(device.device.global_mem_cache_size, _LEAST_CACHE))
    stride = flush.size // 4 // max(plan.steps) // 64 * 64 + 32
    elements, most = stride * max(plan.steps), max(plan.warps) * plan.warp_size
    # each element holds the number of the next one
    chain = (np.arange(elements, dtype=np.uint32) + np.uint32(stride)) % np.uint32(elements)
    chained, floats = device.buffer(chain.nbytes, chain), device.buffer(4 * plan.loads * most * SPREAD)
    out = device.buffer(4 * most)

    def sample(name: str, count: int, items: int, *arguments: Any) -> MicrobenchSample:
        # drives what the last run read out of the caches
        device.nanoseconds(device.cl.enqueue_fill_buffer, device.queue, flush, np.uint32(1), 0, flush.size)
        return MicrobenchSample(
            (name,), (count,), _seconds(device, kernels[name], items, items, *arguments), in_seconds=True
        )

    for _ in range(plan.repeats):
        for steps in plan.steps:
            yield sample("latency", steps, 1, chained, np.uint32(stride), np.uint32(steps), out)
        for name in PATTERNS[1:]:
            for warps in plan.warps:
                yield sample(name, warps * plan.loads, warps * plan.warp_size, floats, np.uint64(most), out)


def measure_throughput(device: Opened, *, rounds: int = ROUNDS, repeats: int = REPEATS) -> Iterator[MicrobenchSample]:
    """Yield the runs of all operations on the whole device; raises as `measure_memory` does."""
    import numpy as np

    (source,) = throughput_source("opencl", rounds=rounds).values()
    size = _GROUP * _GROUPS_PER_UNIT * device.device.max_compute_units
    arguments = (device.buffer(4 * size), np.float32(0.5), np.float32(1.0001), np.int32(rounds))
    for name in operations("opencl"):
        kernel = device.kernel(source, f"run_{name}")
        _seconds(device, kernel, size, _GROUP, *arguments)  # the first run warms up
        applied = rounds * UNROLLED * (4 if name.endswith("4") else 1)
        for _ in range(repeats):
            time = _seconds(device, kernel, size, _GROUP, *arguments)
            yield MicrobenchSample((name,), (applied, size), time, in_seconds=True)


def _seconds(device: Opened, kernel: Any, items: int, group: int, *arguments: Any) -> Fraction:
    nanoseconds = device.nanoseconds(kernel, device.queue, (items,), (group,), *arguments)
    if nanoseconds <= 0:
        raise MeasurementError(f"{device.name}: a launch took {nanoseconds} ns by its clock; measure longer ones")
    return Fraction(nanoseconds, 10**9)
