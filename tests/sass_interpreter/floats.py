"""Numbers of floating point: enough for the samples and for how compilers divide integers.

Approximate instructions give the nearest value.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ptx_interpreter.values import F32 as SINGLE
from tests.ptx_interpreter.values import F64 as DOUBLE
from tests.ptx_interpreter.values import Array, fma
from tests.sass_interpreter.handlers import handles
from tests.sass_interpreter.integers import COMPARISONS, CONNECTIVES, computes
from tests.sass_interpreter.machine import Action, Group, Warp
from tests.sass_interpreter.operands import U32, U64, Decoding

_ROUNDINGS = {"RP", "RM", "RZ"}


def _result(d: Decoding, value: Callable[[Warp], Array], double: bool) -> Action:
    if _ROUNDINGS & set(d.modifiers):
        raise d.unsupported("rounding")

    def raw(warp: Warp) -> Array:
        found = value(warp)
        if d.has("SAT"):
            found = np.clip(np.nan_to_num(found), 0, 1).astype(found.dtype)
        seen: Array = found.view(U64 if double else U32)
        return seen

    return computes(d, raw, wide=double)


@handles("FADD", "DADD")
def fadd(d: Decoding) -> Action:
    double = d.name == "DADD"
    a, b = (d.float(k, double=double) for k in (1, 2))
    return _result(d, lambda w: a(w) + b(w), double)


@handles("FMUL", "DMUL")
def fmul(d: Decoding) -> Action:
    double = d.name == "DMUL"
    a, b = (d.float(k, double=double) for k in (1, 2))
    return _result(d, lambda w: a(w) * b(w), double)


@handles("FFMA", "DFMA")
def ffma(d: Decoding) -> Action:
    double = d.name == "DFMA"
    a, b, c = (d.float(k, double=double) for k in (1, 2, 3))
    return _result(d, lambda w: fma(a(w), b(w), c(w), DOUBLE if double else SINGLE), double)


@handles("FMNMX")
def fmnmx(d: Decoding) -> Action:
    if d.count != 4:
        raise d.unsupported()
    a, b, least = d.float(1), d.float(2), d.predicate(3)
    return _result(d, lambda w: np.where(least(w), np.fmin(a(w), b(w)), np.fmax(a(w), b(w))), double=False)


@handles("FSEL")
def fsel(d: Decoding) -> Action:
    a, b, choice = d.float(1), d.float(2), d.predicate(3)
    return _result(d, lambda w: np.where(choice(w), a(w), b(w)), double=False)


@handles("FSETP", "DSETP")
def fsetp(d: Decoding) -> Action:
    """A comparison whose name ends in U holds where an operand is no number."""
    double = d.name == "DSETP"
    name = d.modifiers[0]
    connective = next(c for c in CONNECTIVES if d.has(c))
    outs = [d.write_predicate(k) for k in (0, 1)]
    a, b, other = d.float(2, double=double), d.float(3, double=double), d.predicate(4)
    if name not in (*COMPARISONS, *(c + "U" for c in COMPARISONS), "NAN", "NUM"):
        raise d.unsupported()

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        x, y = a(warp), b(warp)
        unordered = np.isnan(x) | np.isnan(y)
        if name in ("NAN", "NUM"):
            found = unordered if name == "NAN" else ~unordered
        else:
            found = COMPARISONS[name.removesuffix("U") if name != "U" else name](x, y) & ~unordered
            if name.endswith("U"):
                found |= unordered
        combined = other(warp)
        outs[1](warp, lanes, CONNECTIVES[connective](~found, combined))
        outs[0](warp, lanes, CONNECTIVES[connective](found, combined))

    return action


@handles("MUFU")
def mufu(d: Decoding) -> Action:
    functions: dict[str, Callable[[Array], Array]] = {
        "RCP": lambda x: 1 / x,
        "RSQ": lambda x: 1 / np.sqrt(x),
        "SQRT": np.sqrt,
        "EX2": np.exp2,
        "LG2": np.log2,
        "SIN": lambda x: np.sin(x * (2 * np.pi)),
        "COS": lambda x: np.cos(x * (2 * np.pi)),
    }
    kind = d.modifiers[0]
    if kind in ("RCP64H", "RSQ64H"):
        high = d.read(1)

        def upper(warp: Warp) -> Array:
            value = (high(warp).astype(U64) << U64(32)).view(np.float64)
            return (functions[kind[:3]](value).view(U64) >> U64(32)).astype(U32)

        return computes(d, upper)
    if kind not in functions:
        raise d.unsupported()
    source = d.float(1)
    return _result(d, lambda w: functions[kind](source(w).astype(np.float64)).astype(np.float32), double=False)


def _whole(d: Decoding, names: list[str]) -> tuple[int, bool]:
    """Bits and sign of the integer type among modifiers."""
    found = [m for m in names if m[0] in "US" and m[1:] in ("8", "16", "32", "64")]
    return (int(found[0][1:]), found[0][0] == "S") if found else (32, True)


@handles("I2F", "I2FP")
def to_float(d: Decoding) -> Action:
    bits, has_sign = _whole(d, d.modifiers)
    double = d.has("F64")
    if d.has("F16") or {"RM", "RZ"} & set(d.modifiers):
        raise d.unsupported()
    source = d.read_wide(1) if bits == 64 else d.read(1)

    def value(warp: Warp) -> Array:
        result: list[float | np.floating[Any]] = []
        for x in source(warp).tolist():
            low = x & (1 << bits) - 1
            exact = low - (1 << bits) if has_sign and low >> bits - 1 else low
            if double:
                result.append(float(exact))
                continue
            near = np.float32(exact)
            result.append(np.nextafter(near, np.float32(np.inf)) if d.has("RP") and int(near) < exact else near)
        found: Array = np.array(result, np.float64 if double else np.float32)
        return found

    return computes(d, lambda w: value(w).view(U64 if double else U32), wide=double)


@handles("F2I")
def to_whole(d: Decoding) -> Action:
    bits, has_sign = _whole(d, d.modifiers)
    double = d.has("F64")
    source = d.float(1, double=double)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if has_sign else (0, (1 << bits) - 1)
    turn = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}
    function = next((turn[m] for m in d.modifiers if m in turn), np.rint)

    def one(x: float) -> int:
        if np.isnan(x):
            return 0 if bits == 32 else 1 << bits - 1
        if np.isinf(x):
            return most if x > 0 else least
        return min(max(int(x), least), most) % (1 << max(bits, 32))

    kind = U64 if bits == 64 else U32
    return computes(
        d, lambda w: np.array([one(float(x)) for x in function(source(w))], object).astype(kind), wide=bits == 64
    )


@handles("F2F")
def between_floats(d: Decoding) -> Action:
    if d.modifiers not in (["F64", "F32"], ["F32", "F64"]):
        raise d.unsupported()
    double = d.modifiers[0] == "F64"
    source = d.float(1, double=not double)
    kind = np.float64 if double else np.float32
    return computes(d, lambda w: source(w).astype(kind).view(U64 if double else U32), wide=double)


@handles("FRND")
def rounded(d: Decoding) -> Action:
    turn = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}
    double = d.has("F64")
    function = next((turn[m] for m in d.modifiers if m in turn), np.rint)
    source = d.float(1, double=double)
    return computes(d, lambda w: function(source(w)).view(U64 if double else U32), wide=double)
