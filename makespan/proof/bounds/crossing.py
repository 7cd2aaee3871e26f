"""What reaches over a barrier on a real multiprocessor: results that are pending, and ports that are held.

Where neither can matter behind the barrier, a phase begins as if nothing had been before it. (docs/theory.md, 7,
proposition P'.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from makespan.model.program import BARRIER, InstructionTiming, Program
from makespan.proof.bounds.gates import PortGates

MOST_STEPS = 2_000_000
"""Places that are looked at behind those that set a token."""

Held = dict[str, int]
"""By pool name, cycles for which a port may still be held."""


def awaited_within(program: Program) -> tuple[InstructionTiming, ...] | None:
    """Return the timings without results that nobody can wait for, where all others are waited for within their phase.

    None where a warp may come to a barrier that does not wait for such a result: it may be needed behind it, and the
    end of the phase would wait for it. Or where it takes too long to tell.
    """
    left, found = MOST_STEPS, []
    for at, timing in enumerate(program.timings):
        kept = []
        for token in timing.sets:
            is_awaited = is_left_behind = False
            for place in _while_pending(program, at, token):
                left -= 1
                if left < 0:
                    return None
                is_met = _meets(program, place, token)
                is_awaited = is_awaited or is_met
                is_left_behind = is_left_behind or (not is_met and program.places[place].unit == BARRIER)
            if is_awaited and is_left_behind:
                return None
            if is_awaited:
                kept.append(token)
        found.append(timing._replace(sets=tuple(kept)))
    return tuple(found)


def _meets(program: Program, place: int, token: int) -> bool:
    """Return whether a warp waits for this token there; for all of them at its end."""
    return place == program.end or token in program.timings[place].awaits


def _while_pending(program: Program, setter: int, token: int) -> Iterator[int]:
    """Yield the places that a warp may reach while a token of `setter` is pending, up to those that wait for it.

    A wait for a port or another result only brings it there later, so the sum of the stalls is the least time.
    """
    timing = program.timings[setter]
    least: dict[int, int] = {}
    waiting: list[int] = []

    def reach(targets: Iterable[int], cycles: int) -> None:
        for target in targets:
            if cycles < least.get(target, timing.latency[1]):
                if target not in least:
                    heappush(waiting, target)
                least[target] = cycles

    reach(program.places[setter].successors, timing.stall)
    while waiting:
        at = heappop(waiting)
        yield at
        if not _meets(program, at, token):
            reach(program.places[at].successors, least[at] + program.timings[at].stall)


def number_tokens(places: Sequence[int], timings: Sequence[InstructionTiming]) -> tuple[InstructionTiming, ...]:
    """The timings of a phase with tokens numbered as they are first set in it, and without those set elsewhere."""
    names: dict[int, int] = {}
    for at in places:
        for token in timings[at].sets:
            names.setdefault(token, len(names))
    return tuple(
        timing._replace(
            sets=tuple(sorted(names[token] for token in timing.sets)),
            awaits=tuple(sorted(names[token] for token in timing.awaits if token in names)),
        )
        for timing in (timings[at] for at in places)
    )


def left_behind(ports: PortGates, pieces: Iterable[Program], held: Mapping[str, int]) -> Held:
    """Return for how long after a phase ports may be held by what was issued in it, or before it (`held`)."""
    found: Held = {}
    shortest = 0
    for program in pieces:
        to_go = program.sums(_least_stalls(ports, program), min)  # waits only let ports be free earlier
        for at in range(program.end):
            for hold in ports.reservation(program, at).holds:
                if hold.most > to_go[at]:
                    found |= {name: max(hold.most - to_go[at], found.get(name, 0)) for name in hold.pools}
        shortest = max(shortest, min(to_go[start] for start in program.starts))
    # the phase takes at least as long as the shortest path of its slowest program
    older = {name: cycles - shortest for name, cycles in held.items() if cycles > shortest}
    return {name: max(found.get(name, 0), older.get(name, 0)) for name in found | older}


def late(ports: PortGates, pieces: Sequence[Program], held: Mapping[str, int]) -> Held | None:
    """Return the held ports that all warps of a phase wait for before they issue anything; None if only some do.

    Only where nothing is shared by partitions: each of them begins late by itself.
    """
    nearest: dict[str, int] = {}
    for program in pieces:
        stalls, since = _least_stalls(ports, program), dict.fromkeys(program.starts, 0)
        for at, place in enumerate(program.places):
            for after in place.successors:
                since[after] = min(since[at] + stalls[at], since.get(after, since[at] + stalls[at]))
            for name in {name for hold in ports.reservation(program, at).holds for name in hold.pools}:
                nearest[name] = min(since[at], nearest.get(name, since[at]))
    soon = {name: cycles for name, cycles in held.items() if nearest.get(name, cycles) < cycles}
    if not soon:
        return {}
    used = {name for gate in ports.gates(ports.reservations(*pieces)) for name in gate}
    if len(ports.numbers) > 1 and used & ports.shared:
        return None
    first = [ports.reservation(program, start) for program in pieces for start in program.starts]
    needed = (
        name
        for name in soon
        if ports.capacities[name] == 1 and all(any(hold.pools == (name,) for hold in each.holds) for each in first)
    )
    return soon if len(list(needed)) == len(soon) else None


def _least_stalls(ports: PortGates, program: Program) -> list[int]:
    return [ports.stall(program, at)[0] for at in range(program.end)]
