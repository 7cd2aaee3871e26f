"""Greedy schedules: cheap, valid, and never longer than the worst case."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import POLICIES, replay, run, runs
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.construct.greedy import longest, schedules
from tests.effort import Looks
from tests.oracle import brute_force, obeys
from tests.strategies import automata, general_barrier_instances, instances, multiprocessor_instances

SUB_PARTITION = Machine(
    "sub-partition", (UnitClass("C", 1, 2, Latency(4, 4)), UnitClass("L", 1, 1, Latency(25, 25))), issue_width=1
)


@given(instances())
def test_every_greedy_schedule_is_valid_and_a_lower_bound(instance: Instance) -> None:
    worst = brute_force(instance).upper
    for schedule in schedules(instance, Limits()):
        assert obeys(instance, schedule)
        assert replay(instance, schedule) <= worst


@pytest.mark.parametrize("most", [0, runs.SMALL])
def test_there_is_a_schedule_even_when_no_time_is_left(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SMALL", most)
    limits = Limits()
    limits.interrupt()
    instance = Instance.of("CLLCLL", 4)
    assert schedules(instance, limits) == []
    assert longest(instance, limits, enough=1000) == run(instance, "oldest")


def test_a_schedule_that_takes_long_is_given_up_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SMALL", 10**9)
    ticks = count()
    instance = Instance.of("CLLC" * 500, 4)
    assert schedules(instance, Limits(10, clock=lambda: next(ticks))) == []
    assert next(ticks) < 20


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
    either = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))
    assert schedules(Instance.of(either, 1), Limits())[0].paths == ((0, 1),)


@pytest.mark.parametrize("most", [0, runs.SMALL])
def test_a_policy_can_be_worse_than_every_rule(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SMALL", most)
    instance = Instance.of("LCLCLC", 6, SUB_PARTITION)
    assert max(schedule.makespan for schedule in schedules(instance, Limits())) == 99
    assert run(instance, "lrr").makespan == 100
    assert solve(instance, backend="certificate", limits=Looks(100)).bounds.lower == 100


@pytest.mark.parametrize("most", [0, runs.SMALL])
@given(instance=general_barrier_instances())
@settings(max_examples=40)
def test_no_policy_takes_longer_than_the_longest_schedule(most: int, instance: Instance) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", most)
        found = longest(instance, Limits(), enough=0)
    assert obeys(instance, found)
    assert found.makespan >= max(run(instance, policy).makespan for policy in POLICIES)


@given(instance=general_barrier_instances())
@settings(max_examples=20)
def test_the_lower_bound_is_at_least_what_any_policy_takes(instance: Instance) -> None:
    slowest = max(run(instance, policy).makespan for policy in POLICIES)
    assert solve(instance, backend="certificate", limits=Looks(1000)).bounds.lower >= slowest


@given(instance=multiprocessor_instances())
@settings(max_examples=40)
def test_on_a_multiprocessor_too_policies_and_rules_are_tried(instance: Instance) -> None:
    found, made = longest(instance, Limits(), enough=0), schedules(instance, Limits())
    assert len(made) == 3 * len(instance.groups)
    assert all(obeys(instance, schedule) for schedule in (found, *made))
    runs = (*made, *(run(instance, policy) for policy in POLICIES))
    assert max(schedule.makespan for schedule in runs) == found.makespan <= brute_force(instance).upper


def test_every_partition_starves_its_last_warp() -> None:
    """The others of its partition are through with C before it begins, so that all of its L come one after another."""
    halves = Machine("halves", (UnitClass("C", 1), UnitClass("L", 1)), partitions=2, assignment=WarpAssignment.MODULO)
    made = longest(Instance.of("CCCLLL", 6, halves), Limits(), enough=99)
    assert made.makespan == brute_force(Instance.of("CCCLLL", 3, Machine.of({"C": 1, "L": 1}))).upper


def test_on_a_multiprocessor_limits_and_promises_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SMALL", 10**9)
    halves = Machine("halves", (UnitClass("C", 1),), partitions=2, assignment=WarpAssignment.MODULO)
    ticks = count()
    instance = Instance.of("CCCC" * 500, 8, halves)
    assert schedules(instance, Limits(10, clock=lambda: next(ticks))) == []
    assert next(ticks) < 20
    with pytest.raises(UnsupportedError, match="the simulator does not know a fair scheduler"):
        longest(Instance.of("C", 2, replace(halves, scheduler=SchedulerPromise.FAIR)), Limits(), enough=9)


def test_what_is_as_long_as_possible_is_enough() -> None:
    instance = Instance.of("LCLCLC", 6, SUB_PARTITION)
    assert longest(instance, Limits(), enough=99).makespan == 99


def test_a_policy_can_be_worse_than_every_rule_where_phases_cannot_be_joined() -> None:
    letters = "CCCLCCCCLCCCC|CC"
    places = [ProgramPlace(letter, (number + 1,)) for number, letter in enumerate(letters)]
    places[13] = ProgramPlace("|", (14, 15))
    instance = Instance.of(Program(tuple(places)), 3, SUB_PARTITION)
    slowest = max(run(instance, policy).makespan for policy in POLICIES)
    assert max(schedule.makespan for schedule in schedules(instance, Limits())) < slowest
    assert solve(instance, backend="certificate").bounds.lower >= slowest
