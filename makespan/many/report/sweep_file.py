"""The table of a sweep as a file of data: the end of its name says whether as CSV or as Parquet."""

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
    """Refuse a path at once that no table can be written to.

    Raises:
        InputError: another end than a known one, a folder, or a folder that takes no file.
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
    """Return a header and a row per question; what is not there is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode()


def as_parquet(table: Mapping[str, Sequence[Any]]) -> bytes:
    """Columns of whole numbers, of numbers, or of text; what is not there is null.

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
    """Return the narrowest that holds all values."""
    kinds = {type(value) for value in values if value is not None} or {int if name in _CYCLES else str}
    if kinds == {int} and all(abs(value) < 2**63 for value in values if value is not None):
        return int
    return float if kinds <= {int, float} else str


DATA: Mapping[str, Callable[[Mapping[str, Sequence[Any]]], bytes]] = {".csv": as_csv, ".parquet": as_parquet}
"""What a file of data holds, by the end of its name."""
