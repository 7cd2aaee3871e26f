"""Executes machine code, 32 lanes a warp, with real values: the truth that the front end is measured against.

    trace = run(kernel, block=(64, 1, 1), arguments=[a, b, c, 50])
    trace.addresses(0)                            # what warp 0 issued, in order
    c                                             # now holds what the kernel stored

It shares nothing with the front end but the values of `makespan.kernels.sass` and the texts of operands: what an
instruction computes, where lanes go and where they meet are its own reading. What it does not know is an
`UnsupportedInstruction`.

Sources: listings of compiled kernels; Mesa, src/nouveau/compiler/nak/ir.rs (carries, LEA, SHF, ISETP.EX, PRMT).
"""

from tests.sass_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.sass_interpreter.launch import Trace, run
from tests.sass_interpreter.machine import Issue

__all__ = ["Issue", "KernelFault", "Trace", "UnsupportedInstruction", "run"]
