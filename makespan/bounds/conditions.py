"""What a potential must satisfy, as finitely many inequalities that do not depend on the number of warps.

For every abstract transition, pair of nodes and slot of the last finisher, the smallest possible decrease of the
potential must be at least one cycle. The decrease is a sum of minima over places, one per crossing and per class
of unmoved warps, and over the cycles for which ports are held; an inequality that lies between two others is implied
and left out. Where a transition does not say how many warps stay or move, none of them may raise the potential.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np

from makespan.bounds.abstraction import DELAYED, END, Abstraction, Crossing, Transition
from makespan.bounds.repetition import Interpolation, interpolation
from makespan.certificate import Node
from makespan.feature import DELAYS, PROGRAMS, Feature
from makespan.instance import Instance
from makespan.machine import DELAY

KNOWS = PROGRAMS | DELAYS | {Feature.INTERVALS, Feature.ISSUE_WIDTH}

Slot = Crossing | int
"""Where the last finisher is: a crossing if it moves, the number of its class if it stays."""

Pairs = tuple[np.ndarray, np.ndarray]
"""Places before and after a cycle."""

Edges = dict[Slot, Pairs]


@dataclass(frozen=True)
class Question:
    """An instance as arrays, with the last finisher in group `last`.

    Args:
        instance: without barriers, and with its latencies as delay places (`delays.expanded`).
    """

    instance: Instance
    last: int

    def __post_init__(self) -> None:
        self.instance.require(KNOWS, "a certificate, which takes latencies as places,")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The unit classes that some warp uses, but for delays; elsewhere a class is its index here."""
        used = set().union(*(group.program.units for group in self.instance.groups)) - {DELAY}
        return tuple(unit for unit in self.instance.machine.capacities if unit in used)

    @cached_property
    def timed(self) -> tuple[tuple[int, int], ...]:
        """Index and interval of each class whose interval is longer than one cycle."""
        intervals = {unit.name: unit.interval for unit in self.instance.machine.units}
        return tuple((number, intervals[unit]) for number, unit in enumerate(self.classes) if intervals[unit] > 1)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Per group, the warps besides the last finisher."""
        return tuple(group.warps - (number == self.last) for number, group in enumerate(self.instance.groups))

    @cached_property
    def units(self) -> tuple[np.ndarray, ...]:
        """Per group, the class of every place or `DELAYED`, and `END` after the last one."""
        code = {DELAY: DELAYED} | {unit: number for number, unit in enumerate(self.classes)}
        return tuple(
            np.array([*(code[place.unit] for place in group.program.places), END]) for group in self.instance.groups
        )

    @cached_property
    def edges(self) -> tuple[Edges, ...]:
        """Per group and crossing or class of those that stay, the places before and after."""
        return tuple(map(self._edges, range(len(self.instance.groups))))

    @cached_property
    def enough(self) -> tuple[Edges, ...]:
        """The same as far as they are needed in a linear programme: of an affine stretch the ends."""
        return tuple(
            {slot: (p[kept], q[kept]) for slot, (p, q) in edges.items() for kept in [merged.ends(p, q)]}
            for edges, merged in zip(self.edges, self.interpolations, strict=True)
        )

    @cached_property
    def interpolations(self) -> tuple[Interpolation, ...]:
        """Per group, which places of a long string are merged in a linear programme."""
        return tuple(interpolation(group.program) for group in self.instance.groups)

    def _edges(self, number: int) -> Edges:
        places = self.instance.groups[number].program.places
        before = np.repeat(np.arange(len(places)), [len(place.successors) for place in places])
        after = np.array([target for place in places for target in place.successors])
        unit = self.units[number]
        crossing = np.stack([unit[before], unit[after]], axis=1)
        kinds, which = np.unique(crossing, axis=0, return_inverse=True)
        found: Edges = {
            (int(x), int(y)): (before[which == number], after[which == number]) for number, (x, y) in enumerate(kinds)
        }
        standing = ((number, np.flatnonzero(unit == number)) for number in range(len(self.classes)))
        return found | {number: (on, on) for number, on in standing if len(on)}

    @cached_property
    def crossings_of_others(self) -> frozenset[Crossing]:
        """The crossings that a warp besides the last finisher can make."""
        return frozenset().union(*(_crossings(own) for n, own in zip(self.others, self.edges, strict=True) if n))

    @cached_property
    def crossings_of_last(self) -> frozenset[Crossing]:
        """The crossings that the last finisher can make."""
        return _crossings(self.edges[self.last])

    def abstraction(self, extra: int | tuple[int, ...]) -> Abstraction:
        """The abstraction with thresholds `extra` above the capacities."""
        sigma = tuple(self.instance.machine.capacities[unit] for unit in self.classes)
        above = (extra,) * len(sigma) if isinstance(extra, int) else extra
        thresholds = tuple(s + e for s, e in zip(sigma, above, strict=True))
        crossings = self.crossings_of_others | self.crossings_of_last
        width = self.instance.machine.issue_width
        return Abstraction(sigma, thresholds, crossings, self.instance.warps, self.timed, width)


def _crossings(edges: Edges) -> frozenset[Crossing]:
    return frozenset(slot for slot in edges if isinstance(slot, tuple))


class Ports(NamedTuple):
    """Ports of a timed class in one cycle: held for the last time, held for longer, and taken."""

    released: int
    kept: int
    taken: int


class Decrease(NamedTuple):
    """How often each minimum enters the decrease of the potential in one cycle, besides the last finisher's."""

    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    ports: tuple[Ports, ...] = ()


class Requirement(NamedTuple):
    """From node `before` to `after` (None when all finish), the decrease must be at least one cycle."""

    before: Node
    after: Node | None
    slot: Slot
    others: Decrease


class Dominance(NamedTuple):
    """On places of class `unit` the others' table of `before` must be at least that of `after`."""

    before: Node
    after: Node
    unit: int


class Descent(NamedTuple):
    """Along the edges of `crossing`, which begin at delays, the others' tables must not rise: any number may move."""

    before: Node
    after: Node | None
    crossing: Crossing


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that a potential must satisfy."""

    requirements: tuple[Requirement, ...]
    dominances: frozenset[Dominance]
    descents: frozenset[Descent]


class Stopped(Exception):
    """The caller's `stop` said so; nothing is proven."""


def conditions(question: Question, shape: Abstraction, stop: Callable[[], bool] = lambda: False) -> Conditions:
    """The conditions of every transition of `shape`.

    Raises:
        Stopped: `stop` said so.
    """
    found: dict[tuple[Node, Node | None, Slot], set[Decrease]] = defaultdict(set)
    dominances, descents = set(), set()
    for transition in shape.transitions:
        if stop():
            raise Stopped
        descending = _descending(question, shape, transition)
        for slot in _slots(question, shape, transition):
            others = _others(question, shape, transition, slot)
            if others is None:
                continue
            for before, after in shape.node_pairs(transition.source, transition.target):
                same = before == after
                found[before, after, slot].add(others._replace(unmoved=()) if same else others)
                if after is not None and not same:
                    dominances |= {Dominance(before, after, u) for u, is_open in enumerate(transition.open) if is_open}
                descents |= {Descent(before, after, crossing) for crossing in descending}
    requirements: list[Requirement] = []
    for (before, after, slot), cases in found.items():
        if stop():
            raise Stopped
        requirements += [Requirement(before, after, slot, others) for others in _extreme(cases)]
    return Conditions(tuple(requirements), frozenset(dominances), frozenset(descents))


def _slots(question: Question, shape: Abstraction, transition: Transition) -> Iterator[Slot]:
    """Where the last finisher may be: it finishes exactly in the cycle that finishes everything."""
    ends = not transition.target
    room = transition.warps < shape.warps
    moving = [crossing for crossing, _ in transition.moved]
    if room:
        moving += [crossing for crossing in _uncounted(transition) if crossing not in moving]
    for crossing in moving:
        if (crossing[1] == END) == ends and crossing in question.crossings_of_last:
            yield crossing
    if ends:
        return
    waits_for = {before for before, _ in question.crossings_of_last}
    for unit, count in enumerate(transition.unmoved):
        if unit in waits_for and (count or (transition.open[unit] and room)):
            yield unit


def _uncounted(transition: Transition) -> list[Crossing]:
    """The crossings that delayed warps may make beyond those that the transition counts."""
    passing = [(DELAYED, END)] if not transition.target else [(DELAYED, DELAYED), (DELAYED, END)]
    return [*passing, *((DELAYED, unit) for unit in transition.joined)]


def _descending(question: Question, shape: Abstraction, transition: Transition) -> list[Crossing]:
    """The crossings that any number of others may make."""
    if transition.warps == shape.warps:
        return []
    return [crossing for crossing in _uncounted(transition) if crossing in question.crossings_of_others]


def _others(question: Question, shape: Abstraction, transition: Transition, slot: Slot) -> Decrease | None:
    """What the warps besides the last finisher do, and the ports; None when no such warps exist."""
    possible = question.crossings_of_others
    moved = tuple((crossing, n - (crossing == slot)) for crossing, n in transition.moved if n > (crossing == slot))
    unmoved = tuple(max(0, count - (unit == slot)) for unit, count in enumerate(transition.unmoved))
    waiting = {unit for unit, count in enumerate(unmoved) if count}
    if not {crossing for crossing, _ in moved} <= possible or not waiting <= {unit for unit, _ in possible}:
        return None
    return Decrease(moved, unmoved, _ports(shape, transition))


def _ports(shape: Abstraction, transition: Transition) -> tuple[Ports, ...]:
    held = shape.held(transition.source)
    return tuple(
        Ports(released, there - released, transition.issued(unit))
        for (unit, _), released, there in zip(shape.timed, transition.released, held, strict=True)
    )


def _extreme(cases: set[Decrease]) -> list[Decrease]:
    """The cases that are not midpoints of two others; the inequality of a midpoint follows from theirs.

    A case is written as one number, its counts as digits, so that the sum of two cases is the sum of their numbers.
    """
    axes = sorted({crossing for case in cases for crossing, _ in case.moved})
    points = {}
    for case in cases:
        count = dict(case.moved)
        points[*(count.get(axis, 0) for axis in axes), *case.unmoved, *(n for ports in case.ports for n in ports)] = (
            case
        )
    base = 2 * max((digit for point in points for digit in point), default=0) + 1
    numbers = {reduce(lambda number, digit: number * base + digit, point, 0): case for point, case in points.items()}
    doubled = {first + second for first, second in combinations(numbers, 2)}
    return [case for number, case in numbers.items() if 2 * number not in doubled]
