"""The smallest terms by which a potential falls when one warp moves or stays (see `potential` for the words)."""

from operator import sub

from makespan.certificate import Node, Potential, Table
from makespan.instance import Instance
from makespan.machine import DELAY
from makespan.verify.refusal import Work

MOST_REMEMBERED = 20_000_000
FINISH, STAY, DELAYED = -1, -2, -3
Move = tuple[int, int]


class Terms:
    """The smallest terms of movers and of warps that stay, by move and pair of tables."""

    def __init__(self, instance: Instance, potential: Potential, differences: Work) -> None:
        number = {DELAY: DELAYED, **{name: x for x, name in enumerate(potential.classes)}}
        self._others: dict[Move, list[tuple[int, int]]] = {}  # indices into all rows of `others`, joined
        self._last: dict[Move, list[tuple[int, int]]] = {}  # indices into `last`
        first = 0
        for group, (program, warps) in enumerate((g.program, g.warps) for g in instance.groups):
            holds_z = group == potential.last_group
            for p, (unit, successors) in enumerate(program.places):
                x = number[unit]
                steps = [((x, FINISH if q == program.end else number[program.places[q].unit]), q) for q in successors]
                for move, q in (*steps, ((x, STAY), p)) if x != DELAYED else steps:
                    if holds_z:
                        self._last.setdefault(move, []).append((p, q))
                    if warps > holds_z:
                        self._others.setdefault(move, []).append((first + p, first + q))
            first += program.end + 1
        moves = sorted({*self._others, *self._last})
        self.next = [[y for before, y in moves if before == x and y != STAY] for x in range(len(potential.classes))]
        self.delayed = {move for move in moves if move[0] == DELAYED}
        self._work = differences
        self._size = sum(map(len, (*self._others.values(), *self._last.values())))
        self._tables: dict[tuple[object, object], int] = {}  # numbers of those that differ in more than a constant
        self._numbers: dict[Node, int] = {}
        self._columns: dict[tuple[int, int], dict[tuple[bool, Move], list[int]]] = {}
        self._found: dict[tuple[int, int], tuple[dict[Move, int], dict[Move, int]]] = {}

    def least(self, u: Node, before: Table, v: Node, after: Table) -> tuple[dict[Move, int], dict[Move, int]]:
        """Smallest terms of any other warp and of z, from node u to v."""
        pair = self._number(u, before), self._number(v, after)
        if pair not in self._found:
            self._work.spend(self._size)
            left, right = self._column(pair[0], before, 0), self._column(pair[1], after, 1)
            least = {move: min(map(sub, left[move], right[move])) for move in left}
            self._found[pair] = (
                {move: least[False, move] for move in self._others},
                {move: least[True, move] for move in self._last},
            )
        return self._found[pair]

    def _number(self, node: Node, table: Table) -> int:
        if node not in self._numbers:
            self._numbers[node] = self._tables.setdefault((table.others, table.last), len(self._tables))
        return self._numbers[node]

    def _column(self, number: int, table: Table, side: int) -> dict[tuple[bool, Move], list[int]]:
        """The coefficients at all beginnings (`side` 0) or ends (1) of every move; 0 for a finished warp."""
        if (number, side) not in self._columns:
            if len(self._columns) * self._size > MOST_REMEMBERED:
                self._columns.clear()
            others, last = [c for row in table.others for c in (*row, 0)], (*table.last, 0)
            self._columns[number, side] = {
                **{(False, move): [others[ends[side]] for ends in edges] for move, edges in self._others.items()},
                **{(True, move): [last[ends[side]] for ends in edges] for move, edges in self._last.items()},
            }
        return self._columns[number, side]
