"""Greedy schedules: cheap, valid, and never longer than the worst case."""

import pytest
from hypothesis import given

from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import Place, Program
from makespan.simulate import replay
from makespan.solve import Limits
from makespan.solve.greedy import schedules
from tests.oracle import brute_force, obeys
from tests.strategies import automata, instances


@given(instances())
def test_every_greedy_schedule_is_valid_and_a_lower_bound(instance: Instance) -> None:
    worst = brute_force(instance).upper
    for schedule in schedules(instance, Limits()):
        assert obeys(instance, schedule)
        assert replay(instance, schedule) <= worst


def test_there_is_a_schedule_even_when_no_time_is_left() -> None:
    limits = Limits()
    limits.interrupt()
    assert len(schedules(Instance.of("CLLCLL", 4), limits)) == 1


@given(automata("CLS"))
def test_the_longest_path_is_a_path_with_the_most_instructions(program: Program) -> None:
    machine = Machine.of({"C": 1, "L": 1, "S": 1})
    path = schedules(Instance.of(program, 1, machine), Limits())[0].paths[0]
    assert len(path) == program.most()
    assert path[0] in program.starts
    assert all(b in program.places[a].successors for a, b in zip(path, (*path[1:], program.end), strict=True))


@pytest.mark.parametrize("string", ["C", "CLLCLL", "CCCC"])
def test_one_warp_takes_its_length(string: str) -> None:
    assert {schedule.makespan for schedule in schedules(Instance.of(string, 1), Limits())} == {len(string)}


def test_an_optional_place_lengthens_the_path() -> None:
    either = Program((Place("C", (1, 2)), Place("L", (2,))))
    assert schedules(Instance.of(either, 1), Limits())[0].paths == ((0, 1),)
