"""Bounds and results: an interval is proven or it is an error."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import BrokenPromiseError
from makespan.model.assumptions import as_written, one_path
from makespan.model.certificate import Certificate, Potential, PotentialNode, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Status, Upper
from makespan.model.schedule import Schedule
from makespan.proof.engines import solve

intervals = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(lambda ends: Bounds(*ends))


@given(intervals, intervals)
def test_two_proofs_leave_what_both_allow(one: Bounds, other: Bounds) -> None:
    both = set(range(one.lower, one.upper + 1)) & set(range(other.lower, other.upper + 1))
    if both:
        assert one & other == Bounds(min(both), max(both))
    else:
        with pytest.raises(BrokenPromiseError, match="not an interval"):
            one & other


@pytest.mark.parametrize(("lower", "upper"), [(4, 3), (-1, 3)])
def test_an_empty_or_negative_interval_is_a_broken_promise(lower: int, upper: int) -> None:
    with pytest.raises(BrokenPromiseError, match=f"not an interval: {lower}..{upper} cycles"):
        Bounds(lower, upper)


def test_only_a_single_value_is_exact() -> None:
    assert Bounds(7, 7).status is Status.EXACT
    assert Bounds(7, 8).status is Status.BOUNDED


def test_a_lower_bound_without_a_witness_of_that_length_is_a_broken_promise() -> None:
    instance = Instance.of("C", 2)
    witness = Schedule.of_chains(instance, [[0], [1]])
    with pytest.raises(BrokenPromiseError, match="the witness takes 2 cycles, the lower bound says 3"):
        Result(instance, Bounds(3, 3), witness, Upper.SEARCH, 3, None, "search", 0.0, ())


LONG = "LLLLCCCCCCCCCLLCCCCCCC" * 10


def test_every_value_prints_itself_on_one_line() -> None:
    result = solve(Instance.of(LONG, 48))
    table = PotentialTable(((1,) * len(LONG),), (1,) * len(LONG), 0)
    nodes = tuple((PotentialNode(last, (count,)), 0) for last in (0, None) for count in range(99))
    potential = Potential(0, ("C",), (98,), 0, (table,) * 99, nodes)
    proof = Certificate(result.bounds.upper, (potential,) * 99)
    group = result.instance.groups[0]
    for value in (result, result.instance, result.witness, group.program, group, proof, potential):
        for text in (repr(value), str(value)):
            assert len(text.splitlines()) == 1
            assert len(text) < 300


def test_a_result_prints_its_verdict() -> None:
    result = solve(Instance.of("CLLCLL", 2))
    assert str(result) == "exact if every instruction takes one cycle: the worst case is 10 cycles"
    assert repr(result) == f"Result({result})"
    bounded = str(replace(result, bounds=Bounds(10, 13), interrupted=True))
    assert bounded.endswith(" takes one cycle: the worst case is at least 10 and at most 13 cycles (interrupted)")
    assert repr(result.witness) == "Schedule(2 warps, 10 cycles)"
    assert repr(result.instance) == "Instance(2 x CLLCLL on machine paper (C=1, L=1))"
    assert repr(result.instance.groups[0].program) == "Program(CLLCLL)"


def test_many_groups_are_not_listed() -> None:
    groups = [(Program.chain("C" * length), length) for length in range(1, 10)]
    instance = Instance.merged(groups, Machine("wide", PAPER.units, issue_width=1))
    assert (
        str(instance) == "1 x C + 2 x CC + 3 x CCC + 4 x CCCC + 35 x others on machine wide (C=1, L=1, issue width 1)"
    )


def test_caveats_follow_from_the_machine_and_the_assumptions() -> None:
    """Whatever the engine says of its machine: no number without latencies goes without a word."""
    exact = solve(Instance.of("CL", 2))
    assert exact.caveats == ("if every instruction takes one cycle",)
    noted = replace(exact, assumptions=(one_path("S=fall"), as_written(), *exact.assumptions))
    assert noted.caveats == ("for the PTX as written", "for this path only", *exact.caveats)
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(4, 4)), UnitClass("L", 1)))
    assert solve(Instance.of("CL", 2, slow)).caveats == ()


@pytest.mark.parametrize(("count", "said"), [(1, "1 potential"), (2, "2 potentials")])
def test_a_certificate_says_how_many_potentials_it_has(count: int, said: str) -> None:
    potential = Potential(0, ("C",), (1,), 0, (), ())
    assert repr(Certificate(7, (potential,) * count)) == f"Certificate(at most 7 cycles, by {said})"
