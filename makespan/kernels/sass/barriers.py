"""Barriers of a block in machine code: which a program can express, and to which the lanes of a warp come together."""

import re
from collections.abc import Sequence

from makespan.kernels.sass.module import SassInstruction
from makespan.kernels.sass.operands import OperandValue

_WAITING = frozenset({"SYNC", "RED"})
_OF_PTX = re.compile(r"(?<![\w.%$])(bar(?:rier)?)((?:\.\w+)+)")


def is_aligned(instruction: SassInstruction, ptx: Sequence[str]) -> bool:
    """Return whether the line of the PTX from which a barrier comes says that all lanes of a warp execute it together.

    Args:
        ptx: the lines of the PTX.

    Source: PTX ISA, "bar, barrier": `bar{.cta}` is `barrier{.cta}` with `.aligned`, for which all threads of the warp
        must execute the same instruction; both become BAR.SYNC.
    """
    if instruction.ptx is None or not 0 < instruction.ptx.line <= len(ptx):
        return False
    found = _OF_PTX.findall(ptx[instruction.ptx.line - 1].partition("//")[0])
    parts = [(name, {*modifiers.split(".")}) for name, modifiers in found]
    return bool(parts) and all(
        (name == "bar" or "aligned" in modifiers) and modifiers.isdisjoint({"warp", "cluster"})
        for name, modifiers in parts
    )


def barrier_obstacle(instruction: SassInstruction, threads: int | None) -> str | None:
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
    if threads is not None and [OperandValue(text).number for text in counts] == [-(-threads // 32) * 32]:
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"
