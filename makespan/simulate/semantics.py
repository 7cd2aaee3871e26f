"""The definition of a work-conserving cycle, written to be read; everything else is tested against it.

A state says for every warp at which place it stands (`program.end` once it has finished).
"""

from collections.abc import Iterator
from itertools import combinations, product

from makespan.instance import Instance

State = tuple[int, ...]


def starts(instance: Instance) -> Iterator[State]:
    """Every way in which the warps can begin."""
    return product(*(program.starts for program in instance.programs()))


def ready(instance: Instance, state: State) -> dict[str, list[int]]:
    """For every unit class the warps whose next instruction needs it."""
    waiting: dict[str, list[int]] = {unit: [] for unit in instance.machine.capacities}
    for warp, (program, place) in enumerate(zip(instance.programs(), state, strict=True)):
        if place != program.end:
            waiting[program.places[place].unit].append(warp)
    return waiting


def selections(instance: Instance, state: State) -> Iterator[tuple[int, ...]]:
    """Every set of warps that may execute in this cycle.

    Work conservation: of every class exactly min(capacity, number of ready warps) execute.
    """
    capacities = instance.machine.capacities
    per_class = (
        combinations(warps, min(capacities[unit], len(warps))) for unit, warps in ready(instance, state).items()
    )
    for chosen in product(*per_class):
        yield tuple(sorted(warp for warps in chosen for warp in warps))


def steps(instance: Instance, state: State) -> Iterator[State]:
    """Every state that may follow `state` one cycle later; none once all warps have finished."""
    programs = tuple(instance.programs())
    for executing in selections(instance, state):
        if not executing:
            return
        for targets in product(*(programs[warp].places[state[warp]].successors for warp in executing)):
            after = list(state)
            for warp, target in zip(executing, targets, strict=True):
                after[warp] = target
            yield tuple(after)
