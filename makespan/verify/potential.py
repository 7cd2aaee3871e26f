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

Beyond capacities (docs/theory.md, 9), latencies are places (`delays`). Classes and kinds know nothing of those who
stand on delays, so that "nobody is ready" is a kind, too, and not the end. Of a class with an interval longer than one
cycle the kind also knows how many ports are free, exactly, and R adds ports_u[class][h-1] for each port that is held
for h more cycles; at the end no port counts. Then also:

* What moves is any choice within ready warps, free ports and issue width that is as large as it can be.
* Every warp on a delay moves, to the next delay, to the end, or to a place of some class. As many of the latter as
  the next count can tell apart are enumerated; all other moves from delays any number of warps may make, so their
  smallest terms must not be negative, or the certificate is refused.
* Any of the held ports may be released, all if the interval is 2; the others go from h to h - 1, each with at least
  the smallest such term. Who issues takes a port with h = interval - 1.

Glossary: x, y classes (y may be `FINISH`, `STAY` or `DELAYED`, x may be `DELAYED`); u, v nodes before and after a
cycle; a *move* is a pair (x, y).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations_with_replacement, product
from operator import itemgetter, mul, sub
from typing import NamedTuple

from makespan.certificate import FINISHED, Certificate, Kind, Node, Potential, Table
from makespan.instance import Instance
from makespan.machine import DELAY
from makespan.verify.delays import expanded, sizes
from makespan.verify.refusal import Effort, Refused, TooMuchWork, Work
from makespan.verify.states import Standing, Walker, front
from makespan.verify.terms import DELAYED, FINISH, STAY, Move, Terms

MOST_FRONT_STATES, MOST_FRONT_STEPS, MOST_DECREASES = 20_000, 5_000_000, 2_000_000
MOST_DIFFERENCES = 1_000_000_000
_END = Node(FINISHED)
_ON, _OFF = (DELAYED, DELAYED), (DELAYED, FINISH)


class Slow(NamedTuple):
    """A class with an interval longer than one cycle: its number, and for how long a port is held after the issue."""

    x: int
    held: int


class Passing(NamedTuple):
    """What happens to the ports of a slow class in a cycle."""

    released: int
    kept: int
    taken: int


class Cycle(NamedTuple):
    """An abstract cycle.

    Args:
        moves: how many warps do what.
        more: what further warps may do, any number of them.
        ports: of every slow class.
        after: the next kind.
    """

    moves: tuple[tuple[Move, int], ...]
    more: tuple[Move, ...]
    ports: tuple[Passing, ...]
    after: Kind


class Limits(NamedTuple):
    """What one certificate may take: steps to states of the front, combinations of moves and nodes, differences."""

    steps: Work
    work: Work
    differences: Work


def bound(instance: Instance, certificate: Certificate, effort: Effort | None = None) -> int:
    """The upper bound that `certificate` proves, in cycles: the largest over the groups that may hold z.

    Args:
        instance: the question.
        certificate: a potential for each group.
        effort: what may be spent; by default that of one proof.

    Raises:
        Refused: some part of the certificate does not hold, or is too large to check.
    """
    groups = sorted(potential.last_group for potential in certificate.potentials)
    if groups != list(range(len(instance.groups))):
        raise Refused(f"the certificate has potentials for groups {groups} of {len(instance.groups)} groups")
    if instance.has_barriers:
        raise Refused("a certificate knows no barriers")
    effort = effort or Effort(3)
    try:
        with (
            effort.part(MOST_FRONT_STEPS) as steps,
            effort.part(MOST_DECREASES) as work,
            effort.part(MOST_DIFFERENCES) as differences,
        ):
            if sum(sizes(instance)) > work.left:
                raise TooMuchWork
            limits, whole = Limits(steps, work, differences), expanded(instance)
            return max(_Check(whole, potential, limits).bound() for potential in certificate.potentials)
    except TooMuchWork:
        raise Refused("the certificate is too large for this checker") from None


class _Check:
    """One potential: z belongs to `last_group`.

    Args:
        instance: with its latencies as places.
    """

    def __init__(self, instance: Instance, potential: Potential, limits: Limits) -> None:
        limits.work.spend(sum(len(place.successors) for group in instance.groups for place in group.program.places))
        self.instance, self.potential, self.warps = instance, potential, instance.warps
        self.steps, self.work = limits.steps, limits.work
        self.classes = potential.classes
        used = set().union(*(group.program.units for group in instance.groups)) - {DELAY}
        if len(set(self.classes)) != len(self.classes) or set(self.classes) != used:
            raise Refused(f"potential: the classes are not {', '.join(sorted(used))}, each once")
        self.capacities = tuple(instance.machine.capacities[name] for name in self.classes)
        self.thresholds = potential.thresholds
        if len(self.thresholds) != len(used) or any(map(int.__lt__, self.thresholds, self.capacities)):
            raise Refused("potential: a threshold for each class, at least its capacity, is needed")
        intervals = {unit.name: unit.interval for unit in instance.machine.units}
        self.slow = [Slow(x, intervals[name] - 1) for x, name in enumerate(self.classes) if intervals[name] > 1]
        self.tables = {**dict(potential.nodes), _END: self._nothing()}
        self.terms = Terms(instance, potential, limits.differences)

    def bound(self) -> int:
        """Cycles that no schedule exceeds in which a warp of `last_group` finishes last."""
        walker = Walker(self.instance, self.steps)
        states, ended = front(walker, self.potential.front, MOST_FRONT_STATES)
        standing = [
            (where, [tuple(held[self.classes[x]]) for x, _ in self.slow])
            for where, held in ((tuple(walker.standing(state)), walker.held(state)) for state in states)
            if self._places(where)
        ]
        if not standing:
            return ended  # no state is left in which z could be unfinished
        cycles = self._cycles({self._kind(*state) for state in standing})
        labels = self._labels(cycles)
        decreases = self._all_decreases(cycles, labels)
        least, u, v = min(decreases, key=itemgetter(0), default=(None, _END, _END))
        if least is None:
            return ended  # no cycle leads on from here with z last, so there is no such schedule
        if least <= 0:
            raise Refused(f"potential: it does not fall in a cycle from {_name(u)} to {_name(v)}")
        largest = max(
            self._value(Node(kind, label), *state)
            for state in standing
            for kind in [self._kind(*state)]
            for label in labels.get(kind, {None})
        )
        return max(ended, self.potential.front + largest // least)

    # Kinds

    def _kind(self, where: Iterable[Standing], held: Iterable[tuple[int, ...]]) -> Kind:
        ready = dict.fromkeys(self.classes, 0)
        for group, place, count in where:
            unit = self.instance.groups[group].program.places[place].unit
            if unit != DELAY:
                ready[unit] += count
        free = (self.capacities[slow.x] - sum(ports) for slow, ports in zip(self.slow, held, strict=True))
        return (*map(min, ready.values(), self.thresholds), *free)

    def _coarse(self, kind: Kind) -> Kind:
        """Without the free ports, which stand behind the counts."""
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
        for issued in self._issues(kind):
            ports = [(passing, self._free(passing)) for passing in self._ports(kind, issued)]
            for moves, ready in self._moves(kind, issued):
                yield from self._ended(kind, moves, ready, ports)

    def _issues(self, kind: Kind) -> Iterator[tuple[int, ...]]:
        """How many warps of each class may move: the port counts are exact, and no threshold is below the capacity."""
        free = list(self.capacities)
        for slow, ports in zip(self.slow, kind[len(self.classes) :], strict=True):
            free[slow.x] = ports
        most = tuple(map(min, kind, free))
        width = self.instance.machine.issue_width
        if width is None or width >= sum(most):
            yield most
            return
        for issued in product(*(range(count + 1) for count in most)):
            self.work.spend()
            if sum(issued) == width:
                yield issued

    def _ports(self, kind: Kind, issued: tuple[int, ...]) -> list[tuple[Passing, ...]]:
        """What may happen to the ports of all slow classes."""
        found: list[tuple[Passing, ...]] = [()]
        for slow, free in zip(self.slow, kind[len(self.classes) :], strict=True):
            held = self.capacities[slow.x] - free
            least = held if slow.held == 1 else 0
            self.work.spend(len(found) * (held + 1 - least))
            ways = [Passing(count, held - count, issued[slow.x]) for count in range(least, held + 1)]
            found = [(*before, way) for before in found for way in ways]
        return found

    def _free(self, passing: tuple[Passing, ...]) -> Kind:
        """The free ports of the slow classes after a cycle."""
        gone = zip(self.slow, passing, strict=True)
        return tuple(self.capacities[slow.x] - ports.kept - ports.taken for slow, ports in gone)

    def _moves(self, kind: Kind, issued: tuple[int, ...]) -> Iterator[tuple[dict[Move, int], list[int]]]:
        """Who moves, delayed warps included, and how many stay."""
        classes = range(len(issued))
        ways = [combinations_with_replacement(self.terms.next[x], issued[x]) for x in classes]
        for chosen in product(*(self._limited(way) for way in ways)):
            self.work.spend(sum(issued))
            moves = Counter((x, y) for x, way in enumerate(chosen) for y in way)
            arrived = [sum(count for (_, y), count in moves.items() if y == x) for x in classes]
            for delayed in self._product(self._arrivals(kind, x, issued[x], arrived[x]) for x in classes):
                back = {(DELAYED, x): count for x, count in enumerate(delayed) if count}
                there = [come + more for come, more in zip(arrived, delayed, strict=True)]
                for stay in self._product(self._stays(kind, x, issued[x], there[x]) for x in classes):
                    self.work.spend(1 + len(moves) + len(back))
                    staying = {(x, STAY): stay[x] for x in classes if stay[x]}
                    yield {**moves, **back, **staying}, [come + more for come, more in zip(there, stay, strict=True)]

    def _ended(
        self, kind: Kind, moves: dict[Move, int], ready: list[int], ports: list[tuple[tuple[Passing, ...], Kind]]
    ) -> Iterator[Cycle]:
        """The cycles in which these warps move, and so many are ready afterwards."""
        spare = self.warps - sum(moves.values())
        if spare < 0:
            return  # needs more warps than there are
        self.work.spend(len(ports) - 1)
        counts, after = tuple(moves.items()), tuple(map(min, ready, self.thresholds))
        # counts end where a next count is sure to be open: there, more may stay or come from delays
        full = [x for x, count in enumerate(ready) if count >= self.thresholds[x]]
        more = [(x, STAY) for x in full if kind[x] == self.thresholds[x]]
        more += [move for move in (*((DELAYED, x) for x in full), _ON, _OFF) if move in self.terms.delayed]
        more = more if spare else []
        delayed = any(y == DELAYED for _, y in moves)  # and not ready after the cycle
        for passing, free in ports:
            if not any(ready) and not delayed:
                yield Cycle(counts, (_OFF,) if _OFF in more else (), passing, FINISHED)
            if any(ready) or delayed or _ON in more:
                yield Cycle(counts, tuple(more), passing, (*after, *free))

    def _arrivals(self, kind: Kind, x: int, moved: int, arrived: int) -> range:
        """How many warps may come to class x from delays; the last number stands for all from there on."""
        if (DELAYED, x) not in self.terms.delayed:
            return range(1)
        return range(max(0, self.thresholds[x] - arrived - (kind[x] - moved)) + 1)

    def _stays(self, kind: Kind, x: int, moved: int, arrived: int) -> range:
        """How many warps of class x may stay; the last number of an open class stands for all from there on."""
        least = kind[x] - moved
        if kind[x] < self.thresholds[x]:
            return range(least, least + 1)
        return range(least, max(least, self.thresholds[x] - arrived) + 1)

    def _product(self, ways: Iterable[range]) -> Iterator[tuple[int, ...]]:
        """`itertools.product`, which first makes a tuple of every range, however long."""
        ranges = list(ways)
        self.work.spend(sum(len(way) - 1 for way in ranges))
        return product(*ranges)

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
                self.work.spend(sum(1 + len(labels.get(after, ())) for after in entered[kind]))
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
        before, after = self._table(u), self._table(v)
        others, last = self.terms.least(u, before, v, after)
        constant = before.constant - after.constant
        if cycle.ports:
            constant += self._passed(before, after, cycle.ports)
        counts = dict(cycle.moves)
        raising = next((move for move in cycle.more if others.get(move, 0) < 0), None)
        for role in {**counts, **dict.fromkeys(cycle.more, 0)}:
            self.work.spend()
            if role not in last or (role[1] == FINISH) != (v == _END):
                continue
            rest = [(move, count - (move == role)) for move, count in cycle.moves if count - (move == role)]
            if any(move not in others for move, _ in rest):
                continue  # only z could do that
            if raising is not None:
                who = "on delays" if raising[0] == DELAYED else "that stay"
                raise Refused(f"potential: warps {who} raise it in a cycle from {_name(u)} to {_name(v)}")
            yield constant + last[role] + sum(count * others[move] for move, count in rest)

    def _passed(self, before: Table, after: Table, ports: Iterable[Passing]) -> int:
        """A lower bound of what the ports contribute."""
        total = 0
        for (released, kept, taken), was, then in zip(ports, before.ports, after.ports, strict=True):
            total += released * was[0] - taken * then[-1]
            if kept:
                total += kept * min(map(sub, was[1:], then))
        return total

    def _table(self, node: Node) -> Table:
        if node not in self.tables:
            raise Refused(f"potential: it has no table for {_name(node)}")
        if [len(row) for row in self.tables[node].ports] != [slow.held for slow in self.slow]:
            raise Refused(f"potential: it needs a term for every port that can be held, in {_name(node)}")
        return self.tables[node]

    def _nothing(self) -> Table:
        """The table of the end."""
        others = tuple((0,) * group.program.end for group in self.instance.groups)
        return Table(others, others[self.potential.last_group], 0, tuple((0,) * slow.held for slow in self.slow))

    # Values

    def _places(self, where: Iterable[Standing]) -> list[int]:
        """Where z may stand."""
        return [place for group, place, _ in where if group == self.potential.last_group]

    def _value(self, node: Node, where: tuple[Standing, ...], held: Iterable[tuple[int, ...]]) -> int:
        """The largest R of a state over the places of z."""
        table = self._table(node)
        everybody = sum(count * table.others[group][place] for group, place, count in where)
        ports = sum(sum(map(mul, row, counts)) for row, counts in zip(table.ports, held, strict=True))
        own = table.others[self.potential.last_group]
        return table.constant + everybody + ports + max(table.last[place] - own[place] for place in self._places(where))


def _name(node: Node) -> str:
    if node == _END:
        return "the end"
    return f"kind {node.kind}" + ("" if node.label is None else f" before {node.label or 'the end'}")
