"""Logic, shifts, and fields of bits, lane by lane."""

from collections.abc import Callable

import numpy as np

from tests.ptx_interpreter.arithmetic import applied, elementwise
from tests.ptx_interpreter.decoding import Decoding, handles
from tests.ptx_interpreter.machine import Action
from tests.ptx_interpreter.values import B32, LANES, S32, TYPES, U32, Array, Type, where

# ---- logic


@handles("and", "or", "xor")
def logic(d: Decoding) -> Action:
    kind = d.type()
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[d.name]
    return elementwise(d, kind, [kind] * 2, function)


@handles("not", "cnot")
def not_(d: Decoding) -> Action:
    kind = d.type()
    if d.name == "cnot":
        return elementwise(d, kind, [kind], lambda a: (a == 0).astype(kind.dtype))
    return elementwise(d, kind, [kind], np.invert)


@handles("lop3")
def lop3(d: Decoding) -> Action:
    kind = d.type()
    d.done()
    if d.count != 5 or kind is not B32:
        raise d.unsupported()
    sources = [d.source(i, kind) for i in (1, 2, 3)]
    table = int(d.source(4, B32)(None, 0)[0])  # type: ignore[arg-type]

    def function(a: Array, b: Array, c: Array) -> Array:
        out = np.zeros_like(a)
        for row in range(8):
            if table >> row & 1:
                terms = (x if row >> bit & 1 else ~x for x, bit in ((a, 2), (b, 1), (c, 0)))
                out |= np.bitwise_and.reduce(list(terms))
        return out

    return applied(d.target(0, kind), sources, function)


# ---- shifts and fields of bits


@handles("shl", "shr")
def shift(d: Decoding) -> Action:
    kind = d.type()
    left = d.name == "shl"
    last = kind.bits - 1

    def shifted(a: Array, count: Array) -> Array:
        near = np.minimum(count, last).astype(a.dtype)
        found = np.left_shift(a, near) if left else np.right_shift(a, near)
        beyond = a >> last if kind.kind == "s" and not left else a.dtype.type(0)  # an arithmetic shift leaves the sign
        return where(count > last, beyond, found)

    return elementwise(d, kind, [kind, U32], shifted)


@handles("shf")
def funnel(d: Decoding) -> Action:
    kind = d.type()
    left = d.choice(("l", "r")) == "l"
    wraps = d.choice(("wrap", "clamp")) == "wrap"
    if kind is not B32:
        raise d.unsupported()

    def shifted(low: Array, high: Array, count: Array) -> Array:
        pair = high.astype(np.uint64) << np.uint64(32) | low
        by = (count & np.uint32(31) if wraps else np.minimum(count, np.uint32(32))).astype(np.uint64)
        return ((pair << by) >> np.uint64(32) if left else pair >> by).astype(np.uint32)

    return elementwise(d, kind, [kind, kind, U32], shifted)


@handles("bfe")
def bfe(d: Decoding) -> Action:
    """Source: PTX ISA, bfe, whose pseudo-code this follows."""
    kind = d.type()
    last = kind.bits - 1

    def field(a: int, start: int, size: int) -> int:
        start, size = start & 0xFF, size & 0xFF
        sign = 0
        if kind.kind == "s" and size:
            sign = a >> min(start + size - 1, last) & 1
        found = 0
        for i in range(kind.bits):
            bit = a >> (start + i) & 1 if i < size and start + i <= last else sign
            found |= bit << i
        return found

    plain = TYPES[f"u{kind.bits}"]
    return elementwise(d, plain, [plain, U32, U32], each(field, plain))


@handles("bfi")
def bfi(d: Decoding) -> Action:
    kind = d.type()

    def field(a: int, b: int, start: int, size: int) -> int:
        start, size = start & 0xFF, size & 0xFF
        kept = ((1 << size) - 1) << start & ((1 << kind.bits) - 1)
        return b & ~kept | a << start & kept

    return elementwise(d, kind, [kind, kind, U32, U32], each(field, kind))


def each(function: Callable[..., int], kind: Type) -> Callable[..., Array]:
    """A function of Python's integers on every lane."""

    def on_lanes(*values: Array) -> Array:
        lists = [value.tolist() for value in values]
        return np.array([function(*row) for row in zip(*lists, strict=True)], dtype=kind.dtype)

    return on_lanes


@handles("popc", "clz", "brev")
def count_bits(d: Decoding) -> Action:
    kind = d.type()
    width = kind.bits
    functions: dict[str, Callable[[int], int]] = {
        "popc": int.bit_count,
        "clz": lambda a: width - a.bit_length(),
        "brev": lambda a: int(f"{a:0{width}b}"[::-1], 2),
    }
    target = kind if d.name == "brev" else U32
    if kind.kind != "b":
        raise d.unsupported()
    return elementwise(d, target, [kind], each(functions[d.name], target))


@handles("bfind")
def bfind(d: Decoding) -> Action:
    kind = d.type()
    amount = d.flag("shiftamt")

    def place(a: int) -> int:
        found = (~a if a < 0 else a).bit_length() - 1
        if found < 0:
            return 0xFFFFFFFF
        return kind.bits - 1 - found if amount else found

    return elementwise(d, U32, [kind], each(place, U32))


@handles("bmsk")
def bmsk(d: Decoding) -> Action:
    kind = d.type()
    wraps = d.choice(("wrap", "clamp")) == "wrap"

    def ones(start: int, size: int) -> int:
        start, size = (start & 31, size & 31) if wraps else (min(start, 32), min(size, 32))
        return ((1 << size) - 1) << start & 0xFFFFFFFF

    return elementwise(d, kind, [U32, U32], each(ones, kind))


@handles("prmt")
def prmt(d: Decoding) -> Action:
    """Source: PTX ISA, prmt: the tables of the modes."""
    kind = d.type()
    mode = d.choice(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"), "index")
    tables: dict[str, Callable[[int], tuple[int, ...]]] = {
        "f4e": lambda s: (s, s + 1, s + 2, s + 3),
        "b4e": lambda s: (s, s + 7 & 7, s + 6 & 7, s + 5 & 7),
        "rc8": lambda s: (s,) * 4,
        "ecl": lambda s: tuple(max(i, s) for i in range(4)),
        "ecr": lambda s: tuple(min(i, s) for i in range(4)),
        "rc16": lambda s: (0, 1, 0, 1) if s % 2 == 0 else (2, 3, 2, 3),
    }

    def permuted(a: int, b: int, selector: int) -> int:
        whole = (b << 32 | a).to_bytes(8, "little")
        nibbles = [selector >> 4 * i & 15 for i in range(4)] if mode == "index" else tables[mode](selector & 3)
        chosen = [whole[n & 7] if n < 8 or mode != "index" else 0xFF * (whole[n & 7] >> 7) for n in nibbles]
        return int.from_bytes(bytes(chosen), "little")

    return elementwise(d, kind, [kind, kind, B32], each(permuted, kind))


@handles("dp4a")
def dp4a(d: Decoding) -> Action:
    second, first = d.type(), d.type()
    target = S32 if "s" in (first.kind, second.kind) else U32

    def parts(a: Array, kind: Type) -> Array:
        return np.ascontiguousarray(a).view(kind.dtype).reshape(LANES, 4).astype(np.int64)

    def dot(a: Array, b: Array, c: Array) -> Array:
        return np.asarray(((parts(a, first) * parts(b, second)).sum(axis=1) + c).astype(target.dtype))

    if (first.bits, second.bits) == (32, 32):
        first, second = (TYPES[f"{kind.kind}8"] for kind in (first, second))  # the type names the whole register
    else:
        raise d.unsupported()
    return elementwise(d, target, [B32, B32, target], dot)
