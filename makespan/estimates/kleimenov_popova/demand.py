"""What a kernel asks of a GPU, warp by warp, and wave by wave what an SM then takes.

Blocks are dealt in waves of as many as fit on all SMs, in order, one SM after the other; the warps of an SM, block by
block, go to its processing blocks one after the other and stay there. The source leaves the order of dealing open; this
one is the simplest that is deterministic.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import NamedTuple, TypeAlias

from makespan.estimates.kleimenov_popova.device import GpuParameters, Levels
from makespan.host.errors import InputError, UnsupportedError

PROBES = (100.0, 400.0, 25600.0)  # latencies at which a time function is tried; the second is a typical one

TimeFunction: TypeAlias = Callable[[float], float]


class HitRates(NamedTuple):
    """The parts of all accesses that hit the L1 and the L2 cache; the device memory serves the rest."""

    l1: float
    l2: float

    def checked(self) -> "HitRates":
        """Return the hit rates themselves.

        Raises:
            InputError: a part outside 0..1, or more than all together.
        """
        for name, value in (("l1pct", self.l1), ("l2pct", self.l2)):
            if not 0 <= value <= 1:
                raise InputError(f"{name} must be within 0..1 (the part of all accesses that hit), not {value}")
        if self.l1 + self.l2 > 1:
            raise InputError(f"l1pct {self.l1} and l2pct {self.l2} are parts of all accesses: at most 1 together")
        return self


WORST_CASE_CACHE = HitRates(0, 0)


class Thread(NamedTuple):
    """The demand of one thread.

    Args:
        time: cycles when every access to global memory takes `lat` cycles; must not fall.
        delay: sum of the issue delays of its instructions, in cycles.
        mem: bytes from and to global memory; `uncoal_mem` those of it in uncoalesced requests.
        syncs: barriers that it executes.
    """

    time: TimeFunction
    delay: float
    mem: float
    uncoal_mem: float
    hits: HitRates
    syncs: float = 0

    def typical(self) -> float:
        """Return the time at a typical latency.

        Raises:
            InputError: a number out of range, or a time that is none or that falls, at some latencies.
        """
        self.hits.checked()
        if not 0 <= self.uncoal_mem <= self.mem:
            raise InputError(f"thread: uncoalMem {self.uncoal_mem} must be within 0..mem, and mem is {self.mem} bytes")
        times = [self.time(latency) for latency in PROBES]
        for latency, before, cycles in zip(PROBES, [0.0, *times], times, strict=False):
            if not (isfinite(cycles) and cycles >= 0):
                raise InputError(f"thread: its time at lat = {latency:g} is {cycles}, not a number of cycles")
            if cycles < before:  # the fixed points need a time that never falls with lat
                raise InputError(f"thread: its time falls to {cycles:g} at lat = {latency:g}; it must not fall")
        return times[1]


@dataclass(frozen=True, slots=True)
class WarpDemand:
    """A warp of the kernel model; bytes are those of all its threads together.

    Args:
        time: cycles of its longest thread when every access to global memory takes `lat` cycles.
        delay: sum of the issue delays of that thread, in cycles.
        syncs: barriers that it executes.
        l1_bytes, l2_bytes: of `bytes`, those that hit the cache; the device memory has the rest.
        uncoalesced_bytes: of `bytes`, those in uncoalesced requests.
    """

    time: TimeFunction
    delay: float
    syncs: float = 0
    bytes: float = 0
    l1_bytes: float = 0
    l2_bytes: float = 0
    uncoalesced_bytes: float = 0

    @classmethod
    def of(cls, threads: Sequence[Thread]) -> "WarpDemand":
        """Return the warp of some threads; the one that takes longest at a typical latency is the main one."""
        typical = {thread: thread.typical() for thread in dict.fromkeys(threads)}
        main = max(typical, key=typical.__getitem__)
        return cls(
            time=main.time,
            delay=main.delay,
            syncs=main.syncs,
            bytes=sum(thread.mem for thread in threads),
            l1_bytes=sum(thread.mem * thread.hits.l1 for thread in threads),
            l2_bytes=sum(thread.mem * thread.hits.l2 for thread in threads),
            uncoalesced_bytes=sum(thread.uncoal_mem for thread in threads),
        )

    @property
    def dram_bytes(self) -> float:
        """Return the bytes that no cache holds."""
        return max(self.bytes - self.l1_bytes - self.l2_bytes, 0.0)  # rounding may go below 0

    def __post_init__(self) -> None:
        for name in ("delay", "syncs", "bytes", "l1_bytes", "l2_bytes", "uncoalesced_bytes"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"kernel model: {name} must be finite and at least 0, not {value}")
        if self.uncoalesced_bytes > self.bytes * (1 + 1e-12):  # but for rounding
            raise InputError(
                f"kernel model: {self.uncoalesced_bytes:g} uncoalesced bytes are more than all {self.bytes:g} bytes"
            )


@dataclass(frozen=True, slots=True)
class KernelModel:
    """The model of a launch.

    Args:
        threads_per_block: threads of each block.
        blocks: how many there are.
        warps: of a block, by its number.
        is_uniform: whether all blocks have the same warps, so that one stands for all.
        registers: per thread, of the hardware; None if not known.
        shared_bytes: per block; None if not known.
    """

    threads_per_block: int
    blocks: int
    warps: Callable[[int], Sequence[WarpDemand]]
    is_uniform: bool
    registers: int | None = None
    shared_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise InputError(f"the grid must have at least 1 block, not {self.blocks}")
        if self.threads_per_block < 1:
            raise InputError(f"threads per block must be at least 1, not {self.threads_per_block}")


MAX_DIFFERENT_BLOCKS = 1 << 16  # each has warps of its own


class SyncUnit(StrEnum):
    """The unit in which the cost of a barrier counts the size of a block."""

    WARPS = "warps"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class Load:
    """The warps that run on one SM in one wave, as the time and the bytes that they need.

    Args:
        times: of the warps that differ, each with the cycles that its barriers add.
        issue: the largest sum of issue delays of a processing block, in cycles.
        bytes: by level; those of `uncoal` are in the others, too.
        all_bytes: of L1, L2 and device memory together.
    """

    times: tuple[tuple[TimeFunction, float], ...]
    issue: float
    bytes: Levels
    all_bytes: float

    def time(self, latencies: Levels) -> float:
        """Return the cycles at these latencies."""
        return self.time_at(self.latency(latencies))

    def time_at(self, latency: float) -> float:
        """Return the cycles if every access to global memory takes `latency` cycles."""
        return max([self.issue, *(time(latency) + extra for time, extra in self.times)])

    def latency(self, latencies: Levels) -> float:
        """Return the mean latency of an access; 0 where there is none."""
        if not self.all_bytes:
            return 0.0
        l1, l2, dram, uncoal = (number / self.all_bytes for number in self.bytes)
        # mean over the levels, weighted by bytes
        coalesced = l1 * latencies.l1 + l2 * latencies.l2 + dram * latencies.dram
        return (1 - uncoal) * coalesced + uncoal * latencies.uncoal


@dataclass(frozen=True, slots=True)
class Wave:
    """Blocks that run at the same time, and the number of such waves in a row.

    Args:
        loads: of the SMs that are in use, each with the number of SMs that have it.
    """

    blocks: int
    loads: tuple[tuple[Load, int], ...]
    repeats: int = 1

    @property
    def bytes(self) -> Levels:
        """Return the bytes that the whole GPU asks for, by level."""
        return Levels(*(sum(load.bytes[at] * count for load, count in self.loads) for at in range(len(Levels._fields))))

    def time(self, latencies: Sequence[Levels]) -> float:
        """Return the cycles of the slowest SM, given the latencies of each load."""
        return max(load.time(levels) for (load, _), levels in zip(self.loads, latencies, strict=True))


def load(blocks: Sequence[Sequence[WarpDemand]], device: GpuParameters, kernel: KernelModel, unit: SyncUnit) -> Load:
    """Return the load of an SM that these blocks run on."""
    size = kernel.threads_per_block if unit is SyncUnit.THREADS else device.limits.warps_of(kernel.threads_per_block)
    barrier = device.departure_delay * (size - 1)  # the warps of a block leave a barrier one after another
    warps = [warp for block in blocks for warp in block]
    count = device.processing_blocks
    times = {(warp.time, warp.syncs * barrier): None for warp in warps}  # equal ones once, in their order
    return Load(
        times=tuple(times),
        # warp k goes to processing block k modulo count
        issue=max(sum(warp.delay for warp in warps[at::count]) for at in range(count)),
        bytes=Levels(
            l1=sum(warp.l1_bytes for warp in warps),
            l2=sum(warp.l2_bytes for warp in warps),
            dram=sum(warp.dram_bytes for warp in warps),
            uncoal=sum(warp.uncoalesced_bytes for warp in warps),
        ),
        all_bytes=sum(warp.bytes for warp in warps),
    )


def waves(
    kernel: KernelModel, device: GpuParameters, blocks_per_sm: int, unit: SyncUnit = SyncUnit.WARPS
) -> Iterator[Wave]:
    """Yield the waves of a launch in order; equal ones that follow each other are one with `repeats`.

    Raises:
        UnsupportedError: too many blocks that differ.
    """
    at_once = device.sms * blocks_per_sm
    if kernel.is_uniform:
        full, rest = divmod(kernel.blocks, at_once)
        for blocks, repeats in ((at_once, full), (rest, 1)):  # full waves first, then what is left of the grid
            if blocks and repeats:
                yield _uniform_wave(kernel, device, blocks, repeats, unit)
        return
    if kernel.blocks > MAX_DIFFERENT_BLOCKS:
        raise UnsupportedError(
            f"{kernel.blocks} blocks that may all differ; up to {MAX_DIFFERENT_BLOCKS} can be dealt, or say that they"
            " are uniform"
        )
    for first in range(0, kernel.blocks, at_once):
        dealt = [kernel.warps(block) for block in range(first, min(first + at_once, kernel.blocks))]
        used = min(device.sms, len(dealt))
        # block k goes to SM k modulo sms
        loads = (load(dealt[sm :: device.sms], device, kernel, unit) for sm in range(used))
        yield Wave(len(dealt), tuple((each, 1) for each in loads))


def _uniform_wave(kernel: KernelModel, device: GpuParameters, blocks: int, repeats: int, unit: SyncUnit) -> Wave:
    """Return a wave of equal blocks: some SMs have one block more than the others."""
    warps = kernel.warps(0)
    each, more = divmod(blocks, device.sms)
    counts = ((each + 1, more), (each, device.sms - more))
    loads = ((load([warps] * size, device, kernel, unit), sms) for size, sms in counts if size and sms)
    return Wave(blocks, tuple(loads), repeats)
