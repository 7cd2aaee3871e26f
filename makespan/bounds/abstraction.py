"""The finite abstraction of a cycle on which potential certificates rest.

Words used here, for unit classes 0..n-1:

sigma       capacities, in ports
threshold   per class; a count that reaches it is *open*: "that many or more"
timed       a class whose instructions hold their ports for more than one cycle
kind        ready warps per class, cut at the thresholds; behind them the free ports of every timed class
coarse      ready warps cut at the capacities; `full` is the coarse kind in which every class is saturated
node        a kind, labelled where its coarse kind is full by the coarse kind that comes after the full ones
slot        where the last finisher stands in a cycle: among the movers (class, next class) or the unmoved (class)
delayed     a warp on a delay place: of no class, it moves in every cycle, and kinds do not count it
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import NamedTuple

from makespan.certificate import FINISHED, Kind, Node

Crossing = tuple[int, int]
"""(class of an instruction, class of the next one). `DELAYED` may be either, `END` the second: the warp finishes."""
END = -1
DELAYED = -2


class Transition(NamedTuple):
    """One cycle, abstractly: how many warps move from class to class, and at least how many stay.

    Args:
        moved: the movers by crossing; of the delayed warps those that become ready, as far as they must be known.
        unmoved: per class, the ready warps that stay.
        open: per class, whether more may stay without another target.
        joined: the classes for which more delayed warps may become ready without another target.
        released: per timed class, the ports that nobody holds any more in the next cycle.
    """

    source: Kind
    target: Kind
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    open: tuple[bool, ...]
    joined: tuple[int, ...] = ()
    released: tuple[int, ...] = ()

    @property
    def warps(self) -> int:
        """How many warps it counts; others may be delayed, or be more of those that stay."""
        return sum(count for _, count in self.moved) + sum(self.unmoved)

    def issued(self, unit: int) -> int:
        """How many instructions of a class are issued."""
        return sum(count for (before, _), count in self.moved if before == unit)


@dataclass(frozen=True)
class Abstraction:
    """All abstract cycles of `warps` warps whose instructions follow each other as `crossings` says.

    Args:
        timed: (class, interval) of each class with an interval longer than one cycle.
        width: instructions issued per cycle at most; None is no limit.
    """

    sigma: tuple[int, ...]
    thresholds: tuple[int, ...]
    crossings: frozenset[Crossing]
    warps: int
    timed: tuple[tuple[int, int], ...] = ()
    width: int | None = None

    def coarse(self, kind: Kind) -> Kind:
        """The ready warps of a kind, cut at the capacities."""
        return tuple(map(min, kind, self.sigma))

    @property
    def full(self) -> Kind:
        """The coarse kind in which every class is saturated."""
        return self.sigma

    def free(self, kind: Kind) -> tuple[int, ...]:
        """The free ports of every class."""
        ports = list(self.sigma)
        for (unit, _), count in zip(self.timed, kind[len(self.sigma) :], strict=True):
            ports[unit] = count
        return tuple(ports)

    def held(self, kind: Kind) -> tuple[int, ...]:
        """The held ports of every timed class."""
        return tuple(
            self.sigma[unit] - count for (unit, _), count in zip(self.timed, kind[len(self.sigma) :], strict=True)
        )

    @cached_property
    def delays(self) -> bool:
        """Whether warps can be delayed."""
        return any(after == DELAYED for _, after in self.crossings)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """All kinds of unfinished states: at least one warp is ready, or delayed."""
        counts = product(
            *(range(threshold + 1) for threshold in self.thresholds),
            *(range(self.sigma[unit] + 1) for unit, _ in self.timed),
        )
        least = 0 if self.delays else 1
        return tuple(kind for kind in counts if least <= sum(kind[: len(self.sigma)]) <= self.warps)

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

    def issues(self, kind: Kind) -> Iterator[tuple[int, ...]]:
        """How many instructions of each class may be issued: as many as possible, within the issue width."""
        most = tuple(map(min, self.coarse(kind), self.free(kind)))
        if self.width is None or sum(most) <= self.width:
            yield most
            return
        for issued in product(*(range(count + 1) for count in most)):
            if sum(issued) == self.width:
                yield issued

    def _from(self, kind: Kind) -> Iterator[Transition]:
        for issued in self.issues(kind):
            ways = (_multisets(unit, count, self._next_of(unit)) for unit, count in enumerate(issued))
            for choice in product(*ways):
                moved = tuple(pair for pairs in choice for pair in pairs)
                arrived = [0] * len(self.sigma)
                for (_, after), count in moved:
                    if after >= 0:
                        arrived[after] += count
                rests = (self._rest(kind, unit, issued[unit], arrived[unit]) for unit in range(len(self.sigma)))
                for rest in product(*rests):
                    if sum(issued) + sum(map(sum, rest)) <= self.warps:
                        yield from self._transitions(kind, issued, moved, arrived, rest)

    def _rest(self, kind: Kind, unit: int, issued: int, arrived: int) -> Iterator[tuple[int, int]]:
        """How many may stay, and how many delayed warps become ready; up to where the next count is open again."""
        stay = kind[unit] - issued
        last = stay if kind[unit] < self.thresholds[unit] else max(stay, self.thresholds[unit] - arrived)
        for unmoved in range(stay, last + 1):
            most = self.thresholds[unit] - arrived - unmoved if (DELAYED, unit) in self.crossings else 0
            for joining in range(max(0, most) + 1):
                yield unmoved, joining

    def _transitions(
        self,
        kind: Kind,
        issued: tuple[int, ...],
        moved: tuple[tuple[Crossing, int], ...],
        arrived: list[int],
        rest: tuple[tuple[int, int], ...],
    ) -> Iterator[Transition]:
        """The cycles of these movers and stayers: for all numbers of released ports, and with all possible targets."""
        joins = tuple(((DELAYED, unit), joining) for unit, (_, joining) in enumerate(rest) if joining)
        unmoved = tuple(stay for stay, _ in rest)
        counts = [sum(pair) + come for pair, come in zip(rest, arrived, strict=True)]
        still_open = tuple(
            before == threshold <= after
            for before, threshold, after in zip(kind, self.thresholds, counts, strict=False)
        )
        joined = tuple(
            unit
            for unit, (after, threshold) in enumerate(zip(counts, self.thresholds, strict=True))
            if (DELAYED, unit) in self.crossings and after >= threshold
        )
        ready = tuple(map(min, counts, self.thresholds))
        delayed = any(after == DELAYED for (_, after), _ in moved)
        more = self.delays and sum(issued) + sum(map(sum, rest)) < self.warps
        for released in self._releases(kind):
            cycle = Transition(kind, FINISHED, (*moved, *joins), unmoved, still_open, joined, released)
            if any(ready) or delayed or more:
                yield cycle._replace(target=(*ready, *self._free_after(kind, issued, released)))
            if not any(ready) and not delayed:
                yield cycle

    def _releases(self, kind: Kind) -> Iterable[tuple[int, ...]]:
        """Per timed class, the ports that may be held for the last time in this cycle; of an interval of two, all."""
        ways = (
            (held,) if interval == 2 else range(held + 1)
            for (_, interval), held in zip(self.timed, self.held(kind), strict=True)
        )
        return product(*ways)

    def _free_after(self, kind: Kind, issued: tuple[int, ...], released: tuple[int, ...]) -> tuple[int, ...]:
        frees = kind[len(self.sigma) :]
        return tuple(
            free + back - issued[unit] for free, back, (unit, _) in zip(frees, released, self.timed, strict=True)
        )

    def _next_of(self, unit: int) -> list[int]:
        return sorted(after for before, after in self.crossings if before == unit)

    def most_cycles(self, limit: int) -> int:
        """At least as many as there are abstract cycles; a number above `limit` may be given without counting all."""
        kinds = prod(t + 1 for t in self.thresholds) * prod(self.sigma[unit] + 1 for unit, _ in self.timed)
        if kinds > limit:
            return kinds
        total = 0
        for kind in self.kinds:
            total += self._most_from(kind)
            if total > limit:
                break
        return total

    def _most_from(self, kind: Kind) -> int:
        ports = prod(held + 1 for held in self.held(kind)) * (2 if self.delays else 1)
        return ports * sum(
            prod(self._most_ways(kind[unit], unit, count) for unit, count in enumerate(issued))
            for issued in self.issues(kind)
        )

    def _most_ways(self, ready: int, unit: int, issued: int) -> int:
        ways = len(self._next_of(unit))
        moves = comb(issued + ways - 1, issued) if ways else 1
        stays = issued + 1 if ready == self.thresholds[unit] else 1
        joins = self.thresholds[unit] - (ready - issued) + 1 if (DELAYED, unit) in self.crossings else 1
        return moves * stays * joins


def _multisets(unit: int, count: int, after: list[int]) -> list[tuple[tuple[Crossing, int], ...]]:
    """Every way in which `count` warps of class `unit` move on to the classes `after`."""
    return [
        tuple(((unit, to), chosen.count(to)) for to in after if to in chosen)
        for chosen in combinations_with_replacement(after, count)
    ]
