"""What a Gantt chart shows, as data."""

import re
from collections import Counter, defaultdict
from itertools import pairwise

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
from makespan.report.schedule.activity import Wait, Why, bars, full, gaps, holds, partitions, waits
from makespan.report.schedule.panels import (
    ChartPanel,
    CycleWindow,
    TimeScale,
    busiest_window,
    shown_kinds,
    units_panel,
    warps_panel,
)
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def panels(case: Case, most_rows: int) -> tuple[ChartPanel, ChartPanel]:
    """Lanes and rows of a chart."""
    instance, schedule = case
    issued = bars(instance, schedule)
    between = waits(instance, schedule, issued)
    idle = gaps(instance, schedule, issued, between)
    lanes = units_panel(instance, schedule, issued, idle, most_rows=most_rows)
    return lanes, warps_panel(instance, schedule, issued, between, full(instance, issued), most_rows=most_rows)


def cells(panel: ChartPanel) -> Counter[tuple[int, int, Why | None, str]]:
    """How often each row shows in each cycle what for which class."""
    return Counter(
        (span.row, span.first_cycle + n, span.why, span.unit) for span in panel.pieces() for n in range(span.cycles)
    )


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_warp_rows_show_what_the_definition_says(case: Case, most_rows: int) -> None:
    _, rows = panels(case, most_rows)
    instance, parts = case[0], partitions(*case)
    depth = -(-instance.warps // most_rows)
    row: dict[int, int] = {}
    names: list[str] = []
    for part in sorted(set(parts)):
        names += [f"partition {part}"] if instance.machine.partitions > 1 else []
        for number, warp in enumerate(warp for warp, its in enumerate(parts) if its == part):
            names += ["warp"] if number % depth == 0 else []
            row[warp] = len(names) - 1
    assert [name for name in rows.names if "warp" not in name] == [name for name in names if name != "warp"]
    assert [names[heading] for heading in rows.headings] == [name for name in names if name != "warp"]
    assert [rows.depths[at] for at in range(len(names)) if at not in rows.headings] == list(
        Counter(row.values()).values()
    )
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
    block: str | None = None
    rows: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
    for number, name in enumerate(panel.names):
        if number in panel.headings:
            block = name
        elif found := re.fullmatch(r"([A-Z]|[a-z]+)( x\d+| ?\d+)?", name):
            rows[found[1], block].append(number)
    of: dict[Pool, str | None] = dict.fromkeys(pools)
    if instance.machine.partitions > 1:
        of = {pool: "shared" if pool.partition is None else f"partition {pool.partition}" for pool in pools}
    assert {key for key in rows if rows[key]} == {(pool.name, of[pool]) for pool in pools if pool.name in used}
    for pool in pools:
        own = rows[pool.name, of[pool]]
        assert sum(panel.depths[number] for number in own) == (pool.capacity if pool.name in used else 0)
        for at, cycle in enumerate(cycle_by_cycle(*case) if own else ()):
            free, why = cycle.free.get((pool.name, pool.partition), (0, Why.NOBODY))
            held = cycle.held.get((pool.name, pool.partition), pool.capacity - free)
            told = Counter(reason for row, n, reason, _ in shown.elements() if row in own and n == at)
            assert told == +Counter({None: held, why: 0 if why is Why.NOBODY else free})
    assert all(at < schedule.makespan for _, at, *_ in shown)
    occupied = Counter((row, at) for row, at, *_ in shown.elements())
    assert all(times <= panel.depths[row] for (row, _), times in occupied.items())
    assert not {row for row, _ in occupied} & set(panel.headings)


@given(cases())
@settings(deadline=None)
def test_the_legend_gets_exactly_what_occurs(case: Case) -> None:
    both = panels(case, 12)
    assert shown_kinds(both) == {(span.why, span.unit) for panel in both for span in panel.pieces()}


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
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("L", (3,)), ProgramPlace("L", (4,)))
    )
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
        assert cells(panel.within(CycleWindow(first, end))) == shown


def test_the_busiest_stretch_has_most_warps_waiting_and_of_equal_ones_is_the_middle_one() -> None:
    between = [Wait(10, 5, 0, "C", Why.PORT, 0), Wait(12, 3, 1, "C", Why.SLOT, 0), Wait(40, 50, 2, "C", Why.STALLED, 0)]
    assert busiest_window(between, CycleWindow(0, 100), 3) == CycleWindow(12, 15)
    assert busiest_window(between, CycleWindow(0, 100), 2) == CycleWindow(13, 15)
    assert busiest_window([], CycleWindow(20, 80), 10) == CycleWindow(45, 55)
    assert busiest_window([Wait(0, 100, 0, "C", Why.BARRIER, 0)], CycleWindow(20, 80), 60) == CycleWindow(20, 80)


@given(cases(), st.data())
@settings(deadline=None)
def test_no_stretch_has_more_waiting_than_the_busiest(case: Case, data: st.DataObject) -> None:
    instance, schedule = case
    issued = bars(instance, schedule)
    between = waits(instance, schedule, issued)
    cycles = data.draw(st.integers(1, schedule.makespan))
    busy = Counter(
        w.first_cycle + n for w in between if w.why not in (Why.STALLED, Why.RESULT) for n in range(w.cycles)
    )
    sums = [sum(busy[at] for at in range(begin, begin + cycles)) for begin in range(schedule.makespan - cycles + 1)]
    found = busiest_window(between, CycleWindow(0, schedule.makespan), cycles)
    assert found.cycles == cycles
    assert sums[found.first] == max(sums)


@given(st.integers(1, 3_000_000))
def test_a_scale_covers_the_makespan_in_bounded_width(makespan: int) -> None:
    scale = TimeScale.of(CycleWindow(0, makespan), width=2000, widest_cycle=90)
    assert (scale.columns - 1) * scale.cycles < makespan <= scale.columns * scale.cycles
    assert scale.width <= 2000
    assert scale.width > 1000 or scale.pixels == 90 or scale.columns * (scale.pixels + 1) > 2000


@given(st.integers(0, 3_000_000), st.integers(1, 3_000_000))
def test_ticks_are_whole_cycles_apart_and_begin_and_end_with_the_window(first: int, cycles: int) -> None:
    scale = TimeScale.of(CycleWindow(first, first + cycles), width=2000, widest_cycle=90)
    ticks = scale.ticks()
    assert ticks[0] == first
    assert ticks[-1] == first + cycles
    assert all(after > before for before, after in pairwise(ticks))
    assert all(isinstance(tick, int) for tick in ticks)
