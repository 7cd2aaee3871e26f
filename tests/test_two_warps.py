"""Two warps: the grid against the oracle, for every short string."""

from itertools import combinations, product

import pytest
from hypothesis import given

from makespan.instance import Instance
from makespan.machine import PAPER, Machine
from makespan.program import Place, Program
from makespan.simulate import replay
from makespan.solve import Limits, search, two_warps
from tests.oracle import brute_force
from tests.strategies import instances

CAPACITIES = ({"C": 1, "L": 1}, {"C": 2, "L": 1}, {"C": 1, "L": 2}, {"C": 2, "L": 2})


def all_strings(longest: int) -> list[str]:
    return ["".join(word) for length in range(1, longest + 1) for word in product("CL", repeat=length)]


def agrees(instance: Instance) -> bool:
    found = two_warps.solve(instance, Limits())
    assert found.witness is not None
    return search.solve(instance, Limits()).upper == found.upper == replay(instance, found.witness)


@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_the_grid_is_exact_for_all_strings_up_to_six_letters(capacity: dict[str, int]) -> None:
    machine = Machine.of(capacity)
    assert [s for s in all_strings(6) if not agrees(Instance.of(s, 2, machine))] == []


@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_the_grid_is_exact_for_all_pairs_of_different_strings_up_to_four_letters(capacity: dict[str, int]) -> None:
    machine = Machine.of(capacity)
    pairs = [
        Instance.merged([(Program.chain(a), 1), (Program.chain(b), 1)], machine)
        for a, b in combinations(all_strings(4), 2)
    ]
    assert [pair for pair in pairs if not agrees(pair)] == []


@given(instances(choices=False, most_warps=2, most=6).filter(two_warps.applies))
def test_the_grid_is_brute_force_for_three_classes_too(instance: Instance) -> None:
    assert two_warps.solve(instance, Limits()).upper == brute_force(instance).upper


@pytest.mark.parametrize(
    ("instance", "applies"),
    [
        (Instance.of("CL", 2), True),
        (Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 1)]), True),
        (Instance.of("CL", 1), False),
        (Instance.of("CL", 3), False),
        (Instance.of(Program((Place("C", (1, 2)), Place("L", (2,)))), 2), False),
        (Instance.of("C" * 8000, 2), False),  # the grid would not fit
    ],
    ids=["identical", "different", "one warp", "three warps", "choices", "too large"],
)
def test_the_grid_is_for_two_strings_that_fit(instance: Instance, applies: bool) -> None:
    assert two_warps.applies(instance) == applies


def test_two_warps_can_take_less_than_theorem_a_says() -> None:
    """CLCLCL: 7 cycles, where the theorem's bound is 12 - 3 = 9."""
    assert two_warps.solve(Instance.of("CLCLCL", 2, PAPER), Limits()).upper == 7
