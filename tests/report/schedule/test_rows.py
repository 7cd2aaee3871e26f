"""What a Gantt chart shows, as data."""

import re
from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.machine.values import Pool
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import replay
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import plain as search
from makespan.report.gantt.chart import CycleWindow
from makespan.report.schedule.activity import ScheduleTrace, Wait, Why, bars, holds, partitions
from makespan.report.schedule.picture import (
    SpanRows,
    busiest_window,
    lane_rows,
    schedule_chart,
    span_look,
    warp_rows,
)
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def panels(case: Case, most_rows: int) -> tuple[SpanRows, SpanRows]:
    """Lanes and rows of a chart."""
    trace = ScheduleTrace.of(*case)
    return lane_rows(trace, most_rows), warp_rows(trace, most_rows)


def cells(shown: SpanRows) -> Counter[tuple[int, int, Why | None, str]]:
    """How often each row shows in each cycle what for which class."""
    return Counter(
        (span.row, span.first_cycle + n, span.why, span.unit) for span in shown.spans for n in range(span.cycles)
    )


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_warp_rows_show_what_the_definition_says(case: Case, most_rows: int) -> None:
    _, rows = panels(case, most_rows)
    instance, parts = case[0], partitions(*case)
    depth = -(-instance.warps // most_rows)
    row: dict[int, int] = {}
    homes: list[str] = []
    for part in sorted(set(parts)):
        for number, warp in enumerate(warp for warp, its in enumerate(parts) if its == part):
            homes += [f"p{part}: warp" if instance.machine.partitions > 1 else "warp"] if number % depth == 0 else []
            row[warp] = len(homes) - 1
    assert len(rows.rows) == len(homes)
    assert all(each.label.startswith(home) for each, home in zip(rows.rows, homes, strict=True))
    assert [each.depth for each in rows.rows] == list(Counter(row.values()).values())
    assert cells(rows) == Counter(
        (row[warp], at, None if what == ISSUES else what, unit)
        for at, cycle in enumerate(cycle_by_cycle(*case))
        for warp, (what, unit) in cycle.doing.items()
    )


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_lanes_show_held_ports_and_what_is_missing_until_the_makespan(case: Case, most_rows: int) -> None:
    instance, schedule = case
    panel, _ = panels(case, most_rows)
    shown, issued, pools = cells(panel), bars(*case), instance.machine.pools
    used = {bar.unit for bar in issued} | {hold.resource for hold in holds(instance, schedule, issued)}
    rows: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
    for number, row in enumerate(panel.rows):
        found = re.fullmatch(r"(?:(p\d+|all): )?([A-Z]|[a-z]+)( x\d+| ?\d+)?", row.label)
        assert found is not None
        rows[found[2], found[1]].append(number)
    of: dict[Pool, str | None] = dict.fromkeys(pools)
    if instance.machine.partitions > 1:
        of = {pool: "all" if pool.partition is None else f"p{pool.partition}" for pool in pools}
    assert set(rows) == {(pool.name, of[pool]) for pool in pools if pool.name in used}
    for pool in pools:
        own = rows[pool.name, of[pool]]
        assert sum(panel.rows[number].depth for number in own) == (pool.capacity if pool.name in used else 0)
        for at, cycle in enumerate(cycle_by_cycle(*case) if own else ()):
            free, why = cycle.free.get((pool.name, pool.partition), (0, Why.NOBODY))
            held = cycle.held.get((pool.name, pool.partition), pool.capacity - free)
            told = Counter(reason for row, n, reason, _ in shown.elements() if row in own and n == at)
            assert told == +Counter({None: held, why: 0 if why is Why.NOBODY else free})
    assert all(at < schedule.makespan for _, at, *_ in shown)
    occupied = Counter((row, at) for row, at, *_ in shown.elements())
    assert all(times <= panel.rows[row].depth for (row, _), times in occupied.items())


@given(cases(), st.data())
@settings(deadline=None)
def test_bars_and_legend_of_a_chart_are_those_of_its_rows_in_the_window(case: Case, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, case[1].makespan - 1))
    window = CycleWindow(first, data.draw(st.integers(first + 1, case[1].makespan)))
    chart = schedule_chart(ScheduleTrace.of(*case), "title", "", window)
    shown = set()
    for panel, rows in zip(chart.panels, panels(case, 24), strict=True):
        expected = [s for s in rows.spans if s.first_cycle < window.end and s.first_cycle + s.cycles > window.first]
        assert panel.rows == rows.rows
        assert [bar[:4] for bar in panel.bars] == [
            (s.row, s.first_cycle, s.first_cycle + s.cycles, span_look(s.why, s.unit)) for s in expected
        ]
        shown |= {span_look(s.why, s.unit) for s in expected}
        for bar, span in zip(panel.bars, expected, strict=True):
            number = span.place if panel is chart.panels[1] else span.warp
            assert bar.texts in ((), (str(number),))
    assert {key.look for key in chart.keys if "idle" not in key.words} == shown


def test_rows_are_shared_when_there_are_too_many() -> None:
    instance = Instance.of("CL", 5, Machine.of({"C": 3, "L": 1}))
    case = instance, greedy.schedules(instance, Limits())[0]
    assert [row.label for row in panels(case, 4)[0].rows] == ["C0", "C1", "C2", "L0"]
    assert [(row.label, row.depth) for row in panels(case, 3)[0].rows] == [("C x3", 3), ("L", 1)]
    assert panels(case, 5)[1].rows[-1].label == "warp 4"
    told = [(row.label, row.depth) for row in panels(case, 3)[1].rows]
    assert told == [("warps 0-1", 2), ("warps 2-3", 2), ("warp 4", 1)]


def test_a_program_with_choices_shows_the_places_of_the_path() -> None:
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("L", (3,)), ProgramPlace("L", (4,)))
    )
    instance = Instance.of(program, 2)
    schedule = search.solve(instance, Limits()).witness
    assert schedule is not None
    assert replay(instance, schedule) == schedule.makespan
    _, rows = panels((instance, schedule), 12)
    for warp, path in enumerate(schedule.paths):
        mine = sorted((s.first_cycle, s.place, s.unit) for s in rows.spans if s.row == warp and s.why is None)
        assert [(place, unit) for _, place, unit in mine] == [(at, program.places[at].unit) for at in path]


def test_the_busiest_stretch_has_most_warps_waiting_and_of_equal_ones_is_the_middle_one() -> None:
    between = [Wait(10, 5, 0, "C", Why.PORT, 0), Wait(12, 3, 1, "C", Why.SLOT, 0), Wait(40, 50, 2, "C", Why.STALLED, 0)]
    assert busiest_window(between, CycleWindow(0, 100), 3) == CycleWindow(12, 15)
    assert busiest_window(between, CycleWindow(0, 100), 2) == CycleWindow(13, 15)
    assert busiest_window([], CycleWindow(20, 80), 10) == CycleWindow(45, 55)
    assert busiest_window([Wait(0, 100, 0, "C", Why.BARRIER, 0)], CycleWindow(20, 80), 60) == CycleWindow(20, 80)


@given(cases(), st.data())
@settings(deadline=None)
def test_no_stretch_has_more_waiting_than_the_busiest(case: Case, data: st.DataObject) -> None:
    schedule, between = case[1], ScheduleTrace.of(*case).waits
    cycles = data.draw(st.integers(1, schedule.makespan))
    busy = Counter(
        w.first_cycle + n for w in between if w.why not in (Why.STALLED, Why.RESULT) for n in range(w.cycles)
    )
    sums = [sum(busy[at] for at in range(begin, begin + cycles)) for begin in range(schedule.makespan - cycles + 1)]
    found = busiest_window(between, CycleWindow(0, schedule.makespan), cycles)
    assert found.cycles == cycles
    assert sums[found.first] == max(sums)
