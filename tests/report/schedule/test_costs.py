"""What instructions cost, and the lines that they come from."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings

from makespan.instance import Group, Instance
from makespan.machine import Machine, UnitClass
from makespan.program import Origin, Place, Program, Timing
from makespan.report.schedule.activity import Why, bars, full, split, waits
from makespan.report.schedule.costs import Cost, costs
from makespan.schedule import Schedule
from makespan.simulate import replay
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def by_line(instance: Instance, schedule: Schedule) -> dict[int, Cost]:
    issued = bars(instance, schedule)
    between = split(waits(instance, schedule, issued), full(instance, issued))
    return costs(instance, issued, between, lambda origin: origin.line)


def with_lines(instance: Instance) -> Instance:
    """Every place of every program on a line of its own: 1000 for each program, and its number."""
    return replace(
        instance,
        groups=tuple(
            Group(replace(program, origins=tuple(Origin("k", 1000 * at + n) for n in range(program.end))), warps)
            for at, (program, warps) in enumerate((group.program, group.warps) for group in instance.groups)
        ),
    )


@given(cases())
@settings(deadline=None)
def test_every_cycle_of_a_warp_is_a_cost_of_one_instruction_as_the_definition_says(case: Case) -> None:
    instance, schedule = with_lines(case[0]), case[1]
    names = {ISSUES: "issued"} | {why: str(why) for why in Why}
    happens: Counter[tuple[int, str]] = Counter()
    group = instance.group_of_warp()
    for cycle in cycle_by_cycle(instance, schedule):
        for warp, (what, _) in cycle.doing.items():
            line = 1000 * group[warp]
            happens[line + cycle.at[warp], names[what]] += 1
            if what == Why.RESULT:
                happens[line + int(cycle.causes[warp]), "awaited"] += 1
    found = by_line(instance, schedule)
    told = {(line, name): cycles for line, cost in found.items() for name, cycles in cost._asdict().items() if cycles}
    assert told == happens
    assert sum(cost.cycles for cost in found.values()) == sum(
        len(cycle.doing) for cycle in cycle_by_cycle(instance, schedule)
    )


def test_a_load_is_awaited_by_the_instruction_that_uses_it() -> None:
    timings = Timing(2, (10, 10), sets=(0,)), Timing(1, (1, 1)), Timing(1, (1, 1), awaits=(0,))
    places = Place("L", (1,)), Place("C", (2,)), Place("C", (3,))
    origins = Origin("k", 1, source="k.cu:7"), Origin("k", 2), Origin("k", 3, source="k.cu:7")
    program = Program(places, timings=timings, origins=origins)
    instance = Instance.merged([(program, 1)], Machine("m", (UnitClass("C", 1), UnitClass("L", 1))))
    schedule = Schedule(((0,), (), (0,), *[()] * 7, (0,)), ((0, 1, 2),), ((10, 1, 1),))
    assert replay(instance, schedule) == 11
    assert by_line(instance, schedule) == {
        1: Cost(issued=1, stalled=1, awaited=7),
        2: Cost(issued=1),
        3: Cost(issued=1, result=7),
    }
    issued = bars(instance, schedule)
    found = costs(instance, issued, waits(instance, schedule, issued), lambda origin: origin.source)
    assert found == {"k.cu:7": Cost(2, 1, 7, awaited=7), "": Cost(1)}
    assert [cost.cycles for cost in found.values()] == [10, 1]
