"""Families of instances: what is read, and what is refused with file and remedy."""

import re
from pathlib import Path

import pytest

from benchmarks import families
from makespan.host.errors import InputError
from makespan.many.library import collection

HEAD = 'title = "t"\nsource = "s"\n'
GOOD = HEAD + 'ask = { warps = 2, capacity = "C=1" }\ninstance = [{ name = "a", ask = { string = "C" } }]\n'


def library(folder: Path, **files: str) -> collection.Library:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return collection.read_library(folder)


def test_options_of_a_family_are_those_of_its_instances_unless_they_say_otherwise(tmp_path: Path) -> None:
    other = (
        HEAD + 'ask = { warps = 2 }\ninstance = [{ name = "b", ask = { string = "C", warps = 3 }, note = "three" }]\n'
    )
    found = library(tmp_path, two=other, one=GOOD)
    assert [(entry.name, entry.family, dict(entry.ask), entry.note) for entry in found.entries] == [
        ("a", "one", {"warps": 2, "capacity": "C=1", "string": "C"}, ""),
        ("b", "two", {"warps": 3, "string": "C"}, "three"),
    ]
    assert [entry.name for entry in found.chosen(["two"], ["a"])] == ["a", "b"]
    assert [entry.name for entry in found.chosen(["one"], [])] == ["a"]
    with pytest.raises(InputError, match="no family 'twos' in this library; did you mean 'two'"):
        found.chosen(["twos"], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "one.toml: not a TOML family of instances"),
        (HEAD, "one.toml: not a family of instances: Object missing required field `instance`"),
        (HEAD + "instance = []\n", "one.toml: no instance in it; write a table [[instance]]"),
        (GOOD + "more = 1\n", "one.toml: not a family of instances: Object contains unknown field `more`"),
        (GOOD.replace('"a"', '"../a"'), "one.toml: instance 1: the name of an instance has up to 64 of a-z"),
        (GOOD.replace('"a"', f'"{"a" * 65}"'), "one.toml: instance 1: the name of an instance has up to 64 of a-z"),
        (
            GOOD.replace("}]", '}, { name = "a", ask = {} }]'),
            "one.toml: instance 1: another instance has the name 'a'",
        ),
        (GOOD.replace('{ string = "C" }', '"C"'), "Expected `object`, got `str` - at `$.instance[0].ask`"),
    ],
)
def test_a_family_that_is_none_is_refused_by_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        library(tmp_path, one=text)


def test_a_folder_without_a_family_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 TOML files; a library has one for each family"):
        collection.read_library(tmp_path)
    with pytest.raises(InputError, match="no folder; a library is a folder"):
        collection.read_library(tmp_path / "missing")


def test_families_that_are_drawn_are_drawn_again_as_they_are() -> None:
    for family in families.families():
        assert (families.FOLDER / f"{family.name}.toml").read_text() == family.text, families.COMMAND


def test_words_have_what_they_are_named_for() -> None:
    binary, ternary = families.thue_morse(64, "CL"), families.thue_morse(64, "CLS")
    assert re.search(r"(.+)\1\1", binary) is None
    assert re.search(r"(.+)\1", ternary) is None
    assert {*ternary} == {*"CLS"}
    assert families.fibonacci(13) == "CLCCLCLCCLCCL"
