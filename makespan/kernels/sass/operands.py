"""The operands of a machine instruction by their form, and the registers that all kernels of an architecture share.

Every instruction writes its operands in this order: the register and the predicates that it writes, the values that it
reads, the predicates that it reads. The sizes of block and grid lie in constant bank 0, below the parameters.

Source: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference"; listings of nvdisasm.
"""

import re
from functools import cache
from typing import NamedTuple

from makespan.kernels.flow import InstructionSet, SourceOperand, ThreadRegisters
from makespan.kernels.flow.arithmetic import ones

_WORD = re.compile(r"c\[0x([0-9a-f]{1,4})\]\[(?:0x([0-9a-f]{1,8})|U?RZ)\]")
_SIZES = {100: (0x360, 0x370), 70: (0x0, 0xC)}
"""From this architecture on, where in bank 0 the threads of a block and the blocks of the grid lie.

Source: `mov.u32 %r, %ntid.x` and its like, compiled by ptxas 13 for sm_75, 80, 86, 89, 90, 100, 103, 110, 120 and 121.
"""


def constant_name(bank: int, offset: int) -> str:
    """Return the own name of four bytes of constants.

    >>> constant_name(0, 0x160)
    'c[0x0][0x160]'
    """
    return f"c[{bank:#x}][{offset:#x}]"


def constant_place(text: str) -> tuple[int, int] | None:
    """Return the bank and offset in bytes of a constant; None where a register has a say in the address.

    >>> constant_place("c[0x0][0x160]"), constant_place("c[0x0][RZ]"), constant_place("c[0x3][R4+0x10]")
    ((0, 352), (0, 0), None)
    """
    match = _WORD.fullmatch(text)
    return None if match is None else (int(match[1], 16), int(match[2] or "0", 16))


@cache
def machine_code(sm: int) -> InstructionSet:
    """Return the words and registers of the kernels of an architecture, such as 86."""
    block, grid = next(places for since, places in _SIZES.items() if sm >= since)  # newest architecture first
    return InstructionSet(
        ThreadRegisters(
            thread=_axes("SR_TID"),
            block_size=_words(block),
            block=_axes("SR_CTAID"),
            grid_size=_words(grid),
            lane="SR_LANEID",
            lane_masks={relation: f"SR_{relation.upper()}MASK" for relation in ("eq", "lt", "le", "gt", "ge")},
        ),
        ends="EXIT",
        aligned_barrier="BAR.SYNC",
        has_lines=False,
    )


def _axes(name: str) -> tuple[str, str, str]:
    return f"{name}.X", f"{name}.Y", f"{name}.Z"


def _words(offset: int) -> tuple[str, str, str]:
    return constant_name(0, offset), constant_name(0, offset + 4), constant_name(0, offset + 8)


_REGISTER = re.compile(r"(U?R)(?:([0-9]{1,3})|Z)")
_PREDICATE = re.compile(r"(!?)(U?P(?:[0-9]|T))")
_NUMBER = re.compile(r"(-?)0x([0-9a-f]{1,16})")
_SIGNED = re.compile(r"([-~]?)(.*)")


class OperandValue(NamedTuple):
    """A value that is read: its text without the sign (`-` or `~`) before it, and its width in bits, 32 or 64."""

    text: str
    sign: str = ""
    width: int = 32

    @property
    def number(self) -> int | None:
        """Return the bits of a constant in the instruction; None for anything else."""
        if self.text in ("RZ", "URZ"):
            return 0
        match = _NUMBER.fullmatch(self.text)
        if match is None or (number := int(match[2], 16)) >> self.width:  # too wide for the operand
            return None
        return (-number if match[1] else number) & ones(self.width)


class SassOperands(NamedTuple):
    """The operands of an instruction; a predicate is `P0`, or `!P0` where it is read."""

    register: str | None
    written: tuple[str, ...]
    values: tuple[OperandValue, ...]
    read: tuple[str, ...]


def split_operands(operands: tuple[str, ...], *, has_register: bool = True) -> SassOperands | None:
    """Return the operands by their form; None for another order of them."""
    texts = list(operands)
    register: str | None = None
    written: list[str] = []
    read: list[str] = []
    # leading predicates without ! are written
    while texts and (_is_written(texts[0]) or (has_register and register is None)):
        text = texts.pop(0)
        if _is_written(text):
            written.append(text)
        else:
            register = text
    while texts and _PREDICATE.fullmatch(texts[-1]):  # trailing ones are read
        read.insert(0, texts.pop())
    if (has_register and register is None) or any(_PREDICATE.fullmatch(text) for text in texts):
        return None
    return SassOperands(register, tuple(written), tuple(map(_value, texts)), tuple(read))


def register_names(register: str, width: int = 32) -> tuple[str | None, ...] | None:
    """Return the registers of 32 bits of a destination, lowest first, None for one that keeps nothing.

    >>> register_names("R4", 64), register_names("URZ"), register_names("[R4]")
    (('R4', 'R5'), (None,), None)
    """
    match = _REGISTER.fullmatch(register)
    if match is None:
        return None
    kind, number = match.groups()
    return tuple(None if number is None else f"{kind}{int(number) + part}" for part in range(width // 32))


def predicate_name(text: str) -> str | None:
    """Return the predicate that an operand names; None for one that is always true."""
    text = text.removeprefix("!")
    return None if text.endswith("T") else text


def predicate_source(text: str) -> SourceOperand:
    """Return the source of a predicate that is read."""
    name, is_negated = predicate_name(text), text.startswith("!")
    return SourceOperand(None, int(not is_negated), 1) if name is None else SourceOperand(name, None, 1, is_negated)


def value_sources(value: OperandValue) -> tuple[SourceOperand, ...] | None:
    """Return the sources of a value by 32 bits, the lowest first, its sign apart; None for another form."""
    mask, parts = ones(32), value.width // 32
    if (number := value.number) is not None:
        return tuple(SourceOperand(None, number >> 32 * part & mask, mask) for part in range(parts))
    if (at := constant_place(value.text)) is not None and at[1] % 4 == 0:
        return tuple(SourceOperand(constant_name(at[0], at[1] + 4 * part), None, mask) for part in range(parts))
    registers = register_names(value.text, value.width) or ()
    return tuple(SourceOperand(name, None, mask) for name in registers if name) or None


def _is_written(text: str) -> bool:
    match = _PREDICATE.fullmatch(text)
    return match is not None and not match[1]


def _value(text: str) -> OperandValue:
    match = _SIGNED.fullmatch(text)
    sign, rest = match.groups() if match and not _NUMBER.fullmatch(text) else ("", text)
    return OperandValue(rest, sign)
