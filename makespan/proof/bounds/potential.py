"""Theorem H: a linear programme that synthesises potential certificates, for strings and automata.

The size of the programme does not depend on the number of warps and is linear in the places (docs/theory.md). What
the solver returns is rounded to integers, repaired where an inequality must hold exactly, and then measured in
integers: a float never enters a bound.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from makespan.model.certificate import Potential, PotentialNode, PotentialTable
from makespan.proof.bounds.abstraction import Abstraction, AbstractSituation, LastSlot, PortCounts
from makespan.proof.bounds.conditions import (
    Conditions,
    CrossingEdges,
    Descent,
    Dominance,
    Mode,
    Modes,
    PlacePairs,
    ProofQuestion,
    Stopped,
    conditions,
)
from makespan.proof.bounds.first_cycles import Front, PlaceCounts
from makespan.proof.bounds.linear import LinearTerm, Programme
from makespan.proof.bounds.tables import Arrays, Tables

LARGEST = float(1 << 30)
"""Potentials above this number of cycles come from a solver in trouble; below it, all sums fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class PotentialProof:
    """`potential` proves that the warps take at most `upper` cycles if its group holds the last finisher."""

    upper: int
    potential: Potential


def synthesise(
    question: ProofQuestion,
    shape: Abstraction,
    states: Front,
    seconds: float,
    mode: Modes = lambda node: Mode(node, node),
    stop: Callable[[], bool] = lambda: False,
    *,
    one_delay: bool = True,
) -> PotentialProof | None:
    """Return the least bound that a potential of this shape proves; None when the time does not suffice, or at `stop`.

    With `one_delay` all tables have the same numbers for delays of others: a smaller programme, a looser bound.
    """
    programme = Programme()
    modes = {node: mode(node) for situation in shape.situations for node in shape.nodes_of(situation)}
    try:
        required = conditions(shape, modes.__getitem__, stop)
        tables = Tables(question, modes.values(), required, programme, one_delay=one_delay)
        _require_decrease(required, tables, _Minima(question, tables, programme), programme, stop)
    except Stopped:
        return None
    _require_no_rise(question, tables, programme)
    bound = programme.new(1)
    _require_bound(question, shape, states, tables, programme, modes, bound)
    solution = programme.minimise(int(bound[0]), seconds, stop)
    if solution is None or not (np.abs(solution) < LARGEST).all():  # also refuses what is not a number
        return None
    # from here on whole numbers only: rounded, repaired, and measured (theory.md, 4.8), so no float enters the bound
    arrays = tables.values(solution)
    step = least_decrease(question, required, arrays)
    if step <= 0 or not dominates(question, required, arrays):
        return None
    places = ((state, *one) for state in states.states for one in last_finishers(question, shape, state))
    heights = (
        _height(question, arrays[modes[node]], state, place)
        for state, place, situation in places
        for node in shape.nodes_of(situation)
    )
    # lemma 1: from a state of potential R at most floor(R / d) cycles remain
    upper = max((height // step for height in heights), default=0)
    return PotentialProof(states.cycles + max(0, upper), _potential(question, shape, states, modes, arrays))


class _Minima:
    """Variables for the smallest difference of two tables over places, each made when it is first asked for."""

    def __init__(self, question: ProofQuestion, tables: Tables, programme: Programme) -> None:
        self.question, self.tables, self.programme = question, tables, programme
        self._known: dict[Hashable, np.ndarray] = {}

    def others(self, before: Mode, after: Mode | None, slot: LastSlot) -> np.ndarray:
        """Return the least that one of the others gives up when it makes this crossing, or stays in this class."""
        ends = before.others, after and after.others
        edges = _crossing_edges(self.question, slot, self.question.enough)
        return self._least(
            ("others", *ends, slot), (_fall_of_others(self.tables, *ends, group, *e) for group, e in edges)
        )

    def kept(self, before: Mode, after: Mode | None, number: int) -> np.ndarray:
        """Return the least that a port of a timed class gives up that will be held for longer."""
        longer: list[LinearTerm] = [(self.tables.ports[before.others][number][1:], 1.0)]
        if after is not None:
            longer.append((self.tables.ports[after.others][number][:-1], -1.0))
        return self._least(("kept", before.others, after and after.others, number), [longer])

    def last(self, before: Mode, after: Mode | None, slot: LastSlot) -> np.ndarray:
        """Return the least that the last finisher gives up in this slot."""
        p, q = self.question.enough[self.question.last][slot]
        terms = self.tables.of_last(before.last, p) + self.tables.of_last(after and after.last, q, -1.0)
        return self._least(("last", before.last, after and after.last, slot), [terms])

    def _least(self, key: Hashable, differences: Iterable[list[LinearTerm]]) -> np.ndarray:
        if key not in self._known:
            variable = self._known[key] = self.programme.new(1)
            for terms in differences:
                self.programme.at_least([*terms, (variable, -1.0)], 0.0)
        return self._known[key]


def _fall_of_others(
    tables: Tables, before: Hashable, after: Hashable | None, group: int, p: np.ndarray, q: np.ndarray
) -> list[LinearTerm]:
    return tables.of_others(before, group, p) + tables.of_others(after, group, q, -1.0)


def _require_decrease(
    required: Conditions, tables: Tables, minima: _Minima, programme: Programme, stop: Callable[[], bool]
) -> None:
    """Add the rows (D), one for each requirement; raise `Stopped` when `stop` says so."""
    for before, after, slot, others in required.requirements:
        if stop():  # there may be many thousands
            raise Stopped
        terms: list[LinearTerm] = [
            (minima.others(before, after, crossing), float(count)) for crossing, count in others.moved
        ]
        terms += [(minima.others(before, after, unit), float(n)) for unit, n in enumerate(others.unmoved) if n]
        terms += _port_terms(tables, minima, before, after, others.ports)
        # while z waits on with one table, it gives up nothing
        if after is None or before.last != after.last or isinstance(slot, tuple):
            terms.append((minima.last(before, after, slot), 1.0))
        programme.at_least(terms, 1.0)


def _port_terms(
    tables: Tables, minima: _Minima, before: Mode, after: Mode | None, ports: tuple[PortCounts, ...]
) -> list[LinearTerm]:
    """Return what the held ports give up in a cycle, and what those that are taken bring."""
    terms: list[LinearTerm] = []
    for number, (released, kept, taken) in enumerate(ports):
        if released:
            terms.append((tables.ports[before.others][number][:1], float(released)))
        if kept:
            terms.append((minima.kept(before, after, number), float(kept)))
        if taken and after is not None:
            terms.append((tables.ports[after.others][number][-1:], -float(taken)))
    return terms


def _crossing_edges(
    question: ProofQuestion, slot: LastSlot, edges: tuple[CrossingEdges, ...]
) -> list[tuple[int, PlacePairs]]:
    """Return the edges of a crossing, or of staying, in every group that has other warps."""
    return [(group, own[slot]) for group, own in enumerate(edges) if question.others[group] and slot in own]


def _require_no_rise(question: ProofQuestion, tables: Tables, programme: Programme) -> None:
    """Add the rows (O) and (P): where any number of others may stay, or leave delays, none may raise the potential."""
    stays: list[Dominance | Descent] = [
        Dominance(*pair, unit) for unit, order in enumerate(tables.order) for pair in order.pairs
    ]
    for before, after, slot in [*stays, *tables.descents]:
        for group, edges in _crossing_edges(question, slot, question.enough):
            programme.at_least(_fall_of_others(tables, before, after, group, *edges), 0.0)


def _require_bound(
    question: ProofQuestion,
    shape: Abstraction,
    states: Front,
    tables: Tables,
    programme: Programme,
    modes: Mapping[PotentialNode, Mode],
    bound: np.ndarray,
) -> None:
    """The bound covers every front state, every place of the last finisher and every node that it may then be."""
    programme.at_least([(bound, 1.0)], float(states.cycles))  # some schedule may end at the front
    for state in states.states:
        for place, situation in last_finishers(question, shape, state):
            for key, last in dict.fromkeys(modes[node] for node in shape.nodes_of(situation)):
                terms = [t for (g, p), n in state for t in tables.of_others(key, g, np.array([p]), -float(n))]
                at = np.array([place])
                # the state counts z among the others, where its place is taken out again
                terms += tables.of_others(key, question.last, at) + tables.of_last(last, at, -1.0)
                programme.at_least([*terms, (bound, 1.0)], float(states.cycles))


def last_finishers(
    question: ProofQuestion, shape: Abstraction, state: PlaceCounts
) -> Iterator[tuple[int, AbstractSituation]]:
    """Yield where the last finisher may stand in a state, and its situation then; all timed ports are free."""
    counts = [0] * len(question.classes)
    for (group, place), count in state:
        if (unit := int(question.units[group][place])) >= 0:
            counts[unit] += count
    free = tuple(shape.sigma[unit] for unit, _ in shape.timed)
    for (group, place), _ in state:
        if group == question.last:
            last = int(question.units[group][place])
            others = (count - (unit == last) for unit, count in enumerate(counts))
            yield place, AbstractSituation(last, (*map(min, others, shape.thresholds), *free))


def _height(question: ProofQuestion, table: Arrays, state: PlaceCounts, place: int) -> int:
    """Return the potential of a state in which the last finisher stands at `place`, and no port is held."""
    others = sum(count * int(table.others[group][at]) for (group, at), count in state)
    return others - int(table.others[question.last][place]) + int(table.last[place])


def least_decrease(question: ProofQuestion, required: Conditions, tables: Mapping[Mode, Arrays]) -> int:
    """Return the smallest decrease of the potential in one cycle, over all requirements; exact."""
    nothing = _nothing(question)

    # a requirement names tables and counts only; the least over all places that fit it, warp by warp, bounds any cycle

    @cache
    def others_least(before: Mode, after: Mode | None, slot: LastSlot) -> int:
        own, then = tables[before].others, (tables[after] if after else nothing).others
        return min(int((own[g][p] - then[g][q]).min()) for g, (p, q) in _crossing_edges(question, slot, question.edges))

    @cache
    def last(before: Mode, after: Mode | None, slot: LastSlot) -> int:
        p, q = question.edges[question.last][slot]
        return int((tables[before].last[p] - (tables[after] if after else nothing).last[q]).min())

    def ports(before: Mode, after: Mode | None, counts: tuple[PortCounts, ...]) -> int:
        own, then = tables[before].ports, (tables[after] if after else nothing).ports
        return sum(
            released * int(was[0])
            + (kept * int((was[1:] - becomes[:-1]).min()) if kept else 0)
            - taken * int(becomes[-1])
            for (released, kept, taken), was, becomes in zip(counts, own, then, strict=True)
        )

    return min(
        sum(count * others_least(before, after, crossing) for crossing, count in others.moved)
        + sum(count * others_least(before, after, unit) for unit, count in enumerate(others.unmoved) if count)
        + ports(before, after, others.ports)
        + last(before, after, slot)
        for before, after, slot, others in required.requirements
    )


def _nothing(question: ProofQuestion) -> Arrays:
    others = tuple(map(np.zeros_like, question.units))
    return Arrays(others, others[question.last], tuple(np.zeros(i - 1, dtype=np.int64) for _, i in question.timed))


def dominates(question: ProofQuestion, required: Conditions, tables: Mapping[Mode, Arrays]) -> bool:
    """Return whether the others' tables never grow where any number of warps may stay, or leave delays; exact."""
    others = {mode.others: table.others for mode, table in tables.items()} | {None: _nothing(question).others}

    def falls(before: Hashable, after: Hashable | None, slot: LastSlot) -> bool:
        own, then = others[before], others[after]
        edges = _crossing_edges(question, slot, question.edges)
        return all(bool((own[group][p] >= then[group][q]).all()) for group, (p, q) in edges)

    return all(falls(*one) for one in required.dominances) and all(falls(*one) for one in required.descents)


def _potential(
    question: ProofQuestion,
    shape: Abstraction,
    states: Front,
    modes: Mapping[PotentialNode, Mode],
    arrays: Mapping[Mode, Arrays],
) -> Potential:
    tables = tuple(
        PotentialTable(
            tuple(tuple(own[:-1].tolist()) for own in table.others),
            tuple(table.last[:-1].tolist()),
            0,  # z is unfinished before every cycle, so a constant would only repeat what z's place can say
            tuple(tuple(own.tolist()) for own in table.ports),
        )
        for table in arrays.values()
    )
    number = {mode: row for row, mode in enumerate(arrays)}
    nodes = tuple((node, number[mode]) for node, mode in modes.items())
    return Potential(question.last, question.classes, shape.thresholds, states.cycles, tables, nodes)
