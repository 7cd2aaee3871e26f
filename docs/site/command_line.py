"""The reference of the command line, as the program explains itself."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import cast

import click

from makespan.cli import cli


class Markdown(click.HelpFormatter):
    """The help of a command in paragraphs of Markdown, which its parts are written to as to a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:  # noqa: ARG002
        """The line that says what belongs to the command."""
        self.parts.append(_fenced(f"{prog} {args}"))

    def write_text(self, text: str) -> None:
        """Paragraphs, of which those that click is told not to wrap are shown as they are."""
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            is_kept, words = paragraph.startswith("\b"), paragraph.removeprefix("\b").strip("\n")
            self.parts.append(_fenced(words) if is_kept else _text(" ".join(words.split())))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:  # noqa: ARG002
        """Options, as a table without a head."""
        listed = [f"| `{_cell(name)}` | {_text(_cell(means))} |" for name, means in rows]
        self.parts.append("\n".join(["| | |", "| --- | --- |", *listed]))

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Options under a title."""
        self.parts.append(f"**{name}**")
        yield


def reference() -> str:
    """Every command with its help, its options and its examples, as Markdown."""
    context = click.Context(cli, info_name="makespan")
    return "\n\n".join(part for name in cli.list_commands(context) for part in _command(context, name))


def _command(parent: click.Context, name: str) -> Iterator[str]:
    group = cast("click.Group", parent.command)
    command = cast("click.Command", group.get_command(parent, name))
    context = click.Context(command, info_name=name, parent=parent)
    _, *path = context.command_path.split()
    yield f"{'#' * (1 + len(path))} {' '.join(path)}"
    command.format_help(context, formatter := Markdown())
    yield from formatter.parts
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from _command(context, child)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    """Text that says nothing to Markdown but its words."""
    return re.sub(r"([*_<\[`$])", r"\\\1", text)
