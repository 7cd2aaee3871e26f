"""The numbers of a potential: as variables of a linear programme, and as integers that keep every order exactly."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from makespan.bounds.abstraction import DELAYED, END, Abstraction, Crossing
from makespan.bounds.conditions import Conditions, Question
from makespan.bounds.linear import Programme, Term
from makespan.bounds.repetition import Interpolation
from makespan.certificate import Node

SCALE = 1 << 20
"""Potentials are stored in units of 1/SCALE cycle."""

Mode = Hashable
"""Nodes of the same mode share one table: fewer modes make a smaller programme and a looser bound."""


class Arrays(NamedTuple):
    """One table: per group and place, and per place of the last finisher, each with one more entry for "finished".

    Args:
        ports: per timed class, for ports that will be held for 1, 2, ... more cycles.
    """

    others: tuple[np.ndarray, ...]
    last: np.ndarray
    constant: int
    ports: tuple[np.ndarray, ...] = ()


class Tables:
    """The variables of every mode, shared where the conditions force equality, and at delays on request.

    Args:
        one_delay: whether all modes have the same numbers for the others at delays.
    """

    def __init__(
        self,
        question: Question,
        shape: Abstraction,
        required: Conditions,
        programme: Programme,
        mode: Callable[[Node], Mode],
        *,
        one_delay: bool,
    ) -> None:
        self.question = question
        self.modes = list(dict.fromkeys(mode(node) for kind in shape.kinds for node in shape.nodes_of(kind)))
        ordered = {(mode(d.before), mode(d.after), d.unit) for d in required.dominances}
        self.order = [
            _Order(self.modes, {(before, after) for before, after, on in ordered if on == unit and before != after})
            for unit in range(len(question.classes))
        ]
        self._at_delays = {one: self.modes[0] if one_delay else one for one in self.modes}
        self.descents = sorted(
            {self._descent(mode(d.before), d.after and mode(d.after), d.crossing) for d in required.descents},
            key=lambda descent: (self.modes.index(descent[0]), self.modes.index(descent[1]), descent[2]),
        )
        self.others: dict[Mode, tuple[np.ndarray, ...]] = {}
        for one in self.modes:
            self.others[one] = tuple(self._shared(one, group, programme) for group in range(len(question.units)))
        self.last = {one: self._anchored(question.last, programme) for one in self.modes}
        self.constant = {one: programme.new(1) for one in self.modes}
        self.ports = {one: tuple(programme.new(interval - 1) for _, interval in question.timed) for one in self.modes}

    def _descent(self, before: Mode, after: Mode | None, crossing: Crossing) -> tuple[Mode, Mode, Crossing]:
        """The same between modes that have their own numbers for where the crossing begins and ends."""
        if after is None or crossing[1] == END:  # where it ends is worth nothing in any mode
            return self._at_delays[before], self.modes[0], crossing
        return self._at_delays[before], self._at_delays[after] if crossing[1] == DELAYED else after, crossing

    def _shared(self, mode: Mode, group: int, programme: Programme) -> np.ndarray:
        """Own variables on the classes that this mode represents, its representative's elsewhere."""
        unit = self.question.units[group]
        columns = np.full(len(unit), -1)
        representatives = {number: order.representative[mode] for number, order in enumerate(self.order)}
        for number, representative in {**representatives, DELAYED: self._at_delays[mode]}.items():
            known = self.others.get(representative)
            own = (unit == number) & self.question.interpolations[group].is_anchor
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
        """The solution in integers, with every dominance and descent restored that rounding may have broken."""
        scaled = np.append(solution * SCALE, 0.0)
        merged = self.question.interpolations
        others = {
            mode: tuple(_whole(scaled, columns, merged[group]) for group, columns in enumerate(groups))
            for mode, groups in self.others.items()
        }
        last = {mode: _whole(scaled, columns, merged[self.question.last]) for mode, columns in self.last.items()}
        for number, order in enumerate(self.order):
            for equal, below in order.repairs:
                for group, units in enumerate(self.question.units):
                    chosen = units == number
                    highest = np.max([others[mode][group][chosen] for mode in (*equal, *below)], axis=0)
                    for mode in equal:
                        others[mode][group][chosen] = highest
        self._repair_delays(others)
        ports = {mode: tuple(np.rint(scaled[own]).astype(np.int64) for own in self.ports[mode]) for mode in others}
        return {
            mode: Arrays(others[mode], last[mode], round(scaled[self.constant[mode][0]]), ports[mode])
            for mode in others
        }

    def _repair_delays(self, others: dict[Mode, tuple[np.ndarray, ...]]) -> None:
        """Raise every delay, from the last one back, to what may follow it."""
        number = {mode: row for row, mode in enumerate(self.modes)}
        owner = [number[self._at_delays[mode]] for mode in self.modes]
        below = {after: np.zeros((len(self.modes),) * 2, dtype=bool) for after in range(DELAYED, len(self.order))}
        for before, goal, (_, after) in self.descents:
            below[after][number[before], number[goal]] = True
        for group, units in enumerate(self.question.units):
            delays = np.flatnonzero(units == DELAYED)
            heights = np.array([others[mode][group] for mode in self.modes])
            successors = [self.question.instance.groups[group].program.places[place].successors for place in delays]
            for place, targets in zip(delays[::-1], successors[::-1], strict=True):
                own = heights[:, place, np.newaxis]
                for after in targets:
                    highest = np.where(below[int(units[after])], heights[:, after], own).max(axis=1)
                    own = np.maximum(own, highest[:, np.newaxis])
                heights[:, place] = own[owner, 0]
            for mode in self.modes:
                others[mode][group][delays] = heights[number[mode]][delays]


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
        rank = {mode: number for number, mode in enumerate(modes)}
        # each part after the parts that it dominates; sorted, for a set of nodes is in another order in every process
        parts = [sorted(part, key=rank.__getitem__) for part in nx.strongly_connected_components(graph)]
        self.representative = {mode: part[0] for part in parts for mode in part}
        below = [dict.fromkeys(after for mode in part for after in graph[mode] if after not in part) for part in parts]
        self.repairs = [(part, tuple(own)) for part, own in zip(parts, below, strict=True) if own]
        pairs = ((self.representative[before], self.representative[after]) for before, after in graph.edges)
        self.pairs = tuple(dict.fromkeys((above, under) for above, under in pairs if above != under))
