"""The effects of machine instructions on the way of a warp and on registers, in the words of control flow.

A barrier of the block is such an effect, too; `barrier_obstacle` says which barriers a program cannot express.
"""

import re
from collections.abc import Sequence

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard
from makespan.kernels.sass.module import SassInstruction
from makespan.kernels.sass.operands import OperandValue
from makespan.kernels.sass.registers import SassAccess

_WAITING = frozenset({"SYNC", "RED"})
_OF_PTX = re.compile(r"(?<![\w.%$])(bar(?:rier)?)((?:\.\w+)+)")


def is_aligned(instruction: SassInstruction, ptx: Sequence[str]) -> bool:
    """Return whether the PTX of a barrier says that all lanes of a warp execute it together.

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
    """Return why a barrier is no place at which all warps of a block wait; None if it is one.

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
    return instruction.name in _JUMPS and instruction.guard not in ("!PT", "!UPT")  # a guard that is never true


def conditions(instruction: SassInstruction) -> tuple[str, ...]:
    """Return the predicates that must all hold where a jump is taken, as they are written."""
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
    """Return the effect of one instruction.

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
        guard=_guard(holding[0]) if len(holding) == 1 else None,  # with two conditions no register decides alone
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
    is_plain = instruction.name != "BRX" and "DIV" not in instruction.modifiers and conditions < 2
    return ControlTransfer.DIRECT if is_plain else ControlTransfer.INDIRECT


def _target(instruction: SassInstruction) -> str:
    return END if instruction.name in ENDS else instruction.operands[-1]
