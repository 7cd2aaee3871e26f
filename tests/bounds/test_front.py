"""The front is a layer of the breadth-first search over the definition."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate.semantics import next_states, start_states
from makespan.proof.bounds import first_cycles as module
from makespan.proof.bounds.first_cycles import Front, PlaceCounts, front
from tests.strategies import instances


def layers(instance: Instance) -> list[frozenset[PlaceCounts]]:
    """The states after 0, 1, 2, ... cycles of runs that are still going or have just ended."""
    groups = instance.group_of_warp()
    ends = [program.end for program in instance.programs()]

    def count(places: tuple[int, ...]) -> PlaceCounts:
        unfinished = ((g, p) for g, p, end in zip(groups, places, ends, strict=True) if p != end)
        return tuple(sorted(Counter(unfinished).items()))

    layer, found = set(start_states(instance)), []
    while layer:
        found.append(frozenset(count(state.places) for state in layer))
        layer = {after for state in layer for after in next_states(instance, state)}
    return found


@given(instances(), st.sampled_from([1, 2, 5, 20, 1000]))
def test_a_front_is_the_latest_layer_within_the_limit(instance: Instance, most: int) -> None:
    found = front(instance, most)
    assert found is not None
    truth = layers(instance)
    assert found.states == truth[found.cycles]
    assert all(() not in layer for layer in truth[: found.cycles])
    assert all(len(layer) <= most for layer in truth[1 : found.cycles + 1])
    if () not in found.states:
        following = truth[found.cycles + 1]
        assert len(following) > most or following == {()}


def test_a_front_of_one_state_follows_what_is_forced() -> None:
    """Three C of two warps go by one after another; then there is a choice."""
    assert front(Instance.of("CL", 2), 1) == Front(2, frozenset({(((0, 1), 1),)}))
    assert front(Instance.of("CCL", 2), 1) == Front(1, frozenset({(((0, 0), 1), ((0, 1), 1))}))


def test_a_front_stops_before_the_end_of_all_runs() -> None:
    assert front(Instance.of("C", 3), 1000) == Front(2, frozenset({(((0, 0), 1),)}))
    assert front(Instance.of("C", 3, Machine.of({"C": 3})), 1000) == Front(0, frozenset({(((0, 0), 3),)}))


def test_a_front_that_is_stopped_is_an_earlier_one() -> None:
    assert front(Instance.of("C", 3), 1000, stop=lambda: True) == Front(0, frozenset({(((0, 0), 3),)}))


def test_a_front_stops_where_the_first_run_ends() -> None:
    """C, and another C or not: after one cycle the warp may have finished."""
    maybe = Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (2,))))
    assert front(Instance.of(maybe, 1), 1000) == Front(1, frozenset({(), (((0, 1), 1),)}))


def test_all_starts_belong_to_the_front_even_beyond_the_limit() -> None:
    either = Program((ProgramPlace("C", (3,)), ProgramPlace("C", (3,)), ProgramPlace("C", (3,))), (0, 1, 2))
    found = front(Instance.of(either, 2), 3)
    assert found is not None
    assert found.cycles == 1
    assert found.states == {(((0, place), 1),) for place in range(3)}
    begun = front(Instance.of(either, 3), 3)
    assert begun is not None
    assert begun.cycles == 0
    assert len(begun.states) == 10  # multisets of three out of three


@pytest.mark.parametrize(
    "machine", [Machine("m", (UnitClass("C", 1, interval=2),)), Machine("m", (UnitClass("C", 2),), issue_width=1)]
)
def test_beyond_capacities_the_front_is_that_of_the_starts(machine: Machine) -> None:
    assert front(Instance.of("CC", 2, machine), 1000) == Front(0, frozenset({(((0, 0), 2),)}))


def test_too_many_starts_are_no_front(monkeypatch: pytest.MonkeyPatch) -> None:
    either = Program((ProgramPlace("C", (2,)), ProgramPlace("C", (2,))), (0, 1))
    assert front(Instance.of(either, 5), 1) is not None
    monkeypatch.setattr(module, "MAX_STARTS", 5)
    assert front(Instance.of(either, 4), 1) is not None
    assert front(Instance.of(either, 5), 1) is None


def test_a_state_with_billions_of_successors_is_left_alone() -> None:
    found = front(Instance.of("C" * 8, 40, Machine.of({"C": 20})), 200)
    assert found is not None
    assert len(found.states) <= 200
