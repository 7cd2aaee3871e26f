"""How long one warp takes alone: the longest or the least path of its program, with all that it waits for.

An instruction is issued when the stall of the one before it has passed, the tokens that it awaits are there, and it
finds a free port where a single one is all there is. Each of these is a time of an earlier instruction plus a
constant, and of several the latest counts. Such *max-plus linear* steps commute with the maximum: where paths join it
is enough to keep the latest time of everything, and the longest path comes out exactly. The earliest times of
everything give a lower bound of all paths in the same way. (docs/theory.md, 14.)
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from makespan.model.lowered import Reservation
from makespan.model.program import BARRIER, Program
from makespan.proof.bounds.gates import Gate, PortGates
from makespan.proof.bounds.phases import PhaseSegment

MOST_WORK = 2_000_000
"""Paths that part, join or pass a barrier, times the tokens that each has to remember."""

UNAWAITED, FURTHER = -1, -2
"""Stand for all tokens that no instruction awaits, which matter at the end only, and for those that are too many."""

Due: TypeAlias = dict[int | Gate, int]
"""When what is pending is there: tokens by number, and gates of a single port, or that a barrier leaves occupied."""


class PlaceTiming(NamedTuple):
    """The effect of a place on the time of a warp.

    Args:
        stall: until the next place.
        done: until tokens or ports are there again.
        awaits: what has to be there before.
    """

    stall: int
    done: tuple[tuple[int | Gate, int], ...] = ()
    awaits: tuple[int | Gate, ...] = ()


class PlaceArrival(NamedTuple):
    """The time at which a warp comes to a place, and what is on its way then."""

    time: int
    due: Due


def place_timings(program: Program, ports: PortGates, *, longest: bool) -> list[PlaceTiming]:
    """Return what the places do, at most (`longest`) or at least."""
    names = _names(program, longest=longest)
    held = {each: _ports_of(ports, each, longest=longest) for each in ports.reservations(program)}
    if program.has_barriers:
        # a barrier leaves ports occupied for whoever comes next, so every port that is needed is waited for
        held = {each: (occupied, ports.gates((each,))) for each, (occupied, _) in held.items()}
    found = []
    for at in range(program.end):
        occupied, needed = held.get(ports.reservation(program, at), ((), ()))
        if not program.timings:
            stall = ports.stall(program, at)[longest]
            # what is over before the warp can go on keeps nothing waiting
            found.append(PlaceTiming(stall, tuple(one for one in occupied if one[1] > stall), needed))
            continue
        timing = program.timings[at]
        cycles = timing.latency[longest]
        done: list[tuple[int | Gate, int]] = [(names[token], cycles) for token in timing.sets if token in names]
        done = [one for one in (*done, *occupied) if one[1] > timing.stall]
        awaits = (names[token] for token in timing.awaits if token in names)
        found.append(PlaceTiming(timing.stall, tuple(done), (*awaits, *needed)))
    return found


def _names(program: Program, *, longest: bool) -> dict[int, int]:
    """Tokens by number; of too many, those left share a name for the longest path, and have none for the least."""
    awaited = {token for timing in program.timings for token in timing.awaits}
    every = {token for timing in program.timings for token in timing.sets}
    copies = len(program.starts) + sum(len(place.successors) - 1 + (place.unit == BARRIER) for place in program.places)
    most = max(1, MOST_WORK // copies)
    names = dict.fromkeys(every - awaited, UNAWAITED)
    for number, token in enumerate(sorted(every & awaited)):
        if number < most:
            names[token] = number
        elif longest:
            names[token] = FURTHER
    return names


def _ports_of(
    ports: PortGates, reservation: Reservation, *, longest: bool
) -> tuple[tuple[tuple[Gate, int], ...], tuple[Gate, ...]]:
    """The single ports that an instruction holds, for how long, and those that it cannot do without."""
    own = [hold for hold in reservation.holds if ports.is_own(hold.pools)]
    needed = tuple(hold.pools for hold in own)
    if not longest:
        return tuple((hold.pools, hold.least) for hold in own), needed
    holds = (((name,), hold.most) for hold in reservation.holds for name in hold.pools if ports.capacities[name] == 1)
    return tuple(holds), needed


def alone(
    program: Program,
    todo: list[PlaceTiming],
    segment: PhaseSegment,
    begin: Callable[[int], Due],
    *,
    longest: bool = True,
) -> int:
    """Return the cycles from the beginning of a phase until the warp comes to the barrier at its end, or has finished.

    Args:
        program: what it executes.
        todo: what its places do.
        segment: the phase.
        begin: by entry of the phase, what is on its way at its beginning.
        longest: whether the most cycles are asked for, else the least.
    """
    # the steps commute with the maximum, so one arrival for each place stands for all ways there (theory.md, 14)
    join = _latest if longest else _earliest
    choose = max if longest else min
    fronts: dict[int, PlaceArrival] = {}
    ends: list[int] = []

    def comes(front: PlaceArrival, target: int) -> None:
        if target == program.end:  # a warp has finished when its results are there, too
            ends.append(max((front.time, *(time for key, time in front.due.items() if isinstance(key, int)))))
        elif program.places[target].unit == BARRIER:
            ends.append(_issue_time(front, todo[target]))  # a barrier may await tokens itself
        else:
            known = fronts.get(target)
            fronts[target] = front if known is None else join(known, front)

    for entry in segment.entries:
        comes(PlaceArrival(0, begin(entry)), entry)
    for at in segment.places:  # in program order, so all that lead here have come
        front, step = fronts.pop(at), todo[at]
        issued, due = _issue_time(front, step), front.due
        for key, cycles in step.done:
            due[key] = max(due.get(key, 0), issued + cycles)
        _leave(PlaceArrival(issued + step.stall, due), program.places[at].successors, comes)
    return choose(ends)


def residues(program: Program, todo: list[PlaceTiming]) -> dict[int, Due]:
    """Return, for every place behind a barrier, how long after the arrival at the barrier tokens are on their way.

    At most, whatever keeps the warp waiting: waits only make them fewer. What a place awaits is there when it is left.
    """
    fronts: dict[int, PlaceArrival] = {start: PlaceArrival(0, {}) for start in program.starts}
    found: dict[int, Due] = {}

    def comes(front: PlaceArrival, target: int) -> None:
        known = fronts.get(target)
        if known is None:
            fronts[target] = front
            return
        # only how long tokens are still on their way counts: of two ways here the other is moved to the same time
        moved = {key: time + front.time - known.time for key, time in known.due.items()}
        fronts[target] = _latest(front, PlaceArrival(front.time, moved))

    for at, place in enumerate(program.places):
        front, step = fronts.pop(at), todo[at]
        for key in step.awaits:
            if key != FURTHER:  # of these it awaits only some
                front.due.pop(key, None)
        for key, cycles in step.done:
            if isinstance(key, int):
                front.due[key] = max(front.due.get(key, 0), front.time + cycles)
        if place.unit == BARRIER:
            left = {key: time - front.time for key, time in front.due.items() if time > front.time}
            for after in place.successors:
                known = found.setdefault(after, {})
                known |= {key: max(cycles, known.get(key, 0)) for key, cycles in left.items()}
        _leave(PlaceArrival(front.time + step.stall, front.due), place.successors, comes)
    return found


def _issue_time(front: PlaceArrival, step: PlaceTiming) -> int:
    due = front.due
    return max((front.time, *(due[key] for key in step.awaits if key in due)))


def _leave(front: PlaceArrival, successors: tuple[int, ...], comes: Callable[[PlaceArrival, int], None]) -> None:
    """Go to all successors, to the last one without a copy."""
    *others, last = successors
    for target in others:
        comes(PlaceArrival(front.time, front.due.copy()), target)
    comes(front, last)


def _latest(one: PlaceArrival, other: PlaceArrival) -> PlaceArrival:
    small, large = sorted((one.due, other.due), key=len)
    for key, time in small.items():
        large[key] = max(time, large.get(key, 0))
    return PlaceArrival(max(one.time, other.time), large)


def _earliest(one: PlaceArrival, other: PlaceArrival) -> PlaceArrival:
    both = one.due.keys() & other.due.keys()
    return PlaceArrival(min(one.time, other.time), {key: min(one.due[key], other.due[key]) for key in both})
