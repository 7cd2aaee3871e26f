"""What a potential must satisfy, as finitely many inequalities that do not depend on the number of warps.

For every abstract transition, pair of nodes and slot of the last finisher, the smallest possible decrease of the
potential must be at least one cycle. The decrease is a sum of minima over places, one per crossing and per class
of unmoved warps; an inequality that lies between two others is implied and left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from makespan.bounds.kinds import END, Abstraction, Crossing, Transition
from makespan.bounds.repetition import Interpolation, interpolation
from makespan.certificate import Node
from makespan.instance import Instance

Slot = Crossing | int
"""Where the last finisher is: a crossing if it moves, the number of its class if it stays."""

Edges = dict[Crossing, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Question:
    """An instance as arrays, with the last finisher in group `last`."""

    instance: Instance
    last: int

    def __post_init__(self) -> None:
        self.instance.require_basic("a certificate")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The unit classes that some warp uses; elsewhere a class is its index here."""
        used = set().union(*(group.program.units for group in self.instance.groups))
        return tuple(unit for unit in self.instance.machine.capacities if unit in used)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Per group, the warps besides the last finisher."""
        return tuple(group.warps - (number == self.last) for number, group in enumerate(self.instance.groups))

    @cached_property
    def units(self) -> tuple[np.ndarray, ...]:
        """Per group, the class of every place, and `END` after the last one."""
        code = {unit: number for number, unit in enumerate(self.classes)}
        return tuple(
            np.array([*(code[place.unit] for place in group.program.places), END]) for group in self.instance.groups
        )

    @cached_property
    def edges(self) -> tuple[Edges, ...]:
        """Per group and crossing, the places before and after."""
        return tuple(map(self._edges, range(len(self.instance.groups))))

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
        return {
            (int(x), int(y)): (before[which == number], after[which == number]) for number, (x, y) in enumerate(kinds)
        }

    @cached_property
    def crossings_of_others(self) -> frozenset[Crossing]:
        """The crossings that a warp besides the last finisher can make."""
        return frozenset().union(*(edges for count, edges in zip(self.others, self.edges, strict=True) if count))

    @property
    def crossings_of_last(self) -> frozenset[Crossing]:
        """The crossings that the last finisher can make."""
        return frozenset(self.edges[self.last])

    def abstraction(self, extra: int | tuple[int, ...]) -> Abstraction:
        """The abstraction with thresholds `extra` above the capacities."""
        sigma = tuple(self.instance.machine.capacities[unit] for unit in self.classes)
        above = (extra,) * len(sigma) if isinstance(extra, int) else extra
        thresholds = tuple(s + e for s, e in zip(sigma, above, strict=True))
        return Abstraction(sigma, thresholds, self.crossings_of_others | self.crossings_of_last, self.instance.warps)


class Decrease(NamedTuple):
    """How often each minimum enters the decrease of the potential in one cycle, besides the last finisher's."""

    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that a potential must satisfy."""

    requirements: tuple[Requirement, ...]
    dominances: frozenset[Dominance]


class Stopped(Exception):
    """The caller's `stop` said so; nothing is proven."""


def conditions(question: Question, shape: Abstraction, stop: Callable[[], bool] = lambda: False) -> Conditions:
    """The conditions of every transition of `shape`.

    Raises:
        Stopped: `stop` said so.
    """
    found: dict[tuple[Node, Node | None, Slot], set[Decrease]] = defaultdict(set)
    dominances = set()
    for transition in shape.transitions:
        if stop():
            raise Stopped
        for slot in _slots(question, shape, transition):
            others = _others(question, transition, slot)
            if others is None:
                continue
            for before, after in shape.node_pairs(transition.source, transition.target):
                same = before == after
                found[before, after, slot].add(Decrease(others.moved, ()) if same else others)
                if after is not None and not same:
                    dominances |= {Dominance(before, after, u) for u, is_open in enumerate(transition.open) if is_open}
    requirements: list[Requirement] = []
    for (before, after, slot), cases in found.items():
        if stop():
            raise Stopped
        requirements += [Requirement(before, after, slot, others) for others in _extreme(cases)]
    return Conditions(tuple(requirements), frozenset(dominances))


def _slots(question: Question, shape: Abstraction, transition: Transition) -> Iterator[Slot]:
    """Where the last finisher may be: it finishes exactly in the cycle that finishes everything."""
    ends = not transition.target
    for crossing, _ in transition.moved:
        if (crossing[1] == END) == ends and crossing in question.crossings_of_last:
            yield crossing
    if ends:
        return
    room = sum(count for _, count in transition.moved) + sum(transition.unmoved) < shape.warps
    waits_for = {before for before, _ in question.crossings_of_last}
    for unit, count in enumerate(transition.unmoved):
        if unit in waits_for and (count or (transition.open[unit] and room)):
            yield unit


def _others(question: Question, transition: Transition, slot: Slot) -> Decrease | None:
    """What the warps besides the last finisher do; None when no such warps exist."""
    possible = question.crossings_of_others
    moved = tuple((crossing, n - (crossing == slot)) for crossing, n in transition.moved if n > (crossing == slot))
    unmoved = tuple(max(0, count - (unit == slot)) for unit, count in enumerate(transition.unmoved))
    waiting = {unit for unit, count in enumerate(unmoved) if count}
    if not {crossing for crossing, _ in moved} <= possible or not waiting <= {unit for unit, _ in possible}:
        return None
    return Decrease(moved, unmoved)


def _extreme(cases: set[Decrease]) -> list[Decrease]:
    """The cases that are not midpoints of two others; the inequality of a midpoint follows from theirs."""
    axes = sorted({crossing for case in cases for crossing, _ in case.moved})
    points = {}
    for case in cases:
        count = dict(case.moved)
        points[*(count.get(axis, 0) for axis in axes), *case.unmoved] = case
    doubled = set()
    vectors = list(points)
    for number, first in enumerate(vectors):
        doubled |= {tuple(a + b for a, b in zip(first, second, strict=True)) for second in vectors[:number]}
    return [case for vector, case in points.items() if tuple(2 * a for a in vector) not in doubled]
