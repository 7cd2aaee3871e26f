"""Theorem B: a linear programme that synthesises potential certificates, for strings and automata.

The size of the programme does not depend on the number of warps and is linear in the places (docs/theory.md). What
the solver returns is rounded to integers, repaired where an inequality must hold exactly, and then measured in
integers: a float never enters a bound.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from makespan.bounds.abstraction import Abstraction, Crossing
from makespan.bounds.conditions import Conditions, Edges, Pairs, Ports, Question, Slot, Stopped, conditions
from makespan.bounds.front import Front, State
from makespan.bounds.linear import Programme, Term
from makespan.bounds.tables import Arrays, Mode, Tables
from makespan.certificate import Kind, Node, Potential, Table

LARGEST = float(1 << 30)
"""Potentials beyond so many cycles come from a solver in trouble; below, all sums fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Proof:
    """`potential` proves that the warps take at most `upper` cycles if its group holds the last finisher."""

    upper: int
    potential: Potential


def synthesise(
    question: Question,
    shape: Abstraction,
    states: Front,
    seconds: float,
    mode: Callable[[Node], Mode] = lambda node: node,
    stop: Callable[[], bool] = lambda: False,
    *,
    one_delay: bool = True,
) -> Proof | None:
    """The least bound that a potential of this shape proves; None when the time does not suffice, or at `stop`.

    With `one_delay` all tables have the same numbers for delays of others: a smaller programme, a looser bound.
    """
    programme = Programme()
    try:
        required = conditions(question, shape, stop)
        tables = Tables(question, shape, required, programme, mode, one_delay=one_delay)
        _require_decrease(required, tables, _Minima(question, tables, programme), programme, mode, stop)
    except Stopped:
        return None
    _require_dominance(question, tables, programme)
    _require_descent(question, tables, programme)
    bound = programme.new(1)
    _require_bound(question, shape, states, tables, programme, mode, bound)
    solution = programme.minimise(int(bound[0]), seconds, stop)
    if solution is None or not (np.abs(solution) < LARGEST).all():  # also refuses what is not a number
        return None
    values = tables.values(solution)
    nodes = {node: values[mode(node)] for kind in shape.kinds for node in shape.nodes_of(kind)}
    step = least_decrease(question, required, nodes)
    if step <= 0 or not dominates(question, required, nodes):
        return None
    upper = max((_bound_from(question, shape, state, nodes, step) for state in states.states), default=0)
    return Proof(states.cycles + upper, _potential(question, shape, states, nodes))


class _Minima:
    """Variables for the smallest difference of two tables over places, each made when it is first asked for."""

    def __init__(self, question: Question, tables: Tables, programme: Programme) -> None:
        self.question, self.tables, self.programme = question, tables, programme
        self._known: dict[Hashable, np.ndarray] = {}

    def moved(self, before: Mode, after: Mode | None, crossing: Crossing) -> np.ndarray:
        """The least that one of the others gives up when it makes this crossing."""
        edges = _crossing_edges(self.question, crossing, self.question.enough)
        return self._least((before, after, crossing), (self._others(before, after, group, *e) for group, e in edges))

    def unmoved(self, before: Mode, after: Mode | None, unit: int) -> np.ndarray:
        """The least that one of the others gives up when it stays at a place of this class."""
        edges = _crossing_edges(self.question, unit, self.question.enough)
        return self._least((before, after, unit), (self._others(before, after, group, *e) for group, e in edges))

    def kept(self, before: Mode, after: Mode | None, number: int) -> np.ndarray:
        """The least that a port of a timed class gives up that will be held for longer."""
        longer: list[Term] = [(self.tables.ports[before][number][1:], 1.0)]
        if after is not None:
            longer.append((self.tables.ports[after][number][:-1], -1.0))
        return self._least(("kept", before, after, number), [longer])

    def last(self, before: Mode, after: Mode | None, slot: Slot) -> np.ndarray:
        """The least that the last finisher gives up in this slot."""
        p, q = self.question.enough[self.question.last][slot]
        terms = self.tables.of_last(before, p) + self.tables.of_last(after, q, -1.0)
        return self._least(("last", before, after, slot), [terms])

    def _others(self, before: Mode, after: Mode | None, group: int, p: np.ndarray, q: np.ndarray) -> list[Term]:
        return self.tables.of_others(before, group, p) + self.tables.of_others(after, group, q, -1.0)

    def _least(self, key: Hashable, differences: Iterable[list[Term]]) -> np.ndarray:
        if key not in self._known:
            variable = self._known[key] = self.programme.new(1)
            for terms in differences:
                self.programme.at_least([*terms, (variable, -1.0)], 0.0)
        return self._known[key]


def _require_decrease(
    required: Conditions,
    tables: Tables,
    minima: _Minima,
    programme: Programme,
    mode: Callable[[Node], Mode],
    stop: Callable[[], bool],
) -> None:
    """One row per requirement, those that modes make equal once; raises `Stopped` when `stop` says so."""
    different = dict.fromkeys(
        (mode(before), None if after is None else mode(after), slot, others)
        for before, after, slot, others in required.requirements
    )
    for before, after, slot, others in different:
        if stop():
            raise Stopped
        terms: list[Term] = [(tables.constant[before], 1.0)]
        if after is not None:
            terms.append((tables.constant[after], -1.0))
        terms += [(minima.moved(before, after, crossing), float(count)) for crossing, count in others.moved]
        terms += [(minima.unmoved(before, after, unit), float(n)) for unit, n in enumerate(others.unmoved) if n]
        terms += _port_terms(tables, minima, before, after, others.ports)
        terms.append((minima.last(before, after, slot), 1.0))
        programme.at_least(terms, 1.0)


def _port_terms(
    tables: Tables, minima: _Minima, before: Mode, after: Mode | None, ports: tuple[Ports, ...]
) -> list[Term]:
    """What the held ports give up in a cycle, and what those that are taken bring."""
    terms: list[Term] = []
    for number, (released, kept, taken) in enumerate(ports):
        if released:
            terms.append((tables.ports[before][number][:1], float(released)))
        if kept:
            terms.append((minima.kept(before, after, number), float(kept)))
        if taken and after is not None:
            terms.append((tables.ports[after][number][-1:], -float(taken)))
    return terms


def _crossing_edges(question: Question, slot: Slot, edges: tuple[Edges, ...]) -> list[tuple[int, Pairs]]:
    """The edges of a crossing, or of staying, in every group that has other warps."""
    return [(group, own[slot]) for group, own in enumerate(edges) if question.others[group] and slot in own]


def _require_dominance(question: Question, tables: Tables, programme: Programme) -> None:
    for unit, order in enumerate(tables.order):
        for before, after in order.pairs:
            _require_no_rise(question, tables, programme, before, after, unit)


def _require_descent(question: Question, tables: Tables, programme: Programme) -> None:
    for before, after, crossing in tables.descents:
        _require_no_rise(question, tables, programme, before, after, crossing)


def _require_no_rise(
    question: Question, tables: Tables, programme: Programme, before: Mode, after: Mode | None, slot: Slot
) -> None:
    for group, (p, q) in _crossing_edges(question, slot, question.enough):
        own = tables.of_others(before, group, p)
        programme.at_least(own + tables.of_others(after, group, q, -1.0), 0.0)


def _require_bound(
    question: Question,
    shape: Abstraction,
    states: Front,
    tables: Tables,
    programme: Programme,
    mode: Callable[[Node], Mode],
    bound: np.ndarray,
) -> None:
    """The bound covers every front state, every node that it may be and every place of the last finisher."""
    programme.at_least([(bound, 1.0)], float(states.cycles))
    for state in filter(None, states.states):
        for node in shape.nodes_of(kind_of(question, shape, state)):
            one = mode(node)
            all_of = [t for (g, p), n in state for t in tables.of_others(one, g, np.array([p]), -float(n))]
            all_of += [(tables.constant[one], -1.0), (bound, 1.0)]
            for (group, place), _ in state:
                if group == question.last:
                    at = np.array([place])
                    own = tables.of_others(one, group, at) + tables.of_last(one, at, -1.0)
                    programme.at_least(all_of + own, float(states.cycles))


def kind_of(question: Question, shape: Abstraction, state: State) -> Kind:
    """Ready warps per class, cut at the thresholds, and behind them all ports of the timed classes: they are free."""
    counts = [0] * len(question.classes)
    for (group, place), count in state:
        if (unit := int(question.units[group][place])) >= 0:
            counts[unit] += count
    return *map(min, counts, shape.thresholds), *(shape.sigma[unit] for unit, _ in shape.timed)


def least_decrease(question: Question, required: Conditions, nodes: dict[Node, Arrays]) -> int:
    """The smallest decrease of the potential in one cycle, over all requirements; exact."""
    nothing = _nothing(question)

    # a requirement names nodes and counts only; the least over all places that fit it, warp by warp, bounds any cycle

    @cache
    def others_least(before: Node, after: Node | None, slot: Slot) -> int:
        own, then = nodes[before].others, (nodes[after] if after else nothing).others
        return min(int((own[g][p] - then[g][q]).min()) for g, (p, q) in _crossing_edges(question, slot, question.edges))

    @cache
    def last(before: Node, after: Node | None, slot: Slot) -> int:
        p, q = question.edges[question.last][slot]
        return int((nodes[before].last[p] - (nodes[after] if after else nothing).last[q]).min())

    def ports(before: Node, after: Node | None, counts: tuple[Ports, ...]) -> int:
        own, then = nodes[before].ports, (nodes[after] if after else nothing).ports
        return sum(
            released * int(was[0])
            + (kept * int((was[1:] - becomes[:-1]).min()) if kept else 0)
            - taken * int(becomes[-1])
            for (released, kept, taken), was, becomes in zip(counts, own, then, strict=True)
        )

    return min(
        nodes[before].constant
        - (nodes[after] if after else nothing).constant
        + sum(count * others_least(before, after, crossing) for crossing, count in others.moved)
        + sum(count * others_least(before, after, unit) for unit, count in enumerate(others.unmoved) if count)
        + ports(before, after, others.ports)
        + last(before, after, slot)
        for before, after, slot, others in required.requirements
    )


def _nothing(question: Question) -> Arrays:
    """The table of the end of all warps."""
    others = tuple(map(np.zeros_like, question.units))
    return Arrays(others, others[question.last], 0, tuple(np.zeros(i - 1, dtype=np.int64) for _, i in question.timed))


def dominates(question: Question, required: Conditions, nodes: dict[Node, Arrays]) -> bool:
    """Whether the others' tables never grow where any number of warps may stay, or leave delays; exact."""
    nothing = _nothing(question)

    def falls(before: Node, after: Node | None, slot: Slot) -> bool:
        own, then = nodes[before].others, (nodes[after] if after else nothing).others
        edges = _crossing_edges(question, slot, question.edges)
        return all(bool((own[group][p] >= then[group][q]).all()) for group, (p, q) in edges)

    return all(falls(*d) for d in required.dominances) and all(falls(*d) for d in required.descents)


def _bound_from(question: Question, shape: Abstraction, state: State, nodes: dict[Node, Arrays], step: int) -> int:
    """The most cycles left from a state in which the last finisher is not finished; 0 if all are."""
    most = 0
    for node in shape.nodes_of(kind_of(question, shape, state)) if state else ():
        others, last, constant, _ = nodes[node]  # no port is held
        total = constant + sum(count * int(others[group][place]) for (group, place), count in state)
        ends = [int(last[p]) - int(others[g][p]) for (g, p), _ in state if g == question.last]
        most = max([most, *((total + end) // step for end in ends)])
    return most


def _potential(question: Question, shape: Abstraction, states: Front, nodes: dict[Node, Arrays]) -> Potential:
    tables = tuple(
        (
            node,
            Table(
                tuple(tuple(own[:-1].tolist()) for own in table.others),
                tuple(table.last[:-1].tolist()),
                table.constant,
                tuple(tuple(own.tolist()) for own in table.ports),
            ),
        )
        for node, table in nodes.items()
    )
    return Potential(question.last, question.classes, shape.thresholds, states.cycles, tables)
