"""Worst case against pessimistic bound: what is said of each point, and how it is drawn."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from makespan.many.report.comparison import (
    COLUMNS,
    comparison_csv,
    comparison_json,
    comparison_subject,
    comparison_summary,
    comparison_table,
    status_counts,
)
from makespan.many.report.comparison_file import draw_comparison, figure_of
from makespan.many.study.comparison import Comparison, MachineAxis, plan_points
from makespan.model.assumptions import caveat
from makespan.model.machine import PAPER
from makespan.model.result import Bounds, Upper
from tests.study.comparisons import LETTERS, OPEN, PORTS, SHUT, curve, grid, instances, known_curve


def test_the_curve_is_that_of_the_theorem() -> None:
    expected = [22, 41, *(22 * warps - 3 * (warps - 1) for warps in range(3, 49))]
    assert known_curve().warps == tuple(range(1, 49))
    assert [found.worst for found in known_curve().found] == [Bounds(cycles, cycles) for cycles in expected]
    assert [found.pessimistic for found in known_curve().found] == [22 * warps for warps in range(1, 49)]
    assert {found.upper_evidence for found in known_curve().found[2:]} == {Upper.THEOREM_E}
    assert known_curve().all_exact
    assert status_counts(known_curve()) == "48 points if every instruction takes one cycle: 48 exact"
    assert comparison_summary(known_curve()) == "M^L + M^C is 0.0 to 15.4 % above the worst case"
    assert comparison_subject(known_curve()) == f"1..48 x {LETTERS} on machine paper (C=1, L=1)"


def test_the_excess_is_proven_at_least_and_at_most() -> None:
    assert OPEN.excess == (20.0, 50.0)
    assert SHUT.excess == (20.0, 20.0)
    assert comparison_summary(grid()) == "M^L + M^C is 20.0 to 50.0 % above the worst case"
    assert comparison_summary(replace(grid(), points=grid().points[:1])) == "M^L + M^C is 20.0 % above the worst case"


def test_the_table_of_a_curve_has_a_row_for_every_number_of_warps() -> None:
    rows = [line.split() for line in comparison_table(curve()).splitlines()]
    assert rows[1:] == [
        ["1", "50", "exact", "60", "20.0", "theorem-e"],
        ["2", "20..30", "40..50", "bounded", "60", ">=20.0", "search"],
        ["3", "-", "not", "computed"],
    ]


def test_the_table_of_a_heat_map_marks_what_is_bounded_or_unknown() -> None:
    assert comparison_table(grid()).splitlines() == [
        "worst case in cycles, by warps and capacity of L (ports); A..B: bounded; -: not computed",
        "warps       1       2",
        "    1      50  40..50",
        "    2       -      50",
        "M^L + M^C above it in percent; >=: at least, because the worst case is only bounded",
        "warps       1       2",
        "    1    20.0  >=20.0",
        "    2       -    20.0",
    ]
    assert comparison_subject(grid()) == "1..2 x CLL on machine paper (C=1, L=1) with L=1..2"
    assert status_counts(grid()) == "4 points if every instruction takes one cycle: 2 exact, 1 bounded, 1 not computed"


def test_every_number_of_the_csv_has_its_evidence_and_nothing_is_made_up() -> None:
    rows = list(csv.DictReader(io.StringIO(comparison_csv(grid()))))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["status"] for row in rows] == ["exact", "bounded", "not computed", "exact"]
    said = {name: value for name, value in rows[1].items() if value}
    assert said == {
        "warps": "1",
        "quantity": "L",
        "value": "2",
        "status": "bounded",
        "lower": "40",
        "lower_evidence": "witness",
        "upper": "50",
        "upper_evidence": "search",
        "pessimistic": "60",
        "pessimistic_evidence": "pessimistic",
        "excess_percent_least": "20.0000",
        "excess_percent_most": "50.0000",
        "best_status": "bounded",
        "best_lower": "20",
        "best_lower_evidence": "least-possible",
        "best_upper": "30",
        "best_upper_evidence": "schedule",
        "engine": "search",
        "seconds": "1.000",
    }
    unknown = {name for name, value in rows[2].items() if value}
    assert unknown == {"warps", "quantity", "value", "status"}


def test_the_json_says_the_same() -> None:
    document = json.loads(comparison_json(replace(grid(), points=grid().points[:1] + grid().points[2:])))
    assert document["schema"] == "makespan.comparison/2"
    assert document["axis"] == {"name": "L", "label": "capacity of L (ports)", "values": [1, 2]}
    assert document["assumptions"] == [caveat("always").document]
    first, unknown, last = document["points"]
    evidence = {"lower": "witness", "upper": "theorem-e"}
    assert first["worst_case"] == {"lower": 50, "upper": 50, "status": "exact", "evidence": evidence}
    assert first["pessimistic"] == {"value": 60, "evidence": "pessimistic"}
    assert first["excess_percent"] == {"least": 20.0, "most": 20.0}
    assert [first["assumptions"], last["assumptions"]] == [[caveat("here").document], [caveat("there").document]]
    assert unknown["status"] == "not computed"
    assert unknown["machine"]["capacity"] == {"C": 1, "L": 1}
    assert {unknown[key] for key in ("worst_case", "pessimistic", "excess_percent", "best_case")} == {None}


@pytest.mark.parametrize(
    ("comparison", "suffix"), [(curve(), ".png"), (curve(), ".svg"), (curve(), ".pdf"), (grid(), ".svg")]
)
def test_equal_comparisons_give_equal_pictures(comparison: Comparison, suffix: str, tmp_path: Path) -> None:
    pictures = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in pictures:
        draw_comparison(comparison, path)
    first, second = (path.read_bytes() for path in pictures)
    assert first == second
    assert len(first) > 5_000


def drawn(comparison: Comparison, tmp_path: Path) -> str:
    path = tmp_path / "picture.svg"
    draw_comparison(comparison, path)
    return path.read_text()


def test_a_curve_names_in_its_legend_what_it_shows(tmp_path: Path) -> None:
    shown = drawn(curve(), tmp_path)
    for key in (
        "worst case, exact",
        "worst case, bounded",
        "best case, bounded",
        ">not computed<",
        ">cycles<",
        ">warps<",
    ):
        assert key in shown
    assert "best case, exact" not in shown
    plain = drawn(known_curve(), tmp_path)
    for key in ("bounded", "not computed", "best case"):
        assert key not in plain


def test_a_curve_has_its_marks_where_the_numbers_are() -> None:
    cycles, percent = (
        {(line.get_marker(), line.get_color(), *np.asarray(line.get_ydata()).tolist()) for line in axes.lines}
        for axes in figure_of(curve()).axes
    )
    blue, green, unknown = "#0072B2", "#009E73", ("x", "#5A5A5A", 0.03)
    assert {mark for mark in cycles if mark[0] != "s"} == {
        ("D", blue, 50.0),
        ("None", blue, 40.0, 50.0),
        ("_", blue, 40.0, 50.0),
        ("None", green, 20.0, 30.0),
        ("_", green, 20.0, 30.0),
        unknown,
    }
    assert {mark[2:] for mark in cycles if mark[0] == "s"} == {(60.0,)}
    assert percent == {("D", blue, 20.0), ("None", blue, 20.0, 50.0), ("_", blue, 20.0, 50.0), unknown}


def test_bounded_cells_are_hatched_and_exact_ones_are_not() -> None:
    axes = figure_of(grid()).axes[0]
    cells = [patch for patch in axes.patches if patch.get_fill() and patch.get_facecolor()[:3] != (1, 1, 1)]
    states = [point.status for point in grid().points if point.found is not None]
    assert [bool(cell.get_hatch()) for cell in cells] == [state == "bounded" for state in states]
    assert "bounded" in states
    assert "exact" in states
    figure = axes.figure
    assert isinstance(figure, Figure)
    (key,) = (patch for legend in figure.legends for patch in legend.get_patches())
    assert key.get_hatch()


def test_titles_write_the_pessimistic_bound_as_the_axes_do(tmp_path: Path) -> None:
    for comparison in (grid(), curve()):
        figure = figure_of(comparison)
        assert figure.texts[0].get_text().startswith("M$^L$ + M$^C$ is ")
        assert "M^L + M^C" not in " ".join(text.get_text() for text in figure.findobj(Text))


def test_a_picture_of_partitions_does_not_speak_of_the_bound_of_the_paper() -> None:
    for comparison in (grid(), curve()):
        on_partitions = replace(comparison, machine=replace(comparison.machine, partitions=2))
        shown = " ".join(text.get_text() for text in figure_of(on_partitions).findobj(Text))
        assert "theorem 1S" in shown
        assert "M$^" not in shown


def test_a_cell_of_a_heat_map_says_what_is_proven(tmp_path: Path) -> None:
    shown = drawn(grid(), tmp_path)
    assert shown.count(">20.0<") == 3  # the third one is of the scale
    assert shown.count(">≥20.0<") == 1
    for key in ("capacity of L (ports)", "the worst case is only bounded", ">not computed<"):
        assert key in shown
    exact = drawn(replace(grid(), axis=replace(PORTS, values=(1,)), points=grid().points[:1]), tmp_path)
    for key in ("only bounded", "not computed"):
        assert key not in exact


@pytest.mark.parametrize("axis", [None, PORTS])
def test_a_comparison_without_a_computed_point_can_be_drawn(axis: MachineAxis | None, tmp_path: Path) -> None:
    points = plan_points(instances("CLL", range(1, 3)), axis)
    comparison = Comparison("$^$", replace(PAPER, name="$^$"), axis, points)
    assert comparison_summary(comparison) == "no point was computed"
    shown = drawn(comparison, tmp_path)
    assert "no point was computed" in shown
    assert "on machine $^$" in shown
    assert comparison.assumptions == ()
