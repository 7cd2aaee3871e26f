"""Blocks on SMs, warps on processing blocks, and what an SM then takes and asks for.

Blocks are dealt in waves of as many as fit on all SMs, in order, one SM after the other; the warps of an SM, block by
block, go to its processing blocks one after the other and stay there.

Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021, which leaves the order of dealing
open; the one here is the simplest that is deterministic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from makespan.errors import UnsupportedError
from makespan.estimators.kleimenov_popova.demand import KernelModel, TimeFunction, Warp
from makespan.estimators.kleimenov_popova.device import Device, Levels

MAX_DIFFERENT_BLOCKS = 1 << 16


class SyncUnit(StrEnum):
    """What the size of a block is counted in for the cost of a barrier."""

    WARPS = "warps"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class Load:
    """What runs on one SM in one wave.

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
        """Cycles with these latencies."""
        return self.time_at(self.latency(latencies))

    def time_at(self, latency: float) -> float:
        """Cycles if each access to global memory takes so long."""
        return max([self.issue, *(time(latency) + extra for time, extra in self.times)])

    def latency(self, latencies: Levels) -> float:
        """The mean latency of an access; 0 where there is none."""
        if not self.all_bytes:
            return 0.0
        l1, l2, dram, uncoal = (number / self.all_bytes for number in self.bytes)
        coalesced = l1 * latencies.l1 + l2 * latencies.l2 + dram * latencies.dram
        return (1 - uncoal) * coalesced + uncoal * latencies.uncoal


@dataclass(frozen=True, slots=True)
class Wave:
    """Blocks that run at the same time, and how often such a wave comes.

    Args:
        loads: of the SMs that are in use, each with the number of SMs that have it.
    """

    blocks: int
    loads: tuple[tuple[Load, int], ...]
    repeats: int = 1

    @property
    def bytes(self) -> Levels:
        """What the whole GPU asks for, by level."""
        return Levels(*(sum(load.bytes[at] * count for load, count in self.loads) for at in range(len(Levels._fields))))

    def time(self, latencies: Sequence[Levels]) -> float:
        """Cycles of the slowest SM, given the latencies of each load."""
        return max(load.time(levels) for (load, _), levels in zip(self.loads, latencies, strict=True))


def load(blocks: Sequence[Sequence[Warp]], device: Device, kernel: KernelModel, unit: SyncUnit) -> Load:
    """What an SM has that these blocks run on."""
    size = kernel.threads_per_block if unit is SyncUnit.THREADS else device.limits.warps_of(kernel.threads_per_block)
    barrier = device.departure_delay * (size - 1)
    warps = [warp for block in blocks for warp in block]
    count = device.processing_blocks
    times = {(warp.time, warp.syncs * barrier): None for warp in warps}
    return Load(
        times=tuple(times),
        issue=max(sum(warp.delay for warp in warps[at::count]) for at in range(count)),
        bytes=Levels(
            l1=sum(warp.l1_bytes for warp in warps),
            l2=sum(warp.l2_bytes for warp in warps),
            dram=sum(warp.dram_bytes for warp in warps),
            uncoal=sum(warp.uncoalesced_bytes for warp in warps),
        ),
        all_bytes=sum(warp.bytes for warp in warps),
    )


def waves(kernel: KernelModel, device: Device, blocks_per_sm: int, unit: SyncUnit = SyncUnit.WARPS) -> Iterator[Wave]:
    """The waves of a launch in order; equal ones that follow each other are one with `repeats`.

    Raises:
        UnsupportedError: too many blocks that differ.
    """
    at_once = device.sms * blocks_per_sm
    if kernel.is_uniform:
        full, rest = divmod(kernel.blocks, at_once)
        for blocks, repeats in ((at_once, full), (rest, 1)):
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
        loads = (load(dealt[sm :: device.sms], device, kernel, unit) for sm in range(used))
        yield Wave(len(dealt), tuple((each, 1) for each in loads))


def _uniform_wave(kernel: KernelModel, device: Device, blocks: int, repeats: int, unit: SyncUnit) -> Wave:
    """A wave of equal blocks: some SMs have one block more than the others."""
    warps = kernel.warps(0)
    each, more = divmod(blocks, device.sms)
    counts = ((each + 1, more), (each, device.sms - more))
    loads = ((load([warps] * size, device, kernel, unit), sms) for size, sms in counts if size and sms)
    return Wave(blocks, tuple(loads), repeats)
