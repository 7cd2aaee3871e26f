"""The exhaustive search, oracle of all faster engines, against brute force over single warps."""

import tracemalloc

import pytest
from hypothesis import given

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Upper
from makespan.model.simulate import replay
from makespan.proof.engines import Limits
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain as search
from tests.effort import Looks
from tests.oracle import brute_force, obeys
from tests.strategies import instances


@given(instances())
def test_search_agrees_with_brute_force_on_worst_and_best_case(instance: Instance) -> None:
    truth = brute_force(instance)
    found = search.solve(instance, Limits())
    assert found.upper == truth.upper
    assert found.evidence is Upper.SEARCH
    assert found.best_case == Bounds(truth.lower, truth.lower)


@given(instances())
def test_the_witness_of_a_search_replays(instance: Instance) -> None:
    found = search.solve(instance, Limits())
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert replay(instance, found.witness) == found.upper


@given(instances(choices=False, most_warps=6, most=3))
def test_search_agrees_with_brute_force_for_more_warps(instance: Instance) -> None:
    assert search.solve(instance, Limits()).upper == brute_force(instance).upper


def test_the_adversary_may_take_the_path_that_is_not_the_longest() -> None:
    """Alone CCLC takes 4 cycles and CLCLC takes 5; together two CCLC take 7 and two CLCLC take 6."""
    assert search.solve(Instance.of("CCLC", 2), Limits()).upper == 7
    assert search.solve(Instance.of("CLCLC", 2), Limits()).upper == 6
    fork = Program(
        (
            ProgramPlace("C", (1, 4)),  # C, then CLC or LCLC
            ProgramPlace("C", (2,)),
            ProgramPlace("L", (3,)),
            ProgramPlace("C", (8,)),
            ProgramPlace("L", (5,)),
            ProgramPlace("C", (6,)),
            ProgramPlace("L", (7,)),
            ProgramPlace("C", (8,)),
        )
    )
    found = search.solve(Instance.of(fork, 2), Limits())
    assert found.upper == brute_force(Instance.of(fork, 2)).upper >= 7


def hard() -> Instance:
    return Instance.of("CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", 12, Machine.of({"C": 2, "L": 1}))


def test_out_of_time_is_an_empty_finding() -> None:
    limits = Looks(3)
    assert search.solve(hard(), limits) == Finding()
    assert limits.looked <= 5


def test_out_of_memory_is_an_empty_finding() -> None:
    limits = Looks(10**9, memory_bytes=1 << 20)
    assert (search.solve(hard(), limits), limits.short_of_memory) == (Finding(), True)
    timed = Looks(2)
    assert (search.solve(hard(), timed), timed.short_of_memory) == (Finding(), False)


def test_a_part_of_a_budget_that_lacks_memory_tells_the_whole() -> None:
    whole = Limits()
    whole.part(0.5).part(0.5).need_memory()
    assert whole.short_of_memory


@pytest.mark.parametrize(("warps", "ports"), [(8, 2), (64, 8)])
def test_a_memory_limit_holds_for_wide_states(warps: int, ports: int) -> None:
    limit = 4 << 20
    instance = Instance.of("CLLCLCLLCCLC", warps, Machine.of({"C": ports, "L": ports}))
    tracemalloc.start()
    try:
        assert search.solve(instance, Looks(10**9, memory_bytes=limit)) == Finding()
        assert limit / 2 < tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def test_an_interrupt_is_an_empty_finding() -> None:
    limits = Limits()
    limits.interrupt()
    assert search.solve(hard(), limits) == Finding()


@pytest.mark.parametrize("string", ["CL", "CLLLCLCLCLC"])
def test_the_time_limit_holds_where_one_state_has_billions_of_successors(string: str) -> None:
    """Taking 12 and 16 of 48 warps: the choices must be walked lazily, and equal ones once."""
    limits = Looks(10)
    search.solve(Instance.of(string, 48, Machine.of({"C": 12, "L": 16})), limits)
    assert limits.looked <= 12


def test_equal_warps_are_not_told_apart() -> None:
    """There are 10^11 ways to choose 20 of 40 warps, all the same: 20 C, then the other 20 C beside 20 L, then 20 L."""
    instance = Instance.of("CL", 40, Machine.of({"C": 20, "L": 20}))
    assert search.solve(instance, Limits()).upper == 3
