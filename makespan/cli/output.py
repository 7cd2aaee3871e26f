"""What a command prints and leaves: `--format` and the writer behind each format, `--quiet`, and files."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from makespan.cli.colours import paint_verdicts
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
    seen = set[Path]()
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{path}: two outputs have this name")
        seen.add(path.resolve())


def write_all(writers: Iterable[Callable[[], None]]) -> None:
    """Write several files; one that fails does not keep the others from being written.

    Raises:
        InputError: the first that failed.
    """
    failed = []
    for write in writers:
        try:
            write()
        except InputError as error:
            failed.append(error)
    if failed:
        raise failed[0]
