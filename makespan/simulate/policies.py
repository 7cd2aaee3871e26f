"""Scheduling policies that hardware uses, run on the plain machine."""

from collections.abc import Callable, Sequence

from makespan.instance import Instance
from makespan.schedule import Schedule
from makespan.simulate.semantics import State, finished, moved, ready, released, starts

Policy = Callable[[Sequence[int], int], Sequence[int]]
"""(ready warps, capacity) -> the warps that execute."""


def loose_round_robin() -> Policy:
    """The turn passes on: first the ready warps after the one that executed last, in a circle."""
    last = -1

    def order(warps: Sequence[int], capacity: int) -> Sequence[int]:
        nonlocal last
        turn = sorted(warps, key=lambda warp: (warp <= last, warp))[:capacity]
        last = turn[-1]
        return turn

    return order


def oldest_first() -> Policy:
    """Always the ready warps with the smallest numbers."""
    return lambda warps, capacity: sorted(warps)[:capacity]


POLICIES: dict[str, Callable[[], Policy]] = {"lrr": loose_round_robin, "oldest": oldest_first}
"""Policies by the name used on the command line; each unit class gets one of its own."""


def run(instance: Instance, policy: str) -> Schedule:
    """The schedule that `policy` makes with the largest latencies, of paths that always take the first successor."""
    programs = tuple(instance.programs())
    units = {unit.name: unit for unit in instance.machine.units}
    arbiters = {unit: POLICIES[policy]() for unit in units}
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    cycles = []

    def past_barriers(state: State) -> State:
        while passing := released(instance, state):
            places = list(state.places)
            for warp in passing:
                paths[warp].append(places[warp])
                places[warp] = programs[warp].places[places[warp]].successors[0]
            state = state._replace(places=tuple(places))
        return state

    state = past_barriers(next(starts(instance, pass_barriers=False)))
    while not finished(instance, state):
        waiting, executing, moves = ready(instance, state), list[int](), list[tuple[int, int, int]]()
        slots = instance.machine.issue_width or len(programs)
        for unit, ports in zip(units.values(), state.held, strict=True):
            free = min(unit.capacity - len(ports), slots - len(executing))
            if free and waiting[unit.name]:
                executing += arbiters[unit.name](waiting[unit.name], free)
        for warp in executing:
            at = state.places[warp]
            place = programs[warp].places[at]
            paths[warp].append(at)
            latencies[warp].append(units[place.unit].latency.most)
            moves.append((warp, place.successors[0], latencies[warp][-1]))
        state = past_barriers(moved(instance, state, moves))
        cycles.append(tuple(sorted(executing)))
    chosen = () if instance.machine.fixed_latencies else tuple(map(tuple, latencies))
    return Schedule(tuple(cycles), tuple(map(tuple, paths)), chosen)
