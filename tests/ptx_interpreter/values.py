"""Types and numbers. A register is 32 lanes of 64 raw bits; the type is that of the instruction that looks at it."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LANES = 32
Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Type:
    """A fundamental type; `kind` is u, s, b (plain bits), f or p (predicate)."""

    name: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        letter = {"u": "u", "s": "i", "b": "u", "f": "f", "p": "b"}[self.kind]
        return np.dtype(bool if letter == "b" else f"{letter}{self.bytes}")

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    def wider(self) -> "Type":
        return TYPES[f"{self.kind}{self.bits * 2}"]


TYPES = {
    **{f"{kind}{bits}": Type(f"{kind}{bits}", kind, bits) for kind in "usb" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": Type(f"f{bits}", "f", bits) for bits in (16, 32, 64)},
    "pred": Type("pred", "p", 1),
}
U8, U16, U32, S32, U64, S64 = (TYPES[name] for name in ("u8", "u16", "u32", "s32", "u64", "s64"))
B32, B64, F32, F64, PRED = (TYPES[name] for name in ("b32", "b64", "f32", "f64", "pred"))


@dataclass(frozen=True, slots=True)
class Mask:
    """A set of lanes, bit i for lane i, and the same set as an array of booleans."""

    bits: int
    lanes: Array
    indices: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.indices[0]


@cache
def mask(bits: int) -> Mask:
    indices = tuple(lane for lane in range(LANES) if bits >> lane & 1)
    lanes = np.zeros(LANES, bool)
    lanes[list(indices)] = True
    return Mask(bits, lanes, indices)


def bits_of(lanes: Array) -> int:
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


def where(condition: Array, then: Any, otherwise: Any) -> Array:
    found: Array = np.where(condition, then, otherwise)
    return found


def seen_as(raw: Array, kind: Type) -> Array:
    """Raw registers as values of a type: the low bits, not copied."""
    if kind is PRED:
        return np.not_equal(raw, 0)
    seen: Array = raw.view(kind.dtype)[:: 8 // kind.bytes]
    return seen


def raw(values: Array, kind: Type) -> Array:
    """Values of a type as raw registers; signed integers are extended by their sign, all else by zeros."""
    if kind.kind == "s":
        return values.astype(kind.dtype, copy=False).astype(np.int64).view(np.uint64)
    if kind.is_float:
        return values.astype(kind.dtype, copy=False).view(f"u{kind.bytes}").astype(np.uint64)
    return values.astype(kind.dtype, copy=False).astype(np.uint64)


# ---- rounding

PRECISION = {16: (11, -24), 32: (24, -149), 64: (53, -1074)}
"""By width: bits of the significand, and the exponent of the least subnormal."""
LARGEST = {bits: Fraction(float(np.finfo(f"f{bits // 8}").max)) for bits in (16, 32, 64)}


def rounded(value: Fraction, bits: int, mode: str) -> float:
    """The number of this width that stands for a rational; `mode` is rn, rz, rm (down) or rp (up).

    Source: IEEE 754-2008, sections 4.3 and 7.4. An exact zero is +0.
    """
    if value == 0:
        return 0.0
    precision, least = PRECISION[bits]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    count, rest = divmod(size, unit)
    away = {"rm": value < 0, "rp": value > 0, "rz": False}
    half = unit / 2
    up = rest > 0 and away[mode] if mode in away else rest > half or (rest == half and count % 2 == 1)
    result = (count + up) * unit
    if result > LARGEST[bits]:
        result_float = math.inf if mode == "rn" or away[mode] else float(LARGEST[bits])
    else:
        result_float = float(result)
    return math.copysign(result_float, value)


def exactly(function: Callable[..., Fraction], kind: Type, mode: str, *operands: Array) -> tuple[Array, Array]:
    """A rational function of the lanes, rounded once, and where it is zero before rounding; all operands are finite."""
    exact = [function(*(Fraction(operand[lane].item()) for operand in operands)) for lane in range(LANES)]
    numbers = [rounded(value, kind.bits, mode) for value in exact]
    return np.array(numbers, np.float64).astype(kind.dtype), np.array([value == 0 for value in exact])


def directed(function: Callable[[Any, Any], Any], kind: Type, mode: str, a: Array, b: Array) -> Array:
    """A sum, product or quotient of floats in a rounding mode; `function` is of the module operator."""
    nearest: Array = function(a, b).astype(kind.dtype)
    if mode == "rn":
        return nearest
    finite = np.isfinite(a) & np.isfinite(b) & ((b != 0) | (function is not operator.truediv))
    exact, zero = exactly(function, kind, mode, *(where(finite, x, x.dtype.type(1)) for x in (a, b)))
    result = where(finite & ~zero, exact, nearest)
    downward = finite & zero & (function is operator.add) & (mode == "rm") & (np.signbit(a) != np.signbit(b))
    return where(downward, -0.0, result).astype(kind.dtype)


def fma(a: Array, b: Array, c: Array, kind: Type, mode: str = "rn") -> Array:
    """a * b + c, rounded once."""
    if kind.bits == 64 or mode != "rn":
        return _fma_exact(a, b, c, kind, mode)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: twice 24 bits fit in 53
    return odd_sum(product, c.astype(np.float64)).astype(kind.dtype)


def odd_sum(a: Array, b: Array) -> Array:
    """a + b in doubles, rounded to odd, so that rounding again to half the precision or less is as rounding once.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57(4), 2008.
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    step = where((error > 0) == (total > 0), 1, -1)
    return where(inexact, (total.view(np.int64) + step).view(np.float64), total)


def _fma_exact(a: Array, b: Array, c: Array, kind: Type, mode: str) -> Array:
    product = a.astype(np.float64) * b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    operands = (where(finite, x, x.dtype.type(1)) for x in (a, b, c))
    exact, zero = exactly(lambda x, y, z: x * y + z, kind, mode, *operands)
    differ = np.signbit(product) != np.signbit(c)
    signed_zero = where(differ, -0.0 if mode == "rm" else 0.0, np.copysign(0.0, c))
    result = where(finite, where(zero, signed_zero, exact), product + c)
    return result.astype(kind.dtype)


def flushed(values: Array) -> Array:
    """Subnormal numbers become zeros of the same sign."""
    tiny = np.abs(values) < np.finfo(values.dtype).tiny
    return where(tiny, np.copysign(values.dtype.type(0), values), values)


def unit_interval(values: Array) -> Array:
    """Saturated to [0, 1]; NaN becomes +0."""
    return where(values > 0, np.minimum(values, values.dtype.type(1)), values.dtype.type(0))
