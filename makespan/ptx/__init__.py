"""PTX front end: from the text of a kernel to the program of one warp.

    module = ptx.read(Path("saxpy.ptx"))      # text   -> Module
    kernel = module.kernel("saxpy")           #        -> Kernel
    program = ptx.program(kernel)             # Kernel -> Program, an automaton with its assumptions

lark is imported when the first text is parsed, networkx when the first graph is asked for.
"""

from makespan.flow.branches import BranchInfo, Step, branches, read_trace, takes
from makespan.flow.graph import Flow, flow
from makespan.flow.launch import Launch, launch
from makespan.flow.loop_bounds import Bound, GivenBound, given_bound, loop_bounds, read_bounds
from makespan.flow.loop_info import LoopInfo, bounds_for, bounds_template, loops
from makespan.flow.programs import program, programs
from makespan.ptx.isa import PROFILES, Classes, ListedInstruction, listing, read_classes
from makespan.ptx.module import Instruction, Kernel, Module
from makespan.ptx.parser import decode, parse, read
from makespan.ptx.printer import render
from makespan.wording import PATH_ONLY, TRUSTED_BOUNDS

__all__ = [
    "PATH_ONLY",
    "PROFILES",
    "TRUSTED_BOUNDS",
    "Bound",
    "BranchInfo",
    "Classes",
    "Flow",
    "GivenBound",
    "Instruction",
    "Kernel",
    "Launch",
    "ListedInstruction",
    "LoopInfo",
    "Module",
    "Step",
    "bounds_for",
    "bounds_template",
    "branches",
    "decode",
    "flow",
    "given_bound",
    "launch",
    "listing",
    "loop_bounds",
    "loops",
    "parse",
    "program",
    "programs",
    "read",
    "read_bounds",
    "read_classes",
    "read_trace",
    "render",
    "takes",
]
