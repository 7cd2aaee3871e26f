"""Counts that a user writes down instead of having them derived from a kernel."""

from fractions import Fraction

from makespan.errors import InputError
from makespan.estimators.decimal_text import number
from makespan.estimators.hong_kim.exact import exact
from makespan.machine.values import shown

COUNTS = {
    "comp": "comp_insts",
    "coal": "coal_mem_insts",
    "uncoal": "uncoal_mem_insts",
    "synch": "synch_insts",
    "uncoal_per_mw": "uncoal_per_mw",
    "load_bytes": "load_bytes_per_warp",
}
"""Fields of `HongKimKernel` by the names that a list of counts has."""


def counts(text: str, what: str) -> dict[str, Fraction]:
    """The numbers of `NAME=N,...`, by field.

    >>> counts("comp=27,uncoal=6", "--counts")
    {'comp_insts': Fraction(27, 1), 'uncoal_mem_insts': Fraction(6, 1)}

    Raises:
        InputError: an unknown name, one that is given twice, or no number.
    """
    found: dict[str, Fraction] = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in COUNTS:
            raise InputError(f"{what}: unknown name {shown(name)}; known: {', '.join(COUNTS)}")
        if COUNTS[name] in found:
            raise InputError(f"{what}: {name} is given twice")
        found[COUNTS[name]] = _exact(value, f"{what}: {name}")
    return found


def _exact(text: str, what: str) -> Fraction:
    value = number(text)
    if value is None:
        raise InputError(f"{what} must be a number, not {shown(text)}")
    return exact(int(value) if value.is_integer() else value, what)
