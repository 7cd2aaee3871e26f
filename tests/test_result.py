"""Bounds and results: an interval is proven or it is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.errors import BrokenPromiseError
from makespan.instance import Instance
from makespan.result import Bounds, Result, Status, Upper
from makespan.schedule import Schedule

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
