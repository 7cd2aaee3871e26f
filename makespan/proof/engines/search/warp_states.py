"""The states of single warps as numbers: warps in equal states have the same future.

A pending result is known by the places that need it, not by its token, so results that the same places need are one. It
is forgotten once it is sure to be there before the warp can come to any of these places, and what the next place needs
is only a time to wait. (docs/theory.md, 8.)
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.lowered import NOTHING_HELD, LoweredMachine, Reservation
from makespan.model.program import BARRIER, Program

FINISHED = 0
"""The number of all warps that have nothing left to do or to wait for."""

_Pending = tuple[tuple[int, int], ...]
"""For a set of places, as bits, the cycles until a result that they need is there; the end needs every result."""


class _WarpState(NamedTuple):
    """A crew (-1 less the block for a warp at its end), the next place, cycles to wait for it, and what is pending."""

    crew: int
    place: int
    wait: int
    pending: _Pending


class Move(NamedTuple):
    """The state of a warp a cycle later, by number, the place that it goes to, and the latency of its instruction."""

    number: int
    target: int
    latency: int


class WarpStates:
    """The states of the warps of an instance under numbers, and what follows from each.

    A *crew* are the warps of a group in one block. By number:

    Attributes:
        reservation: what the instruction holds that it could issue now; nothing if there is none.
        issues: whether there is one.
        at_barrier: whether it stands at a barrier.
        wait: cycles until it stands ready at its place, or has finished.
        block: where it belongs.
        to_go: an amount that is smaller the further it is.
    """

    def __init__(self, instance: Instance) -> None:
        self.blocks, self.barriers = instance.blocks, instance.has_barriers
        lowered = LoweredMachine.of(instance.machine)
        self.crews = [
            (_TimedProgram(group.program, lowered), block, group.warps // instance.blocks)
            for group in instance.groups
            for block in range(instance.blocks)
        ]
        self._numbers: dict[_WarpState, int] = {}
        self._states: list[_WarpState] = []
        self.reservation: list[Reservation] = []
        self.issues: list[bool] = []
        self.at_barrier: list[bool] = []
        self.wait: list[int] = []
        self.block: list[int] = []
        self.to_go: list[int] = []
        self._number(_WarpState(-1, 0, 0, ()))
        self.later = cache(self._later)
        self.moves = cache(self._moves)

    def begin(self, crew: int) -> list[int]:
        """Return the states in which the warps of a crew may begin."""
        return [self._numbered(crew, start, 0, ()) for start in self.crews[crew][0].program.starts]

    def crew(self, number: int) -> int:
        """Return the crew of a warp in this state, which is not its end."""
        return self._states[number].crew

    def place(self, number: int) -> int:
        """Return the place of a warp in this state."""
        return self._states[number].place

    def _later(self, number: int, cycles: int) -> int:
        """Return the same warp `cycles` later, if it does not issue."""
        crew, place, wait, pending = self._states[number]
        left = tuple((needed, rest - cycles) for needed, rest in pending if rest > cycles)
        return self._numbered(crew, place, max(0, wait - cycles), left)

    def _moves(self, number: int) -> list[Move]:
        """Return the moves of a warp that issues or passes its barrier now; of several that end alike the first one."""
        crew, at, _, pending = self._states[number]
        course = self.crews[crew][0]
        found: dict[int, Move] = {}
        for target in course.program.places[at].successors:
            for latency, wait, new in course.outcomes(at):
                spent = 0 if self.at_barrier[number] else 1
                left = [(needed, rest - spent) for needed, rest in pending if rest > spent]
                after = self._numbered(crew, target, wait, (*left, *new))
                found.setdefault(after, Move(after, target, latency))
        return list(found.values())

    def _numbered(self, crew: int, place: int, wait: int, pending: Iterable[tuple[int, int]]) -> int:
        if crew < 0:
            return self._number(_WarpState(crew, place, wait, ()) if wait else self._states[FINISHED])
        course, block, _ = self.crews[crew]
        known = tuple(pending)
        at_end = place == course.program.end
        wait = max((wait, *(left for needed, left in known if at_end or needed >> place & 1)))
        if at_end:
            return self._numbered(-1 - (block if self.barriers else 0), 0, wait, ())
        return self._number(_WarpState(crew, place, wait, course.relevant(place, wait, known)))

    def _number(self, state: _WarpState) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            course = None if state.crew < 0 else self.crews[state.crew][0]
            reservation = NOTHING_HELD
            if course is not None and not state.wait:
                reservation = course.reservation(state.place)
            self._states.append(state)
            self.wait.append(state.wait)
            self.reservation.append(reservation)
            self.issues.append(reservation is not NOTHING_HELD)
            self.at_barrier.append(course is not None and not state.wait and not self.issues[-1])
            self.block.append(-1 - state.crew if course is None else self.crews[state.crew][1])
            self.to_go.append(0 if course is None else course.program.end - state.place)
        return number


class _TimedProgram:
    """A program with what its places say of time."""

    def __init__(self, program: Program, lowered: LoweredMachine) -> None:
        self.program, self._lowered = program, lowered
        self._needing: dict[int, int] = {}
        for at, timing in enumerate(program.timings):
            for token in timing.awaits:
                self._needing[token] = self._needing.get(token, 0) | 1 << at
        self._until_needed = cache(self._cycles_until_needed)
        self.outcomes = cache(self._outcomes)

    def reservation(self, at: int) -> Reservation:
        """Return what the instruction at a place holds."""
        return self._lowered.reservation(self.program, at)

    def _cycles_until_needed(self, needed: int) -> list[int]:
        """Return, for every place, the least cycles from its issue until the warp can be at a place that is needed."""
        program = self.program
        found = [0] * program.end
        for at in range(program.end - 1, -1, -1):
            after = (0 if s == program.end or needed >> s & 1 else found[s] for s in program.places[at].successors)
            found[at] = self._lowered.stall(program, at)[0] + min(after)
        return found

    def relevant(self, place: int, wait: int, pending: Sequence[tuple[int, int]]) -> _Pending:
        """Return the pending results that may keep the warp waiting somewhere behind this place."""
        kept: dict[int, int] = {}
        for needed, left in pending:
            # else the result is there before the warp can come to where it needs it: no future tells it from none
            if left > wait + self._until_needed(needed)[place]:
                behind = needed >> place + 1 << place + 1
                kept[behind] = max(left, kept.get(behind, 0))
        # a result says nothing beside one that is needed wherever it is, and pending for at least as long
        return tuple(
            (needed, left)
            for needed, left in sorted(kept.items())
            if not any(needed | more == more != needed and left <= longer for more, longer in kept.items())
        )

    def _outcomes(self, at: int) -> list[tuple[int, int, _Pending]]:
        """Return every latency of a place, with the cycles to wait after the issue and what is pending then."""
        return list(self._outcomes_of(at))

    def _outcomes_of(self, at: int) -> Iterator[tuple[int, int, _Pending]]:
        unit = self.program.places[at].unit
        if unit == BARRIER:
            yield 0, 0, ()
        elif not self.program.timings:
            least, most = self._lowered.latencies[unit]
            yield from ((latency, latency - 1, ()) for latency in range(least, most + 1))
        else:
            stall, (least, most), sets, _ = self.program.timings[at]
            for latency in range(least, most + 1):
                new = ((self._needing.get(token, 0), latency - 1) for token in sets if latency > 1)
                yield latency, stall - 1, tuple(new)
