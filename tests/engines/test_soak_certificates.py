"""Long campaigns for certificates and beams, run by `make soak`; MAKESPAN_SEED repeats one."""

import os
import random
import secrets

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.result import Bounds, Status
from makespan.model.simulate import replay
from makespan.proof.bounds import pairs
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.certificate import beam
from makespan.proof.engines.search import plain as search
from makespan.verify import potential as checker
from tests.bounds.test_potential import CAPACITIES, LEVELS, certificate, mean_excess, sample, upper
from tests.strategies import instances, machines

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
LONG = settings(max_examples=20_000, derandomize=False, print_blob=True)
STRINGS = 1_000


@pytest.fixture(autouse=True)
def _say_the_seed() -> None:
    print(f"MAKESPAN_SEED={SEED}")


crowded = machines(most_units=4).flatmap(lambda machine: instances(machine=machine, most_warps=6, most=5))


@pytest.mark.soak
@seed(SEED)
@LONG
@given(crowded, st.sampled_from(list(LEVELS)))
def test_certificates_and_beams_enclose_the_worst_case(instance: Instance, level: str) -> None:
    truth = search.solve(instance, Limits(600)).upper
    assert truth is not None
    found = certificate(instance, level)
    assert found is not None
    assert found.upper >= truth
    assert checker.bound(instance, found) <= found.upper
    for potential in found.potentials:
        witness = beam.search(instance, potential, 32, 1, Limits())
        assert witness is None or replay(instance, witness) <= truth


@pytest.mark.soak
def test_strings_on_single_units_are_exact_far_out() -> None:
    draw = random.Random(SEED)
    for _ in range(STRINGS):
        weights = (draw.random() + 0.05, draw.random() + 0.05)
        string = "".join(draw.choices("CL", weights=weights, k=draw.randint(1, 420)))
        warps = draw.randint(2, 64)
        instance = Instance.of(string, warps)
        result = solve(instance, backend="certificate")
        assert result.status is Status.EXACT, (string, warps)
        if warps >= 3:
            exact = warps * len(string) - (warps - 1) * pairs(string)
            assert result.bounds == Bounds(exact, exact), (string, warps)
            assert upper(instance, "labels") == exact, (string, warps)


@pytest.mark.soak
@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_certificates_exceed_all_reference_values_by_one_percent_at_most(capacity: tuple[int, ...]) -> None:
    assert mean_excess(sample(capacity, every=1)) <= 1.01
