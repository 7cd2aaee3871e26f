"""Barriers of a block in PTX: which of them a program can express, and which it cannot."""

from makespan.kernels.ptx.module import PtxInstruction

_MOST_OPERANDS = {"sync": 1, "red": 3}
"""Without the number of threads that take part."""


def is_barrier(instruction: PtxInstruction) -> bool:
    """Return whether an instruction lets warps of a block or cluster wait for each other."""
    return instruction.name in ("bar", "barrier") and not instruction.opcode.startswith("bar.warp")


def is_aligned(instruction: PtxInstruction) -> bool:
    """Return whether all lanes of a warp execute a barrier together or not at all; otherwise each arrives for itself.

    Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier": `bar{.cta}.sync` is
        `barrier{.cta}.sync.aligned`, and in conditional code it is for conditions that all threads evaluate alike.
    """
    return instruction.name == "bar" or "aligned" in instruction.opcode.split(".")


def barrier_obstacle(instruction: PtxInstruction, threads: int | None) -> str | None:
    """Why a barrier is no place at which all warps of a block wait; None if it is one."""
    parts = instruction.opcode.split(".")
    if "cluster" in parts:
        return "waits for other blocks of a cluster, and one SM is looked at; leave it out to look at the parts"
    kind = next((part for part in parts if part in _MOST_OPERANDS), None)
    if kind is None:
        return "only arrives and does not wait, which a program cannot say; use bar.sync"
    if instruction.guard:
        return "has a guard, and a warp whose lanes all fail it does not wait; use a branch around it"
    if len(instruction.operands) <= _MOST_OPERANDS[kind]:
        return None
    count = instruction.operands[1 if kind == "sync" else 2]
    if threads is not None and count == str(-(-threads // 32) * 32):
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"
