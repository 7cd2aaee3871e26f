"""The pessimistic bound outlasts anomalies: whatever gets shorter or runs ahead, no schedule is longer."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import solve
from makespan.model.instance import Group, Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import BARRIER, Program
from makespan.model.result import Anomaly
from makespan.proof.bounds import any_units, pessimistic
from makespan.verify import pessimistic as checked
from tests.oracle import brute_force
from tests.strategies import barrier_instances, general_barrier_instances, general_instances


class _Cycle(NamedTuple):
    """What the past leaves behind, for warps that may go on before their latencies have passed.

    Args:
        places: of each warp the next place.
        covers: of each warp the cycles after which, at the latest, all results of what it issued are there.
        held: of each class the cycles for which ports are held.
    """

    places: tuple[int, ...]
    covers: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]


def longest_ahead(instance: Instance) -> int:
    """The longest schedule if any warp may be ready before a latency has passed, and a port be held for less long.

    A ready warp is left out only if all ports of its class are held or the issue slots are taken. A warp comes to a
    barrier, or ends, when its results are there, which again may be sooner than the latencies say.
    """
    begun = (_Cycle(places, (0,) * instance.warps, ((),) * len(instance.machine.units)) for places in _starts(instance))
    frontier, cycles = set(chain.from_iterable(_released(instance, state) for state in begun)), 0
    while frontier:
        frontier = {after for state in frontier for after in _steps(instance, state)}
        cycles += 1
        ends = tuple(program.end for program in instance.programs())
        frontier = {state for state in frontier if state.places != ends or any(state.covers)}
    return cycles


def _starts(instance: Instance) -> Iterator[tuple[int, ...]]:
    return product(*(program.starts for program in instance.programs()))


def _steps(instance: Instance, state: _Cycle) -> Iterator[_Cycle]:
    programs, units = tuple(instance.programs()), instance.machine.units
    number = {unit.name: n for n, unit in enumerate(units)}
    wants = {
        warp: number[program.places[place].unit]
        for warp, (program, place) in enumerate(zip(programs, state.places, strict=True))
        if place != program.end and program.places[place].unit != BARRIER
    }
    free = [unit.capacity - len(held) for unit, held in zip(units, state.held, strict=True)]
    width = len(programs) if instance.machine.issue_width is None else instance.machine.issue_width
    for issuing in chain.from_iterable(combinations(wants, n) for n in range(min(len(wants), width) + 1)):
        taken = [sum(wants[warp] == n for warp in issuing) for n in range(len(units))]
        if any(count > ports for count, ports in zip(taken, free, strict=True)):
            continue
        must = (warp for warp in wants if warp not in issuing and not state.covers[warp])
        if len(issuing) < width and any(taken[wants[warp]] < free[wants[warp]] for warp in must):
            continue  # a ready warp could be added
        targets = [programs[warp].places[state.places[warp]].successors for warp in issuing]
        holds = [range(1, units[wants[warp]].interval + 1) for warp in issuing]
        for chosen, times in product(product(*targets), product(*holds)):
            places, covers = list(state.places), [max(0, left - 1) for left in state.covers]
            held = [[left - 1 for left in ports if left > 1] for ports in state.held]
            for warp, target, hold in zip(issuing, chosen, times, strict=True):
                unit = wants[warp]
                places[warp], covers[warp] = target, max(covers[warp], units[unit].latency.most - 1)
                held[unit] += [hold - 1] if hold > 1 else []
            after = _Cycle(tuple(places), tuple(covers), tuple(tuple(sorted(ports)) for ports in held))
            yield from _released(instance, after)


def _released(instance: Instance, state: _Cycle) -> Iterator[_Cycle]:
    """The states after barriers that may open have opened, and the one in which they have not yet if they need not."""
    programs, blocks = tuple(instance.programs()), instance.block_of_warp()
    for block in range(instance.blocks if instance.has_barriers else 0):
        members = [warp for warp in range(len(programs)) if blocks[warp] == block]
        gates = [w for w in members if state.places[w] != programs[w].end]
        if gates and all(programs[w].places[state.places[w]].unit == BARRIER for w in gates):
            covers = tuple(0 if w in members else left for w, left in enumerate(state.covers))
            for targets in product(*(programs[w].places[state.places[w]].successors for w in gates)):
                passed = dict(zip(gates, targets, strict=True))
                places = tuple(passed.get(w, place) for w, place in enumerate(state.places))
                yield from _released(instance, _Cycle(places, covers, state.held))
            if not any(state.covers[w] for w in members):
                return
    yield state


@st.composite
def richer(draw: st.DrawFn, instance: Instance) -> Instance:
    """The same with more ports, more issue slots and fewer warps, some of each."""
    machine = instance.machine
    units = tuple(replace(unit, capacity=unit.capacity + draw(st.integers(0, 1))) for unit in machine.units)
    width = None if machine.issue_width is None else machine.issue_width + draw(st.integers(0, 1))
    groups = instance.groups
    if sum(group.warps for group in groups) > 1 and instance.blocks == 1 and draw(st.booleans()):
        first, *rest = groups
        groups = ((Group(first.program, first.warps - 1),) if first.warps > 1 else ()) + tuple(rest)
    return Instance(groups, Machine("richer", units, width), blocks=instance.blocks)


@given(st.data(), st.one_of(general_instances(most=3), general_barrier_instances(most=3)))
@settings(max_examples=150)
def test_no_anomaly_is_longer_than_the_pessimistic_bound(data: st.DataObject, instance: Instance) -> None:
    longest = longest_ahead(data.draw(richer(instance)))
    assert longest <= pessimistic(instance)
    assert longest <= any_units(instance)


@given(st.one_of(general_instances(most_warps=5, most=6), general_barrier_instances(most_warps=5)))
@settings(max_examples=150)
def test_the_checker_counts_the_same(instance: Instance) -> None:
    assert checked.pessimistic(instance) == pessimistic(instance)


@given(st.one_of(general_instances(), barrier_instances(most=3)))
@settings(max_examples=50)
def test_running_ahead_contains_every_schedule_of_the_model(instance: Instance) -> None:
    assert longest_ahead(instance) >= brute_force(instance).upper


def machine(width: int | None = None, **units: tuple[int, int, int]) -> Machine:
    """Each class with its capacity, interval and latency."""
    classes = (
        UnitClass(name, ports, interval, Latency(least, least)) for name, (ports, interval, least) in units.items()
    )
    return Machine("by hand", tuple(classes), width)


def test_a_warp_that_waits_out_its_latency_holds_fewer_ports_than_one_that_runs_ahead() -> None:
    two_ports = Instance.of("CLLL", 2, machine(2, C=(1, 1, 2), L=(2, 3, 3)))
    assert brute_force(two_ports).upper == 12
    assert longest_ahead(two_ports) >= 13  # the last load needs the second one only, and goes ahead of the third
    assert pessimistic(two_ports) == 11 + 1 + 3 * 3 // 2


def test_ahead_can_be_worse_than_the_exact_worst_case() -> None:
    instance = Instance.of("LC", 3, machine(1, C=(1, 1, 1), L=(1, 1, 3)))
    assert solve(instance).bounds.upper == 6 < 7 <= longest_ahead(instance) <= pessimistic(instance)


@pytest.mark.parametrize(("letters", "warps"), [("LC", 3), ("L", 3)])
def test_a_result_says_which_anomalies_its_bound_outlasts(letters: str, warps: int) -> None:
    result = solve(Instance.of(letters, warps, machine(1, C=(1, 1, 1), L=(1, 1, 3))))
    assert result.robust_against == (tuple(Anomaly) if result.bounds.upper == result.pessimistic else ())


def test_slots_that_ports_leave_over_are_counted() -> None:
    """C and C hold the ports, then C and L, then L and L take both slots: each number of the bound is attained."""
    warps = [(Program.chain("CL"), 1), (Program.chain("C"), 3), (Program.chain("L"), 3)]
    instance = Instance.merged(warps, machine(2, C=(2, 1, 1), L=(2, 1, 1)))
    assert brute_force(instance).upper == 5 == pessimistic(instance)


def test_a_class_of_more_ports_than_slots_costs_slots_for_each_instruction() -> None:
    instance = Instance.of("C", 5, machine(2, C=(3, 1, 1)))
    assert brute_force(instance).upper == 3 <= pessimistic(instance)


@pytest.mark.soak
@given(st.data(), st.one_of(general_instances(most=4), general_barrier_instances(most=3)))
@settings(max_examples=20_000, derandomize=False, print_blob=True)
def test_no_anomaly_far_out_is_longer_than_the_pessimistic_bound(data: st.DataObject, instance: Instance) -> None:
    assert longest_ahead(data.draw(richer(instance))) <= pessimistic(instance)
