"""Random schedules of general machines, and what happens in every cycle of them, by the definition alone."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import BARRIER
from makespan.model.schedule import Schedule
from makespan.model.simulate.semantics import (
    SmState,
    WarpIssue,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    passing_barrier,
    pools_taken,
    ready_warps,
)
from makespan.report.schedule.activity import Why
from makespan.report.schedule.by_number import order_by_number
from tests.oracle import standing
from tests.strategies import barrier_instances, general_instances, general_machines, multiprocessor_instances, runs

Case = tuple[Instance, Schedule]

ISSUES = "issues"


class Cycle(NamedTuple):
    """What happens in a cycle.

    Args:
        doing: of every warp that has not finished, what it does and the class that it has to do with.
        at: of every such warp the place that it executes, that stalls it, or that it wants to execute or pass next, or
            that was its last where it only waits for results.
        causes: of every warp that lacks a resource or a result, which, or that of which place.
        free: of every class in every partition, or in all that share it (None), how many ports are idle, and why.
        held: of every resource in the same way how many ports are held.
    """

    doing: dict[int, tuple[str, str]]
    at: dict[int, int]
    causes: dict[int, str | int]
    free: dict[tuple[str, int | None], tuple[int, Why]]
    held: dict[tuple[str, int | None], int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schedule of a few warps, with or without barriers, on a general machine or on a multiprocessor.

    The warps are in the order of their numbers, as reports tell them.
    """
    instance = draw(general_instances(most=4) | _barriers() | _multiprocessors() | _multiprocessors())
    return order_by_number(instance, draw(runs(instance)))


def _multiprocessors() -> st.SearchStrategy[Instance]:
    return multiprocessor_instances(most_warps=4, most=4)


@st.composite
def _barriers(draw: st.DrawFn) -> Instance:
    plain = draw(barrier_instances())
    machine = draw(general_machines(most_classes=2))
    units = {unit.name: unit for unit in machine.units}
    chosen = tuple(units.get(name, UnitClass(name, 1, 2)) for name in plain.machine.capacities)
    return Instance(plain.groups, Machine("general", chosen, machine.issue_width), plain.blocks, plain.order)


def cycle_by_cycle(instance: Instance, schedule: Schedule) -> Iterator[Cycle]:
    """Run the schedule on the machine as it is defined, and tell what happens in every cycle."""
    programs = tuple(instance.programs())
    partitions = instance.partition_of_warp or schedule.partitions
    walked = partitions if instance.machine.partitions > 1 else ()
    state = standing(instance, *(path[0] for path in schedule.paths), partitions=walked)
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies, uses = [iter(row) for row in schedule.latencies], [iter(row) for row in schedule.uses]
    stalling = [-1] * len(programs)
    setters: list[dict[int, tuple[int, int]]] = [{} for _ in programs]  # by token: when done at last, place

    def past_barriers(state: SmState) -> SmState:
        while passing := passing_barrier(instance, state):
            after = {warp: left[warp].pop(0) for warp in passing}
            state = state._replace(places=tuple(after.get(warp, at) for warp, at in enumerate(state.places)))
        return state

    state = past_barriers(state)
    for cycle, issuing in enumerate(schedule.cycles):
        assert not has_finished(instance, state)
        moves = []
        for warp in issuing:
            place = state.places[warp]
            allowed = {
                move
                for which in {taken[warp] for taken in issue_sets(instance, state) if warp in taken}
                for move in issue_outcomes(instance, state, warp, which)
            }
            target = left[warp].pop(0)
            chosen = {move for move in allowed if move.target == target}
            for rows, of in ((latencies, "latency"), (uses, "uses")):
                value = next(rows[warp]) if rows else None
                chosen = {move for move in chosen if not rows or getattr(move, of) == value}
            (move,) = chosen
            moves.append(move)
            stalling[warp] = place
        yield _cycle(instance, state, moves, stalling, setters, [path[-1] for path in schedule.paths])
        for warp, _, latency, _ in moves:
            place = state.places[warp]
            for token in programs[warp].timings[place].sets if programs[warp].runs_ahead else ():
                setters[warp][token] = max(setters[warp].get(token, (0, 0)), (cycle + latency, place))
        state = past_barriers(next_state(instance, state, moves))
    assert has_finished(instance, state)


def _cycle(
    instance: Instance,
    state: SmState,
    moves: list[WarpIssue],
    stalling: list[int],
    setters: list[dict[int, tuple[int, int]]],
    lasts: list[int],
) -> Cycle:
    machine, programs, issuing = instance.machine, tuple(instance.programs()), {move.warp for move in moves}
    units = {unit.name: unit for unit in machine.units}
    parts = state.partitions or (0,) * instance.warps
    left = [pool.capacity - len(held) for pool, held in zip(machine.pools, state.held, strict=True)]
    slots = [instance.warps if machine.issue_width is None else machine.issue_width] * machine.partitions
    for warp, _, _, uses in moves:
        unit = units[programs[warp].places[state.places[warp]].unit]
        for pool in pools_taken(machine, unit, parts[warp], [which for which, _ in uses] or [0] * len(unit.uses)):
            left[pool] -= 1
        slots[parts[warp]] -= 1
    number = {(pool.name, pool.partition): at for at, pool in enumerate(machine.pools)}

    def idle(name: str, part: int) -> int:
        return left[number.get((name, None), number.get((name, part), -1))]

    doing: dict[int, tuple[str, str]] = {}
    causes: dict[int, str | int] = {}
    could = {warp: unit for unit, warps in ready_warps(instance, state).items() for warp in warps}
    lacks: defaultdict[tuple[str, int | None], set[Why]] = defaultdict(set)
    for warp, (program, at) in enumerate(zip(programs, state.places, strict=True)):
        pending = {token for token, _ in state.pending[warp]} if state.pending else set[int]()
        wanted = pending if at == program.end else pending & set(program.timings[at].awaits if pending else ())
        if warp in issuing:
            doing[warp] = ISSUES, could[warp]
        elif state.waits[warp]:
            doing[warp] = Why.STALLED, program.places[stalling[warp]].unit
        elif wanted:
            _, place = max(setters[warp][token] for token in wanted)
            doing[warp], causes[warp] = (Why.RESULT, program.places[place].unit), place
        elif warp in could:
            unit, part = units[could[warp]], parts[warp]
            missing = [use.resources for use in unit.uses if not any(idle(name, part) for name in use.resources)]
            if not idle(unit.name, part):
                why = Why.PORT
            elif missing:
                why, causes[warp] = Why.RESOURCE, " or ".join(missing[0])
            else:
                why = Why.SLOT
                assert not slots[part]
            doing[warp] = why, unit.name
            lacks[unit.name, None if (unit.name, None) in number else part].add(why)
        elif at < program.end:
            doing[warp] = Why.BARRIER, BARRIER
    places = {
        warp: stalling[warp] if doing[warp][0] is Why.STALLED else (*range(programs[warp].end), lasts[warp])[at]
        for warp, at in enumerate(state.places)
        if warp in doing
    }
    free = {key: left[at] for key, at in number.items() if key[0] in units and left[at]}
    held = {key: machine.pools[at].capacity - left[at] for key, at in number.items() if key[0] not in units}
    reasons = {key: next((why for why in (Why.SLOT, Why.RESOURCE) if why in lacks[key]), Why.NOBODY) for key in free}
    return Cycle(doing, places, causes, {key: (n, reasons[key]) for key, n in free.items()}, held)
