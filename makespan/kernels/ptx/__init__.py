"""PTX front end: from the text of a kernel to the program of one warp.

    module = ptx.read(Path("saxpy.ptx"))      # text   -> Module
    kernel = module.kernel("saxpy")           #        -> Kernel
    program = ptx.program(kernel)             # Kernel -> Program, an automaton with its assumptions

What a launch, loop bounds, traces and the like are is said in `makespan.kernels.flow`. lark is imported when the first
text is parsed.
"""

from makespan.kernels.ptx.effects import PtxAccess, is_inlined, register_accesses
from makespan.kernels.ptx.evaluate import literal, width
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.isa import PROFILES, Classes, PtxListingRow, listing, operation_of_opcode, read_classes
from makespan.kernels.ptx.module import (
    KEEP_HINT,
    Declaration,
    PtxInstruction,
    PtxKernel,
    PtxLabel,
    PtxModule,
    Statement,
    names_in,
    render,
)
from makespan.kernels.ptx.parameters import fit_launch, known_parameters, parameter_names, scalar_type
from makespan.kernels.ptx.parser import decode, parse, read
from makespan.kernels.ptx.timing import ANALYSIS, Dependences, warps

loops = ANALYSIS.loops
branches = ANALYSIS.branches
bounds_for = ANALYSIS.bounds_for
bounds_template = ANALYSIS.bounds_template
program = ANALYSIS.program
programs = ANALYSIS.programs

__all__ = [
    "KEEP_HINT",
    "PROFILES",
    "Classes",
    "Declaration",
    "Dependences",
    "PtxAccess",
    "PtxFlow",
    "PtxInstruction",
    "PtxKernel",
    "PtxLabel",
    "PtxListingRow",
    "PtxModule",
    "Statement",
    "bounds_for",
    "bounds_template",
    "branches",
    "decode",
    "fit_launch",
    "flow",
    "is_inlined",
    "known_parameters",
    "listing",
    "literal",
    "loops",
    "names_in",
    "operation_of_opcode",
    "parameter_names",
    "parse",
    "program",
    "programs",
    "read",
    "read_classes",
    "register_accesses",
    "render",
    "scalar_type",
    "warps",
    "width",
]
