"""The definition of a work-conserving cycle, written to be read; everything else is tested against it.

The rules stand in docs/model.md. A warp at a barrier is not ready; as soon as all unfinished warps of a block stand at
barriers they pass, which takes no time.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import NamedTuple

from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.program import BARRIER


class State(NamedTuple):
    """What the past leaves behind at the beginning of a cycle.

    Args:
        places: for every warp the place that it executes next; `program.end` if there is none.
        waits: for every warp the cycles until it may go on, because of the latency of its last instruction.
        held: for every class, in the order of the machine, the cycles for which each port in use is still held, sorted.
        past: for every warp the cycles for which it has been ready, and those since its last issue (if there is none,
            since the cycle before the first); () where the scheduler promises nothing, so that nobody asks.
    """

    places: tuple[int, ...]
    waits: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    past: tuple[tuple[int, int], ...] = ()


def starts(instance: Instance, *, pass_barriers: bool = True) -> Iterator[State]:
    """Every way in which the warps can begin; with `pass_barriers`, after the barriers at which they all begin."""
    waits, held = (0,) * instance.warps, ((),) * len(instance.machine.units)
    past = () if instance.machine.scheduler is Scheduler.ANY else ((0, 1),) * instance.warps
    for places in product(*(program.starts for program in instance.programs())):
        begun = State(places, waits, held, past)
        yield from settled(instance, begun) if pass_barriers else (begun,)


def finished(instance: Instance, state: State) -> bool:
    """Whether no warp has anything left to do or to wait for."""
    ends = tuple(program.end for program in instance.programs())
    return state.places == ends and not any(state.waits)


def released(instance: Instance, state: State) -> tuple[int, ...]:
    """The warps of one block that all stand at barriers, as no other unfinished warp of it does not; () if none."""
    programs, blocks = tuple(instance.programs()), instance.block_of_warp()
    for block in range(instance.blocks if instance.has_barriers else 0):
        unfinished = [
            warp
            for warp, (place, wait) in enumerate(zip(state.places, state.waits, strict=True))
            if blocks[warp] == block and (place != programs[warp].end or wait)
        ]
        if unfinished and all(_at_barrier(programs[warp].places, state, warp) for warp in unfinished):
            return tuple(unfinished)
    return ()


def _at_barrier(places: tuple[tuple[str, tuple[int, ...]], ...], state: State, warp: int) -> bool:
    place = state.places[warp]
    return not state.waits[warp] and place < len(places) and places[place][0] == BARRIER


def settled(instance: Instance, state: State) -> Iterator[State]:
    """Every state in which the warps may be once those at barriers that can pass have passed."""
    warps = released(instance, state)
    if not warps:
        yield state
        return
    programs = tuple(instance.programs())
    for targets in product(*(programs[warp].places[state.places[warp]].successors for warp in warps)):
        passed = dict(zip(warps, targets, strict=True))
        places = tuple(passed.get(warp, place) for warp, place in enumerate(state.places))
        yield from settled(instance, state._replace(places=places))


def ready(instance: Instance, state: State) -> dict[str, list[int]]:
    """For every unit class the warps that could issue an instruction of it now."""
    waiting: dict[str, list[int]] = {unit: [] for unit in instance.machine.capacities}
    for warp, (program, place) in enumerate(zip(instance.programs(), state.places, strict=True)):
        if place != program.end and not state.waits[warp] and (unit := program.places[place].unit) != BARRIER:
            waiting[unit].append(warp)
    return waiting


def selections(instance: Instance, state: State) -> Iterator[tuple[int, ...]]:
    """Every set of warps that may issue in this cycle; the empty set where none is ready or finds a free port.

    Work conservation: no ready warp that is left out could be added. And what the scheduler promises is kept.
    """
    waiting = ready(instance, state)
    most = [
        min(unit.capacity - len(ports), len(waiting[unit.name]))
        for unit, ports in zip(instance.machine.units, state.held, strict=True)
    ]
    width = instance.machine.issue_width
    total = sum(most) if width is None else min(width, sum(most))
    for counts in product(*(range(n + 1) for n in most)):
        if sum(counts) == total:
            per_class = (combinations(warps, n) for warps, n in zip(waiting.values(), counts, strict=True))
            for chosen in product(*per_class):
                issuing = tuple(sorted(warp for warps in chosen for warp in warps))
                if instance.machine.scheduler is Scheduler.ANY or _is_fair(instance, state, issuing):
                    yield issuing


def _is_fair(instance: Instance, state: State, issuing: tuple[int, ...]) -> bool:
    """Whether no warp goes before one that could issue in its stead, is ready for longer, and issued longer ago."""
    waiting, served = ready(instance, state), set(issuing)
    for unit, ports in zip(instance.machine.units, state.held, strict=True):
        ours = served.intersection(waiting[unit.name])
        stead = served if len(ports) + len(ours) < unit.capacity else ours  # a free port, or that of its own class
        left_out = set(waiting[unit.name]) - served
        if any(all(a > b for a, b in zip(state.past[z], state.past[w], strict=True)) for z in left_out for w in stead):
            return False
    return True


def moved(instance: Instance, state: State, moves: Iterable[tuple[int, int, int]]) -> State:
    """The state after a cycle in which of each (warp, place, latency) the warp issues and goes on to the place."""
    programs, classes = tuple(instance.programs()), {unit.name: n for n, unit in enumerate(instance.machine.units)}
    places, waits = list(state.places), [max(0, wait - 1) for wait in state.waits]
    held = [[left - 1 for left in ports if left > 1] for ports in state.held]
    waiting = {warp for warps in ready(instance, state).values() for warp in warps} if state.past else set[int]()
    issued = set[int]()
    for warp, target, latency in moves:
        number = classes[programs[warp].places[state.places[warp]].unit]
        if (interval := instance.machine.units[number].interval) > 1:
            held[number].append(interval - 1)
        places[warp], waits[warp] = target, latency - 1
        issued.add(warp)
    past = tuple(
        (0, 1) if warp in issued else (age + 1 if warp in waiting else 0, since + 1)
        for warp, (age, since) in enumerate(state.past)
    )
    return State(tuple(places), tuple(waits), tuple(tuple(sorted(ports)) for ports in held), past)


def steps(instance: Instance, state: State) -> Iterator[State]:
    """Every state that may follow `state` one cycle later; none once all warps have finished."""
    if finished(instance, state):
        return
    programs, latencies = tuple(instance.programs()), {unit.name: unit.latency for unit in instance.machine.units}
    for issuing in selections(instance, state):
        places = [programs[warp].places[state.places[warp]] for warp in issuing]
        targets = product(*(place.successors for place in places))
        cycles = product(*(range(latencies[p.unit].least, latencies[p.unit].most + 1) for p in places))
        for chosen, times in product(targets, cycles):
            yield from settled(instance, moved(instance, state, zip(issuing, chosen, times, strict=True)))
