"""The numbers of a potential: as variables of a linear programme, and as integers that keep every order exactly."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from makespan.proof.bounds.abstraction import DELAYED, END, Crossing
from makespan.proof.bounds.conditions import Conditions, Descent, Mode, ProofQuestion
from makespan.proof.bounds.linear import LinearTerm, Programme
from makespan.proof.bounds.repetition import Interpolation

SCALE = 1 << 20
"""Potentials are stored in units of 1/SCALE cycle."""


class Arrays(NamedTuple):
    """One table: per group and place, and per place of the last finisher, each with one more entry for "finished".

    Args:
        ports: per timed class, for ports that will be held for 1, 2, ... more cycles.
    """

    others: tuple[np.ndarray, ...]
    last: np.ndarray
    ports: tuple[np.ndarray, ...] = ()


class Tables:
    """The variables of every mode, shared where the conditions force equality, and at delays on request.

    Args:
        one_delay: whether all modes have the same numbers for the others at delays.
    """

    def __init__(
        self,
        question: ProofQuestion,
        modes: Iterable[Mode],
        required: Conditions,
        programme: Programme,
        *,
        one_delay: bool,
    ) -> None:
        self.question = question
        self.modes = list(dict.fromkeys(modes))
        self.keys = list(dict.fromkeys(mode.others for mode in self.modes))
        self.order = [
            _DominanceOrder(self.keys, [d[:2] for d in required.dominances if d.unit == unit])
            for unit in range(len(question.classes))
        ]
        self._at_delays = {key: self.keys[0] if one_delay else key for key in self.keys}
        self.descents = list(dict.fromkeys(self._descent(*descent) for descent in required.descents))
        self.others: dict[Hashable, tuple[np.ndarray, ...]] = {}
        for key in self.keys:
            self.others[key] = tuple(self._shared(key, group, programme) for group in range(len(question.units)))
        self.last = {mode.last: np.array([]) for mode in self.modes}
        self.last = {key: self._anchored(question.last, programme) for key in self.last}
        self.ports = {key: tuple(programme.new(interval - 1) for _, interval in question.timed) for key in self.keys}

    def _descent(self, before: Hashable, after: Hashable | None, crossing: Crossing) -> Descent:
        """Return the same between modes that have their own numbers for where the crossing begins and ends."""
        if after is None or crossing[1] == END:  # where it ends is worth nothing in any mode
            return Descent(self._at_delays[before], self.keys[0], crossing)
        return Descent(self._at_delays[before], self._at_delays[after] if crossing[1] == DELAYED else after, crossing)

    def _shared(self, key: Hashable, group: int, programme: Programme) -> np.ndarray:
        """Own variables on the classes that this key represents, its representative's elsewhere."""
        unit = self.question.units[group]
        columns = np.full(len(unit), -1)
        representatives = {number: order.representative[key] for number, order in enumerate(self.order)}
        for number, representative in {**representatives, DELAYED: self._at_delays[key]}.items():
            known = self.others.get(representative)
            own = (unit == number) & self.question.interpolations[group].is_anchor
            columns[own] = programme.new(int(own.sum())) if known is None else known[group][own]
        return columns

    def of_others(self, key: Hashable | None, group: int, places: np.ndarray, sign: float = 1.0) -> list[LinearTerm]:
        """Return the others' table at these places as terms of a row; nothing for the end of all warps."""
        return [] if key is None else self._interpolated(self.others[key][group], group, places, sign)

    def of_last(self, key: Hashable | None, places: np.ndarray, sign: float = 1.0) -> list[LinearTerm]:
        """Return the last finisher's table likewise."""
        return [] if key is None else self._interpolated(self.last[key], self.question.last, places, sign)

    def _interpolated(self, columns: np.ndarray, group: int, places: np.ndarray, sign: float) -> list[LinearTerm]:
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
        """Return the solution in integers, with every dominance and descent restored that rounding may have broken."""
        scaled = np.append(solution * SCALE, 0.0)
        merged = self.question.interpolations
        others = {
            key: tuple(_whole(scaled, columns, merged[group]) for group, columns in enumerate(groups))
            for key, groups in self.others.items()
        }
        last = {key: _whole(scaled, columns, merged[self.question.last]) for key, columns in self.last.items()}
        for number, order in enumerate(self.order):
            for equal, below in order.repairs:
                for group, units in enumerate(self.question.units):
                    chosen = units == number
                    highest = np.max([others[key][group][chosen] for key in (*equal, *below)], axis=0)
                    for key in equal:
                        others[key][group][chosen] = highest
        self._repair_delays(others)
        ports = {key: tuple(np.rint(scaled[own]).astype(np.int64) for own in self.ports[key]) for key in others}
        # the last finisher is one warp, of which (D) knows everything: its table needs no repair
        return {mode: Arrays(others[mode.others], last[mode.last], ports[mode.others]) for mode in self.modes}

    def _repair_delays(self, others: dict[Hashable, tuple[np.ndarray, ...]]) -> None:
        """Raise every delay, from the last one back, to what may follow it."""
        number = {key: row for row, key in enumerate(self.keys)}
        owner = [number[self._at_delays[key]] for key in self.keys]
        afters = (END, DELAYED, *range(len(self.order)))
        below = {after: np.zeros((len(self.keys),) * 2, dtype=bool) for after in afters}
        for before, goal, (_, after) in self.descents:
            below[after][number[before], number[goal]] = True
        for group, units in enumerate(self.question.units):
            delays = np.flatnonzero(units == DELAYED)
            heights = np.array([others[key][group] for key in self.keys])
            successors = [self.question.instance.groups[group].program.places[place].successors for place in delays]
            for place, targets in zip(delays[::-1], successors[::-1], strict=True):
                own = heights[:, place, np.newaxis]  # from the last delay back, so what follows is final
                for after in targets:
                    highest = np.where(below[int(units[after])], heights[:, after], own).max(axis=1)
                    own = np.maximum(own, highest[:, np.newaxis])
                heights[:, place] = own[owner, 0]
            for key in self.keys:
                others[key][group][delays] = heights[number[key]][delays]


def _whole(scaled: np.ndarray, columns: np.ndarray, merged: Interpolation) -> np.ndarray:
    left, right = scaled[columns[merged.left]], scaled[columns[merged.right]]
    table: np.ndarray = np.rint(left + merged.weight * (right - left)).astype(np.int64)
    return table


class _DominanceOrder:
    """The order of tables on the places of one class: which must be at least which other, by (O)."""

    def __init__(self, keys: list[Hashable], above: list[tuple[Hashable, Hashable]]) -> None:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(keys)
        graph.add_edges_from(above)  # an arc from u to v for each condition a_u >= a_v (theory.md, 4.8)
        rank = {key: number for number, key in enumerate(keys)}
        # in a circle of "at least" all are equal, so one of them stands for the part;
        # each part after the parts that it dominates; sorted, for a set of keys is in another order in every process
        parts = [sorted(part, key=rank.__getitem__) for part in nx.strongly_connected_components(graph)]
        self.representative = {key: part[0] for part in parts for key in part}
        below = [dict.fromkeys(after for key in part for after in graph[key] if after not in part) for part in parts]
        self.repairs = [(part, tuple(own)) for part, own in zip(parts, below, strict=True) if own]
        pairs = ((self.representative[before], self.representative[after]) for before, after in graph.edges)
        self.pairs = tuple(dict.fromkeys((above, under) for above, under in pairs if above != under))
