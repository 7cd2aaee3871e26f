"""In which bits the lanes of a warp may differ, for the results of single instructions.

A `Spread` speaks of the lanes that are active together. `%tid.x` has spread 31 in a block of 256 threads, so
`%tid.x >> 5` has none: it is uniform. A value of unknown spread is None.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from makespan.flow.dataflow import Access
from makespan.flow.launch import WARP_LANES, Launch, Parameter
from makespan.ptx.evaluate import literal, width
from makespan.ptx.module import Instruction, names_in

_WIDEST = 64
_PURE = frozenset(
    """
    abs add and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a ex2 fma fns isspacep lg2 lop3 mad
    mad24 max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub szext
    tanh testp xor
    """.split()  # noqa: SIM905 - a list of so many strings cannot be read
)
"""Opcodes whose results depend on their operands alone (not on a carry, as those of addc do)."""

_PER_LAUNCH = re.compile(r"%(?:ntid|ctaid|nctaid)\.[xyz]|%gridid|%envreg[0-9]+|%(?:total|dynamic)_smem_size")
_TYPE = re.compile(r"[busf](?:8|16|32|64)|pred")
_LOAD_WORDS = re.compile(
    r"weak|global|const|shared(?:::cta|::cluster)?|param(?:::entry)?|nc|ca|cg|cs|lu|L1::[a-z_]+|L2::[0-9A-Za-z_]+|v[248]|"
    + _TYPE.pattern
)


class Spread(NamedTuple):
    """What is known of a value in the active lanes of a warp.

    Args:
        varying: a mask of the bits in which lanes may differ; 0 for a uniform value.
        zeros: how many of the lowest bits are surely 0.
    """

    varying: int
    zeros: int

    def __or__(self, other: "Spread") -> "Spread":
        """What covers both."""
        return Spread(self.varying | other.varying, min(self.zeros, other.zeros))


UNIFORM = Spread(0, 0)
Spreads: TypeAlias = Mapping[str, Spread]


class Surroundings(NamedTuple):
    """What the launch and the declarations say, whatever the instruction.

    Args:
        specials: the spreads of special registers.
        parameters: those that are known.
        is_entry: whether parameters are those of a kernel, the same for all threads.
        symbols: the names of variables; their addresses are uniform.
    """

    specials: Spreads
    parameters: Mapping[str, Parameter]
    is_entry: bool
    symbols: frozenset[str]


def special_spreads(launch: Launch) -> dict[str, Spread]:
    """The spreads of the special registers that depend on the block; without a block, only that of the lane."""
    found = {"%laneid": Spread(WARP_LANES - 1, 0)}
    if launch.block is None:
        return found
    x, y, _ = launch.block
    varying = {"%tid.x": 0, "%tid.y": 0, "%tid.z": 0}
    for number in range(prod(launch.block)):
        first = number - number % WARP_LANES
        for name, own, base in (
            ("%tid.x", number % x, first % x),
            ("%tid.y", number // x % y, first // x % y),
            ("%tid.z", number // (x * y), first // (x * y)),
        ):
            varying[name] |= own ^ base
    found |= {name: Spread(mask, 0) for name, mask in varying.items()}
    sizes = (("%ntid", launch.block), ("%nctaid", launch.grid))
    found |= {
        f"{name}.{axis}": constant(size)
        for name, extent in sizes
        if extent
        for axis, size in zip("xyz", extent, strict=True)
    }
    return found


def constant(value: int) -> Spread:
    """The spread of a number.

    >>> constant(96)
    Spread(varying=0, zeros=5)
    """
    return Spread(0, (value & -value).bit_length() - 1 if value else _WIDEST)


def result_spread(instruction: Instruction, access: Access, spreads: Spreads, around: Surroundings) -> Spread | None:
    """The spread of what an instruction computes, apart from its guard; None if nothing is known.

    A plain load from a uniform address in a space that all threads share gives every active lane the same value: it is
    one access of the warp, and without a data race no lane could tell it from accesses one by one. Loads that may race
    (volatile, relaxed, acquire), from local memory, or through a generic address that may lead there, do not.
    """
    operands = instruction.operands
    kind = instruction.opcode.rpartition(".")[2]
    if instruction.name == "mov" and kind.startswith("f"):  # no address: some write it for a load of the variable
        around = around._replace(symbols=frozenset())
    found = [_operand(text, kind, access, spreads, around) for text in operands[1:]]
    known = [spread for spread in found if spread is not None]
    is_uniform = len(known) == len(found) and not any(spread.varying for spread in known)
    match instruction.name:
        case "ld":
            return _loaded(instruction, around) if is_uniform else None
        case "vote" | "redux":
            # all lanes of the member mask, or all active ones, get the same
            same = found[-1:] if "sync" in instruction.opcode.split(".") else []
            return UNIFORM if all(spread is not None and not spread.varying for spread in same) else None
        case name if name not in _PURE or "cc" in instruction.opcode.split("."):
            return None
    rule, sources = _RULES.get(".".join(instruction.opcode.split(".")[:-1]), (None, 0))
    is_plain = len(known) == sources == len(operands) - 1 and not operands[0].startswith("{")
    if rule is None or not is_plain or not _TYPE.fullmatch(kind):
        return UNIFORM if is_uniform else None
    constants = [literal(text, kind) for text in operands[1:]]
    ruled = rule(known, constants, width(kind))
    return UNIFORM if ruled is None and is_uniform else ruled


def compares_uniformly(instruction: Instruction, access: Access, spreads: Spreads, around: Surroundings) -> bool:
    """Whether `setp` compares a value with a bound on the border of the range in which the lanes may differ.

    With lanes that differ in their lowest n bits alone, all of them are below a multiple of 2^n, or none is.
    """
    match instruction.opcode.split("."):
        case ["setp", test, kind] if _TYPE.fullmatch(kind) and kind[0] in "us" and len(instruction.operands) == 3:
            pass
        case _:
            return False
    value, bound = (_operand(text, kind, access, spreads, around) for text in instruction.operands[1:])
    if value is None or bound is None or bound.varying:
        return False
    n = value.varying.bit_length()
    if n >= width(kind):
        return False
    if test in ("lt", "ge", "lo", "hs"):
        return bound.zeros >= n
    number = literal(instruction.operands[2], kind)
    return test in ("le", "gt", "ls", "hi") and number is not None and (number + 1) % 2**n == 0


def _operand(text: str, kind: str, access: Access, spreads: Spreads, around: Surroundings) -> Spread | None:
    """The spread of an operand of any form."""
    if _PER_LAUNCH.fullmatch(text) or text in around.specials:
        return around.specials.get(text, UNIFORM)
    if _TYPE.fullmatch(kind) and (number := literal(text, kind)) is not None:
        return constant(number)
    names = [access.own(name) for name in names_in(text)]
    if len(names) == 1 and names[0] == text.lstrip("!") and names[0] in spreads:
        return spreads[names[0]]
    shared = (name in around.symbols or (name in spreads and spreads[name].varying == 0) for name in names)
    return UNIFORM if all(shared) else None


def _loaded(instruction: Instruction, around: Surroundings) -> Spread | None:
    """The spread of a load from a uniform address."""
    _, *words = instruction.opcode.split(".")
    spaces = {word.partition("::")[0] for word in words} & {"global", "const", "shared", "param"}
    if len(spaces) != 1 or not all(_LOAD_WORDS.fullmatch(word) for word in words):
        return None
    if spaces == {"param"}:
        name = next(iter(names_in("".join(instruction.operands[1:]))), "")
        known = around.parameters.get(name)
        if not around.is_entry or name not in around.symbols:
            return None
        return constant(known.value) if known and width(words[-1]) == known.bits else UNIFORM
    return UNIFORM


def _sum(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    """Carries go up from the lowest bit that varies, unless the other summand has only zeros where lanes differ."""
    a, b = spreads
    zeros = min(a.zeros, b.zeros)
    for one, other in ((a, b), (b, a)):
        if not one.varying and one.zeros >= other.varying.bit_length():
            return Spread(other.varying, zeros)
    varying = a.varying | b.varying
    return Spread(-(varying & -varying) & _mask(w), zeros)


def _product(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    a, b = spreads
    varying = a.varying | b.varying
    return Spread(-(varying & -varying) & _mask(w) if varying else 0, min(a.zeros + b.zeros, w))


def _multiply_add(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    return _sum([_product(spreads[:2], None, w), spreads[2]], None, w)


def _conjunction(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread:
    varying = spreads[0].varying | spreads[1].varying
    for number in constants:
        varying &= _mask(w) if number is None else number
    return Spread(varying, max(spread.zeros for spread in spreads))


def _bitwise(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    varying = 0
    for spread in spreads:
        varying |= spread.varying
    return Spread(varying & _mask(w), min(spread.zeros for spread in spreads) if len(spreads) > 1 else 0)


def _left(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread | None:
    by = constants[1]
    if by is None:
        return None
    return Spread(spreads[0].varying << min(by, w) & _mask(w), min(spreads[0].zeros + by, w))


def _right(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread | None:
    """Only where the sign does not vary, whose copies come in from above."""
    by, varying = constants[1], spreads[0].varying & _mask(w)
    if by is None or varying >> (w - 1):
        return None
    return Spread(varying >> min(by, w), max(spreads[0].zeros - by, 0))


def _same(spreads: Sequence[Spread], _: object, w: int) -> Spread | None:
    """A copy, or a conversion from a type of this width; only where the sign does not vary."""
    varying = spreads[0].varying & _mask(w)
    return None if varying >> (w - 1) and w > 1 else Spread(varying, min(spreads[0].zeros, w))


def _mask(w: int) -> int:
    return (1 << w) - 1


_Rule: TypeAlias = Callable[[Sequence[Spread], Sequence[int | None], int], Spread | None]
_CONVERSIONS = [f"cvt.{kind}{bits}" for kind in "us" for bits in (16, 32, 64)]
_RULES: Mapping[str, tuple[_Rule, int]] = {
    "mov": (_same, 1),
    "add": (_sum, 2),
    "mul.lo": (_product, 2),
    "mad.lo": (_multiply_add, 3),
    "and": (_conjunction, 2),
    "or": (_bitwise, 2),
    "xor": (_bitwise, 2),
    "not": (_bitwise, 1),
    "shl": (_left, 2),
    "shr": (_right, 2),
    **dict.fromkeys(_CONVERSIONS, (_same, 1)),
}
"""What is known of a result, and of how many sources it is computed."""
