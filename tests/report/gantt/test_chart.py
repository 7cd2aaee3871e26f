"""The model of a Gantt chart: its axis, its looks, and what both renderers make of them."""

from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.text import Text

from makespan.report.gantt.chart import (
    AxisWindow,
    Gantt,
    GanttBar,
    GanttKey,
    GanttLine,
    GanttLook,
    GanttPanel,
    GanttRow,
    ScaledAxis,
    axis_width,
)
from makespan.report.gantt.figure import LEAST_ROW, draw_chart
from makespan.report.gantt.svg import WIDTHS, chart_svg
from makespan.report.pictures import DPI

BLUE, HATCHED = GanttLook("#0072B2"), GanttLook("#009E73", "///")


@st.composite
def axes(draw: st.DrawFn) -> ScaledAxis:
    ends = sorted(draw(st.sets(st.integers(0, 10**9), min_size=2, max_size=5)))
    parts = [AxisWindow(first, end, is_gap=number % 2 == 1) for number, (first, end) in enumerate(pairwise(ends))]
    return ScaledAxis(parts, draw(st.integers(300, 2000)))


@given(axes(), st.data())
def test_parts_cover_the_width_and_are_equally_to_scale(axis: ScaledAxis, data: st.DataObject) -> None:
    assert axis.lefts[0] == 0
    assert axis.lefts[-1] == pytest.approx(axis.width)
    for part, left, right in zip(axis.parts, axis.lefts, axis.lefts[1:], strict=False):
        assert right > left
        assert axis.at(part.first) == pytest.approx(left, abs=1e-6)
        if not part.is_gap:
            assert right - left == pytest.approx((part.end - part.first) / axis.per_pixel)
    low, high = axis.parts[0].first, axis.parts[-1].end
    start, end = sorted(data.draw(st.lists(st.integers(low, high), min_size=2, max_size=2)))
    assert 0 <= axis.at(start) <= axis.at(end) <= axis.width + 1e-6
    if start < end:
        shown = sum(max(0, min(end, p.end) - max(start, p.first)) for p in axis.parts if not p.is_gap)
        assert sum(b - a for a, b in axis.pieces(start, end)) == pytest.approx(shown / axis.per_pixel, abs=1e-6)


@given(axes(), st.sampled_from([Fraction(1), Fraction(7, 3), Fraction(1000)]))
def test_numbers_of_an_axis_are_drawn_in_order_and_do_not_meet(axis: ScaledAxis, unit: Fraction) -> None:
    ticks = axis.ticks(12, unit)
    assert all(after - before >= 12 * len(words) for (before, _), (after, words) in pairwise(ticks))
    assert all(0 <= at <= axis.width + 1e-6 for at, _ in ticks)
    if unit == 1:
        assert ticks[0] == (0, f"{axis.parts[0].first:,}")


def test_an_axis_of_a_part_of_a_unit_has_fractions() -> None:
    axis = ScaledAxis([AxisWindow(0, 1200)], 900)
    assert [words for _, words in axis.ticks(12, Fraction(1000))][:3] == ["0", "0.1", "0.2"]


@given(st.integers(1, 3_000_000))
def test_cycles_are_equally_wide_in_bounded_width(cycles: int) -> None:
    width = axis_width(cycles, 2000, 90)
    assert 0 < width <= 2000
    assert cycles > 2000 or width % cycles == 0
    assert width > 1000 or width == 90 * cycles


def chart(rows: int, lanes: int = 1, lines: tuple[GanttLine, ...] = (), label: str = "warp {}") -> Gantt:
    bars = [GanttBar(row, row, row + 3, HATCHED if row % 2 else BLUE, (f"<{row}>",), "tip") for row in range(rows)]
    panel = GanttPanel(
        tuple(GanttRow(label.format(row), lanes) for row in range(rows)), bars, "caption " * 40, ground=9
    )
    return Gantt(
        "title", ("subtitle " * 60,), (panel,), (AxisWindow(0, rows + 3),), 600, (GanttKey(BLUE, "runs " * 9),) * 9,
        caption="words " * 90, lines=lines,
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "lanes"), [(1, 1), (5, 1), (48, 1), (128, 1), (3, 40), (70, 16)])
def test_every_row_has_a_label_and_no_text_meets_another_or_an_edge(rows: int, lanes: int) -> None:
    lines = tuple(GanttLine(at, "the end of something", is_proven=True, is_end=False) for at in (0, 1, 3))
    with style.context({"font.size": 9}):
        figure = draw_chart(chart(rows, lanes, lines))
        figure.set_dpi(DPI)
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"warp {row}" for row in range(rows)]
    texts = [each for each in figure.findobj(Text) if each.get_text() and each.get_visible()]
    boxes = {each: each.get_window_extent() for each in texts if each not in axes.texts}
    width, height = (DPI * inches for inches in figure.get_size_inches())
    for one, box in boxes.items():
        assert box.x0 >= 0, one
        assert box.y0 >= 0, one
        assert box.x1 <= width, one
        assert box.y1 <= height, one
    for (one, box), (other, beside) in ((a, b) for a in boxes.items() for b in boxes.items() if a[0] is not b[0]):
        inside = min(box.x1, beside.x1) - max(box.x0, beside.x0), min(box.y1, beside.y1) - max(box.y0, beside.y0)
        assert min(inside) < 2.5, (one, other)  # what letters leave free above and below


def test_a_hatch_leaves_narrow_bars_as_they_are() -> None:
    bars = [GanttBar(0, 0, 1, HATCHED), GanttBar(0, 1, 30, HATCHED)]
    panel = GanttPanel((GanttRow("a"),), bars)
    drawn = Gantt("", (), (panel,), (AxisWindow(0, 30),), 300, ())
    boxes = [each for each in draw_chart(drawn).axes[0].collections if isinstance(each, PolyCollection)]
    assert sorted((len(each.get_paths()), each.get_hatch() or "") for each in boxes) == [(1, ""), (1, "///")]
    svg = chart_svg(drawn, "narrow", "a chart", "x")
    assert svg.count('fill="#009E73"') == 2  # the narrow bar, and the ground of the pattern
    assert svg.count('fill="url(#x-0)"') == 1


@pytest.mark.parametrize("layout", WIDTHS)
@pytest.mark.parametrize(("rows", "lanes"), [(1, 1), (60, 1), (3, 40)])
def test_a_page_has_every_bar_every_label_and_keeps_texts_inside(layout: str, rows: int, lanes: int) -> None:
    lines = tuple(GanttLine(at, "the end of something", is_proven=True, is_end=False) for at in (0, 1, 3))
    root = ElementTree.fromstring(chart_svg(chart(rows, lanes, lines, "<b>{}"), layout, "a & b", "x"))
    assert root.get("aria-label") == "a & b"
    assert [each.text for each in root.iter("text") if each.get("class") == "name"] == [f"<b>{n}" for n in range(rows)]
    assert len([each for each in root.iter("rect") if each.findtext("title") == "tip"]) == rows
    for each in root.iter("text"):
        x, half = float(each.get("x", 0)), 3 * len(each.text or "")
        looks = each.get("class") or ""
        ends = (x - 2 * half, x) if looks.startswith("label") or looks == "tick unit" else (x, x)
        ends = (x - half, x + half) if looks == "tick" else ends
        assert ends[0] >= -1, each.text
        assert ends[1] <= WIDTHS[layout] + 1, each.text


def test_very_many_bars_are_one_path_for_each_look() -> None:
    bars = [GanttBar(0, at, at + 1, BLUE if at % 2 else HATCHED) for at in range(5000)]
    drawn = Gantt("", (), (GanttPanel((GanttRow("a"),), bars),), (AxisWindow(0, 5000),), 600, ())
    root = ElementTree.fromstring(chart_svg(drawn, "wide", "", "x"))
    (group,) = (each for each in root.iter("g") if each.get("class") == "bars")
    assert len(group) == 2
    assert sum((each.get("d") or "").count("z") for each in group) == 5000


def test_a_row_is_never_lower_than_its_label() -> None:
    assert LEAST_ROW * 72 / DPI >= 6.5
