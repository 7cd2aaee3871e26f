"""Intervals, latencies and an issue width: the definition, by hand and against everything built on it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, replay, run
from makespan.model.simulate.semantics import SmState, issuing_warps, next_states, start_states
from makespan.proof.bounds import least_possible, pessimistic
from makespan.proof.bounds.delays import contract_schedule, expand_latencies
from makespan.proof.bounds.first_cycles import front
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.backends import TWO_WARPS
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.engine import refusal
from makespan.proof.engines.search import plain as search
from makespan.verify import states
from tests.machine.test_machine import worst_case
from tests.oracle import brute_force, obeys
from tests.strategies import general_instances, runs

SLOW = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, interval=2, latency=Latency(3, 3))))


def test_a_load_delays_its_warp_and_holds_its_port() -> None:
    instance = Instance.of("LC", 2, SLOW)
    (begin,) = start_states(instance)
    assert set(issuing_warps(instance, begin)) == {(0,), (1,)}
    after = SmState((1, 0), (2, 0), ((), (1,)))
    assert after in set(next_states(instance, begin))
    assert set(issuing_warps(instance, after)) == {()}  # the port is held, and the other warp waits for its value
    assert set(next_states(instance, after)) == {SmState((1, 0), (1, 0), ((), ()))}
    assert brute_force(instance) == Bounds(6, 6)


def test_an_issue_width_leaves_a_choice_between_classes() -> None:
    narrow = Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)
    instance = Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 1)], narrow)
    (begin,) = start_states(instance)
    assert set(issuing_warps(instance, begin)) == {(0,), (1,)}
    assert brute_force(instance) == Bounds(2, 2)


def test_a_warp_can_wait_for_a_port_that_it_holds_itself() -> None:
    assert brute_force(Instance.of("LL", 1, Machine("m", (UnitClass("L", 1, interval=3),)))) == Bounds(4, 4)


def test_nobody_passes_a_barrier_before_the_latencies_before_it_have_passed() -> None:
    assert brute_force(Instance.of("L|C", 2, SLOW)) == Bounds(7, 7)  # L at 0 and 2, barrier at 5, C at 5 and 6


def test_a_range_of_latencies_is_a_choice() -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 4))))
    assert brute_force(Instance.of("LC", 1, cached)) == Bounds(2, 5)


@given(general_instances())
@settings(max_examples=80, deadline=None)
def test_the_definition_agrees_with_an_enumeration_of_its_own(instance: Instance) -> None:
    strings = [program.letters for program in instance.programs()]
    if None in strings:
        return
    assert brute_force(instance).upper == worst_case([string or "" for string in strings], instance.machine)


@given(st.data(), general_instances())
@settings(max_examples=120, deadline=None)
def test_replay_accepts_what_the_definition_allows(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(runs(instance))
    assert obeys(instance, schedule)
    assert replay(instance, schedule) == schedule.makespan


@given(st.data(), general_instances())
@settings(max_examples=120, deadline=None)
def test_replay_refuses_what_the_definition_forbids(data: st.DataObject, instance: Instance) -> None:
    """One random change of a schedule: both opinions say the same about it."""
    schedule = data.draw(runs(instance))
    cycles = [list(warps) for warps in schedule.cycles]
    at = data.draw(st.integers(0, len(cycles) - 1))
    latencies = [list(row) for row in schedule.latencies]
    match data.draw(st.sampled_from(["drop", "add", "insert", "cut", "latency"])):
        case "drop" if cycles[at]:
            cycles[at].pop()
        case "add":
            cycles[at].append(data.draw(st.integers(0, instance.warps)))
        case "insert":
            cycles.insert(at, [])
        case "cut":
            del cycles[at]
        case "latency" if latencies:
            row = data.draw(st.sampled_from(latencies))
            row[data.draw(st.integers(0, len(row) - 1))] += data.draw(st.sampled_from([-1, 1]))
    changed = Schedule(tuple(tuple(sorted(w)) for w in cycles), schedule.paths, tuple(map(tuple, latencies)))
    valid = all(0 <= warp < instance.warps for warps in cycles for warp in warps)
    try:
        replay(instance, changed)
    except InvalidScheduleError:
        assert not (valid and obeys(instance, changed))
    else:
        assert obeys(instance, changed)


@given(general_instances())
@settings(max_examples=80, deadline=None)
def test_every_bound_encloses_the_extremes(instance: Instance) -> None:
    truth = brute_force(instance)
    assert least_possible(instance) <= truth.lower
    assert truth.upper <= pessimistic(instance)
    for schedule in (*greedy.schedules(instance, Limits()), *(run(instance, policy) for policy in POLICIES)):
        assert truth.lower <= replay(instance, schedule) <= truth.upper


@given(general_instances())
@settings(max_examples=80, deadline=None)
def test_the_plain_search_finds_both_extremes(instance: Instance) -> None:
    truth = brute_force(instance)
    found = search.solve(instance, Limits(60))
    assert (found.upper, found.best_case) == (truth.upper, Bounds(truth.lower, truth.lower))
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert found.witness.makespan == truth.upper


def test_delays_are_places_that_need_no_unit() -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(2, 4))), issue_width=1)
    expansion = expand_latencies(Instance.of("LC", 3, cached))
    assert expansion is not None
    program = expansion.instance.groups[0].program
    assert program.places == (
        ProgramPlace("L", (1, 2, 3)),  # 3, 2 or 1 cycles of delay
        ProgramPlace(DELAY, (2,)),
        ProgramPlace(DELAY, (3,)),
        ProgramPlace(DELAY, (4,)),
        ProgramPlace("C", (5,)),
    )
    assert expansion.origins == ((0, 0, 0, 0, 1),)
    assert [str(unit) for unit in expansion.instance.machine.units] == ["C=1", "L=1", "~=3"]
    assert expansion.instance.machine.issue_width == 1


def test_a_basic_instance_is_its_own_expansion() -> None:
    instance = Instance.of("CLC", 2)
    expansion = expand_latencies(instance)
    assert expansion is not None
    assert expansion.instance is instance
    schedule = run(instance, "lrr")
    assert contract_schedule(expansion, schedule) is schedule


def test_a_hit_may_skip_the_delays_altogether() -> None:
    expansion = expand_latencies(
        Instance.of("LC", 1, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(1, 3)))))
    )
    assert expansion is not None
    assert expansion.instance.groups[0].program.places[0] == ProgramPlace("L", (1, 2, 3))


def test_an_expansion_past_the_limits_is_none() -> None:
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(10_000, 10_000)),))
    assert expand_latencies(Instance.of("C" * 200, 1, slow)) is None


@pytest.mark.parametrize(
    ("latencies", "message"),
    [
        ((), "latencies of 0 warps are given, of 1"),
        (((2, 1, 1),), "warp 0 has 3 latencies for 2 instructions"),
        (((5, 1),), "warp 0 has a latency of 5, which is not in 1..4"),
    ],
)
def test_replay_names_what_is_wrong_with_latencies(latencies: tuple[tuple[int, ...], ...], message: str) -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 4))))
    with pytest.raises(InvalidScheduleError, match=message):
        replay(Instance.of("LC", 1, cached), Schedule(((0,), (), (0,)), ((0, 1),), latencies))


def test_replay_refuses_cycles_after_the_end() -> None:
    with pytest.raises(InvalidScheduleError, match="cycle 1: all warps have finished already"):
        replay(Instance.of("C", 1), Schedule(((0,), ()), ((0,),)))


def test_schedules_of_phases_are_joined_with_their_latencies() -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 4))))
    result = solve(Instance.of("LC|LC", 2, cached))
    assert result.bounds == brute_force_worst(Instance.of("LC|LC", 2, cached))
    assert obeys(result.instance, result.witness)


def brute_force_worst(instance: Instance) -> Bounds:
    worst = brute_force(instance).upper
    return Bounds(worst, worst)


def test_two_warps_of_an_automaton_on_a_basic_machine_are_refused() -> None:
    either = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)), ProgramPlace("C", (3,))))
    assert "two-warp-dp is for two warps" in str(refusal(TWO_WARPS, Instance.of(either, 2), Limits()))


def test_an_enumeration_of_large_states_gives_up_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(1, 60)), UnitClass("L", 1, latency=Latency(1, 60))))
    instance = Instance.of("CLCL", 4, slow)
    monkeypatch.setattr(states, "MOST_BYTES", 1 << 20)
    assert states.shortest_and_longest(instance, 10**9) is None


def test_a_front_can_be_stopped() -> None:
    whole = expand_latencies(
        Instance.of("CL", 2, Machine("m", (UnitClass("C", 1, latency=Latency(50, 50)), UnitClass("L", 1))))
    )
    assert whole is not None
    stopped, free = front(whole.instance, 1, lambda: True), front(whole.instance, 1)
    assert stopped is not None
    assert free is not None
    assert (stopped.cycles, free.cycles > 40) == (0, True)
