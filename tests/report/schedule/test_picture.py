"""Gantt charts as files."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.schedule import Schedule
from makespan.proof.engines.construct import convoy, greedy
from makespan.proof.engines.limits import Limits
from makespan.report.gantt import figure
from makespan.report.gantt.chart import (
    IDLE,
    AxisWindow,
    CycleWindow,
    Gantt,
    GanttBar,
    GanttPanel,
    GanttRow,
    ScaledAxis,
)
from makespan.report.pictures import fitting_lines
from makespan.report.schedule.activity import ScheduleTrace, Why
from makespan.report.schedule.picture import ScheduleView, draw_gantt, schedule_chart, span_look

MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
STRING = "LLLLCCCCCCCCCLLCCCCCCC"


def scheduled(letters: str, warps: int, **capacities: int) -> tuple[Instance, Schedule]:
    instance = Instance.of(letters, warps, Machine.of(capacities or {"C": 1, "L": 1}))
    return instance, greedy.schedules(instance, Limits())[0]


def pixels(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file."""
    header = path.read_bytes()[16:24]
    return int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")


def colours(path: Path) -> set[str]:
    rgb = np.rint(255 * image.imread(io.BytesIO(path.read_bytes()))[..., :3]).astype(int)
    return {f"#{colour:06X}" for colour in np.flatnonzero(np.bincount((rgb @ (1 << 16, 1 << 8, 1)).ravel()))}


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_suffix_says_the_format_and_only_the_picture_is_left(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"chart{suffix}"
    draw_gantt(*scheduled("CLLCLL", 2), path, ScheduleView("exact: 9 cycles", "2 warps"))
    assert path.read_bytes().startswith(MAGIC[suffix.lower()])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["chart.jpg", "chart", ".png"])
def test_another_suffix_is_refused_with_the_three_known(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.png, \.svg or \.pdf"):
        draw_gantt(*scheduled("CL", 2), tmp_path / name, ScheduleView(""))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("letters", "warps", "suffix"),
    [*(("CLLCLL", 3, suffix) for suffix in MAGIC), (STRING, 48, ".svg"), (STRING * 4, 40, ".pdf")],
)
def test_equal_arguments_give_equal_bytes(letters: str, warps: int, suffix: str, tmp_path: Path) -> None:
    pictures = []
    for name in ("one", "two"):
        draw_gantt(*scheduled(letters, warps), tmp_path / (name + suffix), ScheduleView("t", "s"))
        pictures.append((tmp_path / (name + suffix)).read_bytes())
    assert pictures[0] == pictures[1]


def test_svg_says_title_subtitle_legend_rows_and_cycles(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled("CLLCLL", 2), path, ScheduleView("exact: $9$ cycles & <none> more", "2 x CLLCLL"))
    text = path.read_text("utf-8")
    for words in (
        "exact: $9$ cycles &amp; &lt;none&gt; more",
        "2 x CLLCLL",
        "executes on C",
        "waits for L",
        "idle unit",
    ):
        assert words in text
    for words in (">C0<", ">L0<", ">warp 0<", ">warp 1<", ">9<", ">cycle<", "units (numbers: the executing warp)"):
        assert words in text
    assert "<image" not in text


def test_long_schedules_say_that_columns_mix_cycles(tmp_path: Path) -> None:
    instance = Instance.of(STRING * 2, 64)
    schedule = convoy.schedule(instance)
    path = tmp_path / "chart.svg"
    draw_gantt(instance, schedule, path, ScheduleView("t"))
    text = path.read_text("utf-8")
    assert f"a column mixes about {schedule.makespan / 2000:.2g} cycles" in text
    assert f">{schedule.makespan:,}<" in text
    assert "<image" in text
    assert path.stat().st_size < 500_000


def test_many_warps_and_units_share_rows_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled("CLLCLL", 600, C=40, L=40), path, ScheduleView("t"))
    text = path.read_text("utf-8")
    assert "units (each row mixes up to 40: shades are shares)" in text
    assert "warps (each row mixes up to 5: shades are shares)" in text


def test_a_long_title_is_wrapped_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled("CLLCLL", 2), path, ScheduleView("W" * 300 + " word" * 300 + "\x00", "l\nm \u65e5"))
    text = path.read_text("utf-8")
    assert "...</text>" in text
    assert "l m \u65e5" in text
    assert "\x00" not in text


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=20, deadline=None)
def test_any_title_fits(title: str, subtitle: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = fitting_lines(title + subtitle, 1000, size=13)
        sizes = [text_to_path.get_text_width_height_descent(s, FontProperties(size=13), ismath=False) for s in lines]
    assert len(lines) <= 3
    assert all(width * 150 / 72 <= 1000 for width, _, _ in sizes)


def test_an_unwritable_path_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "chart.png"
    with pytest.raises(InputError) as caught:
        draw_gantt(*scheduled("CL", 2), path, ScheduleView(""))
    assert str(caught.value) == f"{path}: cannot write the picture: No such file or directory"


def test_a_failed_rename_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    path.mkdir()
    with pytest.raises(InputError, match=r"chart\.png: cannot write the picture: Is a directory"):
        draw_gantt(*scheduled("CL", 2), path, ScheduleView(""))
    assert list(tmp_path.iterdir()) == [path]
    assert not list(path.iterdir())


def test_an_old_picture_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chart.png"
    path.write_bytes(b"old")

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left on device"):
        draw_gantt(*scheduled("CL", 2), path, ScheduleView(""))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("letters", "warps"), [("C", 1), ("C", 300), ("CLLCLL", 2), ("CLLCLL", 48), (STRING * 2, 1), (STRING * 2, 300)]
)
def test_sizes_stay_sensible(letters: str, warps: int, tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    draw_gantt(*scheduled(letters, warps), path, ScheduleView("exact"))
    width, height = pixels(path)
    assert 1100 <= width <= 2400
    assert 300 <= height <= 2600


@pytest.mark.parametrize("warps", [2, 48])
def test_executing_waiting_and_idle_have_their_colours(warps: int, tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    draw_gantt(*scheduled(STRING, warps), path, ScheduleView("exact"))
    assert {"#0072B2", "#E69F00", "#A6CEE4", "#FBF1D9", "#EAEAEA"} <= colours(path)


def test_more_classes_than_colours_can_be_drawn(tmp_path: Path) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled(letters, 3, **dict.fromkeys(letters, 1)), path, ScheduleView("t"))
    text = path.read_text("utf-8")
    for letter in letters:
        assert f">executes on {letter}<" in text


@given(st.data())
@settings(deadline=None)
def test_of_every_column_the_part_is_counted_that_spans_cover(data: st.DataObject) -> None:
    columns, fine = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5))
    spans, whole = [], np.zeros((3, columns * fine))
    for _ in range(data.draw(st.integers(1, 6))):
        first = data.draw(st.integers(0, columns * fine - 1))
        end, row = data.draw(st.integers(first + 1, columns * fine)), data.draw(st.integers(0, 2))
        spans.append((row, first / fine, end / fine))
        whole[row, first:end] += 1
    expected = whole.reshape(3, columns, fine).mean(axis=2)
    assert np.allclose(figure._column_shares(spans, (3, columns)), expected)


def texts(letters: str, warps: int, machine: Machine | None = None) -> list[set[str]]:
    """What is written into the bars of each panel."""
    instance, schedule = slow(letters, warps, machine) if machine else scheduled(letters, warps)
    trace = ScheduleTrace.of(instance, schedule)
    chart = schedule_chart(trace, "", "", CycleWindow(0, schedule.makespan))
    assert [bool(panel.bars) for panel in chart.panels] == [True, True]
    return [{text for bar in panel.bars for text in bar.texts} for panel in chart.panels]


def test_numbers_appear_only_where_all_of_them_are_readable() -> None:
    assert texts("CLLCLL", 2) == [{"0", "1"}, {"0", "1", "2", "3", "4", "5"}]
    assert texts(STRING, 48) == [set(), set()]
    long = Machine("long", (UnitClass("C", 1, 40),))
    assert texts("CCC", 12, long) == [{str(warp) for warp in range(12)}, set()]


SLOW = Machine("slow", (UnitClass("C", 1, 1, Latency(4, 4)), UnitClass("L", 1, 2, Latency(30, 30))), 1)


def slow(letters: str, warps: int, machine: Machine = SLOW) -> tuple[Instance, Schedule]:
    instance = Instance.of(letters, warps, machine)
    return instance, max(greedy.schedules(instance, Limits()), key=lambda schedule: schedule.makespan)


def test_a_slow_machine_explains_stalls_and_slots_and_only_what_occurs(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*slow("CLCCL", 4), path, ScheduleView("t"))
    text = path.read_text("utf-8")
    for words in ("stalled on latency", "no issue slot left", "idle: no ready warp", "bars: the cycle of issue"):
        assert words in text
    assert "barrier" not in text
    draw_gantt(*slow("C", 1), path, ScheduleView("t"))
    text = path.read_text("utf-8")
    assert "stalled on latency" in text
    for words in ("waits", "no issue slot left", "executes on L"):
        assert words not in text


@pytest.mark.parametrize("warps", [4, 32])
def test_stalled_missing_slots_and_barriers_have_their_colours(warps: int, tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    draw_gantt(*slow("CLCCL|C", warps), path, ScheduleView("t"))
    assert {"#B9B2A3", "#F0E442", "#9A9A9A", "#0072B2", "#E69F00", "#EAEAEA"} <= colours(path)


@pytest.mark.parametrize("repeated", [1, 20, 400])
def test_a_machine_that_holds_ports_beyond_the_makespan_can_be_drawn(repeated: int, tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    machine = Machine("held", (UnitClass("C", 2, 9, Latency(1, 5)), UnitClass("L", 1, 7)))
    instance, schedule = slow("CL" * repeated, 3, machine)
    draw_gantt(instance, schedule, path, ScheduleView("t"))
    assert pixels(path)[0] <= 2400


def test_importing_the_module_loads_neither_matplotlib_nor_numpy() -> None:
    code = "import sys, makespan.report.schedule.picture; print({'matplotlib', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.parametrize(("letters", "warps"), [("CLLCLL", 3), (STRING, 48), (STRING * 4, 40)])
def test_lines_at_the_ticks_lie_below_whatever_is_drawn(letters: str, warps: int) -> None:
    instance, schedule = scheduled(letters, warps)
    chart = schedule_chart(ScheduleTrace.of(instance, schedule), "t", "", CycleWindow(0, schedule.makespan))
    for axes in figure.draw_chart(chart).axes:
        lines = next(each for each in axes.collections if isinstance(each, LineCollection)).get_zorder()
        boxes = [each for each in axes.collections if isinstance(each, PolyCollection)]
        below = [each for each in boxes if each.get_zorder() < lines]
        assert all(np.array_equal(np.ravel(each.get_facecolor())[:3], to_rgb(IDLE)) for each in below)
        assert all(each.get_zorder() > lines for each in axes.images)
        assert len(boxes) - len(below) + len(axes.images) > 0


def test_classes_that_nobody_uses_have_no_lane_and_are_named(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled("SSCSSC", 4, C=1, S=1, L=1, D=1, T=1), path, ScheduleView("t"))
    text = path.read_text("utf-8")
    assert "no instruction uses D, L, T" in text
    assert ">S0<" in text
    for words in (">L0<", ">D0<", ">T0<", "executes on L", "a light tint"):
        assert words not in text
    assert "waits for S" in text


def test_an_image_has_the_hatches_of_its_legend_where_they_hide_nothing() -> None:
    look = span_look(Why.BARRIER, "|")
    bars = [GanttBar(0, 0, 30, look), GanttBar(0, 40, 45, look)]
    panel = GanttPanel((GanttRow("a", 1, 2), GanttRow("b")), bars)
    chart = Gantt("", (), (panel,), (AxisWindow(0, 100),), 100, ())
    (axes,) = figure.draw_chart(chart).axes
    (drawn,) = axes.images
    image = np.asarray(drawn.get_array())
    assert image.shape == (96, 100, 4)

    def shown(left: int, right: int) -> set[tuple[int, ...]]:
        return {tuple(map(int, colour)) for colour in image[6:40, left:right, :3].reshape(-1, 3)}

    half = tuple(round(255 * (1 + part) / 2) for part in to_rgb(look.face))
    assert shown(40, 45) == {half}, "a row of two has the mean of both"
    assert len(shown(0, 30)) == 2
    assert not image[:, 50:, 3].any(), "lines at the ticks shine through where nothing is"


def test_a_window_shows_its_cycles_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    instance, schedule = scheduled(STRING, 8)
    draw_gantt(instance, schedule, path, ScheduleView("t", "8 warps", window=CycleWindow(40, 60)))
    text = path.read_text("utf-8")
    assert f"8 warps; cycles 40 to 59 of {schedule.makespan}" in text
    ticks = text.split('<g id="matplotlib.axis_', 1)[1].split(">cycle<")[0].rsplit('<g id="xtick_1"', 1)[1]
    shown = [int(tick) for tick in re.findall(r">(\d+)</text>", ticks)]
    assert (shown[0], shown[-1]) == (40, 60)
    assert "numbers: the executed place" in text


def test_a_long_schedule_has_excerpts_of_its_beginning_its_end_and_where_warps_wait_most(tmp_path: Path) -> None:
    instance = Instance.of(STRING * 3, 64)
    schedule = convoy.schedule(instance)
    trace = ScheduleTrace.of(instance, schedule)
    *_, excerpts = schedule_chart(trace, "t", "", CycleWindow(0, schedule.makespan)).panels
    first, gap, inner, other, last = excerpts.axis
    assert (first.first, last.end) == (0, schedule.makespan)
    assert gap.is_gap
    assert other.is_gap
    assert first.end == gap.first < gap.end == inner.first < inner.end == other.first < other.end == last.first
    assert ScaledAxis(excerpts.axis, 2000).per_pixel <= 1 / 7.9
    shown = {(bar.row, bar.start) for bar in excerpts.bars}
    assert {(bar.warp, bar.first_cycle) for bar in trace.bars if bar.first_cycle >= last.first} <= shown
    draw_gantt(instance, schedule, tmp_path / "chart.svg", ScheduleView("t"))
    text = (tmp_path / "chart.svg").read_text("utf-8")
    assert "excerpts, cycle by cycle: the beginning, where warps wait most, the end" in text
    assert len(schedule_chart(trace, "t", "", CycleWindow(0, 500)).panels) == 2


def test_a_picture_tells_screen_readers_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_gantt(*scheduled("CLLCLL", 2), path, ScheduleView("exact: <9> & more\x00", "2 x CLLCLL"))
    root = ElementTree.fromstring(path.read_text("utf-8"))
    said = {tag: root.findtext(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc")}
    assert said["title"] == "exact: <9> & more\ufffd"
    assert said["desc"] == "A Gantt chart of ports and warps, cycles 0 to 8 of 9: 2 x CLLCLL"


@pytest.mark.parametrize("warps", [1, 48, 64, 128, 129, 1000])
def test_every_row_has_a_label_that_says_its_warps(warps: int, tmp_path: Path) -> None:
    draw_gantt(*scheduled("CL", warps), tmp_path / "chart.svg", ScheduleView("t"))
    told = re.findall(r">warps? (\d+)(?:-(\d+))?<", (tmp_path / "chart.svg").read_text("utf-8"))
    ranges = {(int(first), int(last or first)) for first, last in told}
    assert sorted(warp for first, last in ranges for warp in range(first, last + 1)) == list(range(warps))
