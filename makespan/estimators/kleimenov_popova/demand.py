"""What a kernel asks of a GPU, warp by warp; from functions of a thread, or from PTX (`from_ptx`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import NamedTuple, TypeAlias

from makespan.errors import InputError

PROBES = (0.25, 1.0, 64.0)
"""Multiples of a typical latency at which a time function is tried."""

TimeFunction: TypeAlias = Callable[[float], float]


class Thread(NamedTuple):
    """A thread: the number of its block in the grid, and its own number in the block."""

    block: int
    number: int


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

    @classmethod
    def of_threads(
        cls,
        *,
        threads_per_block: int,
        blocks: int,
        time: Callable[[Thread, float], float],
        delay: Callable[[Thread], float],
        mem: Callable[[Thread], float],
        uncoal_mem: Callable[[Thread], float],
        l1pct: Callable[[Thread], float],
        l2pct: Callable[[Thread], float],
        syncs: Callable[[Thread], float],
        registers: int | None = None,
        shared_bytes: int | None = None,
        is_uniform: bool = False,
        warp_size: int = 32,
        typical_latency: float = 400.0,
    ) -> "KernelModel":
        """A kernel whose threads are told by functions; `mem` and `uncoal_mem` in bytes.

        Args:
            is_uniform: whether all blocks are like block 0.
            typical_latency: in cycles; the thread that takes longest at it is the main thread of its warp.

        Raises:
            InputError: also when a block is asked for: a value out of range, a time that falls as `lat` rises.
        """

        def warp(block: int, first: int) -> Warp:
            members = [Thread(block, n) for n in range(first, min(first + warp_size, threads_per_block))]
            main = max(members, key=lambda member: _probed(partial(time, member), typical_latency, member))
            hits = {member: HitRates(l1pct(member), l2pct(member)).checked() for member in members}
            return Warp(
                time=partial(time, main),
                delay=delay(main),
                syncs=syncs(main),
                bytes=sum(mem(member) for member in members),
                l1_bytes=sum(mem(member) * hits[member].l1 for member in members),
                l2_bytes=sum(mem(member) * hits[member].l2 for member in members),
                uncoalesced_bytes=sum(_part(uncoal_mem(member), mem(member), member) for member in members),
            )

        def warps(block: int) -> Sequence[Warp]:
            return [warp(block, first) for first in range(0, threads_per_block, warp_size)]

        return cls(threads_per_block, blocks, warps, is_uniform, registers, shared_bytes)


def _part(uncoalesced: float, all_bytes: float, thread: Thread) -> float:
    if not 0 <= uncoalesced <= all_bytes:
        raise InputError(
            f"{_name(thread)}: uncoalMem {uncoalesced} must be within 0..mem, and mem is {all_bytes} bytes"
        )
    return uncoalesced


def _probed(time: TimeFunction, typical: float, thread: Thread) -> float:
    """The time at the typical latency; refuses a time function that is none, at a few latencies."""
    before, found = 0.0, 0.0
    for factor in PROBES:
        latency = typical * factor
        cycles = time(latency)
        if not (isfinite(cycles) and cycles >= 0):
            raise InputError(f"{_name(thread)}: its time at lat = {latency:g} is {cycles}, not a number of cycles")
        if cycles < before:
            raise InputError(f"{_name(thread)}: its time falls to {cycles:g} at lat = {latency:g}; it must not fall")
        before = cycles
        if factor == 1:
            found = cycles
    return found


def _name(thread: Thread) -> str:
    return f"thread {thread.number} of block {thread.block}"
