"""Truth, slowly: written with nothing but the definition of a work-conserving cycle."""

from math import comb, prod

from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.program import BARRIER
from makespan.result import Bounds
from makespan.schedule import Schedule
from makespan.simulate.semantics import State, finished, released, selections, starts, steps


def standing(instance: Instance, *places: int) -> State:
    """The state in which the warps stand at these places, with no latency to pass and no port held."""
    past = () if instance.machine.scheduler is Scheduler.ANY else ((0, 1),) * len(places)
    return State(places, (0,) * len(places), ((),) * len(instance.machine.units), past)


def brute_force(instance: Instance) -> Bounds:
    """The shortest and the longest work-conserving schedule, in cycles; equal states are walked once."""
    frontier, cycles, lengths = set(starts(instance)), 0, []
    while frontier:
        cycles += 1
        frontier = {after for state in frontier for after in steps(instance, state)}
        ended = {state for state in frontier if finished(instance, state)}
        if ended:
            frontier -= ended
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def obeys(instance: Instance, schedule: Schedule) -> bool:
    """Whether `schedule` is one of the runs that the definition allows, from a start to the end of all warps."""
    programs = tuple(instance.programs())
    if len(schedule.paths) != len(programs) or not all(schedule.paths):
        return False
    if any(path[0] not in program.starts for path, program in zip(schedule.paths, programs, strict=True)):
        return False
    state = standing(instance, *(path[0] for path in schedule.paths))
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies = [list(row) for row in schedule.latencies]
    for executing in (None, *schedule.cycles):
        if executing is not None:
            if finished(instance, state) or tuple(sorted(executing)) not in set(selections(instance, state)):
                return False
            expected = _after(instance, state, executing, left, latencies)
            if expected is None:
                return False
            state = expected
        while passing := released(instance, state):
            moved = {warp: left[warp].pop(0) for warp in passing}
            if any(to not in programs[w].places[state.places[w]].successors for w, to in moved.items()):
                return False
            state = state._replace(places=tuple(moved.get(warp, place) for warp, place in enumerate(state.places)))
    return finished(instance, state)


def _after(
    instance: Instance, state: State, executing: tuple[int, ...], left: list[list[int]], latencies: list[list[int]]
) -> State | None:
    """The state after these warps have issued what their paths say; None where they may not."""
    programs = tuple(instance.programs())
    past = [
        (
            age + 1 if not wait and at < program.end and program.places[at].unit != BARRIER else 0,
            since + 1,
        )
        for program, at, wait, (age, since) in zip(programs, state.places, state.waits, state.past, strict=False)
    ]
    places, waits = list(state.places), [max(0, wait - 1) for wait in state.waits]
    held = [[left - 1 for left in ports if left > 1] for ports in state.held]
    for warp in executing:
        place = programs[warp].places[places[warp]]
        number = list(instance.machine.capacities).index(place.unit)
        unit = instance.machine.units[number]
        target = left[warp].pop(0)
        latency = latencies[warp].pop(0) if latencies else unit.latency.least
        if target not in place.successors or not unit.latency.least <= latency <= unit.latency.most:
            return None
        if not latencies and unit.latency.least != unit.latency.most:
            return None
        places[warp], waits[warp] = target, latency - 1
        if past:
            past[warp] = 0, 1
        held[number] += [unit.interval - 1] if unit.interval > 1 else []
    return State(tuple(places), tuple(waits), tuple(tuple(sorted(ports)) for ports in held), tuple(past))


def count_states(instance: Instance) -> int:
    """How many count states there are: in how many ways each group's warps can stand on its places."""
    return prod(comb(group.program.end + group.warps, group.warps) for group in instance.groups)
