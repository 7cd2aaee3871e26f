"""Barriers of a block in machine code: which of them a program can express, and which it cannot."""

from makespan.sass.module import Instruction
from makespan.sass.operands import Value

_WAITING = frozenset({"SYNC", "RED"})


def obstacle(instruction: Instruction, threads: int | None) -> str | None:
    """Why a barrier is no place at which all warps of a block wait; None if it is one.

    Source: PTX ISA, "bar, barrier": the first operand is the barrier, the next the number of threads that take part;
        `BAR.SYNC.DEFER_BLOCKING 0x0` is what ptxas makes of `bar.sync 0`, `BAR.ARV 0x1,0x80` of `bar.arrive 1, 128`.
    """
    if _WAITING.isdisjoint(instruction.modifiers):
        return "only arrives and does not wait, which a program cannot say; use bar.sync"
    if instruction.guard:
        return "has a guard, and a warp whose lanes all fail it does not wait; use a branch around it"
    counts = [text for text in instruction.operands[1:] if "P" not in text]
    if not counts:
        return None
    if threads is not None and [Value(text).number for text in counts] == [-(-threads // 32) * 32]:
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"
