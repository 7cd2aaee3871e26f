"""The schedule that attains theorem E, for every short string and for long random ones."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import replay
from makespan.proof.bounds import pairs, theorem_e
from makespan.proof.engines import Limits
from makespan.proof.engines.construct import convoy
from makespan.proof.engines.search import plain as search
from tests.strategies import letters


def closed_form(instance: Instance) -> int:
    found = theorem_e(instance)
    assert found is not None
    return found.upper


STRINGS = ["".join(word) for length in range(1, 9) for word in product("CL", repeat=length)]


def test_all_strings_up_to_eight_letters_are_there() -> None:
    assert len(STRINGS) == 2**9 - 2


@pytest.mark.parametrize("warps", [3, 4, 5, 6])
@pytest.mark.parametrize("first", range(4))
def test_the_convoy_attains_theorem_a_for_all_strings_up_to_eight_letters(first: int, warps: int) -> None:
    for string in STRINGS[first::4]:
        instance = Instance.of(string, warps)
        bound = warps * len(string) - (warps - 1) * pairs(string)
        assert replay(instance, convoy.schedule(instance)) == closed_form(instance) == bound, string


@pytest.mark.parametrize("warps", [3, 4])
def test_the_convoy_is_as_long_as_the_exhaustive_search_says(warps: int) -> None:
    for string in (s for s in STRINGS if len(s) <= 5):
        instance = Instance.of(string, warps)
        assert convoy.schedule(instance).makespan == search.solve(instance, Limits()).upper, string


@settings(max_examples=40)
@given(letters(most=200), st.integers(3, 64))
def test_the_convoy_attains_theorem_a_for_long_strings_and_many_warps(string: str, warps: int) -> None:
    instance = Instance.of(string, warps)
    assert replay(instance, convoy.schedule(instance)) == closed_form(instance)


@pytest.mark.parametrize("string", ["CL" * 100, "LLC" * 66, "C" * 200, "LC" + "L" * 100, "CLLC" * 50])
def test_the_convoy_attains_theorem_a_for_regular_strings(string: str) -> None:
    instance = Instance.of(string, 64)
    assert replay(instance, convoy.schedule(instance)) == closed_form(instance)


@given(letters(most=12), st.integers(3, 8))
def test_a_convoy_never_spreads_over_more_than_four_places(string: str, warps: int) -> None:
    at = [0] * warps
    for executing in convoy.schedule(Instance.of(string, warps)).cycles:
        for warp in executing:
            at[warp] += 1
        assert len(set(at)) <= 4


@pytest.mark.parametrize(
    ("string", "blocks"),
    [("C", []), ("CCC", []), ("CL", [(0, 0)]), ("LLCCLC", [(0, 1), (3, 3)]), ("CLLCLL", [(0, 0), (2, 2)])],
)
def test_the_greedy_scan_cuts_a_string_into_blocks(string: str, blocks: list[tuple[int, int]]) -> None:
    assert convoy.blocks(string) == blocks


@given(letters(most=20))
def test_there_is_one_block_per_pair(string: str) -> None:
    assert len(convoy.blocks(string)) == pairs(string)


FORK = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))


@pytest.mark.parametrize(
    ("instance", "applies"),
    [
        (Instance.of("CL", 3), True),
        (Instance.of("CL", 2), False),
        (Instance.of("CL", 3, Machine.of({"C": 2, "L": 1})), False),
        (Instance.of("C", 3, Machine.of({"C": 1, "L": 2})), True),
        (Instance.of("CLS", 3, Machine.of({"C": 1, "L": 1, "S": 1})), False),
        (Instance.merged([(Program.chain("C"), 2), (Program.chain("L"), 2)]), False),
        (Instance.of(FORK, 3), False),
    ],
)
def test_the_convoy_is_for_three_identical_strings_on_single_units(instance: Instance, applies: bool) -> None:
    assert convoy.applies(instance) == applies
