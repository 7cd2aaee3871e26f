"""The table of a sweep as data and as pictures."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from makespan.host.errors import InputError
from makespan.many.report.sweep_file import as_csv, as_parquet, check_table_path, write_table
from makespan.many.report.sweep_picture import draw_sweep, figure_of
from makespan.many.sweep.rows import SweepRow, columns
from makespan.many.sweep.series import sweep_curves
from tests.sweep.tables import Said, table

SAID: list[tuple[dict[str, Any], Said]] = [
    ({"warps": 1, "string": "CL$"}, (2, 2)),
    ({"warps": 2, "string": "CL$"}, (2, 7)),
    ({"warps": 3, "string": "CL$"}, 'no, "never"'),
    ({"warps": 1, "string": "CLL"}, (3, 3)),
]


@pytest.fixture
def found(tmp_path: Path) -> tuple[SweepRow, ...]:
    return table(tmp_path / "a.sqlite", SAID)


def test_csv_has_every_question_and_what_is_not_known_is_empty(found: tuple[SweepRow, ...], tmp_path: Path) -> None:
    write_table(found, tmp_path / "a.csv")
    read = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [(row["string"], row["warps"], row["lower"], row["upper"], row["reason"]) for row in read] == [
        ("CL$", "1", "2", "2", ""),
        ("CL$", "2", "2", "7", ""),
        ("CL$", "3", "", "", 'no, "never"'),
        ("CLL", "1", "3", "3", ""),
    ]
    assert as_csv(columns(())).decode().startswith("status,lower,upper,")


def test_parquet_has_the_same_with_types(found: tuple[SweepRow, ...]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(as_parquet(columns(found)))).to_pydict()
    assert read == columns(found)
    types = {field.name: str(field.type) for field in parquet.read_schema(io.BytesIO(as_parquet(columns(found))))}
    assert {types[name] for name in ("warps", "lower", "upper", "best_lower")} == {"int64"}
    assert {types[name] for name in ("string", "status", "reason", "deadline_outcome")} == {"string"}


def test_parquet_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"Parquet needs pyarrow: pip install 'makespan\[parquet\]', or write \.csv"):
        as_parquet({})


def test_a_table_is_csv_or_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.xls: the name of a table must end in \.csv or \.parquet"):
        check_table_path(tmp_path / "a.xls")


SHOWN: list[tuple[tuple[str, ...], str | None, str, list[str]]] = [
    (
        ("warps",),
        "string",
        "Worst case over warps",
        ["string CL$", "string CLL", "bounded: lower to upper", "no answer for one of them"],
    ),
    (
        ("warps", "string"),
        None,
        "Worst case over warps and string",
        ["at most so much: the worst case is only bounded", "no answer, or not asked"],
    ),
    (
        (),
        "string",
        "Answers over the time that they took",
        ["string CL$: 3", "string CLL: 1", "exact", "exact or bounded"],
    ),
]


@pytest.mark.parametrize(("over", "by", "title", "keys"), SHOWN)
def test_a_picture_says_what_it_shows_and_on_which_conditions(
    over: tuple[str, ...], by: str | None, title: str, keys: list[str], found: tuple[SweepRow, ...]
) -> None:
    figure = figure_of(found, over, by)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == keys
    head = [text.get_text() for text in figure.texts]
    assert head[:2] == [title, "several options"]
    assert head[2].startswith("4 questions if every instruction takes one cycle: 2 exact, 1 bounded, 1 failed")


def test_a_picture_does_not_say_more_than_its_answers(found: tuple[SweepRow, ...]) -> None:
    fair = [replace(row, caveats=("for a fair scheduler",)) for row in found]
    for rows, proven in (
        (found, "work-conserving scheduler"),
        (fair, "; proven for every work-conserving scheduler that is fair"),
        ([row for row in found if row.worst is None], "1 failed"),
    ):
        below = figure_of(rows, ("warps",), "string").texts
        assert " ".join(text.get_text() for text in below).endswith(proven)
    unsaid = [replace(row, question={"warps": row.question["warps"]}) for row in found[:1]]
    assert [curve.name for curve in sweep_curves([*unsaid, *found[1:]], "warps", "string")] == [
        "without string", "string CL$", "string CLL"
    ]  # fmt: skip


def test_conditions_are_written_whole_and_the_picture_grows_for_them(found: tuple[SweepRow, ...]) -> None:
    caveats = ("for the PTX as written", f"with unverified latencies ({', '.join(40 * ['special'])})", "if global")
    doubted = [replace(row, caveats=caveats) for row in found]
    for over, by in ((("warps",), "string"), (("warps", "string"), None)):
        short, long = (figure_of(rows, over, by) for rows in (found, doubted))
        head = " ".join(text.get_text() for text in long.texts)
        assert f"4 questions {', '.join(caveats)}: 2 exact, 1 bounded, 1 failed; proven for every" in head
        assert head.endswith("work-conserving scheduler")
        inches = [figure.get_figheight() for figure in (short, long)]
        assert inches[1] > inches[0] + 0.4
        for before, after in zip(short.axes, long.axes, strict=True):
            places = [each.get_position() for each in (before, after)]
            assert places[0].y1 * inches[0] == pytest.approx(places[1].y1 * inches[1])
            assert places[0].y0 * inches[0] == pytest.approx(places[1].y0 * inches[1])
        ends = [each.legends[0].get_bbox_to_anchor().y0 for each in (short, long)]
        assert ends[0] == pytest.approx(ends[1])


def test_rows_of_a_map_that_begin_alike_have_different_names(found: tuple[SweepRow, ...]) -> None:
    alike = [replace(found[0], question={"warps": 1, "string": 30 * "CL" + end}) for end in "CL"]
    (axes, _) = figure_of(alike, ("warps", "string"), None).axes
    assert len({label.get_text() for label in axes.get_yticklabels()}) == 2


def test_equal_tables_give_equal_pictures(found: tuple[SweepRow, ...], tmp_path: Path) -> None:
    for path in (tmp_path / "a.svg", tmp_path / "b.svg"):
        draw_sweep(found, ("warps", "string"), None, path)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "4 questions" in (tmp_path / "a.svg").read_text()


def test_cells_and_marks_tell_exact_from_bounded(found: tuple[SweepRow, ...]) -> None:
    cells = figure_of(found, ("warps", "string"), None).axes[0]
    assert sorted(text.get_text() for text in cells.texts) == ["2", "3", "\N{LESS-THAN OR EQUAL TO}7"]
    assert sum(patch.get_hatch() == "////" for patch in cells.patches) == 1
    marks = figure_of(found, ("warps",), "string").axes[0]
    heights: list[Any] = [line.get_ydata() for line in marks.lines]
    assert {tuple(each) for each in heights if len(each) == 2} == {(2, 7)}
    steps = figure_of(found, (), None).axes[0].lines
    highest: list[Any] = [line.get_ydata() for line in steps]
    assert [max(each) for each in highest] == [75.0, 50.0]
