"""What a kernel asks of a GPU, warp by warp; from functions of a thread, or from PTX (`from_ptx`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, TypeAlias

from makespan.errors import InputError

PROBES = (100.0, 400.0, 25600.0)
"""Latencies at which a time function is tried; the second is a typical one."""

TimeFunction: TypeAlias = Callable[[float], float]


class HitRates(NamedTuple):
    """The parts of all accesses that hit the L1 and the L2 cache; the device memory serves the rest."""

    l1: float
    l2: float

    def checked(self) -> "HitRates":
        """The same.

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
    """What one thread asks for.

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
        """The time at a typical latency.

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
            if cycles < before:
                raise InputError(f"thread: its time falls to {cycles:g} at lat = {latency:g}; it must not fall")
        return times[1]


@dataclass(frozen=True, slots=True)
class Warp:
    """One warp of the kernel model; bytes are of all its threads together.

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
    def of(cls, threads: Sequence[Thread]) -> "Warp":
        """The warp of some threads, of which the one that takes longest at a typical latency is the main one."""
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
        """What no cache holds."""
        return max(self.bytes - self.l1_bytes - self.l2_bytes, 0.0)

    def __post_init__(self) -> None:
        for name in ("delay", "syncs", "bytes", "l1_bytes", "l2_bytes", "uncoalesced_bytes"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"kernel model: {name} must be finite and at least 0, not {value}")
        if self.uncoalesced_bytes > self.bytes * (1 + 1e-12):
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
    warps: Callable[[int], Sequence[Warp]]
    is_uniform: bool
    registers: int | None = None
    shared_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise InputError(f"the grid must have at least 1 block, not {self.blocks}")
        if self.threads_per_block < 1:
            raise InputError(f"threads per block must be at least 1, not {self.threads_per_block}")
