"""Lines of text: wrapped to the width of the terminal, in columns, and free of letters that print nothing."""

import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

WIDTH = 110
"""The columns of text if no terminal states its width."""

_NARROWEST, _NUMBER = 40, 11
_HELD = ":\N{NO-BREAK SPACE}"


def terminal_width() -> int:
    """Return the columns of the terminal, or a common width if there is none."""
    return shutil.get_terminal_size((WIDTH, 0)).columns


def wrap_line(line: str, width: int = WIDTH, *, hang: int = 2) -> list[str]:
    """Return a line as several lines. All but the first are indented by `hang` more columns.

    A name and its number ("0: 12") stay together, and no word is broken.

    >>> wrap_line("  - the kernels were measured on another machine: a slower one", 40)
    ['  - the kernels were measured on another', '    machine: a slower one']
    """
    indent = " " * (len(line) - len(line.lstrip()) + hang)
    lines = textwrap.wrap(
        # a no-break space keeps a name and its number on one line
        line.replace(": ", _HELD),
        max(width, _NARROWEST),
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_HELD, ": ") for line in lines]


def align_columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Return rows as lines with aligned columns; those in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number_lines(rows: Sequence[tuple[str, str, str]], width: int = WIDTH) -> list[str]:
    """Return lines of a name, a number and the reason for it."""
    names, values = max(len(row[0]) for row in rows), max(_NUMBER, *(len(row[1]) + 2 for row in rows))
    return [line for name, value, why in rows for line in wrap_line(f"{name:<{names}}{value:>{values}}  {why}", width)]


def fact_lines(known: Mapping[str, str], width: int = WIDTH) -> list[str]:
    """Return lines of a name and what is known about it.

    >>> fact_lines({"clock": "SM clock", "issue width": "1"})
    ['clock        SM clock', 'issue width  1']
    """
    hang = max(map(len, known), default=0) + 2
    return [line for name, fact in known.items() for line in wrap_line(f"{name:<{hang}}{fact}", width, hang=hang)]


def bullet_lines(title: str, notes: Iterable[str], width: int = WIDTH) -> list[str]:
    """Return a list under its title; empty if there are no notes."""
    lines = [line for note in notes for line in wrap_line(f"  - {note}", width)]
    return [f"{title}:", *lines] if lines else []


def assumption_lines(notes: Iterable[object], width: int = WIDTH) -> list[str]:
    """Return the list of assumptions."""
    return bullet_lines("assumptions", map(str, notes), width)


MOST_LETTERS = 2000
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""The categories of letters that print nothing: controls, bidi overrides, surrogates, unassigned ones, separators."""


def make_visible(text: str, most: int = MOST_LETTERS) -> str:
    r"""Return the text with each letter that prints nothing as its number, cut to `most` letters.

    >>> make_visible("a\u202eb\n"), make_visible("abcdef", 3)
    ('a\\u{202e}b\\u{a}', 'abc... (6 letters)')
    """
    shown = "".join(
        f"\\u{{{ord(letter):x}}}" if unicodedata.category(letter) in _HIDDEN else letter for letter in text[:most]
    )
    return shown if len(text) <= most else f"{shown}... ({len(text)} letters)"
