"""The definition of a work-conserving cycle, written to be read; everything else is tested against it.

A state says for every warp at which place it stands (`program.end` once it has finished). A warp at a barrier is not
ready; as soon as all unfinished warps of a block stand at barriers they pass, which takes no time.
"""

from collections.abc import Iterator
from itertools import combinations, product

from makespan.instance import Instance
from makespan.program import BARRIER

State = tuple[int, ...]


def starts(instance: Instance) -> Iterator[State]:
    """Every way in which the warps can begin."""
    for state in product(*(program.starts for program in instance.programs())):
        yield from settled(instance, state)


def released(instance: Instance, state: State) -> tuple[int, ...]:
    """The warps of one block that all stand at barriers, as no other unfinished warp of it does not; () if none."""
    programs, blocks = tuple(instance.programs()), instance.block_of_warp()
    for block in range(instance.blocks if instance.has_barriers else 0):
        warps = [w for w, place in enumerate(state) if blocks[w] == block and place != programs[w].end]
        if warps and all(programs[warp].places[state[warp]].unit == BARRIER for warp in warps):
            return tuple(warps)
    return ()


def settled(instance: Instance, state: State) -> Iterator[State]:
    """Every state in which the warps may be once those at barriers that can pass have passed."""
    warps = released(instance, state)
    if not warps:
        yield state
        return
    programs = tuple(instance.programs())
    for targets in product(*(programs[warp].places[state[warp]].successors for warp in warps)):
        passed = dict(zip(warps, targets, strict=True))
        yield from settled(instance, tuple(passed.get(warp, place) for warp, place in enumerate(state)))


def ready(instance: Instance, state: State) -> dict[str, list[int]]:
    """For every unit class the warps whose next instruction needs it."""
    waiting: dict[str, list[int]] = {unit: [] for unit in instance.machine.capacities}
    for warp, (program, place) in enumerate(zip(instance.programs(), state, strict=True)):
        if place != program.end and (unit := program.places[place].unit) != BARRIER:
            waiting[unit].append(warp)
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
            yield from settled(instance, tuple(after))
