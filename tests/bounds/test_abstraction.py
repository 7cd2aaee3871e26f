"""The abstraction of a cycle covers every real cycle, and the conditions on it leave none out."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import UnsupportedError
from makespan.model.certificate import FINISHED_LABEL, PotentialNode
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.simulate.semantics import SmState, next_states, start_states
from makespan.proof.bounds.abstraction import (
    DELAYED,
    END,
    AbstractCycle,
    Abstraction,
    AbstractSituation,
    Crossing,
    LastSlot,
    PortCounts,
)
from makespan.proof.bounds.conditions import (
    Decrease,
    Descent,
    Dominance,
    Mode,
    ProofQuestion,
    _extreme,
    conditions,
)
from makespan.proof.bounds.delays import expand_latencies
from tests.strategies import general_instances, instances, machines, walk

crowded = machines(most_units=2).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
"""More warps than units, so that classes are often saturated."""


def with_delays(instance: Instance) -> Instance:
    """The instance with its latencies as places, on which certificates rest."""
    expansion = expand_latencies(instance)
    assert expansion is not None
    return expansion.instance


everything = st.one_of(crowded, general_instances(most_warps=4))

randoms = st.integers(0, 1 << 32).map(Random)


class Counted(NamedTuple):
    """A cycle as counts of the warps besides the last finisher.

    Args:
        before: ready warps per class, and behind them free ports per timed class.
        after: the same after it.
        moved: crossings that ready warps made.
        unmoved: ready warps per class that stayed.
        passed: crossings that delayed warps made.
        ports: what happened to the ports of every timed class.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    passed: tuple[tuple[Crossing, int], ...]
    ports: tuple[PortCounts, ...]


def by_itself(node: PotentialNode) -> Mode:
    """Every node has a table of its own."""
    return Mode(node, node)


def units(instance: Instance, classes: tuple[str, ...], state: SmState) -> list[int]:
    """For every warp the number of the class that it is ready for, `DELAYED` or `END`."""
    found = []
    for program, place, wait in zip(instance.programs(), state.places, state.waits, strict=True):
        found.append(DELAYED if wait else END if place == program.end else classes.index(program.places[place].unit))
    return found


def moves(before: SmState, after: SmState) -> list[bool]:
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


def counted(instance: Instance, classes: tuple[str, ...], before: SmState, after: SmState, last: int) -> Counted:
    """What the warps besides `last`, and the ports, do in a cycle."""
    was, became, moving = units(instance, classes, before), units(instance, classes, after), moves(before, after)
    slow = timed(instance, classes)
    warps = [warp for warp in range(instance.warps) if warp != last]
    crossed = Counter((was[warp], became[warp]) for warp in warps if moving[warp])
    return Counted(
        (*ready([was[warp] for warp in warps], len(classes)), *frees(instance, slow, before)),
        (*ready([became[warp] for warp in warps], len(classes)), *frees(instance, slow, after)),
        tuple(sorted((crossing, n) for crossing, n in crossed.items() if crossing[0] != DELAYED)),
        ready([was[warp] for warp in warps if not moving[warp]], len(classes)),
        tuple(sorted((crossing, n) for crossing, n in crossed.items() if crossing[0] == DELAYED)),
        tuple(_passing(instance, before, after, x) for x in slow),
    )


def frees(instance: Instance, slow: list[int], state: SmState) -> tuple[int, ...]:
    """Free ports of these classes."""
    return tuple(instance.machine.units[n].capacity - len(state.held[n]) for n in slow)


def _passing(instance: Instance, before: SmState, after: SmState, number: int) -> PortCounts:
    held, longest = before.held[number], instance.machine.units[number].interval - 1
    released = held.count(1)
    taken = len(after.held[number]) - len(held) + released
    assert after.held[number].count(longest) >= taken
    return PortCounts(released, len(held) - released, taken)


def cycles(instance: Instance) -> Iterator[tuple[SmState, SmState]]:
    """Every cycle that some work-conserving schedule contains."""
    waiting = list(start_states(instance))
    seen = set(waiting)
    while waiting:
        before = waiting.pop()
        for after in next_states(instance, before):
            yield before, after
            if after not in seen:
                seen.add(after)
                waiting.append(after)


def situation(shape: Abstraction, last: int, counts: tuple[int, ...]) -> AbstractSituation | None:
    """That of a last finisher at `last` with so many ready others and free ports; None for the end."""
    number = len(shape.sigma)
    return (
        None
        if last == END
        else AbstractSituation(last, (*map(min, counts[:number], shape.thresholds), *counts[number:]))
    )


def node(one: AbstractSituation, label: int | None) -> PotentialNode:
    return PotentialNode(None if one.last == DELAYED else one.last, one.kind, label)


def nodes(shape: Abstraction, situations: list[AbstractSituation | None]) -> list[PotentialNode | None]:
    """The nodes of the states of a schedule, from the definition of a label; None at the end."""
    found: list[PotentialNode | None] = []
    for cycle, own in enumerate(situations):
        ahead = (
            FINISHED_LABEL if later is None else later.last
            for later in situations[cycle:]
            if later is None or shape.stops(later)
        )
        found.append(own and node(own, None if shape.stops(own) else next(ahead)))
    return found


def situations(
    instance: Instance, classes: tuple[str, ...], shape: Abstraction, states: list[SmState], last: int
) -> list[AbstractSituation | None]:
    """The situations of the states of a schedule that `last` finishes last."""
    lasts = [units(instance, classes, state)[last] for state in states]
    counts = [counted(instance, classes, before, after, last).before for before, after in pairwise(states)]
    return [situation(shape, one, own) for one, own in zip(lasts, [*counts, ()], strict=True)]


def covers(abstract: AbstractCycle, real: Counted) -> bool:
    """Whether the cycle has as many warps of each sort, or as many or more where any number is meant."""
    joining = {x: n for (before, x), n in abstract.moved if before == DELAYED}
    passed = dict(real.passed)
    return (
        all(
            there == here or (x in abstract.reopened and there >= here)
            for x, (here, there) in enumerate(zip(abstract.unmoved, real.unmoved, strict=True))
        )
        and all(
            n == joining.get(x, 0) or ((before, x) in abstract.passing and n >= joining.get(x, 0))
            for (before, x), n in passed.items()
        )
        and all(passed.get((DELAYED, x), 0) >= n for x, n in joining.items())
    )


@given(everything, st.sampled_from([0, 1, 2, (1, 0, 0), (0, 1, 2)]), st.data())
@settings(max_examples=60, deadline=None)
def test_every_cycle_of_the_definition_is_an_abstract_one(
    instance: Instance, extra: int | tuple[int, ...], data: st.DataObject
) -> None:
    """Whoever finishes last: anybody who is unfinished before the cycle, and who finishes with all or not at all."""
    last = data.draw(st.integers(0, instance.warps - 1))
    question = ProofQuestion(with_delays(instance), instance.group_of_warp()[last])
    shape, classes = (
        question.abstraction(extra if isinstance(extra, int) else extra[: len(question.classes)]),
        question.classes,
    )
    known = defaultdict(list)
    for cycle in shape.cycles:
        moved = tuple(sorted((crossing, n) for crossing, n in cycle.moved if crossing[0] != DELAYED))
        known[cycle.source, cycle.target, cycle.slot, moved, cycle.ports].append(cycle)
    seen = set()
    for before, after in cycles(instance):
        was, becomes = units(instance, classes, before)[last], units(instance, classes, after)
        if was != END and (becomes[last] != END or set(becomes) == {END}):
            own = slot(instance, classes, last, before, after)
            seen.add((was, becomes[last], own, counted(instance, classes, before, after, last)))
    for was, becoming, own, real in seen:
        source, target = situation(shape, was, real.before), situation(shape, becoming, real.after)
        assert source is not None
        assert any(covers(cycle, real) for cycle in known[source, target, own, real.moved, real.ports]), real


@given(everything, st.integers(0, 2), randoms)
@settings(deadline=None)
def test_consecutive_states_of_a_schedule_have_nodes_that_form_a_pair(
    instance: Instance, extra: int, random: Random
) -> None:
    states = walk(instance, random)
    last = random.choice(last_finishers(states))
    question = ProofQuestion(with_delays(instance), instance.group_of_warp()[last])
    shape = question.abstraction(extra)
    standing = situations(instance, question.classes, shape, states, last)
    for (before, after), (source, target) in zip(pairwise(nodes(shape, standing)), pairwise(standing), strict=True):
        assert source is not None
        assert before in shape.nodes_of(source)
        assert (before, after) in set(shape.node_pairs(source, target))


def last_finishers(states: list[SmState]) -> list[int]:
    """The warps that move in the last cycle."""
    return [warp for warp, moving in enumerate(moves(*states[-2:])) if moving]


def slot(instance: Instance, classes: tuple[str, ...], warp: int, before: SmState, after: SmState) -> LastSlot:
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
@settings(max_examples=120, deadline=None)
def test_the_conditions_imply_a_decrease_in_every_cycle_of_a_schedule(
    instance: Instance, extra: int, random: Random
) -> None:
    """For minima at random: where all required decreases are positive, so is the one of the real cycle."""
    states = walk(instance, random)
    last = random.choice(last_finishers(states))
    question = ProofQuestion(with_delays(instance), instance.group_of_warp()[last])
    classes = question.classes
    shape = question.abstraction(extra)
    required = conditions(shape, by_itself)
    cases = defaultdict(list)
    for requirement in required.requirements:
        cases[requirement[:3]].append(requirement.others)
    labelled = nodes(shape, situations(instance, classes, shape, states, last))
    for (source, target), (before, after) in zip(pairwise(states), pairwise(labelled), strict=True):
        assert before is not None
        real = counted(instance, classes, source, target, last)
        ends = by_itself(before), None if after is None else by_itself(after)
        own = cases[*ends, slot(instance, classes, last, source, target)]
        assert own, "no requirement for this cycle"
        for _ in range(10):
            least = some_minima(random, question, required.dominances, required.descents, before, after)
            truth = value(Decrease((*real.moved, *real.passed), real.unmoved, real.ports), least)
            assert min(value(case, least) for case in own) <= truth


def some_minima(
    random: Random,
    question: ProofQuestion,
    dominances: tuple[Dominance, ...],
    descents: tuple[Descent, ...],
    before: PotentialNode,
    after: PotentialNode | None,
) -> Minima:
    """Random minima that keep what is said of these two nodes: some must not be negative."""
    moved = {(x, y): random.randint(-9, 9) for x in range(DELAYED, 3) for y in range(END, 3)}
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
def decreases(draw: st.DrawFn) -> list[Decrease]:
    """Some cases of one requirement: three warps that move, and some that stay."""
    crossings = [(0, 0), (0, 1), (0, END)]
    found = set()
    for _ in range(draw(st.integers(1, 12))):
        moved = Counter(draw(st.lists(st.sampled_from(crossings), min_size=3, max_size=3)))
        ports = PortCounts(*draw(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))))
        found.add(
            Decrease(tuple(sorted(moved.items())), draw(st.tuples(st.integers(0, 3), st.integers(0, 3))), (ports,))
        )
    return sorted(found)


@given(decreases(), st.sampled_from([1, 4, 1000]), randoms)
def test_a_requirement_that_is_left_out_follows_from_those_that_are_kept(
    cases: list[Decrease], at_once: int, random: Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makespan.proof.bounds.conditions._AT_ONCE", at_once)
        kept = _extreme(cases)
    assert set(kept) <= set(cases)
    for _ in range(20):
        ports = (random.randint(-9, 9), random.randint(-9, 9), random.randint(-9, 9))
        moved = {(0, y): random.randint(-9, 9) for y in (0, 1, END)}
        least = Minima(moved, [random.randint(-9, 9) for _ in range(2)], [ports])
        assert min(value(case, least) for case in kept) == min(value(case, least) for case in cases)


def test_what_lies_between_two_requirements_is_left_out() -> None:
    ends = [Decrease((((0, 0), 2),), (0,)), Decrease((((0, 1), 2),), (2,))]
    middle = Decrease((((0, 0), 1), ((0, 1), 1)), (1,))
    assert set(_extreme([*ends, middle])) == set(ends)


def test_the_cycles_of_two_warps_of_cl_by_hand() -> None:
    """The last finisher z and one other; a situation is z's class and the other's ready warps, all of them stops."""
    crossings = frozenset({(0, 1), (1, END)})
    shape = Abstraction((1, 1), (1, 1), crossings, crossings, others=1)
    moves, ends = ((0, 1), 1), ((1, END), 1)
    z_c, z_l = partial(AbstractSituation, 0), partial(AbstractSituation, 1)
    alone, at_c, at_l = (0, 0), (1, 0), (0, 1)
    assert set(shape.cycles) == {
        AbstractCycle(z_c(alone), z_l(alone), (0, 1), (), (0, 0)),
        AbstractCycle(z_c(at_c), z_l(at_c), (0, 1), (), (1, 0)),
        AbstractCycle(z_c(at_c), z_c(at_l), 0, (moves,), (0, 0)),
        AbstractCycle(z_c(at_l), z_l(alone), (0, 1), (ends,), (0, 0)),
        AbstractCycle(z_l(alone), None, (1, END), (), (0, 0)),
        AbstractCycle(z_l(at_l), z_l(alone), 1, (ends,), (0, 0)),
    }


def test_a_stop_is_where_some_other_class_is_short() -> None:
    crossings = frozenset({(0, 1), (1, 2), (2, END)})
    shape = Abstraction((1, 1, 1), (1, 1, 1), crossings, crossings, others=3)
    assert shape.stops(AbstractSituation(0, (0, 0, 1)))
    assert not shape.stops(AbstractSituation(0, (0, 1, 1)))


def test_a_label_survives_where_the_situation_is_no_stop() -> None:
    """Three C and three L at (1,1): many are ready for both, until one class runs out."""
    strings = [(Program.chain("CL"), 3), (Program.chain("LC"), 3)]
    shape = ProofQuestion(Instance.merged(strings), 0).abstraction(0)
    both, only_l = AbstractSituation(0, (1, 1)), AbstractSituation(0, (0, 1))
    assert not shape.stops(both)
    assert not shape.stops(only_l)
    assert shape.stops(AbstractSituation(0, (1, 0)))
    assert shape.labels[both] == {0, 1, END}
    assert shape.labels[only_l] == {1, END}  # z goes on to L, and never back
    assert set(shape.node_pairs(both, only_l)) == {(node(both, label), node(only_l, label)) for label in (1, END)}
    assert list(shape.node_pairs(both, AbstractSituation(1, (0, 1)))) == [
        (node(both, 1), node(AbstractSituation(1, (0, 1)), None))
    ]
    entered = set(shape.node_pairs(AbstractSituation(0, (1, 0)), both))
    assert entered == {(PotentialNode(0, (1, 0)), node(both, label)) for label in (0, 1, END)}
    assert list(shape.node_pairs(AbstractSituation(1, (0, 0)), None)) == [(PotentialNode(1, (0, 0)), None)]


def test_a_situation_from_which_the_last_finisher_cannot_finish_last_has_no_node() -> None:
    """z executes its only C in the next cycle, but of two L only one is executed then."""
    shape = ProofQuestion(Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 2)]), 0).abstraction(1)
    assert shape.nodes_of(AbstractSituation(0, (0, 2))) == ()
    assert shape.nodes_of(AbstractSituation(0, (0, 1))) == (PotentialNode(0, (0, 1), END),)


HELD = Machine("held", (UnitClass("L", 1, interval=2),))
SLOW = Machine("slow", (UnitClass("L", 1, latency=Latency(2, 2)),))
DELAYED_PAPER = Machine("delayed", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 3))))
NARROW = Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)


def test_the_cycles_of_a_held_port_by_hand() -> None:
    """Two warps L, one port held for two cycles: the other issues, then z waits for the port, then it issues."""
    shape = ProofQuestion(Instance.of("L", 2, HELD), 0).abstraction(0)
    ends = ((0, END), 1)
    free, held, kept = PortCounts(0, 0, 1), PortCounts(1, 0, 0), partial(AbstractSituation, 0)
    assert set(shape.cycles) == {
        AbstractCycle(kept((1, 1)), kept((0, 0)), 0, (ends,), (0,), (), (), (free,)),
        AbstractCycle(kept((0, 0)), kept((0, 1)), 0, (), (0,), (), (), (held,)),
        AbstractCycle(kept((1, 0)), kept((1, 1)), 0, (), (1,), (), (), (held,)),
        AbstractCycle(kept((0, 1)), None, (0, END), (), (0,), (), (), (free,)),
    }


def test_a_delayed_last_finisher_moves_and_is_ready_for_nothing() -> None:
    """One warp LL, which after each L is delayed for a cycle."""
    shape = ProofQuestion(with_delays(Instance.of("LL", 1, SLOW)), 0).abstraction(0)
    assert shape.crossings_of_last == {(0, DELAYED), (DELAYED, 0), (DELAYED, END)}
    ready, delayed = AbstractSituation(0, (0,)), AbstractSituation(DELAYED, (0,))
    assert set(shape.cycles) == {
        AbstractCycle(ready, delayed, (0, DELAYED), (), (0,)),
        AbstractCycle(delayed, ready, (DELAYED, 0), (), (0,)),
        AbstractCycle(delayed, None, (DELAYED, END), (), (0,)),
    }
    assert shape.nodes_of(delayed) == (PotentialNode(None, (0,)),)


def test_others_leave_delays_in_any_number_where_the_count_is_open() -> None:
    shape = ProofQuestion(with_delays(Instance.of("LL", 9, SLOW)), 0).abstraction(0)
    open_again = [cycle for cycle in shape.cycles if cycle.target and cycle.target.kind == (1,)]
    assert open_again
    assert all((DELAYED, 0) in cycle.passing for cycle in open_again)
    counts = {sum(n for (before, _), n in cycle.moved if before == DELAYED) for cycle in shape.cycles}
    assert counts == {0, 1}


def test_others_leave_delays_in_known_numbers_where_the_count_is_not_open() -> None:
    shape = ProofQuestion(with_delays(Instance.of("LC", 9, DELAYED_PAPER)), 0).abstraction(1)
    assert len(shape.cycles) <= shape.most_cycles(10**9)
    for cycle in shape.cycles:
        arrived = Counter[int]()
        for (before, after), count in cycle.moved:
            arrived[after] += count
            known = cycle.unmoved[after] + arrived[after] if after >= 0 else 0
            assert before != DELAYED or known <= shape.thresholds[after], cycle
        assert all(cycle.target and cycle.target.kind[x] == shape.thresholds[x] for _, x in cycle.passing if x >= 0)


def test_more_may_arrive_than_are_counted_where_delays_end_as_well() -> None:
    slow_loads = Machine("slow loads", (UnitClass("C", 2), UnitClass("L", 1, 1, Latency(2, 2))))
    shape = ProofQuestion(with_delays(Instance.of("CLL", 4, slow_loads)), 0).abstraction(0)
    assert any(((0, 1), 2) in cycle.moved for cycle in shape.cycles)


def test_an_issue_width_leaves_a_choice_of_movers() -> None:
    shape = ProofQuestion(Instance.of("CL", 4, NARROW), 0).abstraction(0)
    assert set(shape.issues(AbstractSituation(0, (0, 1)))) == {(0, 1), (1, 0)}
    assert set(shape.issues(AbstractSituation(0, (1, 0)))) == {(1, 0)}
    waiting = {
        cycle.moved for cycle in shape.cycles if cycle.source == AbstractSituation(0, (0, 1)) and cycle.slot == 0
    }
    assert waiting == {(((1, END), 1),)}  # z is ready for a free port, and the only issue slot is taken by an L


def test_a_port_that_is_held_for_longer_is_free_no_sooner() -> None:
    held = Machine("held", (UnitClass("L", 3, interval=3),))
    shape = ProofQuestion(Instance.of("LL", 9, held), 0).abstraction(0)
    after = {
        cycle.target.kind[1] for cycle in shape.cycles if cycle.source == AbstractSituation(0, (3, 1)) and cycle.target
    }
    assert after == {0, 1, 2}  # of two held ports none, one or both are released, and one is taken


def test_no_question_is_asked_about_barriers_or_latencies() -> None:
    for instance in (Instance.of("C|C", 2), Instance.of("L", 2, SLOW)):
        with pytest.raises(UnsupportedError, match="a certificate, which takes latencies as places, does not know"):
            ProofQuestion(instance, 0)


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 2, 5])
def test_no_abstract_cycle_needs_more_warps_than_there_are(warps: int, extra: int) -> None:
    shape = ProofQuestion(Instance.of("CLLC", warps), 0).abstraction(extra)
    assert all(sum(count for _, count in one.moved) + sum(one.unmoved) < warps for one in shape.cycles)
    assert all(sum(one.kind) < warps for one in shape.situations)
    more = [one.target.kind[unit] for one in shape.cycles if one.target for unit in one.reopened]
    assert all(count == extra + 1 for count in more)  # if more stay, the target is the same
    assert len(shape.cycles) <= shape.most_cycles(10**9)


@pytest.mark.parametrize("machine", [PAPER, DELAYED_PAPER], ids=["base case", "latencies"])
def test_the_last_finisher_finishes_only_with_everything(machine: Machine) -> None:
    question = ProofQuestion(with_delays(Instance.of("CCL", 3, machine)), 0)
    for before, after, where, _ in conditions(question.abstraction(1), by_itself).requirements:
        finishes = isinstance(where, tuple) and where[1] == END
        assert finishes == (after is None), (before, after, where)
