"""The definition itself, against cases worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.result import Bounds
from makespan.model.simulate.semantics import (
    has_finished,
    issuing_warps,
    next_states,
    pools_taken,
    ready_warps,
    start_states,
)
from makespan.model.strings import parse_string
from tests.oracle import brute_force, brute_force_launch, launch_of, obeys, standing, unnamed
from tests.strategies import general_barrier_instances, instances, multiprocessor_instances, runs


def test_every_unit_that_has_a_ready_warp_is_used() -> None:
    instance = Instance.of("CL", 3)
    assert ready_warps(instance, standing(instance, 0, 0, 1)) == {"C": [0, 1], "L": [2]}
    assert set(issuing_warps(instance, standing(instance, 0, 0, 1))) == {(0, 2), (1, 2)}
    assert {state.places for state in next_states(instance, standing(instance, 0, 0, 1))} == {(1, 0, 2), (0, 1, 2)}


def test_a_finished_warp_waits_for_nothing() -> None:
    instance = Instance.of("CL", 2)
    assert ready_warps(instance, standing(instance, 2, 1)) == {"C": [], "L": [1]}
    assert list(next_states(instance, standing(instance, 2, 2))) == []


def test_capacity_counts_warps_per_cycle() -> None:
    instance = Instance.of("C", 3, Machine.of({"C": 2}))
    assert set(issuing_warps(instance, standing(instance, 0, 0, 0))) == {(0, 1), (0, 2), (1, 2)}
    assert set(issuing_warps(instance, standing(instance, 1, 0, 0))) == {(1, 2)}


def test_who_schedules_also_picks_start_and_successor() -> None:
    instance = Instance.of(Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))), starts=(0, 1)), 1)
    assert {state.places for state in start_states(instance)} == {(0,), (1,)}
    assert {state.places for state in next_states(instance, standing(instance, 0))} == {(1,), (2,)}


@pytest.mark.parametrize(
    ("string", "warps", "capacity", "shortest", "longest"),
    [
        ("CLC", 2, {"C": 1, "L": 1}, 4, 4),  # c, then C beside L twice, then the other C
        ("CL", 2, {"C": 1, "L": 1}, 3, 3),
        ("CC", 3, {"C": 2, "L": 1}, 3, 4),  # two warps first, then the third alone; or in turns
        ("CC", 4, {"C": 2, "L": 1}, 4, 5),
        ("CC", 2, {"C": 1, "L": 1}, 4, 4),
        ("CLLCLL", 2, {"C": 1, "L": 1}, 9, 10),
    ],
)
def test_shortest_and_longest_schedule_by_hand(
    string: str, warps: int, capacity: dict[str, int], shortest: int, longest: int
) -> None:
    assert brute_force(Instance.of(string, warps, Machine.of(capacity))) == Bounds(shortest, longest)


@given(st.data(), instances())
def test_a_random_run_obeys_the_definition_and_stays_within_the_extremes(
    data: st.DataObject, instance: Instance
) -> None:
    schedule = data.draw(runs(instance))
    extremes = brute_force(instance)
    assert obeys(instance, schedule)
    assert extremes.lower <= schedule.makespan <= extremes.upper


def test_a_private_port_is_that_of_the_warps_own_partition() -> None:
    units = UnitClass("C", 1), UnitClass("L", 1, shared=True)
    halves = Machine("halves", units, partitions=2, assignment=WarpAssignment.MODULO)
    assert [pools_taken(halves, unit, part, ()) for unit in units for part in (0, 1)] == [(0,), (1,), (2,), (2,)]
    assert brute_force(Instance.of("CC", 2, halves)) == Bounds(2, 2)
    assert brute_force(Instance.of("CC", 3, halves)) == Bounds(4, 4)
    assert brute_force(Instance.of("LL", 2, halves)) == Bounds(4, 4)


@given(
    instances(most=3)
    | general_barrier_instances(most_warps=4, most=3)
    | multiprocessor_instances(most_warps=3, most=2, promises=True)
)
@example(Instance.of("C|L", 4, blocks=2))
@example(Instance.of("LC|C", 4, Machine.of({"C": 2, "L": 1}), blocks=2))  # it matters who is in whose block
def test_brute_force_finds_what_a_walk_finds_that_tells_all_warps_apart(instance: Instance) -> None:
    launch = launch_of(instance)
    instance, kinds = launch.defined, launch.kinds
    frontier, cycles, lengths = set(start_states(instance)), 0, set[int]()
    while frontier:
        lengths |= {cycles} if any(has_finished(instance, state) for state in frontier) else set()
        reached = {state: set(next_states(instance, state)) for state in frontier}
        for state, after in reached.items():
            of_unnamed = next_states(instance, unnamed(kinds, state))
            assert {unnamed(kinds, each) for each in of_unnamed} == {unnamed(kinds, each) for each in after}
        frontier = set().union(*reached.values())
        cycles += 1
    assert brute_force_launch(launch) == Bounds(min(lengths), max(lengths))


@pytest.mark.parametrize(
    ("latencies", "cycles"), [((1, 1), 3), ((2, 1), 3), ((1, 2), 4), ((3, 1), 4), ((1, 3), 5), ((4, 2), 5), ((3, 2), 4)]
)
def test_a_result_is_there_once_the_latency_of_all_that_set_it_has_passed(
    latencies: tuple[int, int], cycles: int
) -> None:
    """Two C in cycles 0 and 1 set what the third one awaits; the last cycle is its own."""
    first, second = (InstructionTiming(1, (latency, latency), (9,)) for latency in latencies)
    program = replace(Program.chain("CCC"), timings=(first, second, InstructionTiming(1, (1, 1), (), (9,))))
    assert brute_force(Instance.of(program, 1)) == Bounds(cycles, cycles)
    ends = replace(Program.chain("CC"), timings=(first, second))
    assert brute_force(Instance.of(ends, 1)) == Bounds(cycles - 1, cycles - 1)


@pytest.mark.parametrize("load", ["L", "L()"])
def test_a_barrier_waits_for_a_warp_of_its_block_that_is_at_its_end_but_has_not_finished(load: str) -> None:
    """The load is done in cycle 3. Then the other warp, which has been there since cycle 1, passes and issues its C."""
    machine = Machine("late", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 3))))
    for blocks, cycles in (1, 4), (2, 5):  # the load of another block is done in cycle 4
        groups = [(parse_string(string, machine), blocks) for string in (load, "C|C")]
        assert brute_force(Instance.merged(groups, machine, blocks=blocks)) == Bounds(cycles, cycles)


def test_what_a_fair_scheduler_looks_at_by_hand() -> None:
    """Warp 0 waits for its L up to cycle 3. Then it issued longest ago, and 2 is ready for longer: either may go."""
    units = UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 3))
    fair = Machine("fair", units, scheduler=SchedulerPromise.FAIR)
    instance = Instance.merged([(Program.chain("LC"), 1), (Program.chain("CC"), 2)], fair)
    (state,) = start_states(instance)
    assert (state.past, state.partitions) == (((0, 1), (0, 1), (0, 1)), ())
    for issuing, past in (
        ((0, 1), ((0, 1), (0, 1), (1, 2))),  # 2 could have issued as well as 1
        ((2,), ((0, 2), (1, 2), (0, 1))),
        ((1,), ((0, 3), (0, 1), (1, 2))),
    ):
        assert issuing in set(issuing_warps(instance, state)) <= {issuing, (0, 2)}
        (state,) = (after for after in next_states(instance, state) if after.past == past)
    assert set(issuing_warps(instance, state)) == {(0,), (2,)}
