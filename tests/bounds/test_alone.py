"""Paths of a warp alone, by hand: what is on its way at a barrier, and what is there at the earliest."""

from dataclasses import replace

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.proof.bounds import alone, best_case, least_possible
from makespan.proof.bounds.alone import FURTHER, place_timings, residues
from makespan.proof.bounds.gates import PortGates

HELD = Machine("held", (UnitClass("C", 1, 5), UnitClass("L", 1, 1, Latency(4, 4)), UnitClass("S", 1, 9)))
UNITS = {unit.name: unit for unit in HELD.units}


def test_results_are_on_their_way_whichever_path_comes_to_the_barrier() -> None:
    """One path has set 0 a cycle before, which takes 9; the other one has set 1 three cycles before.

    On both 2 is set a cycle before the barrier, and 0 once more, for less.
    """
    ahead = Program(
        (
            ProgramPlace("C", (2,)),
            ProgramPlace("C", (2,)),
            ProgramPlace("C", (3,)),
            ProgramPlace(BARRIER, (4,)),
            ProgramPlace("C", (5,)),
        ),
        (0, 1),
        timings=(
            InstructionTiming(1, (9, 9), (0,), ()),
            InstructionTiming(3, (9, 9), (1,), ()),
            InstructionTiming(1, (4, 4), (0, 2), ()),
            InstructionTiming(0, (0, 0), (), ()),
            InstructionTiming(1, (1, 1), (), (0, 1, 2)),
        ),
    )
    todo = place_timings(ahead, PortGates.of(HELD), longest=True)
    assert residues(ahead, todo) == {4: {0: 9 - 2, 1: 9 - 4, 2: 4 - 1}}


def test_of_two_barriers_before_a_place_the_one_counts_that_leaves_more() -> None:
    ahead = Program(
        (
            ProgramPlace("C", (2,)),
            ProgramPlace("C", (3,)),
            ProgramPlace(BARRIER, (4,)),
            ProgramPlace(BARRIER, (4,)),
            ProgramPlace("C", (5,)),
        ),
        (0, 1),
        timings=(
            InstructionTiming(1, (9, 9), (0,)),
            InstructionTiming(1, (5, 5), (0,)),
            *[InstructionTiming(0, (0, 0))] * 2,
            InstructionTiming(awaits=(0,)),
        ),
    )
    assert residues(ahead, place_timings(ahead, PortGates.of(HELD), longest=True)) == {4: {0: 9 - 1}}


def test_of_more_phases_than_can_be_told_apart_the_latencies_count(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Instance.of("L|C", 1, HELD)
    assert least_possible(question) == 4 + 1
    monkeypatch.setattr(best_case, "segments_of", lambda program: None)
    assert least_possible(question) == 4 + 1


def test_what_was_there_on_one_path_is_there_at_the_earliest_then_where_paths_join() -> None:
    """The last C waits for what comes in 9 on one path, and has come in 3 on the other one, which is there in 6."""
    ahead = Program(
        (ProgramPlace("C", (3,)), ProgramPlace("C", (2,)), ProgramPlace("C", (3, 4)), ProgramPlace("C", (4,))),
        (0, 1),
        timings=(
            InstructionTiming(1, (9, 9), (0,)),
            InstructionTiming(1, (3, 3), (0,)),
            InstructionTiming(5),
            InstructionTiming(1, (1, 1), (), (0,)),
        ),
    )
    assert least_possible(Instance.of(ahead, 1, Machine.of({"C": 1}))) == 3 + 1


def test_a_warp_takes_a_cycle_at_least_whether_it_comes_to_the_barrier_or_not() -> None:
    """It may end before the barrier, or execute nothing before it: nothing else is known of both phases."""
    either = Program(
        (ProgramPlace("L", (3,)), ProgramPlace(BARRIER, (2,)), ProgramPlace("C", (3,))),
        (0, 1),
        timings=(InstructionTiming(), InstructionTiming(0, (0, 0)), InstructionTiming()),
    )
    assert least_possible(Instance.of(either, 1, Machine.of({"C": 1, "L": 1}))) == 1


@pytest.mark.parametrize(("longest", "further"), [(True, {1: FURTHER}), (False, {})])
def test_of_too_many_tokens_only_some_are_told_apart(
    longest: bool, further: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others share a name where the longest path is asked for, and have none where the shortest is."""
    timings = (
        InstructionTiming(1, (2, 8), (0,), ()),
        InstructionTiming(1, (9, 19), (1,), ()),
        InstructionTiming(1, (1, 1), (), (0, 1)),
    )
    ahead = replace(Program.chain("LLC"), timings=timings)
    monkeypatch.setattr(alone, "MOST_WORK", 1)
    assert alone._names(ahead, longest=longest) == {0: 0} | further
    first, second, last = place_timings(ahead, PortGates.of(HELD), longest=longest)
    assert first.done[0] == (0, 8 if longest else 2)
    assert [key for key, _ in second.done if isinstance(key, int)] == [*further.values()]
    assert [key for key in last.awaits if isinstance(key, int)] == [0, *further.values()]
