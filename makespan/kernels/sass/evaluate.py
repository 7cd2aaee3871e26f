"""The exact computations of integer and predicate instructions; results of all others are unknown.

Values are those of `makespan.kernels.flow.arithmetic`. An instruction of the uniform datapath (UIADD3) computes as its
twin (IADD3) does.

Glossary: a, b, c values in the order of the operands; p, q predicates that are read; m mask of 32 ones.

Source: that of `makespan.kernels.sass.meaning`, which has ISETP, PLOP3 and IMNMX, too.
"""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from makespan.kernels.flow import Computation, SourceOperand
from makespan.kernels.flow.arithmetic import (
    TESTS,
    conjunction,
    disjunction,
    elementwise,
    exclusive,
    ones,
    select,
    select_known,
    sign_extend,
    truth_bit,
)
from makespan.kernels.sass.meaning import (
    INTEGERS,
    KnownBytes,
    MeaningRule,
    OpcodeMeaning,
    OpcodeModifiers,
    has_only,
    known_word,
    with_signs,
)
from makespan.kernels.sass.module import SassInstruction
from makespan.kernels.sass.operands import (
    OperandValue,
    SassOperands,
    constant_place,
    predicate_name,
    predicate_source,
    register_names,
    split_operands,
)

_M = ones(32)
_NOTHING: KnownBytes = MappingProxyType({})
_TESTS = {name.upper(): compare for name, compare in TESTS.items()}


def computation(instruction: SassInstruction, known: KnownBytes = _NOTHING) -> Computation | None:
    """Return what an instruction computes; None where that is not known for sure."""
    if instruction.name in ("S2R", "S2UR", "CS2R"):
        return _special(instruction)
    if instruction.name in ("PLOP3", "UPLOP3"):
        return _predicate_logic(instruction)
    if instruction.name in ("VOTE", "VOTEU"):
        return _vote(instruction)
    if instruction.name in ("LDC", "LDCU", "ULDC") and instruction.modifiers in _PARTS:
        return _part(instruction, known)
    meant = _MEANINGS.get(vector_opcode(instruction.name))
    operands = split_operands(instruction.operands, has_register=meant is not _comparison)
    if meant is None or operands is None or (meaning := meant(instruction.modifiers, operands)) is None:
        return None
    return meaning.computation(operands, known)


def vector_opcode(name: str) -> str:
    """Return the opcode of the vector datapath that computes the same."""
    return name[1:] if name.startswith("U") and name[1:] in _MEANINGS else name


# ---- predicates and choices


def _comparison(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # ISETP; .EX goes on from a comparison of lower halves, which tells where both values are equal.
    test, *rest = modifiers or ("",)
    combined = [word for word in rest if word in ("AND", "OR", "XOR")]
    kinds = [word for word in rest if word in ("U32", "U64", "S64")]
    if test not in _TESTS or len(combined) != 1 or len(kinds) > 1 or not has_only((*rest,), *combined, *kinds, "EX"):
        return None
    if len(operands.values) != 2 or len(operands.written) != 2 or any(v.sign for v in operands.values):
        return None
    kind, extends = kinds[0] if kinds else "S32", "EX" in rest
    w, compare = int(kind[1:]), _TESTS[test]
    bias = 2 ** (w - 1) if kind.startswith("S") else 0  # turns signed order into unsigned order
    combine = {"AND": conjunction, "OR": disjunction(1), "XOR": exclusive}[combined[0]]

    def compute(a: Any, b: Any, p: Any, below: Any = None) -> tuple[Any, ...]:
        truth = None
        if a is not None and b is not None:
            truth = truth_bit(compare(a ^ bias, b ^ bias))
            if extends:  # equal upper halves leave the decision to the lower ones
                (truth,) = select_known(below, truth, truth_bit(a == b))
        return (*combine(truth, p), *combine(None if truth is None else 1 - truth, p))

    values = tuple(value._replace(width=w) for value in operands.values)
    return OpcodeMeaning(values, compute, defaults=("PT", "PT") if extends else ("PT",), is_lenient=True)


def _selection(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # SEL: the first value where the predicate holds, else the second.
    if not has_only(modifiers, "64") or len(operands.values) != 2 or len(operands.read) != 1:
        return None
    w = 64 if modifiers else 32
    values = tuple(value._replace(width=w) for value in operands.values)
    return OpcodeMeaning(values, with_signs(values, select_known), w, ("PT",), is_lenient=True)


def _extreme(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # IMNMX and VIMNMX: the lesser value where the predicate holds, else the greater.
    kind = modifiers[0] if modifiers else "S32"
    if len(modifiers) > 1 or kind not in ("U32", "S32", "U64", "S64") or len(operands.values) != 2:
        return None
    if operands.read[1:] not in ((), ("!PT",), ("!UPT",)):
        return None
    w = int(kind[1:])
    bias = 2 ** (w - 1) if kind.startswith("S") else 0
    values = tuple(value._replace(width=w) for value in operands.values)

    def compute(a: Any, b: Any, p: Any, _: Any) -> tuple[Any, ...]:
        is_less = truth_bit((a ^ bias) < (b ^ bias))
        return select(is_less ^ p ^ 1, a, b), None, None

    return OpcodeMeaning(values, with_signs(values, compute), w, ("PT", "!PT"))


def _predicate_logic(instruction: SassInstruction) -> Computation | None:
    # PLOP3.LUT: two functions of the same three predicates, each by its table.
    operands = instruction.operands
    if instruction.modifiers != ("LUT",) or len(operands) != 7:
        return None
    tables = [OperandValue(text).number for text in operands[5:]]
    if any(table is None or table > 255 for table in tables) or any("P" not in text for text in operands[:5]):
        return None

    def compute(*given: Any) -> tuple[Any, ...]:
        return tuple(_look_up_predicates(given, table or 0) for table in tables)

    inputs = tuple(predicate_source(text) for text in operands[2:5])
    return Computation(tuple(map(predicate_name, operands[:2])), inputs, compute, is_lenient=True)


def _look_up_predicates(given: tuple[Any, ...], table: int) -> Any:
    """Return the entry of a table that three predicates number; known where unknown ones do not matter."""
    for number, value in enumerate(given):
        if value is None:
            zero, one = (_look_up_predicates((*given[:number], bit, *given[number + 1 :]), table) for bit in (0, 1))
            return zero if isinstance(zero, int) and isinstance(one, int) and zero == one else None
    (found,) = elementwise(lambda a, b, c: table >> (4 * a + 2 * b + c) & 1)(*given)
    return found


def _vote(instruction: SassInstruction) -> Computation | None:
    # VOTE.ANY and .ALL of a predicate that all threads share.
    if instruction.modifiers not in (("ANY",), ("ALL",)):
        return None
    *written, read = instruction.operands
    if len(written) not in (1, 2) or "P" not in read:
        return None
    *register, out = written
    results = (*(name for text in register for name in register_names(text) or ()), predicate_name(out))
    if len(results) != len(written) or "P" not in out:
        return None
    return Computation(results, (predicate_source(read),), lambda p: (*(None for _ in register), _uniform_value(p)))


def _uniform_value(a: Any) -> Any:
    """Return a value that is the same in all threads; None if it is not."""
    return a if isinstance(a, int) else int(a.flat[0]) if (a == a.flat[0]).all() else None


# ---- moves


def _move(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    if not has_only(modifiers, "64") or len(operands.values) != 1 or operands.written:
        return None
    w = 64 if modifiers else 32
    values = (operands.values[0]._replace(width=w),)
    return OpcodeMeaning(values, with_signs(values, lambda a: (a,)), w)


def _to_uniform(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # R2UR takes the value of one lane, so it is known where all agree.
    moved = _move(modifiers, operands) if not modifiers else None
    return moved and moved._replace(compute=lambda a: (_uniform_value(a),))


def _constant(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    return _move(modifiers, operands) if operands.values and operands.values[0].text.startswith("c[") else None


_PARTS: Mapping[tuple[str, ...], int] = {("U8",): 1, ("S8",): 1, ("U16",): 2, ("S16",): 2}


def _part(instruction: SassInstruction, known: KnownBytes) -> Computation | None:
    register, *rest = instruction.operands
    results, at = register_names(register), constant_place("".join(rest))
    size = _PARTS[instruction.modifiers]
    value = known_word(*at, known, size) if at else None  # only constants that no host can change
    if results is None or value is None:
        return None
    found = sign_extend(value, 8 * size) & _M if instruction.modifiers[0].startswith("S") else value
    return Computation(results, (), lambda: (found,))


def _halves(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # HFMA2 of -0 * 0 and two numbers of 16 bits, by which compilers write constants.
    if not has_only(modifiers, "MMA") or len(operands.values) != 4 or operands.written or operands.read:
        return None
    *zeros, high, low = operands.values
    bits = [_half(value.sign + value.text) for value in (high, low)]
    if [(value.sign, value.text) for value in zeros] != [("-", "RZ"), ("", "RZ")] or None in bits:
        return None
    return OpcodeMeaning((), lambda: ((bits[0] or 0) << 16 | (bits[1] or 0),))


def _half(text: str) -> int | None:
    try:
        number = float(text)
        packed = struct.pack("<e", number)
    except (ValueError, OverflowError):
        return None
    return int.from_bytes(packed, "little") if struct.unpack("<e", packed)[0] == number else None


def _special(instruction: SassInstruction) -> Computation | None:
    # S2R and its like read special registers; a uniform register may take the value of any lane.
    if len(instruction.operands) != 2:
        return None
    register, read = instruction.operands
    is_wide = instruction.name == "CS2R" and "32" not in instruction.modifiers
    results = register_names(register, 64 if is_wide else 32)
    if results is None:
        return None
    if read == "SRZ":
        return Computation(results, (), lambda: (0,) * len(results))
    if is_wide or not read.startswith("SR_"):
        return None
    compute: Callable[[Any], tuple[Any, ...]] = lambda a: (a,)  # noqa: E731 - one of two
    if instruction.name == "S2UR" and not read.startswith("SR_CTAID."):
        compute = lambda a: (_uniform_value(a),)  # noqa: E731 - the other
    return Computation(results, (SourceOperand(read, None, _M),), compute)


_MEANINGS: Mapping[str, MeaningRule] = {
    **INTEGERS,
    "ISETP": _comparison,
    "SEL": _selection,
    "IMNMX": _extreme,
    "VIMNMX": _extreme,
    "MOV": _move,
    "R2UR": _to_uniform,
    "LDC": _constant,
    "LDCU": _constant,
    "ULDC": _constant,
    "HFMA2": _halves,
}
