"""The bits in which lanes of a warp may differ, and the effect of arithmetic on them.

A `LaneSpread` describes the lanes that are active together. In a block of 256 threads the number of a thread along x
has spread 31; shifted right by 5 it has none, so it is uniform. The spread of a value that is not known is None.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from makespan.kernels.flow.arithmetic import ones
from makespan.kernels.flow.grid import WARP_LANES, Launch, ParameterValue, ThreadRegisters

_WIDEST = 64


class LaneSpread(NamedTuple):
    """The bits of a value in which the active lanes of a warp may differ.

    Args:
        varying: a mask of the bits in which lanes may differ; 0 for a uniform value.
        zeros: how many of the lowest bits are surely 0.
    """

    varying: int
    zeros: int

    def __or__(self, other: "LaneSpread") -> "LaneSpread":
        """Return the least spread that covers both."""
        return LaneSpread(self.varying | other.varying, min(self.zeros, other.zeros))


UNIFORM = LaneSpread(0, 0)
LaneSpreads: TypeAlias = Mapping[str, LaneSpread]

SpreadRule: TypeAlias = Callable[[Sequence[LaneSpread], Sequence[int | None], int], LaneSpread | None]
"""From the spreads of the sources, their values if they are constants, and the width in bits to that of a result."""


class Surroundings(NamedTuple):
    """The facts of the launch, for any instruction: the spreads of special registers, and the known parameters."""

    specials: LaneSpreads
    parameters: Mapping[str, ParameterValue]


def special_spreads(registers: ThreadRegisters, launch: Launch) -> dict[str, LaneSpread]:
    """Return the spreads of the special registers that depend on the block; without a block, only that of the lane."""
    found = {registers.lane: LaneSpread(WARP_LANES - 1, 0)}
    if launch.block is None:
        return found
    varying = dict.fromkeys(registers.thread, 0)
    for number in range(prod(launch.block)):
        own = registers.place(number, launch.block)
        base = registers.place(number - number % WARP_LANES, launch.block)  # the first lane of the same warp
        for name, value in own.items():
            varying[name] |= value ^ base[name]
    found |= {name: LaneSpread(varied, 0) for name, varied in varying.items()}
    return found | {name: spread_of_constant(size) for name, size in registers.sizes(launch).items()}


def spread_of_constant(value: int) -> LaneSpread:
    """Return the spread of a number.

    >>> spread_of_constant(96)
    LaneSpread(varying=0, zeros=5)
    """
    return LaneSpread(0, (value & -value).bit_length() - 1 if value else _WIDEST)


def spread_of_sum(spreads: Sequence[LaneSpread], _: object, w: int) -> LaneSpread:
    """Return the spread of a sum; carries go up from the lowest varying bit, unless they meet zeros there."""
    a, b = spreads
    zeros = min(a.zeros, b.zeros)
    for one, other in ((a, b), (b, a)):
        if not one.varying and one.zeros >= other.varying.bit_length():  # no carry can leave the varying bits
            return LaneSpread(other.varying, zeros)
    varying = a.varying | b.varying
    return LaneSpread(-(varying & -varying) & ones(w), zeros)  # all bits from the lowest varying one on


def spread_of_product(spreads: Sequence[LaneSpread], _: object, w: int) -> LaneSpread:
    """Return the spread of a product, which varies from its lowest varying bit on."""
    a, b = spreads
    varying = a.varying | b.varying
    return LaneSpread(-(varying & -varying) & ones(w) if varying else 0, min(a.zeros + b.zeros, w))


def spread_of_multiply_add(spreads: Sequence[LaneSpread], _: object, w: int) -> LaneSpread:
    """Return the spread of a product and a summand."""
    return spread_of_sum([spread_of_product(spreads[:2], None, w), spreads[2]], None, w)


def spread_of_conjunction(spreads: Sequence[LaneSpread], constants: Sequence[int | None], w: int) -> LaneSpread:
    """Return the spread of a conjunction; a bit that is 0 in a constant varies in no lane."""
    varying = spreads[0].varying | spreads[1].varying
    for number in constants:
        varying &= ones(w) if number is None else number
    return LaneSpread(varying, max(spread.zeros for spread in spreads))


def spread_of_bitwise(spreads: Sequence[LaneSpread], _: object, w: int) -> LaneSpread:
    """Return the spread of any function that works bit by bit."""
    varying = 0
    for spread in spreads:
        varying |= spread.varying
    return LaneSpread(varying & ones(w), min(spread.zeros for spread in spreads) if len(spreads) > 1 else 0)


def spread_of_left_shift(spreads: Sequence[LaneSpread], constants: Sequence[int | None], w: int) -> LaneSpread | None:
    """Return the spread of a left shift by a constant; None for any other."""
    by = constants[1]
    if by is None:
        return None
    return LaneSpread(spreads[0].varying << min(by, w) & ones(w), min(spreads[0].zeros + by, w))


def spread_of_right_shift(spreads: Sequence[LaneSpread], constants: Sequence[int | None], w: int) -> LaneSpread | None:
    """Return the spread of a right shift by a constant; None where the sign varies, whose copies come in."""
    by, varying = constants[1], spreads[0].varying & ones(w)
    if by is None or varying >> (w - 1):  # copies of a varying sign would vary in all upper bits
        return None
    return LaneSpread(varying >> min(by, w), max(spreads[0].zeros - by, 0))


def spread_of_copy(spreads: Sequence[LaneSpread], _: object, w: int) -> LaneSpread | None:
    """Return the spread of a copy, or of a conversion from a type of this width; None where the sign varies."""
    varying = spreads[0].varying & ones(w)
    return None if varying >> (w - 1) and w > 1 else LaneSpread(varying, min(spreads[0].zeros, w))


def compares_alike(test: str, value: LaneSpread, bound: LaneSpread, number: int | None, width: int) -> bool:
    """Return whether all lanes of a value lie on one side of a uniform bound, by a test lt, ge, le or gt.

    With lanes that differ in their lowest n bits alone, all of them are below a multiple of 2^n, or none is.

    Args:
        number: the bound, where it is known.
        width: the bits of both.
    """
    n = value.varying.bit_length()  # lanes lie within a range of 2^n that starts at a multiple of it
    if bound.varying or n >= width:
        return False
    if test in ("lt", "ge"):  # the border lies below the bound
        return bound.zeros >= n
    return test in ("le", "gt") and number is not None and (number + 1) % 2**n == 0
