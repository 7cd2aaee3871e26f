"""Truth, slowly: written with nothing but the definition of a work-conserving cycle."""

from collections.abc import Iterable
from math import comb, prod

from makespan.instance import Instance
from makespan.result import Bounds
from makespan.schedule import Schedule
from makespan.simulate.semantics import released, selections, starts, steps


def brute_force(instance: Instance) -> Bounds:
    """The shortest and the longest work-conserving schedule, in cycles; equal states are walked once."""
    finished = tuple(program.end for program in instance.programs())
    frontier, cycles, lengths = set(starts(instance)), 0, []
    while frontier:
        cycles += 1
        frontier = {after for state in frontier for after in steps(instance, state)}
        if finished in frontier:
            frontier.remove(finished)
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def obeys(instance: Instance, schedule: Schedule) -> bool:
    """Whether `schedule` is one of the runs that the definition allows, from a start to the end of all warps."""
    programs = tuple(instance.programs())
    if len(schedule.paths) != len(programs) or not all(schedule.paths):
        return False
    state = tuple(path[0] for path in schedule.paths)
    if any(place not in program.starts for place, program in zip(state, programs, strict=True)):
        return False
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]

    def move(warps: Iterable[int]) -> bool:
        """Whether these warps can go on as their paths say; if so, they have."""
        nonlocal state
        moved = {warp: left[warp].pop(0) for warp in warps}
        state_before, state = state, tuple(moved.get(warp, place) for warp, place in enumerate(state))
        return all(place in programs[warp].places[state_before[warp]].successors for warp, place in moved.items())

    for executing in (None, *schedule.cycles):
        if executing is not None and (
            not executing or tuple(sorted(executing)) not in set(selections(instance, state)) or not move(executing)
        ):
            return False
        while passing := released(instance, state):
            if not move(passing):
                return False
    return state == tuple(program.end for program in programs)


def count_states(instance: Instance) -> int:
    """How many count states there are: in how many ways each group's warps can stand on its places."""
    return prod(comb(group.program.end + group.warps, group.warps) for group in instance.groups)
