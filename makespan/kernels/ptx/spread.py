"""The bits in which lanes may differ in results of PTX instructions, see `makespan.kernels.flow.spread`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from makespan.kernels.flow import UNIFORM, LaneSpread, LaneSpreads, ParameterValue
from makespan.kernels.flow.spread import (
    SpreadRule,
    compares_alike,
    spread_of_bitwise,
    spread_of_conjunction,
    spread_of_constant,
    spread_of_copy,
    spread_of_left_shift,
    spread_of_multiply_add,
    spread_of_product,
    spread_of_right_shift,
    spread_of_sum,
)
from makespan.kernels.ptx.effects import PtxAccess
from makespan.kernels.ptx.evaluate import UNSIGNED_TESTS, literal, width
from makespan.kernels.ptx.module import PtxInstruction, names_in

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


class PtxContext(NamedTuple):
    """The facts of the launch and of the declarations, for any instruction.

    Args:
        specials: the spreads of special registers.
        parameters: those that are known.
        is_entry: whether parameters are those of a kernel, the same for all threads.
        symbols: the names of variables; their addresses are uniform.
    """

    specials: LaneSpreads
    parameters: Mapping[str, ParameterValue]
    is_entry: bool
    symbols: frozenset[str]


def ptx_spread(
    instruction: PtxInstruction, access: PtxAccess, spreads: LaneSpreads, around: PtxContext
) -> LaneSpread | None:
    """Return the spread of the result of an instruction, its guard apart; None if nothing is known."""
    found = _result(instruction, access, spreads, around)
    return UNIFORM if found is None and _compares_uniformly(instruction, access, spreads, around) else found


def _result(
    instruction: PtxInstruction, access: PtxAccess, spreads: LaneSpreads, around: PtxContext
) -> LaneSpread | None:
    """Return the spread of the result, but for comparisons at the border of a range.

    A plain load from a uniform address in a space that all threads share gives every active lane the same value: it is
    one access of the warp, and without a data race no lane could tell it from accesses one by one. Loads that may race
    (volatile, relaxed, acquire), from local memory, or through a generic address that may lead there, do not.
    """
    operands = instruction.operands
    kind = instruction.opcode.rpartition(".")[2]
    if instruction.name == "mov" and kind.startswith("f"):  # no address: some write it for a load of the variable
        around = around._replace(symbols=frozenset())  # its value is not the uniform address
    found = [_operand(text, kind, access, spreads, around) for text in operands[1:]]
    known = [spread for spread in found if spread is not None]
    is_uniform = len(known) == len(found) and not any(spread.varying for spread in known)
    match instruction.name:
        case "ld":
            return _load_spread(instruction, around) if is_uniform else None
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
    return UNIFORM if ruled is None and is_uniform else ruled  # a pure function of uniform values is uniform


def _compares_uniformly(
    instruction: PtxInstruction, access: PtxAccess, spreads: LaneSpreads, around: PtxContext
) -> bool:
    """Return whether `setp` compares a value with a bound on the border of the range in which the lanes may differ."""
    match instruction.opcode.split("."):
        case ["setp", test, kind] if _TYPE.fullmatch(kind) and kind[0] in "us" and len(instruction.operands) == 3:
            value, bound = (_operand(text, kind, access, spreads, around) for text in instruction.operands[1:])
            if value is None or bound is None:
                return False
            number = literal(instruction.operands[2], kind)
            return compares_alike(UNSIGNED_TESTS.get(test, test), value, bound, number, width(kind))
        case _:
            return False


def _operand(text: str, kind: str, access: PtxAccess, spreads: LaneSpreads, around: PtxContext) -> LaneSpread | None:
    if _PER_LAUNCH.fullmatch(text) or text in around.specials:
        return around.specials.get(text, UNIFORM)
    if _TYPE.fullmatch(kind) and (number := literal(text, kind)) is not None:
        return spread_of_constant(number)
    names = [access.own(name) for name in names_in(text)]
    if len(names) == 1 and names[0] == text.lstrip("!") and names[0] in spreads:
        return spreads[names[0]]
    shared = (name in around.symbols or (name in spreads and spreads[name].varying == 0) for name in names)
    return UNIFORM if all(shared) else None


def _load_spread(instruction: PtxInstruction, around: PtxContext) -> LaneSpread | None:
    _, *words = instruction.opcode.split(".")
    spaces = {word.partition("::")[0] for word in words} & {"global", "const", "shared", "param"}
    if len(spaces) != 1 or not all(_LOAD_WORDS.fullmatch(word) for word in words):
        return None
    if spaces == {"param"}:
        name = next(iter(names_in("".join(instruction.operands[1:]))), "")
        known = around.parameters.get(name)
        if not around.is_entry or name not in around.symbols:
            return None
        return spread_of_constant(known.value) if known and width(words[-1]) == known.bits else UNIFORM
    return UNIFORM


_CONVERSIONS = [f"cvt.{kind}{bits}" for kind in "us" for bits in (16, 32, 64)]
_RULES: Mapping[str, tuple[SpreadRule, int]] = {
    "mov": (spread_of_copy, 1),
    "add": (spread_of_sum, 2),
    "mul.lo": (spread_of_product, 2),
    "mad.lo": (spread_of_multiply_add, 3),
    "and": (spread_of_conjunction, 2),
    "or": (spread_of_bitwise, 2),
    "xor": (spread_of_bitwise, 2),
    "not": (spread_of_bitwise, 1),
    "shl": (spread_of_left_shift, 2),
    "shr": (spread_of_right_shift, 2),
    **dict.fromkeys(_CONVERSIONS, (spread_of_copy, 1)),
}
"""The rule for a result, and the number of its sources."""
