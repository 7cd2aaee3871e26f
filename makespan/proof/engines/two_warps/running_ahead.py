"""One or two warps that run ahead, exactly: from event to event, over all that the past can leave behind.

An *event* is a cycle in which a warp issues, or in which both pass a barrier. Until the next one no warp has a choice
but for latencies, and each event lets a warp go on to a later place. So the states (what each warp waits for, how ports
are held) are visited by the sum of the two places, each with the first and the last cycle in which it can be reached.
docs/theory.md, section 8, has the proof.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

from makespan.host.errors import BrokenPromiseError
from makespan.model.feature import BARRIERS, PROGRAMS, TIMES, Feature
from makespan.model.instance import Instance
from makespan.model.lowered import NOTHING_HELD, HeldUses, LoweredMachine, Reservation
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.two_warps.holdings import Holdings
from makespan.proof.engines.two_warps.situations import Range, Situations, entries

KNOWS = PROGRAMS | TIMES | BARRIERS | {Feature.RESOURCES, Feature.STALL_ON_USE}

MAX_ENTRIES = 1_000_000
"""Of what is known beforehand of the places of both programs, and of the ways to begin."""

MAX_WAYS = 1_000
"""In which one instruction can hold what its class uses."""

_BYTES_PER_ENTRY = 200
_BYTES_PER_STATE = 400
_BYTES_PER_SITUATION = 1500
_EVENTS_PER_LOOK = 64
_NEVER = 1 << 40

EventState: TypeAlias = tuple[int, int, int]
"""The numbers of the situations of both warps, and of the holding."""


def applies(instance: Instance) -> bool:
    """Return whether there are one or two warps in one block, a feature that only this module knows, and few places."""
    if instance.warps > 2 or instance.blocks > 1 or not instance.is_multiprocessor or instance.beyond(KNOWS):
        return False
    ways = max(each.choices for each in LoweredMachine.of(instance.machine).by_class.values())
    return ways <= MAX_WAYS and _entries(instance) <= MAX_ENTRIES


def _entries(instance: Instance) -> int:
    return sum(entries(group.program) for group in instance.groups) + prod(
        len(program.starts) for program in instance.programs()
    )


def solve(instance: Instance, limits: Limits) -> Finding:
    """Return the exact worst and best case; nothing where limits do not suffice. This `applies` to the instance."""
    if _entries(instance) * _BYTES_PER_ENTRY > limits.memory_bytes:
        return Finding()
    events = _Events(instance)
    if not events.visit(limits):
        return Finding()
    best_case = Bounds(events.shortest, events.shortest)
    return Finding(events.witness(), events.longest, Upper.SEARCH, best_case=best_case)


def best_case(instance: Instance, limits: Limits) -> Bounds | None:
    """Return the exact best case; None where limits do not suffice. This `applies` to the instance."""
    return solve(instance, limits).best_case


_Event: TypeAlias = tuple[int, tuple[HeldUses | None, HeldUses | None], EventState]
"""The cycles since the last event; of each warp what it holds if it issues, else None; the state then."""


class _Events:
    """The states of an instance; two warps of the same program share their situations, in increasing order."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        lowered = LoweredMachine.of(instance.machine)
        self._holdings = Holdings(lowered)
        programs = tuple(dict.fromkeys(instance.programs()))
        situations = [Situations(program, lowered) for program in programs]
        self._is_same = instance.warps == 2 and len(programs) == 1
        self._first, self._second = situations[0], situations[-1]
        starts = programs[0].starts, programs[-1].starts if instance.warps == 2 else (programs[0].end,)
        self._starts = [
            self._sorted((self._first.begun(one), self._second.begun(other), 0)) for one, other in product(*starts)
        ]
        self.longest, self.shortest = 0, _NEVER
        self._last = -1
        # for every state in the order of visits: itself, the last cycle of the event before, and where that came from
        self._visited = tuple(array("q") for _ in range(5))

    def _sorted(self, state: EventState) -> EventState:
        one, other, holding = state
        return (other, one, holding) if self._is_same and one > other else state

    def visit(self, limits: Limits) -> bool:
        """Return all states, by the sum of their places; False when a limit comes first."""
        first, second = self._first, self._second
        waiting: list[dict[EventState, list[int]]] = [{} for _ in range(first.end + second.end + 1)]
        for start in self._starts:
            waiting[self._sum(start)][start] = [-1, -1, -1]
        visited, live, events = 0, 0, 0
        one, other, holding, cycles, sources = self._visited
        places, places_of_other = first.place, second.place
        for number in range(len(waiting)):
            here, waiting[number] = waiting[number], {}
            for state, (latest, source, soonest) in here.items():
                one.append(state[0])
                other.append(state[1])
                holding.append(state[2])
                cycles.append(latest)
                sources.append(source)
                for cycle, _, (a, b, held) in self._after(state):
                    if events % _EVENTS_PER_LOOK == 0 and not self._within(limits, live):
                        return False
                    events += 1
                    layer = waiting[places[a] + places_of_other[b]]
                    after = (b, a, held) if self._is_same and a > b else (a, b, held)
                    known = layer.get(after)
                    if known is None:
                        layer[after] = [latest + cycle, visited, soonest + cycle]
                        live += 1
                        continue
                    if latest + cycle > known[0]:
                        known[0], known[1] = latest + cycle, visited
                    if soonest + cycle < known[2]:
                        known[2] = soonest + cycle
                if number == len(waiting) - 1:
                    self._end(state, latest, soonest)
                visited += 1
            live -= len(here)
        return True

    def _end(self, state: EventState, latest: int, soonest: int) -> None:
        """Both warps have issued all; the state was visited last."""
        (least, most), (least_of_other, most_of_other) = self._first.ready[state[0]], self._second.ready[state[1]]
        if latest + max(most, most_of_other) > self.longest:
            self.longest, self._last = latest + max(most, most_of_other), len(self._visited[0]) - 1
        self.shortest = min(self.shortest, soonest + max(least, least_of_other))

    def _sum(self, state: EventState) -> int:
        return self._first.place[state[0]] + self._second.place[state[1]]

    def _within(self, limits: Limits, live: int) -> bool:
        situations = sum(len(each.place) for each in {self._first, self._second})
        size = live * _BYTES_PER_STATE + (situations + self._holdings.size) * _BYTES_PER_SITUATION
        size += sum(numbers.itemsize * len(numbers) for numbers in self._visited)
        if size > limits.memory_bytes:
            limits.need_memory()
            return False
        return not limits.expired

    def _after(self, state: EventState) -> Iterator[_Event]:
        """Return every next event; none where both warps have issued all."""
        first, second, (a, b, _) = self._first, self._second, state
        if first.place[a] == first.end and second.place[b] == second.end:
            return iter(())
        issues = first.reservation[a] is not NOTHING_HELD or second.reservation[b] is not NOTHING_HELD
        return self._issuing(state) if issues else self._passing(state)

    def _issuing(self, state: EventState) -> Iterator[_Event]:
        """Yield the events in which a warp issues."""
        first, second, ports = self._first, self._second, self._holdings
        a, b, holding = state
        needs, needs_of_other = first.reservation[a], second.reservation[b]
        low, high = self._span(first.ready[a], needs, holding)
        low_of_other, high_of_other = self._span(second.ready[b], needs_of_other, holding)
        for cycle in range(min(low, low_of_other), min(high, high_of_other) + 1):
            now = ports.later(holding, cycle)
            may, other_may = low <= cycle, low_of_other <= cycle
            for chosen, held in ports.taken(now, needs) if may else ():
                both = other_may and ports.free(held, needs_of_other) == 0
                targets = first.issued(a, cycle)
                if high_of_other > cycle or (other_may and not both):
                    left = ports.left(held)
                    for to in targets:
                        yield cycle, (chosen, None), (to, second.later(b, cycle), left)
                if both:
                    for also, all_held in ports.taken(held, needs_of_other):
                        left = ports.left(all_held)
                        for to, to_of_other in product(targets, second.issued(b, cycle)):
                            yield cycle, (chosen, also), (to, to_of_other, left)
            for chosen, held in ports.taken(now, needs_of_other) if other_may else ():
                both = may and ports.free(held, needs) == 0
                if high > cycle or (may and not both):
                    left = ports.left(held)
                    for to in second.issued(b, cycle):
                        yield cycle, (None, chosen), (first.later(a, cycle), to, left)

    def _span(self, ready: Range, needs: Reservation, holding: int) -> Range:
        """Return the cycles in which a warp can be the first to issue; never at a barrier or at its end."""
        if needs is NOTHING_HELD:
            return _NEVER, _NEVER
        free = self._holdings.free(holding, needs)
        return ready if free <= ready[0] else (free, max(ready[1], free))

    def _passing(self, state: EventState) -> Iterator[_Event]:
        """Yield the end of a barrier, where both wait or one has finished; what follows can issue in the same cycle."""
        first, second = self._first, self._second
        a, b, holding = state
        ready, ready_of_other = first.ready[a], second.ready[b]
        for cycle in range(max(ready[0], ready_of_other[0]) - 1, max(ready[1], ready_of_other[1])):
            held = self._holdings.left(self._holdings.later(holding, cycle))
            targets = first.issued(a, cycle) if first.place[a] < first.end else (first.begun(first.end),)
            targets_of_other = second.issued(b, cycle) if second.place[b] < second.end else (second.begun(second.end),)
            for to, to_of_other in product(targets, targets_of_other):
                yield cycle, (None, None), (to, to_of_other, held)

    def witness(self) -> Schedule:
        """Return a longest schedule, once all states are visited."""
        one, other, holding, cycles, sources = self._visited
        numbers = [self._last]
        while (source := sources[numbers[-1]]) >= 0:
            numbers.append(source)
        numbers.reverse()
        courses = [_WarpEvents(0, self._first), _WarpEvents(1, self._second)]
        for at, to in pairwise(numbers):
            before, after = ((one[number], other[number], holding[number]) for number in (at, to))
            chosen, state = self._between(before, after, cycles[to] - cycles[at])
            for course, situation, taken in zip(courses, before, chosen, strict=False):
                course.follow(situation, cycles[to], taken, is_issue=chosen != (None, None))
            if self._sorted(state) != state:
                courses.reverse()
        return self._schedule(sorted(courses, key=lambda course: course.warp)[: self._instance.warps])

    def _between(
        self, before: EventState, after: EventState, cycle: int
    ) -> tuple[tuple[HeldUses | None, HeldUses | None], EventState]:
        """Return what happens in the event that leads from a state to another, and the latter before it is sorted."""
        for later, chosen, state in self._after(before):
            if later == cycle and self._sorted(state) == after:
                return chosen, state
        raise BrokenPromiseError("no event leads from a state of two warps to the one that came from it")

    def _schedule(self, courses: Sequence["_WarpEvents"]) -> Schedule:
        cycles: list[tuple[int, ...]] = [()] * self.longest
        for course in courses:
            course.settle(self.longest)
            for issue in course.issues:
                cycles[issue.cycle] += (course.warp,)
        return Schedule.of(
            self._instance,
            cycles,
            [course.path for course in courses],
            [[issue.latency for issue in course.issues] for course in courses],
            [[issue.chosen for issue in course.issues] for course in courses],
            (),
        )


@dataclass(slots=True)
class _Issue:
    """An instruction is issued; its latency counts once its result is waited for."""

    place: int
    cycle: int
    chosen: HeldUses
    latency: int


class _WarpEvents:
    """The events of one warp, which choose its path, latencies and uses."""

    def __init__(self, warp: int, situations: Situations) -> None:
        self.warp, self._situations = warp, situations
        self.path: list[int] = []
        self.issues: list[_Issue] = []
        self._pending: list[_Issue] = []

    def follow(self, situation: int, cycle: int, chosen: HeldUses | None, *, is_issue: bool) -> None:
        """Take part in an event, or not."""
        place = self._situations.place[situation]
        if is_issue and chosen is None:
            return
        begin = cycle if is_issue else cycle + 1  # of what comes after a barrier
        if place == self._situations.end:
            self.settle(begin)
            return
        timing = self._situations.timings[place]
        self.settle(begin, timing.awaits)
        self.path.append(place)
        if chosen is not None:
            self.issues.append(_Issue(place, cycle, chosen, timing.latency[0]))
            self._pending.append(self.issues[-1])

    def settle(self, cycle: int, awaited: Iterable[int] | None = None) -> None:
        """Let results that were waited for up to this cycle take until then, if they can; None means all results.

        So no warp is ready earlier than it may be, and none is later than a longest latency allows.
        """
        pending, self._pending = self._pending, []
        for issue in pending:
            timing = self._situations.timings[issue.place]
            if awaited is None or not set(timing.sets).isdisjoint(awaited):
                issue.latency = max(timing.latency[0], min(timing.latency[1], cycle - issue.cycle))
            else:
                self._pending.append(issue)
