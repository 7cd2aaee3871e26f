"""Machine code front end: from a cubin to the programs of its warps, timed by the control bits of its compiler.

    module = sass.read(Path("saxpy.cubin"))   # words  -> Module
    kernel = module.kernel("saxpy")           #        -> Kernel
    program = sass.program(kernel, machine=…) # Kernel -> Program, an automaton with its assumptions

What a launch, loop bounds, traces and the like are is said in `makespan.kernels.flow`.
"""

from makespan.kernels.sass.cache_lines import KernelLines, leave_room
from makespan.kernels.sass.cubin import assemble_ptx
from makespan.kernels.sass.disassembler import disassemble, read
from makespan.kernels.sass.graph import SassFlow, flow
from makespan.kernels.sass.module import (
    Address,
    Control,
    KernelResources,
    SassInstruction,
    SassKernel,
    SassModule,
    SassParameter,
    control,
    missing_shared,
    residency,
    with_control,
)
from makespan.kernels.sass.opcodes import SassListingRow, listing
from makespan.kernels.sass.semantics import fit_launch
from makespan.kernels.sass.timing import ANALYSIS, warps

loops = ANALYSIS.loops
branches = ANALYSIS.branches
bounds_for = ANALYSIS.bounds_for
bounds_template = ANALYSIS.bounds_template
program = ANALYSIS.program
programs = ANALYSIS.programs

__all__ = [
    "Address",
    "Control",
    "KernelLines",
    "KernelResources",
    "SassFlow",
    "SassInstruction",
    "SassKernel",
    "SassListingRow",
    "SassModule",
    "SassParameter",
    "assemble_ptx",
    "bounds_for",
    "bounds_template",
    "branches",
    "control",
    "disassemble",
    "fit_launch",
    "flow",
    "leave_room",
    "listing",
    "loops",
    "missing_shared",
    "program",
    "programs",
    "read",
    "residency",
    "warps",
    "with_control",
]
