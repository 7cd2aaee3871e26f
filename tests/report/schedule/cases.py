"""Random schedules of general machines, and what happens in every cycle of them, by the definition alone."""

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from makespan.instance import Instance
from makespan.machine import Machine, UnitClass
from makespan.program import BARRIER
from makespan.report.schedule.activity import Why
from makespan.schedule import Schedule
from makespan.simulate.semantics import Issue, State, finished, moved, ready, released
from tests.oracle import standing
from tests.strategies import barrier_instances, general_instances, general_machines, runs

Case = tuple[Instance, Schedule]

ISSUES = "issues"


class Cycle(NamedTuple):
    """What happens in a cycle.

    Args:
        doing: of every warp that has not finished, what it does and the class that it has to do with.
        free: of every class how many ports are idle, and why.
    """

    doing: dict[int, tuple[str, str]]
    free: dict[str, tuple[int, Why]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schedule of a few warps, with or without barriers, on a general machine."""
    instance = draw(general_instances(most=4) | _barriers())
    return instance, draw(runs(instance))


@st.composite
def _barriers(draw: st.DrawFn) -> Instance:
    plain = draw(barrier_instances())
    machine = draw(general_machines(most_classes=2))
    units = {unit.name: unit for unit in machine.units}
    chosen = tuple(units.get(name, UnitClass(name, 1, 2)) for name in plain.machine.capacities)
    return Instance(plain.groups, Machine("general", chosen, machine.issue_width), plain.blocks)


def cycle_by_cycle(instance: Instance, schedule: Schedule) -> Iterator[Cycle]:
    """Run the schedule on the machine as it is defined, and tell what happens in every cycle."""
    programs = tuple(instance.programs())
    state = standing(instance, *(path[0] for path in schedule.paths))
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies = [iter(row) for row in schedule.latencies]
    fixed = {unit.name: unit.latency.least for unit in instance.machine.units}
    stalling = [""] * len(programs)

    def past_barriers(state: State) -> State:
        while passing := released(instance, state):
            after = {warp: left[warp].pop(0) for warp in passing}
            state = state._replace(places=tuple(after.get(warp, at) for warp, at in enumerate(state.places)))
        return state

    state = past_barriers(state)
    for issuing in schedule.cycles:
        assert not finished(instance, state)
        yield _cycle(instance, state, issuing, stalling)
        moves = []
        for warp in issuing:
            unit = programs[warp].places[state.places[warp]].unit
            stalling[warp] = unit
            moves.append(Issue(warp, left[warp].pop(0), next(latencies[warp]) if latencies else fixed[unit]))
        state = past_barriers(moved(instance, state, moves))
    assert finished(instance, state)


def _cycle(instance: Instance, state: State, issuing: tuple[int, ...], stalling: list[str]) -> Cycle:
    programs = tuple(instance.programs())
    unit_of = [
        program.places[at].unit if at < program.end else "" for program, at in zip(programs, state.places, strict=True)
    ]
    free = {
        unit.name: unit.capacity - len(held) - sum(unit_of[warp] == unit.name for warp in issuing)
        for unit, held in zip(instance.machine.units, state.held, strict=True)
    }
    doing: dict[int, tuple[str, str]] = {}
    for warp, unit in enumerate(unit_of):
        if warp in issuing:
            doing[warp] = ISSUES, unit
        elif state.waits[warp]:
            doing[warp] = Why.STALLED, stalling[warp]
        elif unit == BARRIER:
            doing[warp] = Why.BARRIER, unit
        elif unit:
            doing[warp] = Why.SLOT if free[unit] else Why.PORT, unit
    left_out = {unit for unit, warps in ready(instance, state).items() if set(warps) - set(issuing)}
    return Cycle(doing, {unit: (n, Why.SLOT if unit in left_out else Why.NOBODY) for unit, n in free.items() if n})
