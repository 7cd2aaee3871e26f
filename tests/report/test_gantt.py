"""What a Gantt chart shows, as data."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import BARRIER, Place, Program
from makespan.report.gantt import Bar, Scale, Wait, bars, held, runs, units_panel, waits, warps_panel
from makespan.schedule import Op, Schedule
from makespan.simulate import replay
from makespan.solve import greedy, search
from makespan.solve.limits import Limits
from tests.strategies import barrier_instances
from tests.strategies import runs as schedules_of

Case = tuple[Instance, Schedule]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A small instance with one of its greedy schedules."""
    strings = draw(st.lists(st.text("CLS", min_size=1, max_size=8), min_size=1, max_size=3, unique=True))
    groups = [(Program.chain(letters), draw(st.integers(1, 4))) for letters in strings]
    machine = Machine.of({unit: draw(st.integers(1, 3)) for unit in "CLS"})
    instance = Instance.merged(groups, machine)
    return instance, draw(st.sampled_from(greedy.schedules(instance, Limits())))


def cells(spans: Sequence[Bar] | Sequence[Wait]) -> Counter[tuple[int, int]]:
    """How often each (warp, cycle) is covered."""
    return Counter((s.warp, s.first_cycle + n) for s in spans for n in range(s.cycles))


def two_warps() -> Case:
    """C L on two warps, one after another where they meet."""
    instance = Instance.of("CL", 2)
    return instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)])


def test_two_warps_by_hand() -> None:
    shown = bars(*two_warps())
    assert shown == (
        Bar(0, 1, 0, 0, "C", 0),
        Bar(1, 1, 0, 1, "L", 0),
        Bar(1, 1, 1, 0, "C", 0),
        Bar(2, 1, 1, 1, "L", 0),
    )
    assert waits(shown) == (Wait(0, 1, 1, "C"),)


@given(cases())
@settings(deadline=None)
def test_every_instruction_is_one_bar_on_a_unit_of_its_class(case: Case) -> None:
    instance, schedule = case
    programs = tuple(instance.programs())
    shown = bars(*case)
    assert tuple(Op(bar.first_cycle, bar.warp, bar.place) for bar in shown) == tuple(schedule.ops(instance))
    assert all(bar.cycles == 1 and bar.unit == programs[bar.warp].places[bar.place].unit for bar in shown)


@given(cases())
@settings(deadline=None)
def test_a_port_serves_one_warp_per_cycle_and_exists(case: Case) -> None:
    capacities = case[0].machine.capacities
    shown = bars(*case)
    assert len({(bar.first_cycle, bar.unit, bar.port) for bar in shown}) == len(shown)
    assert all(0 <= bar.port < capacities[bar.unit] for bar in shown)


@given(cases())
@settings(deadline=None)
def test_a_warp_that_goes_on_executing_keeps_its_port(case: Case) -> None:
    before: dict[int, Bar] = {}
    for bar in bars(*case):
        last = before.get(bar.warp)
        if last is not None and (last.first_cycle + 1, last.unit) == (bar.first_cycle, bar.unit):
            assert bar.port == last.port
        before[bar.warp] = bar


@given(cases())
@settings(deadline=None)
def test_runs_cover_what_their_bars_cover_and_cannot_be_longer(case: Case) -> None:
    shown = bars(*case)
    merged = runs(shown)
    assert cells(merged) == cells(shown)
    assert list(merged) == sorted(merged, key=lambda bar: (bar.first_cycle, bar.warp))
    ends = {(bar.warp, bar.unit, bar.first_cycle + bar.cycles) for bar in merged}
    assert not any((bar.warp, bar.unit, bar.first_cycle) in ends for bar in merged)


@given(cases())
@settings(deadline=None)
def test_a_warp_executes_or_waits_in_every_cycle_until_it_finishes(case: Case) -> None:
    shown = bars(*case)
    finish = {bar.warp: bar.first_cycle + 1 for bar in shown}
    expected = Counter({(warp, cycle): 1 for warp, end in finish.items() for cycle in range(end)})
    assert cells(shown) + cells(waits(shown)) == expected
    assert waits(runs(shown)) == tuple(sorted(waits(shown), key=lambda w: (w.first_cycle + w.cycles, w.warp)))


@given(cases())
@settings(deadline=None)
def test_a_warp_waits_only_while_all_units_of_the_class_execute(case: Case) -> None:
    capacities = case[0].machine.capacities
    shown = bars(*case)
    busy = Counter((bar.first_cycle, bar.unit) for bar in shown)
    for wait in waits(shown):
        for cycle in range(wait.first_cycle, wait.first_cycle + wait.cycles):
            assert busy[cycle, wait.unit] == capacities[wait.unit]


@given(cases(), st.integers(1, 12))
@settings(deadline=None)
def test_panels_place_every_bar_within_the_depth_of_its_row(case: Case, most_rows: int) -> None:
    instance, _ = case
    shown = runs(bars(*case))
    for panel in (units_panel(instance, shown, most_rows=most_rows), warps_panel(instance, shown, most_rows=most_rows)):
        assert len(panel.names) == len(panel.depths)
        covered: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for span in panel.spans:
            covered[span.row].update(range(span.first_cycle, span.first_cycle + span.cycles))
        assert all(max(cycles.values()) <= panel.depths[row] for row, cycles in covered.items())
        assert sum(span.cycles for span in panel.spans if not span.waits) == sum(bar.cycles for bar in shown)


@given(st.data(), barrier_instances())
@settings(deadline=None)
def test_a_warp_executes_waits_for_a_unit_or_waits_at_a_barrier(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(schedules_of(instance))
    shown, gates = bars(instance, schedule), held(instance, schedule)
    finish = {bar.warp: bar.first_cycle + 1 for bar in shown}
    for wait in gates:  # a last barrier may come after the last instruction
        finish[wait.warp] = max(finish[wait.warp], wait.first_cycle + wait.cycles)
    expected = Counter({(warp, cycle): 1 for warp, end in finish.items() for cycle in range(end)})
    everything = waits(shown, gates)
    assert cells(shown) + cells(everything) == expected
    capacities = instance.machine.capacities
    busy = Counter((bar.first_cycle, bar.unit) for bar in shown)
    for wait in everything:
        for cycle in range(wait.first_cycle, wait.first_cycle + wait.cycles):
            assert wait.unit == BARRIER or busy[cycle, wait.unit] == capacities[wait.unit]


def test_rows_are_shared_when_there_are_too_many() -> None:
    instance = Instance.of("CL", 5, Machine.of({"C": 3, "L": 1}))
    shown = bars(instance, greedy.schedules(instance, Limits())[0])
    assert units_panel(instance, shown, most_rows=4).names == ("C0", "C1", "C2", "L0")
    assert units_panel(instance, shown, most_rows=3).names == ("C x3", "L")
    assert units_panel(instance, shown, most_rows=3).depths == (3, 1)
    assert warps_panel(instance, shown, most_rows=5).names[-1] == "warp 4"
    assert warps_panel(instance, shown, most_rows=3).names == ("warps 0-1", "warps 2-3", "warp 4")
    assert warps_panel(instance, shown, most_rows=3).depths == (2, 2, 1)


def test_a_program_with_choices_shows_the_places_of_the_path() -> None:
    program = Program((Place("C", (1, 2)), Place("C", (3,)), Place("L", (3,)), Place("L", (4,))))
    instance = Instance.of(program, 2)
    schedule = search.solve(instance, Limits()).witness
    assert schedule is not None
    assert replay(instance, schedule) == schedule.makespan
    for warp, path in enumerate(schedule.paths):
        mine = [bar for bar in bars(instance, schedule) if bar.warp == warp]
        assert tuple(bar.place for bar in mine) == path
        assert [bar.unit for bar in mine] == [program.places[place].unit for place in path]


@given(st.integers(1, 3_000_000))
def test_a_scale_covers_the_makespan_in_bounded_width(makespan: int) -> None:
    scale = Scale.of(makespan, width=2000, widest_cycle=90)
    assert (scale.columns - 1) * scale.cycles < makespan <= scale.columns * scale.cycles
    assert scale.width <= 2000
    assert scale.width > 1000 or scale.pixels == 90 or scale.columns * (scale.pixels + 1) > 2000


@given(st.integers(1, 3_000_000))
def test_ticks_are_whole_cycles_apart_and_end_with_the_makespan(makespan: int) -> None:
    scale = Scale.of(makespan, width=2000, widest_cycle=90)
    ticks = scale.ticks()
    assert ticks[0] == 0
    assert ticks[-1] == makespan
    assert all(after > before for before, after in pairwise(ticks))
    assert all(isinstance(tick, int) for tick in ticks)
