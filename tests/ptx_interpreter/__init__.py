"""Executes PTX kernels, 32 lanes a warp, with real values: the truth that the front end is measured against.

    trace = run(Path("ptx/vecadd.ptx"), "vecadd", block=(64, 1, 1), arguments=[a, b, c, 50])
    [issue.index for issue in trace.warps[0]]     # the warp-instructions of warp 0, in the order of their issue
    trace.iterations(0)["$L__BB0_2"]              # how often warp 0 came to this label
    c                                             # now holds what the kernel stored

It shares nothing with the front end but the step from text to instructions: labels, scopes, blocks, post-dominators and
divergence are its own. What it cannot execute exactly as the manual says is an `UnsupportedInstruction`; what the
manual leaves undefined (unwritten registers and memory, addresses out of bounds, divergent barriers, an integer divided
by zero) is a `KernelFault`. Approximate instructions (`rsqrt.approx`, `ex2`, `div.full`, ...) give the nearest value.

`CASES` are kernels with arguments and a check of their results, ready to be parametrised over.
"""

from tests.ptx_interpreter.cases import CASES, Case
from tests.ptx_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.ptx_interpreter.launch import Pointer, Trace, parsed, run
from tests.ptx_interpreter.machine import Issue

__all__ = ["CASES", "Case", "Issue", "KernelFault", "Pointer", "Trace", "UnsupportedInstruction", "parsed", "run"]
