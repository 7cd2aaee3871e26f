"""Every state of random instances, cycle by cycle: the checker finds those that the plain search finds."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from benchmarks import closed_form
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Machine, UnitClass
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.proof.engines import Limits
from makespan.proof.engines.search import plain
from makespan.verify import states
from makespan.verify.delays import with_delay_places
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.states import StateWalker, WarpsAtPlace, front, shortest_and_longest

KINDS = (
    closed_form.Kind(ports=3, interval=4, latency=3, ranges=True, letters=4, automata=True, width=3),
    closed_form.Kind(ports=3, interval=4, latency=2, ranges=True, letters=4, barriers=True, automata=True, width=3),
    closed_form.Kind(ports=2, interval=3, latency=2, letters=4, barriers=True, automata=True),
)
MOST_STATES = 20_000

Seen = tuple[tuple[WarpsAtPlace, ...], tuple[tuple[int, ...], ...]]
"""Where warps stand, and what of the ports is held."""


def fronts(instance: Instance) -> Iterator[tuple[Counter[Seen], int]]:
    """After 0, 1, ... cycles, how many states there are that look so, and the last end, by the plain search."""
    walked, ended = plain._PlainAutomaton(instance), 0
    states = {state for _, state in walked.begin()}
    for cycle in count(1):
        yield Counter(seen(walked, state) for state in states), ended
        if not states:
            return
        reached = {after for state in states for _, after in walked.steps(state)}
        states = {after for after in reached if after[0]}
        ended = cycle if reached != states else ended


def seen(walked: plain._PlainAutomaton, state: plain.PlainState) -> Seen:
    places, held = state
    blocks = walked.instance.blocks
    where = [(walked.origin[place][0] // blocks, walked.origin[place][1], n) for place, n in Counter(places).items()]
    ports = zip(walked.intervals.values(), held, strict=True)
    counts = (tuple(used.count(h) for h in range(1, interval)) for interval, used in ports)
    return tuple(sorted(WarpsAtPlace(*each) for each in where)), tuple(counts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_cycle_leads_to_the_states_that_the_plain_search_finds(kind: closed_form.Kind) -> None:
    draw, wide = random.Random(28), 0
    for _ in range(60):
        asked = closed_form.instance(draw, kind)
        if kind.barriers and draw.random() < 0.5 and not any(group.warps % 2 for group in asked.groups):
            asked = replace(asked, blocks=2, order=())
        if not plain.is_small(asked):
            continue
        walker = StateWalker(with_delay_places(asked), ProofSteps(10**7))
        for cycle, (some, ended) in enumerate(fronts(with_delay_places(asked))):
            reached, last = front(walker, cycle, 10**4)
            looks = ((tuple(sorted(walker.standing(s))), tuple(map(tuple, walker.held(s).values()))) for s in reached)
            assert (Counter(looks), last) == (some, ended)
        found, truth = shortest_and_longest(asked, MOST_STATES), plain.solve(asked, Limits())
        assert truth.best_case is not None
        assert found == (truth.best_case.lower, truth.upper)
        wide += found[0] < found[1]
    assert wide > 9


def test_states_are_counted() -> None:
    """Two equal warps of CC on one unit have done 0 0, 1 0, 2 0, 1 1, 2 1 and 2 2 instructions."""
    asked = Instance.of("CC", 2, Machine.of({"C": 1}))
    assert [shortest_and_longest(asked, most) for most in (0, 1, 5, 6, 7)] == [None, None, None, (4, 4), (4, 4)]


def test_states_have_room_until_they_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a warp alone there is one at a time, however long its way; of three, three are kept and two follow one."""
    alone, three = Instance.of("C" * 20, 1, Machine.of({"C": 1})), Instance.of("C" * 12, 3, Machine.of({"C": 1}))
    monkeypatch.setattr(states, "MOST_BYTES", 102)
    assert shortest_and_longest(alone, 100) == (20, 20)
    assert shortest_and_longest(three, 1000) is None
    monkeypatch.setattr(states, "MOST_BYTES", 99)
    assert shortest_and_longest(alone, 100) is None
    monkeypatch.setattr(states, "MOST_BYTES", 100 * 105)
    assert shortest_and_longest(three, 1000) == (36, 36)


def test_states_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each situation of a warp, and each cycle for which its port is held, has a field of two bits above the rank."""
    asked = Instance.of("CC", 2, Machine("held", (UnitClass("C", 1, 2),)))
    assert shortest_and_longest(asked, 1000) == (7, 7)
    walker = StateWalker(asked, ProofSteps(10**6))
    states._extremes(walker, 1000)
    last = walker._rank_bits + 2 * (len(walker._units) - 1)
    monkeypatch.setattr(states, "MOST_BITS", last)
    assert shortest_and_longest(asked, 1000) == (7, 7)
    monkeypatch.setattr(states, "MOST_BITS", last - 1)
    assert shortest_and_longest(asked, 1000) is None


CLASSES = Instance.merged([(Program.chain(f"{unit}{i}"), 1) for unit in "CL" for i in "CL"], PAPER)
PARTING = Program(
    (ProgramPlace("C", (1,)), ProgramPlace(BARRIER, (2, 3)), ProgramPlace("C", (4,)), ProgramPlace("C", (4,)))
)
BLOCKS = Instance.of(PARTING, 2, Machine.of({"C": 2}), blocks=2)


@pytest.mark.parametrize("asked", [CLASSES, BLOCKS])
def test_what_may_follow_one_state_has_room(asked: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are two ways of each of two classes, and of each of two blocks behind their barriers."""
    walker = StateWalker(asked, ProofSteps(10**6))
    (begin,) = walker.starts()
    monkeypatch.setattr(walker, "most_states", lambda: 4)
    cycles, after = walker.after(begin)
    assert (cycles, len(after)) == (1, 4)
    monkeypatch.setattr(walker, "most_states", lambda: 3)
    with pytest.raises(TooMuchWork):
        walker.after(begin)


def test_a_front_ends_with_the_last_warp_and_where_its_states_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two of four cycles one of two warps of CC is done with both, or each with one."""
    walker = StateWalker(Instance.of("CC", 2, Machine.of({"C": 1})), ProofSteps(10**6))
    assert front(walker, 10**12, 2) == (set(), 4)
    assert len(front(walker, 2, 2)[0]) == 2
    with pytest.raises(TooMuchWork):
        front(walker, 2, 1)
    monkeypatch.setattr(walker, "most_states", lambda: 1)
    with pytest.raises(TooMuchWork):
        front(walker, 2, 2)
