"""A kernel with its launch: the graph of its blocks, its loops, and which way its branches go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from makespan.host.errors import InputError
from makespan.kernels.flow import (
    BoundedFlow,
    GivenBound,
    Launch,
    LoopInfo,
    LoopNest,
    decided_sides,
    declared_uniform,
    loop_infos,
    loop_nest,
    uniform_branches,
)
from makespan.kernels.ptx import PtxFlow, PtxKernel, fit_launch, flow


@dataclass(frozen=True)
class Launched:
    """A kernel with instructions, whose launch has a block and a grid."""

    kernel: PtxKernel
    launch: Launch
    loop_bounds: tuple[GivenBound, ...] = ()

    @classmethod
    def of(cls, kernel: PtxKernel, launch: Launch, loop_bounds: Sequence[GivenBound] = ()) -> "Launched":
        """Return the kernel with its launch.

        Raises:
            InputError: no instruction, or a launch without block or grid.
        """
        found = cls(kernel, fit_launch(launch, kernel), tuple(loop_bounds))
        extents = (("--block", found.launch.block), ("--grid", found.launch.grid))
        missing = [option for option, extent in extents if extent is None]
        if missing:
            raise InputError(f"the launch is not known: give {' and '.join(missing)}")
        if not found.flow.code:
            raise InputError(f"{kernel.file}:{kernel.line}: {kernel.name} has no instruction")
        return found

    @cached_property
    def flow(self) -> PtxFlow:
        """Return the blocks of the kernel."""
        return flow(self.kernel)

    @cached_property
    def nest(self) -> LoopNest:
        """Return the loops of the kernel."""
        return loop_nest(self.flow)

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return prod(self.launch.block or ())

    @property
    def blocks(self) -> int:
        """Return the number of blocks of the grid."""
        return prod(self.launch.grid or ())

    def infos(self, warp: int | None = None) -> tuple[LoopInfo, ...]:
        """Return how often the loops run, in a warp of each block or in all of them."""
        return loop_infos(self.flow, self.nest, self.loop_bounds, self.launch, warp)

    def terrain(self, warp: int) -> BoundedFlow:
        """Return the flow, loops and bounds of a warp of each block."""
        return BoundedFlow(self.flow, self.nest, self.infos(warp))

    def decided(self, warp: int) -> Mapping[int, int]:
        """Return the side of each branch that always has the same outcome in this warp of each block, by block."""
        return decided_sides(self.flow, self.launch, warp) if self.flow.is_plain else {}

    @cached_property
    def uniform(self) -> frozenset[int]:
        """Return the blocks of the flow at whose end no lanes part, as far as that is known; else what branches say."""
        return uniform_branches(self.flow, self.launch) if self.flow.is_plain else declared_uniform(self.flow)

    @property
    def branching(self) -> frozenset[int]:
        """Return the blocks of the flow that have several successors."""
        return frozenset(filter(self.flow.has_sides, range(self.flow.exit)))
