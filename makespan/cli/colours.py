"""Colours of a terminal: the words of a verdict say whether it is good, open or bad, and the colour shows it."""

import os
import re
from collections.abc import Mapping

import click

_GOOD, _OPEN, _BAD = "green", "yellow", "red"
_MEANINGS: Mapping[str, str] = {
    "exact": _GOOD,
    "schedulable": _GOOD,
    "accepted": _GOOD,
    "met": _GOOD,
    "deadline met": _GOOD,
    "below the bound": _GOOD,
    "bounded": _OPEN,
    "undecided": _OPEN,
    "deadline undecided": _OPEN,
    "unproven": _OPEN,
    "not schedulable": _BAD,
    "rejected": _BAD,
    "missed": _BAD,
    "deadline missed": _BAD,
    "EXPECTED": _BAD,
    "NOT BELOW THE BOUND": _BAD,
}
_WORDS = "|".join(_MEANINGS)
_SAID = re.compile(rf"^(?:{_WORDS})\b|(?<=  )(?:{_WORDS})(?=  |$| \d)", re.MULTILINE)


def wants_colours() -> bool | None:
    """Return what `NO_COLOR` and `FORCE_COLOR` say of colours; None lets click look for a terminal.

    Source: no-color.org and force-color.org; of both together the first wins, as in Python.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def paint_verdicts(text: str) -> str:
    r"""Return a text with its verdicts in colour, at the start of lines and as cells of tables.

    `click.echo` takes the colours away where the output is no terminal.

    >>> paint_verdicts("exact: the worst case is 9 cycles, and exact")
    '\x1b[32mexact\x1b[0m: the worst case is 9 cycles, and exact'
    """
    return _SAID.sub(lambda found: click.style(found[0], fg=_MEANINGS[found[0]]), text)


def paint_error(message: str) -> str:
    """Return an error message with the coloured name of the program in front of it."""
    return f"{click.style('makespan:', fg=_BAD)} {message}"
