"""What every port and every warp does in every cycle."""

from collections import Counter, defaultdict
from itertools import pairwise

from hypothesis import given, settings

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.schedule import Op, Schedule
from makespan.model.simulate import replay
from makespan.report.schedule.activity import (
    Bar,
    IdleGap,
    Wait,
    Why,
    bars,
    gaps,
    holds,
    lanes,
    partitions,
    waits,
)
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def everything(case: Case) -> tuple[tuple[Bar, ...], tuple[Wait, ...]]:
    """The bars and the waits, those of ready warps told apart."""
    instance, schedule = case
    issued = bars(instance, schedule)
    return issued, waits(instance, schedule, issued)


def slow(width: int | None) -> Case:
    """Two warps C L; C holds its port for 2 cycles and takes 1, L takes 3."""
    machine = Machine("slow", (UnitClass("C", 1, 2), UnitClass("L", 1, 1, Latency(3, 3))), width)
    instance = Instance.of("CL", 2, machine)
    schedule = Schedule.of_chains(instance, [(0,), (0,), (1,), (1,), (), ()])
    assert replay(instance, schedule) == 6
    return instance, schedule


def test_two_warps_by_hand() -> None:
    issued, between = everything(slow(1))
    assert issued == (
        Bar(0, 2, 0, 0, "C", 0, 1),
        Bar(1, 1, 0, 1, "L", 0, 3),
        Bar(2, 2, 1, 0, "C", 0, 1),
        Bar(3, 1, 1, 1, "L", 0, 3),
    )
    assert sorted(between) == [
        Wait(0, 2, 1, "C", Why.PORT, 0),
        Wait(2, 2, 0, "L", Why.STALLED, 1),
        Wait(4, 2, 1, "L", Why.STALLED, 1),
    ]


def test_a_free_port_and_a_ready_warp_mean_that_an_issue_slot_is_missing() -> None:
    machine = Machine("narrow", (UnitClass("C", 2), UnitClass("L", 1)), 1)
    instance = Instance.of("C", 2, machine)
    schedule = Schedule.of_chains(instance, [(0,), (1,)])
    assert replay(instance, schedule) == 2
    issued, between = everything((instance, schedule))
    assert between == (Wait(0, 1, 1, "C", Why.SLOT, 0),)
    assert gaps(instance, schedule, issued, between) == (
        IdleGap(0, 1, "C", 1, Why.SLOT),
        IdleGap(1, 1, "C", 1, Why.NOBODY),
        IdleGap(0, 2, "L", 0, Why.NOBODY),
    )


@given(cases())
@settings(deadline=None)
def test_every_warp_does_in_every_cycle_what_the_definition_says(case: Case) -> None:
    issued, between = everything(case)
    told: dict[tuple[int, int], tuple[str, str, int]] = {
        (bar.first_cycle, bar.warp): (ISSUES, bar.unit, bar.place) for bar in issued
    }
    for wait in between:
        for cycle in range(wait.first_cycle, wait.first_cycle + wait.cycles):
            assert (cycle, wait.warp) not in told
            told[cycle, wait.warp] = wait.why, wait.unit, wait.place
    happens = list(enumerate(cycle_by_cycle(*case)))
    assert told == {(at, warp): (*what, cycle.at[warp]) for at, cycle in happens for warp, what in cycle.doing.items()}
    causes = {
        (wait.first_cycle + n, wait.warp): wait.cause
        for wait in between
        for n in range(wait.cycles)
        if wait.cause is not None
    }
    assert causes == {(at, warp): cause for at, cycle in happens for warp, cause in cycle.causes.items()}


@given(cases())
@settings(deadline=None)
def test_bars_and_gaps_cover_every_port_once_and_gaps_have_their_reason(case: Case) -> None:
    instance, schedule = case
    issued, between = everything(case)
    idle = gaps(instance, schedule, issued, between)
    stretches = [(bar.unit, bar.port, bar.first_cycle, bar.cycles) for bar in issued]
    stretches += [(gap.unit, gap.port, gap.first_cycle, gap.cycles) for gap in idle]
    covered = Counter((unit, port, first + n) for unit, port, first, cycles in stretches for n in range(cycles))
    within = {key: times for key, times in covered.items() if key[2] < schedule.makespan}
    machine = instance.machine
    home = {(lane.name, lane.port): lane.partition for lane in lanes(machine) if lane.name in machine.capacities}
    assert within == {(*port, cycle): 1 for port in home for cycle in range(schedule.makespan)}
    assert set(covered.values()) == {1}
    told: Counter[tuple[int, str, int | None, Why]] = Counter()
    for gap in idle:
        where = home[gap.unit, gap.port]
        told.update((gap.first_cycle + n, gap.unit, where, gap.why) for n in range(gap.cycles))
    happens = enumerate(cycle_by_cycle(*case))
    assert told == {(at, *pool, why): n for at, cycle in happens for pool, (n, why) in cycle.free.items()}


@given(cases())
@settings(deadline=None)
def test_resources_are_held_port_by_port_as_the_definition_says(case: Case) -> None:
    instance, schedule = case
    held = holds(instance, schedule, bars(instance, schedule))
    home = {(lane.name, lane.port): lane.partition for lane in lanes(instance.machine)}
    covered = Counter((each.resource, each.port, each.first_cycle + n) for each in held for n in range(each.cycles))
    assert set(covered.values()) <= {1}
    told = Counter((at, name, home[name, port]) for name, port, at in covered if at < schedule.makespan)
    happens = enumerate(cycle_by_cycle(*case))
    assert told == Counter({(at, *pool): n for at, cycle in happens for pool, n in cycle.held.items() if n})


@given(cases())
@settings(deadline=None)
def test_every_instruction_is_one_bar_with_its_interval_and_latency(case: Case) -> None:
    instance, schedule = case
    units = {unit.name: unit for unit in instance.machine.units}
    programs = tuple(instance.programs())
    issued = bars(*case)
    parts = partitions(*case)
    home = {(lane.name, lane.port): lane.partition for lane in lanes(instance.machine)}
    assert tuple(Op(bar.first_cycle, bar.warp, bar.place) for bar in issued) == tuple(schedule.ops(instance))
    for bar in issued:
        unit = units[bar.unit]
        assert bar.unit == programs[bar.warp].places[bar.place].unit
        assert bar.cycles == unit.interval
        timings, latency = programs[bar.warp].timings, unit.latency
        least, most = timings[bar.place].latency if timings else (latency.least, latency.most)
        assert least <= bar.latency <= most
        assert home[bar.unit, bar.port] in (None, parts[bar.warp])
    for warp, chosen in enumerate(schedule.latencies):
        assert tuple(bar.latency for bar in issued if bar.warp == warp) == chosen


def test_a_port_that_different_warps_want_in_turn_is_idle_in_one_stretch() -> None:
    instance = Instance.of("CC", 2, Machine("narrow", (UnitClass("C", 2),), 1))
    schedule = Schedule.of_chains(instance, [(0,), (1,), (0,), (1,)])
    assert replay(instance, schedule) == 4
    assert gaps(instance, schedule, *everything((instance, schedule))) == (
        IdleGap(0, 3, "C", 1, Why.SLOT),
        IdleGap(3, 1, "C", 1, Why.NOBODY),
    )


def test_a_warp_that_goes_on_stays_on_its_port_though_a_lower_one_is_free() -> None:
    machine = Machine.of({"C": 2})
    instance = Instance.merged([(Program.chain("C"), 1), (Program.chain("CC"), 1)], machine)
    schedule = Schedule.of_chains(instance, [(0, 1), (1,)])
    assert replay(instance, schedule) == 2
    assert [(bar.warp, bar.port) for bar in bars(instance, schedule)] == [(0, 0), (1, 1), (1, 1)]


@given(cases())
@settings(deadline=None)
def test_a_warp_that_goes_on_when_its_port_is_free_keeps_it(case: Case) -> None:
    last: dict[int, Bar] = {}
    for bar in bars(*case):
        before = last.get(bar.warp)
        if before is not None and (before.first_cycle + before.cycles, before.unit) == (bar.first_cycle, bar.unit):
            assert bar.port == before.port
        last[bar.warp] = bar


@given(cases())
@settings(deadline=None)
def test_stretches_are_as_long_as_they_can_be(case: Case) -> None:
    instance, schedule = case
    issued, between = everything(case)
    rows: defaultdict[tuple[str | int, str | int, Why], list[tuple[int, int]]] = defaultdict(list)
    for wait in between:
        rows[wait.warp, f"{wait.unit}{wait.cause}", wait.why].append((wait.first_cycle, wait.first_cycle + wait.cycles))
    for gap in gaps(instance, schedule, issued, between):
        rows[gap.unit, gap.port, gap.why].append((gap.first_cycle, gap.first_cycle + gap.cycles))
    for (*_, why), stretches in rows.items():
        if why not in (Why.STALLED, Why.RESULT, Why.BARRIER):  # two instructions may follow one another; barriers too
            assert all(end < first for (_, end), (first, _) in pairwise(sorted(stretches)))
