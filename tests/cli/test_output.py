"""`--format`: one option and one choice of the writer for all commands."""

import re
from pathlib import Path
from unittest.mock import Mock

import click
import pytest

from makespan.cli import cli
from makespan.cli.output import DATA, QUIET, TEXT, remark, render, text_form
from makespan.cli.running import BAD_INPUT, DONE, INTERRUPTED, NO, UNDECIDED, worst_code
from makespan.host.errors import InputError

COMMANDS = Path(__file__).parents[2] / "makespan" / "cli"


def commands(group: click.Command, name: str = "makespan") -> dict[str, click.Command]:
    """All commands, those of groups included."""
    if not isinstance(group, click.Group):
        return {name: group}
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        found |= commands(command, f"{name} {each}")
    return found


def test_every_command_has_text_first_and_all_formats_of_data() -> None:
    formats = {
        name: list(option.type.choices)
        for name, command in commands(cli).items()
        for option in command.params
        if isinstance(option.type, click.Choice) and "--format" in option.opts
    }
    assert len(formats) > 10
    for name, choices in formats.items():
        assert choices[: 1 + len(DATA)] == [TEXT, *DATA], name
    assert {name for name, choices in formats.items() if "csv" in choices} == {"makespan solve", "makespan simulate"}


def test_nobody_else_knows_a_format_by_its_name() -> None:
    known = re.compile(r"""["']--format["']|json\.dumps|== ["']json["']""")
    knowing = {str(p.relative_to(COMMANDS)) for p in COMMANDS.rglob("*.py") if known.search(p.read_text("utf-8"))}
    assert knowing == {"output.py", "__init__.py"}  # errors as JSON


def test_only_the_writer_that_is_asked_for_runs() -> None:
    never = Mock(side_effect=AssertionError)
    assert render(TEXT, text=lambda: "2 cycles", data=never, csv=never) == "2 cycles"
    assert render("csv", text=never, data=never, csv=lambda: "2") == "2"
    assert render("json", text=never, data=lambda: {"cycles": 2}) == '{"cycles": 2}'
    assert render("json", text=never, data=lambda: iter(({"a": 1}, {"b": 2}))) == '{"a": 1}\n{"b": 2}'


def test_quiet_is_a_form_of_the_text_alone() -> None:
    assert text_form(TEXT, quiet=True) == QUIET
    assert text_form("json", quiet=False) == "json"
    with pytest.raises(InputError, match="--quiet leaves the verdict of a text: leave out --format"):
        text_form("json", quiet=True)


def test_remarks_leave_standard_output_to_whoever_parses_it(capsys: pytest.CaptureFixture[str]) -> None:
    remark("picture: a.png", TEXT)
    remark("picture: b.png", "json")
    assert tuple(capsys.readouterr()) == ("picture: a.png\n", "picture: b.png\n")


def test_of_several_answers_the_worst_is_the_exit_code() -> None:
    assert [worst_code(codes) for codes in ([], [DONE], [DONE, UNDECIDED], [UNDECIDED, NO], [NO, INTERRUPTED])] == [
        DONE, DONE, UNDECIDED, NO, INTERRUPTED
    ]  # fmt: skip
    assert len({DONE, NO, BAD_INPUT, UNDECIDED, INTERRUPTED}) == 5
