"""Specs: what is multiplied, what is fixed, and what is refused before anything is expanded."""

from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.many import spec


def read(folder: Path, text: str) -> tuple[dict[str, Any], ...]:
    path = folder / "a.toml"
    path.write_text(text)
    return tuple(question.ask for question in spec.read_spec(path))


def test_blocks_share_what_is_at_the_top_and_say_otherwise_what_they_like(tmp_path: Path) -> None:
    (tmp_path / "k").mkdir()
    for name in ("b.ptx", "a.ptx", "c.txt"):
        (tmp_path / "k" / name).touch()
    found = read(
        tmp_path,
        """
        time-limit = 5
        seed = 1
        each.warps = ["1..2", 8]
        [[question]]
        string = "CL"
        [[question]]
        seed = 2
        warps = 4
        param = ["N=1", "M=2"]
        each.source = "k/*.ptx"
        each.take = [["a=fall", "b=fall"], "a=taken"]
        """,
    )
    first = [{"time-limit": 5, "seed": 1, "string": "CL", "warps": warps} for warps in (1, 2, 8)]
    other = {"time-limit": 5, "seed": 2, "warps": 4, "param": ["N=1", "M=2"]}
    second = [
        {**other, "source": source, "take": take}
        for source in ("k/a.ptx", "k/b.ptx")
        for take in (["a=fall", "b=fall"], "a=taken")
    ]
    assert list(found) == first + second


def test_a_spec_without_blocks_is_one_block_and_asks_nothing_twice(tmp_path: Path) -> None:
    assert read(tmp_path, 'string = "CL"\neach.warps = [1, 2, 1]') == (
        {"string": "CL", "warps": 1},
        {"string": "CL", "warps": 2},
    )


def test_blocks_of_files_of_before_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, 'string = "CL"\n[[sweep]]\nwarps = 2') == ({"string": "CL", "warps": 2},)


@given(sizes=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3))
def test_there_are_as_many_questions_as_combinations(
    sizes: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(
        f"[[question]]\nblock = {at}\n"
        + "".join(f'each.option{place} = "1..{size}"\n' for place, size in enumerate(block))
        for at, block in enumerate(sizes)
    )
    found = read(tmp_path_factory.getbasetemp(), text)
    assert len(found) == sum(map(prod, sizes)) == len({repr(question) for question in found})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('each.warps = "1..48"\neach.seed = "0..9999"', "a.toml: 480000 questions exceed the limit of 100000"),
        ('each.seed = "0..999999999"', "each.seed has more than 100000 values"),
        ('each.warps = "4..1"', "each.warps: 4..1 is no rising range"),
        ("each.warps = []", "each.warps is empty"),
        ("each = 3", "not a spec: Expected `object`, got `int` - at `$.each`"),
        ("question = 3", "not a spec: Expected `array`, got `int` - at `$.question`"),
        ("question = []", "not a spec: Expected `array` of length >= 1 - at `$.question`"),
        ("question = [{}, { each = 3 }]", "question 2: not a spec: Expected `object`, got `int` - at `$.each`"),
        ("[[sweep]]\nwarps = 1\n[[question]]\nwarps = 2", "[[sweep]] is the former name of [[question]]: write"),
        ("warps = 1\neach.warps = [2]", "warps is said once and in each: which is it?"),
        ("[machine]\nname = 1", "machine is a table: the tables of a spec are each and [[question]]"),
        ('each.source = "*.ptx"', "each.source: no file matches '*.ptx'"),
        ("warps = ", "not a TOML spec"),
    ],
)
def test_what_is_no_spec_is_one_line_with_the_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(tmp_path))
    assert "\n" not in str(refusal.value)
