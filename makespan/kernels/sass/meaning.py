"""The meaning of integer opcodes, and how a meaning becomes the computation of an instruction.

A computation adds signs, widths, predicates and constants to the function that the opcode means.

The sum of three numbers carries 0, 1 or 2: its first predicate tells that it is at least 1, its second that it is 2.
Where `-R4` is a summand, it is `~R4 + 1`, so that it carries for 0.

Source: F. Ekstrand and others, Mesa, src/nouveau/compiler/nak/ir.rs and ir/int_alu.rs, implementations of `Foldable`,
which its hw_tests.rs compares with GPUs (IADD3, IADD3.X, LEA, LEA.X, LOP3, SHF, FLO, PRMT); the rest by what ptxas
makes of PTX instructions: it translates them one to one, and PTX says what they compute.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from makespan.kernels.flow import Computation, SourceOperand
from makespan.kernels.flow.arithmetic import (
    ALL,
    as_signed,
    at_most,
    elementwise,
    extract_field,
    look_up,
    ones,
    select,
    shifted_right,
    sign_extend,
    truth_bit,
    wide_product,
)
from makespan.kernels.sass.operands import (
    OperandValue,
    SassOperands,
    constant_place,
    predicate_name,
    predicate_source,
    register_names,
    value_sources,
)

_M = ones(32)

KnownBytes: TypeAlias = Mapping[tuple[int, int], int]
"""The known bytes of constants, by bank and offset."""

OpcodeModifiers: TypeAlias = tuple[str, ...]


class OpcodeMeaning(NamedTuple):
    """The function of an instruction: from values and predicates that it reads to a register and predicates.

    Args:
        compute: from values without sign, then predicates, to the register (if it writes one), then predicates.
        width: of the register that is written, in bits.
        defaults: the predicates that are read, where the text leaves them out.
    """

    values: tuple[OperandValue, ...]
    compute: Callable[..., tuple[Any, ...]]
    width: int = 32
    defaults: tuple[str, ...] = ()
    is_lenient: bool = False

    def computation(self, operands: SassOperands, known: KnownBytes) -> Computation | None:
        """Return the computation with these operands; None where one of them has another form."""
        registers = register_names(operands.register, self.width) if operands.register else ()
        found = [value_sources(value) for value in self.values]
        parts = [part for part in found if part is not None]
        if registers is None or len(parts) < len(found) or len(operands.read) > len(self.defaults):
            return None
        read = (*operands.read, *self.defaults[len(operands.read) :])  # texts leave out default predicates
        inputs = [_resolve_constant(source, known) for part in parts for source in part] + [
            predicate_source(text) for text in read
        ]
        widths, written, compute = [len(part) for part in parts], len(operands.written), self.compute

        def split_up(*flat: Any) -> tuple[Any, ...]:
            rest, values = list(flat), []
            for width in widths:
                low, *high = rest[:width]
                values.append(low if not high else None if low is None or high[0] is None else low | high[0] << 32)
                del rest[:width]
            result = compute(*values, *rest)
            if not registers:
                return result[:written]
            whole, *predicates = result
            halves = [None if whole is None else whole >> 32 * part & _M for part in range(len(registers))]
            return (*halves, *predicates[:written])

        results = (*registers, *map(predicate_name, operands.written))
        return Computation(results, tuple(inputs), split_up, self.is_lenient)


MeaningRule: TypeAlias = Callable[[OpcodeModifiers, SassOperands], OpcodeMeaning | None]
"""A function from modifiers and operands to the meaning of an opcode; None where it is not known."""


def has_only(modifiers: OpcodeModifiers, *allowed: str) -> bool:
    """Return whether there are no other modifiers than these, and none twice."""
    return set(modifiers) <= set(allowed) and len(set(modifiers)) == len(modifiers)


def with_signs(
    values: tuple[OperandValue, ...], compute: Callable[..., tuple[Any, ...]]
) -> Callable[..., tuple[Any, ...]]:
    """Return the computation, applied to values with the signs that they have."""
    if not any(value.sign for value in values):
        return compute

    def applied(*given: Any) -> tuple[Any, ...]:
        found = [_with_sign(a, value.sign, value.width) for a, value in zip(given, values, strict=False)]
        return compute(*found, *given[len(values) :])

    return applied


def _with_sign(a: Any, sign: str, w: int) -> Any:
    if a is None or not sign:
        return a
    return a ^ ones(w) if sign == "~" else (0 - a) & ones(w)


def known_word(bank: int, offset: int, known: KnownBytes, size: int = 4) -> int | None:
    """Return `size` bytes of constants as a number; None unless all of them are known."""
    found = [known.get((bank, offset + at)) for at in range(size)]
    return None if None in found else int.from_bytes(bytes(byte or 0 for byte in found), "little")


def _resolve_constant(source: SourceOperand, known: KnownBytes) -> SourceOperand:
    at = constant_place(source.register or "")
    value = known_word(*at, known) if at else None
    return source if value is None else SourceOperand(None, value, source.mask)


# ---- sums and products


def _summand(a: Any, sign: str) -> Any:
    """Return a number as it is added, so that it carries as the instruction does."""
    return a if not sign else (a ^ _M) + (1 if sign == "-" else 0)  # the carry of ~a + 1 is that of the hardware


def _sum(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # IADD3, IADD and VIADD.
    count, values = len(operands.values), operands.values
    if not has_only(modifiers, "X", "64") or count not in (2, 3):
        return None
    if "64" in modifiers:
        if "X" in modifiers or operands.written != tuple(p for p in operands.written if p.endswith("T")):
            return None
        wide = tuple(value._replace(width=64) for value in values)
        return OpcodeMeaning(wide, with_signs(wide, lambda *terms: (_total(terms, ALL), None, None)), 64)
    if "X" in modifiers and any(value.sign == "-" for value in values):
        return None
    signs = [value.sign for value in values]

    def compute(*given: Any) -> tuple[Any, ...]:
        total = _total([_summand(a, sign) for a, sign in zip(given, signs, strict=False)] + [*given[count:]], ALL)
        return total & _M, truth_bit(total >> 32 >= 1), truth_bit(total >> 32 >= 2)

    return OpcodeMeaning(values, compute, defaults=("!PT", "!PT") if "X" in modifiers else ())


def _total(terms: Any, mask: int) -> Any:
    found = 0
    for term in terms:
        found = found + term
    return found & mask


def _product(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # IMAD; the third value of .WIDE and .HI has 64 bits.
    # Source: IMAD.HI of 64 bits: the sequence that ptxas makes of `div.u32`, and `nvdisasm -plr`.
    if len(operands.values) != 3 or not has_only(modifiers, "MOV", "SHL", "IADD", "U32", "WIDE", "HI", "X"):
        return None
    a, b, c = operands.values
    defaults = ("!PT",) if "X" in modifiers else ()
    if "X" in modifiers and c.sign == "-":
        return None
    if not {"WIDE", "HI"} & set(modifiers):
        if operands.written:
            return None
        compute = with_signs((a, b, c), lambda a, b, c, p=0: ((a * b + c + p) & _M,))
        return OpcodeMeaning((a, b, c), compute, defaults=defaults)
    signed, carries = "U32" not in modifiers, any(predicate_name(text) for text in operands.written)
    if a.sign or b.sign or (carries and (signed or c.sign == "-" or "HI" in modifiers)):
        return None
    values = (a, b, c._replace(width=64))

    def wide(a: Any, b: Any, c: Any, p: Any = 0) -> tuple[Any, ...]:
        return ((wide_product(a, b, 32, signed) + c + p) & ALL,)

    if "HI" in modifiers:
        compute = with_signs(values, lambda *given: (wide(*given)[0] >> 32,))
        return OpcodeMeaning(values, compute, defaults=defaults)
    if not carries:
        return OpcodeMeaning(values, with_signs(values, lambda *given: (*wide(*given), None)), 64, defaults)
    over = elementwise(lambda a, b, c, p=0: a * b + c + p >> 64)  # Python ints do not wrap, so this is the carry
    return OpcodeMeaning(values, with_signs(values, lambda *given: (*wide(*given), *over(*given))), 64, defaults)


def _distance(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # VABSDIFF: the distance of two values, plus the third.
    if modifiers not in ((), ("U32",)) or len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None
    signed = not modifiers
    return OpcodeMeaning(
        operands.values,
        elementwise(lambda a, b, c: abs((as_signed(a, 32) - as_signed(b, 32)) if signed else a - b) + c & _M),
    )


def _scaled_sum(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # LEA: a shifted left, or what a shift of 64 bits leaves in the upper half, and b.
    *values, by = operands.values
    shift, is_high, extends = by.number, "HI" in modifiers, "SX32" in modifiers
    if (
        not has_only(modifiers, "HI", "X", "SX32")
        or shift is None
        or shift > 31
        or len(values) != 2 + (is_high > extends)
    ):
        return None
    carries_in = "X" in modifiers
    a, b, *above = values
    if (extends and not is_high) or any(value.sign for value in above):
        return None
    if any(value.sign == ("-" if carries_in else "~") for value in (a, b)):
        return None

    def compute(*given: Any) -> tuple[Any, ...]:
        low, b_, *rest = given
        high = rest.pop(0) if above else sign_extend(low, 32) >> 32 if extends else 0
        shifted = ((low | high << 32) >> (32 - shift)) & _M if is_high else low << shift & _M
        total = _summand(shifted, a.sign) + _summand(b_, b.sign) + (rest[0] if carries_in else 0)
        return total & _M, truth_bit(total >> 32 >= 1)

    return OpcodeMeaning(tuple(values), compute, defaults=("!PT",) if carries_in else ())


# ---- bits


def _shift(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # SHF: 64 bits, the low half first, shifted by the second value; the low or the high half of what that makes.
    kinds = {"U32": 32, "S32": 32, "U64": 64, "S64": 64}
    found = [word for word in modifiers if word in kinds]
    if (
        not has_only(modifiers, "L", "R", "W", "HI", *kinds)
        or len(found) != 1
        or ("L" in modifiers) == ("R" in modifiers)
    ):
        return None
    if len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None
    w, signed = kinds[found[0]], found[0].startswith("S")

    def compute(low: Any, by: Any, high: Any) -> tuple[Any, ...]:
        by = by & (w - 1) if "W" in modifiers else at_most(by, w)  # without .W larger shifts saturate
        whole = low | high << 32
        if "R" in modifiers:
            whole = shifted_right(whole, by, 64, signed=signed)
        else:
            whole = select(truth_bit(by < 64), (whole << at_most(by, 63)) & ALL, 0)
        return (whole >> 32 if "HI" in modifiers else whole & _M,)

    return OpcodeMeaning(operands.values, compute)


def _logic(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # LOP3.LUT; its predicate tells whether any bit is set, or else the predicate that it reads.
    if modifiers != ("LUT",) or len(operands.values) != 4 or len(operands.read) != 1 or len(operands.written) > 1:
        return None
    *values, table = operands.values
    number = table.number
    if number is None or number > 255:
        return None
    function = elementwise(lambda a, b, c: look_up(a, b, c, number))

    def compute(a: Any, b: Any, c: Any, p: Any) -> tuple[Any, ...]:
        (found,) = function(a, b, c)
        return found, truth_bit(found != 0) | p

    return OpcodeMeaning(tuple(values), with_signs(tuple(values), compute), defaults=("!PT",))


def _bytes(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # PRMT: bytes of the first and third value, as the second selects them, or copies of their sign.
    if modifiers or len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None

    def permuted(a: int, selector: int, b: int) -> int:
        whole, found = a | b << 32, 0
        for at in range(4):
            nibble = selector >> 4 * at & 15  # its top bit asks for copies of the sign of the byte
            byte = whole >> 8 * (nibble & 7) & 255
            found |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * at
        return found

    return OpcodeMeaning(operands.values, elementwise(permuted))


def _field(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # SGXT: the lowest bits, extended.
    if not has_only(modifiers, "U32", "W") or len(operands.values) != 2 or any(value.sign for value in operands.values):
        return None
    signed, wraps = "U32" not in modifiers, "W" in modifiers
    return OpcodeMeaning(
        operands.values, elementwise(lambda a, n: extract_field(a, 0, n & 31 if wraps else min(n, 32), 32, signed))
    )


def _mask(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # BMSK: a run of ones, given its position and length.
    if not has_only(modifiers, "W") or len(operands.values) != 2 or any(value.sign for value in operands.values):
        return None
    wraps = "W" in modifiers

    def compute(position: int, length: int) -> int:
        position, length = (n & 31 if wraps else min(n, 32) for n in (position, length))
        return ones(length) << position & _M

    return OpcodeMeaning(operands.values, elementwise(compute))


def _of_one(function: Callable[[int], int | None], *allowed: str) -> MeaningRule:
    def make(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
        if not has_only(modifiers, *allowed) or len(operands.values) != 1 or operands.written:
            return None
        return OpcodeMeaning(operands.values, with_signs(operands.values, elementwise(function)))

    return make


def _leading(modifiers: OpcodeModifiers, operands: SassOperands) -> OpcodeMeaning | None:
    # FLO: the number of the highest bit unlike the sign, or its distance from the top; minus one without such a bit.
    if not has_only(modifiers, "U32", "SH") or len(operands.values) != 1 or operands.written:
        return None

    def compute(a: int) -> int | None:
        bits = a ^ _M if a >> 31 and "U32" not in modifiers else a
        if "SH" in modifiers:
            return 32 - bits.bit_length() if bits else None
        return (bits.bit_length() - 1) & _M

    return OpcodeMeaning(operands.values, with_signs(operands.values, elementwise(compute)))


INTEGERS: Mapping[str, MeaningRule] = {
    "IADD3": _sum,
    "IADD": _sum,
    "VIADD": _sum,
    "VABSDIFF": _distance,
    "IMAD": _product,
    "LEA": _scaled_sum,
    "SHF": _shift,
    "LOP3": _logic,
    "PRMT": _bytes,
    "SGXT": _field,
    "BMSK": _mask,
    "POPC": _of_one(int.bit_count),
    "BREV": _of_one(lambda a: int(f"{a:032b}"[::-1], 2)),
    "IABS": _of_one(lambda a: abs(as_signed(a, 32)) & _M),
    "FLO": _leading,
}
