"""Certificates in `solve`: coarse first, finer while time lasts, and always a proven interval."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.certificate import DELAYED_LABEL, PotentialNode
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Status, Upper, UpperBound
from makespan.model.simulate import replay
from makespan.proof.bounds.conditions import ProofQuestion
from makespan.proof.bounds.delays import expand_latencies
from makespan.proof.bounds.linear import Programme, SolutionValues
from makespan.proof.engines import Limits, portfolio, solve
from makespan.proof.engines.certificate import beam, improve
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import choose
from makespan.proof.engines.search import plain as search
from makespan.verify import potential as checker
from tests.oracle import brute_force
from tests.strategies import CONDITIONAL, general_instances, instances, machines

WIDE = Machine.of({"C": 2, "L": 1})
crowded = machines(most_units=2).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))


def loose() -> Instance:
    """Neither exact by a formula nor by two warps, and too many states for a search."""
    return Instance.of("CCLLCCCLCLLCC", 17, WIDE)


@pytest.fixture
def blunt(monkeypatch: pytest.MonkeyPatch) -> None:
    """No closed form but the pessimistic bound."""
    monkeypatch.setattr(portfolio, "tightest", lambda one, plain: UpperBound(plain, Upper.PESSIMISTIC))


def encloses(result: Result, truth: int) -> bool:
    return result.bounds.lower <= truth <= result.bounds.upper


def valid(result: Result) -> bool:
    """Whether both sides of the interval stand up to a second look."""
    if replay(result.instance, result.witness) != result.bounds.lower:
        return False
    if result.certificate is None:
        return result.upper_evidence is not Upper.POTENTIAL and result.bounds.upper <= result.pessimistic
    if checker.bound(result.instance, result.certificate) > result.certificate.upper:
        return False
    if result.upper_evidence is Upper.POTENTIAL:
        return result.certificate.upper == result.bounds.upper
    return result.bounds.upper <= result.certificate.upper


def never(*_: object, **__: object) -> Finding:
    raise AssertionError("searched")


@given(crowded)
@settings(max_examples=25)
def test_the_certificate_backend_encloses_the_truth_without_a_search(instance: Instance) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "solve", never)
        patch.setattr(choose, "solve", never)
        patch.setattr(improve, "WIDE_BEAMS", ((256, 2),))
        result = solve(instance, backend="certificate")
    assert valid(result)
    assert encloses(result, brute_force(instance).upper)


def test_the_result_carries_the_certificate_that_proves_its_upper_bound() -> None:
    result = solve(Instance.of("CCLLCC", 10, WIDE), backend="certificate")
    assert result.upper_evidence is Upper.POTENTIAL
    assert valid(result)
    assert result.bounds == Bounds(28, 28)
    assert result.backend == "certificate"


@pytest.mark.parametrize("string", ["CLLCLL", "CCC"])
def test_there_is_no_certificate_where_a_formula_proves_the_bound(string: str) -> None:
    result = solve(Instance.of(string, 4))
    assert result.upper_evidence is not Upper.POTENTIAL
    assert result.certificate is None


def test_progress_says_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improve, "WIDE_BEAMS", ())
    said: list[str] = []
    solve(loose(), backend="certificate", limits=Limits(progress=said.append))
    assert any(line.startswith("certificate: at most ") for line in said)
    assert any(line.startswith("beam of 32 states: at least ") for line in said)


@pytest.mark.parametrize("backend", ["auto", "certificate"])
@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.01, 0.05])
def test_little_time_still_gives_a_proven_interval(seconds: float, backend: str) -> None:
    result = solve(Instance.of("CCLLCLC" * 20, 32, WIDE), backend=backend, limits=Limits(seconds=seconds))
    assert valid(result)
    assert result.status is Status.BOUNDED


def test_an_interrupt_before_the_start_still_gives_a_proven_interval() -> None:
    limits = Limits()
    limits.interrupt()
    result = solve(loose(), backend="certificate", limits=limits)
    assert result.interrupted
    assert valid(result)
    assert result.upper_evidence is Upper.THEOREM_E


@pytest.mark.usefixtures("blunt")
def test_an_interrupt_keeps_the_certificate_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improve, "SMALL_PLACES", 0)
    monkeypatch.setattr(improve, "WIDE_BEAMS", ())
    uppers = [found.upper for found in improve.improve(loose(), Limits()) if found.upper is not None]

    def stop(line: str) -> None:
        if line.startswith("certificate"):
            limits.interrupt()

    limits = Limits(progress=stop)
    result = solve(loose(), backend="certificate", limits=limits)
    assert result.interrupted
    assert valid(result)
    assert result.upper_evidence is Upper.POTENTIAL
    assert result.bounds.upper == uppers[0]


def test_an_interrupt_stops_a_linear_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits()
    minimise = Programme.minimise

    def interrupted(*arguments: object) -> SolutionValues | None:
        limits.interrupt()
        return minimise(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Programme, "minimise", interrupted)
    result = solve(loose(), backend="certificate", limits=limits)
    assert result.interrupted
    assert valid(result)
    assert result.certificate is None


@pytest.mark.usefixtures("blunt")
@pytest.mark.parametrize(
    ("string", "capacity"),
    [
        ("CCLLCCCLCLLCC", {"C": 2, "L": 1}),
        ("LLCCLLLCLCCLL", {"C": 1, "L": 2}),
        ("CLLLCC", {"C": 2, "L": 2}),
    ],
)
def test_more_levels_never_loosen_the_result(
    string: str, capacity: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = Instance.of(string, 5, Machine.of(capacity))
    monkeypatch.setattr(improve, "WIDE_BEAMS", ())
    monkeypatch.setattr(improve, "SMALL_PLACES", 0)
    levels = improve._levels(instance)
    assert len(levels) == 5
    uppers = []
    for count in range(len(levels) + 1):
        monkeypatch.setattr(improve, "_levels", lambda _, count=count: levels[:count])
        result = solve(instance, backend="certificate")
        assert valid(result)
        uppers.append(result.bounds.upper)
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[-1] < uppers[0]


@pytest.mark.usefixtures("blunt")
def test_a_certificate_that_is_worse_than_the_last_one_is_not_believed_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improve, "SMALL_PLACES", 0)
    monkeypatch.setattr(improve, "WIDE_BEAMS", ())
    levels = improve._levels(loose())[1:]
    monkeypatch.setattr(improve, "_levels", lambda _: levels[::-1])
    found = [finding for finding in improve.improve(loose(), Limits()) if finding.upper is not None]
    uppers = [finding.upper for finding in found if finding.upper is not None]
    assert uppers[-1] > uppers[0]
    result = solve(loose(), backend="certificate")
    assert valid(result)
    assert result.bounds.upper == min(uppers)


def test_a_quick_certificate_comes_first_and_large_programs_get_several() -> None:
    quick, fine = improve._levels(Instance.of("CL" * 20, 4, WIDE))
    assert quick.others is quick.last is improve.stop_ahead
    assert fine.extra == (1, 1)
    assert fine.front_states > 1
    *_, many = improve._levels(Instance.of("CL" * 20, 48, WIDE))
    assert many.front_states == 1  # useless among so many warps
    coarse, *several, finest = improve._levels(Instance.of("CL" * 81, 4, WIDE))
    assert coarse == quick
    assert coarse.extra == (0, 0)
    assert len(several) == 3
    assert (finest.extra, finest.front_states) == ((1, 1), 1)
    assert finest.others is finest.last is improve.stop_and_kind


@given(st.one_of(crowded, general_instances(most_warps=4)), st.integers(0, 2))
@settings(max_examples=120)
def test_abstract_cycles_are_never_counted_too_low(instance: Instance, extra: int) -> None:
    expansion = expand_latencies(instance)
    assert expansion is not None
    shape = ProofQuestion(expansion.instance, 0).abstraction(extra)
    assert shape.most_cycles(10**9) >= len(shape.cycles)
    assert shape.most_cycles(10) >= min(len(shape.cycles), 10)


SLOW = Machine("slow", (UnitClass("C", 2, latency=Latency(2, 2)), UnitClass("L", 1, 2, Latency(3, 5))), issue_width=2)


@given(general_instances())
@settings(max_examples=25, deadline=None)
def test_certificates_of_general_machines_enclose_the_truth(instance: Instance) -> None:
    truth = brute_force(instance).upper
    for found in improve.improve(instance, Limits(60)):
        assert found.upper is None or found.upper >= truth
        assert found.witness is None or replay(instance, found.witness) <= truth
        assert found.certificate is None or checker.bound(instance, found.certificate) == found.upper


@pytest.mark.usefixtures("blunt")
def test_a_general_machine_gets_a_certificate_that_the_checker_confirms() -> None:
    machine = Machine("held", (UnitClass("C", 1, latency=Latency(1, 2)), UnitClass("L", 1, interval=2)), issue_width=2)
    result = solve(Instance.of("CLLCLC", 5, machine), backend="certificate")
    assert result.upper_evidence is Upper.POTENTIAL
    assert valid(result)
    assert result.bounds.upper < result.pessimistic


def test_no_beam_starts_on_a_machine_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "search", never)
    found = list(improve.improve(Instance.of("CLC", 3, SLOW), Limits()))
    assert found
    assert {finding.witness for finding in found} == {None}


def test_a_general_machine_gets_all_levels() -> None:
    expansion = expand_latencies(Instance.of("CLC", 3, SLOW))
    assert expansion is not None
    quick, *several, finest = improve._levels(expansion.instance)
    assert quick.others is quick.last is improve.stop_ahead
    assert [level.extra for level in several] == [(0, 0), (0, 0), (1, 1)]
    assert finest.extra == (1, 1)
    assert not finest.one_delay


def test_latencies_that_are_too_many_places_leave_no_certificate() -> None:
    machine = Machine("slow", (UnitClass("C", 1, latency=Latency(10_000, 10_000)),))
    said: list[str] = []
    assert list(improve.improve(Instance.of("C" * 200, 1, machine), Limits(progress=said.append))) == []
    assert said == ["no certificate: the latencies are more places than an instance may have"]


def test_too_large_an_abstraction_is_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improve, "MOST_CYCLES", 10)
    assert not any(found.certificate for found in improve.improve(loose(), Limits()))
    result = solve(loose(), backend="certificate")
    assert valid(result)
    assert result.upper_evidence is Upper.THEOREM_E


def test_many_units_are_answered_without_a_certificate() -> None:
    machine = Machine.of({"C": 128, "L": 128, "S": 128})
    instance = Instance.of("CLSCLS", 200, machine)
    assert not any(found.certificate for found in improve.improve(instance, Limits()))


def test_many_ports_held_for_long_are_answered_without_a_certificate() -> None:
    machine = Machine("many", tuple(UnitClass(name, 32, interval=8) for name in "CLS"), issue_width=4)
    assert list(improve.improve(Instance.of("CLSCLS", 200, machine), Limits())) == []


def test_nodes_share_tables_where_the_last_finisher_will_be_at_the_same_class() -> None:
    shape = ProofQuestion(Instance.of("CL", 5, WIDE), 0).abstraction(0)
    nodes = [node for situation in shape.situations for node in shape.nodes_of(situation)]
    assert {improve.stop_ahead(node) for node in nodes} == {0, 1}
    assert all(improve.stop_ahead(node) == node.last for node in nodes if node.label is None)
    assert improve.stop_ahead(PotentialNode(None, (0, 0))) == DELAYED_LABEL
    tables = [
        len({key(node) for node in nodes})
        for key in (improve.stop_ahead, improve.stop_and_class, improve.stop_and_kind)
    ]
    assert tables == sorted(tables)
    assert tables[-1] < len(nodes)


def test_auto_searches_where_the_certificate_leaves_a_gap() -> None:
    instance = Instance.of(CONDITIONAL, 3, WIDE)
    result = solve(instance)
    assert valid(result)
    truth = brute_force(instance).upper
    assert result.bounds == Bounds(truth, truth)


def test_groups_have_a_certificate_each() -> None:
    instance = Instance.merged([(Program.chain("CCLLC"), 10), (Program.chain("LCCL"), 7)], WIDE)
    (first, *_) = [found for found in improve.improve(instance, Limits()) if found.certificate is not None]
    assert first.certificate is not None
    assert [potential.last_group for potential in first.certificate.potentials] == [0, 1]
    assert first.evidence is Upper.POTENTIAL


REPEATED = """
from makespan import Instance, Limits, Machine
from makespan.proof.engines.certificate import improve
from makespan.model.program import Program, ProgramPlace

places = (("C", 1, 2), ("L", 3), ("C", 3, 4), ("L", 5), ("C", 5), ("L", 6), ("C", 7), ("C", 8))
fork = Program(tuple(ProgramPlace(unit, tuple(after)) for unit, *after in places))
for found in improve.improve(Instance.of(fork, 4, Machine.of({"C": 2, "L": 1})), Limits(1000)):
    print(found.upper, found.certificate and found.certificate.potentials)
    print(found.witness and (found.witness.cycles, found.witness.paths))
"""


def test_every_process_finds_the_same_certificates_and_witnesses() -> None:
    """Sets of nodes are in another order in each: where nothing is `None`, its hash is an address."""
    runs = [subprocess.run([sys.executable, "-c", REPEATED], capture_output=True, text=True, check=True) for _ in "12"]
    assert runs[0].stdout.count("Potential(") > 0
    assert len({run.stdout for run in runs}) == 1
