"""The cost table of a device: values, in microseconds per work-item or byte, and the JSON file of them."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources.abc import Traversable
from itertools import pairwise
from math import exp
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from makespan.host.errors import InputError
from makespan.host.text_file import named_file, read_text

MAX_FILE_BYTES = 1 << 20
INTERVAL_BYTES = 16384


class AccessKind(StrEnum):
    """The kinds of memory access, by their names in tables and reports."""

    PRIVATE = "PRIVATE_ACCESS"
    LOCAL = "LOCAL_ACCESS"
    CONSTANT = "CONSTANT_GLOBAL_READ"
    INTERVAL = "CACHED_GLOBAL_READ"
    CONTINUOUS = "GLOBAL_READ"
    COMPLEX = "COMPLEX_GLOBAL_READ"
    UNCLASSIFIED = "UNCLASSIFIED_GLOBAL_READ"
    WRITE = "GLOBAL_WRITE"


BASE = "BASE_COST"
DIVISION_BY_LITERAL = "INT_DIV_LITERAL"
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


SaturationKind = Literal["sat", "count_free", "linear", "table"]
ShortText = Annotated[str, msgspec.Meta(max_length=500)]
FromZero = Annotated[float, msgspec.Meta(ge=0)]
AboveZero = Annotated[float, msgspec.Meta(gt=0)]
FromOne = Annotated[int, msgspec.Meta(ge=1)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a cost table; unknown keys are refused, and texts that a terminal cannot print."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str) and not text.isprintable():
                    raise ValueError(f"{name}: not a printable text on one line: {text!r}")


class LinearCost(Record, frozen=True, kw_only=True):
    """A cost that is linear in work-items (or bytes): `slope` * x + `icept`, in microseconds.

    Args:
        se: standard error of the slope.
        r2: coefficient of determination of the fit.
        unresolved: the slope was not distinguishable from 0, and is stored as 0.
        source: where the numbers come from, if they were not measured with the rest of the table.
    """

    slope: FromZero
    icept: FromZero = 0.0
    se: FromZero | None = None
    r2: float | None = None
    unresolved: bool = False
    source: ShortText | None = None

    def __call__(self, x: float) -> float:
        """Return the microseconds for x work-items (or bytes)."""
        return self.slope * x + self.icept


class Saturation(Record, frozen=True, kw_only=True):
    """The cost of several operations of a kind, where one costs T.

    Args:
        kind: `sat`: up to `x_sat` operations cost as much as one, and then each one more; `count_free`: any number
            costs as much as one; `linear`: each costs as much as one; `table`: `points` say it.
        x_sat: where saturation begins.
        tau: the cost of each operation beyond `x_sat` (`linear`: beyond the first), in microseconds per work-item;
            None: T each, and the first beyond `x_sat` is the one that is paid anyway.
        points: pairs of a number of operations n and M(n); n of them cost n * M(n) * T, linear in between.
    """

    kind: SaturationKind
    x_sat: FromOne | None = None
    tau: FromZero | None = None
    points: tuple[tuple[FromOne, FromZero], ...] = ()

    def __post_init__(self) -> None:
        if (self.x_sat is None) == (self.kind == "sat"):
            raise ValueError(f"x_sat belongs to kind 'sat', and to no other; kind is {self.kind!r}")
        if self.tau is not None and self.kind not in ("sat", "linear"):
            raise ValueError(f"tau belongs to kinds 'sat' and 'linear'; kind is {self.kind!r}")
        if bool(self.points) != (self.kind == "table"):
            raise ValueError(f"points belong to kind 'table', and to no other; kind is {self.kind!r}")
        if any(n >= m for (n, _), (m, _) in pairwise(self.points)):
            raise ValueError("points must have rising numbers of operations")

    def multiple(self, n: int) -> float:
        """Return how many times the cost of one n operations cost, which is n * M(n), without `tau`; 0 for none.

        Source: Pöppl 2014. M(n) = 1/n up to `x_sat` and (n - x_sat)/n beyond it, hence max(1, n - x_sat); integers 1/n.
        """
        if n == 0:
            return 0.0
        if self.kind == "table":
            return n * _interpolate(self.points, n)
        return float({"count_free": 1, "linear": n, "sat": max(1, n - (self.x_sat or 0))}[self.kind])


class OperationCost(LinearCost, frozen=True, kw_only=True):
    """The cost of one operation, and what several cost."""

    saturation: Saturation

    def microseconds(self, n: int, work_items: int) -> float:
        """Return the cost of n operations per work-item."""
        one, law = self(work_items), self.saturation
        if n == 0:
            return 0.0
        if law.tau is None:
            return law.multiple(n) * one
        return one + law.tau * work_items * max(0, n - (law.x_sat or 1))  # up to x_sat operations cost as much as one


class WorkGroup(Record, frozen=True, kw_only=True):
    """The factor of a work-group size s: y0 + B1 exp(-s/t1) + B2 exp(-s/t2)."""

    y0: FromZero
    b1: FromZero = msgspec.field(name="B1")
    t1: AboveZero
    b2: FromZero = msgspec.field(name="B2")
    t2: AboveZero
    source: ShortText | None = None

    def factor(self, size: int) -> float:
        """Return the factor for work-groups of `size` work-items."""
        return self.y0 + self.b1 * exp(-size / self.t1) + self.b2 * exp(-size / self.t2)


class Transfer(Record, frozen=True, kw_only=True):
    """The costs of both directions, linear in the bytes that move."""

    to: LinearCost
    back: LinearCost = msgspec.field(name="from")


class OpenClCostTable(Record, frozen=True, kw_only=True):
    """The measured costs of a device; the fields have the names of the keys in the file.

    Args:
        driver: its version, or "" where it is not known.
        date: of the measurement.
        ops: by row, such as FLOAT_ADD; INT_DIV_LITERAL is for divisions by constants, where they were told apart.
        access: by row, such as GLOBAL_READ; PRIVATE_ACCESS is free unless it is here.
        interval_bytes: a read whose addresses lie within these bytes is a CACHED_GLOBAL_READ.
        transfer_unit: what the slopes of the transfer are per; an element has 4 bytes.
        max_work_group: the largest size of a work-group on the device.
        work_group: the size at which everything but `wg` was measured.
        int_chain: how chains of integer operations were kept from being folded into one, or that they were not.
        not_converged: the measured points that were still uncertain when their time was over.
        source: of the numbers that do not say more.
    """

    device: ShortText
    driver: ShortText
    date: ShortText
    units: Literal["us"]
    transfer: Transfer
    base: LinearCost
    wg: WorkGroup
    ops: dict[str, OperationCost]
    access: dict[str, LinearCost]
    interval_bytes: FromOne = INTERVAL_BYTES
    transfer_unit: Literal["byte", "element"] = "byte"
    max_work_group: FromOne | None = None
    work_group: FromOne | None = None
    int_chain: Literal["fold", "mixed"] | None = None
    rel_tol: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    not_converged: tuple[ShortText, ...] = ()
    notes: tuple[ShortText, ...] = ()
    source: ShortText | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for given, known, what in (
            (self.ops, (*OPERATIONS, DIVISION_BY_LITERAL), "ops"),
            (self.access, tuple(map(str, AccessKind)), "access"),
        ):
            if unknown := sorted(set(given) - set(known)):
                raise ValueError(f"unknown row {unknown[0]!r} in {what}; known: {', '.join(known)}")

    def transfer_microseconds(self, size: int, *, back: bool) -> float:
        """Return the time to move `size` bytes to the device, or back from it."""
        line = self.transfer.back if back else self.transfer.to
        return line(size / 4 if self.transfer_unit == "element" else size)


def find(name: str) -> OpenClCostTable:
    """Return a table that comes with the package, by its name, or that of a file, by a path that ends in `.json`.

    Raises:
        InputError: neither, or see `read`.
    """
    return _read(*named_file(name, "cost_tables", ".json", "cost table"))


def read(path: Path) -> OpenClCostTable:
    """Read a cost table.

    Raises:
        InputError: a file that cannot be read, that is no cost table, or that has unknown keys or impossible numbers.
    """
    return _read(path, str(path))


def parse(text: str, where: str) -> OpenClCostTable:
    """Return the table in `text`; `where` is for messages."""
    try:
        json.loads(text, object_pairs_hook=_refuse_repetitions)  # msgspec would take the last of equal keys
        return msgspec.json.decode(text, type=OpenClCostTable)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a cost table: {error}") from None


def table_json(table: OpenClCostTable) -> str:
    """Return the JSON text of a table."""
    return json.dumps(msgspec.to_builtins(table), indent=2, ensure_ascii=False) + "\n"


def _read(file: Path | Traversable, where: str) -> OpenClCostTable:
    return parse(read_text(file, "cost table", MAX_FILE_BYTES, where=where), where)


def _refuse_repetitions(pairs: list[tuple[str, Any]]) -> None:
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise ValueError(f"key {key!r} is given twice")


def _interpolate(points: tuple[tuple[int, float], ...], n: int) -> float:
    """Return M(n), linear between measured neighbours; beyond the last one the cost per operation stays."""
    at = bisect_left([m for m, _ in points], n)
    if at == len(points):
        return points[-1][1]
    (right, high) = points[at]
    if n == right or at == 0:
        return high
    left, low = points[at - 1]
    return low + (high - low) * (n - left) / (right - left)
