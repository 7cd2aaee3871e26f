"""Bounds of the checker on random questions of every kind: those of the engines, from programs of their own."""

import random
from collections import Counter

import pytest

from benchmarks.closed_form import KINDS, Kind, instance
from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.proof.bounds import least_possible, pessimistic
from makespan.verify import lower_bounds, two_warps
from makespan.verify import pessimistic as again
from tests.oracle import brute_force


@pytest.mark.parametrize("kind", ["all", "slots", "automata", "barriers and automata", "multiprocessor"])
def test_they_are_those_of_the_engines(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(200):
        one = instance(draw, KINDS[kind])
        branches = one.runs_ahead and not all(group.program.is_chain for group in one.groups)
        if branches:  # where paths part each of them has a way of its own to join what it knows of them
            assert again.pessimistic(one) <= pessimistic(one), one
        else:
            assert again.pessimistic(one) == pessimistic(one), one
            assert lower_bounds.least_makespan(one) == least_possible(one), one


def test_warps_of_two_partitions_do_not_wait_for_each_other() -> None:
    halves = Instance.of("C", 2, Machine("halves", (UnitClass("C", 1),), partitions=2))
    assert lower_bounds.least_makespan(halves) == brute_force(halves).upper == again.pessimistic(halves) == 1


def test_two_warps_that_choose_their_paths_take_exactly_as_long_as_the_definition_says() -> None:
    draw, found = random.Random(27), Counter[int]()
    while found.total() < 250:
        one = instance(draw, Kind(ports=2, warps=2, letters=6, automata=True))
        if one.warps == 2:
            truth = brute_force(one)
            assert two_warps.two_warps(one) == truth.upper, one
            assert two_warps.two_warps(one, min) == truth.lower, one
            found[truth.upper - truth.lower] += 1
    assert len(found) > 4
