"""What a kernel asks of a GPU, warp by warp, and wave by wave what an SM then takes.

Blocks, which are all alike, are dealt in waves of as many as fit on all SMs, in order, one SM after the other; the
warps of an SM, block by block, go to its processing blocks one after the other and stay there. The source leaves the
order of dealing open; this one is the simplest that is deterministic.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from makespan.estimates.kleimenov_popova.device import GpuParameters, Levels
from makespan.host.errors import InputError

PROBES = (100.0, 400.0, 25600.0)  # latencies at which a time function is tried; the second is a typical one

TimeFunction: TypeAlias = Callable[[float], float]
SyncUnit: TypeAlias = Literal["warps", "threads"]  # in which the cost of a barrier counts the size of a block


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
        for name, value in (("delay", self.delay), ("mem", self.mem), ("syncs", self.syncs)):
            if not (isfinite(value) and value >= 0):
                raise InputError(f"thread: {name} must be finite and at least 0, not {value}")
        times = [self.time(latency) for latency in PROBES]
        for latency, before, cycles in zip(PROBES, [0.0, *times], times, strict=False):
            if not (isfinite(cycles) and cycles >= 0):
                raise InputError(f"thread: its time at lat = {latency:g} is {cycles}, not a number of cycles")
            if cycles < before:  # the fixed points need a time that never falls with lat
                raise InputError(f"thread: its time falls to {cycles:g} at lat = {latency:g}; it must not fall")
        return times[1]


class WarpDemand(NamedTuple):
    """A warp of the kernel model; bytes are those of all its threads together.

    Args:
        time: cycles of its longest thread when every access to global memory takes `lat` cycles.
        delay: sum of the issue delays of that thread, in cycles.
        syncs: barriers that it executes.
        all_bytes: of L1, L2 and device memory together.
        bytes: by level; those of `uncoal` are in the others, too.
    """

    time: TimeFunction
    delay: float
    syncs: float
    all_bytes: float
    bytes: Levels

    @classmethod
    def of(cls, threads: Sequence[Thread]) -> "WarpDemand":
        """Return the warp of some threads; the one that takes longest at a typical latency is the main one."""
        typical = {thread: thread.typical() for thread in dict.fromkeys(threads)}
        main = max(typical, key=typical.__getitem__)
        moved = sum(thread.mem for thread in threads)
        l1 = sum(thread.mem * thread.hits.l1 for thread in threads)
        l2 = sum(thread.mem * thread.hits.l2 for thread in threads)
        uncoal = sum(thread.uncoal_mem for thread in threads)
        dram = max(moved - l1 - l2, 0.0)  # rounding may go below 0
        return cls(main.time, main.delay, main.syncs, moved, Levels(l1, l2, dram, uncoal))


@dataclass(frozen=True, slots=True)
class KernelModel:
    """The model of a launch.

    Args:
        threads_per_block: threads of each block.
        blocks: how many there are; all of them are alike.
        warps: of a block.
        registers: per thread, of the hardware; None if not known.
        shared_bytes: per block; None if not known.
    """

    threads_per_block: int
    blocks: int
    warps: Sequence[WarpDemand]
    registers: int | None = None
    shared_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise InputError(f"the grid must have at least 1 block, not {self.blocks}")
        if self.threads_per_block < 1:
            raise InputError(f"threads per block must be at least 1, not {self.threads_per_block}")


@dataclass(frozen=True, slots=True)
class Load:
    """The warps that run on one SM in one wave, as the time and the bytes that they need.

    Args:
        times: of the warps that differ, each with the cycles that its barriers add.
        issue: the largest sum of issue delays of a processing block, in cycles.
        bytes: by level, as those of a `WarpDemand`.
    """

    times: tuple[tuple[TimeFunction, float], ...]
    issue: float
    all_bytes: float
    bytes: Levels

    @classmethod
    def of(cls, blocks: int, device: GpuParameters, kernel: KernelModel, unit: SyncUnit) -> "Load":
        """Return the load of an SM on which that many blocks run."""
        size = kernel.threads_per_block if unit == "threads" else len(kernel.warps)
        barrier = device.departure_delay * (size - 1)  # the warps of a block leave a barrier one after another
        warps, count = [*kernel.warps] * blocks, device.processing_blocks
        return cls(
            times=tuple({(warp.time, warp.syncs * barrier): None for warp in kernel.warps}),
            # warp k goes to processing block k modulo count
            issue=max(sum(warp.delay for warp in warps[at::count]) for at in range(count)),
            all_bytes=sum(warp.all_bytes for warp in warps),
            bytes=Levels(*(sum(each) for each in zip(*(warp.bytes for warp in warps), strict=True))),
        )

    def time(self, latencies: Levels) -> float:
        """Return the cycles at these latencies."""
        latency = self._latency(latencies)
        return max([self.issue, *(time(latency) + extra for time, extra in self.times)])

    def _latency(self, latencies: Levels) -> float:
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
    repeats: int


def waves(kernel: KernelModel, device: GpuParameters, blocks_per_sm: int, unit: SyncUnit) -> Iterator[Wave]:
    """Yield the waves of a launch in order; equal ones that follow each other are one with `repeats`."""
    at_once = device.sms * blocks_per_sm
    full, rest = divmod(kernel.blocks, at_once)
    for blocks, repeats in ((at_once, full), (rest, 1)):  # full waves first, then what is left of the grid
        if blocks and repeats:
            each, more = divmod(blocks, device.sms)
            counts = ((each + 1, more), (each, device.sms - more))  # some SMs have one block more than the others
            loads = ((Load.of(size, device, kernel, unit), sms) for size, sms in counts if size and sms)
            yield Wave(blocks, tuple(loads), repeats)
