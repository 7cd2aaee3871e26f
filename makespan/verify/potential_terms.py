"""The smallest terms by which a potential falls when one warp moves or stays (see `potential` for the words)."""

from collections.abc import Iterator, Sequence
from operator import sub

from makespan.model.certificate import Potential, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.program import Program
from makespan.verify.refusal import ProofSteps

MOST_REMEMBERED = 20_000_000
FINISH, STAY, DELAYED = -1, -2, -3
ClassMove = tuple[int, int]
_Ends = dict[ClassMove, list[tuple[int, int]]]


class Terms:
    """The smallest terms of warps that move or stay: alpha and theta of docs/theory.md for others, beta for z.

    Attributes:
        number: by name the number of every class.
        others: by class the moves that others can make which begin in it, without `STAY`.
        last: the same for z.
    """

    def __init__(
        self, instance: Instance, potential: Potential, tables: Sequence[PotentialTable], differences: ProofSteps
    ) -> None:
        self.number = {DELAY: DELAYED, **{name: x for x, name in enumerate(potential.classes)}}
        ends: tuple[_Ends, _Ends] = {}, {}  # indices into all rows of `others`, joined, and into `last`
        first = 0
        for group, (program, warps) in enumerate((g.program, g.warps) for g in instance.groups):
            holds_z = group == potential.last_group
            for move, p, q in self._moves(program):
                if holds_z:
                    ends[1].setdefault(move, []).append((p, q))
                if warps > holds_z:  # the group of z has others if it has two warps
                    ends[0].setdefault(move, []).append((first + p, first + q))
            first += program.end + 1
        self.others, self.last = map(self._by_class, ends)
        self._ends, self._tables, self._work = ends, tables, differences
        self._size = sum(len(edges) for moves in ends for edges in moves.values())
        self._columns: dict[tuple[int, int], list[dict[ClassMove, list[int]]]] = {}
        self._found: dict[tuple[int, int], list[dict[ClassMove, int]]] = {}

    def _moves(self, program: Program) -> Iterator[tuple[ClassMove, int, int]]:
        """Yield every move of a warp with the places between which it is made."""
        classes = [*(self.number[place.unit] for place in program.places), FINISH]
        for p, (x, place) in enumerate(zip(classes, program.places, strict=False)):
            for q in place.successors:
                yield (x, classes[q]), p, q
            if x != DELAYED:
                yield (x, STAY), p, p

    def _by_class(self, moves: _Ends) -> dict[int, list[ClassMove]]:
        return {x: [move for move in moves if move[0] == x and move[1] != STAY] for x in self.number.values()}

    def least(self, before: int, after: int) -> list[dict[ClassMove, int]]:
        """Return by move the smallest terms of others, and those of z, from one table to another."""
        if (before, after) not in self._found:
            self._work.spend(self._size)
            sides = zip(self._column(before, 0), self._column(after, 1), strict=True)
            self._found[before, after] = [
                {move: min(map(sub, left[move], right[move])) for move in left} for left, right in sides
            ]
        return self._found[before, after]

    def _column(self, number: int, side: int) -> list[dict[ClassMove, list[int]]]:
        """Return by move the coefficients at all beginnings (`side` 0) or ends (1) of its edges, 0 at the end."""
        if (number, side) not in self._columns:
            if len(self._columns) * self._size > MOST_REMEMBERED:
                self._columns.clear()
            table = self._tables[number]
            rows = [c for row in table.others for c in (*row, 0)], (*table.last, 0)
            self._columns[number, side] = [
                {move: [row[edge[side]] for edge in edges] for move, edges in moves.items()}
                for row, moves in zip(rows, self._ends, strict=True)
            ]
        return self._columns[number, side]
