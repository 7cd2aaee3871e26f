"""A kernel with its launch: the graph of its blocks, its loops, and which way its branches go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from makespan.errors import InputError
from makespan.flow.dataflow import Access, accesses
from makespan.flow.graph import Flow, flow
from makespan.flow.launch import WARP_LANES
from makespan.flow.loop_info import LoopInfo, loop_infos
from makespan.flow.loops import Nest, nest
from makespan.flow.paths import refuse_unbounded
from makespan.flow.uniformity import decided, uniform_branches
from makespan.flow.walk import Terrain
from makespan.ptx import GivenBound, Kernel, Launch

__all__ = ["WARP_LANES", "Flow", "Launched", "LoopInfo", "Nest", "Terrain", "refuse_unbounded"]


@dataclass(frozen=True)
class Launched:
    """A kernel with instructions, whose launch has a block and a grid."""

    kernel: Kernel
    launch: Launch
    loop_bounds: tuple[GivenBound, ...] = ()

    @classmethod
    def of(cls, kernel: Kernel, launch: Launch, loop_bounds: Sequence[GivenBound] = ()) -> "Launched":
        """The kernel with its launch.

        Raises:
            InputError: no instruction, or a launch without block or grid.
        """
        found = cls(kernel, launch.for_kernel(kernel), tuple(loop_bounds))
        extents = (("--block", found.launch.block), ("--grid", found.launch.grid))
        missing = [option for option, extent in extents if extent is None]
        if missing:
            raise InputError(f"the launch is not known: give {' and '.join(missing)}")
        if not found.flow.code:
            raise InputError(f"{kernel.file}:{kernel.line}: {kernel.name} has no instruction")
        return found

    @cached_property
    def flow(self) -> Flow:
        """The blocks of the kernel."""
        return flow(self.kernel)

    @cached_property
    def nest(self) -> Nest:
        """Its loops."""
        return nest(self.flow)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """The registers that each instruction reads and writes."""
        return accesses(self.kernel)

    @property
    def threads(self) -> int:
        """Of a block."""
        return prod(self.launch.block or ())

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return prod(self.launch.grid or ())

    def infos(self, warp: int | None = None) -> tuple[LoopInfo, ...]:
        """How often its loops run, in a warp of each block or in all of them."""
        return loop_infos(self.flow, self.nest, self.loop_bounds, self.launch, warp)

    def terrain(self, warp: int) -> Terrain:
        """What a warp of each block walks through."""
        return Terrain(self.flow, self.nest, self.infos(warp))

    def decided(self, warp: int) -> Mapping[int, int]:
        """The side of each branch that always has the same outcome in a warp of each block, by block of the flow."""
        return decided(self.flow, self.launch, warp) if self.flow.is_plain else {}

    @cached_property
    def uniform(self) -> frozenset[int]:
        """The blocks of the flow at whose end no lanes part, as far as that is known; else what branches say."""
        if self.flow.is_plain:
            return uniform_branches(self.flow, self.launch)
        return frozenset(block for block in self.branching if "uni" in self.flow.last(block).opcode.split("."))

    @property
    def branching(self) -> frozenset[int]:
        """The blocks of the flow that have several successors."""
        blocks = self.flow.blocks
        return frozenset(block for block in range(self.flow.exit) if len(set(blocks[block].successors)) > 1)
