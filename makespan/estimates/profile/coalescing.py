"""Into how many transactions the accesses of warps fall, given the address of every lane."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.values import Coalescing, Rule

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
