"""A barrier that is an instruction as well: its warp issues it, and is at the barrier when what it sets is there."""

from dataclasses import replace

from makespan.kernels.flow import Launch
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from tests.flow.toy import warps

PLAIN = InstructionTiming(1, (1, 1), (), (1,))
TEXT = """
who $a
tell $p $a 5
hop skip if $p
work
skip: meet
fetch
rest
"""


def timed(meeting: InstructionTiming, side: str = "") -> Program:
    """The program of the text, where the barrier needs a unit of class C and is timed so; everything awaits token 1."""
    found = warps(TEXT, Launch((64, 1, 1)))
    is_barrier = [effect.barrier is not None for effect in found.flow.effects]
    units = tuple(f"C{BARRIER}" if here else unit for here, unit in zip(is_barrier, found.code.units, strict=True))
    timings = tuple(meeting if here else PLAIN for here in is_barrier)
    take = {"skip": side} if side else {}
    code = replace(found.code, units=units, timings=timings, results=frozenset({1}))
    return replace(found, code=code, take=take).program()


def test_an_instruction_of_its_own_stands_before_the_barrier() -> None:
    made = timed(InstructionTiming(6, (3, 9), (1,), (0, 1)))
    assert made.places == (
        ProgramPlace("C", (1,)),
        ProgramPlace("C", (2,)),
        ProgramPlace(BARRIER, (3,)),
        ProgramPlace("L", (4,)),
    )
    assert made.starts == (0, 1)
    assert made.timings == (
        InstructionTiming(1, (1, 1)),
        InstructionTiming(6, (3, 9), (0,)),
        InstructionTiming(0, (0, 0), (), (0,)),
        InstructionTiming(1, (1, 1)),
    )
    assert [origin.text for origin in made.origins][1:3] == ["meet", "meet"]


def test_nothing_awaits_what_is_there_at_once() -> None:
    assert timed(InstructionTiming(2, (1, 1), (1,), ())).timings[1:3] == (
        InstructionTiming(2, (1, 1)),
        InstructionTiming(0, (0, 0)),
    )


def test_a_machine_serves_the_instruction_and_not_the_barrier() -> None:
    assert timed(InstructionTiming(1, (1, 1), (1,), ())).units == Machine.of({"C": 1, "L": 1}).capacities.keys()


def test_one_path_has_both_places_too() -> None:
    units = [place.unit for place in timed(InstructionTiming(6, (3, 9), (1,), (0, 1)), "fall").places]
    assert units == ["C", "C", BARRIER, "L"]
