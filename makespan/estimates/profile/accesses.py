"""The accesses of a kernel with their transactions: counted over all executions, or from the distances of lanes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.lanes import Spaced
from makespan.estimates.profile.opcodes import memory_access
from makespan.estimates.profile.probes import ALIGNMENT
from makespan.estimates.profile.values import Coalescing, MemoryOperation, Rule
from makespan.kernels.ptx import PtxFlow

UNKNOWN_ADDRESS = "the address is not base + known distances between lanes"
COUNTED = "the addresses of all executions are known"
_SIZES = (4, 8, 16)  # bytes of a lane that half-warps can share


class Transactions(NamedTuple):
    """The transactions of each warp, and whether its access is coalesced. A warp without active lanes has none."""

    served: NDArray[np.int64]
    coalesced: NDArray[np.bool_]


def transactions(
    addresses: NDArray[np.int64], active: NDArray[np.bool_], lane_bytes: int, coalescing: Coalescing
) -> Transactions:
    """Return the transactions of warps.

    Args:
        addresses: by warp and lane, in bytes; where a lane is not active, anything.
        active: by warp and lane.

    Source: CUDA C Programming Guide 2.3, section 5.1.2.1, for compute capability 1.0 and 1.1; segments as in
        S. Hong and H. Kim, ISCA 2009, for a whole warp.
    """
    if coalescing.rule is Rule.CC10:
        return _in_order(addresses, active, lane_bytes)
    return _segments(addresses, active, lane_bytes, coalescing.segment_bytes)


def _in_order(addresses: NDArray[np.int64], active: NDArray[np.bool_], lane_bytes: int) -> Transactions:
    """Return one transaction for a half-warp whose lane k is at an aligned base + k * size, else one for each lane."""
    warps, lanes = addresses.shape
    half = max(1, lanes // 2)  # CC 1.0 serves half-warps one after the other
    count, coalesced = np.zeros(warps, np.int64), np.ones(warps, bool)
    for first in range(0, lanes, half):
        here, on = addresses[:, first : first + half], active[:, first : first + half]
        bases = here - np.arange(here.shape[1]) * lane_bytes
        base = np.where(on, bases, np.iinfo(np.int64).min).max(axis=1)  # that of any active lane, as all must agree
        in_order = (~on | (bases == base[:, None])).all(axis=1) & (base % (half * lane_bytes) == 0)
        served = in_order & (lane_bytes in _SIZES)
        some = on.any(axis=1)
        count += np.where(some, np.where(served, 1, on.sum(axis=1)), 0)
        coalesced &= served | ~some
    return Transactions(count, coalesced)


def _segments(
    addresses: NDArray[np.int64], active: NDArray[np.bool_], lane_bytes: int, segment_bytes: int
) -> Transactions:
    """Return one transaction per segment touched; coalesced if a whole warp in a row would touch no fewer."""
    _, lanes = addresses.shape
    # an access may straddle two segments
    ends = [_segment(addresses, segment_bytes), _segment(addresses + lane_bytes - 1, segment_bytes)]
    touched = np.where(np.tile(active, 2), np.concatenate(ends, axis=1), np.iinfo(np.int64).min)
    touched.sort(axis=1)  # equal segments become neighbours, and are counted once
    is_new = np.diff(touched, axis=1) != 0
    count = is_new.sum(axis=1) + (touched[:, 0] != np.iinfo(np.int64).min)
    return Transactions(count, count <= -(-lanes * lane_bytes // segment_bytes))


def _segment(addresses: NDArray[np.int64], segment_bytes: int) -> NDArray[np.int64]:
    """Return the segment of each address; a shift takes a tenth of the time of a division."""
    if segment_bytes & (segment_bytes - 1):
        return addresses // segment_bytes
    return addresses >> (segment_bytes.bit_length() - 1)


class AccessCount(NamedTuple):
    """The sums over those executions of one access, in all warps, that are alike in being coalesced."""

    executions: int
    lanes: int
    transactions: int


AccessCounts = Mapping[tuple[int, bool | None], AccessCount]
"""By number of an instruction, and by whether it is coalesced; None where that is not known, or the access does not go
to the device memory."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a kernel.

    Args:
        offsets: by number of an instruction, the distances between lanes where they are known.
        block_threads: of a block.
        warps: of the launch.
    """

    flow: PtxFlow
    offsets: Mapping[int, Spaced]
    coalescing: Coalescing
    warp_size: int
    block_threads: int
    warps: int

    def operations(self, executions: Mapping[int, float], counted: AccessCounts) -> Iterator[MemoryOperation]:
        """Yield all accesses, with the addresses of their executions where these were counted.

        Args:
            executions: of a warp, by number of an instruction, for those that were not counted: with all lanes.
        """
        mean_lanes = self.block_threads / -(-self.block_threads // self.warp_size)
        for number, instruction in enumerate(self.flow.code):
            access = memory_access(instruction)
            if access is None:
                continue
            whole = MemoryOperation(
                instruction.line,
                str(instruction),
                instruction.opcode,
                access.space,
                access.is_load,
                access.lane_bytes,
                executions[number],
                mean_lanes,
            )
            counts = {key: counted[number, key] for key in (True, False, None) if (number, key) in counted}
            if not counts:
                yield self._spaced(number, whole)
            for key, count in counts.items():
                mean = replace(whole, executions=count.executions / self.warps, lanes=count.lanes / count.executions)
                if key is None or not access.is_device or access.space == "local":
                    yield self._spaced(number, mean)
                else:
                    served = count.transactions / count.executions
                    yield replace(mean, transactions=served, coalesced=key, reason=COUNTED)

    def _spaced(self, number: int, whole: MemoryOperation) -> MemoryOperation:
        """Return an access whose addresses are not known, and at most their distances between lanes."""
        if not whole.is_device:
            return whole
        if whole.space == "local":
            together = -(-self.warp_size * whole.lane_bytes // self.coalescing.segment_bytes)
            reason = "local memory lies interleaved by lane"
            return replace(whole, transactions=together, coalesced=True, reason=reason)
        spaced = self.offsets.get(number)
        if spaced is None:
            return replace(whole, transactions=self.warp_size, coalesced=False, reason=UNKNOWN_ADDRESS)
        served, coalesced = self._served(spaced, whole.lane_bytes)
        is_row = self.coalescing.rule is Rule.CC10
        aligned_to = self.warp_size // 2 * whole.lane_bytes if is_row else self.coalescing.segment_bytes
        is_assumed = 2**spaced.zeros < aligned_to  # what is known of U does not align the base
        reason = f"base + known distances between lanes; the base is {'assumed to be ' * is_assumed}aligned"
        return replace(whole, transactions=served, coalesced=coalesced, is_assumed=is_assumed, reason=reason)

    def _served(self, spaced: Spaced, lane_bytes: int) -> tuple[float, bool]:
        """Return the mean over the warps of a block, with all threads active and a base aligned to 256 bytes."""
        warps = -(-self.block_threads // self.warp_size)
        step = min(ALIGNMENT, 2**spaced.zeros)  # multiples of which may as well be part of the base
        addresses = np.zeros(warps * self.warp_size, np.int64)
        addresses[: self.block_threads] = spaced.offset - spaced.offset.min() // step * step
        active = np.arange(len(addresses)) < self.block_threads
        shape = (warps, self.warp_size)
        found = transactions(addresses.reshape(shape), active.reshape(shape), lane_bytes, self.coalescing)
        return float(found.served.mean()), bool(found.coalesced.all())
