"""What one warp that runs ahead waits for, in as few different situations as can matter to it.

All cycles are counted from the last event (an issue, or the end of a barrier), which was in cycle 0; the next one is in
1 or later. A latency out of a range is settled only when its result is waited for, so cycles come as [least, most].
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from makespan.model.lowered import NOTHING_HELD, LoweredMachine, Reservation
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace

END = -1
"""Stands for all tokens that only the end of the warp waits for."""

_FAR = 1 << 40
_MOST_STEPS = 64
"""How far back a place looks for what it waits for at least; any number is right."""

Range: TypeAlias = tuple[int, int]


Situation: TypeAlias = tuple[int, Range, tuple[tuple[int, Range], ...]]
"""The place that comes next, from when on its warp is ready for it, and which tokens it may wait for after it.

At the end of the program, the warp has finished when it is ready.
"""


class Situations:
    """All situations of the warps of a program, by number, as they are met; equal futures have one number.

    A warp that blocks is one in which every place sets the same token and waits for it.

    Attributes:
        place: of every situation the place that comes next.
        reservation: what its instruction holds; nothing at a barrier and at the end.
        ready: the cycles in which the warp becomes ready for it.
    """

    def __init__(self, program: Program, lowered: LoweredMachine) -> None:
        self.end = program.end
        self.places, self.timings = program.places, _by_results(program.timings or _blocking(program, lowered))
        self._holding = [*(lowered.reservation(program, at) for at in range(program.end)), NOTHING_HELD]
        self.place: list[int] = []
        self.reservation: list[Reservation] = []
        self.ready: list[Range] = []
        self._pending: list[tuple[tuple[int, Range], ...]] = []
        self._issued: list[dict[int, tuple[int, ...]]] = []
        self._later: list[dict[int, int]] = []
        self._numbers: dict[Situation, int] = {}
        self._first = _first_awaiting(self.places, self.timings)
        self._same = [_representatives(first) for first in self._first]
        self._gaps = _gaps(program, self.timings, lowered)
        self._to_end = program.sums([timing.stall for timing in self.timings], min)

    def begun(self, place: int) -> int:
        """Return the situation of a warp that begins at a place; the first event can be in cycle 1."""
        return self._settled(place, 1, {})

    def issued(self, number: int, cycle: int) -> tuple[int, ...]:
        """Return the situations after the place was issued, or its barrier passed, in this cycle, one a successor."""
        found = self._issued[number].get(cycle)
        if found is None:
            place = self.place[number]
            timing, after = self.timings[place], self._pending_after(number, cycle)
            for token in timing.sets:
                after[token] = _later(timing.latency, after.get(token, timing.latency))
            found = tuple(self._settled(to, timing.stall, after) for to in self.places[place].successors)
            self._issued[number][cycle] = found
        return found

    def later(self, number: int, cycle: int) -> int:
        """Return the situation after an event in this cycle in which the warp took no part."""
        found = self._later[number].get(cycle)
        if found is None:
            least, most = self.ready[number]
            ready, after = (least - cycle, most - cycle), self._pending_after(number, cycle)
            found = self._later[number][cycle] = self._numbered(self.place[number], ready, after)
        return found

    def _pending_after(self, number: int, cycle: int) -> dict[int, Range]:
        return {token: (least - cycle, most - cycle) for token, (least, most) in self._pending[number]}

    def _settled(self, place: int, stall: int, pending: Mapping[int, Range]) -> int:
        """Return the situation of a warp that comes to this place with these tokens pending."""
        ready, rest = (stall, stall), {}
        awaits = () if place == self.end else self.timings[place].awaits
        for token, cycles in pending.items():
            if place == self.end or token in awaits:
                ready = _later(ready, cycles)
            else:
                rest[token] = cycles
        return self._numbered(place, ready, rest)

    def _numbered(self, place: int, ready: Range, pending: Mapping[int, Range]) -> int:
        """Return the number of a situation, without what cannot matter."""
        ready = _later(ready, (1, 1))
        same, merged = self._same[place], dict[int, Range]()
        for token, cycles in pending.items():
            if cycles[1] > ready[0]:  # else its result is there whenever the warp is ready
                stands_for = same.get(token, END)
                merged[stands_for] = _later(cycles, merged.get(stands_for, cycles))
        kept = tuple(sorted(self._mattering(place, ready[0], merged))) if merged else ()
        number = self._numbers.setdefault((place, ready, kept), len(self.place))
        if number == len(self.place):
            self.place.append(place)
            self.reservation.append(self._holding[place])
            self.ready.append(ready)
            self._pending.append(kept)
            self._issued.append({})
            self._later.append({})
        return number

    def _mattering(self, place: int, ready: int, pending: dict[int, Range]) -> Iterator[tuple[int, Range]]:
        """Yield what is pending for longer than its warp needs to come to a place that waits for it."""
        needed = self._needed(place, ready, pending)
        needed[END] = ready + self._to_end[place]
        for token, cycles in pending.items():
            # a smaller least cycle means the same: the warp is not there before
            if cycles[1] > needed[token]:
                yield token, _later(cycles, (needed[token], needed[token]))

    def _needed(self, place: int, ready: int, pending: Mapping[int, Range]) -> dict[int, int]:
        """Return, for each token, a lower bound on the cycles until its warp would wait for it, without this token.

        From place to place: by stalls, by results and ports that it waits for in any case, and by what is pending.
        """
        needed = dict.fromkeys(pending, _FAR)
        tokens = pending.keys() - {END}
        if not tokens:
            return needed
        last = max(max(self._first[place][token]) for token in tokens)
        enough = max(pending[token][1] for token in tokens)
        same, passed = self._same[place], {place: ready}
        soonest = dict.fromkeys(self.places[place].successors, ready + self.timings[place].stall)
        for at in range(place + 1, last + 1):
            if at not in soonest:
                continue
            cycle = soonest[at]
            for source, gap in self._gaps[at]:
                if source in passed and passed[source] + gap > cycle:
                    cycle = passed[source] + gap
            without = cycle  # what it waits for here must not count for itself
            for awaited in tokens if at == self.end else self.timings[at].awaits:
                token = awaited if at == self.end else same.get(awaited, END)
                if token in tokens:
                    needed[token] = min(needed[token], without)
                    cycle = max(cycle, pending[token][0])
            passed[at] = cycle
            if at < self.end and cycle < enough:
                after = cycle + self.timings[at].stall
                for to in self.places[at].successors:
                    soonest[to] = min(after, soonest.get(to, after))
        return needed


def entries(program: Program) -> int:
    """Return the entries of the tables that `Situations` makes beforehand: results, and the places that await them."""
    first_set: dict[int, int] = {}
    last_awaited: dict[int, int] = {}
    setting = Counter(token for sets in {timing.sets for timing in program.timings} for token in sets)
    found = sum(len(place.successors) for place in program.places)
    for at, timing in enumerate(program.timings):
        found += sum(setting[token] for token in timing.awaits)
        for token in timing.sets:
            first_set.setdefault(token, at)
        last_awaited |= dict.fromkeys(timing.awaits, at)
    return found + sum(
        setting[token] * max(0, at - first_set[token]) for token, at in last_awaited.items() if token in first_set
    )


def _later(one: Range, other: Range) -> Range:
    """Return the range in which the later of two cycles lies."""
    return max(one[0], other[0]), max(one[1], other[1])


def _blocking(program: Program, lowered: LoweredMachine) -> tuple[InstructionTiming, ...]:
    return tuple(
        InstructionTiming(0, (0, 0), (), (0,))
        if place.unit == BARRIER
        else InstructionTiming(1, lowered.latency(program, at), (0,), (0,))
        for at, place in enumerate(program.places)
    )


def _by_results(timings: tuple[InstructionTiming, ...]) -> tuple[InstructionTiming, ...]:
    """Return the same with one token for all that an instruction sets: they are done in the same cycle."""
    numbers = {
        sets: number for number, sets in enumerate(dict.fromkeys(timing.sets for timing in timings if timing.sets))
    }
    with_token: dict[int, list[int]] = {}
    for sets, number in numbers.items():
        for token in sets:
            with_token.setdefault(token, []).append(number)
    return tuple(
        timing._replace(
            sets=(numbers[timing.sets],) if timing.sets else (),
            awaits=tuple(sorted({number for token in timing.awaits for number in with_token.get(token, ())})),
        )
        for timing in timings
    )


def _first_awaiting(
    places: tuple[ProgramPlace, ...], timings: tuple[InstructionTiming, ...]
) -> list[dict[int, frozenset[int]]]:
    """Return, for every place and token, the places that wait for it first on some way from there on.

    Left out are tokens that only the end waits for, and those that nothing before the place has set.
    """
    end = len(places)
    first_set: dict[int, int] = {}
    for at, timing in enumerate(timings):
        for token in timing.sets:
            first_set.setdefault(token, at)
    found: list[dict[int, frozenset[int]]] = [{} for _ in range(end + 1)]
    for at in range(end - 1, -1, -1):
        ways = [found[to] for to in places[at].successors]
        here = dict(ways[0])
        if len(ways) > 1:
            for token in {token for way in ways for token in way}:
                here[token] = frozenset().union(*(way.get(token, (end,)) for way in ways))
        here |= {token: frozenset((at,)) for token in timings[at].awaits}
        found[at] = {token: where for token, where in here.items() if first_set.get(token, end) < at}
    return found


def _representatives(first: Mapping[int, frozenset[int]]) -> dict[int, int]:
    """Return, for each token, one that stands for all tokens that are waited for in the same places."""
    found: dict[frozenset[int], int] = {}
    return {token: found.setdefault(where, token) for token, where in first.items()}


def _gaps(program: Program, timings: tuple[InstructionTiming, ...], lowered: LoweredMachine) -> list[list[Range]]:
    """Return, for every place, earlier ones on every way to it, with the least cycles between them and it.

    These set what it waits for, or hold the only port that it needs.
    """
    held = [_sole_ports(lowered, lowered.reservation(program, at)) for at in range(program.end)]
    before = _dominators(program)
    found: list[list[Range]] = [[] for _ in range(program.end + 1)]
    for at in range(program.end):
        awaited, wanted = set(timings[at].awaits), set(held[at])
        source = before[at]
        for _ in range(_MOST_STEPS):
            if source < 0 or not (awaited or wanted):
                break
            set_here, held_here = awaited & set(timings[source].sets), wanted & held[source].keys()
            gaps = [timings[source].latency[0]] * bool(set_here) + [held[source][name] for name in held_here]
            if gaps:
                found[at].append((source, max(gaps)))
            awaited -= set_here
            wanted -= held_here
            source = before[source]
    return found


def _sole_ports(lowered: LoweredMachine, reservation: Reservation) -> dict[str, int]:
    """Return the pools of one port that an instruction holds in any case for more than its own cycle, and how long."""
    sole = (hold for hold in reservation.holds if len(hold.pools) == 1 and hold.least > 1)
    return {name: hold.least for hold in sole for name in hold.pools if lowered.capacities[name] == 1}


def _dominators(program: Program) -> list[int]:
    """Return, for every place, the last other one on every way to it; -1 if there is none near enough."""
    found = [-2] * (program.end + 1)
    for start in program.starts:
        found[start] = -1

    def common(one: int, other: int) -> int:
        for _ in range(_MOST_STEPS):
            if one == other:
                return one
            one, other = (found[one], other) if one > other else (one, found[other])
        return -1

    for at, place in enumerate(program.places):
        for to in place.successors:
            found[to] = at if found[to] == -2 else common(found[to], at)
    return found
