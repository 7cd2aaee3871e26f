"""A potential certificate, checked exactly: how long any schedule can be, given tables that fall in every cycle.

docs/theory.md, theorem B. Fix a schedule and let z be the warp that finishes last. A *kind* counts the ready warps of
each class, z included, up to a threshold T that is at least the class's capacity; the count T is *open*: T or more.
A state is *full* where every class has at least as many ready warps as units. The *node* of a state is its kind and,
where it is full, a label: the coarse kind (counts up to the capacities) of the first later state that is not full, or
() if the warps finish first. So every state of the schedule has one node. With the tables of node u,

    R(S) = sum over unfinished w != z of others_u[place of w]  +  last_u[place of z]  +  constant_u,     R(end) = 0.

If every cycle lowers R by at least d > 0, then M <= R(S) / d cycles remain in S, and M is whole. The checker computes
d as a minimum over *abstract* cycles, which are at least those that occur; too many of them only make d smaller:

* In a cycle exactly min(count, capacity) warps of each class move; the kind knows that number, for T >= capacity.
* Each mover goes along an edge of some program from a place of class X to one of class Y, or finishes. Its term is at
  least the smallest others_u[p] - others_v[q] over all such edges, of whatever program.
* Exactly count - moved warps of a class stay, or T - moved and more of an open class. Each term is at least the
  smallest others_u[p] - others_v[p] over the places of the class. More of them, beyond the number from which on the
  next count is open anyway, lead to the same next kind; if that smallest term is not negative, they do not lower the
  decrease, and need no check of their own. If it is negative, and more warps exist, the certificate is refused.
* z is one of the movers or of those that stay, with `last` for `others` and its own program's edges and places. It
  finishes only in the last cycle, in which all warps that are left finish.
* Staying full, the label is kept, because it describes the same later state. A cycle that leaves fullness enters the
  kind that the label says. Entering fullness, every label that can occur is checked.

Glossary: x, y classes (y may be `FINISH` or `STAY`); u, v nodes before and after a cycle; a *move* is a pair (x, y).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations_with_replacement, product
from operator import itemgetter, sub
from typing import NamedTuple

from makespan.certificate import FINISHED, Certificate, Kind, Node, Potential, Table
from makespan.instance import Instance
from makespan.verify.refusal import Refused, TooMuchWork, Work
from makespan.verify.states import Standing, Walker, front

MOST_FRONT_STATES, MOST_FRONT_STEPS, MOST_DECREASES = 20_000, 5_000_000, 2_000_000
FINISH, STAY = -1, -2
Move = tuple[int, int]
_END = Node(FINISHED)


class Cycle(NamedTuple):
    """An abstract cycle: how many warps do what, which classes may hold more that stay, and the next kind."""

    moves: tuple[tuple[Move, int], ...]
    more: tuple[int, ...]
    after: Kind


def bound(instance: Instance, certificate: Certificate) -> int:
    """The upper bound that `certificate` proves, in cycles: the largest over the groups that may hold z.

    Raises:
        Refused: some part of the certificate does not hold, or is too large to check.
    """
    groups = sorted(potential.last_group for potential in certificate.potentials)
    if groups != list(range(len(instance.groups))):
        raise Refused(f"the certificate has potentials for groups {groups} of {len(instance.groups)} groups")
    try:
        steps, work = Work(MOST_FRONT_STEPS), Work(MOST_DECREASES)
        return max(_Check(instance, potential, steps, work).bound() for potential in certificate.potentials)
    except TooMuchWork:
        raise Refused("the certificate is too large for this checker") from None


class _Check:
    """One potential: z belongs to `last_group`."""

    def __init__(self, instance: Instance, potential: Potential, steps: Work, work: Work) -> None:
        work.spend(sum(group.program.end for group in instance.groups))
        self.instance, self.potential = instance, potential
        self.steps, self.work = steps, work
        self.classes = potential.classes
        used = set().union(*(group.program.units for group in instance.groups))
        if len(set(self.classes)) != len(self.classes) or set(self.classes) != used:
            raise Refused(f"potential: the classes are not {', '.join(sorted(used))}, each once")
        self.capacities = tuple(instance.machine.capacities[name] for name in self.classes)
        self.thresholds = potential.thresholds
        if len(self.thresholds) != len(used) or any(map(int.__lt__, self.thresholds, self.capacities)):
            raise Refused("potential: a threshold for each class, at least its capacity, is needed")
        nothing = tuple((0,) * group.program.end for group in instance.groups)
        self.tables = {**dict(potential.nodes), _END: Table(nothing, nothing[potential.last_group], 0)}
        self.terms = _Terms(instance, potential)

    def bound(self) -> int:
        """Cycles that no schedule exceeds in which a warp of `last_group` finishes last."""
        walker = Walker(self.instance, self.steps)
        states, ended = front(walker, self.potential.front, MOST_FRONT_STATES)
        standing = [where for where in (tuple(walker.standing(state)) for state in states) if self._places(where)]
        if not standing:
            return ended  # no state is left in which z could be unfinished
        cycles = self._cycles({self._kind(where) for where in standing})
        labels = self._labels(cycles)
        decreases = self._all_decreases(cycles, labels)
        least, u, v = min(decreases, key=itemgetter(0), default=(None, _END, _END))
        if least is None:
            return ended  # no cycle leads on from here with z last, so there is no such schedule
        if least <= 0:
            raise Refused(f"potential: it does not fall in a cycle from {_name(u)} to {_name(v)}")
        largest = max(
            self._value(Node(kind, label), where)
            for where in standing
            for kind in [self._kind(where)]
            for label in labels.get(kind, {None})
        )
        return max(ended, self.potential.front + largest // least)

    # Kinds

    def _kind(self, where: Iterable[Standing]) -> Kind:
        ready = dict.fromkeys(self.classes, 0)
        for group, place, count in where:
            ready[self.instance.groups[group].program.places[place].unit] += count
        return tuple(map(min, ready.values(), self.thresholds))

    def _coarse(self, kind: Kind) -> Kind:
        return tuple(map(min, kind, self.capacities))

    def _full(self, kind: Kind) -> bool:
        return self._coarse(kind) == self.capacities

    # Abstract cycles

    def _cycles(self, kinds: set[Kind]) -> dict[Kind, list[Cycle]]:
        """The abstract cycles of every kind that can be reached from `kinds`."""
        found: dict[Kind, list[Cycle]] = {}
        waiting = list(kinds)
        while waiting:
            kind = waiting.pop()
            if kind not in found and kind != FINISHED:
                found[kind] = list(self._cycles_of(kind))
                waiting += {cycle.after for cycle in found[kind]}
        return found

    def _cycles_of(self, kind: Kind) -> Iterator[Cycle]:
        classes, moved = range(len(kind)), self._coarse(kind)
        ways = [combinations_with_replacement(self.terms.next[x], moved[x]) for x in classes]
        for chosen in product(*(self._limited(way) for way in ways)):
            self.work.spend(sum(moved))
            moves = Counter((x, y) for x, way in enumerate(chosen) for y in way)
            arrived = [sum(count for (_, y), count in moves.items() if y == x) for x in classes]
            for stay in product(*(self._stays(kind, x, moved[x], arrived[x]) for x in classes)):
                self.work.spend(1 + len(moves))
                spare = self.instance.warps - sum(moved) - sum(stay)
                if spare < 0:
                    continue  # needs more warps than there are
                ready = [arrived[x] + stay[x] for x in classes]
                # `_stays` ends where an open class is sure to be open again: there, more may stay
                open_ = [x for x in classes if kind[x] == self.thresholds[x] <= ready[x]]
                counts = {**moves, **{(x, STAY): stay[x] for x in classes if stay[x]}}
                after = tuple(map(min, ready, self.thresholds))
                yield Cycle(tuple(counts.items()), tuple(open_ if spare else ()), after if any(after) else FINISHED)

    def _stays(self, kind: Kind, x: int, moved: int, arrived: int) -> range:
        """How many warps of class x may stay; the last number of an open class stands for all from there on."""
        least = kind[x] - moved
        if kind[x] < self.thresholds[x]:
            return range(least, least + 1)
        return range(least, max(least, self.thresholds[x] - arrived) + 1)

    def _limited(self, way: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        for chosen in way:
            self.work.spend(1 + len(chosen))
            yield chosen

    def _labels(self, cycles: Mapping[Kind, list[Cycle]]) -> dict[Kind, set[Kind]]:
        """The labels that can occur with every full kind: where its abstract cycles can leave fullness, or end."""
        labels: dict[Kind, set[Kind]] = {kind: set() for kind in cycles if self._full(kind)}
        entered = {kind: {cycle.after for cycle in cycles[kind]} for kind in labels}
        grown = True
        while grown:
            grown = False
            for kind, found in labels.items():
                self.work.spend(len(entered[kind]))
                more = set().union(*(labels.get(after, {self._coarse(after)}) for after in entered[kind])) - found
                grown = grown or bool(more)
                found |= more
        return labels

    # Decreases

    def _all_decreases(
        self, cycles: Mapping[Kind, list[Cycle]], labels: Mapping[Kind, set[Kind]]
    ) -> Iterator[tuple[int, Node, Node]]:
        """A lower bound of the decrease for every abstract cycle, every pair of nodes and every role of z in it."""
        for kind, possible in cycles.items():
            for cycle in possible:
                for u, v in self._nodes(kind, cycle.after, labels):
                    yield from ((decrease, u, v) for decrease in self._decreases(u, v, cycle))

    def _nodes(self, kind: Kind, after: Kind, labels: Mapping[Kind, set[Kind]]) -> Iterator[tuple[Node, Node]]:
        """The nodes that a cycle between two kinds can join."""
        if self._full(kind):
            if after in labels:
                yield from ((Node(kind, label), Node(after, label)) for label in labels[after])
            else:
                yield Node(kind, self._coarse(after)), Node(after)
        else:
            yield from ((Node(kind), Node(after, label)) for label in labels.get(after, {None}))

    def _decreases(self, u: Node, v: Node, cycle: Cycle) -> Iterator[int]:
        """A lower bound of the decrease, for every role that z can have in the cycle."""
        others, last, constant = self.terms.least(u, self._table(u), v, self._table(v))
        counts = dict(cycle.moves)
        for role in {**counts, **{(x, STAY): 0 for x in cycle.more}}:
            self.work.spend()
            if role not in last or (role[1] == FINISH and v != _END):
                continue
            rest = [(move, count - (move == role)) for move, count in cycle.moves if count - (move == role)]
            if any(move not in others for move, _ in rest):
                continue  # only z could do that
            if any(others.get((x, STAY), 0) < 0 for x in cycle.more):
                raise Refused(f"potential: warps that stay raise it in a cycle from {_name(u)} to {_name(v)}")
            yield constant + last[role] + sum(count * others[move] for move, count in rest)

    def _table(self, node: Node) -> Table:
        if node not in self.tables:
            raise Refused(f"potential: it has no table for {_name(node)}")
        return self.tables[node]

    # Values

    def _places(self, where: Iterable[Standing]) -> list[int]:
        """Where z may stand."""
        return [place for group, place, _ in where if group == self.potential.last_group]

    def _value(self, node: Node, where: tuple[Standing, ...]) -> int:
        """The largest R of a state over the places of z."""
        table = self._table(node)
        everybody = sum(count * table.others[group][place] for group, place, count in where)
        own = table.others[self.potential.last_group]
        return table.constant + everybody + max(table.last[place] - own[place] for place in self._places(where))


class _Terms:
    """The smallest terms of movers and of warps that stay, by move and pair of nodes."""

    def __init__(self, instance: Instance, potential: Potential) -> None:
        number = {name: x for x, name in enumerate(potential.classes)}
        self._others: dict[Move, list[tuple[int, int]]] = {}  # indices into all rows of `others`, joined
        self._last: dict[Move, list[tuple[int, int]]] = {}  # indices into `last`
        first = 0
        for group, (program, warps) in enumerate((g.program, g.warps) for g in instance.groups):
            holds_z = group == potential.last_group
            for p, (unit, successors) in enumerate(program.places):
                x = number[unit]
                steps = [((x, FINISH if q == program.end else number[program.places[q].unit]), q) for q in successors]
                for move, q in (*steps, ((x, STAY), p)):
                    if holds_z:
                        self._last.setdefault(move, []).append((p, q))
                    if warps > holds_z:
                        self._others.setdefault(move, []).append((first + p, first + q))
            first += program.end + 1
        moves = sorted({*self._others, *self._last})
        self.next = [[y for before, y in moves if before == x and y != STAY] for x in range(len(number))]
        self._columns: dict[tuple[Node, int], dict[tuple[bool, Move], list[int]]] = {}
        self._found: dict[tuple[Node, Node], tuple[dict[Move, int], dict[Move, int], int]] = {}

    def least(self, u: Node, before: Table, v: Node, after: Table) -> tuple[dict[Move, int], dict[Move, int], int]:
        """Smallest terms of any other warp and of z, and the term of the constants, from node u to v."""
        if (u, v) not in self._found:
            left, right = self._column(u, before, 0), self._column(v, after, 1)
            least = {move: min(map(sub, left[move], right[move])) for move in left}
            self._found[u, v] = (
                {move: least[False, move] for move in self._others},
                {move: least[True, move] for move in self._last},
                before.constant - after.constant,
            )
        return self._found[u, v]

    def _column(self, node: Node, table: Table, side: int) -> dict[tuple[bool, Move], list[int]]:
        """The coefficients at all beginnings (`side` 0) or ends (1) of every move; 0 for a finished warp."""
        if (node, side) not in self._columns:
            others, last = [c for row in table.others for c in (*row, 0)], (*table.last, 0)
            self._columns[node, side] = {
                **{(False, move): [others[ends[side]] for ends in edges] for move, edges in self._others.items()},
                **{(True, move): [last[ends[side]] for ends in edges] for move, edges in self._last.items()},
            }
        return self._columns[node, side]


def _name(node: Node) -> str:
    if node == _END:
        return "the end"
    return f"kind {node.kind}" + ("" if node.label is None else f" before {node.label or 'the end'}")
