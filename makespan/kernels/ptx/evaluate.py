"""The exact computations of integer and predicate instructions; results of all others are unknown.

Values are those of `makespan.kernels.flow.arithmetic`. A source is cut to the width of its type when it is read, a
result when it is written; a result of `cvt` and `ld` with a signed type is extended to 64 bits, because the register
may be wider than the type.

Glossary: w width in bits, m mask of w ones, s the sign bit alone; a, b, c sources in the order of the operands.

Source: NVIDIA, Parallel Thread Execution ISA, version 9.0, chapter 9 (Instruction Set); the type of an instruction is
that of its opcode, never that of a register.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from makespan.kernels.flow import SHARED_REGISTER, Computation, ParameterValue, SourceOperand
from makespan.kernels.flow.arithmetic import (
    TESTS,
    at_most,
    conjunction,
    disjunction,
    division,
    elementwise,
    exclusive,
    extract_field,
    ieee,
    insert_field,
    look_up,
    ones,
    product,
    select,
    select_known,
    shifted_right,
    sign_extend,
    signed_division,
    truth_bit,
    wide_product,
)
from makespan.kernels.ptx.effects import PTX, PtxAccess
from makespan.kernels.ptx.module import PtxInstruction

_SPECIAL = PTX.registers.names
_REGISTER = re.compile(r"[A-Za-z_$%][A-Za-z0-9_$]*")
_PAIR = re.compile(r"\{([A-Za-z_$%][A-Za-z0-9_$]*),\s*([A-Za-z_$%][A-Za-z0-9_$]*)\}")
_PARAMETER = re.compile(r"\[([A-Za-z_$%][A-Za-z0-9_$]*)(?:\+0)?\]")
_WHOLE = re.compile(r"([-+]?)(?:0[xX]([0-9A-Fa-f]{1,16})|0([0-7]{1,22})|([1-9][0-9]{0,19}|0))U?")
_BITS = re.compile(r"0f([0-9A-Fa-f]{8})|0d([0-9A-Fa-f]{16})", re.IGNORECASE)
_TYPE = re.compile(r"(?P<kind>[busf])(?P<width>8|16|32|64)|(?P<pred>pred)")
_LANES = {"WARP_SZ": 32}


class _PtxMeaning(NamedTuple):
    """The meaning of an opcode: the types of its sources, and what it computes."""

    types: tuple[str, ...]
    compute: Callable[..., tuple[Any, ...]]
    is_lenient: bool = False
    most_results: int = 1


def computation(
    instruction: PtxInstruction, access: PtxAccess, parameters: Mapping[str, ParameterValue]
) -> Computation | None:
    """Return what an instruction computes; None where that is not known for sure.

    Args:
        access: what `register_accesses` says of it.
        parameters: the known parameters of the kernel, by PTX name.
    """
    operands = instruction.operands
    if not operands or (form := _meaning_of(instruction, parameters)) is None:
        return None
    results = _results(operands[0], access)
    texts = () if not form.types else operands[1:]
    if len(texts) == 1 and (pair := _PAIR.fullmatch(texts[0])):  # a vector operand stands for two sources
        texts = pair.groups()
    if results is None or len(results) > form.most_results or len(texts) != len(form.types):
        return None
    sources = [_source(text, kind, access) for text, kind in zip(texts, form.types, strict=True)]
    known = [source for source in sources if source is not None]
    return Computation(results, tuple(known), form.compute, form.is_lenient) if len(known) == len(sources) else None


def literal(text: str, kind: str) -> int | None:
    """Return the bits of a number in an instruction with sources of type `kind`; None for any other text.

    >>> literal("-1", "s16"), literal("010", "u32"), literal("0f3F800000", "b32"), literal("0f3F800000", "f64")
    (65535, 8, 1065353216, None)
    """
    if bits := _BITS.fullmatch(text):
        group = 1 if bits[1] else 2
        return int(bits[group], 16) if kind in (("f32", "b32") if group == 1 else ("f64", "b64")) else None
    whole = _WHOLE.fullmatch(text)
    if whole is None or kind.startswith("f"):
        return None
    sign, hexadecimal, octal, decimal = whole.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    value = -value if sign == "-" else value
    return int(value != 0) if kind == "pred" else value & ones(width(kind))


def width(kind: str) -> int:
    """Return the bits of a value of a type such as u32, b64 or pred."""
    return 1 if kind == "pred" else int(kind[1:])


def _results(operand: str, access: PtxAccess) -> tuple[str | None, ...] | None:
    pair = _PAIR.fullmatch(operand)
    names = pair.groups() if pair else tuple(operand.split("|"))
    if not all(_REGISTER.fullmatch(name) for name in names):
        return None
    own = [access.own(name) for name in names]
    return tuple(None if name in ("_", SHARED_REGISTER) else name for name in own)


def _source(text: str, kind: str, access: PtxAccess) -> SourceOperand | None:
    is_negated = kind == "pred" and text.startswith("!")
    name, mask = text[is_negated:], ones(width(kind))
    number = literal(name, kind) if name not in _LANES else _LANES[name] & mask
    if number is not None:
        return SourceOperand(None, number, mask, is_negated)
    if name in _SPECIAL:
        return SourceOperand(name, None, mask, is_negated)
    return SourceOperand(access.own(name), None, mask, is_negated) if _REGISTER.fullmatch(name) else None


def _meaning_of(instruction: PtxInstruction, parameters: Mapping[str, ParameterValue]) -> _PtxMeaning | None:
    if instruction.opcode.startswith(("ld.param.", "ld.param::entry.")):
        return _parameter(instruction, parameters)
    form = _opcode_meaning(instruction.opcode)
    if form is not None and instruction.name == "mov":
        packs = len(instruction.operands) == 2 and _PAIR.fullmatch(instruction.operands[1])
        unpacks = _PAIR.fullmatch(instruction.operands[0])
        return _vector_move(form.types[0], is_pack=packs is not None) if packs or unpacks else form
    if form is not None and instruction.operands[0].startswith("{"):
        return None
    return form


def _parameter(instruction: PtxInstruction, parameters: Mapping[str, ParameterValue]) -> _PtxMeaning | None:
    """Return the meaning of a load of a parameter whose value is known, or of its lowest bytes."""
    *_, kind = instruction.opcode.split(".")
    match = _PARAMETER.fullmatch(instruction.operands[1]) if len(instruction.operands) == 2 else None
    found = parameters.get(match[1]) if match else None
    if found is None or instruction.opcode.count(".") != 2 or not _TYPE.fullmatch(kind) or kind == "pred":
        return None
    w = width(kind)
    if w > found.bits:  # a load beyond the parameter reads something else
        return None
    value = sign_extend(found.value & ones(w), w) if kind.startswith("s") else found.value & ones(w)
    return _PtxMeaning((), lambda: (value,))


def _vector_move(kind: str, *, is_pack: bool) -> _PtxMeaning | None:
    if kind not in ("b32", "b64"):
        return None
    half = width(kind) // 2
    if is_pack:
        return _PtxMeaning((f"b{half}", f"b{half}"), lambda a, b: (a | b << half,))
    return _PtxMeaning((kind,), lambda a: (a & ones(half), a >> half), most_results=2)


@cache
def _opcode_meaning(opcode: str) -> _PtxMeaning | None:
    name, *modifiers = opcode.split(".")
    if not modifiers or _TYPE.fullmatch(modifiers[-1]) is None:
        return None
    kind = modifiers.pop()
    if name in ("setp", "set"):
        return _comparison(name, modifiers, kind)
    if name == "cvt" and len(modifiers) == 1 and _is_integer(modifiers[0]) and _is_integer(kind):
        return _PtxMeaning((kind,), _converting(modifiers[0], kind))
    key = ".".join((name, *modifiers))
    if key in ("mov", "selp"):
        return _moving(key, kind)
    if kind == "pred" or kind.startswith("b"):
        return _bitwise(key, kind)
    return _arithmetic(key, kind) if _is_integer(kind) and width(kind) > 8 else None


def _moving(key: str, kind: str) -> _PtxMeaning | None:
    if kind.endswith("8"):
        return None
    if key == "mov":
        return _PtxMeaning((kind,), lambda a: (a,))
    return _PtxMeaning((kind, kind, "pred"), select_known, is_lenient=True) if kind != "pred" else None


def _bitwise(key: str, kind: str) -> _PtxMeaning | None:
    w = width(kind)
    m = ones(w)
    if key in ("and", "or", "xor", "not") and w != 8:
        if key == "not":
            return _PtxMeaning((kind,), lambda a: (a ^ m,))
        compute, is_lenient = {"and": (conjunction, True), "or": (disjunction(m), True), "xor": (exclusive, False)}[key]
        return _PtxMeaning((kind, kind), compute, is_lenient)
    if key == "shl" and w >= 16:
        return _PtxMeaning((kind, "u32"), lambda a, b: (select(truth_bit(b < w), (a << at_most(b, 63)) & m, 0),))
    if key == "shr" and w >= 16:
        return _PtxMeaning((kind, "u32"), lambda a, b: (shifted_right(a, b, w, signed=False),))
    if key == "cnot" and w >= 16:
        return _PtxMeaning((kind,), lambda a: (truth_bit(a == 0),))
    if w < 32:
        return None
    match key:
        case "popc":
            return _PtxMeaning((kind,), elementwise(int.bit_count))
        case "clz":
            return _PtxMeaning((kind,), elementwise(lambda a: w - a.bit_length()))
        case "brev":
            return _PtxMeaning((kind,), elementwise(lambda a: int(f"{a:0{w}b}"[::-1], 2)))
        case "bfi":
            return _PtxMeaning(
                (kind, kind, "u32", "u32"), elementwise(lambda a, b, c, d: insert_field(a, b, c & 255, d & 255, w))
            )
        case "lop3" if w == 32:
            return _PtxMeaning((kind, kind, kind, "u32"), elementwise(look_up))
        case _:
            return None


def _arithmetic(key: str, kind: str) -> _PtxMeaning | None:
    w, signed = width(kind), kind.startswith("s")
    m, s = ones(w), 2 ** (w - 1)
    bias = s if signed else 0  # flipping the sign bit turns a signed order into an unsigned one
    two = (kind, kind)
    match key:
        case "add":
            return _PtxMeaning(two, lambda a, b: ((a + b) & m,))
        case "sub":
            return _PtxMeaning(two, lambda a, b: ((a - b) & m,))
        case "min":
            return _PtxMeaning(two, lambda a, b: (select(truth_bit((a ^ bias) < (b ^ bias)), a, b),))
        case "max":
            return _PtxMeaning(two, lambda a, b: (select(truth_bit((a ^ bias) > (b ^ bias)), a, b),))
        case "div" | "rem":
            is_rest = key == "rem"
            return _PtxMeaning(two, signed_division(w, remainder=is_rest) if signed else division(remainder=is_rest))
        case "abs" if signed:
            return _PtxMeaning((kind,), lambda a: (select(truth_bit(a >= s), (0 - a) & m, a),))
        case "neg" if signed:
            return _PtxMeaning((kind,), lambda a: ((0 - a) & m,))
        case "shr":
            return _PtxMeaning((kind, "u32"), lambda a, b: (shifted_right(a, b, w, signed=signed),))
        case "bfe" if w >= 32:
            return _PtxMeaning(
                (kind, "u32", "u32"), elementwise(lambda a, b, c: extract_field(a, b & 255, c & 255, w, signed))
            )
        case _:
            return _multiplication(key, kind)


def _multiplication(key: str, kind: str) -> _PtxMeaning | None:
    w, signed = width(kind), kind.startswith("s")
    m, low = ones(w), ones(24)  # mul24 multiplies the lowest 24 bits
    two, three = (kind, kind), (kind, kind, kind)
    match key:
        case "mul.lo":
            return _PtxMeaning(two, lambda a, b: ((a * b) & m,))
        case "mad.lo":
            return _PtxMeaning(three, lambda a, b, c: ((a * b + c) & m,))
        case "mul.hi":
            return _PtxMeaning(two, elementwise(lambda a, b: product(a, b, w, signed) >> w & m))
        case "mad.hi":
            return _PtxMeaning(three, elementwise(lambda a, b, c: ((product(a, b, w, signed) >> w) + c) & m))
        case "mul.wide" if w < 64:
            return _PtxMeaning(two, lambda a, b: (wide_product(a, b, w, signed),))
        case "mad.wide" if w < 64:
            wide = (kind, kind, f"{kind[0]}{2 * w}")
            return _PtxMeaning(wide, lambda a, b, c: ((wide_product(a, b, w, signed) + c) & ones(2 * w),))
        case "mul24.lo" if w == 32:
            return _PtxMeaning(two, elementwise(lambda a, b: product(a & low, b & low, 24, signed) & m))
        case "mad24.lo" if w == 32:
            return _PtxMeaning(three, elementwise(lambda a, b, c: (product(a & low, b & low, 24, signed) + c) & m))
        case _:
            return None


UNSIGNED_TESTS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINED = ("and", "or", "xor")


def _comparison(name: str, modifiers: list[str], kind: str) -> _PtxMeaning | None:
    if not modifiers or kind == "pred" or kind.endswith("8"):
        return None
    test = _float_test(modifiers[0], width(kind)) if kind.startswith("f") else _integer_test(modifiers[0], kind)
    rest = [word for word in modifiers[1:] if word != "ftz"]  # subnormal numbers are unknown in any case
    if test is None or (len(rest) != len(modifiers) - 1 and kind != "f32"):
        return None
    if name == "set":
        return (
            _PtxMeaning((kind, kind), lambda a, b: (_times(test(a, b), ones(32)),))
            if rest in (["u32"], ["s32"])
            else None
        )
    if not rest:
        return _PtxMeaning((kind, kind), lambda a, b: _with_opposite(test(a, b)), most_results=2)
    if len(rest) != 1 or rest[0] not in _COMBINED:
        return None
    combine = {"and": conjunction, "or": disjunction(1), "xor": exclusive}[rest[0]]

    def compute(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        p, q = _with_opposite(None if a is None or b is None else test(a, b))  # setp writes the test and its opposite
        return (*combine(p, c), *combine(q, c))

    return _PtxMeaning((kind, kind, "pred"), compute, is_lenient=True, most_results=2)


def _integer_test(test: str, kind: str) -> Callable[[Any, Any], Any] | None:
    if test in UNSIGNED_TESTS:
        if not kind.startswith("u"):
            return None
        test = UNSIGNED_TESTS[test]
    if test not in TESTS or (kind.startswith("b") and test not in ("eq", "ne")):
        return None
    compare = TESTS[test]
    bias = 2 ** (width(kind) - 1) if kind.startswith("s") else 0
    return lambda a, b: truth_bit(compare(a ^ bias, b ^ bias))


def _float_test(test: str, w: int) -> Callable[[Any, Any], Any] | None:
    """Return a comparison of floats to 0 or 1; unknown for subnormal ones, which some targets take for zero."""
    ordered = test.removesuffix("u") if test != "u" else test
    if w < 32 or not (ordered in TESTS or test in ("num", "nan")):
        return None

    def compare(a: int, b: int) -> int | None:
        x, y = ieee(a, w), ieee(b, w)
        if x is None or y is None:
            return None
        unordered = math.isnan(x) or math.isnan(y)  # a test with u holds for NaN, any other fails
        if test in ("num", "nan"):
            return int(unordered == (test == "nan"))
        return int(test != ordered if unordered else TESTS[ordered](x, y))

    lifted = elementwise(compare)
    return lambda a, b: lifted(a, b)[0]


def _with_opposite(truth: Any) -> tuple[Any, Any]:
    return (None, None) if truth is None else (truth, 1 - truth)


def _times(truth: Any, factor: int) -> Any:
    return None if truth is None else truth * factor


def _converting(to: str, kind: str) -> Callable[[Any], tuple[Any]]:
    def compute(a: Any) -> tuple[Any]:
        found = (sign_extend(a, width(kind)) if kind.startswith("s") else a) & ones(width(to))
        return (sign_extend(found, width(to)) if to.startswith("s") else found,)

    return compute


def _is_integer(kind: str) -> bool:
    return re.fullmatch(r"[us](8|16|32|64)", kind) is not None
