"""The picture of a whole GPU."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import PAPER, InputError, Machine, Program
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuResult, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.result import Bounds
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.model.simulate.gpu_run import run_gpu
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.report.gantt.chart import AxisWindow, CycleWindow, Gantt, GanttBar, GanttRow
from makespan.report.gantt.figure import draw_chart, render_chart
from makespan.report.gpu import picture
from makespan.report.gpu.picture import (
    axis_windows,
    describe_chart,
    draw_gpu,
    gpu_chart,
    proven_lines,
    wave_look,
)
from makespan.report.gpu.stays import block_stays
from tests.report.gpu.test_stays import alternating
from tests.strategies import gpu_runs, gpus


def result_of(gpu: GpuInstance, policy: str = "behind") -> GpuResult:
    schedule, last = run_gpu(gpu, policy), theorem_g(gpu)
    return GpuResult(gpu, Bounds(schedule.makespan, last.upper), schedule, "theorem-g", last, (), None, 0, ())


def launch(blocks: int, sms: int, resident: int, letters: str = "CLLCLL", dispatch: int = 0) -> GpuInstance:
    program = Program.chain(letters)
    return GpuInstance.of([(program, 2)], blocks, PAPER, sms=sms, resident=resident, dispatch=dispatch)


def huge() -> GpuResult:
    gpu, schedule = alternating(10**12)
    last = theorem_g(gpu)
    return GpuResult(gpu, Bounds(schedule.makespan, last.upper), schedule, "theorem-g", last, (), None, 0, ())


SMALL = result_of(launch(10, 4, 1))


def blocks(chart: Gantt) -> list[GanttBar]:
    """The bars of blocks, without what they wait before they begin."""
    return [bar for bar in chart.panels[0].bars if bar.look != picture._WAITS]


def test_few_blocks_are_all_drawn_and_numbered_as_they_get_their_room() -> None:
    shown = gpu_chart(SMALL)
    assert shown.panels[0].rows == tuple(GanttRow(f"SM {number}", 1) for number in range(4))
    bars = blocks(shown)
    assert [bar.texts for bar in bars] == [(str(number),) for number in range(10)]
    assert all(one.start <= other.start for one, other in pairwise(bars))
    assert Counter(bar.look for bar in bars) == {wave_look(0, 3): 4, wave_look(1, 3): 4, wave_look(2, 3): 2}
    assert max(bar.end for bar in bars) == shown.panels[0].ground == SMALL.bounds.lower


def test_lines_are_the_last_dispatch_and_the_end_as_they_are_and_as_they_are_proven() -> None:
    proof = SMALL.last_dispatch
    assert proof is not None
    found = list(proven_lines(SMALL))
    last = max(bar.start for bar in blocks(gpu_chart(SMALL)))
    assert [(line.at, line.is_proven, line.is_end) for line in found] == [
        (last, False, False),
        (proof.block * proof.charged // proof.scale, True, False),
        (SMALL.bounds.lower, False, True),
        (SMALL.bounds.upper, True, True),
    ]
    assert last <= found[1].at


def test_of_an_exact_result_one_line_is_both_ends() -> None:
    gpu = launch(4, 4, 1)
    found = run_gpu(gpu, "behind")
    exact = GpuResult(gpu, Bounds(found.makespan, found.makespan), found, "one-wave", None, (), None, 0, ())
    assert [(line.at, line.words) for line in proven_lines(exact)] == [(found.makespan, "the worst case, exactly")]


def test_a_launch_of_any_length_is_drawn_by_its_first_and_last_blocks() -> None:
    shown = gpu_chart(huge())
    assert [part.is_gap for part in shown.axis] == [False, True, False, True]
    bars = blocks(shown)
    assert 3 * 20 < len(bars) < 3 * 60
    assert not any(bar.texts for bar in bars)
    assert not [bar for bar in bars if shown.axis[1].first <= bar.start and bar.end <= shown.axis[1].end]
    assert max(bar.end for bar in bars) == shown.panels[0].ground


def test_a_window_shows_what_lies_in_it_without_numbers() -> None:
    shown = gpu_chart(SMALL, window=CycleWindow(3, 5))
    assert shown.axis == (AxisWindow(3, 5),)
    assert all(bar.start < 5 and bar.end > 3 and not bar.texts for bar in blocks(shown))
    assert not shown.lines
    assert "cycles 3 to 4 of" in shown.subtitles[0]


def test_a_window_with_more_blocks_than_pixels_is_refused_before_they_are_counted_out() -> None:
    with pytest.raises(InputError, match=r"has \d+ blocks, and it draws 500000 at most"):
        gpu_chart(huge(), window=CycleWindow(0, 10**12))


def test_the_legend_has_only_what_occurs() -> None:
    assert [key.words for key in gpu_chart(SMALL, window=CycleWindow(0, 3)).keys] == ["wave 1", "empty slot"]
    assert gpu_chart(huge()).keys[0].words == "wave 1, 9, ..."


def test_sms_that_do_the_same_share_a_row_where_each_would_be_thin() -> None:
    shown = gpu_chart(result_of(launch(4001, 100, 4)))
    assert len(shown.panels[0].rows) < 100
    assert shown.panels[0].rows[0].label.startswith("SMs 0-")
    assert shown.caption.startswith("a row for SMs that do the same")
    assert "left out" not in shown.caption


def test_of_too_many_sms_some_are_left_out_and_never_the_one_that_ends_last(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(launch(30, 12, 2), "random")
    monkeypatch.setattr(picture, "_MOST_LINES", 6)
    monkeypatch.setattr(picture, "_HEIGHT", 50)
    shown = gpu_chart(result)
    assert len(shown.panels[0].rows) == 3
    assert shown.caption.startswith("a row for SMs that do the same; 9 SMs left out")
    assert max(bar.end for bar in blocks(shown)) == shown.panels[0].ground


def test_sms_without_a_block_are_said() -> None:
    assert gpu_chart(result_of(launch(2, 7, 1))).caption.startswith("5 SMs without a block")


def test_what_is_drawn_says_its_numbers_and_its_lines() -> None:
    shown = gpu_chart(SMALL)
    figure = draw_chart(shown)
    assert {text.get_text() for text in figure.axes[0].texts} == {str(number) for number in range(10)}
    written = [text.get_text() for text in figure.texts]
    assert all(f"{line.words}: {line.at:,}" in written for line in shown.lines)


def test_a_block_that_has_not_begun_is_hatched() -> None:
    shown = gpu_chart(result_of(launch(10, 2, 2, dispatch=9), "random"))
    waiting = [bar for bar in shown.panels[0].bars if bar.look == picture._WAITS]
    assert waiting
    assert {(bar.row, bar.lane, bar.end) for bar in waiting} <= {(b.row, b.lane, b.start) for b in blocks(shown)}
    assert "has its room, not begun" in [key.words for key in shown.keys]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_equal_results_give_equal_bytes_that_say_what_they_show(suffix: str) -> None:
    shown = gpu_chart(SMALL)
    one, two = (render_chart(shown, suffix, about=describe_chart(shown)) for _ in range(2))
    assert one == two
    if suffix == ".svg":
        root = ElementTree.fromstring(one)
        assert describe_chart(shown) in {element.text for element in root.iter() if element.text}


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.png, \.svg or \.pdf"):
        draw_gpu(SMALL, tmp_path / "gpu.jpg")


def test_bars_are_plain_data() -> None:
    gpu = GpuInstance.of([(Program.chain("CC"), 1)], 3, Machine.of({"C": 1}), sms=2, resident=1)
    issued: tuple[tuple[tuple[int, int], ...], ...] = (((0, 0),),)
    two = SmHistory(1, (RepeatedCycles(issued * 4, (BlockStart(0, 0, 0), BlockStart(2, 0, 0))),))
    schedule = GpuSchedule(
        (BlockTrace(0, ((0, 1),)),), (two, SmHistory(1, (RepeatedCycles(issued * 2, (BlockStart(0, 0, 0),)),)))
    )
    assert replay_gpu(gpu, schedule) == 4
    result = GpuResult(gpu, Bounds(4, 4), schedule, "theorem-g", theorem_g(gpu), (), None, 0, ())
    assert [(bar.row, bar.lane, bar.start, bar.end, bar.tip) for bar in gpu_chart(result).panels[0].bars] == [
        (0, 0, 0, 2, "SM 0, slot 0, wave 1: cycles 0 to 1"),
        (1, 0, 0, 2, "SM 1, slot 0, wave 1: cycles 0 to 1"),
        (0, 0, 2, 4, "SM 0, slot 0, wave 2: cycles 2 to 3"),
    ]


@given(gpus(), st.data())
@settings(max_examples=60)
def test_bars_of_the_model_are_the_blocks_of_the_schedule(gpu: GpuInstance, data: st.DataObject) -> None:
    schedule = data.draw(gpu_runs(gpu))
    result = GpuResult(gpu, Bounds(schedule.makespan, 10**9), schedule, "theorem-g", None, (), None, 0, ())
    shown, row, expected = gpu_chart(result, window=CycleWindow(0, schedule.makespan)), 0, set()
    for history in schedule.histories:
        stays = block_stays(gpu, schedule, history, CycleWindow(0, schedule.makespan))
        for _ in range(history.sms):
            expected |= {(row, stay.slot, stay.begin, stay.end) for stay in stays}
            row += 1
    assert [each.label for each in shown.panels[0].rows] == [f"SM {number}" for number in range(row)]
    assert {(bar.row, bar.lane, bar.start, bar.end) for bar in blocks(shown)} == expected


def shape(makespan: int, end: int, waves: int) -> list[tuple[int, int, bool]]:
    return [(first, last, is_gap) for first, last, is_gap in axis_windows(makespan, end, waves)]


def test_few_waves_are_shown_whole_and_of_many_the_first_and_the_last() -> None:
    assert shape(1000, 1000, 10) == [(0, 1000, False)]
    assert shape(1000, 1500, 10) == [(0, 1500, False)]
    assert shape(1000, 9000, 10) == [(0, 1000, False), (1000, 9000, True)]
    many = [(0, 1200, False), (1200, 998_800, True)]
    assert shape(10**6, 10**6 + 10, 10**4) == [*many, (998_800, 10**6 + 10, False)]
    assert shape(10**6, 10**6 + 2000, 10**4) == [*many, (998_800, 10**6, False), (10**6, 10**6 + 2000, True)]
    assert shape(10**6, 10**8, 10**4) == [*many, (998_800, 10**6, False), (10**6, 10**8, True)]
