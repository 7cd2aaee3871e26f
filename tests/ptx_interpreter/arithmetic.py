"""Integer and floating-point arithmetic, comparisons, logic and bits, lane by lane."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.ptx_interpreter.decoding import Decoding, Reader, Writer, handles
from tests.ptx_interpreter.faults import KernelFault
from tests.ptx_interpreter.machine import Action, Warp
from tests.ptx_interpreter.values import (
    PRED,
    S32,
    TYPES,
    Array,
    Mask,
    Type,
    directed,
    flushed,
    fma,
    unit_interval,
    where,
)

ROUNDINGS = ("rn", "rz", "rm", "rp")


def elementwise(d: Decoding, target: Type, sources: Sequence[Type], function: Callable[..., Array]) -> Action:
    """An instruction without memory: target, then sources; all its words must have been taken."""
    d.done()
    if d.count != len(sources) + 1:
        raise d.unsupported()
    return applied(d.target(0, target), [d.source(i + 1, kind) for i, kind in enumerate(sources)], function)


def applied(write: Writer, readers: Sequence[Reader], function: Callable[..., Array]) -> Action:
    def action(warp: Warp, m: Mask) -> None:
        write(warp, m, function(*[read(warp, m.bits) for read in readers]))

    return action


def floating(d: Decoding, kind: Type, count: int, function: Callable[..., Array]) -> Action:
    """A floating-point instruction with its .ftz and .sat."""
    ftz, sat = d.flag("ftz"), d.flag("sat")
    if ftz and kind.bits == 64:
        raise d.unsupported()

    def finished(*values: Array) -> Array:
        result = function(*[flushed(v) for v in values] if ftz else values).astype(kind.dtype)
        result = flushed(result) if ftz else result
        return unit_interval(result) if sat else result

    return elementwise(d, kind, [kind] * count, finished)


def clamped(values: Array, kind: Type) -> Array:
    """Exact integers (Python's, or of 64 bits) saturated to a type."""
    limits = np.iinfo(kind.dtype)
    return np.clip(values, limits.min, limits.max).astype(kind.dtype)


# ---- add, sub, mul, mad, fma, div, rem


@handles("add", "sub")
def add(d: Decoding) -> Action:
    kind = d.type()
    subtract = d.name == "sub"
    if kind.is_float:
        mode = d.choice(ROUNDINGS, "rn")
        return floating(d, kind, 2, lambda a, b: directed(operator.add, kind, mode, a, -b if subtract else b))
    if d.flag("cc"):
        return _carrying(d, kind, uses=False, sets=True)
    function = operator.sub if subtract else operator.add
    if d.flag("sat"):
        if kind is not S32:
            raise d.unsupported()
        return elementwise(d, kind, [kind] * 2, lambda a, b: clamped(function(a.astype("i8"), b.astype("i8")), kind))
    return elementwise(d, kind, [kind] * 2, function)


@handles("addc", "subc", "madc")
def add_carry(d: Decoding) -> Action:
    return _carrying(d, d.type(), uses=True, sets=d.flag("cc"))


def _carrying(d: Decoding, kind: Type, *, uses: bool, sets: bool) -> Action:
    """Arithmetic with the carry flag, in unlimited integers."""
    name = d.name[:3]
    if kind.kind not in "us" or kind.bits < 32:
        raise d.unsupported()
    half = d.choice(("lo", "hi")) if name == "mad" else ""
    d.done()
    plain = TYPES[f"u{kind.bits}"]
    multiplied = kind if half == "hi" else plain
    types = [multiplied, multiplied, plain] if name == "mad" else [plain, plain]
    if d.count != len(types) + 1:
        raise d.unsupported()
    write = d.target(0, plain)
    readers = [d.source(i + 1, t) for i, t in enumerate(types)]
    whole = 1 << kind.bits
    flag, other = ("sub", "add") if name == "sub" else ("add", "sub")

    def action(warp: Warp, m: Mask) -> None:
        frame = warp.frame
        if uses and m.bits & ~frame.carries[flag]:
            raise KernelFault("no instruction of this kind has written the carry flag")
        values = [read(warp, m.bits).astype(object) for read in readers]
        if name == "mad":
            product = values[0] * values[1]
            values = [(product >> kind.bits if half == "hi" else product) % whole, values[2]]
        carry = frame.carry.astype(object) * uses
        total = values[0] - values[1] - carry if name == "sub" else values[0] + values[1] + carry
        if sets:
            np.copyto(frame.carry, (total < 0) | (total >= whole), where=m.lanes, casting="unsafe")
            frame.carries[flag] |= m.bits
            frame.carries[other] &= ~m.bits
        write(warp, m, (total % whole).astype(plain.dtype))

    return action


def product(a: Array, b: Array, kind: Type, half: str) -> Array:
    """The low or high half of a product, or all of it; `kind` is that of the factors."""
    if half == "lo":
        return np.asarray(a * b)
    wide = np.dtype(object) if kind.bits == 64 else kind.wider().dtype
    whole = np.asarray(a.astype(wide) * b.astype(wide))
    return whole if half == "wide" else (whole >> kind.bits).astype(kind.dtype)


@handles("mul")
def mul(d: Decoding) -> Action:
    kind = d.type()
    if kind.is_float:
        mode = d.choice(ROUNDINGS, "rn")
        return floating(d, kind, 2, lambda a, b: directed(operator.mul, kind, mode, a, b))
    half = d.choice(("lo", "hi", "wide"))
    if half == "wide" and kind.bits == 64:
        raise d.unsupported()
    return elementwise(d, kind.wider() if half == "wide" else kind, [kind] * 2, lambda a, b: product(a, b, kind, half))


@handles("mad", "fma")
def mad(d: Decoding) -> Action:
    kind = d.type()
    if kind.is_float:
        return _float_mad(d, kind)
    if d.flag("cc"):
        return _carrying(d, kind, uses=False, sets=True)
    half = d.choice(("lo", "hi", "wide"))
    target = kind.wider() if half == "wide" else kind
    if d.flag("sat"):
        if half != "hi" or kind is not S32:
            raise d.unsupported()
        return elementwise(
            d, kind, [kind] * 3, lambda a, b, c: clamped(product(a, b, kind, half).astype("i8") + c, kind)
        )
    return elementwise(d, target, [kind, kind, target], lambda a, b, c: product(a, b, kind, half) + c)


def _float_mad(d: Decoding, kind: Type) -> Action:
    old = d.code.image.target.startswith("sm_1")
    if d.name == "mad" and kind.bits == 32 and old:
        if d.flag(*ROUNDINGS):
            raise d.unsupported()
        return floating(d, kind, 3, lambda a, b, c: _truncated_product(a, b) + c)
    mode = d.choice(ROUNDINGS, "rn")
    return floating(d, kind, 3, lambda a, b, c: fma(a, b, c, kind, mode))


def _truncated_product(a: Array, b: Array) -> Array:
    """The product of `mad.f32` on sm_1x: its significand cut to that of a float."""
    whole = a.astype(np.float64) * b.astype(np.float64)
    return (whole.view(np.uint64) & np.uint64(2**64 - 2**29)).view(np.float64).astype(np.float32)


@handles("mul24", "mad24")
def mul24(d: Decoding) -> Action:
    kind = d.type()
    half = d.choice(("lo", "hi"))
    if kind.bits != 32 or kind.kind not in "us" or d.flag("sat"):
        raise d.unsupported()

    def multiplied(a: Array, b: Array) -> Array:
        a, b = ((x << 8 >> 8).astype(kind.wider().dtype) for x in (a, b))
        return (a * b >> (16 if half == "hi" else 0)).astype(kind.dtype)

    if d.name == "mul24":
        return elementwise(d, kind, [kind] * 2, multiplied)
    return elementwise(d, kind, [kind] * 3, lambda a, b, c: multiplied(a, b) + c)


@handles("div")
def div(d: Decoding) -> Action:
    kind = d.type()
    if kind.is_float:
        exact = d.choice((*ROUNDINGS, "approx", "full"), "full" if kind.bits == 32 else "rn")
        mode = "rn" if exact in ("approx", "full") else exact
        return floating(d, kind, 2, lambda a, b: directed(operator.truediv, kind, mode, a, b))
    return _dividing(d, kind, lambda a, b: (a - np.fmod(a, b)) // b)


@handles("rem")
def rem(d: Decoding) -> Action:
    return _dividing(d, d.type(), np.fmod)


def _dividing(d: Decoding, kind: Type, function: Callable[..., Array]) -> Action:
    d.done()
    if kind.kind not in "us" or d.count != 3:
        raise d.unsupported()
    write, dividend, divisor = d.target(0, kind), d.source(1, kind), d.source(2, kind)

    def action(warp: Warp, m: Mask) -> None:
        below = divisor(warp, m.bits)
        if (below[m.lanes] == 0).any():
            raise KernelFault("an integer divided by zero")
        write(warp, m, function(dividend(warp, m.bits), where(below == 0, below.dtype.type(1), below)))

    return action


# ---- min, max, abs, neg, sad


@handles("min", "max")
def extremum(d: Decoding) -> Action:
    kind = d.type()
    least = d.name == "min"
    if not kind.is_float:
        return elementwise(d, kind, [kind] * 2, np.minimum if least else np.maximum)
    nan = d.flag("NaN")

    def chosen(a: Array, b: Array) -> Array:
        number = np.fmin(a, b) if least else np.fmax(a, b)
        zeros = (a == 0) & (b == 0)
        negative = np.signbit(a) | np.signbit(b) if least else np.signbit(a) & np.signbit(b)
        number = where(zeros, where(negative, -kind.dtype.type(0), kind.dtype.type(0)), number)
        return where(nan & (np.isnan(a) | np.isnan(b)), kind.dtype.type(np.nan), number)

    return floating(d, kind, 2, chosen)


@handles("abs", "neg")
def sign(d: Decoding) -> Action:
    kind = d.type()
    function = np.abs if d.name == "abs" else np.negative
    return floating(d, kind, 1, function) if kind.is_float else elementwise(d, kind, [kind], function)


@handles("sad")
def sad(d: Decoding) -> Action:
    kind = d.type()
    return elementwise(d, kind, [kind] * 3, lambda a, b, c: c + where(a < b, b - a, a - b))


@handles("copysign")
def copysign(d: Decoding) -> Action:
    kind = d.type()
    return elementwise(d, kind, [kind] * 2, lambda a, b: np.copysign(b, a))


# ---- special functions, to the nearest float


def _double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(a.astype(np.float64))


def _inverse_root(a: Array) -> Array:
    return 1 / np.sqrt(a)


SPECIAL: dict[str, Callable[[Array], Array]] = {
    "sin": np.sin,
    "cos": np.cos,
    "ex2": np.exp2,
    "lg2": np.log2,
    "tanh": np.tanh,
    "rsqrt": _inverse_root,
}


@handles(*SPECIAL)
def special(d: Decoding) -> Action:
    kind = d.type()
    d.flag("approx")  # which old modules leave out
    if not kind.is_float:
        raise d.unsupported()
    return floating(d, kind, 1, _double(SPECIAL[d.name]))


@handles("rcp", "sqrt")
def reciprocal(d: Decoding) -> Action:
    kind = d.type()
    mode = d.choice((*ROUNDINGS, "approx"), "approx")
    if d.name == "rcp":
        mode = "rn" if mode == "approx" else mode
        return floating(d, kind, 1, lambda a: directed(operator.truediv, kind, mode, np.ones_like(a), a))
    if mode not in ("rn", "approx"):
        raise d.unsupported()
    return floating(d, kind, 1, np.sqrt)


# ---- comparisons

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": operator.ne,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
COMBINATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _comparison(d: Decoding) -> tuple[Callable[[Array, Array], Array], str, Type]:
    """What compares the sources, how a predicate is joined to that (or ""), and the type of the sources."""
    kind = d.type()
    name = d.choice(COMPARISONS)
    joined = d.choice(COMBINATIONS, "")
    ftz = d.flag("ftz")
    if name in ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan") and not kind.is_float:
        raise d.unsupported()
    compare = COMPARISONS[name]
    if ftz:
        return lambda a, b: compare(flushed(a), flushed(b)), joined, kind
    return compare, joined, kind


@handles("setp")
def setp(d: Decoding) -> Action:
    compare, joined, kind = _comparison(d)
    d.done()
    if d.count != (4 if joined else 3):
        raise d.unsupported()
    first, second = d.pair(0, PRED)
    a, b = d.source(1, kind), d.source(2, kind)
    c = d.source(3, PRED) if joined else None

    def action(warp: Warp, m: Mask) -> None:
        found = compare(a(warp, m.bits), b(warp, m.bits))
        other = ~found
        if c is not None:
            with_ = c(warp, m.bits)
            found, other = (COMBINATIONS[joined](x, with_) for x in (found, other))
        first(warp, m, found)
        second(warp, m, other)

    return action


@handles("set")
def set_(d: Decoding) -> Action:
    compare, joined, kind = _comparison(d)
    target = d.type()
    true: Any = target.dtype.type(1) if target.is_float else np.array(-1).astype(target.dtype)

    def chosen(a: Array, b: Array, *c: Array) -> Array:
        found = compare(a, b)
        found = COMBINATIONS[joined](found, c[0]) if joined else found
        return where(found, true, target.dtype.type(0))

    return elementwise(d, target, [kind, kind, PRED] if joined else [kind, kind], chosen)


@handles("selp")
def selp(d: Decoding) -> Action:
    kind = d.type()
    return elementwise(d, kind, [kind, kind, PRED], lambda a, b, p: where(p, a, b))


@handles("slct")
def slct(d: Decoding) -> Action:
    judge, ftz = d.type(), d.flag("ftz")
    kind = d.type()
    return elementwise(d, kind, [kind, kind, judge], lambda a, b, c: where((flushed(c) if ftz else c) >= 0, a, b))


@handles("testp")
def testp(d: Decoding) -> Action:
    kind = d.type()
    tiny = np.finfo(kind.dtype).tiny
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return elementwise(d, PRED, [kind], tests[d.choice(tests)])
