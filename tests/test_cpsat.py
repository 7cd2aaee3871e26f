"""CP-SAT: the same worst case as the exhaustive search, and proven bounds when it is stopped."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.bounds import pessimistic
from makespan.errors import BrokenPromiseError
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import Place, Program
from makespan.result import Upper
from makespan.schedule import Schedule
from makespan.simulate import POLICIES, replay, run
from makespan.solve import Limits, cpsat, cpsat_model, search
from makespan.solve.finding import Finding
from makespan.strings import NamedInstance
from tests.oracle import obeys
from tests.strategies import instances, letters
from tests.test_reference import REFERENCE

PAIRS = [{"C": 1, "L": 1}, {"C": 2, "L": 1}, {"C": 2, "L": 2}]


def solved(instance: Instance, hint: Schedule | None = None) -> Finding:
    return cpsat.solve(instance, Limits(), horizon=pessimistic(instance), hint=hint)


def truth(instance: Instance) -> int:
    upper = search.solve(instance, Limits()).upper
    assert upper is not None
    return upper


@pytest.mark.parametrize("capacities", PAIRS, ids=str)
@given(string=letters(most=5), warps=st.integers(1, 3))
def test_equal_strings(capacities: dict[str, int], string: str, warps: int) -> None:
    instance = Instance.of(string, warps, Machine.of(capacities))
    found = solved(instance)
    assert found.witness is not None
    assert found.evidence is Upper.CPSAT
    assert found.upper == replay(instance, found.witness) == truth(instance)


@settings(max_examples=200)
@given(instances())
def test_groups_automata_and_up_to_three_classes(instance: Instance) -> None:
    found = solved(instance)
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert found.upper == found.witness.makespan == truth(instance)


@given(instances(), st.sampled_from(sorted(POLICIES)))
def test_any_schedule_may_be_the_hint(instance: Instance, policy: str) -> None:
    hint = run(instance, policy)
    assert solved(instance, hint).upper == truth(instance)


@settings(max_examples=50)
@given(instances())
def test_a_hint_gives_every_variable_a_value_that_satisfies_the_model(instance: Instance) -> None:
    from ortools.sat.python import cp_model

    hint = search.solve(instance, Limits()).witness
    assert hint is not None
    model = cpsat_model.build(instance, pessimistic(instance), hint=hint)
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    solver.parameters.num_workers = 1
    assert solver.solve(model.problem) == cp_model.OPTIMAL
    assert solver.objective_value == hint.makespan


@pytest.mark.parametrize("named", [n for n in REFERENCE[::29] if (n.makespan or 0) <= 24], ids=lambda n: n.where)
def test_reference_values(named: NamedInstance) -> None:
    assert solved(named.instance).upper == named.makespan


@given(letters(most=6))
def test_a_horizon_equal_to_the_worst_case_suffices(string: str) -> None:
    instance = Instance.of(string, 3, Machine.of({"C": 2, "L": 1}))
    assert cpsat.solve(instance, Limits(), horizon=truth(instance)).upper == truth(instance)


def test_a_horizon_that_no_schedule_meets_is_a_broken_promise() -> None:
    with pytest.raises(BrokenPromiseError, match="no schedule ends within 8 cycles"):
        cpsat.solve(Instance.of("CLLCLL", 2), Limits(), horizon=8)


@pytest.mark.parametrize("horizon", [1, 5])
def test_a_horizon_below_the_string_is_a_broken_promise(horizon: int) -> None:
    with pytest.raises(BrokenPromiseError, match=f"no schedule ends within {horizon} cycles"):
        cpsat.solve(Instance.of("CLLCLL", 2), Limits(), horizon=horizon)


def test_a_hint_beyond_the_horizon_is_a_broken_promise() -> None:
    instance = Instance.of("CLLCLL", 2)
    with pytest.raises(BrokenPromiseError, match="a schedule of 10 cycles exceeds the upper bound of 9"):
        cpsat.solve(instance, Limits(), horizon=9, hint=search.solve(instance, Limits()).witness)


def hard() -> Instance:
    return Instance.of("CLLCLCLLCCCL", 8, Machine.of({"C": 2, "L": 1}))


@pytest.mark.parametrize("seconds", [0.01, 0.5, 1.5, 3.0])
def test_out_of_time_leaves_a_proven_interval(seconds: float) -> None:
    instance = hard()
    began = time.monotonic()
    found = cpsat.solve(
        instance, Limits(seconds=seconds), horizon=pessimistic(instance), hint=run(instance, min(POLICIES))
    )
    assert time.monotonic() - began < seconds + 3
    worst = truth(instance)
    assert found.upper is None or worst <= found.upper < pessimistic(instance)
    assert found.witness is None or replay(instance, found.witness) <= worst


def test_an_interrupt_stops_it_and_keeps_what_is_proven() -> None:
    limits = Limits(seconds=60)
    threading.Timer(1.5, limits.interrupt).start()
    began = time.monotonic()
    instance = hard()
    found = cpsat.solve(instance, limits, horizon=pessimistic(instance), hint=run(instance, min(POLICIES)))
    assert time.monotonic() - began < 10
    assert found.upper is None or found.upper >= truth(instance)
    assert found.witness is None or replay(instance, found.witness) <= truth(instance)


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
@pytest.mark.parametrize("family", [f for f in cpsat_model.FAMILIES if f is not cpsat_model.equal_warps])
def test_no_family_of_constraints_can_be_left_out(family: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat_model, "FAMILIES", tuple(f for f in cpsat_model.FAMILIES if f is not family))
    fork = Program((Place("C", (1, 2)), Place("L", (3,)), Place("C", (3,))))
    wrong = 0
    instances = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1})), Instance.of("CCLLC", 3), Instance.of(fork, 2)
    for instance in instances:
        horizon = pessimistic(instance) + 1
        try:
            found = cpsat.solve(instance, Limits(), horizon=horizon)
            wrong += found.witness is None or found.upper != truth(instance) or not obeys(instance, found.witness)
        except (BrokenPromiseError, ValueError, IndexError, StopIteration):
            wrong += 1
    assert wrong
