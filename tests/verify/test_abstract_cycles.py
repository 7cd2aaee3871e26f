"""Potentials: the abstract cycles of the checker cover all cycles of all schedules of a few warps, whoever is last."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.certificate import PotentialNode
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.simulate.semantics import (
    SmState,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    start_states,
)
from makespan.verify import potential
from makespan.verify.potential import PotentialCheck
from makespan.verify.refusal import ProofSteps
from tests.potentials import END, Shape, random_tables
from tests.strategies import general_instances, instances

Moment = tuple[SmState, tuple[int, ...]]
"""A state, and where every warp stands once latencies are places."""


def begins(instance: Instance) -> list[Moment]:
    first = _rows(instance)
    return [
        (state, tuple(row[at] for row, at in zip(first, state.places, strict=True))) for state in start_states(instance)
    ]


def _rows(instance: Instance) -> list[list[int]]:
    """For every warp the first of the places that each place becomes."""
    latencies = {unit.name: unit.latency.most for unit in instance.machine.units}
    return [[*accumulate((latencies[at.unit] for at in p.places), initial=0)] for p in instance.programs()]


def cycles(instance: Instance) -> Iterator[tuple[Moment, Moment]]:
    """Every cycle of every schedule, by the definition."""
    first, waiting = _rows(instance), begins(instance)
    seen = set(waiting)
    while waiting:
        state, on = waiting.pop()
        for taken in () if has_finished(instance, state) else issue_sets(instance, state):
            for moves in product(*(issue_outcomes(instance, state, warp, chosen) for warp, chosen in taken.items())):
                after, there = next_state(instance, state, moves), list(on)
                issued = {move.warp: move.latency for move in moves}
                for warp, row in enumerate(first):
                    if issued.get(warp, 1) > 1:
                        there[warp] = row[state.places[warp] + 1] - issued[warp] + 1
                    elif warp in issued or state.waits[warp] == 1:
                        there[warp] = row[after.places[warp]]
                    else:
                        there[warp] += state.waits[warp] > 1
                then = after, tuple(there)
                yield (state, on), then
                if then not in seen:
                    seen.add(then)
                    waiting.append(then)


def with_last(found: list[tuple[Moment, Moment]], ends: tuple[int, ...], last: int) -> Iterator[tuple[Moment, Moment]]:
    """Those cycles that are in a schedule in which warp `last` finishes last."""
    before: dict[Moment, list[Moment]] = {}
    for moment, then in found:
        if moment[1][last] < ends[last]:
            before.setdefault(then, []).append(moment)
    waiting = [then for then in before if then[1] == ends and not any(then[0].waits)]
    while waiting:
        then = waiting.pop()
        for moment in before.pop(then, ()):
            yield moment, then
            waiting.append(moment)


def check_all_cycles(instance: Instance, extra: int, seed: int) -> None:
    shape, draw = Shape(instance, extra), random.Random(seed)
    ends, found = tuple(program.end for program in shape.whole.programs()), list(cycles(instance))
    for last, group in enumerate(instance.group_of_warp()):
        tables = random_tables(draw, shape, group, shape.situations())
        others = next(iter(tables.values())).others
        tables = {node: replace(table, others=others) for node, table in tables.items()}  # so nobody raises it
        limits = potential.CertificateBudget(ProofSteps(10**6), ProofSteps(10**6), ProofSteps(10**9))
        check = PotentialCheck(shape.whole, shape.potential(group, tables), limits)
        abstract = check._cycles({shape.situation(state, [*on], last) for state, on in begins(instance)})
        least: dict[tuple[PotentialNode, PotentialNode], int] = {}
        for decrease, u, v in check._all_decreases(abstract, check._labels(abstract)):
            least[u, v] = min(decrease, least.get((u, v), decrease))
        for (state, on), (then, there) in with_last(found, ends, last):
            u = shape.situation(state, [*on], last)
            v = END if there == ends else shape.situation(then, [*there], last)
            after = 0 if v == END else shape.value(tables[v], then, [*there], last)
            assert shape.value(tables[u], state, [*on], last) - after >= least[u, v]


@given(
    st.one_of(instances(most_warps=3, most=3), general_instances(most_warps=3)),
    st.integers(0, 1),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_every_cycle_of_a_few_warps(instance: Instance, extra: int, seed: int) -> None:
    check_all_cycles(instance, extra, seed)


THREE = Machine("three", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 2)), UnitClass("S", 2)))


@pytest.mark.parametrize(
    "instance",
    [
        Instance.of("CC", 3, Machine("m", (UnitClass("C", 1, 1, Latency(2, 2)),))),  # one leaves C as one arrives
        Instance.of("CLC", 3, Machine("m", (UnitClass("C", 2), UnitClass("L", 1)), issue_width=2)),  # no slot binds
        Instance.of("LC", 3, Machine("m", (UnitClass("C", 1, 2), UnitClass("L", 2, 4, Latency(2, 2))))),
        Instance.merged([(Program.chain("SC"), 3), (Program.chain("LC"), 1)], THREE),  # two arrive, none from a delay
    ],
)
def test_every_cycle(instance: Instance) -> None:
    for extra in (0, 1):
        check_all_cycles(instance, extra, 1)
