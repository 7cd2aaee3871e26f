"""What integer and logical instructions compute, and predicates."""

from collections.abc import Callable, Iterable

import numpy as np

from tests.ptx_interpreter.values import LANES, Array
from tests.sass_interpreter.handlers import handles
from tests.sass_interpreter.machine import LANE, Action, Group, Warp, bits_of
from tests.sass_interpreter.operands import U32, U64, Decoding, float_of

LOW = U64(0xFFFFFFFF)


def computes(d: Decoding, value: Callable[[Warp], Array], position: int = 0, *, wide: bool = False) -> Action:
    """A result by lane, for the destination at this position."""
    write = d.write_wide(position) if wide else d.write(position)
    kind = U64 if wide else U32

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        write(warp, lanes, value(warp).astype(kind, copy=False))

    return action


def total_of(summands: Iterable[Array]) -> Array:
    """A sum of 64 bits."""
    total = np.zeros(LANES, U64)
    for summand in summands:
        total += summand
    return total


def signed(values: Array) -> Array:
    """32 bits as numbers with a sign, in 64 bits."""
    return values.view(np.int32).astype(np.int64)


def _leading(d: Decoding) -> int:
    """How many predicates stand behind the destination."""
    found = 1
    while d.is_predicate(found):
        found += 1
    return found - 1


def _trailing(d: Decoding) -> int:
    """Where predicates at the end begin."""
    at = d.count
    while at > 1 and d.is_predicate(at - 1):
        at -= 1
    return at


# ---- moves


@handles("MOV", "MOV32I")
def mov(d: Decoding) -> Action:
    wide = d.has("64")
    return computes(d, d.read_wide(1) if wide else d.read(1), wide=wide)


@handles("S2R", "S2UR", "CS2R")
def special(d: Decoding) -> Action:
    name = d.operands[1]
    wide = d.name == "CS2R" and not d.has("32")

    def value(warp: Warp) -> Array:
        block = warp.block.launch
        x, y, _ = block.block
        thread = warp.threads()
        known: dict[str, object] = {
            "SR_TID.X": thread % x,
            "SR_TID.Y": thread // x % y,
            "SR_TID.Z": thread // (x * y),
            "SR_CTAID.X": block.index[0],
            "SR_CTAID.Y": block.index[1],
            "SR_CTAID.Z": block.index[2],
            "SR_LANEID": LANE,
            "SR_EQMASK": 1 << LANE,
            "SR_LTMASK": (1 << LANE) - 1,
            "SR_LEMASK": (2 << LANE) - 1,
            "SR_GTMASK": ~((2 << LANE) - 1),
            "SR_GEMASK": ~((1 << LANE) - 1),
            "SR_CgaCtaId": 0,
            "SRZ": 0,
        }
        if name not in known:
            raise d.unsupported()
        return np.broadcast_to(np.asarray(known[name]), LANES).astype(np.int64).astype(U64 if wide else U32)

    return computes(d, value, wide=wide)


@handles("SEL")
def sel(d: Decoding) -> Action:
    wide = d.has("64")
    first, second = (d.read_wide(k) if wide else d.read(k) for k in (1, 2))
    choice = d.predicate(3)
    return computes(d, lambda w: np.where(choice(w), first(w), second(w)), wide=wide)


@handles("R2UR")
def to_uniform(d: Decoding) -> Action:
    if d.count != 2:
        raise d.unsupported()
    return computes(d, d.read(1))


@handles("PRMT")
def prmt(d: Decoding) -> Action:
    if d.modifiers:
        raise d.unsupported()
    low, choice, high = d.read(1), d.read(2), d.read(3)

    def value(warp: Warp) -> Array:
        both = low(warp).astype(U64) | high(warp).astype(U64) << U64(32)
        select, found = choice(warp), np.zeros(LANES, U32)
        for k in range(4):
            nibble = select >> U32(4 * k) & U32(15)
            byte = (both >> ((nibble & U32(7)) * U32(8)).astype(U64) & U64(0xFF)).astype(U32)
            byte = np.where(nibble & U32(8), np.where(byte & U32(0x80), 0xFF, 0), byte).astype(U32)
            found |= byte << U32(8 * k)
        return found

    return computes(d, value)


# ---- sums and products


@handles("IADD3", "IADD", "VIADD", "VIADD3")
def iadd3(d: Decoding) -> Action:
    """Carries: the first predicate is set where the sum needs a 33rd bit, the second where it needs more."""
    if d.has("64"):
        return _add_wide(d)
    lead, end = _leading(d), _trailing(d)
    outs = [d.write_predicate(k) for k in range(1, 1 + lead)]
    extended = d.has("X")
    ins = [d.predicate(k) for k in range(end, d.count)] if extended else []
    summands = [d.sign(k) for k in range(1 + lead, end)]
    write = d.write(0)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        total = np.zeros(LANES, U64)
        for prefix, read in summands:
            value = read(warp)
            total += (~value if prefix else value).astype(U64)
            if prefix == "-":
                total += U64(1)
        for carry in ins:
            total += carry(warp).astype(U64)
        write(warp, lanes, total.astype(U32))
        for k, out in enumerate(outs, start=1):
            out(warp, lanes, total >= U64(k << 32))

    return action


def _add_wide(d: Decoding) -> Action:
    if _leading(d) or _trailing(d) != d.count or d.has("X"):
        raise d.unsupported()
    summands = [d.read_wide(k) for k in range(1, d.count)]
    return computes(d, lambda w: total_of(read(w) for read in summands), wide=True)


@handles("IMAD")
def imad(d: Decoding) -> Action:
    lead, end = _leading(d), _trailing(d)
    extended = d.has("X")
    if lead > 1 or end - lead != 4 or (end != d.count and not extended):
        raise d.unsupported()
    first, second = d.read(1 + lead), d.read(2 + lead)
    third = d.read_wide(3 + lead) if d.has("WIDE") or d.has("HI") else d.read(3 + lead)
    if extended and d.operands[3 + lead][0] in "-~":
        raise d.unsupported()
    ins = [d.predicate(k) for k in range(end, d.count)]
    outs = [d.write_predicate(1)] if lead else []
    unsigned = d.has("U32")

    def parts(warp: Warp) -> tuple[Array, Array]:
        """The product of 64 bits, and the summand."""
        factors = [f(warp).astype(U64) if unsigned else signed(f(warp)).astype(U64) for f in (first, second)]
        carry = total_of(p(warp).astype(U64) for p in ins)
        return factors[0] * factors[1], third(warp).astype(U64) + carry

    if d.has("WIDE") or outs:
        if not d.has("WIDE"):
            raise d.unsupported()
        write = d.write_wide(0)

        def action(warp: Warp, group: Group, lanes: Array) -> None:
            product, summand = parts(warp)
            total = product + summand
            write(warp, lanes, total)
            for out in outs:
                out(warp, lanes, total < product)

        return action
    if d.has("HI"):
        return computes(d, lambda w: total_of(parts(w)) >> U64(32))
    return computes(d, lambda w: total_of(parts(w)) & LOW)


@handles("LEA")
def lea(d: Decoding) -> Action:
    """(first << shift) + second, or the upper half of (third : first) << shift, + second."""
    lead, end = _leading(d), _trailing(d)
    if set(d.modifiers) - {"HI", "X", "SX32"} or lead > 1:
        raise d.unsupported()
    high, extended = d.has("HI"), d.has("X")
    outs = [d.write_predicate(1)] if lead else []
    operands = list(range(1 + lead, end))
    if len(operands) != (4 if high and not d.has("SX32") else 3):
        raise d.unsupported()
    prefix, first = d.sign(operands[0])
    second_prefix, second = d.sign(operands[1])
    third = d.read(operands[2]) if high and not d.has("SX32") else None
    shift = U64(d.number(operands[-1]))
    ins = [d.predicate(k) for k in range(end, d.count)] if extended else []
    write = d.write(0)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        low = first(warp)
        upper = third(warp) if third else np.where(low >> U32(31), U32(0xFFFFFFFF), U32(0)).astype(U32)
        value = low.astype(U64) | upper.astype(U64) << U64(32) if high else low.astype(U64)
        shifted = (value << shift) >> U64(32) if high else value << shift
        shifted &= LOW
        total = np.zeros(LANES, U64)
        for sign, part in ((prefix, shifted), (second_prefix, second(warp).astype(U64))):
            total += (~part & LOW) if sign else part
            if sign == "-":
                total += U64(1)
        for carry in ins:
            total += carry(warp).astype(U64)
        write(warp, lanes, total.astype(U32))
        for out in outs:
            out(warp, lanes, total >= U64(1 << 32))

    return action


@handles("IABS")
def iabs(d: Decoding) -> Action:
    source = d.read(1)
    return computes(d, lambda w: np.abs(signed(source(w))).astype(U32))


# ---- bits


@handles("SHF")
def shf(d: Decoding) -> Action:
    """A shift of 64 bits (third : first), of which one half is taken."""
    low, distance, high = d.read(1), d.read(2), d.read(3)
    wide = d.has("U64") or d.has("S64")
    bits = 64 if wide else 32
    with_sign = d.has("S32") or d.has("S64")

    def value(warp: Warp) -> Array:
        by = distance(warp).astype(np.int64)
        by = by % bits if d.has("W") else np.minimum(by, bits)
        result = []
        for a, c, s in zip(low(warp).tolist(), high(warp).tolist(), by.tolist(), strict=True):
            whole = c << 32 | a
            if d.has("R") and with_sign and whole >> 63:
                whole -= 1 << 64
            moved = whole << s if d.has("L") else whole >> s
            result.append((moved >> 32 if d.has("HI") else moved) & 0xFFFFFFFF)
        return np.array(result, U32)

    return computes(d, value)


@handles("LOP3")
def lop3(d: Decoding) -> Action:
    """Operands: a predicate that the result is not zero, result, three sources, table, predicate to combine with."""
    lead = int(d.is_predicate(0))
    write = d.write(lead)
    sources = [d.read(lead + k) for k in (1, 2, 3)]
    table = d.number(lead + 4)
    combined = d.predicate(lead + 5) if lead + 5 < d.count else None
    out = d.write_predicate(0) if lead else None

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        a, b, c = (read(warp) for read in sources)
        result = np.zeros(LANES, U32)
        for k in range(8):
            if table >> k & 1:
                result |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
        if out and combined:
            other, some = combined(warp), result != 0
            out(warp, lanes, some & other if d.has("PAND") else some | other)
        write(warp, lanes, result)

    return action


@handles("PLOP3")
def plop3(d: Decoding) -> Action:
    outs = [d.write_predicate(k) for k in (0, 1)]
    sources = [d.predicate(k) for k in (2, 3, 4)]
    tables = [d.number(k) for k in (5, 6)]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        a, b, c = (read(warp).astype(np.int64) for read in sources)
        index = a << 2 | b << 1 | c
        for out, table in zip(outs, tables, strict=True):
            out(warp, lanes, (table >> index & 1).astype(bool))

    return action


@handles("POPC", "FLO", "BREV")
def counted(d: Decoding) -> Action:
    lead = int(d.is_predicate(1))
    source, find_sign = d.read(1 + lead), not d.has("U32") and d.name.endswith("FLO")
    if lead or (d.name.endswith("FLO") and find_sign):
        raise d.unsupported()

    def one(x: int) -> int:
        if d.name.endswith("POPC"):
            return x.bit_count()
        if d.name.endswith("BREV"):
            return int(f"{x:032b}"[::-1], 2)
        if not x:
            return 0xFFFFFFFF
        return 32 - x.bit_length() if d.has("SH") else x.bit_length() - 1

    return computes(d, lambda w: np.array([one(x) for x in source(w).tolist()], U32))


@handles("SGXT")
def sgxt(d: Decoding) -> Action:
    source, width = d.read(1), d.read(2)

    def one(x: int, n: int) -> int:
        n = n % 32 if d.has("W") else min(n, 32)
        low = x & (1 << n) - 1
        return low - (1 << n) if n and not d.has("U32") and low >> n - 1 else low

    return computes(
        d,
        lambda w: np.array(
            [one(x, n) % 2**32 for x, n in zip(source(w).tolist(), width(w).tolist(), strict=True)], U32
        ),
    )


@handles("BMSK")
def bmsk(d: Decoding) -> Action:
    at, width = d.read(1), d.read(2)

    def one(a: int, b: int) -> int:
        a, b = (a % 32, b % 32) if d.has("W") else (min(a, 32), min(b, 32))
        return ((1 << b) - 1 << a) & 0xFFFFFFFF

    return computes(d, lambda w: np.array([one(*x) for x in zip(at(w).tolist(), width(w).tolist(), strict=True)], U32))


# ---- comparisons

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "F": lambda a, b: np.zeros(LANES, bool),
    "T": lambda a, b: np.ones(LANES, bool),
}
CONNECTIVES: dict[str, Callable[[Array, Array], Array]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


@handles("ISETP")
def isetp(d: Decoding) -> Action:
    """`.EX` compares upper halves; where they are equal the lower ones decide."""
    name = d.modifiers[0]
    connective = next(c for c in CONNECTIVES if d.has(c))
    unsigned, extended = d.has("U32") or d.has("U64"), d.has("EX")
    outs = [d.write_predicate(k) for k in (0, 1)]
    wide = d.has("64") or d.has("U64") or d.has("S64")
    sources = [d.read_wide(k) if wide else d.read(k) for k in (2, 3)]
    other = d.predicate(4)
    lower = d.predicate(5) if extended else None
    if d.count != 5 + extended:
        raise d.unsupported()

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        a, b = (read(warp) if unsigned else read(warp).view(np.int64 if wide else np.int32) for read in sources)
        found = COMPARISONS[name](a, b)
        if lower:
            strict = {"LE": "LT", "GE": "GT", "EQ": "F"}.get(name, name)
            found = np.where(a == b, lower(warp), COMPARISONS[strict](a, b))
        combined = other(warp)
        outs[1](warp, lanes, CONNECTIVES[connective](~found, combined))
        outs[0](warp, lanes, CONNECTIVES[connective](found, combined))

    return action


@handles("IMNMX", "VIMNMX")
def imnmx(d: Decoding) -> Action:
    """The least where the predicate holds, else the largest."""
    lead, end = _leading(d), _trailing(d)
    if d.count - end != 1 or end - lead != 3 or any(not d.operands[k].endswith("PT") for k in range(1, 1 + lead)):
        raise d.unsupported()
    first, second, least = d.read(1 + lead), d.read(2 + lead), d.predicate(end)

    def value(warp: Warp) -> Array:
        a, b = first(warp), second(warp)
        below = a < b if d.has("U32") else a.view(np.int32) < b.view(np.int32)
        return np.where(below == least(warp), a, b)

    return computes(d, value)


@handles("VIMNMX3")
def vimnmx3(d: Decoding) -> Action:
    """The least of three where the predicate holds, else the largest."""
    if d.count != 5 or set(d.modifiers) - {"U32", "S32"}:
        raise d.unsupported()
    sources, least = [d.read(k) for k in (1, 2, 3)], d.predicate(4)
    kind = U32 if d.has("U32") else np.int32

    def value(warp: Warp) -> Array:
        values = [read(warp).view(kind) for read in sources]
        lowest, highest = np.min(values, axis=0), np.max(values, axis=0)
        found: Array = np.where(least(warp), lowest, highest).view(U32)
        return found

    return computes(d, value)


@handles("VIADDMNMX")
def viaddmnmx(d: Decoding) -> Action:
    """The sum of two, then the least or largest of that and the third."""
    lead, end = _leading(d), _trailing(d)
    if d.count - end != 1 or end - lead != 4 or d.has("RELU"):
        raise d.unsupported()
    a, b, c = (d.read(1 + lead + k) for k in range(3))
    least = d.predicate(end)

    def value(warp: Warp) -> Array:
        total, other = a(warp) + b(warp), c(warp)
        below = total < other if d.has("U32") else total.view(np.int32) < other.view(np.int32)
        return np.where(below == least(warp), total, other)

    return computes(d, value)


# ---- between lanes


@handles("VOTE", "VOTEU")
def vote(d: Decoding) -> Action:
    """A mask of the lanes in which the predicate holds, and whether it does in all or any of those that are here."""
    lead = 0 if d.is_predicate(0) else 1
    out = d.write_predicate(lead)
    write = d.write(0) if lead else None
    source = d.predicate(lead + 1)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        yes = source(warp) & lanes
        agreed = bool(yes[lanes].all()) if d.has("ALL") else bool(yes.any())
        if d.has("EQ"):
            agreed = bool(yes[lanes].all()) or not yes.any()
        if write:
            write(warp, lanes, np.full(LANES, bits_of(yes), U32))
        out(warp, lanes, np.full(LANES, agreed))

    return action


@handles("SHFL")
def shfl(d: Decoding) -> Action:
    """Source: PTX ISA, shfl.sync, whose pseudo-code this follows."""
    out, write = d.write_predicate(0), d.write(1)
    source, lane_of, limits = d.read(2), d.read(3), d.read(4)
    mode = d.modifiers[0]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        values, b, c = source(warp), lane_of(warp).astype(np.int64) & 31, limits(warp).astype(np.int64)
        segment, clamp = c >> 8 & 31, c & 31
        last = (LANE & segment) | (clamp & ~segment & 31)
        first = LANE & segment
        other = {"UP": LANE - b, "DOWN": LANE + b, "BFLY": LANE ^ b, "IDX": first | (b & ~segment & 31)}[mode]
        valid = other >= last if mode == "UP" else other <= last
        chosen = np.where(valid, other, LANE)
        write(warp, lanes, values[np.clip(chosen, 0, 31)])
        out(warp, lanes, valid)

    return action


# ---- constants that the compiler makes on other pipes


@handles("HFMA2")
def hfma2(d: Decoding) -> Action:
    """Only as it brings in two halves: 0 x 0 plus numbers."""
    if d.operands[1:3] not in (["-RZ", "RZ"], ["RZ", "RZ"]) or d.count != 5:
        raise d.unsupported()
    high, low = (int(np.array(float_of(text), np.float16).view(np.uint16)) for text in d.operands[3:])
    return computes(d, lambda w: np.full(LANES, high << 16 | low, U32))
