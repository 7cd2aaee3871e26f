"""An order of the FFMAs of an outer product in which no issue cycle of a pattern has a bank conflict."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from makespan.errors import InputError
from makespan.estimators.dual_issue.arbiter import Pattern
from makespan.estimators.dual_issue.listing import Listing, blocked, line_of
from makespan.estimators.dual_issue.pattern_ranking import Codes, layout
from makespan.estimators.dual_issue.program import Instruction, Opcode
from makespan.estimators.dual_issue.registers import ZERO, Banks

MAX_SIDE = 16
MAX_TRIED = 1_000_000
"""Issue cycles that a search tries before it gives up."""
_RESULT_BANKS = {(2, 1): 3, (2, 0): 1, (3, 0): 2, (3, 1): 0}
"""Bank of C[i][j] by those of A[i] and B[j]: neither of them, and a different one for each combination.

Source: the registers of figure 7b of Zhang et al., PPoPP 2017.
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """C[i][j] += A[i] * B[j] in registers.

    Args:
        rows: the registers of A.
        columns: the registers of B.
        results: the registers of C, row by row.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (1 <= len(self.rows) <= MAX_SIDE and 1 <= len(self.columns) <= MAX_SIDE):
            raise InputError(f"a tile is 1..{MAX_SIDE} by 1..{MAX_SIDE}, not {len(self.rows)}x{len(self.columns)}")
        if len(self.results) != len(self.rows) * len(self.columns):
            raise InputError(
                f"a tile of {len(self.rows)}x{len(self.columns)} has {len(self.rows) * len(self.columns)} results,"
                f" not {len(self.results)}"
            )
        named = (*self.rows, *self.columns, *self.results)
        if len(set(named)) < len(named) or not all(0 <= register < ZERO for register in named):
            raise InputError(f"the registers of a tile are different ones of R0..R{ZERO - 1}")

    @classmethod
    def of(cls, rows: int, columns: int, banks: Banks) -> "Tile":
        """A tile in the lowest registers of suitable banks, if there are four banks; else in consecutive registers.

        Raises:
            InputError: a side out of range.
        """
        if not (1 <= rows <= MAX_SIDE and 1 <= columns <= MAX_SIDE) or rows * columns + rows + columns > ZERO:
            raise InputError(f"a tile of {rows}x{columns} does not fit into R0..R{ZERO - 1}")
        known = {register: banks(register) for register in range(ZERO)}
        if set(known.values()) != set(range(4)):
            numbers = tuple(range(rows * columns + rows + columns))
            size = rows * columns
            return cls(numbers[size : size + rows], numbers[size + rows :], numbers[:size])
        pools = {bank: iter([register for register in known if known[register] == bank]) for bank in range(4)}
        a, b = [2 + at % 2 for at in range(rows)], [at % 2 for at in range(columns)]
        try:
            return cls(
                tuple(next(pools[bank]) for bank in a),
                tuple(next(pools[bank]) for bank in b),
                tuple(next(pools[_RESULT_BANKS[of_a, of_b]]) for of_a in a for of_b in b),
            )
        except (StopIteration, RuntimeError):
            raise InputError(f"a tile of {rows}x{columns} does not fit into the banks; give the registers") from None

    @property
    def ffmas(self) -> tuple[Instruction, ...]:
        """The FFMAs, row by row."""
        pairs = [(a, b) for a in self.rows for b in self.columns]
        return tuple(Instruction(Opcode.FFMA, c, (a, b, c)) for (a, b), c in zip(pairs, self.results, strict=True))


@dataclass(frozen=True, slots=True)
class Order:
    """What a search found.

    Args:
        ffmas: in order; None if none was found.
        complete: whether the search saw everything, so that None means that there is none.
    """

    ffmas: tuple[Instruction, ...] | None
    complete: bool


def order(tile: Tile, pattern: Pattern, banks: Banks) -> Order:
    """Find an order without conflicts: greedy, what reuses most first, and backtracking.

    Args:
        pattern: repeated as often as it fits; the FFMAs that are left over issue singly.
    """
    search = _Search(pattern, banks, tile)
    found = search.place(frozenset(tile.ffmas), frozenset(), 0)
    return Order(found, found is not None or search.tried < MAX_TRIED)


class _Search:
    def __init__(self, pattern: Pattern, banks: Banks, tile: Tile) -> None:
        self.pattern, self.over = pattern, len(tile.ffmas) % sum(pattern)
        self.bank = {register: banks(register) for one in tile.ffmas for register in one.sources}
        self.tried = 0
        self.failed: set[tuple[frozenset[Instruction], frozenset[int]]] = set()

    def place(self, left: frozenset[Instruction], before: frozenset[int], step: int) -> tuple[Instruction, ...] | None:
        """The rest of an order, after an issue cycle that needed the registers `before`."""
        if not left:
            return ()
        if (left, before) in self.failed:
            return None
        size = 1 if len(left) <= self.over else self.pattern[step % len(self.pattern)]
        for cycle in self.cycles(left, before, size):
            if self.tried >= MAX_TRIED:
                return None
            need = frozenset(register for one in cycle for register in one.sources)
            rest = self.place(left - set(cycle), need, step + 1)
            if rest is not None:
                return (*cycle, *rest)
        self.failed.add((left, before))
        return None

    def cycles(
        self, left: frozenset[Instruction], before: frozenset[int], size: int
    ) -> Iterator[tuple[Instruction, ...]]:
        """Issue cycles without a conflict, those first that read least."""
        firsts = self.ranked(left, before)
        if size == 1:
            yield from ((first,) for first in firsts)
            return
        for at, first in enumerate(firsts):
            needed = before | set(first.sources)
            for second in self.ranked(firsts[at + 1 :], needed):
                if self.is_clean({*first.sources, *second.sources} - before):
                    yield (first, second)

    def ranked(self, some: Collection[Instruction], known: frozenset[int]) -> list[Instruction]:
        """Those that can issue after `known` was read, those first that read least."""
        self.tried += len(some)
        clean = [one for one in some if self.is_clean(set(one.sources) - known)]
        return sorted(clean, key=lambda one: (len(set(one.sources) - known), one.sources))

    def is_clean(self, reads: set[int]) -> bool:
        return len({self.bank[register] for register in reads}) == len(reads)


def listing_of(ffmas: Sequence[Instruction], pattern: Pattern, codes: Codes, name: str) -> Listing:
    """An order as a listing: whole blocks have the pattern, and what is left over issues singly.

    Raises:
        InputError: see `layout`.
    """
    size = sum(pattern)
    whole = len(ffmas) - len(ffmas) % size
    instructions = [one for at in range(0, whole, size) for one in layout(pattern, codes, ffmas[at : at + size])]
    instructions += [Instruction(one.opcode, one.destination, one.sources, codes.single) for one in ffmas[whole:]]
    lines = [line_of(one) for one in instructions]
    return Listing(name, blocked(lines), pattern if not len(ffmas) % size else None)


def distance(latency: float) -> int:
    """Instructions that have to stand between two of which the second needs the first, in dual-issue code.

    Seven instructions take four cycles.

    >>> distance(120)
    210
    """
    return -int(-latency * 7 // 4)
