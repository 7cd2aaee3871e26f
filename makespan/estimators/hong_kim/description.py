"""The GPU of the model from a GPU description."""

from makespan.estimators.gpu import Gpu, Status
from makespan.estimators.hong_kim.inputs import HongKimGPU, HongKimKernel
from makespan.estimators.hong_kim.throughput import CompModel, needed
from makespan.estimators.occupancy import Limits

KEYS = {
    "mem_ld": "hong_kim.mem_ld",
    "departure_del_coal": "hong_kim.departure_del_coal",
    "departure_del_uncoal": "hong_kim.departure_del_uncoal",
    "issue_cycles": "hong_kim.issue_cycles",
    "uncoal_per_mw": "hong_kim.uncoal_per_mw",
}
_DEVICE = ("sms", "clock_ghz", "mem_bw_gbs", "warp_size")
_TABLES = {"hong_kim.throughput.": "", "hong_kim.vector_throughput.": "4"}
"""Prefix of the key, and suffix of the operation: `f32_add4` is an addition of vectors of four."""


def of_gpu(gpu: Gpu) -> HongKimGPU:
    """What the description says to the model; what it does not say is asked for when it is needed.

    Raises:
        InputError: no number of SMs, clock, bandwidth or warp size.
    """
    gpu.require(*_DEVICE)
    return HongKimGPU(
        name=gpu.name,
        limits=Limits.of(gpu),
        sms=gpu.whole("sms"),
        freq_ghz=gpu.number("clock_ghz"),
        mem_bw_gbs=gpu.number("mem_bw_gbs"),
        throughput=_throughput(gpu),
        **{name: gpu.get(key) for name, key in KEYS.items()},
    )


def require(gpu: Gpu, kernel: HongKimKernel, model: CompModel | None) -> None:
    """Refuse a GPU that lacks what the model needs for this kernel.

    Raises:
        InputError: names all numbers that are missing, and how to get each.
    """
    gpu.require(*_DEVICE, *(KEYS[name] for name in needed(kernel, _throughput(gpu), model)))


def _throughput(gpu: Gpu) -> dict[str, float]:
    """Operations per cycle, by operation."""
    return {
        key.removeprefix(prefix) + suffix: float(datum.value)
        for prefix, suffix in _TABLES.items()
        for key, datum in gpu.data.items()
        if key.startswith(prefix)
    }


def assumed(gpu: Gpu) -> tuple[str, ...]:
    """The keys of this model whose values nobody measured on this GPU, but on a relative of it."""
    used = ("sms", "clock_ghz", "mem_bw_gbs", *KEYS.values())
    return tuple(key for key in used if key in gpu.data and gpu.data[key].status is Status.ASSUMED)
