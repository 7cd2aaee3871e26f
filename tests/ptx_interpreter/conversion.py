"""mov, cvt and cvta: values that change their type, their place or their space."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.ptx_interpreter.arithmetic import ROUNDINGS, applied, clamped, elementwise
from tests.ptx_interpreter.decoding import Decoding, handles
from tests.ptx_interpreter.machine import Action, Warp
from tests.ptx_interpreter.memory import WINDOW_BYTES, WINDOWS
from tests.ptx_interpreter.operands import Vector
from tests.ptx_interpreter.values import LANES, TYPES, U64, Array, Mask, Type, flushed, rounded, unit_interval

TO_WHOLE: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@handles("mov")
def mov(d: Decoding) -> Action:
    kind = d.type()
    target, source = d.operand(0), d.operand(1)
    width = d.choice(("v2", "v4"), "")
    if isinstance(target, Vector) and isinstance(source, Vector):
        return _move_vector(d, kind, target, source)
    if width:
        raise d.unsupported()
    if isinstance(target, Vector):
        return _unpack(d, kind, target)
    if isinstance(source, Vector):
        return _pack(d, kind, source)
    return elementwise(d, kind, [kind], lambda a: a)


def _part(d: Decoding, kind: Type, vector: Vector) -> Type:
    name = f"b{kind.bits // len(vector.elements)}"
    if name not in TYPES or kind.kind != "b":
        raise d.unsupported()
    return TYPES[name]


def _unpack(d: Decoding, kind: Type, target: Vector) -> Action:
    d.done()
    part = _part(d, kind, target)
    writers = [d.write(element, part) for element in target.elements]
    source = d.source(1, kind)

    def action(warp: Warp, m: Mask) -> None:
        parts = np.ascontiguousarray(source(warp, m.bits)).view(part.dtype).reshape(LANES, -1)
        for position, write in enumerate(writers):
            write(warp, m, parts[:, position])

    return action


def _pack(d: Decoding, kind: Type, source: Vector) -> Action:
    d.done()
    part = _part(d, kind, source)
    readers = [d.read(element, part) for element in source.elements]
    return applied(d.target(0, kind), readers, lambda *parts: np.stack(parts, axis=1).view(kind.dtype).reshape(LANES))


def _move_vector(d: Decoding, kind: Type, target: Vector, source: Vector) -> Action:
    d.done()
    writers = [d.write(element, kind) for element in target.elements]
    readers = [d.read(element, kind) for element in source.elements]
    if len(writers) != len(readers):
        raise d.unsupported()

    def action(warp: Warp, m: Mask) -> None:
        values = [read(warp, m.bits).copy() for read in readers]
        for write, value in zip(writers, values, strict=True):
            write(warp, m, value)

    return action


# ---- spaces


@handles("cvta")
def cvta(d: Decoding) -> Action:
    back = d.flag("to")
    base = WINDOWS[_space(d)]
    kind = d.type()
    return elementwise(d, kind, [kind], lambda a: a - kind.dtype.type(base) if back else a + kind.dtype.type(base))


def _space(d: Decoding) -> str:
    found = next((word for word in d.words if word.partition("::")[0] in WINDOWS), None)
    if found not in (*WINDOWS, "shared::cta", "param::entry"):
        raise d.unsupported()
    d.flag(found)
    return found.partition("::")[0]


@handles("isspacep")
def isspacep(d: Decoding) -> Action:
    name = _space(d)
    pred = TYPES["pred"]
    base = np.uint64(WINDOWS[name])

    def inside(a: Array) -> Array:
        if name == "global":
            others = [WINDOWS[other] for other in WINDOWS if other != "global"]
            return np.asarray(~np.logical_or.reduce([(a >= o) & (a < o + WINDOW_BYTES) for o in others]))
        return np.asarray((a >= base) & (a < base + np.uint64(WINDOW_BYTES)))

    return elementwise(d, pred, [U64], inside)


# ---- cvt


@handles("cvt")
def cvt(d: Decoding) -> Action:
    source, target = d.type(), d.type()
    ftz, sat = d.flag("ftz"), d.flag("sat")
    mode = d.choice((*ROUNDINGS, *TO_WHOLE), "")
    if target.is_float:
        function = _to_float(d, source, target, mode)
    else:
        function = _float_to_integer(d, source, target, mode) if source.is_float else _to_integer(target, sat)

    def finished(a: Array) -> Array:
        result = function(flushed(a) if ftz and source.bits == 32 and source.is_float else a)
        if target.is_float:
            result = flushed(result) if ftz and target.bits == 32 else result
            result = unit_interval(result) if sat else result
        return result

    return elementwise(d, target, [source], finished)


def _to_integer(target: Type, sat: bool) -> Callable[[Array], Array]:
    if not sat:
        return lambda a: a.astype(target.dtype)

    def saturated(a: Array) -> Array:
        if a.dtype == np.uint64 or target.dtype == np.uint64:
            return clamped(a.astype(object), target)
        return clamped(a.astype(np.int64), target)

    return saturated


def _float_to_integer(d: Decoding, source: Type, target: Type, mode: str) -> Callable[[Array], Array]:
    """Clamped to the target. NaN becomes 0, or for 64 bits the number whose first bit alone is set.

    Source: PTX ISA, cvt, notes on float-to-integer conversions.
    """
    if mode not in TO_WHOLE:
        raise d.unsupported()
    limits = np.iinfo(target.dtype)
    nan = 0 if source.bits < 64 and target.bits < 64 else int(limits.min) or 1 << (target.bits - 1)

    def whole(value: float) -> int:
        if value != value:
            return nan
        if abs(value) == np.inf:
            return int(limits.max if value > 0 else limits.min)
        return min(max(int(value), int(limits.min)), int(limits.max))

    def converted(a: Array) -> Array:
        values = TO_WHOLE[mode](a.astype(np.float64))
        if target.bits < 64:
            return np.asarray(np.clip(np.nan_to_num(values, nan=nan), limits.min, limits.max).astype(target.dtype))
        return np.array([whole(value) for value in values.tolist()], target.dtype)

    return converted


def _to_float(d: Decoding, source: Type, target: Type, mode: str) -> Callable[[Array], Array]:
    if mode in TO_WHOLE:
        if source is not target:
            raise d.unsupported()
        return TO_WHOLE[mode]
    exact = source.is_float and target.bits >= source.bits
    if mode == "" and not exact:
        raise d.unsupported()
    if mode in ("", "rn") or exact:
        return lambda a: a.astype(target.dtype)

    def one(value: Any) -> float:
        finite = isinstance(value, int) or np.isfinite(value)
        return rounded(Fraction(value), target.bits, mode) if finite and value else float(value)

    return lambda a: np.array([one(value) for value in a.tolist()], np.float64).astype(target.dtype)
