"""What microbenchmarks measured, as CSV: one row a run."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, prod
from pathlib import Path

from makespan.estimates.kinds import LEVELS, MAX_BLOCK_WARPS, InstructionKind
from makespan.host.errors import InputError
from makespan.host.text_file import read_text
from makespan.model.machine.gpus import parse_number
from makespan.model.machine.values import printable, shown

MAX_FILE_BYTES = 4 << 20
MAX_COUNT = 10**15
_DIGITS = 40  # longer numbers are refused before they are converted
_LISTED = 12
_REMARK = "#"
_MAX_REMARKS = 32


@dataclass(frozen=True, slots=True)
class MicrobenchSample:
    """A measured run of a microbenchmark.

    Args:
        what: was measured, in the words of its table, such as `("delay", "f32")`.
        counts: how much of it was done, in the numbers of its table, whose product counts.
        time: in cycles of the SM, or in seconds if `in_seconds`.
    """

    what: tuple[str, ...]
    counts: tuple[int, ...]
    time: Fraction
    in_seconds: bool = False

    @property
    def count(self) -> int:
        """Return how much was done."""
        return prod(self.counts)


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """The columns of a file of samples in front of the time.

    Args:
        counts: those that hold numbers; the others say what was measured.
        known: what the first of the others may be, and for each what a second one may be; empty: anything.
    """

    columns: tuple[str, ...]
    counts: tuple[str, ...]
    units: tuple[str, ...] = ("cycles", "seconds")
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


LATENCY, DELAY, MEMORY_LATENCY, BANDWIDTH = "latency", "delay", "memory", "bandwidth"
PATTERNS = ("latency", "coalesced", "uncoalesced")
# Requests are of warps, by all blocks together; for the latency the loads of one thread.
MEMORY = SampleColumns(("pattern", "requests"), ("requests",), known=dict.fromkeys(PATTERNS, ()))
# Operations are those of one work-item, and seconds of all.
THROUGHPUT = SampleColumns(("operation", "operations", "global_size"), ("operations", "global_size"), ("seconds",))
# Counts are instructions, loads that wait for each other, or bytes.
INSTRUCTIONS = SampleColumns(
    ("measure", "name", "count"),
    ("count",),
    known={
        **dict.fromkeys((LATENCY, DELAY), tuple(map(str, InstructionKind))),
        **dict.fromkeys((MEMORY_LATENCY, BANDWIDTH), tuple(LEVELS)),
    },
)
LAUNCH = SampleColumns(
    ("blocks", "warps_per_block"),
    ("blocks",),
    ("seconds",),
    dict.fromkeys(map(str, range(1, MAX_BLOCK_WARPS + 1)), ()),
)


def read(path: Path, table: SampleColumns) -> tuple[MicrobenchSample, ...]:
    """Return the samples of a file.

    Raises:
        InputError: a file that cannot be read or is no such table; names the line.
    """
    headers = [(*table.columns, unit) for unit in table.units]
    rows = list(csv_rows(read_text(path, "file of samples", MAX_FILE_BYTES), str(path)))
    header = tuple(rows[0][1]) if rows else ()
    if header not in headers:
        wanted = " or ".join(map(",".join, headers))
        raise InputError(f"{path}:1: the first line must be {wanted}, not {shown(','.join(header))}")
    if len(rows) == 1:
        raise InputError(f"{path}: no sample in it")
    return tuple(_sample(table, header, where, row) for where, row in rows[1:])


def remarks(path: Path) -> dict[str, str]:
    """Return the remarks of a file of samples: lines such as `# gpu: T4`, anywhere in it.

    Raises:
        InputError: a file that cannot be read, or a remark that is none; names the line.
    """
    found: dict[str, str] = {}
    for at, line in enumerate(read_text(path, "file of samples", MAX_FILE_BYTES).splitlines(), 1):
        if line.startswith(_REMARK):
            key, _, value = (part.strip() for part in line.removeprefix(_REMARK).partition(":"))
            if not key or key in found or len(found) == _MAX_REMARKS:
                raise InputError(f"{path}:{at}: up to {_MAX_REMARKS} different remarks such as # gpu: T4")
            found[key] = printable(value, f"{path}:{at}: what follows {shown(key)}")
    return found


def text(samples: Iterable[MicrobenchSample], table: SampleColumns) -> str:
    """Return the text of a file that `read` reads; all samples are in the unit of the first."""
    several = list(samples)
    unit = "seconds" if several[0].in_seconds else "cycles"
    rows = [",".join((*table.columns, unit))]
    for sample in several:
        what, counts = iter(sample.what), map(str, sample.counts)
        cells = [next(counts if column in table.counts else what) for column in table.columns]
        rows.append(",".join([*cells, repr(float(sample.time))]))
    return "\n".join(rows) + "\n"


def csv_rows(content: str, where: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of a table in CSV without its remarks, each with the file and line that it stands in.

    Raises:
        InputError: no CSV.
    """
    reader = csv.reader(content.splitlines())
    try:
        for row in reader:
            if row and not row[0].startswith(_REMARK):
                yield f"{where}:{reader.line_num}", [cell.strip() for cell in row]
    except csv.Error as error:
        raise InputError(f"{where}:{reader.line_num}: not CSV: {error}") from None


def _sample(table: SampleColumns, header: tuple[str, ...], where: str, row: list[str]) -> MicrobenchSample:
    if len(row) != len(header):
        raise InputError(f"{where}: {len(row)} values, the header has {len(header)}")
    cells = dict(zip(header, row, strict=True))
    names = [column for column in table.columns if column not in table.counts]
    what = tuple(cells[name] for name in names)
    if table.known and what[0] not in table.known:
        raise InputError(f"{where}: {names[0]} must be one of {_list_text(table.known)}, not {shown(what[0])}")
    if table.known and len(what) > 1 and what[1] not in table.known[what[0]]:
        raise InputError(f"{where}: {what[0]} of {shown(what[1])}: must be one of {', '.join(table.known[what[0]])}")
    counts = tuple(_whole(cells[column], where) for column in table.counts)
    return MicrobenchSample(what, counts, _time(row[-1], where), in_seconds=header[-1] == "seconds")


def _list_text(names: Iterable[str]) -> str:
    several = list(names)
    return ", ".join(several[:_LISTED]) + (f", ..., {several[-1]}" if len(several) > _LISTED else "")


def _whole(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and 1 <= int(text) <= MAX_COUNT):
        raise InputError(f"{where}: {shown(text)} is not a whole number of at least 1, and at most 1e15")
    return int(text)


def _time(text: str, where: str) -> Fraction:
    value = parse_number(text)
    if value is None or not (isfinite(value) and 1e-18 < value < 1e18):
        raise InputError(f"{where}: {shown(text)} is not a time above 0")
    return Fraction(repr(value))  # the decimal that was printed, not its binary neighbour
