"""What instructions cost, and the lines that they come from."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import InstructionOrigin, InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.report.schedule.activity import Bar, Wait, Why, bars, waits
from makespan.report.schedule.costs import Cost, cost_by_key


def by_line(instance: Instance, schedule: Schedule) -> dict[int, Cost]:
    issued = bars(instance, schedule)
    between = waits(instance, schedule, issued)
    return cost_by_key(instance, issued, between, lambda origin: origin.line)


TWO = Instance.merged(
    [
        (
            Program.chain(
                "CLC", origins=[InstructionOrigin("k", 10), InstructionOrigin("k", 11), InstructionOrigin("k", 11)]
            ),
            2,
        ),
        (Program.chain("CC", origins=[InstructionOrigin("k", 20), InstructionOrigin("k", 10)]), 1),
    ]
)
"""Warps 0 and 1 of three instructions, and warp 2 of two."""
WARPS_AND_PLACES = st.sampled_from([(warp, place) for warp, end in ((0, 3), (1, 3), (2, 2)) for place in range(end)])
BARS = st.builds(lambda where: Bar(0, 1, where[0], where[1], "C", 0, 1), WARPS_AND_PLACES)
WAITS = st.builds(
    lambda cycles, where, why, cause: Wait(
        0, cycles, where[0], "C", why, where[1], {Why.RESULT: cause, Why.RESOURCE: "r"}.get(why)
    ),
    st.integers(1, 9),
    WARPS_AND_PLACES,
    st.sampled_from([why for why in Why if why is not Why.NOBODY]),
    st.sampled_from([None, 0, 1]),
)


@given(st.lists(BARS, max_size=9), st.lists(WAITS, max_size=9))
@settings(deadline=None)
def test_every_cycle_of_a_warp_is_a_cost_of_one_instruction(issued: list[Bar], between: list[Wait]) -> None:
    """Which bars and waits there are, and at which places, is tested where they are made."""
    lines = (10, 11, 11), (10, 11, 11), (20, 10)
    happens = Counter((lines[bar.warp][bar.place], "issued") for bar in issued)
    for wait in between:
        happens[lines[wait.warp][wait.place], str(wait.why)] += wait.cycles
        if isinstance(wait.cause, int):
            happens[lines[wait.warp][wait.cause], "awaited"] += wait.cycles
    found = cost_by_key(TWO, issued, between, lambda origin: origin.line)
    told = {(line, name): cycles for line, cost in found.items() for name, cycles in cost._asdict().items() if cycles}
    assert told == happens
    assert sum(cost.cycles for cost in found.values()) == len(issued) + sum(wait.cycles for wait in between)


def test_a_load_is_awaited_by_the_instruction_that_uses_it() -> None:
    timings = (
        InstructionTiming(2, (10, 10), sets=(0,)),
        InstructionTiming(1, (1, 1)),
        InstructionTiming(1, (1, 1), awaits=(0,)),
    )
    places = ProgramPlace("L", (1,)), ProgramPlace("C", (2,)), ProgramPlace("C", (3,))
    origins = (
        InstructionOrigin("k", 1, source="k.cu:7"),
        InstructionOrigin("k", 2),
        InstructionOrigin("k", 3, source="k.cu:7"),
    )
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
    found = cost_by_key(instance, issued, waits(instance, schedule, issued), lambda origin: origin.source)
    assert found == {"k.cu:7": Cost(2, 1, 7, awaited=7), "": Cost(1)}
    assert [cost.cycles for cost in found.values()] == [10, 1]
