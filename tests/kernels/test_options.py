"""The table of options says everything once: fields, commands, files, specs, the page, keys and the documentation."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from makespan.cli.options import QUESTION_OPTIONS, SOLVE_OPTIONS
from makespan.cli.question import from_folder, read_question
from makespan.cli.solve import command as solve_command
from makespan.host.errors import InputError
from makespan.kernels import ptx
from makespan.kernels.flow import Launch
from makespan.kernels.options import (
    FLAG,
    KERNEL_OPTIONS,
    LAUNCH_OPTIONS,
    OPTION_GROUPS,
    PATH,
    QuestionOption,
    kernel_question,
    key_of_field,
    launch_values,
)
from makespan.kernels.question import KernelQuestion
from makespan.many.serve.form import MACHINE_FILE, form_fields

DOCS = Path(__file__).parents[2] / "docs"
PARTS = {
    "launch": {"block", "grid", "parameters"},
    "classes": {each.name for each in fields(ptx.Classes)},
    "loop_bounds": {"", "trusted"},
}
"""The fields of a `KernelQuestion` that several options make, and what of them."""
NO_OPTION = {"source", "by_default", "named"}
"""What a question is about, and what nobody says."""


def cli_table() -> str:
    """What stands in docs/cli.md: every option of a kernel, in the words of the help."""
    rows = (f"| `{written(option)}` | {plain(option.help)} |" for option in KERNEL_OPTIONS)
    return "\n".join(["| option | what it says |", "| --- | --- |", *rows])


def written(option: QuestionOption) -> str:
    value = option.metavar or ("|".join(option.form.words) if option.form.words else option.form.name)
    return f"--{option.name} {value}".replace("|", "\\|").rstrip()


def plain(text: str) -> str:
    return text.replace("|", "\\|")


def keys_table() -> str:
    """What stands in docs/schedulability.md: every key of a kernel, with the option that says the same."""
    rows = (f"| `{key}` | {option.in_toml} | `--{option.name}` |" for key, option in LAUNCH_OPTIONS.items())
    return "\n".join(["| key | value | as the option |", "| --- | --- | --- |", *rows])


@pytest.mark.parametrize(("page", "table"), [("cli.md", cli_table()), ("schedulability.md", keys_table())])
def test_the_tables_of_the_documentation_are_those_of_the_options(page: str, table: str) -> None:
    assert table in (DOCS / page).read_text()


def test_every_field_of_a_kernel_question_has_exactly_one_row() -> None:
    every = {each.name for each in fields(KernelQuestion)} - NO_OPTION
    whole = every - PARTS.keys()
    parts = {f"{field}.{part}".rstrip(".") for field, several in PARTS.items() for part in several}
    made = [option.field for option in KERNEL_OPTIONS if option.field]
    assert sorted(made) == sorted(whole | parts)
    assert PARTS["launch"] == {each.name for each in fields(Launch)} - {"named"}


def test_names_keywords_and_keys_are_unique() -> None:
    every = list(SOLVE_OPTIONS.values())
    for names in (
        [option.name for option in every],
        [option.keyword for option in every],
        [option.key for option in KERNEL_OPTIONS if option.key is not None],
    ):
        assert len(names) == len(set(names))
    assert {option.group for option in every} == OPTION_GROUPS.keys()


def test_commands_take_the_options_of_the_table_by_their_keywords() -> None:
    taken = {parameter.name: parameter for parameter in solve_command.params}
    assert {option.keyword for option in SOLVE_OPTIONS.values()} <= taken.keys()
    for option in SOLVE_OPTIONS.values():
        parameter = taken[option.keyword]
        assert parameter.multiple is option.many if isinstance(parameter, click.Option) else option.name == "source"
    context = solve_command.make_context("solve", ["--string", "CL", "--warps", "2"])
    assert {option.keyword: context.params[option.keyword] for option in QUESTION_OPTIONS.values()} == {
        keyword: value
        for keyword, value in read_question({"string": "CL", "warps": 2}).items()
        if keyword not in ("keep_ptx", "input_format")
    }


def test_the_page_asks_for_every_option_with_a_label() -> None:
    asked = [field.name for part in form_fields() for field in part if field.name != MACHINE_FILE]
    assert sorted(asked) == sorted(name for name, option in SOLVE_OPTIONS.items() if option.label)


def test_every_option_that_names_a_file_starts_from_the_folder_of_what_says_it() -> None:
    """Paths are files, names of machines and GPUs that end in .toml, and loop bounds without `=`."""
    files = {name for name, option in SOLVE_OPTIONS.items() if option.is_file("b") or option.is_file("m.toml")}
    assert files == {"source", "classes", "trace", "loop-bound", "machine", "gpu"}
    assert {option.name for option in SOLVE_OPTIONS.values() if option.form is PATH} <= files | {"keep-ptx"}
    question: dict[str, Any] = {"source": "a.ptx", "machine": "m.toml", "gpu": "rtx-3070", "loop-bound": ["b", "L=2"]}
    found = from_folder(question, Path("in"))
    assert found == {"source": "in/a.ptx", "machine": "in/m.toml", "gpu": "rtx-3070", "loop-bound": ["in/b", "L=2"]}


def test_a_flag_and_a_value_are_told_apart_in_data() -> None:
    for option in QUESTION_OPTIONS.values():
        if option.form is FLAG:
            assert option.read(True) is True
        else:
            with pytest.raises(InputError, match="must be a text or a number"):
                option.read(True)


def test_the_words_of_the_table_are_those_of_ptx() -> None:
    by_name = {option.name: option.form.words for option in KERNEL_OPTIONS}
    assert by_name["profile"] == tuple(ptx.PROFILES)
    assert by_name["dependences"] == tuple(ptx.Dependences)


def test_what_is_not_given_is_what_a_question_has_by_default() -> None:
    asked = kernel_question(Path("k.ptx"), {}, str)
    assert asked == KernelQuestion(Path("k.ptx"))


def test_a_table_of_a_launch_gives_the_values_of_the_options(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("L,3\n")
    table = {
        "block": 64,
        "param": {"n": 5},
        "loop_bound": ["b.csv"],
        "latency": ["global=..9"],
        "entry": "k",
        "warps": 2,
        "warm": True,
    }
    assert launch_values(table, tmp_path) == {
        "block": "64",
        "param": ["n=5"],
        "loop_bounds": [str(tmp_path / "b.csv")],
        "latencies": ["global=..9"],
        "kernel": "k",
        "warps": 2,
        "warm": True,
    }
    asked = kernel_question(tmp_path / "k.ptx", launch_values(table, tmp_path), key_of_field)
    assert asked.warm
    with pytest.raises(InputError, match="warm must be true or false, not 1"):
        launch_values({"warm": 1}, tmp_path)
    assert (asked.entry, asked.launch.parameters, [str(bound.maximum) for bound in asked.loop_bounds]) == (
        "k",
        {"n": 5},
        ["3"],
    )


def test_no_text_of_the_help_is_two_lines() -> None:
    assert [option.name for option in SOLVE_OPTIONS.values() if re.search(r"\n", option.help)] == []
