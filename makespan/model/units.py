"""Times and frequencies with their units, exactly: `200us`, `1.4GHz`. A number without a unit is an error.

Times are `Fraction`s of seconds, frequencies `Fraction`s of hertz. What is printed has six digits, and is rounded to
the safe side: a bound from above never down, what is left until a deadline never up, and a clock never down. A time
that a user has given, or that is seen in one schedule, is printed to the nearest.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

from makespan.host.errors import InputError
from makespan.model.machine.values import shown

MAX_DIGITS = 30
_SHOWN_DIGITS = 6
MAX_SECONDS = Fraction(10**9)
MAX_HERTZ = Fraction(10**12)

PICOSECOND = Fraction(1, 10**12)
SECONDS = {
    "ps": PICOSECOND,
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
}
HERTZ = {"Hz": Fraction(1), "kHz": Fraction(10**3), "MHz": Fraction(10**6), "GHz": Fraction(10**9)}

_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[A-Za-zµμ]*)")


def duration(text: object, what: str) -> Fraction:
    """Return the seconds that `200us` or `0.5 ms` means; zero is allowed.

    Raises:
        InputError: no number, no unit, or more than 10^9 s; the message begins with `what`.
    """
    return _quantity(text, what, "a time", SECONDS, "200us", MAX_SECONDS)


def frequency(text: object, what: str) -> Fraction:
    """Return the hertz that `1.4GHz` means; zero is not allowed.

    Raises:
        InputError: no number, no unit, zero, or more than 1000 GHz; the message begins with `what`.
    """
    value = _quantity(text, what, "a frequency", HERTZ, "1.4GHz", MAX_HERTZ)
    if value == 0:
        raise InputError(f"{what} must be more than zero, not {text!r}")
    return value


def ticks_up(seconds: Fraction, tick: Fraction) -> int:
    """Return the fewest ticks that are no shorter, for times that are upper bounds.

    >>> ticks_up(Fraction(5, 2), Fraction(1)), ticks_down(Fraction(5, 2), Fraction(1))
    (3, 2)
    """
    return ceil(seconds / tick)


def ticks_down(seconds: Fraction, tick: Fraction) -> int:
    """Return the most ticks that are no longer: for periods and deadlines."""
    return floor(seconds / tick)


def round_digits(value: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    """Return the value with as many significant digits as are printed, rounded by `ceil`, `floor` or `round`."""
    if value == 0:
        return value
    size = abs(value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    if size < Fraction(10) ** exponent:  # lengths of numbers only estimate the logarithm
        exponent -= 1
    unit = Fraction(10) ** (exponent + 1 - _SHOWN_DIGITS)
    return rounding(value / unit) * unit


def time_at_most(seconds: Fraction) -> str:
    """Return a bound from above as text, to six digits.

    >>> time_at_most(Fraction(1, 3)), time_at_least(Fraction(1, 3))
    ('333.334 ms', '333.333 ms')
    """
    return shown_time(round_digits(seconds, ceil))


def time_at_least(seconds: Fraction) -> str:
    """Return a bound from below, or slack, as text to six digits; it may be negative."""
    left = round_digits(seconds, floor)  # down, also where it is negative
    return f"-{shown_time(-left)}" if left < 0 else shown_time(left)


def shown_time(seconds: Fraction) -> str:
    """Return a time as text, in the largest unit that leaves a whole part, to the nearest six digits.

    It is for times that a user has given. A bound is printed by `time_at_most` or `time_at_least`.

    >>> shown_time(Fraction(1, 5000)), shown_time(Fraction(0)), shown_time(Fraction(1, 3))
    ('200 us', '0 s', '333.333 ms')
    """
    seconds = round_digits(seconds, round)
    unit = next((name for name, size in reversed(SECONDS.items()) if seconds >= size), "s" if seconds == 0 else "ps")
    return f"{float(seconds / SECONDS[unit]):.6g} {unit}"


def shown_frequency(hertz: Fraction) -> str:
    """Return a frequency as text, in the largest unit that leaves a whole part, to six digits, rounded up.

    Bounds need a clock of at least this frequency, so one that is printed too low would promise too much.

    >>> shown_frequency(Fraction(1_400_000_000)), shown_frequency(Fraction(1_400_000_001))
    ('1.4 GHz', '1.40001 GHz')
    """
    hertz = round_digits(hertz, ceil)  # up: bounds need a clock of at least this
    unit = next((name for name, size in reversed(HERTZ.items()) if hertz >= size), "Hz")
    return f"{float(hertz / HERTZ[unit]):.6g} {unit}"


def _quantity(text: object, what: str, kind: str, units: dict[str, Fraction], example: str, most: Fraction) -> Fraction:
    if not isinstance(text, str):
        raise InputError(f'{what} needs a unit: write {kind} such as "{example}", not {shown(text)}')
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= 2 * MAX_DIGITS else None
    if match is None or len(match["number"]) > MAX_DIGITS:
        raise InputError(f'{what} must be {kind} such as "{example}", not {shown(text)}')
    unit = match["unit"].replace("µ", "u").replace("μ", "u")
    if unit not in units:
        meant = next((known for known in units if known.lower() == unit.lower()), None)
        lacks = f"has no unit that is {kind}'s" if unit else "lacks its unit"
        if meant is not None:
            lacks += f" (the case of letters counts: {meant})"
        raise InputError(f"{what}: {shown(text)} {lacks}; one of {', '.join(units)}")
    value = Fraction(match["number"]) * units[unit]  # exact: no float in between
    if value > most:
        raise InputError(f"{what}: {shown(text)} is too large")
    return value
