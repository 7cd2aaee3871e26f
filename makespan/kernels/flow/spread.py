"""In which bits the lanes of a warp may differ, and what arithmetic makes of it.

A `Spread` speaks of the lanes that are active together. The number of a thread along x has spread 31 in a block of 256
threads, so shifted right by 5 it has none: it is uniform. A value of unknown spread is None.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from makespan.kernels.flow.arithmetic import ones
from makespan.kernels.flow.grid import WARP_LANES, Launch, Parameter, ThreadRegisters

_WIDEST = 64


class Spread(NamedTuple):
    """What is known of a value in the active lanes of a warp.

    Args:
        varying: a mask of the bits in which lanes may differ; 0 for a uniform value.
        zeros: how many of the lowest bits are surely 0.
    """

    varying: int
    zeros: int

    def __or__(self, other: "Spread") -> "Spread":
        """What covers both."""
        return Spread(self.varying | other.varying, min(self.zeros, other.zeros))


UNIFORM = Spread(0, 0)
Spreads: TypeAlias = Mapping[str, Spread]

Rule: TypeAlias = Callable[[Sequence[Spread], Sequence[int | None], int], Spread | None]
"""From the spreads of the sources, their values if they are constants, and the width in bits to that of a result."""


class Surroundings(NamedTuple):
    """What the launch says, whatever the instruction: the spreads of special registers, and the known parameters."""

    specials: Spreads
    parameters: Mapping[str, Parameter]


def special_spreads(registers: ThreadRegisters, launch: Launch) -> dict[str, Spread]:
    """Return the spreads of the special registers that depend on the block; without a block, only that of the lane."""
    found = {registers.lane: Spread(WARP_LANES - 1, 0)}
    if launch.block is None:
        return found
    varying = dict.fromkeys(registers.thread, 0)
    for number in range(prod(launch.block)):
        own = registers.place(number, launch.block)
        base = registers.place(number - number % WARP_LANES, launch.block)
        for name, value in own.items():
            varying[name] |= value ^ base[name]
    found |= {name: Spread(varied, 0) for name, varied in varying.items()}
    return found | {name: constant(size) for name, size in registers.sizes(launch).items()}


def constant(value: int) -> Spread:
    """Return the spread of a number.

    >>> constant(96)
    Spread(varying=0, zeros=5)
    """
    return Spread(0, (value & -value).bit_length() - 1 if value else _WIDEST)


def added(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    """Carries go up from the lowest bit that varies, unless the other summand has only zeros where lanes differ."""
    a, b = spreads
    zeros = min(a.zeros, b.zeros)
    for one, other in ((a, b), (b, a)):
        if not one.varying and one.zeros >= other.varying.bit_length():
            return Spread(other.varying, zeros)
    varying = a.varying | b.varying
    return Spread(-(varying & -varying) & ones(w), zeros)


def multiplied(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    """Return a product varies from its lowest bit that does on."""
    a, b = spreads
    varying = a.varying | b.varying
    return Spread(-(varying & -varying) & ones(w) if varying else 0, min(a.zeros + b.zeros, w))


def multiplied_and_added(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    """Return a product and a summand."""
    return added([multiplied(spreads[:2], None, w), spreads[2]], None, w)


def conjoined(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread:
    """Return a bit that is 0 in a constant varies in no lane."""
    varying = spreads[0].varying | spreads[1].varying
    for number in constants:
        varying &= ones(w) if number is None else number
    return Spread(varying, max(spread.zeros for spread in spreads))


def combined(spreads: Sequence[Spread], _: object, w: int) -> Spread:
    """Bit by bit, whatever the function."""
    varying = 0
    for spread in spreads:
        varying |= spread.varying
    return Spread(varying & ones(w), min(spread.zeros for spread in spreads) if len(spreads) > 1 else 0)


def shifted_left(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread | None:
    """By a constant; otherwise nothing is known."""
    by = constants[1]
    if by is None:
        return None
    return Spread(spreads[0].varying << min(by, w) & ones(w), min(spreads[0].zeros + by, w))


def shifted_right(spreads: Sequence[Spread], constants: Sequence[int | None], w: int) -> Spread | None:
    """Return only where the sign does not vary, whose copies come in from above."""
    by, varying = constants[1], spreads[0].varying & ones(w)
    if by is None or varying >> (w - 1):
        return None
    return Spread(varying >> min(by, w), max(spreads[0].zeros - by, 0))


def copied(spreads: Sequence[Spread], _: object, w: int) -> Spread | None:
    """Return a copy, or a conversion from a type of this width; only where the sign does not vary."""
    varying = spreads[0].varying & ones(w)
    return None if varying >> (w - 1) and w > 1 else Spread(varying, min(spreads[0].zeros, w))
