"""What one work-item does: rows of the cost table and how often each occurs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from makespan.estimates.opencl_cost_table import expression as ex
from makespan.estimates.opencl_cost_table.access import AccessKind, classify
from makespan.host.errors import InputError

BASE = "BASE_COST"
DIVISION_BY_LITERAL = "INT_DIV_LITERAL"
_NAMES = {"+": "ADD", "-": "SUB", "*": "MUL", "/": "DIV", "%": "DIV"}
OPERATIONS = tuple(f"{kind}_{name}" for kind in ("FLOAT", "INT", "DOUBLE") for name in ("ADD", "SUB", "MUL", "DIV"))
ROWS = (*OPERATIONS, *map(str, AccessKind), BASE)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of executions of each row by one work-item; rows that do not occur are missing.

    Args:
        literal_divisions: how many of INT_DIV divide by a constant. A compiler makes cheaper instructions of those,
            so a table may price them by a row of their own.
    """

    rows: Mapping[str, int]
    literal_divisions: int = field(default=0)

    def __post_init__(self) -> None:
        for row, number in self.rows.items():
            if row not in ROWS:
                raise InputError(f"unknown row {row}; known: {', '.join(ROWS)}")
            if number < 0:
                raise InputError(f"row {row}: a negative count, {number}")
        if not 0 <= self.literal_divisions <= self["INT_DIV"]:
            raise InputError(f"{self.literal_divisions} of {self['INT_DIV']} divisions are by a literal")

    def __getitem__(self, row: str) -> int:
        return self.rows.get(row, 0)


def row_of(operator: str, kind: ex.Type) -> str:
    """Return the row of an operator, such as `INT_DIV` for an integer `/` or `%`."""
    return f"{kind.name}_{_NAMES[operator]}"


def count(
    iteration: ex.Iteration, *, interval_bytes: int, dedupe_reads: bool = False, classified: bool = True
) -> RowCounts:
    """Count what one work-item of the generated kernel does.

    The base once; 2 INT_DIV per dimension and one INT_MUL less than dimensions to recover the variables; every read
    its class and one INT_MUL and INT_ADD per subscript; every operator by the type of its result, `%` as a division
    and a unary minus as a subtraction; a variable that is used as a value one PRIVATE_ACCESS. Constants cost nothing,
    and the store of the result belongs to the base.

    Args:
        dedupe_reads: count equal reads once, as a compiler may.
        classified: give every global read its class; otherwise all are priced alike.

    Source: the published counts of `x + matrix[x,y]` (Pöppl 2014); these are the fewest uniform rules that give them.
    """
    tally = _RowTally(iteration, interval_bytes, dedupe_reads, classified)
    dimensions = len(iteration.variables)
    items = [*tally.items(iteration.body, as_value=True)]
    rows = Counter({BASE: 1, "INT_DIV": 2 * dimensions, "INT_MUL": dimensions - 1})
    rows.update(row for row in items if row != DIVISION_BY_LITERAL)
    return RowCounts({row: rows[row] for row in ROWS if rows[row]}, 2 * dimensions + items.count(DIVISION_BY_LITERAL))


@dataclass(frozen=True, slots=True)
class _RowTally:
    iteration: ex.Iteration
    interval_bytes: int
    dedupe_reads: bool
    classified: bool
    seen: set[ex.Read] = field(default_factory=set)

    def items(self, expression: ex.IterationExpression, *, as_value: bool) -> Iterator[str]:
        """Yield the rows that the expression needs, each as often as it needs it."""
        match expression:
            case ex.Variable() if as_value:
                yield str(AccessKind.PRIVATE)
            case ex.BinaryOperation():
                row = row_of(expression.operator, expression.type)
                yield row
                if row == "INT_DIV" and isinstance(expression.right, ex.Literal):
                    yield DIVISION_BY_LITERAL
            case ex.Negation():
                yield row_of("-", expression.type)
            case ex.Read():
                if self.dedupe_reads and expression in self.seen:
                    return
                self.seen.add(expression)
                yield from self._read(expression)
                as_value = False  # variables in subscripts are part of the price of the read
        for part in ex.parts(expression):
            yield from self.items(part, as_value=as_value)

    def _read(self, read: ex.Read) -> Iterator[str]:
        for _ in read.subscripts:
            yield from ("INT_MUL", "INT_ADD")
        yield str(classify(read, self.iteration, self.interval_bytes) if self.classified else AccessKind.UNCLASSIFIED)
