"""Barriers on real multiprocessors, for the checker: what results and ports that reach over one can do behind it.

These are the hypotheses of proposition P' (docs/theory.md, 7): lemma R, (iii') for tokens, and (v) for ports.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from makespan.model.instance import Instance
from makespan.model.program import BARRIER, InstructionTiming, Program
from makespan.verify.machine_form import class_holds, place_timings, pool_capacities, shared_pools
from makespan.verify.paths import keep_latest
from makespan.verify.refusal import ProofSteps

_PoolOrSetter = TypeVar("_PoolOrSetter")


class UnevenCrossing(Exception):
    """A phase is no question of its own: what is pending or held at its barrier may matter behind it."""


def timings(program: Program, work: ProofSteps) -> tuple[InstructionTiming, ...]:
    """Return the timings without the results for which no warp can wait, which lemma R leaves out.

    From place to place goes what may still be pending, by setter and token, with the most cycles for which it is when
    a warp comes there. A warp that waits for it comes before it is there.

    Raises:
        UnevenCrossing: a token that can meet a place can pass a barrier, against (iii').
        TooMuchWork: there are too many.
    """
    if not program.timings:
        return ()
    coming: dict[int, dict[tuple[int, int], int]] = {}
    awaited, left_behind = set[tuple[int, int]](), set[tuple[int, int]]()
    for at, (timing, place) in enumerate(zip(program.timings, program.places, strict=True)):
        here = coming.pop(at, {})
        met = {key for key in here if key[1] in timing.awaits}
        awaited |= met
        if place.unit == BARRIER:
            left_behind |= here.keys() - met
        pending = {(at, token): timing.latency[1] for token in timing.sets}
        after = _later(pending | {key: here[key] for key in here.keys() - met}, timing.stall)
        for target in place.successors:
            work.spend(1 + len(after))
            keep_latest(coming.setdefault(target, {}), after)
    awaited |= coming.get(program.end, {}).keys()  # the end of a program awaits everything
    if awaited & left_behind:
        raise UnevenCrossing
    return tuple(_of_setter(timing, at, awaited) for at, timing in enumerate(program.timings))


def _of_setter(timing: InstructionTiming, at: int, awaited: Collection[tuple[int, int]]) -> InstructionTiming:
    return timing._replace(sets=tuple(token for token in timing.sets if (at, token) in awaited))


def _later(cycles: Mapping[_PoolOrSetter, int], by: int) -> dict[_PoolOrSetter, int]:
    """Return what is left of these cycles some cycles later."""
    return {key: left - by for key, left in cycles.items() if left > by}


def of_phase(inside: Sequence[int], every: Sequence[InstructionTiming]) -> tuple[InstructionTiming, ...]:
    """Return the timings of the places of a phase, with tokens numbered in the order in which they are set there."""
    own = [every[at] for at in inside]
    numbers = {token: n for n, token in enumerate(dict.fromkeys(token for timing in own for token in timing.sets))}
    return tuple(
        InstructionTiming(
            timing.stall,
            timing.latency,
            tuple(sorted(numbers[token] for token in timing.sets)),
            tuple(sorted(numbers[token] for token in timing.awaits if token in numbers)),
        )
        for timing in own
    )


class Holds:
    """The ports that may be held at the beginning of phase after phase: c_k of proposition P', by pool."""

    def __init__(self, instance: Instance) -> None:
        self._units = {unit.name: unit for unit in instance.machine.units}
        self._holds = {name: class_holds(unit) for name, unit in self._units.items()}
        self._capacities, self._shared = pool_capacities(instance.machine), shared_pools(instance.machine)
        self._partitions = instance.machine.partitions
        self._held: dict[str, int] = {}

    def enter(self, pieces: Sequence[Program]) -> int:
        """Return the lag e_k of a phase: how many cycles later it may begin, at most, as no warp finds a free port.

        Raises:
            UnevenCrossing: some may find a port, and others not; or partitions that meet begin at different times.
        """
        soonest: dict[str, int] = {}
        left: dict[str, int] = {}
        quickest = 0
        for program in pieces:
            quickest = max(quickest, self._walk(program, soonest, left))
        # d_k(r) < c_k(r): a warp may ask for a port of r while an older instruction holds one
        waiting = {name for name, cycles in self._held.items() if soonest.get(name, cycles) < cycles}
        lag = max((self._held[name] for name in waiting), default=0)
        if waiting:
            self._check(pieces, waiting)
        keep_latest(left, _later(self._held, quickest))
        self._held = left
        return lag

    def _check(self, pieces: Sequence[Program], waiting: set[str]) -> None:
        """Refuse a phase some of whose warps may find a port while others wait for one of these pools."""
        units = set[str]().union(*(program.units for program in pieces))
        if self._partitions > 1 and any(self._pools(name) & self._shared for name in units):
            raise UnevenCrossing
        # (v): each start needs every such port, so all wait for the last of them
        starts = {program.places[start].unit for program in pieces for start in program.starts}
        single = {name for name in waiting if self._capacities[name] == 1}
        if any(not waiting <= single & self._pools(name, alone=True) for name in starts):
            raise UnevenCrossing

    def _pools(self, unit: str, *, alone: bool = False) -> set[str]:
        """Return the pools of which instructions of a class may take a port, or with `alone` those of which all do."""
        return {name for hold in self._holds[unit] for name in hold.pools if not alone or len(hold.pools) == 1}

    def _walk(self, program: Program, soonest: dict[str, int], left: dict[str, int]) -> int:
        """Follow a program through a phase; return how long it takes at least.

        Args:
            program: of one group in the phase.
            soonest: takes d_k, the earliest cycle in which a warp may want a port of each pool.
            left: takes how long ports may still be held when the program has come to its end.
        """
        timings = place_timings(program, self._units, longest=False)
        came = dict.fromkeys(program.starts, 0)
        carried: dict[int, dict[str, int]] = {start: {} for start in program.starts}
        for at, place in enumerate(program.places):
            since, stall, held = came[at], timings[at].stall, carried.pop(at)
            for hold in self._holds[place.unit]:
                for name in hold.pools:
                    soonest[name] = min(since, soonest.get(name, since))
                    held[name] = max(hold.most, held.get(name, 0))
            after = _later(held, stall)
            for target in place.successors:
                came[target] = min(since + stall, came.get(target, since + stall))
                keep_latest(carried.setdefault(target, {}), after)
        keep_latest(left, carried[program.end])
        return came[program.end]
