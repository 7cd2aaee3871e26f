"""Barriers cut an instance into phases: what the warps execute between one barrier and the next.

Phase k of a program holds what a warp that has passed k barriers may execute until it comes to the next one or ends.
Where all warps are in one block and every warp of a group takes part in a phase or none does, all warps of a phase
start it together, and it is an instance of its own. A schedule of the whole is then a row of schedules of the phases,
so the sum of their worst cases is an upper bound. On a real multiprocessor this holds where what is pending at a
barrier delays no warp, and ports that are held do no more than to let all wait. (docs/theory.md, 7, propositions P
and P'.)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import zip_longest
from typing import NamedTuple

from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.lowered import LoweredMachine
from makespan.model.machine import SchedulerPromise, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR

MOST_PLACES = 4_000_000
"""Places of all phases together; a place that may follow different numbers of barriers is in several phases."""


MOST_STEPS = 2_000_000
"""Places that are looked at behind those that set a token."""

HeldCycles = dict[str, int]
"""By pool name, cycles for which a port may still be held."""


class PhaseSegment(NamedTuple):
    """The part of a program that a warp may execute in one phase.

    Args:
        entries: where it may stand after the barrier, in increasing order; a barrier or the end means that it may
            have nothing to execute.
        places: what it may execute, in increasing order.
    """

    entries: tuple[int, ...]
    places: tuple[int, ...]

    def extreme(self, program: Program, weigh: Callable[[int], int], choose: Callable[[Iterable[int]], int]) -> int:
        """Return the largest (`max`) or smallest (`min`) sum of the weights of places that a warp executes here."""
        ahead: dict[int, int] = {}
        for at in reversed(self.places):
            ahead[at] = weigh(at) + choose(ahead.get(after, 0) for after in program.places[at].successors)
        return choose(ahead.get(entry, 0) for entry in self.entries)


class PhasePart(NamedTuple):
    """The part that one group of the whole instance takes in a phase.

    Args:
        group: its number.
        program: the phase as a program.
        places: for every place of `program`, the place of the group's program.
    """

    group: int
    program: Program
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: the parts of the groups that execute something in it, and the question that they make together.

    Args:
        instance: the question.
        parts: of the groups.
        late: ports of earlier phases for which all warps may have to wait first, with the most cycles of each.
    """

    instance: Instance
    parts: tuple[PhasePart, ...]
    late: tuple[tuple[str, int], ...] = ()

    @property
    def lag(self) -> int:
        """The most cycles for which no warp may be able to begin."""
        return max((cycles for _, cycles in self.late), default=0)


@requires(KNOWS, "the cut into phases")
def phases(instance: Instance) -> tuple[Phase, ...] | None:
    """Return the phases of an instance in order, those without instructions left out.

    None if there are several blocks, if in some phase a warp of a group may have nothing to execute while another one
    has, if a port that is held or a result that is pending when a barrier opens may matter behind it, if warps that
    take part in a phase may be spread unevenly over partitions, or if there are too many places.
    """
    is_multiprocessor = instance.is_multiprocessor
    if instance.blocks > 1 or (is_multiprocessor and instance.machine.scheduler is not SchedulerPromise.ANY):
        return None
    if not is_multiprocessor and any(unit.interval > unit.latency.least for unit in instance.machine.units):
        return None
    cut = []  # by group and phase
    for group in instance.groups:
        segments, timings = segments_of(group.program), awaited_within(group.program)
        if segments is None or timings is None or not all(_all_or_none(group.program, own) for own in segments):
            return None
        cut.append([_as_program(group.program, own, timings) if own.places else None for own in segments])
    found: list[Phase] = []
    ports, held = LoweredMachine.of(instance.machine), dict[str, int]()
    for row in zip_longest(*cut):
        parts = tuple(PhasePart(group, *part) for group, part in enumerate(row) if part is not None)
        if not parts:
            continue
        if not _is_spread(instance, parts):
            return None  # as a question of its own the phase would spread its warps evenly
        late: HeldCycles = {}
        if is_multiprocessor:
            pieces = [part.program for part in parts]
            waited = late_ports(ports, pieces, held)
            if waited is None:
                return None
            late, held = waited, left_behind(ports, pieces, held)
        warps = ((part.program, instance.groups[part.group].warps) for part in parts)
        found.append(Phase(Instance.merged(warps, instance.machine), parts, tuple(late.items())))
    return tuple(found)


def _is_spread(instance: Instance, parts: Sequence[PhasePart]) -> bool:
    """Return whether the warps of a phase are spread over partitions as the question of the phase says."""
    machine = instance.machine
    if machine.partitions == 1:
        return True
    return len(parts) == len(instance.groups) and (machine.assignment is WarpAssignment.ANY or len(parts) == 1)


def segments_of(program: Program) -> tuple[PhaseSegment, ...] | None:
    """Return what a warp may execute after 0, 1, 2, ... barriers; None if that is more than `MOST_PLACES` in all."""
    found, total = [], 0
    entries = set(program.starts)
    while entries - {program.end}:
        reached = _places_until_barriers(program, entries)
        places = sorted(place for place in reached if place != program.end and program.places[place].unit != BARRIER)
        found.append(PhaseSegment(tuple(sorted(entries)), tuple(places)))
        total += 1 + len(reached)
        if total > MOST_PLACES:
            return None
        ended = {program.end} & reached  # who has ended stays there through all later phases
        entries = {after for place in reached - ended - set(places) for after in program.places[place].successors}
        entries |= ended
    return tuple(found)


def _places_until_barriers(program: Program, entries: Iterable[int]) -> set[int]:
    found, waiting = set[int](), list(entries)
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            if at != program.end and program.places[at].unit != BARRIER:
                waiting += program.places[at].successors
    return found


def _all_or_none(program: Program, segment: PhaseSegment) -> bool:
    """Return whether every entry, or none, begins with an instruction."""
    kinds = {at != program.end and program.places[at].unit != BARRIER for at in segment.entries}
    return len(kinds) == 1


def _as_program(
    program: Program, segment: PhaseSegment, timings: Sequence[InstructionTiming]
) -> tuple[Program, tuple[int, ...]]:
    """Return a segment with all entries at instructions as a program, and its places as places of the whole."""
    number = {place: at for at, place in enumerate(segment.places)}
    end = len(number)
    places = tuple(
        ProgramPlace(
            program.places[at].unit, tuple(sorted({number.get(after, end) for after in program.places[at].successors}))
        )
        for at in segment.places
    )
    origins = [program.origins[at] for at in segment.places] if program.origins else ()
    starts = tuple(number[entry] for entry in segment.entries)
    timed = number_tokens(segment.places, timings) if timings else ()
    return Program(places, starts, tuple(origins), timings=timed), segment.places


# --- what reaches over a barrier on a real multiprocessor ------------------------------------------------------


def awaited_within(program: Program) -> tuple[InstructionTiming, ...] | None:
    """Return the timings without results that no warp can wait for, where all others are waited for within their phase.

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


def left_behind(ports: LoweredMachine, pieces: Iterable[Program], held: Mapping[str, int]) -> HeldCycles:
    """Return for how long after a phase ports may be held by what was issued in it, or before it (`held`)."""
    found: HeldCycles = {}
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


def late_ports(ports: LoweredMachine, pieces: Sequence[Program], held: Mapping[str, int]) -> HeldCycles | None:
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
    if len(ports.numbers) > 1 and nearest.keys() & ports.shared:
        return None
    first = [ports.reservation(program, start) for program in pieces for start in program.starts]
    needed = (
        name
        for name in soon
        if ports.capacities[name] == 1 and all(any(hold.pools == (name,) for hold in each.holds) for each in first)
    )
    return soon if len(list(needed)) == len(soon) else None


def _least_stalls(ports: LoweredMachine, program: Program) -> list[int]:
    return [ports.stall(program, at)[0] for at in range(program.end)]
