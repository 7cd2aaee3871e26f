"""The help of every command: sections, and examples that the command understands."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from makespan import cli

ROOT = Path(__file__).parents[2]
FOLDERS = ("ptx", "examples", "benchmarks", "instruction_strings")


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, by their words, and the groups themselves."""
    yield name, group
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


COMMANDS = dict(commands(cli.cli, "makespan"))


def shown(command: click.Command) -> list[str]:
    """The examples, each in one line."""
    lines = (command.epilog or "").removeprefix("\b\nExamples:\n").replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines]


def understood(words: list[str]) -> click.Command:
    """The command that is called, which takes its options; nothing is run.

    Raises:
        UsageError: an option that there is not, or a value that it does not take.
    """
    command: click.Command | None = cli.cli
    context: click.Context | None = None
    name: str | None = "makespan"
    while isinstance(command, click.Group):
        context = command.make_context(name, words, parent=context)
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    if "--help" not in words:
        command.make_context(name, words, parent=context)
    return command


def page(command: click.Command) -> str:
    """The help as a user sees it: click keeps the option of the first context that asks, for all tests behind."""
    return command.get_help(click.Context(command, **cli.cli.context_settings))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_of_its_command_that_it_understands(name: str) -> None:
    command = COMMANDS[name]
    assert page(command).startswith("Usage: ")
    found = shown(command)
    called = {understood(shlex.split(line)[1:]) for line in found}
    assert command in called or isinstance(command, click.Group)
    assert called <= set(COMMANDS.values())
    assert len(called) > 0
    named = [word for line in found for word in shlex.split(line) if word.split("/")[0] in FOLDERS]
    assert [word for word in named if not (ROOT / word).exists()] == []


@pytest.mark.parametrize("line", ["solve --sm 4", "solve --warps 0", "machine turing", "estimate --method dual-isue"])
def test_an_example_that_is_none_would_be_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        understood(line.split())


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if len(command.params) > 25])
def test_no_section_of_a_long_help_is_long(name: str) -> None:
    """A reader finds an option by the title above it; only --help may be without."""
    options = page(COMMANDS[name]).split("Examples:")[0]
    sections = [part.splitlines() for part in options.split("\n\n") if ":\n  -" in part]
    sizes = {lines[0]: sum(line.startswith("  -") for line in lines) for lines in sections}
    assert len(sizes) > 4
    assert max(sizes.values()) <= 10
    assert sum(sizes.values()) == len([one for one in COMMANDS[name].params if isinstance(one, click.Option)]) + 1
