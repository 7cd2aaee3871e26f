"""The table of a sweep as a file of data: the end of its name selects CSV or Parquet."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.many.sweep.rows import SweepRow, columns

_CYCLES = ("lower", "upper", "best_lower", "best_upper")


def check_table_path(path: Path) -> None:
    """Refuse a path early if no table can be written to it.

    Raises:
        InputError: an unknown end of the name, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in DATA:
        raise InputError(f"{path}: the name of a table must end in {' or '.join(DATA)}")
    check_writable(path, "the table")


def write_table(found: Sequence[SweepRow], path: Path) -> None:
    """Write all rows to `path`, whole or not at all.

    Raises:
        InputError: a file that cannot be written, or a library that is missing.
    """
    write_whole(path, DATA[path.suffix.lower()](columns(found)), "the table")


def as_csv(table: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a header and a row per question. Missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode()


def as_parquet(table: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns of whole numbers, of other numbers, or of text. Missing values are null.

    Raises:
        InputError: the library is not installed.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'makespan[parquet]', or write .csv") from None
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    typed = {name: (_kind(name, values), values) for name, values in table.items()}
    arrays = {
        name: arrow.array([None if value is None else kind(value) for value in values], kinds[kind])
        for name, (kind, values) in typed.items()
    }
    content = io.BytesIO()
    parquet.write_table(arrow.table(arrays), content)
    return content.getvalue()


def _kind(name: str, values: Sequence[Any]) -> type[int] | type[float] | type[str]:
    kinds = {type(value) for value in values if value is not None} or {int if name in _CYCLES else str}
    # a column of Parquet has 64 bits, and cycles may be longer
    if kinds == {int} and all(abs(value) < 2**63 for value in values if value is not None):
        return int
    return float if kinds <= {int, float} else str


DATA: Mapping[str, Callable[[Mapping[str, Sequence[Any]]], bytes]] = {".csv": as_csv, ".parquet": as_parquet}
"""The content of a file of data, by the end of its name."""
