"""The abstraction of a cycle covers every real cycle, and the conditions on it leave none out."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.bounds.abstraction import DELAYED, END, Abstraction, Crossing, Transition
from makespan.bounds.conditions import Decrease, Descent, Dominance, Ports, Question, Slot, _extreme, conditions
from makespan.bounds.delays import expanded
from makespan.certificate import FINISHED, Kind, Node
from makespan.errors import UnsupportedError
from makespan.instance import Instance
from makespan.machine import PAPER, Latency, Machine, UnitClass
from makespan.program import Program
from makespan.simulate.semantics import State, starts, steps
from tests.strategies import general_instances, instances, machines

crowded = machines(most_units=2).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
"""More warps than units, so that classes are often saturated."""


def with_delays(instance: Instance) -> Instance:
    """The instance with its latencies as places, on which certificates rest."""
    expansion = expanded(instance)
    assert expansion is not None
    return expansion.instance


everything = st.one_of(crowded, general_instances(most_warps=4))

randoms = st.integers(0, 1 << 32).map(Random)


class Counted(NamedTuple):
    """A cycle as counts.

    Args:
        before: ready warps per class, and behind them free ports per timed class.
        after: the same after it; None if all have finished.
        moved: crossings that ready warps made.
        unmoved: ready warps per class that stayed.
        passed: crossings that delayed warps made.
        ports: what happened to the ports of every timed class.
    """

    before: tuple[int, ...]
    after: tuple[int, ...] | None
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    passed: tuple[tuple[Crossing, int], ...]
    ports: tuple[Ports, ...]


def units(instance: Instance, classes: tuple[str, ...], state: State) -> list[int]:
    """For every warp the number of the class that it is ready for, `DELAYED` or `END`."""
    found = []
    for program, place, wait in zip(instance.programs(), state.places, state.waits, strict=True):
        found.append(DELAYED if wait else END if place == program.end else classes.index(program.places[place].unit))
    return found


def moves(before: State, after: State) -> list[bool]:
    """Which warps issue, or pass a cycle of delay."""
    places = zip(before.places, after.places, before.waits, strict=True)
    return [bool(wait) or was != becomes for was, becomes, wait in places]


def ready(numbers: list[int], classes: int) -> tuple[int, ...]:
    """How many of these are of each class."""
    return tuple(numbers.count(unit) for unit in range(classes))


def timed(instance: Instance, classes: tuple[str, ...]) -> list[int]:
    """The numbers, in the machine, of the classes in use with an interval longer than one cycle."""
    slow = [(n, unit.name) for n, unit in enumerate(instance.machine.units) if unit.interval > 1]
    return sorted(
        (n for n, name in slow if name in classes), key=lambda n: classes.index(instance.machine.units[n].name)
    )


def counted(
    instance: Instance, classes: tuple[str, ...], before: State, after: State, without: int | None = None
) -> Counted:
    """What happened in a cycle, to all warps or to those besides one."""
    was, became, moving = units(instance, classes, before), units(instance, classes, after), moves(before, after)
    slow = timed(instance, classes)
    warps = [warp for warp in range(instance.warps) if warp != without]
    crossed = Counter((was[warp], became[warp]) for warp in warps if moving[warp])
    done = all(unit == END for unit in became)
    return Counted(
        (*ready([was[warp] for warp in warps], len(classes)), *frees(instance, slow, before)),
        None if done else (*ready([became[warp] for warp in warps], len(classes)), *frees(instance, slow, after)),
        tuple(sorted((crossing, n) for crossing, n in crossed.items() if crossing[0] != DELAYED)),
        ready([was[warp] for warp in warps if not moving[warp]], len(classes)),
        tuple(sorted((crossing, n) for crossing, n in crossed.items() if crossing[0] == DELAYED)),
        tuple(_passing(instance, before, after, x) for x in slow),
    )


def frees(instance: Instance, slow: list[int], state: State) -> tuple[int, ...]:
    """Free ports of these classes."""
    return tuple(instance.machine.units[n].capacity - len(state.held[n]) for n in slow)


def _passing(instance: Instance, before: State, after: State, number: int) -> Ports:
    held, longest = before.held[number], instance.machine.units[number].interval - 1
    released = held.count(1)
    taken = len(after.held[number]) - len(held) + released
    assert after.held[number].count(longest) >= taken
    return Ports(released, len(held) - released, taken)


def cycles(instance: Instance) -> Iterator[tuple[State, State]]:
    """Every cycle that some work-conserving schedule contains."""
    waiting = list(starts(instance))
    seen = set(waiting)
    while waiting:
        before = waiting.pop()
        for after in steps(instance, before):
            yield before, after
            if after not in seen:
                seen.add(after)
                waiting.append(after)


def walk(instance: Instance, random: Random) -> list[State]:
    """The states of a random work-conserving schedule."""
    states = [random.choice(list(starts(instance)))]
    while following := list(steps(instance, states[-1])):
        states.append(random.choice(following))
    return states


def kind(shape: Abstraction, counts: tuple[int, ...] | None) -> Kind:
    """The kind of so many ready warps and free ports; `FINISHED` for none."""
    if counts is None:
        return FINISHED
    number = len(shape.sigma)
    return (*map(min, counts[:number], shape.thresholds), *counts[number:])


def nodes(shape: Abstraction, counts: list[tuple[int, ...] | None]) -> list[Node | None]:
    """The nodes of the states of a schedule, from the definition of a label; None at the end."""
    kinds = [kind(shape, ready) for ready in counts]
    found: list[Node | None] = []
    for cycle, own in enumerate(kinds[:-1]):
        coarse = [tuple(map(min, later, shape.sigma)) for later in kinds[cycle:]]
        label = next(later for later in coarse if later != shape.sigma)
        found.append(Node(own, label if coarse[0] == shape.sigma else None))
    return [*found, None]


def states_counted(instance: Instance, classes: tuple[str, ...], states: list[State]) -> list[tuple[int, ...] | None]:
    """Ready warps and free ports of every state of a schedule; None for the last one."""
    return [*(counted(instance, classes, before, after).before for before, after in pairwise(states)), None]


def covers(abstract: Transition, real: Counted) -> bool:
    """Whether the cycle has as many warps of each sort, or as many or more where any number is meant."""
    joining = {x: n for (before, x), n in abstract.moved if before == DELAYED}
    joined = {x: n for (_, x), n in real.passed if x >= 0}
    return all(
        there == here or (is_open and there >= here)
        for here, there, is_open in zip(abstract.unmoved, real.unmoved, abstract.open, strict=True)
    ) and all(
        joined.get(x, 0) == joining.get(x, 0) or (x in abstract.joined and joined.get(x, 0) >= joining.get(x, 0))
        for x in range(len(real.unmoved))
    )


@given(everything, st.sampled_from([0, 1, 2, (1, 0, 0), (0, 1, 2)]))
@settings(max_examples=200, deadline=None)
def test_every_cycle_of_the_definition_is_an_abstract_transition(
    instance: Instance, extra: int | tuple[int, ...]
) -> None:
    question = Question(with_delays(instance), 0)
    shape = question.abstraction(extra if isinstance(extra, int) else extra[: len(question.classes)])
    known = defaultdict(list)
    for transition in shape.transitions:
        moved = tuple(sorted((crossing, n) for crossing, n in transition.moved if crossing[0] != DELAYED))
        known[transition.source, transition.target, moved, transition.released].append(transition)
    for real in {counted(instance, question.classes, *cycle) for cycle in cycles(instance)}:
        released = tuple(ports.released for ports in real.ports)
        alike = known[kind(shape, real.before), kind(shape, real.after), real.moved, released]
        assert any(covers(transition, real) for transition in alike), real


@given(everything, st.integers(0, 2), randoms)
@settings(deadline=None)
def test_consecutive_states_of_a_schedule_have_nodes_that_form_a_pair(
    instance: Instance, extra: int, random: Random
) -> None:
    question = Question(with_delays(instance), 0)
    shape = question.abstraction(extra)
    counts = states_counted(instance, question.classes, walk(instance, random))
    for (before, after), (source, target) in zip(pairwise(nodes(shape, counts)), pairwise(counts), strict=True):
        assert before in shape.nodes_of(kind(shape, source))
        assert (before, after) in set(shape.node_pairs(kind(shape, source), kind(shape, target)))


def last_finishers(states: list[State]) -> list[int]:
    """The warps that move in the last cycle."""
    return [warp for warp, moving in enumerate(moves(*states[-2:])) if moving]


def slot(instance: Instance, classes: tuple[str, ...], warp: int, before: State, after: State) -> Slot:
    """Where this warp is in a cycle."""
    was, becomes = units(instance, classes, before)[warp], units(instance, classes, after)[warp]
    return (was, becomes) if moves(before, after)[warp] else was


class Minima(NamedTuple):
    """The least that warps and ports give up in a cycle, for one pair of nodes."""

    moved: dict[Crossing, int]
    unmoved: list[int]
    ports: list[tuple[int, int, int]]


def value(decrease: Decrease, least: Minima) -> int:
    """The decrease for these minima."""
    stay = zip(least.unmoved, decrease.unmoved or [0] * len(least.unmoved), strict=True)
    ports = (sum(a * n for a, n in zip(*both, strict=True)) for both in zip(least.ports, decrease.ports, strict=True))
    return (
        sum(count * least.moved[crossing] for crossing, count in decrease.moved)
        + sum(a * count for a, count in stay)
        + sum(ports)
    )


@given(everything, st.integers(0, 2), randoms)
@settings(max_examples=400, deadline=None)
def test_the_conditions_imply_a_decrease_in_every_cycle_of_a_schedule(
    instance: Instance, extra: int, random: Random
) -> None:
    """For minima at random: where all required decreases are positive, so is the one of the real cycle."""
    states = walk(instance, random)
    last = random.choice(last_finishers(states))
    question = Question(with_delays(instance), instance.group_of_warp()[last])
    classes = question.classes
    shape = question.abstraction(extra)
    required = conditions(question, shape)
    cases = defaultdict(list)
    for requirement in required.requirements:
        cases[requirement[:3]].append(requirement.others)
    labelled = nodes(shape, states_counted(instance, classes, states))
    for (source, target), (before, after) in zip(pairwise(states), pairwise(labelled), strict=True):
        assert before is not None
        real = counted(instance, classes, source, target, without=last)
        own = cases[before, after, slot(instance, classes, last, source, target)]
        assert own, "no requirement for this cycle"
        for _ in range(10):
            least = some_minima(random, question, required.dominances, required.descents, before, after)
            truth = value(Decrease((*real.moved, *real.passed), real.unmoved, real.ports), least)
            assert min(value(case, least) for case in own) <= truth


def some_minima(
    random: Random,
    question: Question,
    dominances: frozenset[Dominance],
    descents: frozenset[Descent],
    before: Node,
    after: Node | None,
) -> Minima:
    """Random minima that keep what is said of these two nodes: some must not be negative."""
    moved = {(x, y): random.randint(-9, 9) for x in range(DELAYED, 3) for y in range(DELAYED, 3)}
    for descent in descents:
        if (descent.before, descent.after) == (before, after):
            moved[descent.crossing] = random.randint(0, 9)
    unmoved = [0] * len(question.classes)
    if before != after:
        for unit in range(len(unmoved)):
            dominates = after is not None and Dominance(before, after, unit) in dominances
            unmoved[unit] = random.randint(0 if dominates else -9, 9)
    ports = [(random.randint(-9, 9), random.randint(-9, 9), random.randint(-9, 9)) for _ in question.timed]
    return Minima(moved, unmoved, ports)


@st.composite
def decreases(draw: st.DrawFn) -> set[Decrease]:
    """Some cases of one requirement: three warps that move, and some that stay."""
    crossings = [(0, 0), (0, 1), (0, END)]
    found = set()
    for _ in range(draw(st.integers(1, 12))):
        moved = Counter(draw(st.lists(st.sampled_from(crossings), min_size=3, max_size=3)))
        ports = Ports(*draw(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))))
        found.add(
            Decrease(tuple(sorted(moved.items())), draw(st.tuples(st.integers(0, 3), st.integers(0, 3))), (ports,))
        )
    return found


@given(decreases(), randoms)
def test_a_requirement_that_is_left_out_follows_from_those_that_are_kept(cases: set[Decrease], random: Random) -> None:
    kept = _extreme(cases)
    assert set(kept) <= cases
    for _ in range(20):
        ports = (random.randint(-9, 9), random.randint(-9, 9), random.randint(-9, 9))
        moved = {(0, y): random.randint(-9, 9) for y in (0, 1, END)}
        least = Minima(moved, [random.randint(-9, 9) for _ in range(2)], [ports])
        assert min(value(case, least) for case in kept) == min(value(case, least) for case in cases)


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


HELD = Machine("held", (UnitClass("L", 1, interval=2),))
SLOW = Machine("slow", (UnitClass("L", 1, latency=Latency(2, 2)),))
DELAYED_PAPER = Machine("delayed", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 3))))
NARROW = Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)


def test_the_transitions_of_a_held_port_by_hand() -> None:
    """Two warps L, one port held for two cycles: (ready, free) goes (1, 1), (1, 0), (1, 1), end."""
    shape = Question(Instance.of("L", 2, HELD), 0).abstraction(0)
    ends = ((0, END), 1)
    assert set(shape.transitions) == {
        Transition((1, 0), (1, 1), (), (1,), (True,), (), (1,)),
        Transition((1, 1), (1, 0), (ends,), (1,), (True,), (), (0,)),
        Transition((1, 1), FINISHED, (ends,), (0,), (False,), (), (0,)),
    }


def test_the_transitions_of_a_delay_by_hand() -> None:
    """Two warps LL, which after each L are delayed for a cycle; "nobody is ready" is not the end."""
    shape = Question(with_delays(Instance.of("LL", 2, SLOW)), 0).abstraction(0)
    issues, comes = ((0, DELAYED), 1), ((DELAYED, 0), 1)
    assert shape.crossings == {(0, DELAYED), (DELAYED, 0), (DELAYED, END)}
    assert set(shape.transitions) == {
        Transition((0,), (0,), (), (0,), (False,)),
        Transition((0,), FINISHED, (), (0,), (False,)),
        Transition((0,), (1,), (comes,), (0,), (False,), (0,)),
        Transition((1,), (0,), (issues,), (0,), (False,)),
        Transition((1,), (1,), (issues,), (1,), (True,), (0,)),
        Transition((1,), (1,), (issues, comes), (0,), (True,), (0,)),
    }


def test_an_issue_width_leaves_a_choice_of_movers() -> None:
    shape = Question(Instance.of("CL", 4, NARROW), 0).abstraction(0)
    assert set(shape.issues((1, 1))) == {(0, 1), (1, 0)}
    assert set(shape.issues((1, 0))) == {(1, 0)}


def test_a_port_that_is_held_for_longer_is_free_no_sooner() -> None:
    held = Machine("held", (UnitClass("L", 3, interval=3),))
    shape = Question(Instance.of("LL", 9, held), 0).abstraction(0)
    after = {t.target[1] for t in shape.transitions if t.source == (3, 1) and t.target}
    assert after == {0, 1, 2}  # of two held ports none, one or both are released, and one is taken


def test_no_question_is_asked_about_barriers_or_latencies() -> None:
    for instance in (Instance.of("C|C", 2), Instance.of("L", 2, SLOW)):
        with pytest.raises(UnsupportedError, match="a certificate, which takes latencies as places, does not know"):
            Question(instance, 0)


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 2, 5])
def test_no_abstract_cycle_needs_more_warps_than_there_are(warps: int, extra: int) -> None:
    shape = Question(Instance.of("CLLC", warps), 0).abstraction(extra)
    assert all(sum(count for _, count in t.moved) + sum(t.unmoved) <= warps for t in shape.transitions)
    assert all(sum(kind) <= warps for kind in shape.kinds)


@pytest.mark.parametrize("machine", [PAPER, DELAYED_PAPER], ids=["base case", "latencies"])
def test_the_last_finisher_finishes_only_with_everything(machine: Machine) -> None:
    question = Question(with_delays(Instance.of("CCL", 3, machine)), 0)
    for before, after, where, _ in conditions(question, question.abstraction(1)).requirements:
        finishes = isinstance(where, tuple) and where[1] == END
        assert finishes == (after is None), (before, after, where)
