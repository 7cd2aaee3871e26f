"""The bits in which lanes may differ in results of instructions, see `makespan.kernels.flow.spread`."""

from collections.abc import Callable, Mapping

from makespan.kernels.flow import UNIFORM, LaneSpread, LaneSpreads, Surroundings
from makespan.kernels.flow.arithmetic import look_up, ones
from makespan.kernels.flow.spread import (
    compares_alike,
    spread_of_constant,
    spread_of_left_shift,
    spread_of_product,
    spread_of_right_shift,
    spread_of_sum,
)
from makespan.kernels.sass.effects import SassAccess
from makespan.kernels.sass.evaluate import vector_opcode
from makespan.kernels.sass.meaning import KnownBytes, known_word
from makespan.kernels.sass.module import SassInstruction
from makespan.kernels.sass.operands import (
    OperandValue,
    SassOperands,
    constant_name,
    constant_place,
    predicate_name,
    split_operands,
)

_PURE = frozenset(
    """
    BMSK BREV DADD DFMA DMUL DSETP F2F F2FP F2I FADD FCHK FFMA FLO FMNMX FMUL FRND FSEL FSET FSETP HADD2 HFMA2 HMNMX2
    HMUL2 HSET2 HSETP2 I2F I2FP I2I IABS IADD IADD3 IADD32I IDP IMAD IMNMX ISETP LDC LDCU LEA LOP3 LOP32I MOV MOV32I
    MUFU P2R PLOP3 POPC PRMT R2P SEL SGXT SHF ULDC VABSDIFF VIADD VIADDMNMX VIMNMX VIMNMX3 VOTE
    """.split()  # noqa: SIM905 - a list of so many strings cannot be read
)
"""Opcodes whose results depend alone on what they read, or are the same in all lanes, as those of VOTE are."""

_LOADS = frozenset({"LD", "LDG", "LDS"})
_RACING = frozenset({"STRONG", "MMIO"})
_M = ones(32)
_MIRRORED = {"LT": "GT", "GE": "LE", "LE": "GE", "GT": "LT"}


def sass_spread(
    instruction: SassInstruction, access: SassAccess, spreads: LaneSpreads, around: Surroundings, known: KnownBytes
) -> LaneSpread | None:
    """Return the spread of the result of an instruction, its guard apart; None if nothing is known.

    A warp has each uniform register once. A plain load from a uniform address gives every active lane the same value,
    for it is one access of the warp; loads that may race (STRONG), from local memory, or through a generic address
    that may lead there, do not.
    """
    # one copy for the warp: no lane can differ
    if access.writes and all(name.startswith("U") for name in access.writes):
        return _rule_spread(instruction, access, spreads, around, known) or UNIFORM
    name = vector_opcode(instruction.name)
    if name in ("S2R", "CS2R"):
        return _special(instruction, around)
    is_uniform = all(_is_uniform(read, spreads) for read in access.reads)
    if name in _LOADS:
        return UNIFORM if name != "LD" and is_uniform and _RACING.isdisjoint(instruction.modifiers) else None
    if name == "VOTE":
        return UNIFORM
    if name not in _PURE:
        return None
    ruled = _rule_spread(instruction, access, spreads, around, known)
    return UNIFORM if ruled is None and is_uniform else ruled


def _special(instruction: SassInstruction, around: Surroundings) -> LaneSpread | None:
    read = instruction.operands[-1]
    if read == "SRZ" or read.startswith("SR_CTAID."):
        return UNIFORM
    return around.specials.get(read) if instruction.name == "S2R" else None


def _is_uniform(name: str, spreads: LaneSpreads) -> bool:
    return name.startswith(("U", "c[")) or (name in spreads and not spreads[name].varying)


def _rule_spread(
    instruction: SassInstruction, access: SassAccess, spreads: LaneSpreads, around: Surroundings, known: KnownBytes
) -> LaneSpread | None:
    """Return the spread of the one result by the rule of its opcode; None without a rule that fits."""
    name = vector_opcode(instruction.name)
    has_register = name != "ISETP"
    operands = split_operands(instruction.operands, has_register=has_register)
    if operands is None or not (rule := _RULES.get(name)):
        return None
    found = [_value(value, spreads, around, known) for value in operands.values]
    sources = [spread for spread in found if spread is not None]
    if len(sources) < len(found) or (has_register and len(access.writes) != 1):
        return None
    if not all(predicate_name(read) is None or _is_uniform(read.removeprefix("!"), spreads) for read in operands.read):
        return None
    return rule(instruction.modifiers, operands, sources)


def _value(value: OperandValue, spreads: LaneSpreads, around: Surroundings, known: KnownBytes) -> LaneSpread | None:
    if value.number is not None:
        found: LaneSpread | None = spread_of_constant(value.number)
    elif (at := constant_place(value.text)) is not None:
        number = known_word(*at, known)
        found = around.specials.get(constant_name(*at), UNIFORM) if number is None else spread_of_constant(number)
    else:
        found = spreads.get(value.text, UNIFORM if value.text.startswith("UR") else None)
    if found is None or not value.sign:
        return found
    varying = found.varying
    return LaneSpread(varying, 0) if value.sign == "~" else LaneSpread(-(varying & -varying) & _M, found.zeros)


def _sum(modifiers: tuple[str, ...], _: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    if modifiers:
        return None
    found = sources[0]
    for other in sources[1:]:
        found = spread_of_sum([found, other], None, 32)
    return found


def _product(modifiers: tuple[str, ...], operands: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    if {"WIDE", "HI", "X"} & set(modifiers) or len(sources) != 3:
        return None
    a, b, c = sources
    for value, other in ((operands.values[0], b), (operands.values[1], a)):
        number = value.number
        if number is not None and number.bit_count() == 1:  # a power of two shifts, and keeps lower bits uniform
            return spread_of_sum([_shift_spread(other, number.bit_length() - 1), c], None, 32)
    return spread_of_sum([spread_of_product([a, b], None, 32), c], None, 32)


def _shift_spread(source: LaneSpread, by: int) -> LaneSpread:
    return LaneSpread(source.varying << by & _M, min(source.zeros + by, 32))


def _scaled_sum(modifiers: tuple[str, ...], operands: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    by = operands.values[-1].number
    if modifiers or len(sources) != 3 or by is None or operands.values[0].sign:
        return None
    return spread_of_sum([_shift_spread(sources[0], by), sources[1]], None, 32)


def _shift(modifiers: tuple[str, ...], operands: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    low, by, high = (value.number for value in operands.values)
    if by is None or by > 31 or "W" in modifiers:
        return None
    if modifiers == ("L", "U32") and high == 0:
        return spread_of_left_shift([sources[0]], [None, by], 32)
    if modifiers in (("R", "U32", "HI"), ("R", "S32", "HI")) and low == 0:
        return spread_of_right_shift([sources[2]], [None, by], 32)
    return None


def _logic(modifiers: tuple[str, ...], operands: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    # Bit by bit: a source has a say where the table tells its 0 from its 1 at some value of the others.
    table = operands.values[3].number if len(operands.values) == 4 else None
    if modifiers != ("LUT",) or table is None or any(value.sign for value in operands.values):
        return None
    numbers = [value.number for value in operands.values[:3]]
    may_be = [[0, _M] if number is None else [number] for number in numbers]
    varying, found = 0, 0
    for at in range(3):
        others = [values if k != at else [0] for k, values in enumerate(may_be)]
        for a in others[0]:
            for b in others[1]:
                for c in others[2]:
                    x, y, z = (value ^ (_M if k == at else 0) for k, value in enumerate((a, b, c)))
                    varying |= sources[at].varying & (look_up(a, b, c, table) ^ look_up(x, y, z, table))
    ones_ = [
        ~ones(source.zeros) & _M if number is None else number for source, number in zip(sources, numbers, strict=False)
    ]
    zeros = [_M if number is None else number ^ _M for number in numbers]
    for entry in range(8):
        if table >> entry & 1:
            bits = [ones_[k] if entry >> (2 - k) & 1 else zeros[k] for k in range(3)]
            found |= bits[0] & bits[1] & bits[2]
    return LaneSpread(varying, spread_of_constant(found).zeros if found else 32)


def _move(modifiers: tuple[str, ...], _: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    return sources[0] if not modifiers and len(sources) == 1 else None


def _comparison(modifiers: tuple[str, ...], operands: SassOperands, sources: list[LaneSpread]) -> LaneSpread | None:
    """Return a uniform spread where the bound lies on the border of the range in which lanes may differ."""
    if len(sources) != 2 or {"EX", "U64", "S64"} & set(modifiers):
        return None
    test, (value, bound), number = modifiers[0], sources, operands.values[1].number
    if bound.varying:  # the bound may stand on either side
        test, value, bound = _MIRRORED.get(test, ""), bound, value
        number = operands.values[0].number
    return UNIFORM if compares_alike(test.lower(), value, bound, number, 32) else None


_OperandRule = Callable[[tuple[str, ...], SassOperands, list[LaneSpread]], LaneSpread | None]
_RULES: Mapping[str, _OperandRule] = {
    "IADD3": _sum,
    "IADD": _sum,
    "VIADD": _sum,
    "IMAD": _product,
    "LEA": _scaled_sum,
    "SHF": _shift,
    "LOP3": _logic,
    "MOV": _move,
    "LDC": _move,
    "LDCU": _move,
    "ULDC": _move,
    "ISETP": _comparison,
}
"""The rules for one result of 32 bits, or for a comparison."""
