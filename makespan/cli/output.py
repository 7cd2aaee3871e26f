"""The output of a command: `--format` with a writer for each format, `--quiet`, files, and the colours of verdicts."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import Decorator, section
from makespan.cli.parameters import OneOf
from makespan.host.errors import InputError

TEXT, QUIET = "text", "quiet"
DATA: Mapping[str, Callable[[Any], str]] = {"json": json.dumps}
"""How plain data become text, by format; every command that has `format_option` has all of them."""

quiet_option = section("Output", click.option("--quiet", "-q", is_flag=True, help="the verdict alone"))


def format_option(*others: str, what: str | None = None) -> Decorator:
    """Give a command `output`: text, a format of plain data, or one of the `others`; `what` is for the help."""
    formats = OneOf([TEXT, *DATA, *others])
    option = click.option("--format", "output", type=formats, default=TEXT, show_default=True, help=what)
    return section("Output", option)


def text_form(output: str, *, quiet: bool) -> str:
    """Return the value of `--format`, and `QUIET` for what `--quiet` leaves of a text.

    Raises:
        InputError: both are given.
    """
    if quiet and output != TEXT:
        raise InputError("--quiet leaves the verdict of a text: leave out --format")
    return QUIET if quiet else output


def render(output: str, *, text: Callable[[], str], data: Callable[[], Any], **others: Callable[[], str]) -> str:
    """Return what the writer of a format makes; only this writer is called.

    An iterator of plain data becomes one line for each item.

    Verdicts of a text have colours.

    >>> render("json", text=lambda: "2 cycles", data=lambda: {"cycles": 2})
    '{"cycles": 2}'
    """
    if output in DATA:
        made = data()
        return "\n".join(map(DATA[output], made)) if isinstance(made, Iterator) else DATA[output](made)
    made = {TEXT: text, **others}[output]()
    return paint_verdicts(made) if output in (TEXT, QUIET) else made


def remark(line: str, output: str) -> None:
    """Write a line beside the answer: below a text, and on stderr where the answer is for a program."""
    click.echo(line, err=output != TEXT)


def refuse_twice(paths: Sequence[Path]) -> None:
    """Refuse two outputs that have the same name.

    Raises:
        InputError: they have one.
    """
    seen = set[Path]()  # resolved: two names may lead to one file
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{path}: two outputs have this name")
        seen.add(path.resolve())


def write_all(writers: Iterable[Callable[[], None]]) -> None:
    """Write several files; one that fails does not keep the others from being written.

    Raises:
        InputError: the first that failed.
    """
    failed = []  # the first error is told, after all files are tried
    for write in writers:
        try:
            write()
        except InputError as error:
            failed.append(error)
    if failed:
        raise failed[0]


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
