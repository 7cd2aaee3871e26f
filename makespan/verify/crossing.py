"""Barriers on real multiprocessors, for the checker: what results and ports that reach over one can do behind it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from makespan.model.instance import Instance
from makespan.model.machine import UnitClass
from makespan.model.program import BARRIER, InstructionTiming, Program
from makespan.verify.refusal import StepBudget


class UnevenCrossing(Exception):
    """What is pending or held at a barrier may matter behind it."""


_K = TypeVar("_K")


def timings(program: Program, work: StepBudget) -> tuple[InstructionTiming, ...]:
    """Those of the phases: without results for which nobody can wait.

    From place to place goes what may still be pending, by setter and token, with the most cycles for which it is when
    a warp comes there. Somebody who waits for it comes before it is there.

    Raises:
        Mixed: what somebody waits for may be left behind at a barrier.
        TooMuchWork: there are too many.
    """
    if not program.timings:
        return ()
    coming: dict[int, dict[tuple[int, int], int]] = {}
    awaited, left_behind = set[tuple[int, int]](), set[tuple[int, int]]()
    for at, (place, timing) in enumerate(zip(program.places, program.timings, strict=True)):
        here = coming.pop(at, {})
        awaited |= {key for key in here if key[1] in timing.awaits}
        others = {key: cycles for key, cycles in here.items() if key[1] not in timing.awaits}
        if place.unit == BARRIER:
            left_behind |= others.keys()
        after = {key: cycles - timing.stall for key, cycles in others.items() if cycles > timing.stall}
        if timing.latency[1] > timing.stall:
            after |= {(at, token): timing.latency[1] - timing.stall for token in timing.sets}
        for target in place.successors:
            work.spend(1 + len(after))
            _raise(coming.setdefault(target, {}), after)
    awaited |= coming.get(program.end, {}).keys()
    if awaited & left_behind:
        raise UnevenCrossing
    return tuple(
        timing._replace(sets=tuple(token for token in timing.sets if (at, token) in awaited))
        for at, timing in enumerate(program.timings)
    )


def of_phase(inside: Sequence[int], every: Sequence[InstructionTiming]) -> tuple[InstructionTiming, ...]:
    """Those of the places of a phase; its tokens have the numbers in which they are first set there."""
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
    """The ports that are held at the beginning of phase after phase."""

    def __init__(self, instance: Instance) -> None:
        self._units = {unit.name: unit for unit in instance.machine.units}
        self._capacities = {ports.name: ports.capacity for ports in instance.machine.ports}
        self._shared = {ports.name for ports in instance.machine.ports if ports.shared}
        self._partitions = instance.machine.partitions
        self._held: dict[str, int] = {}

    def enter(self, pieces: Sequence[Program]) -> int:
        """Return how many cycles later a phase may begin, at most, because nobody finds a free port.

        Raises:
            Mixed: some may find one, and others not; or partitions that meet begin at different times.
        """
        soonest: dict[str, int] = {}
        left: dict[str, int] = {}
        quickest = 0
        for program in pieces:
            quickest = max(quickest, self._walk(program, soonest, left))
        waiting = {name for name, cycles in self._held.items() if soonest.get(name, cycles) < cycles}
        lag = max((self._held[name] for name in waiting), default=0)
        if waiting:
            units = [self._units[name] for name in sorted(set[str]().union(*(program.units for program in pieces)))]
            if self._partitions > 1 and self._shared & {name for unit in units for name in _names(unit)}:
                raise UnevenCrossing
            for program in pieces:
                for start in program.starts:
                    unit = self._units[program.places[start].unit]
                    alone = {unit.name, *(use.resources[0] for use in unit.uses if len(use.resources) == 1)}
                    if any(name not in alone or self._capacities[name] > 1 for name in waiting):
                        raise UnevenCrossing
        for name, cycles in self._held.items():
            if cycles > quickest:
                left[name] = max(cycles - quickest, left.get(name, 0))
        self._held = left
        return lag

    def _walk(self, program: Program, soonest: dict[str, int], left: dict[str, int]) -> int:
        """When ports may first be wanted, how long they may be held at the end, and when that comes at the earliest."""
        came = dict.fromkeys(program.starts, 0)
        carried: dict[int, dict[str, int]] = {start: {} for start in program.starts}
        for at, place in enumerate(program.places):
            unit, since = self._units[place.unit], came[at]
            stall = program.timings[at].stall if program.timings else unit.latency.least
            holds = carried.pop(at)
            for names, cycles in _holds(unit):
                for name in names:
                    soonest[name] = min(since, soonest.get(name, since))
                    holds[name] = max(cycles, holds.get(name, 0))
            after = {name: cycles - stall for name, cycles in holds.items() if cycles > stall}
            for target in place.successors:
                came[target] = min(since + stall, came.get(target, since + stall))
                _raise(carried.setdefault(target, {}), after)
        _raise(left, carried[program.end])
        return came[program.end]


def _holds(unit: UnitClass) -> Iterable[tuple[tuple[str, ...], int]]:
    return ((unit.name,), unit.interval), *((use.resources, use.most) for use in unit.uses)


def _names(unit: UnitClass) -> set[str]:
    return {name for names, _ in _holds(unit) for name in names}


def _raise(known: dict[_K, int], others: Mapping[_K, int]) -> None:
    for key, cycles in others.items():
        known[key] = max(cycles, known.get(key, 0))
