"""From counts and a cost table to microseconds: the rows, the kernel, the transfers, and what speaks against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term
from makespan.estimates.opencl_cost_table.table import (
    BASE,
    DIVISION_BY_LITERAL,
    OPERATIONS,
    ROWS,
    AccessKind,
    OpenClCostTable,
    RowCounts,
)
from makespan.host.errors import InputError

METHOD = "opencl-cost-table"
TOTAL = "TOTAL_COST"
# Which experiment of the suite measures a row; all other rows are classes of global reads.
_EXPERIMENTS: Mapping[str, str] = {
    **dict.fromkeys(OPERATIONS, "B4 (one operation per kernel)"),
    **dict.fromkeys(
        (AccessKind.LOCAL, AccessKind.PRIVATE, AccessKind.UNCLASSIFIED, AccessKind.WRITE), "B6 (kinds of memory)"
    ),
}


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """A launch: what a work-item does, how many there are, and what moves.

    Args:
        group: work-items of a work-group; None: as many as the table was measured with, at the factor 1.
        bytes_in: to the device; None: transfers are not part of the question.
        bytes_out: back from it.
    """

    counts: RowCounts
    work_items: int
    group: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.work_items < 1:
            raise InputError(f"{self.work_items} work-items: at least 1 is needed")
        if self.group is not None and self.group < 1:
            raise InputError(f"work-group size {self.group}: at least 1 is needed")
        if self.group is not None and self.work_items % self.group:
            raise InputError(
                f"work-group size {self.group} does not divide the {self.work_items} work-items, as OpenCL demands"
            )
        for name, size in (("to", self.bytes_in), ("from", self.bytes_out)):
            if size is not None and size < 0:
                raise InputError(f"transfer {name} the device: {size} bytes; at least 0 are needed")


@dataclass(frozen=True, slots=True)
class PredictionRow:
    """A cost type, its number per work-item, and the microseconds of all work-items before the work-group factor."""

    name: str
    count: int
    microseconds: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The rows of the table for one launch; in microseconds.

    Args:
        factor: of the work-group size, on all rows.
        to_device: None where transfers are not part of the question.
    """

    table: OpenClCostTable
    work: LaunchWork
    rows: tuple[PredictionRow, ...]
    factor: float
    to_device: float | None
    from_device: float | None
    warnings: tuple[str, ...] = field(default=())

    @property
    def kernel(self) -> float:
        """Return the time of the kernel without transfers, which the source calls TOTAL_COST."""
        return self.factor * sum(row.microseconds for row in self.rows)

    @property
    def total(self) -> float:
        """Return the time with the transfers that are known."""
        return (self.to_device or 0.0) + self.kernel + (self.from_device or 0.0)

    def __getitem__(self, row: str) -> PredictionRow:
        return next(found for found in self.rows if found.name == row)

    def on_device(self, cpu_seconds: float) -> bool:
        """Return whether the device takes less time than the CPU."""
        return self.total < cpu_seconds * 1e6


def predict(table: OpenClCostTable, work: LaunchWork, overrides: Mapping[str, float] | None = None) -> Prediction:
    """Return the predicted times of a launch.

    Args:
        overrides: microseconds that replace those of a row, whatever its count.

    Raises:
        InputError: a row that the kernel needs and the table lacks, an override of no row or of no time, or a
            work-group that is larger than the device takes.
    """
    replaced = dict(overrides or {})
    for name, microseconds in replaced.items():
        if name not in ROWS:
            raise InputError(f"override of {name}: no such row; there are {', '.join(ROWS)}")
        if not (isfinite(microseconds) and microseconds >= 0):
            raise InputError(f"override of {name}: {microseconds} is not a time in microseconds, from 0 on")
    largest = table.max_work_group
    if work.group is not None and largest is not None and work.group > largest:
        raise InputError(f"work-group size {work.group}: {table.device} takes at most {largest}")
    rows = tuple(
        PredictionRow(name, work.counts[name], replaced[name] if name in replaced else _microseconds(table, work, name))
        for name in ROWS
        if not name.startswith("DOUBLE") or work.counts[name] or name in replaced
    )
    return Prediction(
        table,
        work,
        rows,
        1.0 if work.group is None else table.wg.factor(work.group),
        None if work.bytes_in is None else table.transfer_microseconds(work.bytes_in, back=False),
        None if work.bytes_out is None else table.transfer_microseconds(work.bytes_out, back=True),
        (*work.notes, *_doubts(table, work, set(replaced))),
    )


def _microseconds(table: OpenClCostTable, work: LaunchWork, row: str) -> float:
    """Return the microseconds of a row, with divisions by literals at their own price where the table has one."""
    count, items, by_literal = work.counts[row], work.work_items, 0.0
    if row == BASE:
        return count * table.base(items)
    if row == "INT_DIV" and DIVISION_BY_LITERAL in table.ops:
        count -= work.counts.literal_divisions
        by_literal = table.ops[DIVISION_BY_LITERAL].microseconds(work.counts.literal_divisions, items)
    if row == AccessKind.WRITE and row not in table.access:  # published tables have no row for stores
        row = AccessKind.CONTINUOUS
    if count == 0 or (row == AccessKind.PRIVATE and row not in table.access):  # registers are free
        return by_literal
    if row in table.ops:
        return by_literal + table.ops[row].microseconds(count, items)
    if row in table.access:
        return count * table.access[row](items)
    raise _missing(table, row)


def _missing(table: OpenClCostTable, row: str) -> InputError:
    flag = " --double" if row.startswith("DOUBLE") else ""
    experiment = _EXPERIMENTS.get(row, "B7 (classes of global reads)")
    return InputError(
        f"the cost table of {table.device} has no row {row}, which the kernel needs; measure it by"
        f" 'makespan measure opencl{flag}', experiment {experiment}, or give --override {row}=MICROSECONDS"
    )


def _doubts(table: OpenClCostTable, work: LaunchWork, replaced: set[str]) -> list[str]:
    used = [row for row in ROWS if work.counts[row] and row not in replaced]
    lines = {**table.ops, **table.access, BASE: table.base}
    unresolved = [str(row) for row in used if row in lines and lines[row].unresolved]
    doubts = [f"too cheap to be measured, and taken as 0: {', '.join(unresolved)}"] if unresolved else []
    if work.group is None and table.work_group is None:
        doubts.append("no work-group size is given: the factor for it is 1, that of large groups")
    return doubts


def estimate(prediction: Prediction) -> Estimate:
    """Return the prediction in the form that all estimators share; its terms are in seconds."""
    work, table = prediction.work, prediction.table
    rows = [(row.name, row.microseconds * prediction.factor) for row in prediction.rows if row.microseconds]
    moves = [("to the device", prediction.to_device), ("from the device", prediction.from_device)]
    terms = [*rows, *((name, time) for name, time in moves if time is not None)]
    dearest = max(terms, key=lambda term: term[1], default=("nothing", 0.0))[0]
    return Estimate(
        method=METHOD,
        cycles=None,
        seconds=prediction.total * 1e-6,
        terms=tuple(Term(name, time * 1e-6) for name, time in terms),
        limiting=dearest,
        quantities=(
            ModelQuantity(
                "device", table.device, "", Origin.MEASURED, table.source or f"driver {table.driver}, {table.date}"
            ),
            ModelQuantity("work-items", work.work_items, "work-items", Origin.DERIVED),
            *((ModelQuantity("work-group", work.group, "work-items", Origin.GIVEN),) if work.group else ()),
            ModelQuantity("work-group factor", prediction.factor, "1", Origin.MEASURED),
            *(ModelQuantity(row.name, row.count, "per work-item", Origin.DERIVED) for row in prediction.rows),
            *(
                ModelQuantity(f"bytes {name}", size, "bytes", Origin.DERIVED)
                for name, size in (("to the device", work.bytes_in), ("from the device", work.bytes_out))
                if size is not None
            ),
            ModelQuantity("kernel", prediction.kernel, "us", Origin.DERIVED, "TOTAL_COST, without transfers"),
        ),
        warnings=prediction.warnings,
    )
