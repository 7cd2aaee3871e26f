"""Numbers from outside as exact rationals, so that what is equal on paper is equal here."""

from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from makespan.errors import InputError
from makespan.machine.values import shown

Number: TypeAlias = int | float | Fraction

LARGEST = 10**18
"""Larger numbers, and positive ones below its inverse, are typing errors; within it no result overflows a float."""


def exact(value: object, what: str, *, positive: bool = False) -> Fraction:
    """The number, which must be finite and not negative; `what` names it in messages.

    A float is the shortest decimal that prints like it: 1.35 is 27/20, as its writer meant.

    Raises:
        InputError: no number, or one out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InputError(f"{what} must be a number, not {shown(value)}")
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{what} must be finite, not {value}")
    if value < 0 or (positive and value == 0):
        raise InputError(f"{what} must be {'above 0' if positive else 'at least 0'}, not {_said(value)}")
    if value > LARGEST or 0 < value * LARGEST < 1:
        raise InputError(f"{what} must be within 1e-18..1e18, not {_said(value)}")
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def whole(value: object, what: str, *, least: int = 1) -> int:
    """The whole number of at least `least`; raises as `exact` does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, not {shown(value)}")
    if not least <= value <= LARGEST:
        raise InputError(f"{what} must be at least {least} and at most 1e18, not {shown(value)}")
    return value


def _said(value: int | float | Fraction) -> str:
    return str(value) if isinstance(value, Fraction) else shown(value)
