"""From when to when blocks are on an SM."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import PAPER, Program
from makespan.host.errors import UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.report.gantt.chart import CycleWindow
from makespan.report.gpu.stays import (
    Stay,
    block_stays,
    count_begins,
    count_slots,
    last_dispatch,
    last_ends,
    most_in_a_slot,
)
from tests.strategies import gpu_runs, gpus

A, B = (0, 0), (1, 0)


def alternating(repeats: int) -> tuple[GpuInstance, GpuSchedule]:
    """Three SMs with two slots, of which one has C while the other has L."""
    stretches = (
        RepeatedCycles(((A,), (A, B)), (BlockStart(0, 0, 0), BlockStart(0, 1, 0))),
        RepeatedCycles(((A, B), (A, B)), (BlockStart(0, 0, 0), BlockStart(1, 1, 0)), repeats),
        RepeatedCycles(((B,),)),
    )
    gpu = GpuInstance.of([(Program.chain("CL"), 1)], 6 * repeats + 6, PAPER, sms=3, resident=2)
    return gpu, GpuSchedule((BlockTrace(0, ((0, 1),)),), (SmHistory(3, stretches),))


def unfolded(history: SmHistory) -> SmHistory:
    """The same without repeats."""
    return replace(history, stretches=tuple(replace(s, repeat=1) for s in history.stretches for _ in range(s.repeat)))


def without_successor(history: SmHistory, slot: int, room: int) -> SmHistory:
    """A history of one stretch as if no block came to this slot from that cycle on."""
    (stretch,) = history.stretches
    begins = tuple(begin for begin in stretch.begins if begin.slot != slot or begin.cycle < room)
    cycles = tuple(
        tuple(each for each in issued if each[0] != slot or cycle < room) for cycle, issued in enumerate(stretch.cycles)
    )
    return replace(history, stretches=(RepeatedCycles(cycles, begins),))


@settings(max_examples=80)
@given(st.data())
def test_what_a_block_executes_ends_when_the_definition_gives_its_slot_away(data: st.DataObject) -> None:
    gpu = data.draw(gpus())
    schedule = data.draw(gpu_runs(gpu))
    for history in schedule.histories:
        found = block_stays(gpu, schedule, history, CycleWindow(0, history.cycles))
        assert [(stay.room, stay.slot) for stay in found] == sorted((cycle, b.slot) for cycle, b in history.begins())
        assert [stay.order for stay in found] == list(range(history.blocks))
        assert max(stay.end for stay in found) == history.cycles
        for stay in found:
            if any(other.slot == stay.slot and other.room > stay.room for other in found):
                cut = without_successor(history, stay.slot, stay.end)
                assert last_ends(gpu, schedule, cut)[stay.slot] == stay.end


def test_blocks_of_repeated_stretches_alternate() -> None:
    gpu, schedule = alternating(2)
    assert replay_gpu(gpu, schedule) == 7
    (history,) = schedule.histories
    assert block_stays(gpu, schedule, history, CycleWindow(0, 7)) == [
        Stay(0, 0, 0, 0, 2), Stay(1, 1, 0, 0, 3), Stay(0, 2, 2, 2, 4),
        Stay(1, 3, 3, 3, 5), Stay(0, 4, 4, 4, 6), Stay(1, 5, 5, 5, 7),
    ]  # fmt: skip
    assert (last_dispatch(history), most_in_a_slot(history), count_slots(history)) == (5, 3, 2)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(0, 14), st.integers(1, 15))
def test_a_window_shows_of_repeats_what_it_shows_of_all_of_them(repeats: int, first: int, cycles: int) -> None:
    gpu, schedule = alternating(repeats)
    (history,) = schedule.histories
    window = CycleWindow(first, first + cycles)
    everything = block_stays(gpu, schedule, unfolded(history), CycleWindow(0, 100))
    inside = [stay for stay in everything if stay.end > window.first and stay.room < window.end]
    assert block_stays(gpu, schedule, history, window) == inside
    assert block_stays(gpu, schedule, unfolded(history), window) == inside
    assert count_begins(history, window) == sum(window.first <= stay.room < window.end for stay in inside)


def test_a_window_in_a_history_of_any_length_is_counted() -> None:
    repeats = 10**15
    gpu, schedule = alternating(repeats)
    (history,) = schedule.histories
    assert block_stays(gpu, schedule, history, CycleWindow(repeats, repeats + 1)) == [
        Stay(1, repeats - 1, repeats - 1, repeats - 1, repeats + 1), Stay(0, repeats, repeats, repeats, repeats + 2)
    ]  # fmt: skip
    assert most_in_a_slot(history) == repeats + 1
    assert last_dispatch(history) == 2 * repeats + 1
    assert last_ends(gpu, schedule, history) == {0: 2 * repeats + 2, 1: 2 * repeats + 3}


def test_several_grids_are_refused_by_name() -> None:
    grid = Grid(((Program.chain("CL"), 1),), 1)
    _, schedule = alternating(1)
    with pytest.raises(UnsupportedError, match="knows one grid, not 2"):
        last_ends(GpuInstance((grid, grid), PAPER, 1, (2,)), schedule, schedule.histories[0])
