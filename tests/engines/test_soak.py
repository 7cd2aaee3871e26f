"""Long campaigns with new examples each time, run by `make soak`; MAKESPAN_SEED repeats one."""

import os
import random
import secrets

import pytest
from hypothesis import given, seed, settings

from makespan.model.instance import Instance
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.simulate import replay
from makespan.proof.bounds import pairs, pessimistic, theorem_e
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.construct import convoy
from makespan.proof.engines.search import plain as search
from tests.oracle import brute_force
from tests.strategies import instances, paper_instances

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
LONG = settings(max_examples=20_000, derandomize=False, print_blob=True)


@pytest.fixture(autouse=True)
def _say_the_seed() -> None:
    print(f"MAKESPAN_SEED={SEED}")


@pytest.mark.soak
@seed(SEED)
@LONG
@given(instances(most_warps=5, most=5))
def test_search_and_auto_agree_with_brute_force(instance: Instance) -> None:
    truth = brute_force(instance)
    found = search.solve(instance, Limits())
    assert found.upper == truth.upper
    assert found.best_case == Bounds(truth.lower, truth.lower)
    assert solve(instance).bounds == Bounds(truth.upper, truth.upper)
    assert pessimistic(instance) >= truth.upper


@pytest.mark.soak
@seed(SEED)
@LONG
@given(paper_instances(most_warps=5, most=7))
def test_theorem_e_is_never_below_the_exact_value(instance: Instance) -> None:
    bound, exact = theorem_e(instance), search.solve(instance, Limits()).upper
    assert bound is not None
    assert exact is not None
    assert exact <= bound.upper


@pytest.mark.soak
def test_the_convoy_attains_theorem_a_far_out() -> None:
    draw = random.Random(SEED)
    for _ in range(1000):
        string = "".join(
            draw.choices("CL", weights=(draw.random() + 0.05, draw.random() + 0.05), k=draw.randint(1, 400))
        )
        warps = draw.randint(3, 64)
        instance = Instance.of(Program.chain(string), warps)
        assert replay(instance, convoy.schedule(instance)) == warps * len(string) - (warps - 1) * pairs(string), string
