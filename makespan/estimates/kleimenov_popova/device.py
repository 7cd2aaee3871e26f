"""The numbers of a GPU that the model needs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import SmLimits


class LaunchLine(NamedTuple):
    """The launch time of a grid, `blocks * x1 + x2` seconds.

    Args:
        x1: seconds per block.
        x2: seconds.
    """

    x1: float
    x2: float

    def seconds(self, blocks: int) -> float:
        """Return the launch time of a grid."""
        return blocks * self.x1 + self.x2


def relative_error(measured: float, predicted: float) -> float:
    """Return `|(measured - predicted) / measured|`, the error metric of the paper.

    Raises:
        InputError: a measured time that is not positive.
    """
    if not (isfinite(measured) and measured > 0):
        raise InputError(f"the measured time must be positive and finite, not {measured:g} s")
    return abs((measured - predicted) / measured)


PREFIX = "kleimenov_popova"
EXTRA_SECTORS = 32 - 4  # sectors of 32 bytes of an uncoalesced request of a warp, beyond those of a coalesced one


class Levels(NamedTuple):
    """A number for each way to memory: L1, L2, device memory, and uncoalesced requests."""

    l1: float
    l2: float
    dram: float
    uncoal: float


# What the levels are called in GPU descriptions and reports.
NAMES = {"l1": "L1", "l2": "L2", "dram": "DRAM", "uncoal": "uncoal"}
_LATENCIES = tuple(f"{PREFIX}.lat_{name}" for name in NAMES.values())


@dataclass(frozen=True, slots=True)
class GpuParameters:
    """A GPU as the model sees it.

    Args:
        processing_blocks: of an SM.
        clock_ghz: of the SM.
        latency: in cycles, without load.
        bandwidth: in bytes per cycle; of L1 for an SM, of all others for the GPU.
        limits: what an SM can hold.
        launch: by warps of a block; empty if not known.

    Raises:
        InputError: a number out of range, or uncoalesced requests that are faster than coalesced ones.
    """

    sms: int
    processing_blocks: int
    clock_ghz: float
    latency: Levels
    bandwidth: Levels
    limits: SmLimits
    launch: Mapping[int, LaunchLine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, value in self._positive():
            if not (isfinite(value) and value > 0):
                raise InputError(f"GPU: {what} must be positive and finite, not {value}")
        if self.latency.uncoal < self.latency.dram:
            raise InputError(
                f"GPU: lat_uncoal {self.latency.uncoal:g} is below lat_DRAM {self.latency.dram:g}: a request that is"
                " not coalesced cannot be faster; measure both again"
            )

    def _positive(self) -> Iterator[tuple[str, float]]:
        yield from (("sms", self.sms), ("pb_per_sm", self.processing_blocks), ("clock_ghz", self.clock_ghz))
        for prefix, levels in (("lat", self.latency), ("band", self.bandwidth)):
            yield from ((f"{prefix}_{NAMES[name]}", value) for name, value in levels._asdict().items())

    @property
    def departure_delay(self) -> float:
        """Return the cycles between two sectors of an uncoalesced request: `(lat_uncoal - lat_DRAM) / 28`."""
        return (self.latency.uncoal - self.latency.dram) / EXTRA_SECTORS

    @staticmethod
    def keys(gpu: Gpu) -> tuple[str, ...]:
        """Return the keys of a GPU description that `of` reads and that do not follow from others there."""
        bands = (f"{PREFIX}.band_{name}" for name in NAMES.values() if not (name == "DRAM" and _dram_band(gpu)))
        return ("sms", "warp_size", "clock_ghz", f"{PREFIX}.pb_per_sm", *_LATENCIES, *bands)

    @classmethod
    def of(cls, gpu: Gpu) -> "GpuParameters":
        """Return the numbers of a GPU description.

        Raises:
            InputError: numbers that are missing, all of them at once, each with how to measure it.
        """
        gpu.require(*cls.keys(gpu))
        return cls(
            sms=gpu.whole("sms"),
            processing_blocks=gpu.whole(f"{PREFIX}.pb_per_sm"),
            clock_ghz=gpu.number("clock_ghz"),
            latency=Levels(*(gpu.number(key) for key in _LATENCIES)),
            bandwidth=Levels(*(_band(gpu, name) for name in NAMES.values())),
            limits=gpu.limits,
            launch=launch_lines(gpu),
        )


def _dram_band(gpu: Gpu) -> float | None:
    """Return the bytes per cycle of the device memory: as given, or GB/s over GHz; None if neither is known."""
    rate, clock = gpu.get("mem_bw_gbs"), gpu.get("clock_ghz")
    derived = None if rate is None or clock is None else rate / clock
    own = gpu.get(f"{PREFIX}.band_DRAM")
    return derived if own is None else own


def _band(gpu: Gpu, name: str) -> float:
    derived = _dram_band(gpu) if name == "DRAM" else None
    return gpu.number(f"{PREFIX}.band_{name}") if derived is None else derived


def launch_lines(gpu: Gpu) -> dict[int, LaunchLine]:
    """Return the launch times that a GPU description has, by warps of a block.

    Raises:
        InputError: one of the two numbers of a line is missing.
    """
    keys = (key.split(".") for key in gpu.data if key.startswith(f"{PREFIX}.launch."))
    return {
        warps: LaunchLine(*(gpu.number(f"{PREFIX}.launch.{warps}.{name}") for name in LaunchLine._fields))
        for warps in sorted({int(parts[2]) for parts in keys})
    }
