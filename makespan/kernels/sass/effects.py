"""The effects of machine instructions on registers and on the way of a warp, in the words of control flow.

Registers have 32 bits each, and names of their own in the kernel. A word of a constant bank that an address names
outright is a register, too, and is never written. A barrier of the block is such an effect, too; `barrier_obstacle`
says which barriers a program cannot express.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard
from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.kernels.sass.opcodes import opcode_row, unknown_form_error
from makespan.kernels.sass.operands import OperandValue

_PREDICATE_OPERAND = re.compile(r"!?U?P([0-9]|T)")
_REGISTER = re.compile(r"(?<![\w.])(?P<kind>U?[RP]|B)(?P<number>\d+)(?P<parts>(\.\w+)*)")
_CONSTANT = re.compile(r"(?<!\w)c\[(?P<bank>0x[0-9a-f]+)\]\[(?P<at>0x[0-9a-f]+|RZ|URZ)\]")
_SPECIAL = re.compile(r"SR_[A-Z0-9_.]+")
_SET = re.compile(r"U?PR(\.B\d)?")
_SIZE = re.compile(r"[FSU]?(\d+)")
_HIDING = range(80, 90)  # the texts of these leave out the descriptor of an address, desc[UR4] elsewhere
_LOADS_HIDE, _OTHERS_HIDE, _URZ = 32, 64, 63
_WORD_BITS, _WORD_BYTES = 32, 4
_PREDICATES = 7


class SassAccess(NamedTuple):
    """The registers of one instruction.

    Args:
        writes: what it may write. With a guard, it may also leave them as they are.
        reads: what it may read, guard included, special registers as `SR_TID.X`, constants as `c[0x0][0x160]`.
    """

    writes: tuple[str, ...]
    reads: tuple[str, ...]


def register_accesses(kernel: SassKernel) -> tuple[SassAccess, ...]:
    """Return what each instruction reads and writes, in order.

    Raises:
        UnsupportedError: an instruction that the table of opcodes does not have, or not with such operands.
    """
    return tuple(register_access(instruction, kernel) for instruction in kernel.code)


def register_access(instruction: SassInstruction, kernel: SassKernel) -> SassAccess:
    """Return what one instruction of a kernel reads and writes.

    Raises:
        UnsupportedError: as `register_accesses`.

    >>> from makespan.kernels.sass import Address, KernelResources
    >>> load = SassInstruction(Address(0), "LDG.E.64", ("R4", "[R2.64+0x8]"), "!P0")
    >>> register_access(load, SassKernel("k", "k.cubin", "k.cubin", 86, (load,), KernelResources(8)))
    SassAccess(writes=('R4', 'R5'), reads=('P0', 'R2', 'R3'))
    """
    writes, reads = _operand_registers(instruction, kernel)
    return SassAccess(tuple(dict.fromkeys(writes)), tuple(dict.fromkeys(reads)))


def register_reads(instruction: SassInstruction, kernel: SassKernel) -> tuple[str, ...]:
    """Return what one instruction reads, once for each operand that names it.

    Raises:
        UnsupportedError: as `register_accesses`.

    >>> from makespan.kernels.sass import Address, KernelResources
    >>> square = SassInstruction(Address(0), "FFMA", ("R1", "R2", "R2", "R3"))
    >>> register_reads(square, SassKernel("k", "k.cubin", "k.cubin", 86, (square,), KernelResources(8)))
    ('R2', 'R2', 'R3')
    """
    return tuple(_operand_registers(instruction, kernel)[1])


def _operand_registers(instruction: SassInstruction, kernel: SassKernel) -> tuple[list[str], list[str]]:
    """Return what an instruction writes and reads, by operand."""
    words = opcode_row(instruction, kernel.file)
    kinds = "".join("p" if _PREDICATE_OPERAND.fullmatch(operand) else "r" for operand in instruction.operands)
    found = _shape((*words.writes, *words.reads)).fullmatch(kinds)
    if found is None:
        raise unknown_form_error(instruction, kernel.file)
    writes, reads = list[str](), list(_registers_in(instruction.guard or "", 1))  # the guard is read, too
    for place, word in enumerate((*words.writes, *words.reads)):
        is_written = place < len(words.writes)
        for operand in instruction.operands[slice(*found.span(place + 1))]:
            names = tuple(_registers(operand, word.rstrip("?*"), instruction, kernel, is_written=is_written))
            if is_written or word[0] in "xq":  # x and q are operands that are read and written
                writes += names
            if not is_written:
                reads += names
    return writes, reads


@cache
def _shape(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of the operands that fit, a group for each word: p for a predicate, r for any other."""
    letters = ("p" if word[0] in "pq" else "r" for word in words)
    return re.compile(
        "".join(
            f"({letter}{word[-1] if word[-1] in '?*' else ''})" for letter, word in zip(letters, words, strict=True)
        )
    )


def _registers(
    operand: str, word: str, instruction: SassInstruction, kernel: SassKernel, *, is_written: bool
) -> Iterator[str]:
    if _SET.fullmatch(operand):
        yield from _predicates(operand, instruction, kernel)
    elif word == "a" and not is_written:
        yield from _address(operand, instruction, kernel)
    else:
        yield from _registers_in(operand, _count(word, instruction))


def _count(word: str, instruction: SassInstruction) -> int:
    if word != "m":
        return int(word) if word.isdecimal() else 1
    sizes = (int(found[1]) for modifier in instruction.modifiers if (found := _SIZE.fullmatch(modifier)))
    return max(1, max(sizes, default=0) // _WORD_BITS)


def _registers_in(text: str, count: int) -> Iterator[str]:
    for found in _REGISTER.finditer(text):
        first = int(found["number"])
        yield from (f"{found['kind']}{number}" for number in range(first, first + count))
    for found in _CONSTANT.finditer(text):
        first = int(found["at"], 16) if found["at"][0] == "0" else 0
        yield from (f"c[{found['bank']}][{first + _WORD_BYTES * at:#x}]" for at in range(count))
    yield from _SPECIAL.findall(text)


def _address(text: str, instruction: SassInstruction, kernel: SassKernel) -> Iterator[str]:
    """Yield the registers of an address, each as wide as it says; one alone has 64 bits where the address has (.E)."""
    is_extended = "E" in instruction.modifiers
    is_alone = is_extended and text.count("[") == 1 and ".U32" not in text and len(_REGISTER.findall(text)) == 1
    for found in _REGISTER.finditer(text):
        is_wide = text[: found.start()].endswith(("desc[", "cx[")) or ".64" in found["parts"]
        is_wide |= is_alone or (is_extended and found["kind"] == "UR")  # addresses of global memory have 64 bits
        yield from _registers_in(f"{found['kind']}{found['number']}", 1 + is_wide)
    # the hidden descriptor is read from the word
    if kernel.sm in _HIDING and is_extended and ".64" in text and "U" not in text and instruction.word:
        first = instruction.word >> (_LOADS_HIDE if instruction.name in ("LD", "LDG") else _OTHERS_HIDE) & _URZ
        yield from _registers_in("" if first == _URZ else f"UR{first}", 2)
    yield from _registers_in(" ".join(found[0] for found in _CONSTANT.finditer(text)), _count("m", instruction))


def _predicates(operand: str, instruction: SassInstruction, kernel: SassKernel) -> Iterator[str]:
    mask = instruction.operands[-1]
    if not mask.startswith("0x"):
        raise unknown_form_error(instruction, kernel.file)
    prefix = operand.partition("R")[0]
    yield from (f"{prefix}{number}" for number in range(_PREDICATES) if int(mask, 16) >> number & 1)


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
        access: what `register_access` says of it.
        ptx: the lines of the PTX from which it comes, if they are known.
    """
    aligned = Barrier.ALIGNED if is_aligned(instruction, ptx) else Barrier.BY_LANE
    holding = conditions(instruction)
    never, ends = instruction.guard in ("!PT", "!UPT"), ends_block(instruction)
    # with two conditions no register decides alone
    guards = [Guard(text.lstrip("!"), is_negated=text.startswith("!")) for text in holding] if len(holding) == 1 else []
    is_plain = instruction.name != "BRX" and "DIV" not in instruction.modifiers and len(holding) < 2
    transfer = ControlTransfer.DIRECT if is_plain else ControlTransfer.INDIRECT
    return Effect(
        writes=() if never else access.writes,
        reads=access.reads,
        guard=guards[0] if guards else None,
        transfer=transfer if ends else None,
        target="" if not ends else END if instruction.name in ENDS else instruction.operands[-1],
        is_uniform=instruction.name == "BRA" and not {"U", "DIV"}.isdisjoint(instruction.modifiers),
        barrier=aligned if instruction.name == "BAR" else None,
        joins_lanes=instruction.name == "WARPSYNC",
        source=instruction.source,
    )
