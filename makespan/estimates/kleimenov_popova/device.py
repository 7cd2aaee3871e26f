"""The numbers of a GPU that the model needs, and those of the classes of instructions that a kernel has.

An issue delay is the cycles that the dispatcher of a processing block is taken up by one warp instruction. It is given
as such (`delay.f64`), or follows from the throughput of a processing block by rule T (`throughput.f64`) or from its
functional units by rule U (`units.f64`).

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple

from makespan.estimates.kinds import LEVELS, InstructionKind
from makespan.estimates.kleimenov_popova.piecewise import RationalNumber, exact
from makespan.host.errors import InputError
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import SmLimits

PREFIX = "kleimenov_popova"
VARIABLE = InstructionKind.GLOBAL  # the class whose latency is the variable `lat`
EXTRA_SECTORS = 32 - 4  # sectors of 32 bytes of an uncoalesced request of a warp, beyond those of a coalesced one
WARP_SIZE = 32


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


def refuse_not_positive(value: float, what: str, unit: str = "") -> None:
    """Refuse a number that is none, or not above 0."""
    if not (isfinite(value) and value > 0):
        raise InputError(f"{what} must be positive and finite, not {value:g} {unit}".rstrip())


class Levels(NamedTuple):
    """A number for each way to memory, as `LEVELS` names them: L1, L2, device memory, and uncoalesced requests."""

    l1: float
    l2: float
    dram: float
    uncoal: float


NAMES = dict(zip(Levels._fields, LEVELS, strict=True))
DRAM_BAND = f"{PREFIX}.band_DRAM"


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
        named = {"sms": self.sms, "pb_per_sm": self.processing_blocks, "clock_ghz": self.clock_ghz}
        for prefix, levels in (("lat", self.latency), ("band", self.bandwidth)):
            named |= {f"{prefix}_{name}": value for name, value in zip(LEVELS, levels, strict=True)}
        for what, value in named.items():
            refuse_not_positive(value, f"GPU: {what}")
        if self.latency.uncoal < self.latency.dram:
            raise InputError(
                f"GPU: lat_uncoal {self.latency.uncoal:g} is below lat_DRAM {self.latency.dram:g}: a request that is"
                " not coalesced cannot be faster; measure both again"
            )

    @property
    def departure_delay(self) -> float:
        """Return the cycles between two sectors of an uncoalesced request: `(lat_uncoal - lat_DRAM) / 28`."""
        return (self.latency.uncoal - self.latency.dram) / EXTRA_SECTORS


def by_throughput(operations_per_cycle: float, *, warp_size: int = WARP_SIZE) -> float:
    """Return the issue delay by rule T: `warp_size / throughput` cycles, of the throughput of ONE processing block.

    Raises:
        InputError: a throughput that is not positive, or a delay below one cycle, as it comes out of a throughput of
            the whole SM that was not divided by its processing blocks.
    """
    refuse_not_positive(operations_per_cycle, "throughput of a processing block", "operations/cycle")
    return _checked_delay(
        warp_size / operations_per_cycle,
        f"rule T with {operations_per_cycle:g} operations/cycle; divide a figure per SM by the processing blocks of it",
    )


def by_units(units: float, *, warp_size: int = WARP_SIZE) -> float:
    """Return the issue delay by rule U: `max(warp_size / units, 1)` cycles, of the units of ONE processing block.

    Raises:
        InputError: a number of units that is not positive.
    """
    refuse_not_positive(units, "functional units of a processing block", "units")
    return max(warp_size / units, 1.0)  # more units than lanes do not issue faster


def _checked_delay(delay: float, where: str) -> float:
    if not (isfinite(delay) and delay >= 1):
        raise InputError(f"issue delay {delay:g} is below 1 cycle: {where}")
    return delay


# The ways in which a GPU description may state an issue delay, with the rules that make a delay of it.
DELAY_RULES: Mapping[str, tuple[str, Callable[..., float] | None]] = {
    "delay": ("", None),
    "throughput": ("rule T", by_throughput),
    "units": ("rule U", by_units),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """The latency and issue delay of each class of instruction, in cycles; that of global memory is the variable.

    Raises:
        InputError: a latency below 0, a delay below 1, or no number.
    """

    latencies: Mapping[str, float]
    delays: Mapping[str, float]

    def __post_init__(self) -> None:
        for kind, latency in self.latencies.items():
            if not 0 <= latency < inf:
                raise InputError(f"latency of {kind} must be finite and at least 0 cycles, not {latency:g}")
        for kind, delay in self.delays.items():
            _checked_delay(delay, f"class {kind}")

    def latency(self, kind: str) -> tuple[RationalNumber, RationalNumber]:
        """Return the latency of a class as `intercept` and `slope` over `lat`."""
        return (0, 1) if kind == VARIABLE else (_table_entry(self.latencies, kind, "latency"), 0)

    def delay(self, kind: str) -> RationalNumber:
        """Return the issue delay of a class."""
        return _table_entry(self.delays, kind, "delay")


def _table_entry(table: Mapping[str, float], kind: str, what: str) -> RationalNumber:
    if kind not in table:
        raise InputError(
            f"no {what} of {kind} instructions: give kleimenov_popova.{what}.{kind}, which"
            " 'makespan measure latency' measures"
        )
    return exact(table[kind])


def delay_ways(gpu: Gpu, kind: str) -> list[str]:
    """Return the ways in which the issue delay of a class is told, see `DELAY_RULES`."""
    return [way for way in DELAY_RULES if not gpu.missing(f"{PREFIX}.{way}.{kind}")]


def read_delay(gpu: Gpu, kind: str) -> float:
    """Return the issue delay of a class, in cycles.

    Raises:
        InputError: it is missing, told in two ways, or below one cycle.
    """
    told = delay_ways(gpu, kind)
    if len(told) > 1:
        raise InputError(
            f"GPU {gpu.name}: the issue delay of {kind} is told in {len(told)} ways, {' and '.join(told)}; leave one"
        )
    key = f"{PREFIX}.{told[0] if told else 'delay'}.{kind}"
    value, rule = gpu.number(key), DELAY_RULES[told[0]][1]
    if rule is None:
        return _checked_delay(value, f"GPU {gpu.name}, {key}")
    try:
        return rule(value, warp_size=gpu.whole("warp_size"))
    except InputError as error:
        raise InputError(f"GPU {gpu.name}: {key}: {error}") from None


def read_gpu(
    gpu: Gpu, where: Mapping[str, str] | None = None, written: Iterable[str] = ()
) -> tuple[GpuParameters, Timing]:
    """Return the numbers of a GPU description, and the timing of the classes of instructions that a kernel has.

    Args:
        where: where the kernel has an instruction of each class.
        written: the classes whose latencies are needed, as their instructions write registers.

    Raises:
        InputError: numbers that are missing, all of them at once, each with how to measure it; an issue delay that is
            none or told in two ways, also of other classes; or one of the two numbers of a launch line is missing.
    """
    if not gpu.missing("warp_size"):  # the rules need it; it is asked for with all other numbers
        for kind in InstructionKind:
            if delay_ways(gpu, kind):
                read_delay(gpu, kind)
    where = where or {}
    lat, band = ([f"{PREFIX}.{way}_{name}" for name in LEVELS] for way in ("lat", "band"))
    latencies = {f"{PREFIX}.latency.{kind}": kind for kind in written}
    delays = {f"{PREFIX}.delay.{kind}": kind for kind in where if not delay_ways(gpu, kind)}
    needed = ["sms", "warp_size", "clock_ghz", f"{PREFIX}.pb_per_sm", *lat, *band, *latencies, *delays]
    bands = {key: gpu.get(key) for key in band}
    if bands[DRAM_BAND] is None and not gpu.missing("mem_bw_gbs"):
        needed.remove(DRAM_BAND)
    gpu.require(*needed, where={key: where[kind] for key, kind in (latencies | delays).items()})
    if bands[DRAM_BAND] is None:
        bands[DRAM_BAND] = gpu.number("mem_bw_gbs") / gpu.number("clock_ghz")
    launches = {int(key.split(".")[2]) for key in gpu.data if key.startswith(f"{PREFIX}.launch.")}
    device = GpuParameters(
        sms=gpu.whole("sms"),
        processing_blocks=gpu.whole(f"{PREFIX}.pb_per_sm"),
        clock_ghz=gpu.number("clock_ghz"),
        latency=Levels(*map(gpu.number, lat)),
        bandwidth=Levels(*(value for value in bands.values() if value is not None)),
        limits=gpu.limits,
        launch={
            warps: LaunchLine(*(gpu.number(f"{PREFIX}.launch.{warps}.{name}") for name in LaunchLine._fields))
            for warps in sorted(launches)
        },
    )
    timing = {kind: gpu.number(key) for key, kind in latencies.items()}
    return device, Timing(timing, {kind: read_delay(gpu, kind) for kind in where})
