"""What a table says: in one order, whoever was done first, and nothing that no answer has."""

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from makespan.host.errors import InputError
from makespan.many.sweep.rows import SweepRow, choose_rows, columns, sweep_rows
from makespan.many.sweep.series import AnswerTimes, SweepCurve, answer_times, heat_map, sweep_curves
from makespan.many.sweep.store import open_store
from makespan.model.result import Bounds
from tests.sweep.tables import Said, document, table

SAID: list[tuple[dict[str, Any], Said]] = [
    ({"warps": 10, "string": "CL", "best-case": True}, (11, 11)),
    ({"warps": 2, "string": "CL", "param": ["N=1", "M=2"]}, (3, 5)),
    ({"warps": 9, "string": "CL"}, "too hard"),
    ({"warps": 1, "string": "CL"}, None),
    ({"warps": 1, "string": "CLL"}, (3, 3)),
]


def test_a_table_says_the_same_whoever_was_done_first(tmp_path: Path) -> None:
    first = table(tmp_path / "a.sqlite", SAID)
    shuffled = random.Random(1).sample(SAID, len(SAID))
    assert first == table(tmp_path / "b.sqlite", shuffled)
    told = columns(first)
    assert told["warps"] == [10, 2, 1, 9, 1]
    assert (told["param"], told["best-case"]) == ([None, "N=1 M=2", None, None, None], ["true", None, None, None, None])
    assert told["status"] == ["exact", "bounded", "missing", "failed", "exact"]
    assert (told["lower"], told["upper"]) == ([11, 3, None, None, 3], [11, 5, None, None, 3])
    assert told["reason"] == [None, None, None, "too hard", None]
    assert told["caveats"][0] == "if every instruction takes one cycle"


@pytest.mark.parametrize(
    "wrong",
    [{"lower": "1"}, {"lower": 1.0}, {"lower": -1}, {"lower": True}, {"upper": 0}, {"best_case": [1]}, {"seconds": "x"},
     {"caveats": None}, {"evidence": []}, {"deadline": []}],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    table(path, SAID[3:4])
    with closing(sqlite3.connect(path)) as connection, connection:
        (key,) = connection.execute("SELECT key FROM asked").fetchone()
        text = json.dumps(document(3, 5) | wrong)
        row = (key, "{}", "exact", 3, 5, 0.0, "d", text, 1, "now")
        connection.execute("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    with open_store(path) as store, pytest.raises(InputError, match="an answer that is none"):
        sweep_rows(store)


def test_an_answer_that_another_one_contradicts_says_so(tmp_path: Path) -> None:
    (before,) = table(tmp_path / "a.sqlite", [({"warps": 1}, (3, 5))])
    (after,) = table(tmp_path / "a.sqlite", [({"warps": 1}, (6, 7))])
    assert after.caveats == ("contradicted by another answer", *before.caveats)
    assert (after.worst, after.digest) == (before.worst, before.digest)


@pytest.fixture
def found(tmp_path: Path) -> tuple[SweepRow, ...]:
    said: list[tuple[dict[str, Any], Said]] = [
        ({"warps": warps, "string": string}, (warps, 2 * warps) if warps < 3 else "late")
        for warps in (1, 2, 3)
        for string in ("CL", "CLL")
    ]
    return table(tmp_path / "a.sqlite", said)


def test_curves_rise_along_a_number_and_know_where_there_is_no_answer(found: tuple[SweepRow, ...]) -> None:
    points = ((1.0, Bounds(1, 2)), (2.0, Bounds(2, 4)), (3.0, None))
    assert sweep_curves(found, "warps", "string") == (
        SweepCurve("string CL", points),
        SweepCurve("string CLL", points),
    )
    assert sweep_curves(choose_rows(found, [("string", "CL")]), "warps", None) == (SweepCurve("", points),)


def test_a_map_has_a_cell_for_each_answer(found: tuple[SweepRow, ...]) -> None:
    made = heat_map(found, ("warps", "string"))
    assert (made.columns, made.rows) == ((1, 2, 3), ("CL", "CLL"))
    assert made.cells == {(warps, s): Bounds(warps, 2 * warps) for warps in (1, 2) for s in made.rows}


def test_times_are_of_all_questions(found: tuple[SweepRow, ...]) -> None:
    assert answer_times(found, None) == (AnswerTimes("", 6, (0.02, 0.02, 0.04, 0.04), ()),)


def test_a_picture_that_would_hide_something_is_refused(found: tuple[SweepRow, ...], tmp_path: Path) -> None:
    many = table(tmp_path / "b.sqlite", [({"warps": 1, "seed": seed}, (1, 1)) for seed in range(9)])
    cases: dict[str, Callable[[], object]] = {
        r"choose by --where string=\.\.\., or": lambda: sweep_curves(found, "warps", None),
        r"several questions have one place": lambda: heat_map(many, ("warps", "warps")),
        "--over string: 'CL' is no number": lambda: sweep_curves(found, "string", "warps"),
        "no question says 'warp'; did you mean 'warps'": lambda: sweep_curves(found, "warp", None),
        "no question says 'x'; there are string, warps": lambda: answer_times(found, "x"),
        "9 groups, and at most 8": lambda: answer_times(many, "seed"),
        "no question has warps = '4': there are 1, 2, 3": lambda: choose_rows(found, [("warps", "4")]),
    }
    for message, ask in cases.items():
        with pytest.raises(InputError, match=message):
            ask()
