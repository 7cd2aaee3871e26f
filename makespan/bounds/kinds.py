"""The finite abstraction of a cycle on which potential certificates rest.

Words used here, for unit classes 0..n-1:

sigma       capacities
threshold   per class; a count that reaches it is *open*: "that many or more"
kind        ready warps per class, cut at the thresholds
coarse      a kind cut at the capacities; `full` is the coarse kind in which every class is saturated
node        a kind, labelled where its coarse kind is full by the coarse kind that comes after the full ones
slot        where the last finisher stands in a cycle: among the movers (class, next class) or the unmoved (class)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from makespan.certificate import FINISHED, Kind, Node

Crossing = tuple[int, int]
"""(class of an instruction, class of the next one); `END` as the next class means that the warp finishes."""
END = -1


class Transition(NamedTuple):
    """One cycle, abstractly: how many warps move from class to class, and at least how many stay."""

    source: Kind
    target: Kind
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    open: tuple[bool, ...]


@dataclass(frozen=True)
class Abstraction:
    """All abstract cycles of `warps` warps whose instructions follow each other as `crossings` says."""

    sigma: tuple[int, ...]
    thresholds: tuple[int, ...]
    crossings: frozenset[Crossing]
    warps: int

    def coarse(self, kind: Kind) -> Kind:
        """The kind cut at the capacities."""
        return tuple(map(min, kind, self.sigma))

    @property
    def full(self) -> Kind:
        """The coarse kind in which every class is saturated."""
        return self.sigma

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """All kinds in which at least one warp is ready."""
        counts = product(*(range(threshold + 1) for threshold in self.thresholds))
        return tuple(kind for kind in counts if 0 < sum(kind) <= self.warps)

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """Every abstract cycle from every kind."""
        return tuple(transition for kind in self.kinds for transition in self._from(kind))

    @cached_property
    def labels(self) -> tuple[Kind, ...]:
        """What may follow the full states: each coarse kind that one cycle reaches from them, or the end."""
        exits = {
            self.coarse(t.target) if t.target else FINISHED
            for t in self.transitions
            if self.coarse(t.source) == self.full
        }
        return tuple(sorted(exits - {self.full}))

    def nodes_of(self, kind: Kind) -> tuple[Node, ...]:
        """The nodes that a state of this kind may be."""
        if self.coarse(kind) == self.full:
            return tuple(Node(kind, label) for label in self.labels)
        return (Node(kind),)

    def node_pairs(self, source: Kind, target: Kind) -> Iterator[tuple[Node, Node | None]]:
        """The nodes before and after a cycle; None after the last one."""
        if self.coarse(source) != self.full:
            yield from ((Node(source), after) for after in (self.nodes_of(target) if target else (None,)))
        elif not target:
            yield Node(source, FINISHED), None
        elif self.coarse(target) == self.full:
            yield from ((Node(source, label), Node(target, label)) for label in self.labels)
        else:
            yield Node(source, self.coarse(target)), Node(target)

    def _from(self, kind: Kind) -> Iterator[Transition]:
        movers = self.coarse(kind)
        ways = (_multisets(unit, count, self._next_of(unit)) for unit, count in enumerate(movers))
        for choice in product(*ways):
            moved = tuple(pair for pairs in choice for pair in pairs)
            arrived = [0] * len(kind)
            for (_, after), count in moved:
                if after != END:
                    arrived[after] += count
            for unmoved in product(*(self._unmoved(kind, unit, arrived[unit]) for unit in range(len(kind)))):
                if sum(movers) + sum(unmoved) <= self.warps:
                    yield self._transition(kind, moved, unmoved, arrived)

    def _unmoved(self, kind: Kind, unit: int, arrived: int) -> Iterable[int]:
        """How many may stay; for an open class up to the number at which the next count is open again."""
        stay = kind[unit] - min(kind[unit], self.sigma[unit])
        if kind[unit] < self.thresholds[unit]:
            return (stay,)
        return range(stay, max(stay, self.thresholds[unit] - arrived) + 1)

    def _transition(
        self, kind: Kind, moved: tuple[tuple[Crossing, int], ...], unmoved: tuple[int, ...], arrived: list[int]
    ) -> Transition:
        counts = [stay + come for stay, come in zip(unmoved, arrived, strict=True)]
        still_open = tuple(
            before == threshold <= after for before, threshold, after in zip(kind, self.thresholds, counts, strict=True)
        )
        target = tuple(map(min, counts, self.thresholds))
        return Transition(kind, target if any(target) else FINISHED, moved, unmoved, still_open)

    def _next_of(self, unit: int) -> list[int]:
        return sorted(after for before, after in self.crossings if before == unit)


def _multisets(unit: int, count: int, after: list[int]) -> list[tuple[tuple[Crossing, int], ...]]:
    """Every way in which `count` warps of class `unit` move on to the classes `after`."""
    return [
        tuple(((unit, to), chosen.count(to)) for to in after if to in chosen)
        for chosen in combinations_with_replacement(after, count)
    ]
