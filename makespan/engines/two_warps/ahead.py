"""One or two warps that run ahead, exactly: from event to event, over all that the past can leave behind.

An *event* is a cycle in which a warp issues, or in which both pass a barrier. Until the next one nobody has a choice
but for latencies, and each event lets a warp go on to a later place. So the states (what each warp waits for, how ports
are held) are visited by the sum of the two places, each with the first and the last cycle in which it can be reached.
docs/theory.md, section 8, has the proof.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

from makespan.engines.finding import Finding
from makespan.engines.limits import Limits
from makespan.engines.two_warps.holdings import Chosen, Holdings
from makespan.engines.two_warps.situations import Situation, Situations
from makespan.errors import BrokenPromiseError
from makespan.feature import BARRIERS, PROGRAMS, TIMES, Feature
from makespan.instance import Instance
from makespan.program import BARRIER
from makespan.result import Bounds, Upper
from makespan.schedule import Schedule

KNOWS = PROGRAMS | TIMES | BARRIERS | {Feature.RESOURCES, Feature.STALL_ON_USE}

_BYTES_PER_STATE = 400
_BYTES_PER_SITUATION = 1500
_STATES_PER_LOOK = 500
_NEVER = 1 << 40

State = tuple[int, int, int]
"""The numbers of the situations of both warps, and of the holding."""


def applies(instance: Instance) -> bool:
    """Whether there are one or two warps, that meet at all barriers or at none, with what only this module knows."""
    is_plain = not instance.features.keys() & {Feature.RESOURCES, Feature.STALL_ON_USE}
    return instance.warps <= 2 and instance.blocks == 1 and not is_plain and not instance.beyond(KNOWS)


def solve(instance: Instance, limits: Limits) -> Finding:
    """The exact worst and best case; nothing where limits do not suffice. This `applies` to the instance."""
    events = _Events(instance)
    if not events.visit(limits):
        return Finding()
    best_case = Bounds(events.shortest, events.shortest)
    return Finding(events.witness(), events.longest, Upper.SEARCH, best_case=best_case)


def best_case(instance: Instance, limits: Limits) -> Bounds | None:
    """The exact best case; None where limits do not suffice. This `applies` to the instance."""
    return solve(instance, limits).best_case


class _Event(NamedTuple):
    """So many cycles after the last event; of each warp what it holds if it issues, else None."""

    cycle: int
    chosen: tuple[Chosen | None, Chosen | None]
    state: State


class _Events:
    """The states of an instance; two warps of the same program share their situations, in increasing order."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._holdings = Holdings(instance)
        programs = tuple(dict.fromkeys(instance.programs()))
        situations = [Situations(program, instance.machine) for program in programs]
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

    def _sorted(self, state: State) -> State:
        one, other, holding = state
        return (other, one, holding) if self._is_same and one > other else state

    def visit(self, limits: Limits) -> bool:
        """All states, by the sum of their places; False when a limit comes first."""
        first, second = self._first, self._second
        waiting: list[dict[State, list[int]]] = [{} for _ in range(first.end + second.end + 1)]
        for start in self._starts:
            waiting[self._sum(start)][start] = [-1, -1, -1]
        visited, live = 0, 0
        one, other, holding, cycles, sources = self._visited
        for number in range(len(waiting)):
            here, waiting[number] = waiting[number], {}
            for state, (latest, source, soonest) in here.items():
                if visited % _STATES_PER_LOOK == 0 and not self._within(limits, live):
                    return False
                one.append(state[0])
                other.append(state[1])
                holding.append(state[2])
                cycles.append(latest)
                sources.append(source)
                ended = True
                for event in self._after(state):
                    ended = False
                    after = self._sorted(event.state)
                    layer = waiting[self._sum(after)]
                    known = layer.get(after)
                    if known is None:
                        layer[after] = [latest + event.cycle, visited, soonest + event.cycle]
                        live += 1
                        continue
                    if latest + event.cycle > known[0]:
                        known[0], known[1] = latest + event.cycle, visited
                    if soonest + event.cycle < known[2]:
                        known[2] = soonest + event.cycle
                if ended:
                    ready = first.known[state[0]].ready, second.known[state[1]].ready
                    if latest + max(ready[0][1], ready[1][1]) > self.longest:
                        self.longest, self._last = latest + max(ready[0][1], ready[1][1]), visited
                    self.shortest = min(self.shortest, soonest + max(ready[0][0], ready[1][0]))
                visited += 1
            live -= len(here)
        return True

    def _sum(self, state: State) -> int:
        return self._first.known[state[0]].place + self._second.known[state[1]].place

    def _within(self, limits: Limits, live: int) -> bool:
        situations = len(self._first.known) + len(self._second.known)
        size = live * _BYTES_PER_STATE + situations * _BYTES_PER_SITUATION + 40 * len(self._visited[0])
        if size > limits.memory_bytes:
            limits.need_memory()
            return False
        return not limits.expired

    def _after(self, state: State) -> Iterator[_Event]:
        """Every next event; none where both warps have issued all."""
        first, second, ports = self._first, self._second, self._holdings
        a, b, holding = state
        one, other = first.known[a], second.known[b]
        unit = first.places[one.place].unit if one.place < first.end else ""
        unit_of_other = second.places[other.place].unit if other.place < second.end else ""
        if (unit, unit_of_other) in {(BARRIER, BARRIER), (BARRIER, ""), ("", BARRIER)}:
            yield from self._passing(state, unit, unit_of_other)
            return
        low, high = self._span(one, unit, holding)
        low_of_other, high_of_other = self._span(other, unit_of_other, holding)
        for cycle in range(min(low, low_of_other), min(high, high_of_other) + 1) if unit or unit_of_other else ():
            now = ports.later(holding, cycle)
            may, other_may = low <= cycle, low_of_other <= cycle
            for chosen, held in ports.taken(now, unit) if may else ():
                both = other_may and not ports.one_slot and ports.free(held, unit_of_other) == 0
                targets = first.issued(a, cycle)
                if high_of_other > cycle or (other_may and not both):
                    left = ports.left(held)
                    for to in targets:
                        yield _Event(cycle, (chosen, None), (to, second.later(b, cycle), left))
                if both:
                    for also, all_held in ports.taken(held, unit_of_other):
                        left = ports.left(all_held)
                        for to, to_of_other in product(targets, second.issued(b, cycle)):
                            yield _Event(cycle, (chosen, also), (to, to_of_other, left))
            for chosen, held in ports.taken(now, unit_of_other) if other_may else ():
                both = may and not ports.one_slot and ports.free(held, unit) == 0
                if high > cycle or (may and not both):
                    left = ports.left(held)
                    for to in second.issued(b, cycle):
                        yield _Event(cycle, (None, chosen), (first.later(a, cycle), to, left))

    def _span(self, situation: Situation, unit: str, holding: int) -> tuple[int, int]:
        """The cycles in which a warp can be the first to issue; never at a barrier, where it waits for the other."""
        if unit in ("", BARRIER):
            return _NEVER, _NEVER
        free = self._holdings.free(holding, unit)
        return max(situation.ready[0], free), max(situation.ready[1], free)

    def _passing(self, state: State, unit: str, unit_of_other: str) -> Iterator[_Event]:
        """Both stand at barriers, or one has finished; what follows can be issued in the same cycle."""
        first, second = self._first, self._second
        a, b, holding = state
        ready, ready_of_other = first.known[a].ready, second.known[b].ready
        for cycle in range(max(ready[0], ready_of_other[0]) - 1, max(ready[1], ready_of_other[1])):
            held = self._holdings.left(self._holdings.later(holding, cycle))
            targets = first.issued(a, cycle) if unit else (first.begun(first.end),)
            targets_of_other = second.issued(b, cycle) if unit_of_other else (second.begun(second.end),)
            for to, to_of_other in product(targets, targets_of_other):
                yield _Event(cycle, (None, None), (to, to_of_other, held))

    def witness(self) -> Schedule:
        """A longest schedule, once all states are visited."""
        one, other, holding, cycles, sources = self._visited
        numbers = [self._last]
        while (source := sources[numbers[-1]]) >= 0:
            numbers.append(source)
        numbers.reverse()
        courses = [_Course(0, self._first), _Course(1, self._second)]
        for at, to in pairwise(numbers):
            before, after = ((one[number], other[number], holding[number]) for number in (at, to))
            event = self._between(before, after, cycles[to] - cycles[at])
            for course, situation, chosen in zip(courses, before, event.chosen, strict=False):
                course.follow(situation, cycles[to], chosen, is_issue=event.chosen != (None, None))
            if self._sorted(event.state) != event.state:
                courses.reverse()
        return self._schedule(sorted(courses, key=lambda course: course.warp)[: self._instance.warps])

    def _between(self, before: State, after: State, cycle: int) -> _Event:
        for event in self._after(before):
            if event.cycle == cycle and self._sorted(event.state) == after:
                return event
        raise BrokenPromiseError("no event leads from a state of two warps to the one that came from it")

    def _schedule(self, courses: Sequence["_Course"]) -> Schedule:
        cycles: list[tuple[int, ...]] = [()] * self.longest
        for course in courses:
            course.settle(self.longest)
            for issue in course.issues:
                cycles[issue.cycle] += (course.warp,)
        latencies, uses = (
            tuple(tuple(issue.latency for issue in course.issues) for course in courses),
            tuple(tuple(issue.chosen for issue in course.issues) for course in courses),
        )
        return Schedule(
            tuple(cycles),
            tuple(tuple(course.path) for course in courses),
            () if self._instance.fixed_latencies else latencies,
            uses=() if self._instance.machine.fixed_uses else uses,
        )


@dataclass(slots=True)
class _Issue:
    """An instruction is issued; its latency counts once its result is waited for."""

    place: int
    cycle: int
    chosen: Chosen
    latency: int


class _Course:
    """What one warp does, event by event."""

    def __init__(self, warp: int, situations: Situations) -> None:
        self.warp, self._situations = warp, situations
        self.path: list[int] = []
        self.issues: list[_Issue] = []
        self._pending: list[_Issue] = []

    def follow(self, situation: int, cycle: int, chosen: Chosen | None, *, is_issue: bool) -> None:
        """Take part in an event, or not."""
        place = self._situations.known[situation].place
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
        """What has been waited for up to this cycle took until then, if it could; None is for everything.

        So no warp is ready earlier than it may be, and none is later than a longest latency allows.
        """
        pending, self._pending = self._pending, []
        for issue in pending:
            timing = self._situations.timings[issue.place]
            if awaited is None or not set(timing.sets).isdisjoint(awaited):
                issue.latency = max(timing.latency[0], min(timing.latency[1], cycle - issue.cycle))
            else:
                self._pending.append(issue)
