"""The search over a whole multiprocessor, against the definition."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Bounds, Upper
from makespan.model.simulate import replay
from makespan.model.strings import parse_string
from makespan.proof.bounds.partitions import partitions
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain, sm_states
from tests.effort import calls
from tests.oracle import brute_force, obeys
from tests.strategies import general_barrier_instances, general_instances, multiprocessor_instances

SLOW_LOADS = Machine("m", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 3))), issue_width=1)


def found(string: str, warps: int, machine: Machine) -> Finding:
    return sm_states.solve(Instance.of(parse_string(string, machine), warps, machine), Limits())


@settings(max_examples=15)
@given(multiprocessor_instances())
def test_worst_and_best_case_are_those_of_the_definition_and_the_witness_is_a_run_of_it(instance: Instance) -> None:
    truth, answer = brute_force(instance), sm_states.solve(instance, Limits())
    assert (answer.upper, answer.best_case) == (truth.upper, Bounds(truth.lower, truth.lower))
    assert answer.evidence is Upper.SEARCH
    assert answer.witness is not None
    assert replay(instance, answer.witness) == truth.upper
    assert obeys(instance, answer.witness)


@settings(max_examples=15)
@given(general_instances() | general_barrier_instances())
def test_on_the_machines_of_the_plain_search_both_agree(instance: Instance) -> None:
    one, other = sm_states.solve(instance, Limits()), plain.solve(instance, Limits())
    assert (one.upper, one.best_case) == (other.upper, other.best_case)


@pytest.mark.parametrize(("string", "worst"), [("LC", 6), ("L()C()", 7), ("L()C(1)", 6)])
def test_going_ahead_can_take_longer(string: str, worst: int) -> None:
    assert found(string, 3, SLOW_LOADS).upper == worst


@pytest.mark.parametrize(
    ("string", "cycles"),
    [
        ("L()@9L()@6C()C(1,2)", 10),  # of two results that the same place needs the later one counts
        ("L()@7L()@5C()C(1,2)C(2)", 9),  # one that is needed at fewer places may yet be later
        ("L()@9C()", 9),  # nobody needs it, and the warp has not finished before
        ("L()@9C(1)C(1)", 11),
    ],
)
def test_one_warp_by_hand(string: str, cycles: int) -> None:
    assert found(string, 1, SLOW_LOADS).upper == cycles


def test_two_of_five_warps_belong_to_one_scheduler() -> None:
    machine = Machine("m", (UnitClass("C", 1, interval=2),), issue_width=1, partitions=4)
    assert found("CCCCCCCCCCCCCCCC", 5, machine).upper == 63
    assert found("CCCCCCCCCCCCCCCC", 5, replace(machine, assignment=WarpAssignment.MODULO)).upper == 63


def test_a_shared_port_makes_maximal_sets_of_different_sizes() -> None:
    units = UnitClass("C", 1), UnitClass("L", 1, shared=True)
    machine = Machine("m", units, issue_width=1, partitions=2, assignment=WarpAssignment.MODULO)
    instance = Instance((*(Instance.of(s, 1, machine).groups[0] for s in ("L", "CL", "LC")),), machine)
    truth = brute_force(instance)
    assert (found_of := sm_states.solve(instance, Limits())).upper == truth.upper
    assert found_of.best_case == Bounds(truth.lower, truth.lower)


def test_long_latencies_cost_no_states() -> None:
    instance = Instance.of(parse_string("L()@100000C(1)", SLOW_LOADS), 2, SLOW_LOADS)
    assert sm_states.solve(instance, Limits()).upper == 100_002
    assert calls(lambda: sm_states._visit(sm_states._Transitions(instance), Limits())) < 10_000


def test_a_search_without_memory_says_so() -> None:
    limits = Limits(memory_bytes=1000)
    instance = Instance.of(parse_string("L()C()L()C()L()C()", SLOW_LOADS), 6, SLOW_LOADS)
    assert sm_states.solve(instance, limits) == Finding()
    assert limits.short_of_memory


def test_a_search_without_time_finds_nothing() -> None:
    instance = Instance.of(parse_string("L()C()L()C()L()C()", SLOW_LOADS), 6, SLOW_LOADS)
    assert sm_states.solve(instance, Limits(0)) == Finding()


def test_programs_with_too_many_needs_are_refused_before_anything_is_built() -> None:
    string = "L()" * 400 + "".join(f"C({','.join(map(str, range(1, 60)))})" for _ in range(50))
    assert found(string, 2, SLOW_LOADS) == Finding()


def test_what_is_too_large_to_end_is_not_begun() -> None:
    machine = Machine("m", (UnitClass("C", 1), UnitClass("L", 1, shared=True)), issue_width=1, partitions=4)
    assert not sm_states.is_vast(Instance.of("LCLC", 8, machine))
    assert sm_states.is_vast(Instance.of("LC" * 15, 8, machine))
    assert sm_states.is_vast(Instance.of("LC" * 10_000, 64, machine))


def test_many_kinds_of_warps_are_neither_cut_nor_searched() -> None:
    machine = Machine("m", (UnitClass("C", 1),), issue_width=1, partitions=2)
    instance = Instance.merged(((Program.chain("C" * length), 1) for length in range(1, 102)), machine)
    assert partitions(instance) is None
    assert sm_states.solve(instance, Limits()) == Finding()


def test_a_class_with_too_many_choices_is_refused_before_they_are_written_down() -> None:
    uses = tuple(Use((name,), 1, 1024) for name in ("a", "b", "c"))
    resources = tuple(PortResource(name, 1) for name in ("a", "b", "c"))
    machine = Machine("m", (UnitClass("C", 1, uses=uses),), issue_width=1, resources=resources)
    assert sm_states.solve(Instance.of("C", 2, machine), Limits()) == Finding()
    with pytest.raises(UnsupportedError, match="class C leaves 1073741824 choices"):
        solve(Instance.of("C", 2, machine), backend="search")


def test_few_of_many_ready_warps_are_chosen_without_trying_fewer() -> None:
    machine = Machine("m", (UnitClass("C", 20),), issue_width=17, partitions=1)
    groups = [(Program.chain("C" * length), 1) for length in range(1, 19)]
    system = sm_states._Transitions(Instance.merged(groups, machine))
    state = next(system.begin())[1].state
    assert calls(lambda: len(list(system.steps(state))), 200_000) < 200_000
