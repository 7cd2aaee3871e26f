"""What a launch really executes and accesses: every block in the interpreter, with its addresses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from makespan.kernels.flow import Launch
from makespan.kernels.ptx import PtxModule
from tests.ptx_interpreter import Case, run
from tests.ptx_interpreter.machine import Warp


@dataclass(frozen=True, slots=True)
class TrueAccess:
    """One execution of an instruction by a warp: the address of every enabled lane, and how many bytes from it on."""

    index: int
    warp: tuple[tuple[int, int, int], int]
    addresses: Mapping[int, int]
    lane_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """The instructions of every warp, by number in text order, and the accesses to global memory."""

    warps: tuple[Counter[int], ...]
    accesses: tuple[TrueAccess, ...]


def executed(
    source: Path | PtxModule | str,
    kernel: str,
    block: tuple[int, int, int],
    grid: tuple[int, int, int],
    arguments: Sequence[Any],
    **options: Any,
) -> Truth:
    """Run all blocks of a grid, one after the other on the same memory."""
    warps: list[Counter[int]] = []
    found: dict[tuple[Any, int], TrueAccess] = {}

    def recording(original: Any, space_of_interest: str = "global") -> Any:
        def call(warp: Warp, space: str, addresses: Any, m: Any, last: Any) -> Any:
            if space == space_of_interest:
                issue = warp.issues[-1]
                key = ((index, warp.number), len(warp.issues))
                known = found.get(key)  # an earlier part of a vector, or another lane of an atomic operation
                here = dict(known.addresses) if known else {}
                end = 0 if known is None else known.lane_bytes
                for lane in m.indices:
                    here[lane] = min(here.get(lane, int(addresses[lane])), int(addresses[lane]))
                    width = last if isinstance(last, int) else last.itemsize
                    end = max(end, int(addresses[lane]) + width - here[lane])
                found[key] = TrueAccess(issue.index, (index, warp.number), here, end)
            return original(warp, space, addresses, m, last)

        return call

    with (
        mock.patch.object(Warp, "load", recording(Warp.load)),
        mock.patch.object(Warp, "store", recording(Warp.store)),
    ):
        for z, y, x in product(*(range(size) for size in reversed(grid))):
            index = (x, y, z)
            trace = run(source, kernel, block=block, grid=grid, block_index=index, arguments=arguments, **options)
            warps += [Counter(trace.indices(number)) for number in range(len(trace.warps))]
    return Truth(tuple(warps), tuple(found.values()))


@cache
def truth_of(case: Case) -> Truth:
    """The truth of a case with all blocks of its grid."""
    arguments = case.prepare().arguments
    shared = case.dynamic_shared_bytes
    return executed(case.path, case.kernel, case.block, case.grid, arguments, dynamic_shared_bytes=shared)


def launch_of(case: Case) -> Launch:
    """The launch as a user would give it: numbers are known, pointers are not."""
    numbers = {}
    for position, value in enumerate(case.prepare().arguments):
        if isinstance(value, int | float | np.generic):
            numbers[str(position)] = value.item() if isinstance(value, np.generic) else value
    return Launch(case.block, case.grid, numbers)


def segments(access: TrueAccess, lane_bytes: int, segment_bytes: int) -> int:
    """Different segments, counted byte by byte."""
    return len({(a + byte) // segment_bytes for a in access.addresses.values() for byte in range(lane_bytes)})


def half_warps(access: TrueAccess, lane_bytes: int) -> tuple[int, bool]:
    """Transactions of compute capability 1.0, and whether both half-warps are served as one each."""
    total, coalesced = 0, True
    for half in _halves(access.addresses):
        bases = {address - lane % 16 * lane_bytes for lane, address in half.items()}
        base = min(bases)
        if len(bases) == 1 and base % (16 * lane_bytes) == 0 and lane_bytes in (4, 8, 16):
            total += 1
        else:
            total, coalesced = total + len(half), False
    return total, coalesced


def _halves(addresses: Mapping[int, int]) -> Iterator[dict[int, int]]:
    for first in (0, 16):
        half = {lane: a for lane, a in addresses.items() if first <= lane < first + 16}
        if half:
            yield half
