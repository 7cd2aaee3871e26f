"""Arithmetic of registers of a fixed width, exactly, for one thread or many at once.

A value is the bits of a register as a non-negative int; or an array of such; or None where it is unknown, which only
`select_known`, `conjunction` and `disjunction` take. The formulas hold for ints and for arrays of 64-bit unsigned
integers alike, whose sums and products wrap around.

Glossary: w width in bits, m mask of w ones, s the sign bit alone.
"""

import operator
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    RegisterArray: TypeAlias = NDArray[np.uint64]
    KnownValue: TypeAlias = int | RegisterArray
    RegisterValue: TypeAlias = int | RegisterArray | None

ALL = 2**64 - 1
TESTS: Mapping[str, Callable[[Any, Any], Any]] = {
    test.__name__: test for test in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
}
"""The comparisons, by the names that languages have for them in lower case: `eq`, `ne`, `lt`, `le`, `gt`, `ge`."""


def select(condition: "KnownValue", a: "KnownValue", b: "KnownValue") -> "KnownValue":
    """Return `a` where the condition is 1 and `b` where it is 0."""
    if isinstance(condition, int):
        return a if condition else b
    import numpy as np

    return np.where(condition != 0, np.asarray(a, dtype=np.uint64), np.asarray(b, dtype=np.uint64))


def select_known(a: Any, b: Any, c: Any) -> tuple[Any]:
    """Return `a` where c is 1 and `b` where it is 0; None where that is unknown."""
    if c is None or (not isinstance(c, int) and (a is None or b is None)):
        return (a if isinstance(a, int) and isinstance(b, int) and a == b else None,)
    return ((a if c else b) if isinstance(c, int) else select(c, a, b),)


def elementwise(scalar: Callable[..., int | None]) -> Callable[..., tuple[Any]]:
    """Return a computation on ints that is applied to each element of arrays; one unknown element makes all unknown."""

    def compute(*values: Any) -> tuple[Any]:
        if all(isinstance(value, int) for value in values):
            return (scalar(*values),)
        import numpy as np

        rows = zip(*(array.tolist() for array in np.broadcast_arrays(*values)), strict=True)
        found = [scalar(*row) for row in rows]
        return (None if None in found else np.array(found, dtype=np.uint64),)

    return compute


def conjunction(a: Any, b: Any) -> tuple[Any]:
    """Return `a & b`; None where that is unknown."""
    if a is None or b is None:
        return (0 if _is(a, 0) or _is(b, 0) else None,)  # 0 decides a conjunction alone
    return (a & b,)


def disjunction(m: int) -> Callable[[Any, Any], tuple[Any]]:
    """Return a computation of `a | b` for operands without bits beyond m; its result is None where that is unknown."""

    def compute(a: Any, b: Any) -> tuple[Any]:
        if a is None or b is None:
            return (m if _is(a, m) or _is(b, m) else None,)  # all ones decide a disjunction alone
        return (a | b,)

    return compute


def exclusive(a: Any, b: Any) -> tuple[Any]:
    """Return `a ^ b`; None where that is unknown."""
    return (None if a is None or b is None else a ^ b,)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def ones(w: int) -> int:
    """Return the number that is w ones in binary."""
    return (1 << w) - 1


def truth_bit(truth: Any) -> Any:
    """Return 0 or 1 in place of False or True, or an array of them."""
    return int(truth) if isinstance(truth, bool) else truth.astype("uint64")


def at_most(a: Any, most: int) -> Any:
    """Return the smaller one of `a` and `most`."""
    return select(truth_bit(a < most), a, most)


def as_signed(a: int, w: int) -> int:
    """Return the number whose two's complement `a` is.

    >>> as_signed(255, 8), as_signed(255, 16)
    (-1, 255)
    """
    return a - (1 << w) if a >> (w - 1) else a


def sign_extend(a: Any, w: int) -> Any:
    """Return a signed number of `w` bits in 64 bits."""
    s = 1 << (w - 1)
    return ((a ^ s) - s) & ALL  # turns the sign bit into borrows above it, without a branch


def product(a: int, b: int, w: int, signed: bool) -> int:
    """Return the product of two numbers of w bits as a number of any size."""
    return as_signed(a, w) * as_signed(b, w) if signed else a * b


def wide_product(a: Any, b: Any, w: int, signed: bool) -> Any:
    """Return the product of two numbers of w bits in twice the width."""
    return (sign_extend(a, w) * sign_extend(b, w) if signed else a * b) & ones(2 * w)


def shifted_right(a: Any, b: Any, w: int, *, signed: bool) -> Any:
    """Return `a` shifted right by `b`; a signed shift by w or more leaves copies of the sign."""
    if not signed:
        return select(truth_bit(b < w), a >> at_most(b, 63), 0)
    s, by = 1 << (w - 1), at_most(b, w - 1)  # a shift by w - 1 leaves only copies of the sign, as larger ones do
    return (((a ^ s) >> by) - (s >> by)) & ones(w)


def division(*, remainder: bool) -> Callable[[Any, Any], tuple[Any]]:
    """Return a computation of the quotient or the remainder of unsigned numbers; division by zero is unknown."""

    def compute(a: Any, b: Any) -> tuple[Any]:
        if not (b if isinstance(b, int) else b.all()):
            return (None,)
        return (a % b if remainder else a // b,)

    return compute


def signed_division(w: int, *, remainder: bool) -> Callable[..., tuple[Any]]:
    """Return a computation of the quotient, rounded towards zero, or the remainder; unknown where it does not fit."""

    def compute(a: int, b: int) -> int | None:
        x, y = as_signed(a, w), as_signed(b, w)
        if y == 0 or (y == -1 and x == -(2 ** (w - 1))):  # the results of both depend on the hardware
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return (x - quotient * y if remainder else quotient) & ones(w)

    return elementwise(compute)


def extract_field(a: int, position: int, length: int, w: int, signed: bool) -> int:
    """Return `length` bits from `position` on; above the field there are copies of its sign, or zeros."""
    field = a >> position & ones(length)
    sign = a >> min(position + length - 1, w - 1) & 1 if signed and length else 0
    present = max(0, min(length, w - position))  # the part of the field that lies within the register
    return (field | (ALL << present if sign else 0)) & ones(w)


def insert_field(a: int, b: int, position: int, length: int, w: int) -> int:
    """Return `b` with the lowest `length` bits of `a` put at `position`.

    >>> hex(insert_field(0xAB, 0x12345678, 8, 8, 32))
    '0x1234ab78'
    """
    hole = ones(length) << position
    return (b & ~hole | (a << position) & hole) & ones(w)


def look_up(a: int, b: int, c: int, table: int) -> int:
    """Return, for each bit, the entry of the table that the bits of a, b and c number.

    >>> look_up(0b1100, 0b1010, 0, 0b11000000)  # a and b
    8
    """
    found = 0
    for entry in range(8):
        if table >> entry & 1:
            found |= (a if entry & 4 else ~a) & (b if entry & 2 else ~b) & (c if entry & 1 else ~c)
    return found & ones(32)


def ieee(bits: int, w: int) -> float | None:
    """Return the float with these bits; None for a subnormal one."""
    found: float = struct.unpack("<f" if w == 32 else "<d", bits.to_bytes(w // 8, "little"))[0]
    least = 2.0**-126 if w == 32 else 2.0**-1022
    return None if found != 0 and abs(found) < least else found  # hardware may take subnormal numbers for zero
