"""A time axis with gaps."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from makespan.report.gpu.picture import AxisPart, WindowAxis
from makespan.report.schedule.panels import CycleWindow


@st.composite
def axes(draw: st.DrawFn) -> WindowAxis:
    makespan = draw(st.integers(1, 10**9))
    end = makespan + draw(st.just(0) | st.integers(0, 10**9))
    waves, width = draw(st.integers(1, makespan)), draw(st.integers(400, 2000))
    return WindowAxis.of(makespan, end, waves, width=width, wave=6, shown=12, gap=100)


@given(axes(), st.data())
def test_parts_cover_all_cycles_and_the_width_and_are_equally_to_scale(axis: WindowAxis, data: st.DataObject) -> None:
    assert axis.parts[0].window.first == axis.parts[0].left == 0
    for part, following in pairwise(axis.parts):
        assert part.window.end == following.window.first
        assert part.right == following.left
    scales = [part.window.cycles / part.pixels for part in axis.parts if not part.is_gap]
    assert min(scales) > 0.999 * max(scales) > 0
    ends = sorted(data.draw(st.lists(st.integers(0, axis.parts[-1].window.end), min_size=2, max_size=2)))
    assert 0 <= axis.at(ends[0]) <= axis.at(ends[1]) <= axis.width
    for part in axis.parts:
        assert abs(axis.at(part.window.end) - part.right) < 1e-6


@given(axes())
def test_ticks_are_increasing_cycles_that_are_drawn_and_their_figures_do_not_meet(axis: WindowAxis) -> None:
    ticks = axis.ticks()
    drawn = [part.window for part in axis.parts if not part.is_gap]
    assert all(any(window.first <= tick <= window.end for window in drawn) for tick in ticks)
    assert all(axis.at(b) - axis.at(a) >= 12 * len(f"{b:,}") for a, b in pairwise(ticks))


def shape(makespan: int, end: int, waves: int) -> list[tuple[int, int, bool]]:
    axis = WindowAxis.of(makespan, end, waves, width=1000, wave=5, shown=10, gap=100)
    return [(*part.window, part.is_gap) for part in axis.parts]


def test_few_waves_are_shown_whole_and_of_many_the_first_and_the_last() -> None:
    assert shape(1000, 1000, 10) == [(0, 1000, False)]
    assert shape(1000, 1500, 10) == [(0, 1500, False)]
    assert shape(1000, 9000, 10) == [(0, 1000, False), (1000, 9000, True)]
    assert shape(10**6, 10**6 + 10, 10**4) == [(0, 1000, False), (1000, 999_000, True), (999_000, 10**6 + 10, False)]
    many = [(0, 1000, False), (1000, 999_000, True), (999_000, 10**6, False)]
    assert shape(10**6, 10**6 + 2000, 10**4) == [*many, (10**6, 10**6 + 2000, True)]
    assert shape(10**6, 10**8, 10**4) == [*many, (10**6, 10**8, True)]


def test_a_window_is_one_part() -> None:
    assert WindowAxis.to_scale(CycleWindow(20, 30), 100).parts == (AxisPart(CycleWindow(20, 30), 0, 100),)
    assert WindowAxis.to_scale(CycleWindow(20, 30), 100).at(25) == 50
    assert WindowAxis.to_scale(CycleWindow(20, 30), 100).ticks()[0] == 20
