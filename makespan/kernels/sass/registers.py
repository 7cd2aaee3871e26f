"""The registers that a machine instruction reads and writes, 32 bits each, by names of their own in the kernel.

A word of a constant bank that an address names outright is a register, too, and is never written.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.kernels.sass.opcodes import opcode_row, unknown_form_error

_PREDICATE = re.compile(r"!?U?P([0-9]|T)")
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
    words = opcode_row(instruction, kernel.file)
    kinds = "".join("p" if _PREDICATE.fullmatch(operand) else "r" for operand in instruction.operands)
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
    return SassAccess(tuple(dict.fromkeys(writes)), tuple(dict.fromkeys(reads)))


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
