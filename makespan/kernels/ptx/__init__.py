"""PTX front end: from the text of a kernel to the program of one warp.

    module = ptx.read(Path("saxpy.ptx"))      # text   -> Module
    kernel = module.kernel("saxpy")           #        -> Kernel
    program = ptx.program(kernel)             # Kernel -> Program, an automaton with its assumptions

What a launch, loop bounds, traces and the like are is said in `makespan.kernels.flow`. lark is imported when the first
text is parsed.
"""

from makespan.kernels.ptx.analysis import bounds_for, bounds_template, branches, loops
from makespan.kernels.ptx.calls import is_inlined
from makespan.kernels.ptx.evaluate import literal, width
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.isa import PROFILES, Classes, ListedInstruction, listing, read_classes
from makespan.kernels.ptx.module import KEEP_HINT, Declaration, Instruction, Kernel, Label, Module, Statement, names_in
from makespan.kernels.ptx.parameters import fitted, known_parameters, parameter_names, scalar
from makespan.kernels.ptx.parser import decode, parse, read
from makespan.kernels.ptx.printer import render
from makespan.kernels.ptx.registers import Access, accesses
from makespan.kernels.ptx.timing import Dependences
from makespan.kernels.ptx.warps import program, programs, warps

__all__ = [
    "KEEP_HINT",
    "PROFILES",
    "Access",
    "Classes",
    "Declaration",
    "Dependences",
    "Instruction",
    "Kernel",
    "Label",
    "ListedInstruction",
    "Module",
    "PtxFlow",
    "Statement",
    "accesses",
    "bounds_for",
    "bounds_template",
    "branches",
    "decode",
    "fitted",
    "flow",
    "is_inlined",
    "known_parameters",
    "listing",
    "literal",
    "loops",
    "names_in",
    "parameter_names",
    "parse",
    "program",
    "programs",
    "read",
    "read_classes",
    "render",
    "scalar",
    "warps",
    "width",
]
