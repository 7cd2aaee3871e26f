"""The abstraction of a cycle covers every real cycle, and the conditions on it leave none out."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.bounds.conditions import Decrease, Dominance, Question, Slot, _extreme, conditions
from makespan.bounds.kinds import END, Abstraction, Crossing, Transition
from makespan.certificate import FINISHED, Kind, Node
from makespan.instance import Instance
from makespan.program import Program
from makespan.simulate.semantics import starts, steps
from tests.strategies import instances, machines

crowded = machines(most_units=2).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
"""More warps than units, so that classes are often saturated."""

State = tuple[int, ...]
"""Where every warp stands."""

randoms = st.integers(0, 1 << 32).map(Random)


class Counted(NamedTuple):
    """A cycle as counts: warps per class before and after it, crossings made, warps per class that stayed."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]


def units(instance: Instance, classes: tuple[str, ...]) -> list[list[int]]:
    """Per warp, the number of the class of every place; then `END`."""
    return [[*(classes.index(unit) for unit, _ in program.places), END] for program in instance.programs()]


def ready(numbers: list[int], classes: int) -> tuple[int, ...]:
    """How many of these are of each class."""
    return tuple(numbers.count(unit) for unit in range(classes))


def counted(question: Question, before: State, after: State, without: int | None = None) -> Counted:
    """What happened in a cycle, to all warps or to those besides one."""
    table, classes = units(question.instance, question.classes), len(question.classes)
    warps = [warp for warp in range(question.instance.warps) if warp != without]
    was = {warp: table[warp][before[warp]] for warp in warps}
    became = {warp: table[warp][after[warp]] for warp in warps}
    moved = Counter((was[warp], became[warp]) for warp in warps if before[warp] != after[warp])
    stayed = [was[warp] for warp in warps if before[warp] == after[warp]]
    return Counted(
        ready(list(was.values()), classes),
        ready(list(became.values()), classes),
        tuple(sorted(moved.items())),
        ready(stayed, classes),
    )


def cycles(instance: Instance) -> Iterator[tuple[State, State]]:
    """Every cycle that some work-conserving schedule contains."""
    waiting = list(starts(instance))
    seen = set(waiting)
    while waiting:
        before = waiting.pop()
        for after in steps(instance, before):
            yield before.places, after.places
            if after not in seen:
                seen.add(after)
                waiting.append(after)


def walk(instance: Instance, random: Random) -> list[State]:
    """The states of a random work-conserving schedule."""
    states = [random.choice(list(starts(instance)))]
    while following := list(steps(instance, states[-1])):
        states.append(random.choice(following))
    return [state.places for state in states]


def kind(shape: Abstraction, counts: tuple[int, ...]) -> Kind:
    """The kind of so many ready warps; `FINISHED` for none."""
    return tuple(map(min, counts, shape.thresholds)) if any(counts) else FINISHED


def nodes(shape: Abstraction, counts: list[tuple[int, ...]]) -> list[Node | None]:
    """The nodes of the states of a schedule, from the definition of a label; None at the end."""
    kinds = [kind(shape, ready) for ready in counts]
    found: list[Node | None] = []
    for cycle, own in enumerate(kinds[:-1]):
        coarse = [tuple(map(min, later, shape.sigma)) for later in kinds[cycle:]]
        label = next(later for later in coarse if later != shape.sigma)
        found.append(Node(own, label if coarse[0] == shape.sigma else None))
    return [*found, None]


def covers(abstract: Transition, real: Counted) -> bool:
    """Whether the cycle has as many unmoved warps of each class, or where that is open as many or more."""
    return all(
        there == here or (is_open and there >= here)
        for here, there, is_open in zip(abstract.unmoved, real.unmoved, abstract.open, strict=True)
    )


@given(crowded, st.sampled_from([0, 1, 2, (1, 0, 0), (0, 1, 2)]))
@settings(max_examples=200)
def test_every_cycle_of_the_definition_is_an_abstract_transition(
    instance: Instance, extra: int | tuple[int, ...]
) -> None:
    question = Question(instance, 0)
    shape = question.abstraction(extra if isinstance(extra, int) else extra[: len(question.classes)])
    known = defaultdict(list)
    for transition in shape.transitions:
        known[transition.source, transition.target, tuple(sorted(transition.moved))].append(transition)
    for real in {counted(question, *cycle) for cycle in cycles(instance)}:
        alike = known[kind(shape, real.before), kind(shape, real.after), real.moved]
        assert any(covers(transition, real) for transition in alike), real


@given(crowded, st.integers(0, 2), randoms)
def test_consecutive_states_of_a_schedule_have_nodes_that_form_a_pair(
    instance: Instance, extra: int, random: Random
) -> None:
    question = Question(instance, 0)
    shape = question.abstraction(extra)
    states = walk(instance, random)
    counts = [counted(question, state, state).before for state in states]
    for (before, after), (source, target) in zip(pairwise(nodes(shape, counts)), pairwise(counts), strict=True):
        assert before in shape.nodes_of(kind(shape, source))
        assert (before, after) in set(shape.node_pairs(kind(shape, source), kind(shape, target)))


def last_finishers(states: list[State]) -> list[int]:
    """The warps that execute in the last cycle."""
    return [warp for warp, (before, after) in enumerate(zip(states[-2], states[-1], strict=True)) if before != after]


def slot(question: Question, warp: int, before: State, after: State) -> Slot:
    """Where this warp is in a cycle."""
    own = units(question.instance, question.classes)[warp]
    was, becomes = own[before[warp]], own[after[warp]]
    return was if before[warp] == after[warp] else (was, becomes)


def value(decrease: Decrease, moved: dict[Crossing, int], unmoved: list[int]) -> int:
    """The decrease for these minima."""
    least = zip(unmoved, decrease.unmoved or [0] * len(unmoved), strict=True)
    return sum(count * moved[crossing] for crossing, count in decrease.moved) + sum(a * count for a, count in least)


@given(crowded, st.integers(0, 2), randoms)
@settings(max_examples=500)
def test_the_conditions_imply_a_decrease_in_every_cycle_of_a_schedule(
    instance: Instance, extra: int, random: Random
) -> None:
    """For minima at random: where all required decreases are positive, so is the one of the real cycle."""
    states = walk(instance, random)
    last = random.choice(last_finishers(states))
    question = Question(instance, instance.group_of_warp()[last])
    shape = question.abstraction(extra)
    required = conditions(question, shape)
    least = defaultdict(list)
    for requirement in required.requirements:
        least[requirement[:3]].append(requirement.others)
    labelled = nodes(shape, [counted(question, state, state).before for state in states])
    for (source, target), (before, after) in zip(pairwise(states), pairwise(labelled), strict=True):
        assert before is not None
        real = counted(question, source, target, without=last)
        cases = least[before, after, slot(question, last, source, target)]
        assert cases, "no requirement for this cycle"
        for _ in range(10):
            moved = {(x, y): random.randint(-9, 9) for x in range(3) for y in range(END, 3)}
            unmoved = [0] * len(question.classes)
            if before != after:
                for unit in range(len(question.classes)):
                    dominates = after is not None and Dominance(before, after, unit) in required.dominances
                    unmoved[unit] = random.randint(0 if dominates else -9, 9)
            truth = value(Decrease(real.moved, real.unmoved), moved, unmoved)
            assert min(value(case, moved, unmoved) for case in cases) <= truth


@st.composite
def decreases(draw: st.DrawFn) -> set[Decrease]:
    """Some cases of one requirement: three warps that move, and some that stay."""
    crossings = [(0, 0), (0, 1), (0, END)]
    found = set()
    for _ in range(draw(st.integers(1, 12))):
        moved = Counter(draw(st.lists(st.sampled_from(crossings), min_size=3, max_size=3)))
        found.add(Decrease(tuple(sorted(moved.items())), draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))))
    return found


@given(decreases(), randoms)
def test_a_requirement_that_is_left_out_follows_from_those_that_are_kept(cases: set[Decrease], random: Random) -> None:
    kept = _extreme(cases)
    assert set(kept) <= cases
    for _ in range(20):
        moved = {(0, y): random.randint(-9, 9) for y in (0, 1, END)}
        unmoved = [random.randint(-9, 9) for _ in range(2)]
        assert min(value(case, moved, unmoved) for case in kept) == min(value(case, moved, unmoved) for case in cases)


def test_what_lies_between_two_requirements_is_left_out() -> None:
    ends = [Decrease((((0, 0), 2),), (0,)), Decrease((((0, 1), 2),), (2,))]
    middle = Decrease((((0, 0), 1), ((0, 1), 1)), (1,))
    assert set(_extreme({*ends, middle})) == set(ends)


def test_the_transitions_of_two_warps_of_cl_by_hand() -> None:
    shape = Abstraction(sigma=(1, 1), thresholds=(1, 1), crossings=frozenset({(0, 1), (1, END)}), warps=2)
    c_moves, l_ends = ((0, 1), 1), ((1, END), 1)
    assert set(shape.transitions) == {
        Transition((1, 0), (0, 1), (c_moves,), (0, 0), (False, False)),
        Transition((1, 0), (1, 1), (c_moves,), (1, 0), (True, False)),
        Transition((1, 1), (0, 1), (c_moves, l_ends), (0, 0), (False, True)),
        Transition((0, 1), FINISHED, (l_ends,), (0, 0), (False, False)),
        Transition((0, 1), (0, 1), (l_ends,), (0, 1), (False, True)),
    }
    assert shape.labels == ((0, 1),)
    assert shape.nodes_of((1, 1)) == (Node((1, 1), (0, 1)),)
    assert list(shape.node_pairs((1, 0), (1, 1))) == [(Node((1, 0)), Node((1, 1), (0, 1)))]
    assert list(shape.node_pairs((1, 1), (0, 1))) == [(Node((1, 1), (0, 1)), Node((0, 1)))]
    assert list(shape.node_pairs((0, 1), FINISHED)) == [(Node((0, 1)), None)]


def test_a_label_survives_where_the_state_stays_full() -> None:
    strings = [(Program.chain("CL"), 2), (Program.chain("LC"), 2)]
    shape = Question(Instance.merged(strings), 0).abstraction(0)
    full = (1, 1)
    assert shape.labels == (FINISHED, (0, 1), (1, 0))
    assert set(shape.node_pairs(full, full)) == {(Node(full, label), Node(full, label)) for label in shape.labels}
    assert list(shape.node_pairs(full, FINISHED)) == [(Node(full, FINISHED), None)]
    assert list(shape.node_pairs(full, (1, 0))) == [(Node(full, (1, 0)), Node((1, 0)))]
    entered = [after for before, after in shape.node_pairs((0, 1), full) if before == Node((0, 1))]
    assert set(entered) == {Node(full, label) for label in shape.labels}


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 2, 5])
def test_no_abstract_cycle_needs_more_warps_than_there_are(warps: int, extra: int) -> None:
    shape = Question(Instance.of("CLLC", warps), 0).abstraction(extra)
    assert all(sum(count for _, count in t.moved) + sum(t.unmoved) <= warps for t in shape.transitions)
    assert all(sum(kind) <= warps for kind in shape.kinds)


def test_the_last_finisher_finishes_only_with_everything() -> None:
    question = Question(Instance.of("CCL", 3), 0)
    for before, after, where, _ in conditions(question, question.abstraction(1)).requirements:
        finishes = isinstance(where, tuple) and where[1] == END
        assert finishes == (after is None), (before, after, where)
