"""The effects of PTX instructions on the way of a warp and on registers, in the words of control flow.

A barrier of the block is such an effect, too; `barrier_obstacle` says which barriers a program cannot express.
"""

from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard, SourceLine
from makespan.kernels.ptx.calls import call_name, is_inlined
from makespan.kernels.ptx.module import PtxInstruction, names_in
from makespan.kernels.ptx.registers import PtxAccess

_MOST_OPERANDS = {"sync": 1, "red": 3}
"""Without the number of threads that take part."""


def is_barrier(instruction: PtxInstruction) -> bool:
    """Return whether an instruction lets warps of a block or cluster wait for each other."""
    return instruction.name in ("bar", "barrier") and not instruction.opcode.startswith("bar.warp")


def is_aligned(instruction: PtxInstruction) -> bool:
    """Return whether all lanes of a warp execute a barrier together; otherwise each arrives for itself.

    Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier": `bar{.cta}.sync` is
        `barrier{.cta}.sync.aligned`, and in conditional code it is for conditions that all threads evaluate alike.
    """
    return instruction.name == "bar" or "aligned" in instruction.opcode.split(".")


def barrier_obstacle(instruction: PtxInstruction, threads: int | None) -> str | None:
    """Return why a barrier is no place at which all warps of a block wait; None if it is one."""
    parts = instruction.opcode.split(".")
    if "cluster" in parts:  # one SM does not hold the other blocks
        return "waits for other blocks of a cluster, and one SM is looked at; leave it out to look at the parts"
    kind = next((part for part in parts if part in _MOST_OPERANDS), None)
    if kind is None:
        return "only arrives and does not wait, which a program cannot say; use bar.sync"
    if instruction.guard:
        return "has a guard, and a warp whose lanes all fail it does not wait; use a branch around it"
    if len(instruction.operands) <= _MOST_OPERANDS[kind]:
        return None
    count = instruction.operands[1 if kind == "sync" else 2]
    # all threads of the block, rounded up to whole warps
    if threads is not None and count == str(-(-threads // 32) * 32):
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"


JUMPS = frozenset({"ret", "exit", "trap", "bra", "brx"})
"""Instructions that end a block, besides guarded calls that are inlined; the first three end the warp."""

END = "exit"
"""The target of a conditional branch that ends the warp."""


def ptx_effect(instruction: PtxInstruction, access: PtxAccess, source: SourceLine | None) -> Effect:
    """Return the effect of one instruction.

    Args:
        access: what `registers.accesses` says of it.
        source: where its `.loc` says that it comes from.
    """
    return Effect(
        writes=access.writes,
        reads=access.reads,
        is_partial=access.is_partial,
        guard=None if instruction.guard is None else _guard(instruction.guard, access),
        transfer=(transfer := _transfer(instruction)),
        target=_target(instruction) if transfer else "",
        is_uniform="uni" in instruction.opcode.split("."),  # the programmer promises it
        barrier=_barrier(instruction),
        joins_lanes=_joins_lanes(instruction),
        source=source,
    )


def _guard(text: str, access: PtxAccess) -> Guard:
    plain = text.lstrip("!")
    return Guard(access.own(next(iter(names_in(plain)), plain)), is_negated=text.startswith("!"))


def _transfer(instruction: PtxInstruction) -> ControlTransfer | None:
    if is_inlined(instruction):
        return ControlTransfer.INLINED
    if instruction.name == "brx":
        return ControlTransfer.INDIRECT
    return ControlTransfer.DIRECT if instruction.name in JUMPS else None


def _target(instruction: PtxInstruction) -> str:
    if instruction.name == "call":
        return call_name(instruction)
    return (instruction.operands or ("",))[-1] if instruction.name in ("bra", "brx") else END


def _barrier(instruction: PtxInstruction) -> Barrier | None:
    if not is_barrier(instruction):
        return None
    return Barrier.ALIGNED if is_aligned(instruction) else Barrier.BY_LANE


def _joins_lanes(instruction: PtxInstruction) -> bool:
    exchanges = instruction.name in ("shfl", "vote", "match", "redux", "elect")
    return exchanges or instruction.opcode.split(".")[:2] == ["bar", "warp"]
