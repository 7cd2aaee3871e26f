"""What the text of an operand or declaration says; names are not looked up here."""

import re
import struct
from dataclasses import dataclass
from typing import TypeAlias

from makespan.kernels.ptx.module import Declaration
from tests.ptx_interpreter.faults import UnsupportedInstruction
from tests.ptx_interpreter.values import TYPES, Type

_NUMBER = re.compile(
    r"(?P<sign>[-+]*)(?:(?P<hex>0[xX][0-9a-fA-F]+)U?|0[bB](?P<binary>[01]+)U?"
    r"|0[fF](?P<single>[0-9a-fA-F]{8})|0[dD](?P<double>[0-9a-fA-F]{16})"
    r"|(?P<float>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+(?:[eE][-+]?\d+)?)|(?P<octal>0[0-7]+)U?|(?P<whole>\d+)U?)"
)
_NAME = re.compile(r"[A-Za-z_$%][A-Za-z0-9_$]*")
_SUM = re.compile(r"(?P<name>[A-Za-z_$%][A-Za-z0-9_$]*(?:\.[a-z]+)?)(?:\[(?P<index>[^\]]+)\]|(?P<offset>[-+].+))?")


@dataclass(frozen=True, slots=True)
class Number:
    """An immediate; the bits of a float literal decide, whatever instruction reads it."""

    whole: int | None
    value: float
    single_bits: int | None = None
    double_bits: int | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A register, special register, variable or function, and a number of bytes behind it."""

    name: str
    offset: int = 0
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b}`; None stands for `_`."""

    elements: tuple["Operand | None", ...]


@dataclass(frozen=True, slots=True)
class Address:
    """`[a+4]`."""

    base: Name | Number


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`, two targets; either may be None for `_`."""

    first: Name | None
    second: Name | None


Operand: TypeAlias = Number | Name | Vector | Address | Pair


def operand(text: str) -> Operand:
    """What an operand says.

    Raises:
        UnsupportedInstruction: a form that is not known here.
    """
    if text.startswith("{") and text.endswith("}"):
        return Vector(tuple(None if part == "_" else operand(part) for part in _parts(text[1:-1])))
    if text.startswith("[") and text.endswith("]"):
        inner = operand(text[1:-1])
        if isinstance(inner, Name | Number):
            return Address(inner)
        raise UnsupportedInstruction(f"the address {text}")
    if "|" in text:
        first, second = text.split("|")
        return Pair(_plain(first), _plain(second))
    if _NUMBER.fullmatch(text):
        return number(text)
    if text.startswith("!") and _NAME.fullmatch(text[1:]):
        return Name(text[1:], negated=True)
    found = _SUM.fullmatch(text)
    if not found:
        raise UnsupportedInstruction(f"the operand {text}")
    shift = found["index"] or found["offset"]
    return Name(found["name"], 0 if shift is None else _whole(shift))


def number(text: str) -> Number:
    """An immediate. A 0f or 0d literal keeps its bits."""
    found = _NUMBER.fullmatch(text)
    if not found:
        raise UnsupportedInstruction(f"the constant {text}")
    negative = found["sign"].count("-") % 2 == 1
    sign = -1 if negative else 1
    if found["single"] or found["double"]:
        if negative:
            raise UnsupportedInstruction(f"the constant {text}")
        bits = int(found["single"] or found["double"], 16)
        if found["single"]:
            value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
            return Number(None, value, single_bits=bits)
        return Number(None, struct.unpack("<d", bits.to_bytes(8, "little"))[0], double_bits=bits)
    if found["float"]:
        return Number(None, sign * float(found["float"]))
    bases = (("hex", 16), ("binary", 2), ("octal", 8), ("whole", 10))
    whole = next(int(found[group], base) for group, base in bases if found[group])
    return Number(sign * whole, float(sign * whole))


def _plain(text: str) -> Name | None:
    if text == "_":
        return None
    found = operand(text)
    if not isinstance(found, Name):
        raise UnsupportedInstruction(f"the target {text}")
    return found


def _whole(text: str) -> int:
    found = number(text).whole
    if found is None:
        raise UnsupportedInstruction(f"the offset {text}")
    return found


def _parts(text: str) -> list[str]:
    """What stands between the commas outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


# ---- declarations


@dataclass(frozen=True, slots=True)
class Variable:
    """Memory under a name; `values` are those of its initialiser, element by element, texts of names included."""

    name: str
    space: str
    type: Type
    bytes: int
    align: int
    values: tuple[str, ...] = ()


_WORD = re.compile(r"\.?[A-Za-z_$%0-9]+(?:::[a-z]+)?")


def variables(declaration: Declaration) -> tuple[Variable, ...]:
    """The variables of a declaration that is not of registers; `x[]` has no bytes of its own."""
    words, rest = _split(declaration)
    kind, width, align = _type(words)
    found: list[Variable] = []
    for part in _parts(rest):
        declarator, _, initialiser = part.partition("=")
        name = declarator.partition("[")[0].partition("<")[0].strip()
        sizes = re.findall(r"\[([^\]]*)\]", declarator)
        values = tuple(_flat(initialiser.strip())) if initialiser else ()
        count = width
        for size in sizes:
            count *= _whole(size.strip()) if size.strip() else len(values) if values else 0
        bytes_ = kind.bytes * count
        align = align or kind.bytes * width
        names = _numbered(declaration, name)
        found += [Variable(one, declaration.space, kind, bytes_, align, values) for one in names]
    return tuple(found)


def _split(declaration: Declaration) -> tuple[list[str], str]:
    """The words before the first declared name, and the text from there."""
    first = declaration.names[0][0]
    at = re.search(rf"(?<![A-Za-z0-9_$%.]){re.escape(first)}(?![A-Za-z0-9_$])", declaration.text)
    assert at is not None, declaration.text
    return _WORD.findall(declaration.text[: at.start()]), declaration.text[at.start() :].rstrip("; ")


def _type(words: list[str]) -> tuple[Type, int, int]:
    """The element type, the elements of a vector, and the alignment in bytes; 0 where it is the natural one."""
    kind, width, align = None, 1, 0
    for position, word in enumerate(words):
        name = word.removeprefix(".")
        if word == ".ptr":
            break
        if word == ".align":
            align = int(words[position + 1])
        elif word in (".v2", ".v4"):
            width = int(word[2:])
        elif name in TYPES:
            kind = TYPES[name]
    if kind is None:
        raise UnsupportedInstruction(f"a variable of type {' '.join(words)}")
    return kind, width, align


def _numbered(declaration: Declaration, name: str) -> list[str]:
    count = dict(declaration.names).get(name)
    return [name] if count is None else [f"{name}{number}" for number in range(count)]


def _flat(initialiser: str) -> list[str]:
    if initialiser.startswith("{"):
        return [value for part in _parts(initialiser[1:-1]) for value in _flat(part)]
    return [initialiser]
