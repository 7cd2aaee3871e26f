"""Machine code front end: from a cubin to the programs of its warps, timed by the control bits of its compiler.

    module = sass.read(Path("saxpy.cubin"))   # words  -> Module
    kernel = module.kernel("saxpy")           #        -> Kernel
    program = sass.program(kernel, machine=…) # Kernel -> Program, an automaton with its assumptions

What a launch, loop bounds, traces and the like are is said in `makespan.kernels.flow`.
"""

from makespan.kernels.sass.analysis import bounds_for, bounds_template, branches, loops
from makespan.kernels.sass.assembler import assembled
from makespan.kernels.sass.control import Control, control, with_control
from makespan.kernels.sass.disassembler import disassembled, read
from makespan.kernels.sass.graph import SassFlow, flow
from makespan.kernels.sass.listing import ListedInstruction, listing
from makespan.kernels.sass.module import Address, Instruction, Kernel, Module, Parameter, Resources
from makespan.kernels.sass.parameters import fitted
from makespan.kernels.sass.residency import missing_shared, residency
from makespan.kernels.sass.warps import program, programs, warps

__all__ = [
    "Address",
    "Control",
    "Instruction",
    "Kernel",
    "ListedInstruction",
    "Module",
    "Parameter",
    "Resources",
    "SassFlow",
    "assembled",
    "bounds_for",
    "bounds_template",
    "branches",
    "control",
    "disassembled",
    "fitted",
    "flow",
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
