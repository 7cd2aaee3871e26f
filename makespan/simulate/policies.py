"""Scheduling policies that hardware uses, run on the plain machine."""

from collections.abc import Callable, Sequence

from makespan.instance import Instance
from makespan.schedule import Schedule
from makespan.simulate.semantics import ready, released

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
    """The schedule that `policy` makes of chains, or of the paths that always take the first successor."""
    programs = tuple(instance.programs())
    capacities = instance.machine.capacities
    arbiters = {unit: POLICIES[policy]() for unit in capacities}
    state = [program.starts[0] for program in programs]
    paths: list[list[int]] = [[] for _ in programs]
    cycles = []

    def move(warps: Sequence[int]) -> None:
        for warp in warps:
            paths[warp].append(state[warp])
            state[warp] = programs[warp].places[state[warp]].successors[0]

    def pass_barriers() -> None:
        while passing := released(instance, tuple(state)):
            move(passing)

    pass_barriers()
    while waiting := {unit: warps for unit, warps in ready(instance, tuple(state)).items() if warps}:
        executing = sorted(w for unit, warps in waiting.items() for w in arbiters[unit](warps, capacities[unit]))
        move(executing)
        pass_barriers()
        cycles.append(tuple(executing))
    return Schedule(tuple(cycles), tuple(map(tuple, paths)))
