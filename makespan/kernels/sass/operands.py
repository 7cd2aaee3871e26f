"""The operands of a machine instruction, told apart by their form: what it writes, the values it reads, its predicates.

Every instruction writes them in this order: the register and the predicates that it writes, the values that it reads,
the predicates that it reads.

Source: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference"; listings of nvdisasm.
"""

import re
from typing import NamedTuple

from makespan.kernels.flow import SourceOperand
from makespan.kernels.flow.arithmetic import ones
from makespan.kernels.sass.instruction_set import constant_name, constant_place

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
        if match is None or (number := int(match[2], 16)) >> self.width:
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
    while texts and (_is_written(texts[0]) or (has_register and register is None)):
        text = texts.pop(0)
        if _is_written(text):
            written.append(text)
        else:
            register = text
    while texts and _PREDICATE.fullmatch(texts[-1]):
        read.insert(0, texts.pop())
    if (has_register and register is None) or any(_PREDICATE.fullmatch(text) for text in texts):
        return None
    return SassOperands(register, tuple(written), tuple(map(_value, texts)), tuple(read))


def register_names(register: str, width: int = 32) -> tuple[str | None, ...] | None:
    """Return the registers of 32 bits that a destination stands for, the lowest first, None for one that keeps nothing.

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
    """Return a predicate that is read."""
    name, is_negated = predicate_name(text), text.startswith("!")
    return SourceOperand(None, int(not is_negated), 1) if name is None else SourceOperand(name, None, 1, is_negated)


def value_sources(value: OperandValue) -> tuple[SourceOperand, ...] | None:
    """Where a value comes from, by 32 bits, the lowest first, its sign apart; None for an operand of another form."""
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
