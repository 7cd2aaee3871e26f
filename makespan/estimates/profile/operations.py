"""The accesses of a kernel with their transactions: counted over all executions, or from the distances of lanes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from makespan.estimates.profile.coalescing import transactions
from makespan.estimates.profile.exact import ExactCounts
from makespan.estimates.profile.lanes import Spaced
from makespan.estimates.profile.opcodes import MemoryAccess, memory_access
from makespan.estimates.profile.probes import ALIGNMENT
from makespan.estimates.profile.values import Coalescing, MemoryOperation, Rule
from makespan.kernels.ptx import PtxFlow

UNKNOWN_ADDRESS = "the address is not base + known distances between lanes"
COUNTED = "the addresses of all executions are known"


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

    def counted(self, exact: ExactCounts, executions: Mapping[int, float]) -> Iterator[MemoryOperation]:
        """Yield all accesses, with the addresses of their executions where these are known.

        Args:
            executions: of a warp, by number of an instruction, for those whose addresses were not looked at.
        """
        seen = {number for number, _ in exact.accesses}
        for number, access in self._all():
            if number not in seen:
                often = 0.0 if number in exact.watched else executions[number]
                yield self._spaced(number, access, often, self._mean_lanes)
            for key in (True, False, None):
                count = exact.accesses.get((number, key))
                if count is None:
                    continue
                mean, lanes = count.executions / self.warps, count.lanes / count.executions
                if key is None or not access.is_device or access.space == "local":
                    yield self._spaced(number, access, mean, lanes)
                else:
                    served = count.transactions / count.executions
                    yield self._made(number, access, mean, lanes, served, coalesced=key, reason=COUNTED)

    def estimated(self, executions: Mapping[int, float]) -> Iterator[MemoryOperation]:
        """Yield all accesses, each with all lanes that a warp has."""
        for number, access in self._all():
            yield self._spaced(number, access, executions[number], self._mean_lanes)

    @property
    def _mean_lanes(self) -> float:
        return self.block_threads / -(-self.block_threads // self.warp_size)

    def _all(self) -> Iterator[tuple[int, MemoryAccess]]:
        for number, instruction in enumerate(self.flow.code):
            access = memory_access(instruction)
            if access is not None:
                yield number, access

    def _spaced(self, number: int, access: MemoryAccess, executions: float, lanes: float) -> MemoryOperation:
        """Return an access whose addresses are not known, and at most their distances between lanes."""
        if not access.is_device:
            return self._made(number, access, executions, lanes)
        if access.space == "local":
            together = -(-self.warp_size * access.lane_bytes // self.coalescing.segment_bytes)
            reason = "local memory lies interleaved by lane"
            return self._made(number, access, executions, lanes, together, coalesced=True, reason=reason)
        spaced = self.offsets.get(number)
        if spaced is None:
            reason = UNKNOWN_ADDRESS
            return self._made(number, access, executions, lanes, self.warp_size, coalesced=False, reason=reason)
        served, coalesced = self._served(spaced, access)
        is_assumed = 2**spaced.zeros < self._aligned_to(access)  # what is known of U does not align the base
        reason = f"base + known distances between lanes; the base is {'assumed to be ' * is_assumed}aligned"
        return self._made(
            number, access, executions, lanes, served, coalesced=coalesced, is_assumed=is_assumed, reason=reason
        )

    def _served(self, spaced: Spaced, access: MemoryAccess) -> tuple[float, bool]:
        """Return the mean over the warps of a block, with all threads active and a base aligned to 256 bytes."""
        warps = -(-self.block_threads // self.warp_size)
        step = min(ALIGNMENT, 2**spaced.zeros)  # multiples of which may as well be part of the base
        addresses = np.zeros(warps * self.warp_size, np.int64)
        addresses[: self.block_threads] = spaced.offset - spaced.offset.min() // step * step
        active = np.arange(len(addresses)) < self.block_threads
        shape = (warps, self.warp_size)
        found = transactions(addresses.reshape(shape), active.reshape(shape), access.lane_bytes, self.coalescing)
        return float(found.served.mean()), bool(found.coalesced.all())

    def _aligned_to(self, access: MemoryAccess) -> int:
        """Return the bytes to which a base must be aligned for a count to hold."""
        is_row = self.coalescing.rule is Rule.CC10
        return self.warp_size // 2 * access.lane_bytes if is_row else self.coalescing.segment_bytes

    def _made(
        self,
        number: int,
        access: MemoryAccess,
        executions: float,
        lanes: float,
        served: float | None = None,
        *,
        coalesced: bool | None = None,
        is_assumed: bool = False,
        reason: str = "",
    ) -> MemoryOperation:
        instruction = self.flow.code[number]
        return MemoryOperation(
            line=instruction.line,
            text=str(instruction),
            opcode=instruction.opcode,
            space=access.space,
            is_load=access.is_load,
            lane_bytes=access.lane_bytes,
            executions=executions,
            lanes=lanes,
            transactions=served,
            coalesced=coalesced,
            is_assumed=is_assumed,
            reason=reason,
        )
