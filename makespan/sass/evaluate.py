"""What integer and predicate instructions compute, exactly; any other has no computation, so its result is unknown.

Values are those of `makespan.flow.arithmetic`. An instruction of the uniform datapath (UIADD3) computes as its twin
(IADD3) does. What the sum of three numbers carries is 0, 1 or 2: its first predicate tells that it is 1 at least, its
second that it is 2. Where `-R4` is a summand, it is `~R4 + 1`, so that it carries for 0.

Glossary: a, b, c values in the order of the operands; p, q predicates that are read; m mask of 32 ones.

Source: F. Ekstrand and others, Mesa, src/nouveau/compiler/nak/ir.rs and ir/int_alu.rs, implementations of `Foldable`,
which its hw_tests.rs compares with GPUs (IADD3, IADD3.X, LEA, LEA.X, ISETP, LOP3, PLOP3, SHF, IMNMX, FLO, PRMT); the
rest by what ptxas makes of PTX instructions: it translates them one to one, and PTX says what they compute.
"""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from makespan.flow import Computation, Source
from makespan.flow.arithmetic import (
    ALL,
    TESTS,
    as_signed,
    capped,
    conjunction,
    disjunction,
    each,
    extended,
    extracted,
    looked_up,
    ones,
    select,
    selected,
    shifted_right,
    truth_bit,
    wide_product,
)
from makespan.sass.instruction_set import place
from makespan.sass.module import Instruction
from makespan.sass.operands import Operands, Value, names, predicate, predicate_name, sources, split

_M = ones(32)
_NOTHING: Mapping[tuple[int, int], int] = MappingProxyType({})
_TESTS = {name.upper(): compare for name, compare in TESTS.items()}


class _Meaning(NamedTuple):
    """What an instruction computes: of these values and the predicates that it reads, a register and predicates.

    Args:
        compute: from values without sign, then predicates, to the register (if it writes one), then predicates.
        width: of the register that is written, in bits.
        defaults: the predicates that are read, where the text leaves them out.
    """

    values: tuple[Value, ...]
    compute: Callable[..., tuple[Any, ...]]
    width: int = 32
    defaults: tuple[str, ...] = ()
    is_lenient: bool = False


Modifiers = tuple[str, ...]


def computation(instruction: Instruction, known: Mapping[tuple[int, int], int] = _NOTHING) -> Computation | None:
    """What an instruction computes; None where that is not known for sure.

    Args:
        known: what is known of constants, by bank and offset in bytes.
    """
    if instruction.name in ("S2R", "S2UR", "CS2R"):
        return _special(instruction)
    if instruction.name in ("PLOP3", "UPLOP3"):
        return _predicate_logic(instruction)
    if instruction.name in ("VOTE", "VOTEU"):
        return _vote(instruction)
    if instruction.name in ("LDC", "LDCU", "ULDC") and instruction.modifiers in _PARTS:
        return _part(instruction, known)
    meant, has_register = _MEANINGS.get(twin(instruction.name), (None, True))
    operands = split(instruction.operands, has_register=has_register)
    if meant is None or operands is None or (meaning := meant(instruction.modifiers, operands)) is None:
        return None
    return _computation(meaning, operands, known)


def twin(name: str) -> str:
    """The opcode of the vector datapath that computes the same."""
    return name[1:] if name.startswith("U") and name[1:] in _MEANINGS else name


def _computation(meaning: _Meaning, operands: Operands, known: Mapping[tuple[int, int], int]) -> Computation | None:
    registers = names(operands.register, meaning.width) if operands.register else ()
    found = [sources(value) for value in meaning.values]
    parts = [part for part in found if part is not None]
    if registers is None or len(parts) < len(found) or len(operands.read) > len(meaning.defaults):
        return None
    read = (*operands.read, *meaning.defaults[len(operands.read) :])
    inputs = [_known(source, known) for part in parts for source in part] + [predicate(text) for text in read]
    widths, written, compute = [len(part) for part in parts], len(operands.written), meaning.compute

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
    return Computation(results, tuple(inputs), split_up, meaning.is_lenient)


def known_word(bank: int, offset: int, known: Mapping[tuple[int, int], int], size: int = 4) -> int | None:
    """So many bytes of constants as a number, where all of them are known."""
    found = [known.get((bank, offset + at)) for at in range(size)]
    return None if None in found else int.from_bytes(bytes(byte or 0 for byte in found), "little")


def _known(source: Source, known: Mapping[tuple[int, int], int]) -> Source:
    at = place(source.register or "")
    value = known_word(*at, known) if at else None
    return source if value is None else Source(None, value, source.mask)


def _signed(values: tuple[Value, ...], compute: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """The computation of values with the signs that they have."""
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


def _summand(a: Any, sign: str) -> Any:
    """As it is added, so that it carries as it does."""
    return a if not sign else (a ^ _M) + (1 if sign == "-" else 0)


def _has(modifiers: Modifiers, *allowed: str) -> bool:
    return set(modifiers) <= set(allowed) and len(set(modifiers)) == len(modifiers)


# ---- sums and products


def _sum(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """IADD3, IADD and VIADD."""
    count, values = len(operands.values), operands.values
    if not _has(modifiers, "X", "64") or count not in (2, 3):
        return None
    if "64" in modifiers:
        if "X" in modifiers or operands.written != tuple(p for p in operands.written if p.endswith("T")):
            return None
        wide = tuple(value._replace(width=64) for value in values)
        return _Meaning(wide, _signed(wide, lambda *terms: (_total(terms, ALL), None, None)), 64)
    if "X" in modifiers and any(value.sign == "-" for value in values):
        return None
    signs = [value.sign for value in values]

    def compute(*given: Any) -> tuple[Any, ...]:
        total = _total([_summand(a, sign) for a, sign in zip(given, signs, strict=False)] + [*given[count:]], ALL)
        return total & _M, truth_bit(total >> 32 >= 1), truth_bit(total >> 32 >= 2)

    return _Meaning(values, compute, defaults=("!PT", "!PT") if "X" in modifiers else ())


def _total(terms: Any, mask: int) -> Any:
    found = 0
    for term in terms:
        found = found + term
    return found & mask


def _product(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """IMAD; the third value of .WIDE and .HI has 64 bits.

    Source: IMAD.HI of 64 bits: the sequence that ptxas makes of `div.u32`, and `nvdisasm -plr`.
    """
    if len(operands.values) != 3 or not _has(modifiers, "MOV", "SHL", "IADD", "U32", "WIDE", "HI", "X"):
        return None
    a, b, c = operands.values
    defaults = ("!PT",) if "X" in modifiers else ()
    if "X" in modifiers and c.sign == "-":
        return None
    if not {"WIDE", "HI"} & set(modifiers):
        if operands.written:
            return None
        compute = _signed((a, b, c), lambda a, b, c, p=0: ((a * b + c + p) & _M,))
        return _Meaning((a, b, c), compute, defaults=defaults)
    signed, carries = "U32" not in modifiers, any(predicate_name(text) for text in operands.written)
    if a.sign or b.sign or (carries and (signed or c.sign == "-" or "HI" in modifiers)):
        return None
    values = (a, b, c._replace(width=64))

    def wide(a: Any, b: Any, c: Any, p: Any = 0) -> tuple[Any, ...]:
        return ((wide_product(a, b, 32, signed) + c + p) & ALL,)

    if "HI" in modifiers:
        compute = _signed(values, lambda *given: (wide(*given)[0] >> 32,))
        return _Meaning(values, compute, defaults=defaults)
    if not carries:
        return _Meaning(values, _signed(values, lambda *given: (*wide(*given), None)), 64, defaults)
    over = each(lambda a, b, c, p=0: a * b + c + p >> 64)
    return _Meaning(values, _signed(values, lambda *given: (*wide(*given), *over(*given))), 64, defaults)


def _distance(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """VABSDIFF: how far two values are from each other, and the third."""
    if modifiers not in ((), ("U32",)) or len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None
    signed = not modifiers
    return _Meaning(
        operands.values,
        each(lambda a, b, c: abs((as_signed(a, 32) - as_signed(b, 32)) if signed else a - b) + c & _M),
    )


def _scaled_sum(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """LEA: a shifted left, or what a shift of 64 bits leaves in the upper half, and b."""
    *values, by = operands.values
    shift, is_high, extends = by.number, "HI" in modifiers, "SX32" in modifiers
    if not _has(modifiers, "HI", "X", "SX32") or shift is None or shift > 31 or len(values) != 2 + (is_high > extends):
        return None
    carries_in = "X" in modifiers
    a, b, *above = values
    if (extends and not is_high) or any(value.sign for value in above):
        return None
    if any(value.sign == ("-" if carries_in else "~") for value in (a, b)):
        return None

    def compute(*given: Any) -> tuple[Any, ...]:
        low, b_, *rest = given
        high = rest.pop(0) if above else extended(low, 32) >> 32 if extends else 0
        shifted = ((low | high << 32) >> (32 - shift)) & _M if is_high else low << shift & _M
        total = _summand(shifted, a.sign) + _summand(b_, b.sign) + (rest[0] if carries_in else 0)
        return total & _M, truth_bit(total >> 32 >= 1)

    return _Meaning(tuple(values), compute, defaults=("!PT",) if carries_in else ())


# ---- bits


def _shift(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """SHF: 64 bits, the low half first, shifted by the second value; the low or the high half of what that makes."""
    kinds = {"U32": 32, "S32": 32, "U64": 64, "S64": 64}
    found = [word for word in modifiers if word in kinds]
    if not _has(modifiers, "L", "R", "W", "HI", *kinds) or len(found) != 1 or ("L" in modifiers) == ("R" in modifiers):
        return None
    if len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None
    w, signed = kinds[found[0]], found[0].startswith("S")

    def compute(low: Any, by: Any, high: Any) -> tuple[Any, ...]:
        by = by & (w - 1) if "W" in modifiers else capped(by, w)
        whole = low | high << 32
        if "R" in modifiers:
            whole = shifted_right(whole, by, 64, signed=signed)
        else:
            whole = select(truth_bit(by < 64), (whole << capped(by, 63)) & ALL, 0)
        return (whole >> 32 if "HI" in modifiers else whole & _M,)

    return _Meaning(operands.values, compute)


def _logic(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """LOP3.LUT; its predicate tells whether any bit is set, or else the predicate that it reads."""
    if modifiers != ("LUT",) or len(operands.values) != 4 or len(operands.read) != 1 or len(operands.written) > 1:
        return None
    *values, table = operands.values
    number = table.number
    if number is None or number > 255:
        return None
    function = each(lambda a, b, c: looked_up(a, b, c, number))

    def compute(a: Any, b: Any, c: Any, p: Any) -> tuple[Any, ...]:
        (found,) = function(a, b, c)
        return found, truth_bit(found != 0) | p

    return _Meaning(tuple(values), _signed(tuple(values), compute), defaults=("!PT",))


def _bytes(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """PRMT: bytes of the first and third value, as the second selects them, or copies of their sign."""
    if modifiers or len(operands.values) != 3 or any(value.sign for value in operands.values):
        return None

    def permuted(a: int, selector: int, b: int) -> int:
        whole, found = a | b << 32, 0
        for at in range(4):
            nibble = selector >> 4 * at & 15
            byte = whole >> 8 * (nibble & 7) & 255
            found |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * at
        return found

    return _Meaning(operands.values, each(permuted))


def _field(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """SGXT: the lowest bits, extended."""
    if not _has(modifiers, "U32", "W") or len(operands.values) != 2 or any(value.sign for value in operands.values):
        return None
    signed, wraps = "U32" not in modifiers, "W" in modifiers
    return _Meaning(operands.values, each(lambda a, n: extracted(a, 0, n & 31 if wraps else min(n, 32), 32, signed)))


def _mask(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """BMSK: so many ones, from so many bits on."""
    if not _has(modifiers, "W") or len(operands.values) != 2 or any(value.sign for value in operands.values):
        return None
    wraps = "W" in modifiers

    def compute(position: int, length: int) -> int:
        position, length = (n & 31 if wraps else min(n, 32) for n in (position, length))
        return ones(length) << position & _M

    return _Meaning(operands.values, each(compute))


def _of_one(function: Callable[[int], int | None], *allowed: str) -> "_Maker":
    """An instruction with one value and no modifiers but these."""

    def make(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
        if not _has(modifiers, *allowed) or len(operands.values) != 1 or operands.written:
            return None
        return _Meaning(operands.values, _signed(operands.values, each(function)))

    return make


def _leading(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """FLO: the number of the highest bit that is not as the sign, or how far it is from the top; of none, minus one."""
    if not _has(modifiers, "U32", "SH") or len(operands.values) != 1 or operands.written:
        return None

    def compute(a: int) -> int | None:
        bits = a ^ _M if a >> 31 and "U32" not in modifiers else a
        if "SH" in modifiers:
            return 32 - bits.bit_length() if bits else None
        return (bits.bit_length() - 1) & _M

    return _Meaning(operands.values, _signed(operands.values, each(compute)))


# ---- predicates and choices


def _comparison(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """ISETP; .EX goes on from a comparison of lower halves, which tells where both values are equal."""
    test, *rest = modifiers or ("",)
    combined = [word for word in rest if word in ("AND", "OR", "XOR")]
    kinds = [word for word in rest if word in ("U32", "U64", "S64")]
    if test not in _TESTS or len(combined) != 1 or len(kinds) > 1 or not _has((*rest,), *combined, *kinds, "EX"):
        return None
    if len(operands.values) != 2 or len(operands.written) != 2 or any(v.sign for v in operands.values):
        return None
    kind, extends = kinds[0] if kinds else "S32", "EX" in rest
    w, compare = int(kind[1:]), _TESTS[test]
    bias = 2 ** (w - 1) if kind.startswith("S") else 0
    combine = {"AND": conjunction, "OR": disjunction(1), "XOR": _exclusive}[combined[0]]

    def compute(a: Any, b: Any, p: Any, below: Any = None) -> tuple[Any, ...]:
        truth = None
        if a is not None and b is not None:
            truth = truth_bit(compare(a ^ bias, b ^ bias))
            if extends:
                (truth,) = selected(below, truth, truth_bit(a == b))
        return (*combine(truth, p), *combine(None if truth is None else 1 - truth, p))

    values = tuple(value._replace(width=w) for value in operands.values)
    return _Meaning(values, compute, defaults=("PT", "PT") if extends else ("PT",), is_lenient=True)


def _exclusive(a: Any, b: Any) -> tuple[Any]:
    return (None if a is None or b is None else a ^ b,)


def _choice(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """SEL: the first value where the predicate holds, else the second."""
    if not _has(modifiers, "64") or len(operands.values) != 2 or len(operands.read) != 1:
        return None
    w = 64 if modifiers else 32
    values = tuple(value._replace(width=w) for value in operands.values)
    return _Meaning(values, _signed(values, selected), w, ("PT",), is_lenient=True)


def _extreme(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """IMNMX and VIMNMX: the lesser value where the predicate holds, else the greater."""
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

    return _Meaning(values, _signed(values, compute), w, ("PT", "!PT"))


def _predicate_logic(instruction: Instruction) -> Computation | None:
    """PLOP3.LUT: two functions of the same three predicates, each by its table."""
    operands = instruction.operands
    if instruction.modifiers != ("LUT",) or len(operands) != 7:
        return None
    tables = [Value(text).number for text in operands[5:]]
    if any(table is None or table > 255 for table in tables) or any("P" not in text for text in operands[:5]):
        return None

    def compute(*given: Any) -> tuple[Any, ...]:
        return tuple(_looked_up(given, table or 0) for table in tables)

    inputs = tuple(predicate(text) for text in operands[2:5])
    return Computation(tuple(map(predicate_name, operands[:2])), inputs, compute, is_lenient=True)


def _looked_up(given: tuple[Any, ...], table: int) -> Any:
    """The entry of a table that three predicates number; known where the unknown ones have no say in it."""
    for number, value in enumerate(given):
        if value is None:
            zero, one = (_looked_up((*given[:number], bit, *given[number + 1 :]), table) for bit in (0, 1))
            return zero if isinstance(zero, int) and isinstance(one, int) and zero == one else None
    (found,) = each(lambda a, b, c: table >> (4 * a + 2 * b + c) & 1)(*given)
    return found


def _vote(instruction: Instruction) -> Computation | None:
    """VOTE.ANY and .ALL of a predicate that all threads share."""
    if instruction.modifiers not in (("ANY",), ("ALL",)):
        return None
    *written, read = instruction.operands
    if len(written) not in (1, 2) or "P" not in read:
        return None
    *register, out = written
    results = (*(name for text in register for name in names(text) or ()), predicate_name(out))
    if len(results) != len(written) or "P" not in out:
        return None
    return Computation(results, (predicate(read),), lambda p: (*(None for _ in register), _shared(p)))


def _shared(a: Any) -> Any:
    """A value that is the same in all threads."""
    return a if isinstance(a, int) else int(a.flat[0]) if (a == a.flat[0]).all() else None


# ---- moves


def _move(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    if not _has(modifiers, "64") or len(operands.values) != 1 or operands.written:
        return None
    w = 64 if modifiers else 32
    values = (operands.values[0]._replace(width=w),)
    return _Meaning(values, _signed(values, lambda a: (a,)), w)


def _to_uniform(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """R2UR takes the value of one lane, so it is known where all agree."""
    moved = _move(modifiers, operands) if not modifiers else None
    return moved and moved._replace(compute=lambda a: (_shared(a),))


def _constant(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """LDC and its like."""
    return _move(modifiers, operands) if operands.values and operands.values[0].text.startswith("c[") else None


_PARTS: Mapping[tuple[str, ...], int] = {("U8",): 1, ("S8",): 1, ("U16",): 2, ("S16",): 2}


def _part(instruction: Instruction, known: Mapping[tuple[int, int], int]) -> Computation | None:
    """A constant of less than four bytes that is known, extended."""
    register, *rest = instruction.operands
    results, at = names(register), place("".join(rest))
    size = _PARTS[instruction.modifiers]
    value = known_word(*at, known, size) if at else None
    if results is None or value is None:
        return None
    found = extended(value, 8 * size) & _M if instruction.modifiers[0].startswith("S") else value
    return Computation(results, (), lambda: (found,))


def _halves(modifiers: Modifiers, operands: Operands) -> _Meaning | None:
    """HFMA2 of -0 * 0 and two numbers of 16 bits, by which compilers write constants."""
    if not _has(modifiers, "MMA") or len(operands.values) != 4 or operands.written or operands.read:
        return None
    *zeros, high, low = operands.values
    bits = [_half(value.sign + value.text) for value in (high, low)]
    if [(value.sign, value.text) for value in zeros] != [("-", "RZ"), ("", "RZ")] or None in bits:
        return None
    return _Meaning((), lambda: ((bits[0] or 0) << 16 | (bits[1] or 0),))


def _half(text: str) -> int | None:
    """The bits of a number of 16 bits that is written exactly."""
    try:
        number = float(text)
        packed = struct.pack("<e", number)
    except (ValueError, OverflowError):
        return None
    return int.from_bytes(packed, "little") if struct.unpack("<e", packed)[0] == number else None


def _special(instruction: Instruction) -> Computation | None:
    """S2R and its like: what a thread knows of itself; a uniform register may take it from any lane."""
    if len(instruction.operands) != 2:
        return None
    register, read = instruction.operands
    is_wide = instruction.name == "CS2R" and "32" not in instruction.modifiers
    results = names(register, 64 if is_wide else 32)
    if results is None:
        return None
    if read == "SRZ":
        return Computation(results, (), lambda: (0,) * len(results))
    if is_wide or not read.startswith("SR_"):
        return None
    compute: Callable[[Any], tuple[Any, ...]] = lambda a: (a,)  # noqa: E731 - one of two
    if instruction.name == "S2UR" and not read.startswith("SR_CTAID."):
        compute = lambda a: (_shared(a),)  # noqa: E731 - the other
    return Computation(results, (Source(read, None, _M),), compute)


_Maker = Callable[[Modifiers, Operands], _Meaning | None]
_MEANINGS: Mapping[str, tuple[_Maker, bool]] = {
    "IADD3": (_sum, True),
    "IADD": (_sum, True),
    "VIADD": (_sum, True),
    "VABSDIFF": (_distance, True),
    "IMAD": (_product, True),
    "LEA": (_scaled_sum, True),
    "SHF": (_shift, True),
    "LOP3": (_logic, True),
    "PRMT": (_bytes, True),
    "SGXT": (_field, True),
    "BMSK": (_mask, True),
    "POPC": (_of_one(int.bit_count), True),
    "BREV": (_of_one(lambda a: int(f"{a:032b}"[::-1], 2)), True),
    "IABS": (_of_one(lambda a: abs(as_signed(a, 32)) & _M), True),
    "FLO": (_leading, True),
    "ISETP": (_comparison, False),
    "SEL": (_choice, True),
    "IMNMX": (_extreme, True),
    "VIMNMX": (_extreme, True),
    "MOV": (_move, True),
    "R2UR": (_to_uniform, True),
    "LDC": (_constant, True),
    "LDCU": (_constant, True),
    "ULDC": (_constant, True),
    "HFMA2": (_halves, True),
}
