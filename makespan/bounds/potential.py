"""Theorem B: a linear programme that synthesises potential certificates, for strings and automata.

The size of the programme does not depend on the number of warps and is linear in the places (docs/theory.md). What
the solver returns is rounded to integers, repaired where an inequality must hold exactly, and then measured in
integers: a float never enters a bound.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from makespan.bounds.conditions import Conditions, Question, Slot, Stopped, conditions
from makespan.bounds.front import Front, State
from makespan.bounds.kinds import Abstraction, Crossing
from makespan.bounds.linear import Programme, Term
from makespan.bounds.repetition import Interpolation
from makespan.certificate import Kind, Node, Potential, Table

SCALE = 1 << 20
"""Potentials are stored in units of 1/SCALE cycle."""

LARGEST = float(1 << 30)
"""Potentials beyond so many cycles come from a solver in trouble; below, all sums fit into 64 bits."""

Mode = Hashable
"""Nodes of the same mode share one table: fewer modes make a smaller programme and a looser bound."""

Arrays = tuple[tuple[np.ndarray, ...], np.ndarray, int]
"""Per group and place, per place of the last finisher, and the constant; one more entry stands for "finished"."""


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
) -> Proof | None:
    """The least bound that a potential of this shape proves; None when the time does not suffice, or at `stop`."""
    programme = Programme()
    try:
        required = conditions(question, shape, stop)
        tables = _Tables(question, shape, required, programme, mode)
        _require_decrease(required, tables, _Minima(question, tables, programme), programme, mode, stop)
    except Stopped:
        return None
    _require_dominance(question, tables, programme)
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


class _Tables:
    """The variables of every mode, shared where the conditions force equality."""

    def __init__(
        self,
        question: Question,
        shape: Abstraction,
        required: Conditions,
        programme: Programme,
        mode: Callable[[Node], Mode],
    ) -> None:
        self.question = question
        modes = list(dict.fromkeys(mode(node) for kind in shape.kinds for node in shape.nodes_of(kind)))
        ordered = {(mode(d.before), mode(d.after), d.unit) for d in required.dominances}
        self.order = [
            _Order(modes, {(before, after) for before, after, on in ordered if on == unit and before != after})
            for unit in range(len(question.classes))
        ]
        self.others: dict[Mode, tuple[np.ndarray, ...]] = {}
        for one in modes:
            self.others[one] = tuple(self._shared(one, group, programme) for group in range(len(question.units)))
        self.last = {one: self._anchored(question.last, programme) for one in modes}
        self.constant = {one: programme.new(1) for one in modes}

    def _shared(self, mode: Mode, group: int, programme: Programme) -> np.ndarray:
        """Own variables on the classes that this mode represents, its representative's elsewhere."""
        unit = self.question.units[group]
        columns = np.full(len(unit), -1)
        for number, order in enumerate(self.order):
            representative = order.representative[mode]
            chosen = unit == number
            known = self.others.get(representative)
            own = chosen & self.question.interpolations[group].is_anchor
            columns[own] = programme.new(int(own.sum())) if known is None else known[group][own]
        return columns

    def of_others(self, mode: Mode | None, group: int, places: np.ndarray, sign: float = 1.0) -> list[Term]:
        """The others' table at these places as terms of a row; nothing for the end of all warps."""
        return [] if mode is None else self._interpolated(self.others[mode][group], group, places, sign)

    def of_last(self, mode: Mode | None, places: np.ndarray, sign: float = 1.0) -> list[Term]:
        """The last finisher's table likewise."""
        return [] if mode is None else self._interpolated(self.last[mode], self.question.last, places, sign)

    def _interpolated(self, columns: np.ndarray, group: int, places: np.ndarray, sign: float) -> list[Term]:
        merged = self.question.interpolations[group]
        weight = merged.weight[places]
        left = (columns[merged.left[places]], sign * (1.0 - weight))
        return [left, (columns[merged.right[places]], sign * weight)] if weight.any() else [left]

    def _anchored(self, group: int, programme: Programme) -> np.ndarray:
        own = self.question.interpolations[group].is_anchor
        columns = np.full(len(own), -1)
        columns[own] = programme.new(int(own.sum()))
        return columns

    def values(self, solution: np.ndarray) -> dict[Mode, Arrays]:
        """The solution in integers, with every dominance restored that rounding may have broken."""
        scaled = np.append(solution * SCALE, 0.0)
        merged = self.question.interpolations
        others = {
            mode: tuple(_whole(scaled, columns, merged[group]) for group, columns in enumerate(groups))
            for mode, groups in self.others.items()
        }
        last = {mode: _whole(scaled, columns, merged[self.question.last]) for mode, columns in self.last.items()}
        for number, order in enumerate(self.order):
            for equal, below in order.repairs:
                for group, unit in enumerate(self.question.units):
                    chosen = unit == number
                    highest = np.max([others[mode][group][chosen] for mode in (*equal, *below)], axis=0)
                    for mode in equal:
                        others[mode][group][chosen] = highest
        return {mode: (others[mode], last[mode], round(scaled[self.constant[mode][0]])) for mode in others}


def _whole(scaled: np.ndarray, columns: np.ndarray, merged: Interpolation) -> np.ndarray:
    """A table in integers, from the variables of its anchors."""
    left, right = scaled[columns[merged.left]], scaled[columns[merged.right]]
    table: np.ndarray = np.rint(left + merged.weight * (right - left)).astype(np.int64)
    return table


class _Order:
    """Which mode's table must be at least which other's, on the places of one class."""

    def __init__(self, modes: list[Mode], above: set[tuple[Mode, Mode]]) -> None:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(modes)
        graph.add_edges_from(sorted(above, key=lambda pair: (modes.index(pair[0]), modes.index(pair[1]))))
        parts = list(nx.strongly_connected_components(graph))  # each part after the parts that it dominates
        rank = {mode: number for number, mode in enumerate(modes)}
        self.representative = {mode: min(part, key=rank.__getitem__) for part in parts for mode in part}
        self.repairs = [
            (part, below) for part in parts if (below := {after for mode in part for after in graph[mode]} - part)
        ]
        self.pairs = {
            (self.representative[before], self.representative[after])
            for before, after in graph.edges
            if self.representative[before] != self.representative[after]
        }


class _Minima:
    """Variables for the smallest difference of two tables over places, each made when it is first asked for."""

    def __init__(self, question: Question, tables: _Tables, programme: Programme) -> None:
        self.question, self.tables, self.programme = question, tables, programme
        self._known: dict[Hashable, np.ndarray] = {}

    def moved(self, before: Mode, after: Mode | None, crossing: Crossing) -> np.ndarray:
        """The least that one of the others gives up when it makes this crossing."""
        edges = _crossing_edges(self.question, crossing)
        return self._least((before, after, crossing), (self._others(before, after, group, *e) for group, e in edges))

    def unmoved(self, before: Mode, after: Mode | None, unit: int) -> np.ndarray:
        """The least that one of the others gives up when it stays at a place of this class."""
        standing = _standing(self.question, unit)
        return self._least(
            (before, after, unit), (self._others(before, after, group, on, on) for group, on in standing)
        )

    def last(self, before: Mode, after: Mode | None, slot: Slot) -> np.ndarray:
        """The least that the last finisher gives up in this slot."""
        p, q = self._enough(self.question.last, *_slot_edges(self.question, slot))
        terms = self.tables.of_last(before, p) + self.tables.of_last(after, q, -1.0)
        return self._least(("last", before, after, slot), [terms])

    def _others(self, before: Mode, after: Mode | None, group: int, p: np.ndarray, q: np.ndarray) -> list[Term]:
        p, q = self._enough(group, p, q)
        return self.tables.of_others(before, group, p) + self.tables.of_others(after, group, q, -1.0)

    def _enough(self, group: int, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept = self.question.interpolations[group].ends(p, q)
        return p[kept], q[kept]

    def _least(self, key: Hashable, differences: Iterable[list[Term]]) -> np.ndarray:
        if key not in self._known:
            variable = self._known[key] = self.programme.new(1)
            for terms in differences:
                self.programme.at_least([*terms, (variable, -1.0)], 0.0)
        return self._known[key]


def _require_decrease(
    required: Conditions,
    tables: _Tables,
    minima: _Minima,
    programme: Programme,
    mode: Callable[[Node], Mode],
    stop: Callable[[], bool],
) -> None:
    """One row per requirement; raises `Stopped` when `stop` says so."""
    for before_node, after_node, slot, others in required.requirements:
        if stop():
            raise Stopped
        before, after = mode(before_node), None if after_node is None else mode(after_node)
        terms = [(tables.constant[before], 1.0)]
        if after is not None:
            terms.append((tables.constant[after], -1.0))
        terms += [(minima.moved(before, after, crossing), float(count)) for crossing, count in others.moved]
        terms += [(minima.unmoved(before, after, unit), float(n)) for unit, n in enumerate(others.unmoved) if n]
        terms.append((minima.last(before, after, slot), 1.0))
        programme.at_least(terms, 1.0)


def _crossing_edges(question: Question, crossing: Crossing) -> list[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """The edges of a crossing in every group that has other warps."""
    return [
        (group, edges[crossing])
        for group, edges in enumerate(question.edges)
        if question.others[group] and crossing in edges
    ]


def _standing(question: Question, unit: int) -> list[tuple[int, np.ndarray]]:
    """Which places of every group that has other warps are of this class."""
    found = [(group, np.flatnonzero(own == unit)) for group, own in enumerate(question.units) if question.others[group]]
    return [(group, on) for group, on in found if len(on)]


def _slot_edges(question: Question, slot: Slot) -> tuple[np.ndarray, np.ndarray]:
    """Where the last finisher may be before and after a cycle in this slot."""
    if isinstance(slot, tuple):
        return question.edges[question.last][slot]
    on = np.flatnonzero(question.units[question.last] == slot)
    return on, on


def _require_dominance(question: Question, tables: _Tables, programme: Programme) -> None:
    for unit, order in enumerate(tables.order):
        for before, after in order.pairs:
            for group, on in _standing(question, unit):
                own = tables.of_others(before, group, on)
                programme.at_least(own + tables.of_others(after, group, on, -1.0), 0.0)


def _require_bound(
    question: Question,
    shape: Abstraction,
    states: Front,
    tables: _Tables,
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
    """Ready warps per class, cut at the thresholds."""
    counts = [0] * len(question.classes)
    for (group, place), count in state:
        counts[question.units[group][place]] += count
    return tuple(map(min, counts, shape.thresholds))


def least_decrease(question: Question, required: Conditions, nodes: dict[Node, Arrays]) -> int:
    """The smallest decrease of the potential in one cycle, over all requirements; exact."""
    nothing: Arrays = (tuple(map(np.zeros_like, question.units)), np.zeros_like(question.units[question.last]), 0)

    @cache
    def moved(before: Node, after: Node | None, crossing: Crossing) -> int:
        own, then = nodes[before][0], (nodes[after] if after else nothing)[0]
        return min(int((own[g][p] - then[g][q]).min()) for g, (p, q) in _crossing_edges(question, crossing))

    @cache
    def unmoved(before: Node, after: Node | None, unit: int) -> int:
        own, then = nodes[before][0], (nodes[after] if after else nothing)[0]
        return min(int((own[g][on] - then[g][on]).min()) for g, on in _standing(question, unit))

    @cache
    def last(before: Node, after: Node | None, slot: Slot) -> int:
        p, q = _slot_edges(question, slot)
        return int((nodes[before][1][p] - (nodes[after] if after else nothing)[1][q]).min())

    return min(
        nodes[before][2]
        - (nodes[after] if after else nothing)[2]
        + sum(count * moved(before, after, crossing) for crossing, count in others.moved)
        + sum(count * unmoved(before, after, unit) for unit, count in enumerate(others.unmoved) if count)
        + last(before, after, slot)
        for before, after, slot, others in required.requirements
    )


def dominates(question: Question, required: Conditions, nodes: dict[Node, Arrays]) -> bool:
    """Whether the others' tables never grow where any number of warps may stay; exact."""
    return all(
        bool((nodes[before][0][group][on] >= nodes[after][0][group][on]).all())
        for before, after, unit in required.dominances
        for group, on in _standing(question, unit)
    )


def _bound_from(question: Question, shape: Abstraction, state: State, nodes: dict[Node, Arrays], step: int) -> int:
    """The most cycles left from a state in which the last finisher is not finished; 0 if all are."""
    most = 0
    for node in shape.nodes_of(kind_of(question, shape, state)) if state else ():
        others, last, constant = nodes[node]
        total = constant + sum(count * int(others[group][place]) for (group, place), count in state)
        ends = [int(last[p]) - int(others[g][p]) for (g, p), _ in state if g == question.last]
        most = max([most, *((total + end) // step for end in ends)])
    return most


def _potential(question: Question, shape: Abstraction, states: Front, nodes: dict[Node, Arrays]) -> Potential:
    tables = tuple(
        (node, Table(tuple(tuple(g[:-1].tolist()) for g in others), tuple(last[:-1].tolist()), constant))
        for node, (others, last, constant) in nodes.items()
    )
    return Potential(question.last, question.classes, shape.thresholds, states.cycles, tables)
