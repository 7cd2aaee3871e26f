"""The reference of the command line, as the program explains itself."""

import re
from collections.abc import Iterator
from typing import cast

import click

from makespan.cli import cli


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
    yield _fenced("text", f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}")
    yield from _explained(command.help or "")
    records = filter(None, (each.get_help_record(context) for each in command.get_params(context)))
    rows = [f"| `{_cell(option)}` | {_text(_cell(means))} |" for option, means in records if means]
    yield "\n".join(["| option | means |", "| --- | --- |", *rows])
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from _command(context, child)


def _explained(text: str) -> Iterator[str]:
    """Paragraphs, of which those that click is told not to wrap are shown as they are."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith("\b"):
            yield _fenced("text", paragraph.removeprefix("\b").strip("\n"))
        else:
            yield _text(" ".join(paragraph.split()))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    """Text that says nothing to Markdown but its words."""
    return re.sub(r"([*_<\[`$])", r"\\\1", text)
