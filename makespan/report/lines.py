"""Lines of text: as wide as the terminal, and in columns."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 110
"""Columns of text where no terminal says how many it has."""

_NARROWEST = 40
_HELD = ":\N{NO-BREAK SPACE}"


def terminal_width() -> int:
    """The columns of the terminal, or what fits on most where there is none."""
    return shutil.get_terminal_size((WIDTH, 0)).columns


def wrapped(line: str, width: int = WIDTH, *, hang: int = 2) -> list[str]:
    """A line as several, the later ones `hang` columns further to the right.

    A name and its number ("0: 12") stay together, and no word is broken.

    >>> wrapped("  - the kernels were measured on another machine: a slower one", 40)
    ['  - the kernels were measured on another', '    machine: a slower one']
    """
    indent = " " * (len(line) - len(line.lstrip()) + hang)
    lines = textwrap.wrap(
        line.replace(": ", _HELD),
        max(width, _NARROWEST),
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_HELD, ": ") for line in lines]


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows as lines whose columns stand below each other, those in `right` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def assumptions(notes: Iterable[str], width: int = WIDTH) -> list[str]:
    """What must hold, as a list under its head; nothing where nothing is known."""
    lines = [line for note in notes for line in wrapped(f"  - {note}", width)]
    return ["assumptions:", *lines] if lines else []
