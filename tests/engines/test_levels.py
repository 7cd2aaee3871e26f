"""The worst case of one string and one issue slot, by how late warps are: against the plain search, and its limits."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.simulate import replay
from makespan.proof.engines import Limits, levels, solve
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain
from tests.strategies import letters


def slot(*latencies: int) -> Machine:
    units = (UnitClass(name, 1, 1, Latency(each, each)) for name, each in zip("CLS", latencies, strict=False))
    return Machine("slot", tuple(units), 1)


@given(letters("CLS", 6), st.integers(1, 4), st.tuples(*[st.integers(1, 9)] * 3))
@settings(max_examples=40, deadline=None)
def test_it_is_exact(string: str, warps: int, latencies: tuple[int, int, int]) -> None:
    instance = Instance.of(string, warps, slot(*latencies))
    truth = plain.solve(instance, Limits()).upper
    found = levels.solve(instance, Limits(), 0)
    assert found.upper == truth
    assert found.witness is not None
    assert replay(instance, found.witness) == truth
    nothing = levels.solve(instance, Limits(), truth or 0)
    assert (nothing.upper, nothing.witness) == (truth, None)


def test_many_letters() -> None:
    """Values of another programme, which was written for these."""
    draw = random.Random(1)
    string = "".join(draw.choice("CL") for _ in range(40))
    for warps, latencies, cycles in ((3, (1, 6), 184), (3, (2, 30), 635), (4, (2, 30), 656)):
        result = solve(Instance.of(string, warps, slot(*latencies)), limits=Limits(60))
        assert (result.bounds.lower, result.bounds.upper, result.upper_evidence) == (cycles, cycles, "levels")


@pytest.mark.parametrize(
    ("instance", "applies"),
    [
        (Instance.of("CL", 3, slot(1, 6)), True),
        (Instance.of("CCC", 3, Machine.of({"C": 1})), False),  # closed forms are exact
        (Instance.of("CL", 3, Machine.of({"C": 1, "L": 1})), False),
        (Instance.of("CL", 3, Machine("two", slot(1, 6).units, 2)), False),
        (Instance.of("CL", 3, Machine("range", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 3))), 1)), False),
        (Instance.of("CL" * 99, 48, slot(1, 6)), False),  # too many for a key
        (Instance.of("C" * 200, 2, slot(9_999)), False),
    ],
)
def test_it_takes_what_fits(instance: Instance, applies: bool) -> None:
    assert levels.applies(instance) == applies


def test_limits_end_it_without_a_word() -> None:
    instance = Instance.of("CLLCCLCCLC" * 3, 4, slot(1, 6))
    assert levels.solve(instance, Limits(0), 0) == Finding()
    small = Limits(memory_bytes=10_000)
    assert levels.solve(instance, small, 0) == Finding()
    assert small.short_of_memory


def test_a_level_that_leads_nowhere_is_noticed() -> None:
    instance = Instance.of("CLLC", 3, slot(1, 6))
    table = levels.LatenessLevels(instance)
    assert table.explore(Limits(), 0)
    table._levels[1] = table._levels[1][:0]
    with pytest.raises(BrokenPromiseError, match="none before it leads"):
        table.witness()
