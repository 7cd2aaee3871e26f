"""Witnesses found by following a potential: a beam search that gives away as little of the bound as it can.

A potential falls by at least one cycle per cycle, and what it falls by beyond that is lost for ever: the makespan of
a schedule is the bound less its losses. So the beam keeps, cycle by cycle, the states with the largest potential.
States in which the warps stand at more than a few different places are left out; few suffice (docs/theory.md).
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from makespan.host.compiled import ints
from makespan.model.certificate import Potential, PotentialNode, PotentialTable, rank
from makespan.model.feature import PROGRAMS
from makespan.model.instance import Instance
from makespan.model.schedule import Schedule, WarpMove
from makespan.proof.engines.certificate import beam_compiled as loops
from makespan.proof.engines.limits import Limits

KNOWS = PROGRAMS

MOST_LEAVES = 4_000
_PAIRS = 7
_ROOM_PER_STATE = 16

Indices = NDArray[np.int32]


@cache
def load() -> None:
    """Load or compile every inner loop: by a search along a potential that says nothing."""
    nothing = PotentialTable(others=((0, 0),), last=(0, 0), constant=0)
    nodes = tuple((PotentialNode(0, (number,)), 0) for number in range(2))
    search(Instance.of("CC", 2), Potential(0, ("C",), (1,), 0, (nothing,), nodes), 2, 1, Limits(inf))


@dataclass(frozen=True, slots=True)
class _PlaceCodes:
    """The numbers of the places of all groups; those of group g begin at `offsets[g]`."""

    instance: Instance
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, instance: Instance) -> "_PlaceCodes":
        return cls(instance, tuple(accumulate((group.program.end for group in instance.groups), initial=0)))

    def code(self, group: int, place: int) -> int:
        """Return the number of a place; -1 for "finished"."""
        return -1 if place == self.instance.groups[group].program.end else self.offsets[group] + place

    def place(self, code: int) -> tuple[int, int]:
        """Group and place of a number."""
        group = bisect_right(self.offsets, code) - 1
        return group, code - self.offsets[group]

    def automaton(self, classes: tuple[str, ...]) -> loops.BeamAutomaton:
        """Return the instance as the inner loops want it; `classes` numbers the unit classes."""
        groups = list(enumerate(self.instance.groups))
        edges = [[self.code(g, s) for s in place.successors] for g, group in groups for place in group.program.places]
        return loops.BeamAutomaton(
            unit=ints([classes.index(place.unit) for _, group in groups for place in group.program.places]),
            sigma=ints([self.instance.machine.capacities[unit] for unit in classes]),
            first=ints(list(accumulate(map(len, edges), initial=0))),
            successors=ints([code for targets in edges for code in targets]),
        )

    def potentials(self, potential: Potential) -> loops.Potentials:
        """Return the certificate as the inner loops want it, its nodes in the order of their ranks."""
        thresholds, tables = potential.thresholds, potential.tables
        nodes = sorted((rank(node, thresholds), table) for node, table in potential.nodes)
        begin = self.offsets[potential.last_group]  # elsewhere the laggard never stands
        last = np.zeros((len(tables), self.offsets[-1]), dtype=np.int64)
        for row, table in enumerate(tables):
            last[row, begin : begin + len(table.last)] = np.array(table.last) + table.constant
        ranks = len(thresholds) * prod(threshold + 1 for threshold in thresholds)
        return loops.Potentials(
            thresholds=ints(list(thresholds)),
            node_first=np.searchsorted([number for number, _ in nodes], np.arange(ranks + 1)),
            table=ints([table for _, table in nodes]),
            others=np.array([np.concatenate([ints(list(group)) for group in table.others]) for table in tables]),
            last=last,
        )

    def start(self, last_group: int) -> tuple[Counter[int], int]:
        """Return the other warps, counted by code, and the laggard; all at the first start of their programs."""
        groups = list(enumerate(self.instance.groups))
        others = Counter({self.code(g, group.program.starts[0]): group.warps for g, group in groups})
        laggard = self.code(last_group, self.instance.groups[last_group].program.starts[0])
        others[laggard] -= 1
        return +others, laggard


def search(instance: Instance, potential: Potential, width: int, per_place: int, limits: Limits) -> Schedule | None:
    """Return the longest schedule that a beam finds; None when it finds none, or is stopped before it has one.

    Args:
        width: states kept in a cycle.
        per_place: how many of them may have their laggard, the warp that finishes last, at the same place.
    """
    codes = _PlaceCodes.of(instance)
    automaton, potentials = codes.automaton(potential.classes), codes.potentials(potential)
    begin = codes.start(potential.last_group)
    pairs = _PAIRS + len(instance.groups)
    now, then = _layer(width * _ROOM_PER_STATE, pairs), _layer(width * _ROOM_PER_STATE, pairs)
    choice = _choice(automaton, pairs)
    _put(now, begin)
    history: list[tuple[Indices, Indices]] = []
    end, alive = None, 1
    with np.errstate(over="ignore"):  # fingerprints wrap around on purpose
        while alive:
            if limits.expired:
                return None
            alive, finished = loops.advance(
                now, alive, width, per_place, MOST_LEAVES, automaton, potentials, choice, then
            )
            if finished:
                end = (len(history), int(then.parent[-1]), int(then.leaf[-1]))
            # parents and leaves are enough to find the way back; the states themselves are made again
            history.append((then.parent[:alive].astype(np.int32), then.leaf[:alive].astype(np.int32)))
            now, then = then, now
    return None if end is None else _schedule(codes, automaton, begin, _leaves(history, end), pairs)


def _leaves(history: list[tuple[Indices, Indices]], end: tuple[int, int, int]) -> list[int]:
    """Return the leaf taken in every cycle up to `end`, which is a cycle, the state before it, and its leaf."""
    cycle, state, leaf = end
    leaves = [leaf]
    for parents, taken in reversed(history[:cycle]):
        leaves.append(int(taken[state]))
        state = int(parents[state])
    return leaves[::-1]


def _schedule(
    codes: _PlaceCodes, automaton: loops.BeamAutomaton, begin: tuple[Counter[int], int], leaves: list[int], pairs: int
) -> Schedule:
    starts: list[dict[int, int]] = [{} for _ in codes.instance.groups]
    for code, count in [*begin[0].items(), (begin[1], 1)]:
        group, place = codes.place(code)
        starts[group][place] = starts[group].get(place, 0) + count
    layer, after, choice = _layer(0, pairs), _layer(0, pairs), _choice(automaton, pairs)
    _put(layer, begin)
    cycles = []
    for leaf in leaves:
        number = loops.open_choice(layer, 0, automaton, choice)
        for attempt in range(leaf + 1):  # leaves are numbered as they are enumerated
            loops.next_leaf(choice, number, attempt == 0)
        loops.apply(layer, 0, choice, number, after, 0)
        cycles.append(_moves(codes, layer, choice, number))
        layer, after = after, layer
    return Schedule.from_moves(codes.instance, starts, cycles)


def _moves(codes: _PlaceCodes, layer: loops.Layer, choice: loops.BeamChoice, number: int) -> list[WarpMove]:
    moves = []
    size, laggard = int(layer.sizes[0]), int(layer.laggards[0])
    for option in np.flatnonzero(choice.take[:number]).tolist():
        pair, target = int(choice.pair[option]), int(choice.target[option])
        group, place = codes.place(int(layer.codes[0, pair]) if pair < size else laggard)
        successor = codes.instance.groups[group].program.end if target < 0 else codes.place(target)[1]
        moves.append(WarpMove(group, place, successor, int(choice.take[option])))
    return moves


def _put(layer: loops.Layer, begin: tuple[Counter[int], int]) -> None:
    others = sorted(begin[0].items())
    layer.codes[0, : len(others)] = [code for code, _ in others]
    layer.counts[0, : len(others)] = [count for _, count in others]
    layer.sizes[0], layer.laggards[0] = len(others), begin[1]


def _layer(room: int, pairs: int) -> loops.Layer:
    states, table = room + 1, (room + 1, pairs)
    return loops.Layer(
        codes=np.zeros(table, dtype=np.int64),
        counts=np.zeros(table, dtype=np.int64),
        sizes=np.zeros(states, dtype=np.int64),
        laggards=np.zeros(states, dtype=np.int64),
        parent=np.zeros(states, dtype=np.int64),
        leaf=np.zeros(states, dtype=np.int64),
        score=np.zeros(states, dtype=np.int64),
        mark=np.zeros(states, dtype=np.uint64),
    )


def _choice(automaton: loops.BeamAutomaton, pairs: int) -> loops.BeamChoice:
    most = int(np.diff(automaton.first).max()) * (pairs + 1)
    return loops.BeamChoice(
        pair=np.zeros(most, dtype=np.int64),
        unit=np.zeros(most, dtype=np.int64),
        target=np.zeros(most, dtype=np.int64),
        available=np.zeros(pairs + 1, dtype=np.int64),
        quota=np.zeros(len(automaton.sigma), dtype=np.int64),
        take=np.zeros(most, dtype=np.int64),
    )
