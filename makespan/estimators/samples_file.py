"""Tables of samples, as CSV: what microbenchmarks measured, one row a run."""

import csv
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

from makespan.errors import InputError
from makespan.estimators.decimal_text import number
from makespan.machine.values import shown
from makespan.text_file import read_text

MAX_FILE_BYTES = 4 << 20
MAX_COUNT = 10**15
_DIGITS = 40  # longer numbers are refused before they are converted


def table(path: Path, headers: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], list[tuple[str, list[str]]]]:
    """That of the headers that the file begins with, and the rows below it, each with where it stands.

    Raises:
        InputError: a file that cannot be read, another header, a row of another length, or no row.
    """
    rows = list(_rows(path))
    header = tuple(rows[0][1]) if rows else ()
    if header not in headers:
        wanted = " or ".join(",".join(columns) for columns in headers)
        raise InputError(f"{path}:1: the first line must be {wanted}, not {shown(','.join(header))}")
    for where, row in rows:
        if len(row) != len(header):
            raise InputError(f"{where}: {len(row)} values, the header has {len(header)}")
    if len(rows) == 1:
        raise InputError(f"{path}: no sample in it")
    return header, rows[1:]


def whole(text: str, where: str) -> int:
    """The count in a cell.

    Raises:
        InputError: no whole number from 1 to `MAX_COUNT`.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and 1 <= int(text) <= MAX_COUNT):
        raise InputError(f"{where}: {shown(text)} is not a whole number of at least 1, and at most 1e15")
    return int(text)


def positive(text: str, where: str) -> float:
    """The time in a cell.

    Raises:
        InputError: no number, or none above 0.
    """
    value = number(text)
    if value is None or not (isfinite(value) and value > 0):
        raise InputError(f"{where}: {shown(text)} is not a time above 0")
    return value


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader(read_text(path, "file of samples", MAX_FILE_BYTES).splitlines())
    try:
        for row in reader:
            if row:
                yield f"{path}:{reader.line_num}", [cell.strip() for cell in row]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV: {error}") from None
