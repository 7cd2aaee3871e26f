"""The definition of a work-conserving cycle, written to be read. Everything else is tested against it.

The rules stand in docs/model.md. A warp at a barrier is not ready; as soon as all unfinished warps of a block stand at
barriers they pass, which takes no time. Where programs have lapses, the adversary may first keep warps out of a cycle.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES, PlaceLapses
from makespan.model.machine import Machine, SchedulerPromise, UnitClass
from makespan.model.program import BARRIER, Program
from makespan.model.schedule import WHOLE_SM
from makespan.model.simulate.lapses import LapseState, Withheld


class SmState(NamedTuple):
    """The state of an SM at the beginning of a cycle.

    Args:
        places: the place that every warp executes next; `program.end` if it has finished.
        waits: the cycles until every warp may go on, because of the latency or stall of its last instruction.
        held: the cycles for which each port in use is still held, by pool of the machine, sorted.
        past: the cycles for which every warp has been ready, and those since its last issue (or, if it has not issued,
            since the cycle before the first); () if the scheduler promises nothing, because then they do not matter.
        partitions: the partition of every warp; () if there is one.
        pending: the pending tokens of every warp, in order, each with the cycles for which it is still pending; () if
            no warp runs ahead.
        lapses: the lapses and windows that are left to the adversary; None if no program has any.
    """

    places: tuple[int, ...]
    waits: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    past: tuple[tuple[int, int], ...] = ()
    partitions: tuple[int, ...] = ()
    pending: tuple[tuple[tuple[int, int], ...], ...] = ()
    lapses: LapseState | None = None


class WarpIssue(NamedTuple):
    """The issue of an instruction: its warp goes on to the place `target` after `latency` cycles.

    `uses` has a pair for each use of its class: (which of the resources, cycles).
    """

    warp: int
    target: int
    latency: int
    uses: tuple[tuple[int, int], ...] = ()


def start_states(instance: Instance, *, pass_barriers: bool = True) -> Iterator[SmState]:
    """Yield every state in which the warps can begin. `pass_barriers` lets those at barriers pass first."""
    waits, held = (0,) * instance.warps, ((),) * len(instance.machine.pools)
    past = () if instance.machine.scheduler is SchedulerPromise.ANY else ((0, 1),) * instance.warps
    pending = ((),) * instance.warps if instance.runs_ahead else ()
    lapses = LapseState.of(tuple(instance.programs()), instance.machine.partitions)
    for partitions in instance.assignments():
        for places in product(*(program.starts for program in instance.programs())):
            named = partitions if instance.machine.partitions > 1 else ()
            begun = _come(instance, SmState(places, waits, held, past, named, pending, lapses), range(instance.warps))
            yield from settled_states(instance, begun) if pass_barriers else (begun,)


def has_finished(instance: Instance, state: SmState) -> bool:
    """Return whether every warp has executed its path and waits for nothing."""
    ends = tuple(program.end for program in instance.programs())
    return state.places == ends and not any(state.waits) and not any(state.pending)


def passing_barrier(instance: Instance, state: SmState) -> tuple[int, ...]:
    """Return the warps of a block whose unfinished warps all stand at barriers, or () if there is no such block."""
    programs, blocks = tuple(instance.programs()), instance.block_of_warp()
    for block in range(instance.blocks if instance.has_barriers else 0):
        # a warp at its end is still there while its last latency passes or its tokens are pending
        unfinished = [
            warp
            for warp, place in enumerate(state.places)
            if blocks[warp] == block and (place != programs[warp].end or state.waits[warp] or _pending(state, warp))
        ]
        if unfinished and all(_has_arrived(programs[warp], state, warp) for warp in unfinished):
            return tuple(unfinished)
    return ()


def _has_arrived(program: Program, state: SmState, warp: int) -> bool:
    """Return whether a warp stands at a barrier, and is not withheld before it."""
    return _next_unit(program, state, warp) == BARRIER and (state.lapses is None or state.lapses.arrived[warp])


def _pending(state: SmState, warp: int) -> tuple[tuple[int, int], ...]:
    return state.pending[warp] if state.pending else ()


def _partition(state: SmState, warp: int) -> int:
    return state.partitions[warp] if state.partitions else 0


def _next_unit(program: Program, state: SmState, warp: int) -> str:
    """Return the class that a warp can execute next, a barrier, or "" while a latency, stall or token holds it back."""
    at = state.places[warp]
    if state.waits[warp] or at == program.end:
        return ""
    is_pending = any(token in program.timings[at].awaits for token, _ in _pending(state, warp))
    return "" if is_pending else program.places[at].unit


def settled_states(instance: Instance, state: SmState) -> Iterator[SmState]:
    """Yield every state in which the warps may be after those at barriers that can pass have passed."""
    for begun in _arrivals(instance, state):
        warps = passing_barrier(instance, begun)
        if not warps:
            yield begun
            continue
        programs = tuple(instance.programs())
        for targets in product(*(programs[warp].places[begun.places[warp]].successors for warp in warps)):
            passed = dict(zip(warps, targets, strict=True))
            places = tuple(passed.get(warp, place) for warp, place in enumerate(begun.places))
            yield from settled_states(instance, _come(instance, begun._replace(places=places), warps))


def _arrivals(instance: Instance, state: SmState) -> Iterator[SmState]:
    """Yield the state after every choice of warps that are withheld in this cycle before they arrive at barriers."""
    if state.lapses is None:
        yield state
        return
    late = {warp for warp, _ in state.lapses.late}
    coming = [
        warp
        for warp, program in enumerate(instance.programs())
        if warp not in late and not state.lapses.arrived[warp] and _next_unit(program, state, warp) == BARRIER
    ]
    for withheld, left in _withholdings(instance, state, state.lapses, coming):
        arriving = set(coming) - {warp for warp, _ in withheld}
        yield state._replace(lapses=left.arrive(arriving, withheld))


def _withholdings(
    instance: Instance, state: SmState, lapses: LapseState, warps: Iterable[int]
) -> Iterator[tuple[tuple[Withheld, ...], LapseState]]:
    """Yield every choice of these warps, which are ready, that are withheld in this cycle, and what is left then."""
    programs = tuple(instance.programs())
    found: dict[tuple[tuple[Withheld, ...], LapseState], None] = {((), lapses): None}
    for warp in warps:
        place, part = _lapses_of(programs[warp], state.places[warp]), _partition(state, warp)
        for withheld, left in tuple(found):
            found |= {((*withheld, each), after): None for each, after in left.withhold(warp, part, place)}
    yield from found


def _come(instance: Instance, state: SmState, warps: Iterable[int]) -> SmState:
    """Return the state after these warps have come to their places."""
    if state.lapses is None:
        return state
    programs, lapses = tuple(instance.programs()), state.lapses
    for warp in warps:
        lapses = lapses.come(warp, _partition(state, warp), _lapses_of(programs[warp], state.places[warp]))
    return state._replace(lapses=lapses)


def _lapses_of(program: Program, place: int) -> PlaceLapses:
    return program.lapses[place] if program.lapses and place < program.end else NO_LAPSES


def ready_warps(instance: Instance, state: SmState) -> dict[str, list[int]]:
    """Return, for every unit class, the warps that could issue an instruction of it now."""
    waiting: dict[str, list[int]] = {unit: [] for unit in instance.machine.capacities}
    for warp, program in enumerate(instance.programs()):
        if (unit := _next_unit(program, state, warp)) and unit != BARRIER:
            waiting[unit].append(warp)
    return waiting


class Disturbance(NamedTuple):
    """The lapses of a cycle, and the warps that are not ready in it although they could be.

    Args:
        state: the state at the beginning of the cycle, with what is left to the adversary after this.
        lapsing: the partitions that lapse; `WHOLE_SM` stands for all of them at once.
        withheld: the warps that are withheld, those before barriers among them.
    """

    state: SmState
    lapsing: tuple[int, ...] = ()
    withheld: tuple[Withheld, ...] = ()

    @property
    def kept_out(self) -> frozenset[int]:
        """Return the warps that cannot issue in this cycle because of this."""
        warps = range(len(self.state.places) if self.lapsing else 0)
        lapsing = (w for w in warps if {WHOLE_SM, _partition(self.state, w)} & set(self.lapsing))
        return frozenset((*lapsing, *(warp for warp, _ in self.withheld)))


def disturbances(instance: Instance, state: SmState) -> Iterator[Disturbance]:
    """Yield every way to disturb a cycle; one without lapses if no program has any."""
    if state.lapses is None:
        yield Disturbance(state)
        return
    ready = sorted(chain.from_iterable(ready_warps(instance, state).values()))
    for withheld, left in _withholdings(instance, state, state.lapses, ready):
        others = set(ready) - {warp for warp, _ in withheld}
        for lapsing, after in left.lapse({_partition(state, warp) for warp in others}):
            yield Disturbance(state._replace(lapses=after), lapsing, (*state.lapses.late, *withheld))


def pools_taken(machine: Machine, unit: UnitClass, partition: int, chosen: Iterable[int]) -> tuple[int, ...]:
    """Return the pools, by number, of which an instruction takes a port: its class, then the chosen resources."""
    number = machine.number_of_pool[partition]
    return (number[unit.name], *(number[use.resources[n]] for use, n in zip(unit.uses, chosen, strict=True)))


def issue_sets(
    instance: Instance, state: SmState, kept_out: Collection[int] = ()
) -> Iterator[dict[int, tuple[int, ...]]]:
    """Yield every set of warps that may issue in this cycle, each warp with the resources that it chooses for its uses.

    Every set is work-conserving: no ready warp that is left out could be added, but those that are `kept_out`. And it
    keeps what the scheduler promises.
    """
    machine, waiting = instance.machine, ready_warps(instance, state)
    free = [pool.capacity - len(ports) for pool, ports in zip(machine.pools, state.held, strict=True)]
    slot = len(free)  # issue slots are ports, too: a pool more for each partition
    free += [instance.warps if machine.issue_width is None else machine.issue_width] * machine.partitions
    needs = {
        (warp, chosen): (*pools_taken(machine, unit, part, chosen), slot + part)
        for unit in machine.units
        for warp in waiting[unit.name]
        if warp not in kept_out
        for part in (_partition(state, warp),)
        for chosen in product(*(range(len(use.resources)) for use in unit.uses))
    }
    warps = sorted({warp for warp, _ in needs})
    ways = {warp: [chosen for other, chosen in needs if other == warp] for warp in warps}

    def fits(warp: int, left: Sequence[int]) -> bool:
        return any(all(left[pool] for pool in needs[warp, chosen]) for chosen in ways[warp])

    def sets(at: int, left: list[int], taken: dict[int, tuple[int, ...]]) -> Iterator[dict[int, tuple[int, ...]]]:
        if at == len(warps):  # every ready warp is either taken or passed over
            passed = [warp for warp in warps if warp not in taken]
            # work conservation: the set is maximal
            if not any(fits(warp, left) for warp in passed) and is_allowed(taken, passed, left):
                yield taken
            return
        for chosen in ways[warps[at]]:
            if all(left[pool] for pool in needs[warps[at], chosen]):
                yield from sets(at + 1, _change_ports(left, needs[warps[at], chosen], -1), {**taken, warps[at]: chosen})
        yield from sets(at + 1, left, taken)  # the warp is passed over

    def is_allowed(taken: Mapping[int, tuple[int, ...]], passed: Iterable[int], left: list[int]) -> bool:
        """Return whether no warp goes before one that could issue instead, is ready for longer, and issued earlier."""
        return machine.scheduler is SchedulerPromise.ANY or not any(
            all(a > b for a, b in zip(state.past[z], state.past[w], strict=True))
            and fits(z, _change_ports(left, needs[w, chosen], 1))
            for z in passed
            for w, chosen in taken.items()
        )

    yield from sets(0, free, {})


def _change_ports(left: Sequence[int], pools: Iterable[int], change: int) -> list[int]:
    return [count + change * (pool in pools) for pool, count in enumerate(left)]


def issuing_warps(instance: Instance, state: SmState) -> Iterator[tuple[int, ...]]:
    """Yield the warps of each set of `issue_sets`. The set is empty if no ready warp finds a free port."""
    yield from dict.fromkeys(tuple(sorted(taken)) for taken in issue_sets(instance, state))


def issue_outcomes(instance: Instance, state: SmState, warp: int, chosen: Iterable[int]) -> Iterator[WarpIssue]:
    """Yield every outcome of an instruction that is issued now: its successor, its latency, and what it holds."""
    program, at = next(islice(instance.programs(), warp, None)), state.places[warp]
    place = program.places[at]
    unit = next(unit for unit in instance.machine.units if unit.name == place.unit)
    least, most = program.timings[at].latency if program.timings else (unit.latency.least, unit.latency.most)
    intervals = (range(use.least, use.most + 1) for use in unit.uses)
    for target, latency, *cycles in product(place.successors, range(least, most + 1), *intervals):
        yield WarpIssue(warp, target, latency, tuple(zip(chosen, cycles, strict=True)))


def next_state(
    instance: Instance, state: SmState, moves: Iterable[WarpIssue], withheld: Iterable[Withheld] = ()
) -> SmState:
    """Return the state one cycle later, after these warps have issued, and others have been withheld."""
    machine, programs = instance.machine, tuple(instance.programs())
    units = {unit.name: unit for unit in machine.units}
    places, waits = list(state.places), [max(0, wait - 1) for wait in state.waits]
    # a port that is held for one more cycle is free in the next state
    held = [[left - 1 for left in ports if left > 1] for ports in state.held]
    pending = [{token: left - 1 for token, left in tokens if left > 1} for tokens in state.pending]
    waiting = {warp for warps in ready_warps(instance, state).values() for warp in warps} if state.past else set[int]()
    waiting -= {warp for warp, _ in withheld}
    issued = set[int]()
    for warp, target, latency, uses in moves:
        program, at = programs[warp], state.places[warp]
        unit, timing = units[program.places[at].unit], program.timings[at] if program.timings else None
        taken = pools_taken(machine, unit, _partition(state, warp), (which for which, _ in uses))
        for pool, cycles in zip(taken, (unit.interval, *(cycles for _, cycles in uses)), strict=True):
            held[pool] += [cycles - 1] * (cycles > 1)
        places[warp], waits[warp] = target, (latency if timing is None else timing.stall) - 1
        # a token is pending as long as any instruction that set it is not done
        for token in timing.sets if timing and latency > 1 else ():
            pending[warp][token] = max(latency - 1, pending[warp].get(token, 0))
        issued.add(warp)
    past = tuple(
        (0, 1) if warp in issued else (age + 1 if warp in waiting else 0, since + 1)
        for warp, (age, since) in enumerate(state.past)
    )
    ports = tuple(tuple(sorted(left)) for left in held)
    tokens = tuple(tuple(sorted(left.items())) for left in pending)
    lapses = None if state.lapses is None else state.lapses.next_cycle()
    after = SmState(tuple(places), tuple(waits), ports, past, state.partitions, tokens, lapses)
    return _come(instance, after, sorted(issued))


def next_states(instance: Instance, state: SmState) -> Iterator[SmState]:
    """Yield every state that may follow `state` one cycle later; none once all warps have finished."""
    if has_finished(instance, state):
        return
    for cycle in disturbances(instance, state):
        for taken in issue_sets(instance, cycle.state, cycle.kept_out):
            ways = [list(issue_outcomes(instance, state, warp, chosen)) for warp, chosen in taken.items()]
            for moves in product(*ways):
                yield from settled_states(instance, next_state(instance, cycle.state, moves, cycle.withheld))
