"""A potential certificate, checked exactly: theorem H (docs/theory.md, 4, which has all words that are used here).

Fix a schedule and let z be the warp that finishes last. A *situation* is what z is ready for (None: it is delayed) and
the *kind* of the others: how many of them are ready for each class, up to a threshold T of at least its capacity; the
count T is *open*: T or more. *Stops* are those to which the potential gives a table without a label; any other has a
table for each *label*: what z may be ready for at the next stop, or that all finish before one. With a table t,

    R_t(S) = sum over unfinished w != z of others_t[place of w]  +  last_t[place of z]  +  constant_t,     R(end) = 0,

and R(S) is the largest R_t(S) over the labels that the situation of S can have; each of these is a *node*. If every
cycle lowers R by at least d > 0, then M <= R(S) / d cycles remain in S, and M is whole. The checker computes d as a
minimum over *abstract* cycles, which are at least those that occur (lemma 2); too many of them only make d smaller:

* Exactly min(ready, capacity) warps of each class move. If z is among them, all but one are others; z may wait if there
  are as many others. It finishes only where everybody has finished then.
* The term of each mover is at least the smallest others_u[p] - others_v[q] over all edges p -> q, of any program with
  warps other than z, from a place of its class to one of the class to which it moves.
* Exactly count - moved others of a class stay, or T - moved and more of an open class. More of them, beyond the number
  from which on the next count is open anyway, lead to the same next kind; if their smallest term is not negative, they
  do not lower the decrease (O). If it is negative, and more warps exist, the certificate is refused.

Latencies are places here (`delays`), of which classes and kinds know nothing. Every warp on a delay moves: as many to
places of a class as the next count can tell apart are enumerated, and no others may raise the potential (P). Of a class
with an interval longer than one cycle the kind also knows the free ports, exactly, and R adds ports_t[class][h-1] for
each port that is held for h more cycles; any of the held ports may be released, all if the interval is 2.

In the code x and y are classes (y may be `FINISH`, `STAY` or `DELAYED`, x may be `DELAYED`), u and v are nodes before
and after a cycle, and a *move* is a pair (x, y).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import chain, combinations_with_replacement, product
from itertools import count as count_from
from operator import add, itemgetter, mul, sub
from typing import NamedTuple

from makespan.model.certificate import (
    DELAYED_LABEL,
    FINISHED_LABEL,
    Certificate,
    Potential,
    PotentialNode,
    PotentialTable,
    SituationKind,
)
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.result import Upper
from makespan.verify.delays import sizes, with_delay_places
from makespan.verify.potential_terms import DELAYED, FINISH, STAY, ClassMove, Terms
from makespan.verify.refusal import ProofBudget, ProofSteps, Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound, ProofRule, ProvePieces
from makespan.verify.states import StateWalker, WarpsAtPlace, front

MOST_FRONT_STATES, MOST_FRONT_STEPS, MOST_DECREASES = 20_000, 5_000_000, 2_000_000
MOST_DIFFERENCES = 1_000_000_000
_ON, _OFF = (DELAYED, DELAYED), (DELAYED, FINISH)

_END = PotentialNode(None, ())


class Slow(NamedTuple):
    """A class with an interval longer than one cycle: its number, and for how long a port is held after the issue."""

    x: int
    held: int


class Passing(NamedTuple):
    """The ports of a slow class that are released in a cycle, stay held, and are taken."""

    released: int
    kept: int
    taken: int


_Ways = list[tuple[tuple[Passing, ...], SituationKind]]  # for ports to pass, each with the free ones afterwards


class SituationCycle(NamedTuple):
    """An abstract cycle that leads from one situation to another.

    Args:
        role: the move of z.
        moves: the moves of others, each with how many make it.
        more: the moves that any number of further others may make.
        ports: of every slow class.
        after: the next situation; situations are nodes without a label.
    """

    role: ClassMove
    moves: tuple[tuple[ClassMove, int], ...]
    more: tuple[ClassMove, ...]
    ports: tuple[Passing, ...]
    after: PotentialNode


class Beginning(NamedTuple):
    """A state from which the bound is taken: its situation with z at any of `places`, all warps, the held ports."""

    situation: PotentialNode
    places: list[int]
    where: list[WarpsAtPlace]
    held: list[list[int]]


class CertificateBudget(NamedTuple):
    """The work that one certificate may take: steps to the front, combinations of moves and nodes, differences."""

    steps: ProofSteps
    work: ProofSteps
    differences: ProofSteps


def bound(instance: Instance, certificate: Certificate, effort: ProofBudget | None = None) -> int:
    """Return the upper bound that `certificate` proves, in cycles: the largest over the groups that may hold z.

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
    effort = effort or ProofBudget(3)
    try:
        with (
            effort.part(MOST_FRONT_STEPS) as steps,
            effort.part(MOST_DECREASES) as work,
            effort.part(MOST_DIFFERENCES) as differences,
        ):
            if sum(sizes(instance)) > work.left:
                raise TooMuchWork
            limits, whole = CertificateBudget(steps, work, differences), with_delay_places(instance)
            return max(PotentialCheck(whole, potential, limits).bound() for potential in certificate.potentials)
    except TooMuchWork:
        raise Refused("the certificate is too large for this checker") from None


class PotentialCheck:
    """The check of one potential, whose z belongs to `last_group`; `instance` has its latencies as places."""

    def __init__(self, instance: Instance, potential: Potential, limits: CertificateBudget) -> None:
        limits.work.spend(sum(len(place.successors) for group in instance.groups for place in group.program.places))
        self.instance, self.potential, self.others = instance, potential, instance.warps - 1
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
        self.tables = (*potential.tables, self._nothing())
        self.numbers = {**dict(potential.nodes), _END: len(potential.tables)}
        self._check_tables()
        self.terms = Terms(instance, potential, self.tables, limits.differences)

    @cached_property
    def looking(self) -> set[PotentialNode]:
        """Return the situations that are no stops."""
        return {PotentialNode(node.last, node.kind) for node in self.numbers if node.label is not None}

    def _check_tables(self) -> None:
        ports = [slow.held for slow in self.slow]
        if any(list(map(len, table.ports)) != ports for table in self.tables):
            raise Refused("potential: it needs a term for every port that can be held")
        if both := [situation for situation in self.looking if situation in self.numbers]:
            raise Refused(f"potential: it has tables with and without a label for {_name(both[0])}")

    def bound(self) -> int:
        """Return cycles that no schedule exceeds in which a warp of `last_group` finishes last."""
        walker = StateWalker(self.instance, self.steps)
        states, ended = front(walker, self.potential.front, MOST_FRONT_STATES)
        begun = [beginning for state in states for beginning in self._beginnings(walker, state)]
        cycles = self._cycles({state.situation for state in begun})
        labels = self._labels(cycles)
        # d is the least left-hand side of (D), found anew: the one that the engine found is not even in the certificate
        decreases = self._all_decreases(cycles, labels)
        least, u, v = min(decreases, key=itemgetter(0), default=(None, _END, _END))
        if least is None:
            return ended  # no cycles lead on from here with z last, so there is no such schedule
        if least <= 0:
            raise Refused(f"potential: it does not fall in a cycle from {_name(u)} to {_name(v)}")
        values = (self._value(label, state) for state in begun for label in labels[state.situation])
        return max(ended, self.potential.front + max(values) // least)

    def _beginnings(self, walker: StateWalker, state: int) -> Iterator[Beginning]:
        where, ports = list(walker.standing(state)), walker.held(state)
        ready, places = Counter[int](), dict[int, list[int]]()
        for group, place, count in where:
            x = self.terms.number[self.instance.groups[group].program.places[place].unit]
            ready[x] += count
            if group == self.potential.last_group:
                places.setdefault(x, []).append(place)
        held = [ports[self.classes[slow.x]] for slow in self.slow]
        free = [self.capacities[slow.x] - sum(row) for slow, row in zip(self.slow, held, strict=True)]
        for x, there in places.items():
            others = (min(ready[y] - (y == x), most) for y, most in enumerate(self.thresholds))
            yield Beginning(PotentialNode(None if x == DELAYED else x, (*others, *free)), there, where, held)

    # Abstract cycles (docs/theory.md, 4.3)

    def _cycles(self, situations: set[PotentialNode]) -> dict[PotentialNode, list[SituationCycle]]:
        found: dict[PotentialNode, list[SituationCycle]] = {}
        waiting = list(situations)
        while waiting:
            situation = waiting.pop()
            if situation not in found and situation != _END:
                found[situation] = list(self._cycles_of(situation))
                waiting += {cycle.after for cycle in found[situation]}
        return found

    def _cycles_of(self, situation: PotentialNode) -> Iterator[SituationCycle]:
        for issued in self._issues(situation):
            ports = self._ports(situation.kind, issued)
            for others, roles in self._roles(situation, issued):
                for moves, ready in self._moves(situation.kind, others):
                    yield from self._ended(situation, roles, moves, ready, ports)

    def _issues(self, situation: PotentialNode) -> Iterator[tuple[int, ...]]:
        """Yield how many warps of each class issue: all ways that are work-conserving."""
        # As no threshold is below the capacity, cutting a count at the threshold does not change the least of both.
        free = dict(enumerate(self.capacities))
        free |= {slow.x: ports for slow, ports in zip(self.slow, situation.kind[len(free) :], strict=True)}
        most = tuple(min(situation.kind[x] + (x == situation.last), ports) for x, ports in free.items())
        width = self.instance.machine.issue_width
        if width is None or width >= sum(most):
            yield most
            return
        for issued in product(*(range(count + 1) for count in most)):
            self.work.spend()
            if sum(issued) == width:
                yield issued

    def _roles(
        self, situation: PotentialNode, issued: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], list[ClassMove]]]:
        """Yield how many others of each class are among those who move, and what z may do then."""
        if situation.last is None:
            yield issued, self.terms.last[DELAYED]
            return
        if issued[situation.last]:
            others = tuple(count - (x == situation.last) for x, count in enumerate(issued))
            yield others, self.terms.last[situation.last]
        if issued[situation.last] <= situation.kind[situation.last]:
            yield issued, [(situation.last, STAY)]

    def _ports(self, kind: SituationKind, issued: tuple[int, ...]) -> _Ways:
        """Return all ways in which ports of slow classes can pass, each with the numbers that are free afterwards."""
        found: _Ways = [((), ())]
        for slow, free in zip(self.slow, kind[len(self.classes) :], strict=True):
            held = self.capacities[slow.x] - free
            least = held if slow.held == 1 else 0  # with an interval of 2 a held port is always released
            self.work.spend(len(found) * (held + 1 - least))
            ways = [Passing(count, held - count, issued[slow.x]) for count in range(least, held + 1)]
            now = [(way, free + way.released - way.taken) for way in ways]
            found = [((*passed, way), (*before, after)) for passed, before in found for way, after in now]
        return found

    def _moves(self, kind: SituationKind, issued: tuple[int, ...]) -> Iterator[tuple[dict[ClassMove, int], list[int]]]:
        """Yield the moves of others, with how many make each, and how many others are ready for each class then."""
        ways = map(combinations_with_replacement, map(self.terms.others.__getitem__, range(len(issued))), issued)
        for chosen in product(*map(self._limited, ways)):
            self.work.spend(sum(issued))
            moves = Counter(chain.from_iterable(chosen))
            arrived = [0] * len(issued)
            for (_, y), count in moves.items():
                if y >= 0:
                    arrived[y] += count
            for delayed in self._product(map(partial(self._arrivals, kind), count_from(0), issued, arrived)):
                back = {(DELAYED, x): count for x, count in enumerate(delayed) if count}
                there = list(map(add, arrived, delayed))
                for stay in self._product(map(partial(self._stays, kind), count_from(0), issued, there)):
                    self.work.spend(1 + len(moves) + len(back))
                    staying = {(x, STAY): count for x, count in enumerate(stay) if count}
                    yield {**moves, **back, **staying}, list(map(add, there, stay))

    def _ended(
        self, before: PotentialNode, roles: list[ClassMove], moves: dict[ClassMove, int], ready: list[int], ports: _Ways
    ) -> Iterator[SituationCycle]:
        """Yield the cycles with these moves, after which the given number of others is ready."""
        spare = self.others - sum(moves.values())
        if spare < 0:
            return  # it needs more warps than there are; this is all that depends on their number
        counts, after = tuple(moves.items()), tuple(map(min, ready, self.thresholds))
        more = self._more(before.kind, ready) if spare else ()
        gone = not any(ready) and not any(y == DELAYED for _, y in moves)
        for role, (passing, free) in product(roles, ports):
            self.work.spend()
            if role[1] != FINISH:
                last = {STAY: before.last, DELAYED: None}.get(role[1], role[1])
                yield SituationCycle(role, counts, more, passing, PotentialNode(last, (*after, *free)))
            elif gone:  # z finishes last, so no warp may be left behind
                yield SituationCycle(role, counts, (_OFF,) * (_OFF in more), passing, _END)

    def _more(self, kind: SituationKind, ready: list[int]) -> tuple[ClassMove, ...]:
        """Return the moves that any number of further others may make."""
        # counts end where a next count is sure to be open: there, more may stay or come from delays
        full = [x for x, count in enumerate(ready) if count >= self.thresholds[x]]
        staying = ((x, STAY) for x in full if kind[x] == self.thresholds[x])
        moving = (*((DELAYED, x) for x in full), _ON, _OFF)
        return (*staying, *(move for move in moving if move in self.terms.others[DELAYED]))

    def _arrivals(self, kind: SituationKind, x: int, moved: int, arrived: int) -> range:
        """Return how many others may come to class x from delays; the last number stands for all from there on."""
        if (DELAYED, x) not in self.terms.others[DELAYED]:
            return range(1)
        return range(max(0, self.thresholds[x] - arrived - (kind[x] - moved)) + 1)

    def _stays(self, kind: SituationKind, x: int, moved: int, arrived: int) -> range:
        """Return how many others of class x may stay; the last number of an open class stands for all from there on."""
        least = kind[x] - moved
        if kind[x] < self.thresholds[x]:
            return range(least, least + 1)
        return range(least, max(least, self.thresholds[x] - arrived) + 1)

    def _product(self, ways: Iterable[range]) -> Iterator[tuple[int, ...]]:
        """`itertools.product`, which first makes a tuple of every range, however long."""
        ranges = list(ways)
        self.work.spend(sum(len(way) - 1 for way in ranges))
        return product(*ranges)

    def _limited(self, way: Iterable[tuple[ClassMove, ...]]) -> Iterator[tuple[ClassMove, ...]]:
        for chosen in way:
            self.work.spend(1 + len(chosen))
            yield chosen

    def _labels(self, cycles: Mapping[PotentialNode, list[SituationCycle]]) -> dict[PotentialNode, set[int | None]]:
        """Return the labels that every situation can have: {None} at a stop, none where no cycles lead to the end."""
        # the least sets of lemma 3: they grow until no abstract cycle adds a label
        labels = {situation: set[int | None]() for situation in cycles}
        entered = {situation: {cycle.after for cycle in cycles[situation]} for situation in cycles}
        grown = True
        while grown:
            grown = False
            for situation, found in labels.items():
                self.work.spend(1 + len(entered[situation]))
                seen = set().union(*(self._seen(after, labels) for after in entered[situation]))
                if seen and situation not in self.looking:
                    seen = {None}
                grown = grown or not seen <= found
                found |= seen
        return labels

    def _seen(self, after: PotentialNode, labels: Mapping[PotentialNode, set[int | None]]) -> set[int | None]:
        """Return the labels that a cycle to `after` gives to a situation that is no stop."""
        if after == _END:
            return {FINISHED_LABEL}
        if after in self.looking or not labels[after]:
            return labels[after]
        return {DELAYED_LABEL if after.last is None else after.last}

    # Decreases (docs/theory.md, 4.4)

    def _all_decreases(
        self, cycles: Mapping[PotentialNode, list[SituationCycle]], labels: Mapping[PotentialNode, set[int | None]]
    ) -> Iterator[tuple[int, PotentialNode, PotentialNode]]:
        for situation, possible in cycles.items():
            for cycle in possible:
                for u, v in self._nodes(situation, cycle.after, labels):
                    yield self._decrease(u, v, cycle), u, v

    def _nodes(
        self, situation: PotentialNode, after: PotentialNode, labels: Mapping[PotentialNode, set[int | None]]
    ) -> Iterator[tuple[PotentialNode, PotentialNode]]:
        """Yield pairs (u, v): for every table v of the situation after a cycle, the table u that is to be larger."""
        # It is that of the same label; where the cycle leads to a stop, of the label that this is; or that of a stop.
        for label in self._seen(after, labels):
            u, v = (
                PotentialNode(one.last, one.kind, label if one in self.looking else None) for one in (situation, after)
            )
            yield u, v

    def _decrease(self, u: PotentialNode, v: PotentialNode, cycle: SituationCycle) -> int:
        """Return the left-hand side of (D): a lower bound of the decrease from one table to another.

        Raises:
            Refused: (O) or (P) does not hold, so that more warps would lower the decrease without end.
        """
        self.work.spend()
        numbers = self._number(u), self._number(v)
        before, after = (self.tables[number] for number in numbers)
        others, last = self.terms.least(*numbers)
        raising = next((move for move in cycle.more if others[move] < 0), None)
        if raising is not None:
            who = "on delays" if raising[0] == DELAYED else "that stay"
            raise Refused(f"potential: warps {who} raise it in a cycle from {_name(u)} to {_name(v)}")
        total = before.constant - after.constant + last[cycle.role]
        total += sum(count * others[move] for move, count in cycle.moves)
        return total + self._passed(before, after, cycle.ports)

    def _passed(self, before: PotentialTable, after: PotentialTable, ports: Iterable[Passing]) -> int:
        total = 0
        for (released, kept, taken), was, then in zip(ports, before.ports, after.ports, strict=True):
            total += released * was[0] - taken * then[-1]
            if kept:
                total += kept * min(map(sub, was[1:], then))
        return total

    def _number(self, node: PotentialNode) -> int:
        if node not in self.numbers:
            raise Refused(f"potential: it has no table for {_name(node)}")
        return self.numbers[node]

    def _nothing(self) -> PotentialTable:
        others = tuple((0,) * group.program.end for group in self.instance.groups)
        return PotentialTable(
            others, others[self.potential.last_group], 0, tuple((0,) * slow.held for slow in self.slow)
        )

    def _value(self, label: int | None, state: Beginning) -> int:
        table = self.tables[self._number(PotentialNode(state.situation.last, state.situation.kind, label))]
        # all warps count as others here, z too, which is then replaced: at the place where it makes most
        everybody = sum(count * table.others[group][place] for group, place, count in state.where)
        ports = sum(sum(map(mul, row, counts)) for row, counts in zip(table.ports, state.held, strict=True))
        own = table.others[self.potential.last_group]
        return table.constant + everybody + ports + max(table.last[place] - own[place] for place in state.places)


def _name(node: PotentialNode) -> str:
    if node == _END:
        return "the end"
    after = {None: "", FINISHED_LABEL: " before the end", DELAYED_LABEL: " before a delay"}
    label = after.get(node.label, f" before class {node.label}")
    return f"kind {node.kind} and {'a delay' if node.last is None else f'class {node.last}'}{label}"


def _prove(claim: ClaimedBound, _: ProvePieces) -> int | None:
    if claim.certificate is None:
        return None
    if claim.instance.is_multiprocessor:
        raise Refused("potentials do not speak of partitions, resources, or warps that run ahead")
    proven = bound(claim.instance, claim.certificate, claim.effort)
    if proven > claim.certificate.upper:
        raise Refused(f"the certificate says {claim.certificate.upper} cycles and proves {proven}")
    return proven


RULE = ProofRule(
    Upper.POTENTIAL,
    "its potential",
    _prove,
    is_given=lambda claim: claim.certificate,
    absence="upper is reported by {name}, but there is no certificate",
)
