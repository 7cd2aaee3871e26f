"""What a Gantt chart shows, as data."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.engines.construct import greedy
from makespan.engines.limits import Limits
from makespan.engines.search import plain as search
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import Place, Program
from makespan.report.schedule.activity import Wait, Why, bars, full, gaps, held, waits
from makespan.report.schedule.panels import Panel, Scale, Window, busiest, shows, units_panel, warps_panel
from makespan.simulate import replay
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def panels(case: Case, most_rows: int) -> tuple[Panel, Panel]:
    """Lanes and rows of a chart."""
    instance, schedule = case
    issued = bars(instance, schedule)
    between = waits(issued, held(instance, schedule, issued))
    idle = gaps(instance, issued, between, schedule.makespan)
    lanes = units_panel(instance, issued, idle, schedule.makespan, most_rows=most_rows)
    return lanes, warps_panel(instance, issued, between, full(instance, issued), most_rows=most_rows)


def cells(panel: Panel) -> Counter[tuple[int, int, Why | None, str]]:
    """How often each row shows in each cycle what for which class."""
    return Counter(
        (span.row, span.first_cycle + n, span.why, span.unit) for span in panel.pieces() for n in range(span.cycles)
    )


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_warp_rows_show_what_the_definition_says(case: Case, most_rows: int) -> None:
    _, rows = panels(case, most_rows)
    depth = -(-case[0].warps // most_rows)
    assert sum(rows.depths) == case[0].warps
    assert len(rows.names) == len(rows.depths) <= most_rows
    assert cells(rows) == Counter(
        (warp // depth, at, None if what == ISSUES else what, unit)
        for at, cycle in enumerate(cycle_by_cycle(*case))
        for warp, (what, unit) in cycle.doing.items()
    )


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_lanes_show_held_ports_and_missing_slots_until_the_makespan(case: Case, most_rows: int) -> None:
    instance, schedule = case
    lanes, _ = panels(case, most_rows)
    shown = cells(lanes)
    used = {bar.unit for bar in bars(*case)}
    capacities = {unit: capacity for unit, capacity in instance.machine.capacities.items() if unit in used}
    assert sum(lanes.depths) == sum(capacities.values())
    for at, cycle in enumerate(cycle_by_cycle(*case)):
        for unit, capacity in capacities.items():
            free, why = cycle.free.get(unit, (0, Why.NOBODY))
            rows = range(len(lanes.names))
            assert sum(shown[row, at, None, unit] for row in rows) == capacity - free
            assert sum(shown[row, at, Why.SLOT, unit] for row in rows) == (free if why is Why.SLOT else 0)
    assert all(at < schedule.makespan and why in (None, Why.SLOT) for _, at, why, _ in shown)
    occupied = Counter((row, at) for row, at, *_ in shown.elements())
    assert all(times <= lanes.depths[row] for (row, _), times in occupied.items())


@given(cases())
@settings(deadline=None)
def test_the_legend_gets_exactly_what_occurs(case: Case) -> None:
    both = panels(case, 12)
    assert shows(both) == {(span.why, span.unit) for panel in both for span in panel.pieces()}


def test_rows_are_shared_when_there_are_too_many() -> None:
    instance = Instance.of("CL", 5, Machine.of({"C": 3, "L": 1}))
    case = instance, greedy.schedules(instance, Limits())[0]
    assert panels(case, 4)[0].names == ("C0", "C1", "C2", "L0")
    assert panels(case, 3)[0].names == ("C x3", "L")
    assert panels(case, 3)[0].depths == (3, 1)
    assert panels(case, 5)[1].names[-1] == "warp 4"
    assert panels(case, 3)[1].names == ("warps 0-1", "warps 2-3", "warp 4")
    assert panels(case, 3)[1].depths == (2, 2, 1)


def test_a_program_with_choices_shows_the_places_of_the_path() -> None:
    program = Program((Place("C", (1, 2)), Place("C", (3,)), Place("L", (3,)), Place("L", (4,))))
    instance = Instance.of(program, 2)
    schedule = search.solve(instance, Limits()).witness
    assert schedule is not None
    assert replay(instance, schedule) == schedule.makespan
    _, rows = panels((instance, schedule), 12)
    for warp, path in enumerate(schedule.paths):
        mine = sorted((s.first_cycle, s.label, s.unit) for s in rows.spans if s.row == warp and s.why is None)
        assert [(label, unit) for _, label, unit in mine] == [(str(at), program.places[at].unit) for at in path]


@given(cases(), st.data())
@settings(deadline=None)
def test_a_window_shows_what_the_whole_shows_in_these_cycles(case: Case, data: st.DataObject) -> None:
    makespan = case[1].makespan
    first = data.draw(st.integers(0, makespan - 1))
    end = data.draw(st.integers(first + 1, makespan))
    for panel in panels(case, 12):
        expected = {(row, at - first, why, unit): times for (row, at, why, unit), times in cells(panel).items()}
        shown = {key: times for key, times in expected.items() if 0 <= key[1] < end - first}
        assert cells(panel.within(Window(first, end))) == shown


def test_the_busiest_stretch_has_most_warps_waiting_and_of_equal_ones_is_the_middle_one() -> None:
    between = [Wait(10, 5, 0, "C", Why.PORT), Wait(12, 3, 1, "C", Why.SLOT), Wait(40, 50, 2, "C", Why.STALLED)]
    assert busiest(between, Window(0, 100), 3) == Window(12, 15)
    assert busiest(between, Window(0, 100), 2) == Window(13, 15)
    assert busiest([], Window(20, 80), 10) == Window(45, 55)
    assert busiest([Wait(0, 100, 0, "C", Why.BARRIER)], Window(20, 80), 60) == Window(20, 80)


@given(cases(), st.data())
@settings(deadline=None)
def test_no_stretch_has_more_waiting_than_the_busiest(case: Case, data: st.DataObject) -> None:
    instance, schedule = case
    issued = bars(instance, schedule)
    between = waits(issued, held(instance, schedule, issued))
    cycles = data.draw(st.integers(1, schedule.makespan))
    busy = Counter(w.first_cycle + n for w in between if w.why is not Why.STALLED for n in range(w.cycles))
    sums = [sum(busy[at] for at in range(begin, begin + cycles)) for begin in range(schedule.makespan - cycles + 1)]
    found = busiest(between, Window(0, schedule.makespan), cycles)
    assert found.cycles == cycles
    assert sums[found.first] == max(sums)


@given(st.integers(1, 3_000_000))
def test_a_scale_covers_the_makespan_in_bounded_width(makespan: int) -> None:
    scale = Scale.of(Window(0, makespan), width=2000, widest_cycle=90)
    assert (scale.columns - 1) * scale.cycles < makespan <= scale.columns * scale.cycles
    assert scale.width <= 2000
    assert scale.width > 1000 or scale.pixels == 90 or scale.columns * (scale.pixels + 1) > 2000


@given(st.integers(0, 3_000_000), st.integers(1, 3_000_000))
def test_ticks_are_whole_cycles_apart_and_begin_and_end_with_the_window(first: int, cycles: int) -> None:
    scale = Scale.of(Window(first, first + cycles), width=2000, widest_cycle=90)
    ticks = scale.ticks()
    assert ticks[0] == first
    assert ticks[-1] == first + cycles
    assert all(after > before for before, after in pairwise(ticks))
    assert all(isinstance(tick, int) for tick in ticks)
