"""What machine instructions do to the way of a warp and to registers, as effects that control flow understands."""

import re
from collections.abc import Sequence

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard
from makespan.kernels.sass.barriers import is_aligned
from makespan.kernels.sass.module import SassInstruction
from makespan.kernels.sass.registers import SassAccess

END = "exit"
"""The target of a conditional branch that ends the warp."""

ENDS = frozenset({"EXIT", "KILL"})
_JUMPS = frozenset({"BRA", "BRX", "BSYNC", "CALL", "RET", *ENDS})
_KNOWN: dict[str, frozenset[str]] = {
    "BRA": frozenset({"U", "DIV", "INC", "DEC"}),
    "BRX": frozenset({"INC", "DEC"}),
    "CALL": frozenset({"REL", "NOINC", "INC"}),
    "RET": frozenset({"REL", "NODEC", "DEC"}),
    "EXIT": frozenset({"NO_ATEXIT", "KEEPREFCOUNT"}),
    "KILL": frozenset(),
    "BSSY": frozenset({"RECONVERGENT"}),
    "BSYNC": frozenset({"RECONVERGENT"}),
    "BMOV": frozenset({"32", "CLEAR"}),
    "BPT": frozenset({"TRAP"}),
    "WARPSYNC": frozenset({"ALL"}),
}
"""Instructions that steer lanes, and the modifiers of theirs that are understood."""

_REFUSED = {
    "BREAK": "lets lanes leave the place where others wait for them",
    "YIELD": "lets lanes that went different ways take turns",
    "BRXU": "goes wherever a register points",
    "JMP": "goes to an address outside of the kernel",
    "JMX": "goes wherever a register points",
    "JMXU": "goes wherever a register points",
    "RTT": "returns from a trap",
    "RPCMOV": "sets where lanes go on",
}
_PREDICATE = re.compile(r"!?U?P[0-9]")


def ends_block(instruction: SassInstruction) -> bool:
    """Return whether another instruction than the next one may follow."""
    return instruction.name in _JUMPS and instruction.guard not in ("!PT", "!UPT")


def conditions(instruction: SassInstruction) -> tuple[str, ...]:
    """Return the predicates that all hold where a jump is taken, as they are written."""
    listed = [instruction.guard or "", *(instruction.operands[:1] if instruction.name in _JUMPS else ())]
    return tuple(text for text in listed if _PREDICATE.fullmatch(text))


def refuse_steering(instruction: SassInstruction, file: str) -> None:
    """Refuse an instruction that steers lanes in a way that is not followed.

    Raises:
        UnsupportedError: such an instruction.
    """
    why = _REFUSED.get(instruction.name)
    if why is None and not {*instruction.modifiers} <= _KNOWN.get(instruction.name, {*instruction.modifiers}):
        why = "steers lanes in a way that is not known"
    if why is None and "!PT" in instruction.operands[:1] and instruction.name in _JUMPS:
        why = "has a condition that never holds"
    if why is None and instruction.name == "BMOV" and instruction.operands[0].startswith("B"):
        why = "sets which lanes wait for each other"
    if why is not None:
        raise UnsupportedError(
            f"{file}:{instruction.line}: `{instruction}` {why}, which is not followed; analyse the PTX instead"
        )


def sass_effect(instruction: SassInstruction, access: SassAccess, ptx: Sequence[str] = ()) -> Effect:
    """What one instruction does.

    Args:
        access: what `registers.access` says of it.
        ptx: the lines of the PTX from which it comes, if they are known.
    """
    aligned = Barrier.ALIGNED if is_aligned(instruction, ptx) else Barrier.BY_LANE
    holding = conditions(instruction)
    never = instruction.guard in ("!PT", "!UPT")
    return Effect(
        writes=() if never else access.writes,
        reads=access.reads,
        guard=_guard(holding[0]) if len(holding) == 1 else None,
        transfer=_transfer(instruction, len(holding)) if ends_block(instruction) else None,
        target=_target(instruction) if ends_block(instruction) else "",
        is_uniform=instruction.name == "BRA" and not {"U", "DIV"}.isdisjoint(instruction.modifiers),
        barrier=aligned if instruction.name == "BAR" else None,
        joins_lanes=instruction.name == "WARPSYNC",
        source=instruction.source,
    )


def _guard(text: str) -> Guard:
    return Guard(text.lstrip("!"), is_negated=text.startswith("!"))


def _transfer(instruction: SassInstruction, conditions: int) -> ControlTransfer:
    """A call is a branch to its copy of the subroutine, a return, as it is proven, one to behind the call."""
    is_plain = instruction.name != "BRX" and "DIV" not in instruction.modifiers and conditions < 2
    return ControlTransfer.DIRECT if is_plain else ControlTransfer.INDIRECT


def _target(instruction: SassInstruction) -> str:
    return END if instruction.name in ENDS else instruction.operands[-1]
