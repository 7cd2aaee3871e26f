"""What control flow tells of a PTX kernel: its loops with their bounds, its branches, a bounds file to fill in."""

from collections.abc import Iterable, Sequence

from makespan import flow as control_flow
from makespan.flow import BranchInfo, GivenBound, Launch, LoopInfo, branch_infos, loop_infos, nest
from makespan.ptx.graph import PtxFlow, flow
from makespan.ptx.module import Kernel


def loops(
    kernel: Kernel | PtxFlow, loop_bounds: Sequence[GivenBound] = (), launch: Launch | None = None
) -> tuple[LoopInfo, ...]:
    """The loops of a kernel in text order, each with its bound as far as one is known.

    Raises:
        InputError: a bound for no loop, or one that another bound or the code contradicts.
        UnsupportedError: control flow that has no natural loops.
    """
    found = flow(kernel)
    return loop_infos(found, nest(found), loop_bounds, launch or Launch())


def branches(kernel: Kernel | PtxFlow) -> tuple[BranchInfo, ...]:
    """The conditional branches that can be reached, in text order.

    Raises:
        InputError: control flow that is not understood.
    """
    return branch_infos(flow(kernel))


def bounds_for(kernel: Kernel, given: Iterable[GivenBound], kernels: Iterable[Kernel]) -> tuple[GivenBound, ...]:
    """The bounds without those that fit only another of these kernels, so that one set can serve them all.

    Raises:
        InputError: control flow of `kernel` that is not understood.
    """
    return control_flow.bounds_for(kernel, given, kernels, flow)


def bounds_template(
    kernels: Kernel | Sequence[Kernel], loop_bounds: Sequence[GivenBound] = (), launch: Launch | None = None
) -> str:
    """A bounds file to fill in: a line for each loop, `LABEL,?` where no bound is known.

    Raises:
        InputError: see `loops`.
    """
    several = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    made = dict.fromkeys(kernel.compilation for kernel in several if kernel.compilation)
    remarks = [f"Labels hold for this PTX only: {compilation}" for compilation in made]
    return control_flow.bounds_template(several, loop_bounds, launch or Launch(), flow, remarks)
