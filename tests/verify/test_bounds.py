"""Bounds of the checker on random questions of every kind: those of the engines, from programs of their own."""

import random

import pytest

from benchmarks.closed_form import KINDS, instance
from makespan.bounds import least_possible, pessimistic
from makespan.instance import Instance
from makespan.machine import Machine, UnitClass
from makespan.verify import bounds
from tests.oracle import brute_force


@pytest.mark.parametrize("kind", ["all", "slots", "automata", "barriers and automata", "multiprocessor"])
def test_they_are_those_of_the_engines(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(200):
        one = instance(draw, KINDS[kind])
        branches = one.runs_ahead and not all(group.program.is_chain for group in one.groups)
        if branches:  # where paths part each of them has a way of its own to join what it knows of them
            assert bounds.pessimistic(one) <= pessimistic(one), one
        else:
            assert bounds.pessimistic(one) == pessimistic(one), one
            assert bounds.best_case_floor(one) == least_possible(one), one


def test_warps_of_two_partitions_do_not_wait_for_each_other() -> None:
    halves = Instance.of("C", 2, Machine("halves", (UnitClass("C", 1),), partitions=2))
    assert bounds.best_case_floor(halves) == brute_force(halves).upper == bounds.pessimistic(halves) == 1
