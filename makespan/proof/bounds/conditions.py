"""The conditions (D), (O) and (P) of theorem H: finitely many inequalities, whatever the number of warps.

For every abstract cycle and every pair of tables of its nodes, the smallest possible decrease of the potential must be
at least one cycle. The decrease is a sum of minima over places, one per crossing and per class of unmoved others, one
for what the last finisher does, and over the cycles for which ports are held; an inequality that lies between two
others is implied and left out. Where a cycle does not say how many others stay or move, none of them may raise the
potential.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np

from makespan.model.certificate import PotentialNode
from makespan.model.feature import DELAYS, PROGRAMS, Feature
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.proof.bounds.abstraction import (
    DELAYED,
    END,
    Abstraction,
    AbstractSituation,
    Crossing,
    LastSlot,
    PortCounts,
)
from makespan.proof.bounds.repetition import Interpolation, interpolation

KNOWS = PROGRAMS | DELAYS | {Feature.INTERVALS, Feature.ISSUE_WIDTH}

PlacePairs = tuple[np.ndarray, np.ndarray]
"""Places before and after a cycle."""

CrossingEdges = dict[LastSlot, PlacePairs]

_AT_ONCE = 1_000
"""Cases of one requirement, above which not all pairs of them are looked at."""


class Mode(NamedTuple):
    """A key of tables: nodes of equal `others` share what is said of the others, those of equal `last` the rest.

    Fewer modes make a smaller programme and a looser bound.
    """

    others: Hashable
    last: Hashable


Modes = Callable[[PotentialNode], Mode]


@dataclass(frozen=True)
class ProofQuestion:
    """An instance as arrays, with the last finisher in group `last`.

    Args:
        instance: without barriers, and with its latencies as delay places (`delays.expand_latencies`).
    """

    instance: Instance
    last: int

    def __post_init__(self) -> None:
        self.instance.require(KNOWS, "a certificate, which takes latencies as places,")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Return the unit classes that some warp uses, but for delays; elsewhere a class is its index here."""
        used = set().union(*(group.program.units for group in self.instance.groups)) - {DELAY}
        return tuple(unit for unit in self.instance.machine.capacities if unit in used)

    @cached_property
    def timed(self) -> tuple[tuple[int, int], ...]:
        """Index and interval of each class whose interval is longer than one cycle."""
        intervals = {unit.name: unit.interval for unit in self.instance.machine.units}
        return tuple((number, intervals[unit]) for number, unit in enumerate(self.classes) if intervals[unit] > 1)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Return the number of warps of each group besides the last finisher."""
        return tuple(group.warps - (number == self.last) for number, group in enumerate(self.instance.groups))

    @cached_property
    def units(self) -> tuple[np.ndarray, ...]:
        """Return, for each group, the class of every place or `DELAYED`, and `END` after the last one."""
        code = {DELAY: DELAYED} | {unit: number for number, unit in enumerate(self.classes)}
        return tuple(
            np.array([*(code[place.unit] for place in group.program.places), END]) for group in self.instance.groups
        )

    @cached_property
    def edges(self) -> tuple[CrossingEdges, ...]:
        """Return, for each group and crossing, or class of those that stay, the places before and after."""
        return tuple(map(self._edges, range(len(self.instance.groups))))

    @cached_property
    def enough(self) -> tuple[CrossingEdges, ...]:
        """Return the same as far as they are needed in a linear programme: of an affine stretch the ends."""
        return tuple(
            {slot: (p[kept], q[kept]) for slot, (p, q) in edges.items() for kept in [merged.ends(p, q)]}
            for edges, merged in zip(self.edges, self.interpolations, strict=True)
        )

    @cached_property
    def interpolations(self) -> tuple[Interpolation, ...]:
        """Return, for each group, which places of a long string are merged in a linear programme."""
        return tuple(interpolation(group.program) for group in self.instance.groups)

    def _edges(self, number: int) -> CrossingEdges:
        places = self.instance.groups[number].program.places
        before = np.repeat(np.arange(len(places)), [len(place.successors) for place in places])
        after = np.array([target for place in places for target in place.successors])
        unit = self.units[number]
        crossing = np.stack([unit[before], unit[after]], axis=1)
        kinds, which = np.unique(crossing, axis=0, return_inverse=True)
        found: CrossingEdges = {
            (int(x), int(y)): (before[which == number], after[which == number]) for number, (x, y) in enumerate(kinds)
        }
        # to stay is an edge from a place to itself
        standing = ((number, np.flatnonzero(unit == number)) for number in range(len(self.classes)))
        return found | {number: (on, on) for number, on in standing if len(on)}

    @cached_property
    def crossings_of_others(self) -> frozenset[Crossing]:
        """Return the crossings that a warp besides the last finisher can make."""
        return frozenset().union(*(_crossings(own) for n, own in zip(self.others, self.edges, strict=True) if n))

    @cached_property
    def crossings_of_last(self) -> frozenset[Crossing]:
        """Return the crossings that the last finisher can make."""
        return _crossings(self.edges[self.last])

    def abstraction(self, extra: int | tuple[int, ...]) -> Abstraction:
        """Return the abstraction with thresholds `extra` above the capacities."""
        sigma = tuple(self.instance.machine.capacities[unit] for unit in self.classes)
        above = (extra,) * len(sigma) if isinstance(extra, int) else extra
        thresholds = tuple(s + e for s, e in zip(sigma, above, strict=True))
        crossings = self.crossings_of_others, self.crossings_of_last
        width = self.instance.machine.issue_width
        return Abstraction(sigma, thresholds, *crossings, self.instance.warps - 1, self.timed, width)


def _crossings(edges: CrossingEdges) -> frozenset[Crossing]:
    return frozenset(slot for slot in edges if isinstance(slot, tuple))


class Decrease(NamedTuple):
    """The counts with which the minima of the others and of the ports enter the decrease in one cycle, in (D)."""

    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    ports: tuple[PortCounts, ...] = ()


class Requirement(NamedTuple):
    """The condition (D): from `before` to `after`, None when all finish, the decrease is one cycle at least."""

    before: Mode
    after: Mode | None
    slot: LastSlot
    others: Decrease


class Dominance(NamedTuple):
    """The condition (O): on places of class `unit` the others' table must not rise, as any number may stay."""

    before: Hashable
    after: Hashable
    unit: int


class Descent(NamedTuple):
    """The condition (P): along edges that begin at delays the others' table must not rise, as any number may move.

    `after` is None when all finish.
    """

    before: Hashable
    after: Hashable | None
    crossing: Crossing


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that a potential must satisfy, in an order that is the same in every process."""

    requirements: tuple[Requirement, ...]
    dominances: tuple[Dominance, ...]
    descents: tuple[Descent, ...]


class Stopped(Exception):
    """The caller's `stop` said so; nothing is proven."""


def conditions(shape: Abstraction, mode: Modes, stop: Callable[[], bool] = lambda: False) -> Conditions:
    """Return the conditions of every abstract cycle, each for all nodes that it can lead from and to.

    Raises:
        Stopped: `stop` said so.
    """
    found: dict[tuple[Mode, Mode | None, LastSlot], dict[Decrease, None]] = defaultdict(dict)
    dominances: dict[Dominance, None] = {}
    descents: dict[Descent, None] = {}
    pairs: dict[tuple[AbstractSituation, AbstractSituation | None], list[tuple[Mode, Mode | None]]] = {}
    for cycle in shape.cycles:
        if stop():
            raise Stopped
        ends = cycle.source, cycle.target
        if ends not in pairs:
            nodes = shape.node_pairs(*ends)  # each pair asks for the same decrease, of tables of its own
            pairs[ends] = list(
                dict.fromkeys((mode(before), None if after is None else mode(after)) for before, after in nodes)
            )
        whole = Decrease(cycle.moved, cycle.unmoved, cycle.ports)
        for before, after in pairs[ends]:
            same = after is not None and before.others == after.others
            # of equal tables those who stay give up nothing, so cases that differ in them alone become one
            found[before, after, cycle.slot][whole._replace(unmoved=()) if same else whole] = None
            if after is not None and not same:
                dominances |= {Dominance(before.others, after.others, unit): None for unit in cycle.reopened}
            # (P) also where the tables are equal: a delayed warp moves
            descents |= {Descent(before.others, after and after.others, crossing): None for crossing in cycle.passing}
    requirements: list[Requirement] = []
    for (before, after, slot), cases in found.items():
        if stop():
            raise Stopped
        requirements += [Requirement(before, after, slot, others) for others in _extreme(list(cases))]
    return Conditions(tuple(requirements), tuple(dominances), tuple(descents))


def _extreme(cases: list[Decrease]) -> list[Decrease]:
    """Return the cases that are not midpoints of two others; the inequality of a midpoint follows from theirs.

    Of many cases some such midpoints are kept: they are looked at half by half, and together once they are fewer.
    """
    if len(cases) <= _AT_ONCE:
        return _no_midpoints(cases)
    middle = len(cases) // 2  # to leave out fewer midpoints than there are is harmless (lemma 4)
    kept = _extreme(cases[:middle]) + _extreme(cases[middle:])
    return _extreme(kept) if len(kept) < middle else kept


def _no_midpoints(cases: list[Decrease]) -> list[Decrease]:
    """Return the same of few cases.

    A case is written as one number, its counts as digits, so sums of cases are sums of numbers.
    """
    axes = sorted({crossing for case in cases for crossing, _ in case.moved})
    points = []
    for case in cases:
        count = dict(case.moved)
        points.append(
            (*(count.get(axis, 0) for axis in axes), *case.unmoved, *(n for ports in case.ports for n in ports))
        )
    # the base leaves room for the sum of two digits, so no carry makes different sums equal
    base = 2 * max((digit for point in points for digit in point), default=0) + 1
    numbers = [reduce(lambda number, digit: number * base + digit, point, 0) for point in points]
    doubled = {first + second for first, second in combinations(numbers, 2)}
    return [case for number, case in zip(numbers, cases, strict=True) if 2 * number not in doubled]
