"""CP-SAT: the same worst case as the exhaustive search, and proven bounds when it is stopped."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import BrokenPromiseError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, replay, run
from makespan.model.strings import NamedInstance
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import Limits
from makespan.proof.engines.cpsat import model as cpsat_model
from makespan.proof.engines.cpsat import solver as cpsat
from makespan.proof.engines.cpsat.windows import windows
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain as search
from tests.both import truth
from tests.effort import Looks
from tests.engines.test_reference import REFERENCE
from tests.oracle import brute_force, obeys
from tests.strategies import general_machines, instances, letters, runs

PAIRS = [{"C": 1, "L": 1}, {"C": 2, "L": 1}, {"C": 2, "L": 2}]

SLOW = Machine("slow", (UnitClass("C", 1, 1, Latency(2, 2)), UnitClass("L", 1, 2, Latency(2, 5))), issue_width=1)


@st.composite
def general(draw: st.DrawFn, most_warps: int = 3, most: int = 3) -> Instance:
    """Any intervals up to 4, latencies up to 6 and issue widths up to 3, in three classes."""
    machine = draw(general_machines(most_interval=4, most_latency=6))
    return draw(instances(machine=machine, most_warps=most_warps, most=most))


def solved(instance: Instance, hint: Schedule | None = None) -> Finding:
    return cpsat.solve(instance, Limits(), horizon=pessimistic(instance), hint=hint)


@pytest.mark.parametrize("capacities", PAIRS, ids=str)
def test_every_short_string(capacities: dict[str, int]) -> None:
    for size in range(1, 5):
        for string in map("".join, product("CL", repeat=size)):
            instance = Instance.of(string, 3, Machine.of(capacities))
            assert solved(instance).upper == brute_force(instance).upper, string


@pytest.mark.parametrize("capacities", PAIRS, ids=str)
@given(string=letters(most=5), warps=st.integers(1, 3))
@settings(max_examples=40)
def test_equal_strings(capacities: dict[str, int], string: str, warps: int) -> None:
    instance = Instance.of(string, warps, Machine.of(capacities))
    found = solved(instance)
    assert found.witness is not None
    assert found.evidence == "cpsat"
    assert found.upper == replay(instance, found.witness) == truth(instance)


@settings(max_examples=80)
@given(instance=instances())
def test_groups_automata_and_up_to_three_classes(instance: Instance) -> None:
    found = solved(instance)
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert found.upper == found.witness.makespan == brute_force(instance).upper


@given(instance=instances(), policy=st.sampled_from(sorted(POLICIES)))
@settings(max_examples=50)
def test_any_schedule_may_be_the_hint(instance: Instance, policy: str) -> None:
    hint = run(instance, policy)
    assert solved(instance, hint=hint).upper == truth(instance)


@given(instance=general())
@settings(max_examples=80, deadline=None)
def test_latencies_intervals_and_an_issue_width(instance: Instance) -> None:
    found = solved(instance)
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert found.upper == replay(instance, found.witness) == brute_force(instance).upper


@given(instance=general(most_warps=4, most=4))
@settings(max_examples=50, deadline=None)
def test_more_warps_of_general_machines_against_the_search(instance: Instance) -> None:
    assert cpsat.solve(instance, Limits(), horizon=truth(instance)).upper == truth(instance)


@given(instance=general())
@settings(max_examples=40, deadline=None)
def test_a_horizon_below_the_best_case_is_a_broken_promise(instance: Instance) -> None:
    best = brute_force(instance).lower
    with pytest.raises(BrokenPromiseError, match=f"no schedule ends within {best - 1} cycles"):
        cpsat.solve(instance, Limits(), horizon=best - 1)


def test_a_witness_tells_latencies_and_the_cycles_in_which_they_pass() -> None:
    """A hit: the C of one warp takes the issue slot of the other's load in cycle 2. That takes 5, and its C 2 more."""
    found = solved(Instance.of("LC", 2, SLOW))
    assert found.upper == 10
    assert found.witness is not None
    assert found.witness.cycles == ((0,), (), (0,), (1,), (), (), (), (), (1,), ())
    assert found.witness.latencies == ((2, 2), (5, 2))


def test_what_is_forced_and_impossible_is_a_broken_promise() -> None:
    """Within 2 cycles both warps would have to issue C at once; the windows leave no variable to say so."""
    instance = Instance.merged([(Program.chain("CC"), 1), (Program.chain("CL"), 1)])
    with pytest.raises(BrokenPromiseError, match="no schedule ends within 2 cycles"):
        cpsat.solve(instance, Limits(), horizon=2)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_hint_gives_every_variable_of_a_general_machine_a_value_that_satisfies_the_model(data: st.DataObject) -> None:
    instance = data.draw(general(most_warps=4, most=4))
    check_hint(instance, data.draw(runs(instance)))


@settings(max_examples=60)
@given(data=st.data())
def test_a_hint_gives_every_variable_a_value_that_satisfies_the_model(data: st.DataObject) -> None:
    instance = data.draw(instances())
    check_hint(instance, data.draw(runs(instance)))


def check_hint(instance: Instance, hint: Schedule) -> None:
    from ortools.sat.python import cp_model

    model = cpsat_model.build(instance, pessimistic(instance), hint=hint)
    assert len(model.problem.proto.solution_hint.vars) == len(model.problem.proto.variables)
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    solver.parameters.num_workers = 1
    assert solver.solve(model.problem) == cp_model.OPTIMAL
    assert solver.objective_value == hint.makespan


@given(data=st.data())
@settings(deadline=None)
@pytest.mark.parametrize("kind", [instances, general])
def test_every_schedule_keeps_to_the_windows_of_its_own_makespan(
    kind: Callable[..., st.SearchStrategy[Instance]], data: st.DataObject
) -> None:
    instance = data.draw(kind(most_warps=5, most=6))
    schedule = data.draw(runs(instance))
    group = instance.group_of_warp()
    ends: dict[tuple[int, int], list[int]] = {}
    for cycle, warp, place in schedule.ops(instance):
        ends.setdefault((group[warp], place), []).append(cycle + 1)
    least = {unit.name: unit.latency.least for unit in instance.machine.units}
    longest = max(group.program.heaviest(least) for group in instance.groups)
    found = windows(instance, max(schedule.makespan, longest))
    for (number, place), cycles in ends.items():
        for own, cycle in zip(found[number], cycles, strict=False):
            assert own[place].earliest <= cycle <= own[place].latest


def test_windows_of_two_warps_on_one_unit() -> None:
    """CC twice at once takes four cycles: the first finishes in 2 or 3, the second in 4."""
    (ranks,) = windows(Instance.of("CC", 2), 4)
    assert ranks == [[(1, 1), (2, 3)], [(2, 3), (4, 4)]]


@pytest.mark.parametrize("named", [n for n in REFERENCE[::29] if (n.makespan or 0) <= 20], ids=lambda n: n.where)
def test_reference_values(named: NamedInstance) -> None:
    assert solved(named.instance).upper == named.makespan


@given(string=letters(most=6))
@settings(max_examples=40)
def test_a_horizon_equal_to_the_worst_case_suffices(string: str) -> None:
    instance = Instance.of(string, 3, Machine.of({"C": 2, "L": 1}))
    assert cpsat.solve(instance, Limits(), horizon=truth(instance)).upper == truth(instance)


def test_blocks_without_barriers_make_no_difference() -> None:
    groups = [(Program.chain("C"), 2), (Program.chain("CLLC"), 2)]
    instance = Instance.merged(groups, blocks=2)
    witness = solved(instance).witness
    assert witness is not None
    assert replay(instance, witness) == truth(Instance.merged(groups))


def test_barriers_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="CP-SAT does not know barriers"):
        cpsat.solve(Instance.of("C|L", 2), Limits(), horizon=4)


@pytest.mark.parametrize("horizon", [1, 5, 7, 8])
def test_a_horizon_that_no_schedule_meets_is_a_broken_promise(horizon: int) -> None:
    with pytest.raises(BrokenPromiseError, match=f"no schedule ends within {horizon} cycles"):
        cpsat.solve(Instance.of("CLLCLL", 2), Limits(), horizon=horizon)


def test_a_hint_beyond_the_horizon_is_a_broken_promise() -> None:
    instance = Instance.of("CLLCLL", 2)
    with pytest.raises(BrokenPromiseError, match="a schedule of 10 cycles exceeds the upper bound of 9"):
        cpsat.solve(instance, Limits(), horizon=9, hint=search.solve(instance, Limits()).witness)


def hard() -> Instance:
    return Instance.of("CLLCLCLLCCCL", 8, Machine.of({"C": 2, "L": 1}))


@pytest.mark.parametrize(("kind", "seconds"), [(Limits, 0.01), (Limits, 0.5), (Looks, 3), (Looks, 20)])
def test_out_of_time_leaves_a_proven_interval(kind: type[Limits], seconds: float) -> None:
    instance, limits = hard(), kind(seconds)
    found = cpsat.solve(instance, limits, horizon=pessimistic(instance), hint=run(instance, min(POLICIES)))
    worst = truth(instance)
    assert found.upper is None or worst <= found.upper < pessimistic(instance)
    assert found.witness is None or replay(instance, found.witness) <= worst


def test_an_interrupt_stops_it_and_keeps_what_is_proven() -> None:
    limits = Limits(seconds=600, progress=lambda line: limits.interrupt() if "between" in line else None)
    instance = hard()
    found = cpsat.solve(instance, limits, horizon=pessimistic(instance), hint=run(instance, min(POLICIES)))
    assert limits.interrupted
    assert found.upper is None or found.upper >= truth(instance)
    assert found.witness is not None
    assert replay(instance, found.witness) <= truth(instance)


def test_an_interrupt_before_the_start_leaves_nothing_wrong() -> None:
    limits = Limits()
    limits.interrupt()
    assert cpsat.solve(hard(), limits, horizon=96).upper is None


def test_a_model_that_is_too_large_is_an_empty_finding_that_says_so() -> None:
    said: list[str] = []
    instance = Instance.of("CL" * 200, 48)
    assert cpsat.solve(instance, Limits(progress=said.append), horizon=pessimistic(instance)) == Finding()
    assert said == ["no CP-SAT: about 368640000 booleans are more than the limit of 2000000"]


def test_one_worker_always_gives_the_same_answer() -> None:
    instance = Instance.of("CLLCLC", 4, Machine.of({"C": 2, "L": 1}))
    assert len({solved(instance).witness for _ in range(3)}) == 1


def test_several_workers_prove_the_same() -> None:
    instance = Instance.of("CLLCLC", 4, Machine.of({"C": 2, "L": 1}))
    assert cpsat.solve(instance, Limits(), horizon=pessimistic(instance), workers=2).upper == truth(instance)


def test_progress_tells_bounds() -> None:
    said: list[str] = []
    cpsat.solve(Instance.of("CLLCLL", 2), Limits(progress=said.append), horizon=12)
    assert said[-1].startswith("CP-SAT: between 10 and 1")


# one_path matters to automata only, equal_warps makes it faster only
@pytest.mark.parametrize("family", [one for one in cpsat_model.FAMILIES if one is not cpsat_model.equal_warps])
def test_no_family_of_constraints_can_be_left_out(family: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat_model, "FAMILIES", tuple(f for f in cpsat_model.FAMILIES if f is not family))
    fork = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3,))))
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 4))))
    narrow = Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)
    general = Instance.of("LCLC", 3, cached), Instance.of("CL", 2, narrow)
    basic = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1})), Instance.of("CCLLC", 3), Instance.of(fork, 2)
    wrong = 0
    for instance in (*basic, *general):
        try:
            found = cpsat.solve(instance, Limits(), horizon=pessimistic(instance) + 1)
            wrong += found.witness is None or found.upper != truth(instance) or not obeys(instance, found.witness)
        except (BrokenPromiseError, ValueError, LookupError, StopIteration):
            wrong += 1
    assert wrong
