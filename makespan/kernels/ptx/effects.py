"""What PTX instructions do to the way of a warp and to registers, as effects that control flow understands."""

from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard, SourceLine
from makespan.kernels.ptx.barriers import is_aligned, is_barrier
from makespan.kernels.ptx.calls import call_name, is_inlined
from makespan.kernels.ptx.module import PtxInstruction, names_in
from makespan.kernels.ptx.registers import PtxAccess

JUMPS = frozenset({"ret", "exit", "trap", "bra", "brx"})
"""Instructions that end a block, besides guarded calls that are inlined; the first three end the warp."""

END = "exit"
"""The target of a conditional branch that ends the warp."""


def ptx_effect(instruction: PtxInstruction, access: PtxAccess, source: SourceLine | None) -> Effect:
    """What one instruction does.

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
        is_uniform="uni" in instruction.opcode.split("."),
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
    """Return the label that a branch names, the function that a call calls, or `exit`."""
    if instruction.name == "call":
        return call_name(instruction)
    return (instruction.operands or ("",))[-1] if instruction.name in ("bra", "brx") else END


def _barrier(instruction: PtxInstruction) -> Barrier | None:
    if not is_barrier(instruction):
        return None
    return Barrier.ALIGNED if is_aligned(instruction) else Barrier.BY_LANE


def _joins_lanes(instruction: PtxInstruction) -> bool:
    """Return whether an instruction exchanges something between the lanes of a warp or waits for them."""
    exchanges = instruction.name in ("shfl", "vote", "match", "redux", "elect")
    return exchanges or instruction.opcode.split(".")[:2] == ["bar", "warp"]
