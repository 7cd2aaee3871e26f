"""Tokens that make no difference are left out, and nothing else changes."""

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.kernels.flow.automaton import Automaton
from makespan.kernels.flow.tokens import drop_needless_tokens
from makespan.model.program import BARRIER, InstructionTiming, ProgramPlace

ALL = frozenset(range(4))


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """A few places with tokens of any kind, each the place of its own instruction."""
    end = draw(st.integers(1, 7))
    tokens = st.sets(st.sampled_from(sorted(ALL)), max_size=2).map(lambda some: tuple(sorted(some)))
    places, timings = [], []
    for at in range(end):
        afters = draw(st.sets(st.integers(at + 1, min(end, at + 3)), min_size=1, max_size=2)) | {at + 1}
        is_barrier = draw(st.integers(0, 5)) == 0
        most = draw(st.integers(1, 5))
        least = draw(st.integers(1, most))
        awaits = draw(tokens)
        places.append(ProgramPlace(BARRIER if is_barrier else draw(st.sampled_from("CL")), tuple(sorted(afters))))
        timing = InstructionTiming(draw(st.integers(1, 2)), (least, most), draw(tokens), awaits)
        timings.append(InstructionTiming(0, (0, 0), (), awaits) if is_barrier else timing)
    return Automaton(tuple(places), (0,), tuple((at,) for at in range(end)), timings=tuple(timings))


def times(made: Automaton, path: Sequence[int], latencies: Sequence[int], counted: frozenset[int]) -> list[int]:
    """When a warp alone issues every place of a path, and when it ends: nothing of `counted` is pending."""
    there: dict[int, int] = {}
    found, now, first = [], 0, 0
    for place, latency in zip(path, latencies, strict=True):
        timing = made.timings[place]
        now = max([first, *(there.get(token, 0) for token in timing.awaits)])
        found.append(now)
        first = now + timing.stall
        for token in timing.sets:
            there[token] = max(there.get(token, 0), now + latency)
    return [*found, max([first, *(cycle for token, cycle in there.items() if token in counted)])]


def walk(made: Automaton, chance: random.Random) -> list[int]:
    path = [chance.choice(made.starts)]
    while (after := chance.choice(made.places[path[-1]].successors)) != len(made.places):
        path.append(after)
    return path


@settings(max_examples=150, deadline=None)
@given(automata(), st.sets(st.sampled_from(sorted(ALL))).map(frozenset), st.randoms(use_true_random=False))
def test_every_warp_issues_and_ends_when_it_did(
    made: Automaton, results: frozenset[int], chance: random.Random
) -> None:
    kept = drop_needless_tokens(made, results)
    became = {raw: place for place, together in enumerate(kept.instructions) for raw in together}
    for _ in range(4):
        path = walk(made, chance)
        latencies = [chance.randint(*made.timings[place].latency) for place in path]
        there = [became[place] for place in path]
        assert there[0] in kept.starts
        assert all(b in kept.places[a].successors for a, b in pairwise([*there, len(kept.places)]))
        assert [kept.places[place].unit for place in there] == [made.places[place].unit for place in path]
        *before, _ = times(made, path, latencies, ALL)
        *after, end = times(kept, there, latencies, frozenset(t for each in kept.timings for t in each.sets))
        assert after == before
        assert times(made, path, latencies, results)[-1] <= end <= times(made, path, latencies, ALL)[-1]
        if results == ALL:
            assert end == times(made, path, latencies, ALL)[-1]


def chain(letters: str, *timings: InstructionTiming) -> Automaton:
    places = tuple(ProgramPlace(letter, (at,)) for at, letter in enumerate(letters, start=1))
    return Automaton(places, (0,), tuple((at,) for at in range(len(places))), timings=timings)


def test_only_what_may_be_pending_is_awaited_and_only_once() -> None:
    made = chain(
        "LCC",
        InstructionTiming(latency=(9, 9), sets=(5,)),
        *[InstructionTiming(latency=(1, 1), awaits=(5, 7), sets=(7,))] * 2,
    )
    assert [(timing.sets, timing.awaits) for timing in drop_needless_tokens(made, frozenset({5, 7})).timings] == [
        ((0,), ()), ((), (0,)), ((), ()),
    ]  # fmt: skip


def test_a_result_that_nobody_reads_counts_at_the_end_and_a_store_does_not() -> None:
    made = chain(
        "LLC",
        InstructionTiming(latency=(9, 9), sets=(0,)),
        InstructionTiming(latency=(9, 9), sets=(1,)),
        InstructionTiming(),
    )
    assert [timing.sets for timing in drop_needless_tokens(made, frozenset({0})).timings] == [(0,), (), ()]


def test_places_that_become_equal_are_one() -> None:
    """Two sides of a branch that store different registers, none of them pending."""
    store, branch = InstructionTiming(latency=(9, 9), sets=(2,)), InstructionTiming()
    places = (ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("L", (3,)))
    made = Automaton(places, (0,), ((0,), (1,), (2,)), timings=(branch, store, store._replace(awaits=(1,))))
    kept = drop_needless_tokens(made, frozenset())
    assert kept.places == (ProgramPlace("C", (1,)), ProgramPlace("L", (2,)))
    assert kept.instructions == ((0,), (1, 2))
