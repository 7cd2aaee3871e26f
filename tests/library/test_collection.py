"""Families of instances: what is read, and what is refused with file and remedy."""

import re
from pathlib import Path

import pytest

from benchmarks import families
from makespan.host.errors import InputError
from makespan.many.spec import SpecQuestion, choose_questions, read_library

HEAD = 'title = "t"\norigin = "s"\n'
GOOD = HEAD + 'warps = 2\ncapacity = "C=1"\nquestion = [{ name = "a", string = "C" }]\n'


def library(folder: Path, **files: str) -> tuple[SpecQuestion, ...]:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return read_library(folder)


def test_options_of_a_family_are_those_of_its_instances_unless_they_say_otherwise(tmp_path: Path) -> None:
    other = HEAD + 'warps = 2\nquestion = [{ name = "b", string = "C", warps = 3, note = "three" }]\n'
    found = library(tmp_path, two=other, one=GOOD)
    assert [(entry.name, entry.family, entry.ask) for entry in found] == [
        ("a", "one", {"warps": 2, "capacity": "C=1", "string": "C"}),
        ("b", "two", {"warps": 3, "string": "C"}),
    ]
    assert choose_questions(found, ["two"], ["a"], tmp_path) == found
    assert choose_questions(found, ["one"], [], tmp_path) == found[:1]
    with pytest.raises(InputError, match="no family 'twos' in this library; did you mean 'two'"):
        choose_questions(found, ["twos"], [], tmp_path)


BEFORE = HEAD.replace("origin", "source") + 'ask = { warps = 2 }\ninstance = [{ name = "a", ask = { string = "C" } }]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "one.toml: not a TOML spec"),
        (HEAD, "one.toml: a question of a library needs a name"),
        (HEAD + "question = []\n", "one.toml: not a spec: Expected `array` of length >= 1 - at `$.question`"),
        (GOOD.replace('"a"', '"../a"'), "one.toml: question 1: not a spec: Expected `str` matching regex"),
        (GOOD.replace('"a"', f'"{"a" * 65}"'), "one.toml: question 1: not a spec: Expected `str` matching regex"),
        (GOOD.replace("}]", '}, { name = "a" }]'), "one.toml: question 'a': another one has the name, too"),
        (GOOD.replace('string = "C"', 'each.string = ["C", "L"]'), "a is the name of several questions: leave it out"),
        (BEFORE, "one.toml: a family of a former makespan: write [[question]] for [[instance]], the options of each"),
    ],
)
def test_a_family_that_is_none_is_refused_by_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        library(tmp_path, one=text)


def test_a_folder_without_a_family_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 TOML files; a library has one for each family"):
        read_library(tmp_path)
    with pytest.raises(InputError, match="no folder; a library is a folder"):
        read_library(tmp_path / "missing")


def test_families_that_are_drawn_are_drawn_again_as_they_are() -> None:
    for family in families.families():
        assert (families.FOLDER / f"{family.name}.toml").read_text() == family.text, families.COMMAND


def test_words_have_what_they_are_named_for() -> None:
    binary, ternary = families.thue_morse(64, "CL"), families.thue_morse(64, "CLS")
    assert re.search(r"(.+)\1\1", binary) is None
    assert re.search(r"(.+)\1", ternary) is None
    assert {*ternary} == {*"CLS"}
    assert families.fibonacci(13) == "CLCCLCLCCLCCL"
