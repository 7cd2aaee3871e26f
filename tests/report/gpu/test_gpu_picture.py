"""The picture of a whole GPU."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.collections import PolyCollection

from makespan import PAPER, InputError, Machine, Program
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuResult, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.result import Bounds
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.model.simulate.gpu_run import run_gpu
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.report.gpu import picture
from makespan.report.gpu.picture import BlockBar, cycle_marks, describe_chart, draw_gpu, gpu_chart, render_gpu_picture
from makespan.report.schedule.panels import CycleWindow
from tests.report.gpu.test_stays import alternating

WIDTH = 1700


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


def test_few_blocks_are_all_drawn_and_numbered_as_they_get_their_room() -> None:
    shown = gpu_chart(SMALL, width=WIDTH)
    assert shown.rows == ("SM 0", "SM 1", "SM 2", "SM 3")
    assert (shown.lines, shown.waves, len(shown.bars)) == (1, 3, 10)
    numbered = sorted(shown.bars, key=lambda bar: bar.number or 0)
    assert [bar.number for bar in numbered] == list(range(10))
    assert all(one.room <= other.room for one, other in pairwise(numbered))
    assert Counter(bar.wave for bar in shown.bars) == {0: 4, 1: 4, 2: 2}
    assert max(bar.end for bar in shown.bars) == shown.makespan == SMALL.bounds.lower


def test_marks_are_the_last_dispatch_and_the_end_as_they_are_and_as_they_are_proven() -> None:
    proof = SMALL.last_dispatch
    assert proof is not None
    found = list(cycle_marks(SMALL))
    last = max(bar.room for bar in gpu_chart(SMALL, width=WIDTH).bars)
    assert [(mark.cycle, mark.is_proven, mark.is_end) for mark in found] == [
        (last, False, False),
        (proof.block * proof.charged // proof.scale, True, False),
        (SMALL.bounds.lower, False, True),
        (SMALL.bounds.upper, True, True),
    ]
    assert last <= found[1].cycle


def test_of_an_exact_result_one_line_is_both_ends() -> None:
    gpu = launch(4, 4, 1)
    found = run_gpu(gpu, "behind")
    exact = GpuResult(gpu, Bounds(found.makespan, found.makespan), found, "one-wave", None, (), None, 0, ())
    assert [(mark.cycle, mark.words) for mark in cycle_marks(exact)] == [(found.makespan, "the worst case, exactly")]


def test_a_launch_of_any_length_is_drawn_by_its_first_and_last_blocks() -> None:
    shown = gpu_chart(huge(), width=WIDTH)
    assert [part.is_gap for part in shown.axis.parts] == [False, True, False, True]
    assert 3 * 20 < len(shown.bars) < 3 * 60
    assert all(bar.number is None for bar in shown.bars)
    left_out = shown.axis.parts[1].window
    assert not [bar for bar in shown.bars if left_out.first <= bar.room and bar.end <= left_out.end]
    assert max(bar.end for bar in shown.bars) == shown.makespan


def test_a_window_shows_what_lies_in_it_without_numbers() -> None:
    shown = gpu_chart(SMALL, width=WIDTH, window=CycleWindow(3, 5))
    assert [part.window for part in shown.axis.parts] == [CycleWindow(3, 5)]
    assert all(bar.room < 5 and bar.end > 3 and bar.number is None for bar in shown.bars)
    assert not shown.marks
    assert b"cycles 3 to 4 of" in render_gpu_picture(SMALL, ".svg", window=CycleWindow(3, 5))


def test_a_window_with_more_blocks_than_pixels_is_refused_before_they_are_counted_out() -> None:
    with pytest.raises(InputError, match=r"has \d+ blocks, and it draws 500000 at most"):
        gpu_chart(huge(), width=WIDTH, window=CycleWindow(0, 10**12))


def test_the_legend_has_only_what_occurs() -> None:
    shown = gpu_chart(SMALL, width=WIDTH, window=CycleWindow(0, 3))
    assert [key.get_label() for key in picture._legend_keys(shown)] == ["wave 1", "empty slot"]
    many = [str(key.get_label()) for key in picture._legend_keys(gpu_chart(huge(), width=WIDTH))]
    assert many[0] == "wave 1, 9, ..."


def test_sms_that_do_the_same_share_a_row_where_each_would_be_thin() -> None:
    shown = gpu_chart(result_of(launch(4001, 100, 4)), width=WIDTH)
    assert len(shown.rows) < 100
    assert shown.rows[0].startswith("SMs 0-")
    assert shown.caption.startswith("a row for SMs that do the same")
    assert "left out" not in shown.caption


def test_of_too_many_sms_some_are_left_out_and_never_the_one_that_ends_last(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(launch(30, 12, 2), "random")
    monkeypatch.setattr(picture, "_MOST_LINES", 6)
    monkeypatch.setattr(picture, "_HEIGHT", 12)
    shown = gpu_chart(result, width=WIDTH)
    assert len(shown.rows) == 3
    assert shown.caption.startswith("a row for SMs that do the same; 9 SMs left out")
    assert max(bar.end for bar in shown.bars) == shown.makespan


def test_sms_without_a_block_are_said() -> None:
    assert gpu_chart(result_of(launch(2, 7, 1)), width=WIDTH).caption.startswith("5 SMs without a block")


def test_every_bar_is_a_box_of_its_colour_on_its_line() -> None:
    shown = gpu_chart(SMALL, width=WIDTH)
    figure = picture._figure(shown, "title", "subtitle")
    (axes,) = figure.axes
    boxes = [each for each in axes.collections if isinstance(each, PolyCollection)]
    ground, *by_tone = boxes
    assert len(ground.get_paths()) == len(shown.rows)
    assert sorted(len(each.get_paths()) for each in by_tone) == [2, 4, 4]
    ends = {round(path.get_extents().x1) for each in by_tone for path in each.get_paths()}
    assert ends == {round(shown.axis.at(bar.end) - 0.75) for bar in shown.bars}
    assert {text.get_text() for text in axes.texts} == {str(number) for number in range(10)}
    written = [text.get_text() for text in figure.texts]
    assert all(f"{mark.words}: {mark.cycle:,}" in written for mark in shown.marks)


def test_a_block_that_has_not_begun_is_hatched() -> None:
    slow = result_of(launch(10, 2, 2, dispatch=9), "random")
    shown = gpu_chart(slow, width=WIDTH)
    late = [bar for bar in shown.bars if bar.begin > bar.room]
    figure = picture._figure(shown, "", "")
    hatched = [each for each in figure.axes[0].collections if each.get_hatch()]
    assert late
    assert [len(each.get_paths()) for each in hatched] == [len(late)]


@pytest.mark.parametrize("width", [picture.WIDTH, picture.NARROW])
def test_labels_keep_clear_of_each_other_and_of_lines(width: int) -> None:
    for result in (SMALL, huge()):
        shown = gpu_chart(result, width=width - 200)
        levels = picture._label_levels(shown, 100, width)
        extents = [picture._label_extent(mark, shown.axis.at(mark.cycle), 100, width) for mark in shown.marks]
        for one, other in ((a, b) for a in range(len(levels)) for b in range(len(levels)) if a != b):
            if levels[one] == levels[other]:
                assert extents[one][1] < extents[other][0] or extents[other][1] < extents[one][0]
            elif levels[one] < levels[other]:
                line = 100 + shown.axis.at(shown.marks[other].cycle)
                assert not extents[one][0] < line < extents[one][1]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_equal_results_give_equal_bytes_that_say_what_they_show(suffix: str) -> None:
    one, two = (render_gpu_picture(SMALL, suffix) for _ in range(2))
    assert one == two
    if suffix == ".svg":
        root = ElementTree.fromstring(one)
        assert describe_chart(gpu_chart(SMALL, width=WIDTH)) in {
            element.text for element in root.iter() if element.text
        }


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
    first, second, third = BlockBar(0, 0, 0, 0, 0, 2, 0), BlockBar(1, 0, 0, 0, 0, 2, 1), BlockBar(0, 0, 1, 2, 2, 4, 2)
    assert gpu_chart(result, width=WIDTH).bars == (first, second, third)
