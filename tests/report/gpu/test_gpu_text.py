"""A result for a whole GPU in words."""

from dataclasses import replace
from fractions import Fraction

import pytest

from makespan import Bounds, Machine, Program
from makespan.host.errors import UnsupportedError
from makespan.model.gpu import GpuInstance, GpuResult, GpuSchedule, LastDispatch, RepeatedCycles, SmHistory
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.simulate.choices import Choices
from makespan.report.gpu.document import GpuClock, gpu_result_document
from makespan.report.gpu.picture import gpu_chart
from makespan.report.gpu.text import describe_waves, explain_bound, gpu_report, picture_subtitle
from makespan.report.html.data import PageContext, gpu_page
from makespan.report.html.marks import interval_words
from tests.schemas import published

BLOCK = ((Program.chain("CLL"), 8),)
MACHINE = Machine.of({"C": 1, "L": 1})
GPU = GpuInstance.of(BLOCK, 4096, MACHINE, sms=46, resident=6)


def result(last: LastDispatch, lower: int = 700) -> GpuResult:
    witness = GpuSchedule((), (SmHistory(46, (RepeatedCycles(((),), (), lower),)),))
    return GpuResult(
        GPU, Bounds(lower, last.upper), witness, "theorem-g", last, (), Bounds(300, 400), 0.5, GPU.assumptions
    )


def test_the_bound_is_told_wave_by_wave() -> None:
    told = "\n".join(explain_bound(result(LastDispatch("pairs", 100, 4095, 2760, 0, 148, 700))))
    assert "46 SMs with 6 blocks each hold 276 at a time: 4096 blocks are 14.9 waves" in told
    assert "all 276 slots are taken, by each block for at most 10 cycles on average" in told
    assert "the last one gets its room in cycle 148 or before" in told
    assert "takes at most 700 cycles" in told
    assert "less together" not in told


def test_without_a_schedule_it_says_so() -> None:
    without = replace(result(LastDispatch("all", 0, 4095, 1, 0, 0, 1500)), witness=None)
    assert "700  no schedule is shorter; none was found, as runs take too long before they repeat" in gpu_report(
        without
    )
    assert gpu_result_document(without)["evidence"]["lower"] == "least-possible"
    with pytest.raises(UnsupportedError, match=r"no schedule was found, as .* repeat; give more time"):
        gpu_chart(without)


def test_what_is_spared_does_not_move_the_last_dispatch() -> None:
    told = "\n".join(explain_bound(result(LastDispatch("all", 100, 4095, 2760, 27600, 138, 700))))
    assert "gets its room in cycle 148 or before" in told
    assert "10 cycles less together" in told


def test_time_rests_on_the_clock() -> None:
    clock = GpuClock(Fraction(1_500_000_000), "base clock of rtx-3070: data sheet")
    told = gpu_report(result(LastDispatch("all", 0, 4095, 1, 0, 0, 1500)), name="rtx-3070", clock=clock)
    assert "in time: 466.666 ns .. 1 us at 1.5 GHz (base clock of rtx-3070: data sheet)" in told
    assert "the clock of the SMs is 1.5 GHz" in told.partition("assumptions:")[2]
    assert "rtx-3070: 4096 blocks of 8 x CLL on 46 SMs" in told
    assert "300..400  the shortest schedule of the whole GPU" in told


@pytest.mark.parametrize(
    ("blocks", "sms", "said"),
    [
        (1, 1, "1 SM with 6 blocks each hold 6 at a time: the only block is there from the beginning"),
        (4, 2, "2 SMs with 6 blocks each hold 12 at a time: all 4 blocks are there from the beginning"),
        (12, 2, "2 SMs with 6 blocks each hold 12 at a time: all 12 blocks are there from the beginning"),
        (13, 2, "2 SMs with 6 blocks each hold 12 at a time: 13 blocks are 1.1 waves"),
        (24, 2, "2 SMs with 6 blocks each hold 12 at a time: 24 blocks are 2 waves"),
        (1199, 2, "2 SMs with 6 blocks each hold 12 at a time: 1199 blocks are 100.0 waves"),
        (
            2**62,
            1,
            "1 SM with 6 blocks each hold 6 at a time: 4611686018427387904 blocks are 768614336404564650.7 waves",
        ),
    ],
)
def test_waves_are_never_rounded_down(blocks: int, sms: int, said: str) -> None:
    assert describe_waves(GpuInstance.of(BLOCK, blocks, MACHINE, sms=sms, resident=6)) == said


def test_a_gpu_with_lapses_is_told_with_the_number_without_them() -> None:
    plain = result(LastDispatch("all", 100, 4095, 2760, 0, 148, 700))
    lapsing = PlaceLapses(credit=1, lines=(CacheLine("code 0", 40),))
    block = ((Program.chain("CLL").lapsing((lapsing, PlaceLapses(), PlaceLapses())), 8),)
    known = replace(GPU, grids=(replace(GPU.grid, block=block),))
    last = LastDispatch("all", 148, 4095, 2760, 0, 219, 760, windows=40)
    found = replace(
        plain,
        instance=known,
        bounds=Bounds(700, last.upper),
        last_dispatch=last,
        assumptions=known.assumptions,
        without_lapses=plain,
    )
    assert str(found) == (
        "bounded on the GPU as it is known, if every instruction takes one cycle: the worst case of 4096 blocks on 46"
        " SMs is at least 700 and at most 1019 cycles; without lapses it is at most 848"
    )
    told = " ".join(gpu_report(found).split())
    assert "at least 700 a replayed schedule of the whole GPU without lapses" in told
    assert "without lapses 700..848 proven by theorem-g" in told
    assert "gets its room in cycle 219 or before, those aside in which lines come for the first time" in told
    assert "lines of code and constants that stay are late for at most 40 cycles" in told
    assert "without them the bound is 848 cycles" in told
    assert "300..400 the shortest schedule of the whole GPU, with lapses or without" in told
    document = gpu_result_document(found)
    published("gpu-result-2").validate(document)
    numbers = {"status": "bounded", "lower": 700, "upper": 848, "evidence": "theorem-g"}
    assert (document["without_lapses"], document["last_dispatch"]["windows"]) == (numbers, 40)
    assert "without_lapses" not in gpu_result_document(plain)
    assert "a schedule without lapses of 700 cycles; at most 1019 are proven with them" in picture_subtitle(found)
    shown = replace(found, witness=None)
    page = gpu_page(shown, PageContext("launch.ptx", Choices()), "0" * 64, name=None, clock=None)
    assert f'<dd data-value="without_lapses">{interval_words(700, 848)}</dd>' in page
