"""`solve`: proofs combined, witnesses replayed, contradictions raised."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import BrokenPromiseError, InputError, InvalidScheduleError
from makespan.model.assumptions import instructions
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Status, Step, Upper, UpperBound
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.engines import BACKENDS, Limits, portfolio, solve
from makespan.proof.engines.backends import CERTIFICATES, SEARCH
from makespan.proof.engines.construct import convoy, greedy
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain as search
from tests.oracle import brute_force
from tests.strategies import instances, multiprocessor_instances, paper_instances


def _closes_the_gap(instance: Instance) -> None:
    truth = brute_force(instance)
    result = solve(instance, best_case=True)
    assert result.bounds == Bounds(truth.upper, truth.upper)
    assert result.best_case == Bounds(truth.lower, truth.lower)
    assert replay(instance, result.witness) == truth.upper


@given(instances())
def test_auto_closes_the_gap_on_small_instances(instance: Instance) -> None:
    _closes_the_gap(instance)


@settings(max_examples=10)
@given(multiprocessor_instances())
def test_auto_closes_the_gap_on_small_multiprocessors(instance: Instance) -> None:
    _closes_the_gap(instance)


@settings(max_examples=10)
@given(multiprocessor_instances())
def test_bounds_alone_enclose_the_truth_of_a_multiprocessor(instance: Instance) -> None:
    truth = brute_force(instance)
    result = solve(instance, backend="certificate", best_case=True, limits=Limits(0))
    assert result.bounds & Bounds(truth.upper, truth.upper) == Bounds(truth.upper, truth.upper)
    assert result.best_case is not None
    assert result.best_case & Bounds(truth.lower, truth.lower) == Bounds(truth.lower, truth.lower)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "ilp"])  # it has no automata: test_ilp
@given(instance=instances())
def test_every_backend_encloses_the_truth(backend: str, instance: Instance) -> None:
    truth = brute_force(instance)
    result = solve(instance, backend=backend, best_case=True)
    assert result.bounds & Bounds(truth.upper, truth.upper) == Bounds(truth.upper, truth.upper)
    assert result.best_case is not None
    assert result.best_case & Bounds(truth.lower, truth.lower) == Bounds(truth.lower, truth.lower)
    assert result.bounds.upper <= result.pessimistic


@given(paper_instances(choices=False))
def test_the_certificate_alone_is_exact_for_identical_strings_on_single_units(instance: Instance) -> None:
    result = solve(Instance.merged([(instance.groups[0].program, instance.warps)], PAPER), backend="certificate")
    assert result.status is Status.EXACT


def test_the_example_of_the_paper() -> None:
    result = solve(Instance.of("LLLLCCCCCCCCCLLCCCCCCC", warps=48))
    assert result.bounds == Bounds(915, 915)
    assert result.pessimistic == 1056
    assert result.upper_evidence is Upper.THEOREM_E
    assert result.backend == "certificate"
    assert result.witness.makespan == 915


@pytest.mark.parametrize(
    ("string", "warps", "capacity", "evidence", "backend"),
    [
        ("CCC", 4, {"C": 1, "L": 1}, Upper.PESSIMISTIC, "certificate"),
        ("CLLCLL", 3, {"C": 1, "L": 1}, Upper.THEOREM_E, "certificate"),
        ("CLCLCL", 2, {"C": 1, "L": 1}, Upper.TWO_WARP_DP, "certificate"),
        ("CCLLCC", 3, {"C": 2, "L": 1}, Upper.SEARCH, "search"),
    ],
)
def test_the_evidence_names_what_proved_the_bound(
    string: str, warps: int, capacity: dict[str, int], evidence: Upper, backend: str
) -> None:
    result = solve(Instance.of(string, warps, Machine.of(capacity)))
    assert (result.upper_evidence, result.backend, result.status) == (evidence, backend, Status.EXACT)


def test_the_best_case_is_looked_for_only_when_it_is_asked_for() -> None:
    assert solve(Instance.of("CLLCLL", 2)).best_case is None
    assert solve(Instance.of("CLLCLL", 2), best_case=True).best_case == Bounds(9, 9)


def test_an_unknown_backend_is_bad_input() -> None:
    with pytest.raises(InputError, match="unknown backend 'gurobi'; known: auto, certificate, search"):
        solve(Instance.of("C", 1), backend="gurobi")


def hard() -> Instance:
    return Instance.of("CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", 12, Machine.of({"C": 2, "L": 1}))


def test_out_of_time_leaves_a_proven_interval() -> None:
    result = solve(hard(), limits=Limits(seconds=0.3), best_case=True)
    assert result.status is Status.BOUNDED
    assert replay(result.instance, result.witness) == result.bounds.lower
    assert result.best_case is not None
    assert result.best_case.upper <= result.bounds.lower < result.bounds.upper <= result.pessimistic
    assert not result.interrupted


def test_an_interrupted_solve_says_so_and_keeps_what_is_proven() -> None:
    limits = Limits()
    limits.interrupt()
    result = solve(hard(), limits=limits)
    assert result.interrupted
    assert result.status is Status.BOUNDED


def test_assumptions_name_the_machine_and_come_from_the_program() -> None:
    program = Program.chain("CL", assumptions=[instructions("the loop runs at most 8 times")])
    result = solve(Instance.of(program, 2))
    assert str(result.assumptions[0]).startswith("machine 'paper': units C=1, L=1;")
    assert str(result.assumptions[-1]) == "the loop runs at most 8 times"


@pytest.mark.parametrize("engine", ["greedy", "convoy"])
def test_a_witness_that_does_not_replay_is_never_believed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warps = 3 if engine == "convoy" else 2  # where the convoy applies, nothing greedy is tried
    instance = Instance.of("CCLCLL", warps)
    lie = Schedule.of_chains(instance, [[0]] * 14)
    if engine == "greedy":
        monkeypatch.setattr(greedy, "schedules", lambda instance, limits, chosen: [lie])
    else:
        monkeypatch.setattr(convoy, "schedule", lambda instance: lie)
    with pytest.raises(InvalidScheduleError, match="warp 1 issue, too: it is ready for class C"):
        solve(instance, backend="certificate")


def test_a_bound_below_a_replayed_witness_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "solve", lambda instance, limits: Finding(upper=1, evidence=Upper.SEARCH))
    with pytest.raises(BrokenPromiseError, match=r"not an interval: \d+..1 cycles"):
        solve(Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1})))


def test_a_closed_form_that_is_too_small_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "tightest", lambda instance, plain: UpperBound(13, Upper.PESSIMISTIC))
    with pytest.raises(BrokenPromiseError, match=r"not an interval: 14\.\.13 cycles"):
        solve(Instance.of("CLLCLL", 3))


@settings(max_examples=10)
@given(st.one_of(instances(), multiprocessor_instances()))
def test_every_interval_that_is_told_on_the_way_holds(instance: Instance) -> None:
    told: list[Step] = []
    result = solve(instance, limits=Limits(improved=told.append))
    truth = brute_force(instance).upper
    assert all(step.lower <= truth <= step.upper for step in told)
    assert told in ([], list(result.history))


def test_what_is_told_on_the_way_is_about_the_promise_and_about_the_whole() -> None:
    slow = UnitClass("L", 1, 2, Latency(1, 6))
    fair = Machine("fair", (UnitClass("C", 1), slow), 1, scheduler=SchedulerPromise.FAIR)
    told: list[Step] = []
    result = solve(Instance.of("CLCL", 3, fair), limits=Limits(improved=told.append))
    assert told == list(result.history)
    assert told[0].lower != told[0].upper  # so any scheduler was asked about, too
    told.clear()
    solve(Instance.of("CLL|LC", 3), limits=Limits(improved=told.append))
    assert told == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_is_exact_on_the_paper_example(backend: str) -> None:
    result = solve(Instance.of("CLLCLL", 2), backend=backend)
    assert (result.bounds, result.backend) == (Bounds(10, 10), "certificate" if backend == "auto" else backend)


@pytest.mark.parametrize("threads", [1, 2])
def test_search_and_cpsat_share_what_certificates_leave_open(threads: int) -> None:
    instance = Instance.of("CCCLLCLCCCCLCLLCCLC", 6, Machine.of({"C": 2, "L": 1}))
    result = solve(instance, limits=Limits(seconds=100, threads=threads))
    assert result.status is Status.EXACT
    assert result.history[-1][2:4] == (result.bounds.lower, result.bounds.upper)
    assert [step.lower for step in result.history] == sorted(step.lower for step in result.history)
    assert [-step.upper for step in result.history] == sorted(-step.upper for step in result.history)


def test_cpsat_decides_what_the_search_has_no_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("CCLLCCLCC", 4, Machine.of({"C": 2, "L": 1}))
    monkeypatch.setattr(search, "SMALL_STATES", 0)
    monkeypatch.setattr(CERTIFICATES, "find", lambda instance, known, limits: iter(()))
    monkeypatch.setattr(SEARCH, "find", lambda instance, known, limits: iter((Finding(),)))
    result = solve(instance, limits=Limits(seconds=100))
    assert (result.backend, result.upper_evidence) == ("cpsat", "cpsat")
    truth = search.solve(instance, Limits()).upper
    assert truth is not None
    assert result.bounds == Bounds(truth, truth)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stop_ends_search_and_cpsat(threads: int) -> None:
    draw = random.Random(5)
    instance = Instance.of("".join(draw.choices("CL", k=60)), 12, Machine.of({"C": 2, "L": 2}))
    result = solve(instance, limits=Limits(seconds=0.7, threads=threads))
    assert result.status is Status.BOUNDED


def test_several_threads_do_not_give_up_the_best_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SMALL_STATES", 0)
    instance = Instance.of("CCLCLC", 4)
    result = solve(instance, best_case=True, limits=Limits(seconds=100, threads=2))
    truth = search.solve(instance, Limits()).best_case
    assert result.best_case == truth


def test_a_string_is_no_instance() -> None:
    with pytest.raises(
        InputError, match=r"^solve takes an Instance, such as Instance\.of\('CL', warps=2\), not 'CLL'$"
    ):
        solve("CLL")  # type: ignore[arg-type]
