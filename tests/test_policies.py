"""Policies are schedulers: work-conserving, and never outside the extremes."""

import pytest
from hypothesis import given

from makespan.instance import Instance
from makespan.simulate import POLICIES, replay, run
from tests.oracle import brute_force, obeys
from tests.strategies import instances


@pytest.mark.parametrize("policy", POLICIES)
@given(instance=instances())
def test_a_policy_lies_between_best_and_worst_case(policy: str, instance: Instance) -> None:
    schedule = run(instance, policy)
    extremes = brute_force(instance)
    assert obeys(instance, schedule)
    assert extremes.lower <= replay(instance, schedule) <= extremes.upper


def test_oldest_first_always_takes_the_smallest_number() -> None:
    assert run(Instance.of("CC", 2), "oldest").cycles == ((0,), (0,), (1,), (1,))


def test_loose_round_robin_passes_the_turn_on() -> None:
    assert run(Instance.of("CC", 3), "lrr").cycles == ((0,), (1,), (2,), (0,), (1,), (2,))


def test_loose_round_robin_keeps_a_turn_per_class() -> None:
    assert run(Instance.of("CLC", 2), "lrr").cycles == ((0,), (0, 1), (0, 1), (1,))


def test_a_policy_that_nobody_knows_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="magic"):
        run(Instance.of("C", 1), "magic")
