"""The finite abstraction of a cycle on which potential certificates rest (docs/theory.md, 4.1 to 4.3).

Words used here, for unit classes 0..n-1:

z           the warp that finishes last; the *others* are all warps but z
sigma       capacities, in ports
threshold   per class; a count that reaches it is *open*: "that many or more"
timed       a class whose instructions hold their ports for more than one cycle
kind        ready others per class, cut at the thresholds; behind them the free ports of every timed class
situation   the class that z is ready for, or `DELAYED`, and a kind
stop        a situation in which z is delayed, or some class besides z's has fewer ready others than ports
node        a situation, and where it is no stop the label: where z is at the first later stop
slot        what z does in a cycle: its crossing (class, next class) if it moves, its class if it waits
delayed     a warp on a delay place: of no class, it moves in every cycle, and kinds do not count it
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import NamedTuple

from makespan.model.certificate import DELAYED_LABEL, FINISHED_LABEL, PotentialNode, SituationKind

Crossing = tuple[int, int]
"""(class of an instruction, class of the next one). `DELAYED` may be either, `END` the second: the warp finishes."""
DELAYED = DELAYED_LABEL
END = FINISHED_LABEL

LastSlot = Crossing | int


class AbstractSituation(NamedTuple):
    """The class that z is ready for, or `DELAYED`, and what the others are ready for."""

    last: int
    kind: SituationKind


class AbstractCycle(NamedTuple):
    """One cycle, abstractly: what z does, how many others move from class to class, and at least how many stay.

    Args:
        target: None if all warps finish.
        moved: the movers by crossing; of the delayed others those that become ready, as far as they must be known.
        unmoved: per class, the ready others that stay.
        reopened: the classes of which more may stay without another target.
        passing: the crossings that begin at delays and that any number of others may make besides.
        ports: what happens to the ports of every timed class.
    """

    source: AbstractSituation
    target: AbstractSituation | None
    slot: LastSlot
    moved: tuple[tuple[Crossing, int], ...]
    unmoved: tuple[int, ...]
    reopened: tuple[int, ...] = ()
    passing: tuple[Crossing, ...] = ()
    ports: tuple["PortCounts", ...] = ()


class PortCounts(NamedTuple):
    """Ports of a timed class in one cycle: held for the last time, held for longer, and taken."""

    released: int
    kept: int
    taken: int


@dataclass(frozen=True)
class Abstraction:
    """All abstract cycles of z and `others` more warps.

    Args:
        crossings: those that one of the others can make.
        crossings_of_last: those that z can make.
        timed: (class, interval) of each class with an interval longer than one cycle.
        width: instructions issued per cycle at most; None is no limit.
    """

    sigma: tuple[int, ...]
    thresholds: tuple[int, ...]
    crossings: frozenset[Crossing]
    crossings_of_last: frozenset[Crossing]
    others: int
    timed: tuple[tuple[int, int], ...] = ()
    width: int | None = None

    def stops(self, situation: AbstractSituation) -> bool:
        """Return whether z is delayed, or some other class is short of others; always, if there is one class only."""
        # any set of stops proves a bound; these are where work conservation enters, by who is short of what
        last, kind = situation
        return last < 0 or len(self.sigma) == 1 or any(kind[x] < n for x, n in enumerate(self.sigma) if x != last)

    def free(self, kind: SituationKind) -> list[int]:
        """Return the free ports of every class."""
        ports = list(self.sigma)  # an instruction of an untimed class frees its port within the cycle
        for (unit, _), count in zip(self.timed, kind[len(self.sigma) :], strict=True):
            ports[unit] = count
        return ports

    @cached_property
    def situations(self) -> tuple[AbstractSituation, ...]:
        """Return all situations of unfinished states, and maybe some that no state is in."""
        units = {before for before, _ in self.crossings}
        counts = product(
            *(range(threshold + 1 if unit in units else 1) for unit, threshold in enumerate(self.thresholds)),
            *(range(self.sigma[unit] + 1) for unit, _ in self.timed),
        )
        kinds = [kind for kind in counts if sum(kind[: len(self.sigma)]) <= self.others]  # more warps there are not
        return tuple(AbstractSituation(last, kind) for last in self._beginnings for kind in kinds)

    @cached_property
    def _beginnings(self) -> list[int]:
        return sorted({before for before, _ in self.crossings_of_last})

    @cached_property
    def cycles(self) -> tuple[AbstractCycle, ...]:
        """Return every abstract cycle from every situation."""
        return tuple(cycle for situation in self.situations for cycle in self._from(situation))

    @cached_property
    def labels(self) -> dict[AbstractSituation, frozenset[int]]:
        """Return the labels that each situation that is no stop can have: the least sets of lemma 3."""
        found: dict[AbstractSituation, set[int]] = {one: set() for one in self.situations if not self.stops(one)}
        before: dict[AbstractSituation, set[AbstractSituation]] = {one: set() for one in found}
        waiting = set()
        for source, target, *_ in self.cycles:
            if source in found:
                if target in found:
                    before[target].add(source)
                else:
                    found[source].add(END if target is None else target.last)
                    waiting.add(source)
        # lemma 3's third rule, backwards from where labels begin: what s' can have, s can have, too
        while waiting:
            one = waiting.pop()
            for source in before[one]:
                if not found[one] <= found[source]:
                    found[source] |= found[one]
                    waiting.add(source)
        return {one: frozenset(labels) for one, labels in found.items()}

    def nodes_of(self, situation: AbstractSituation) -> tuple[PotentialNode, ...]:
        """Return the nodes that a state in this situation may be; none, if z cannot finish last from there."""
        last, kind = None if situation.last == DELAYED else situation.last, situation.kind
        if situation in self.labels:
            return tuple(PotentialNode(last, kind, label) for label in sorted(self.labels[situation]))
        return (PotentialNode(last, kind),)

    def node_pairs(
        self, source: AbstractSituation, target: AbstractSituation | None
    ) -> Iterator[tuple[PotentialNode, PotentialNode | None]]:
        """Yield the nodes before and after a cycle, as theorem H pairs them; None after the last one."""
        after = self.nodes_of(target) if target else ()
        for before in self.nodes_of(source):
            if before.label is None:  # a stop goes to whatever can follow
                yield from ((before, one) for one in (after if target else (None,)))
            elif target in self.labels:  # a label lasts up to the next stop
                yield from ((before, one) for one in after if one.label == before.label)
            elif before.label == (target.last if target else END):
                yield before, (after[0] if target else None)

    def issues(self, situation: AbstractSituation) -> Iterator[tuple[int, ...]]:
        """Yield how many instructions of each class may be issued, z's included: as many as the issue width allows."""
        ready = list(situation.kind[: len(self.sigma)])
        if situation.last >= 0:
            ready[situation.last] += 1
        # thresholds are at least the capacities, so these minima are those of the true counts
        most = tuple(map(min, ready, self.free(situation.kind)))
        if self.width is None or sum(most) <= self.width:
            yield most
            return
        for issued in product(*(range(count + 1) for count in most)):
            if sum(issued) == self.width:  # a work-conserving scheduler leaves no slot empty
                yield issued

    def _slots(self, situation: AbstractSituation, issued: tuple[int, ...]) -> Iterator[LastSlot]:
        """Yield what z may do: move if an instruction of its class is issued, wait if others can issue all of them."""
        last, kind = situation
        if last < 0 or issued[last]:
            yield from sorted(crossing for crossing in self.crossings_of_last if crossing[0] == last)
        if last >= 0 and issued[last] <= kind[last]:
            yield last

    def _from(self, situation: AbstractSituation) -> Iterator[AbstractCycle]:
        for issued in self.issues(situation):
            for slot in self._slots(situation, issued):
                moving = _others(issued, slot)
                ways = (_multisets(unit, count, self._next_of(unit)) for unit, count in enumerate(moving))
                for choice in product(*ways):
                    moved = tuple(pair for pairs in choice for pair in pairs)
                    yield from self._with(situation, slot, issued, moving, moved)

    def _with(
        self,
        situation: AbstractSituation,
        slot: LastSlot,
        issued: tuple[int, ...],
        moving: list[int],
        moved: tuple[tuple[Crossing, int], ...],
    ) -> Iterator[AbstractCycle]:
        """Yield the cycles in which these others move, for all numbers of those that stay and of released ports.

        They cover every cycle of every schedule that z finishes last (lemma 2); more of them do no harm.
        """
        kind, ends = situation.kind, isinstance(slot, tuple) and slot[1] == END
        if ends and any(after != END for (_, after), _ in moved):
            return  # z does not finish before the others
        arrived = [sum(count for (_, after), count in moved if after == unit) for unit in range(len(self.sigma))]
        for rest in product(*(self._rest(kind, unit, moving[unit], n) for unit, n in enumerate(arrived))):
            room = self.others - sum(moving) - sum(map(sum, rest))  # others of whom the cycle says nothing
            counts = [sum(pair) + come for pair, come in zip(rest, arrived, strict=True)]
            if room < 0 or (ends and any(counts)):
                continue
            unmoved, joining = tuple(stay for stay, _ in rest), [come for _, come in rest]
            joins = tuple(((DELAYED, unit), count) for unit, count in enumerate(joining) if count)
            ready, full = tuple(map(min, counts, self.thresholds)), range(len(counts))
            is_open = [after >= threshold for after, threshold in zip(counts, self.thresholds, strict=True)]
            # only where some warps are left may more stay than are counted, and only at an open count
            reopened = tuple(x for x in full if room and is_open[x] and kind[x] == self.thresholds[x])
            passing = {
                (DELAYED, END),
                *(() if ends else ((DELAYED, DELAYED), *((DELAYED, x) for x in full if is_open[x]))),
            }
            for ports in self._ports(kind, issued):
                free = tuple(
                    free + own.released - own.taken for free, own in zip(kind[len(ready) :], ports, strict=True)
                )
                last = slot[1] if isinstance(slot, tuple) else slot
                yield AbstractCycle(
                    situation,
                    None if ends else AbstractSituation(last, (*ready, *free)),
                    slot,
                    (*moved, *joins),
                    unmoved,
                    reopened,
                    tuple(sorted(passing & self.crossings)) if room else (),
                    ports,
                )

    def _rest(self, kind: SituationKind, unit: int, moving: int, arrived: int) -> Iterator[tuple[int, int]]:
        """Yield how many may stay, and how many delayed others become ready; up to where the next count is open."""
        stay = kind[unit] - moving
        # a count below the threshold is exact, so all that do not move stay; an open one hides any number
        last = stay if kind[unit] < self.thresholds[unit] else max(stay, self.thresholds[unit] - arrived)
        for unmoved in range(stay, last + 1):
            most = self.thresholds[unit] - arrived - unmoved if (DELAYED, unit) in self.crossings else 0
            for joining in range(max(0, most) + 1):
                yield unmoved, joining

    def _ports(self, kind: SituationKind, issued: tuple[int, ...]) -> Iterable[tuple[PortCounts, ...]]:
        """Return every way in which the ports of timed classes may be released; of an interval of two, all are."""
        return product(
            *(
                [
                    PortCounts(back, held - back, issued[unit])
                    for back in ((held,) if interval == 2 else range(held + 1))
                ]
                for (unit, interval), free in zip(self.timed, kind[len(self.sigma) :], strict=True)
                for held in [self.sigma[unit] - free]
            )
        )

    def _next_of(self, unit: int) -> list[int]:
        return sorted(after for before, after in self.crossings if before == unit)

    def most_cycles(self, limit: int) -> int:
        """Return no less than the number of abstract cycles; above `limit` it need not be counted to its end."""
        kinds = prod(t + 1 for t in self.thresholds) * prod(self.sigma[unit] + 1 for unit, _ in self.timed)
        if kinds > limit:
            return kinds
        total = 0
        for situation in self.situations:
            total += self._most_from(situation)
            if total > limit:
                break
        return total

    def _most_from(self, situation: AbstractSituation) -> int:
        kind = situation.kind
        ports = prod(
            self.sigma[unit] - free + 1 for (unit, _), free in zip(self.timed, kind[len(self.sigma) :], strict=True)
        )
        return ports * sum(
            1  # of those in which all warps finish
            if isinstance(slot, tuple) and slot[1] == END
            else prod(self._most_ways(kind[unit], unit, count) for unit, count in enumerate(_others(issued, slot)))
            for issued in self.issues(situation)
            for slot in self._slots(situation, issued)
        )

    def _most_ways(self, ready: int, unit: int, issued: int) -> int:
        ways = len(self._next_of(unit))
        moves = comb(issued + ways - 1, issued) if ways else 1
        stays = issued + 1 if ready == self.thresholds[unit] else 1
        joins = self.thresholds[unit] + 1 if (DELAYED, unit) in self.crossings else 1
        return moves * stays * joins


def _others(issued: tuple[int, ...], slot: LastSlot) -> list[int]:
    return [count - (isinstance(slot, tuple) and slot[0] == unit) for unit, count in enumerate(issued)]


def _multisets(unit: int, count: int, after: list[int]) -> list[tuple[tuple[Crossing, int], ...]]:
    """Return every way in which `count` warps of class `unit` move on to the classes `after`."""
    return [
        tuple(((unit, to), chosen.count(to)) for to in after if to in chosen)
        for chosen in combinations_with_replacement(after, count)
    ]
