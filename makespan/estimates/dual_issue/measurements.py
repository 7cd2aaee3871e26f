"""Measurements of an SM, as a CSV table `test,key,ops_per_cycle,gap,latency`, and the characteristics that they give.

Tests and keys: `latency,FFMA` (latency), `throughput,FMUL` (single issue, without conflicts), `bank,R0:R1` (every pair
of some registers), `code,0x20` (all 256: throughput, gap and latency), `pattern,1-2-2-1`. Cells that a test does not
have stay empty; tests may be left out, but not be incomplete. Lines that begin with # are remarks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import isfinite
from pathlib import Path

from makespan.estimates.dual_issue.control_codes import CODES, SINGLE_ISSUE, CodeResult, interpret
from makespan.estimates.dual_issue.register_banks import REGISTERS, BankResult, Pair, Threshold, find_banks
from makespan.estimates.microbench.samples import csv_rows
from makespan.host.errors import InputError, MeasurementError
from makespan.host.text_file import named_file, read_text
from makespan.model.machine.values import shown

K20 = "tesla-k20"
"""The shipped table: what was published for GK110."""
COLUMNS = ("test", "key", "ops_per_cycle", "gap", "latency")
# The choices of two single issues among four cycles: six FFMAs in four cycles.
PATTERNS = tuple(sorted({"-".join(cycles) for cycles in permutations("1122")}))
MAX_BYTES = 8 << 20
# What noise can add to the throughput of single issue, of a lane-operation per scheduler, lane and cycle.
_MOST_OF_THEORY = 1.05
_LISTED = 5
_MOST_CYCLES = 1e6  # larger gaps and latencies are typing errors
_LEAST_DIFFERENCE = 0.002  # relative, of two efficiencies


@dataclass(frozen=True, slots=True)
class SmDescription:
    """The given numbers of an SM, which no test measures; the defaults are those of GK110.

    Args:
        lanes: for 32-bit floating-point numbers; also the FFMAs that it could complete per cycle.
        warp: threads of a warp.
    """

    lanes: int = 192
    schedulers: int = 4
    warp: int = 32

    def __post_init__(self) -> None:
        if self.schedulers < 1 or self.warp < 1 or self.lanes < self.schedulers * self.warp:
            raise InputError(
                f"{self.lanes} lanes are fewer than those of {self.schedulers} schedulers with warps of {self.warp}"
            )

    @property
    def theory(self) -> float:
        """Return the lane-operations per cycle of single issue: each scheduler feeds the lanes of one warp."""
        return float(self.schedulers * self.warp)


@dataclass(frozen=True, slots=True)
class PatternResult:
    """The throughput that a pattern of single and dual issues reaches.

    Args:
        pattern: the FFMAs of each issue cycle, such as `1-2-2-1`.
        ops_per_cycle: FFMA lane-operations per cycle and SM.
        efficiency: the same, of all lanes.
    """

    pattern: str
    ops_per_cycle: float
    efficiency: float

    def __str__(self) -> str:
        return f"{self.pattern} {self.efficiency:.2%}"


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The characteristics of an SM that the tests found.

    Args:
        name: of the table.
        origin: where the numbers are from, for a reader who asks for the source.
        latency: cycles from an FFMA to one that reads its result; None where it was not measured.
        single: FMUL lane-operations per cycle and SM in single-issue mode, without conflicts.
        banks: None where they were not measured.
        codes: None where they were not measured.
        patterns: the best first; empty where there were none to measure.
        is_published: whether the numbers are those of a paper; the user measured all others.
    """

    name: str
    origin: str
    sm: SmDescription
    latency: float | None
    single: float
    banks: BankResult | None
    codes: CodeResult | None
    patterns: tuple[PatternResult, ...]
    is_published: bool = False

    @property
    def sustained(self) -> float:
        """Return the FFMA lane-operations per cycle and SM that the best measured code reaches."""
        return max([self.single, *(result.ops_per_cycle for result in self.patterns)])

    @property
    def best(self) -> tuple[PatternResult, ...]:
        """Return the patterns that cannot be told from the best one; empty where none was measured."""
        least = max((result.efficiency for result in self.patterns), default=0.0) * (1 - _LEAST_DIFFERENCE)
        return tuple(result for result in self.patterns if result.efficiency >= least)


def find(table: str, sm: SmDescription | None = None, threshold: Threshold = Threshold.AUTO) -> Characteristics:
    """Return the characteristics that a shipped table or a file of measurements gives.

    Args:
        table: the name of a shipped table, or the path of a .csv file.
        sm: the SM that was measured; None is that of GK110.

    Raises:
        InputError: a file that is no such table, is incomplete, or has impossible values.
        MeasurementError: measurements without a clear meaning; see the tests.
    """
    file, where = named_file(table, "dual_issue", ".csv", "table of measurements")
    content = read_text(file, "table of measurements", MAX_BYTES, where=where)
    found = parse(content, where, SmDescription() if sm is None else sm, threshold)
    return replace(found, is_published=not table.endswith(".csv"))


def parse(content: str, where: str, sm: SmDescription, threshold: Threshold = Threshold.AUTO) -> Characteristics:
    """Return the same for the text of a table; raises as `find` does."""
    tests = _tests(content, where, sm)
    try:
        pairs, codes = _pairs(tests["bank"], sm), _codes(tests["code"])
        single = _single(tests, codes)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if codes is not None and tests["pattern"] and not codes.dual:
        raise MeasurementError("device has no dual issue: no control code has gap 0, so there is no pattern to test")
    reached = [
        PatternResult(key, row["ops_per_cycle"], row["ops_per_cycle"] / sm.lanes)
        for key, row in tests["pattern"].items()
    ]
    return Characteristics(
        name=Path(where).stem,
        origin=f"measurements in {Path(where).name}",
        sm=sm,
        latency=tests["latency"]["FFMA"]["latency"] if tests["latency"] else None,
        single=single,
        banks=find_banks(pairs, single / sm.theory, threshold) if pairs else None,
        codes=codes,
        patterns=tuple(sorted(reached, key=lambda result: (-result.efficiency, result.pattern))),
    )


_MeasuredRow = Mapping[str, float]
_MeasuredTests = dict[str, dict[str, _MeasuredRow]]


@dataclass(frozen=True, slots=True)
class _IssueTest:
    """A test: the numbers that a row of it needs, a regular expression for its keys, and what to write for one."""

    needs: tuple[str, ...]
    key: str
    example: str


_TESTS = {
    "latency": _IssueTest(("latency",), "FFMA", "FFMA"),
    "throughput": _IssueTest(("ops_per_cycle",), "FMUL", "FMUL"),
    "bank": _IssueTest(("ops_per_cycle",), r"R(\d{1,3}):R(\d{1,3})", "R0:R1, two of R0..R254"),
    "code": _IssueTest(("ops_per_cycle", "gap", "latency"), r"0[xX][0-9a-fA-F]{1,2}", "0x20, of 0x00..0xff"),
    "pattern": _IssueTest(("ops_per_cycle",), "|".join(PATTERNS), ", ".join(PATTERNS)),
}


def _tests(content: str, where: str, sm: SmDescription) -> _MeasuredTests:
    tests: _MeasuredTests = {test: {} for test in _TESTS}
    (at, header), *rows = [*csv_rows(content, where)] or [(f"{where}:1", [])]
    if tuple(header) != COLUMNS:
        raise InputError(f"{at}: the columns are {','.join(COLUMNS)}")
    for at, cells in rows:
        try:
            test, key, row = _row(cells, sm)
            if key in tests[test]:
                raise InputError(f"{test} {key} is there twice")
        except InputError as error:
            raise InputError(f"{at}: {error}") from None
        tests[test][key] = row
    if not rows:
        raise InputError(f"{where}: no measurement in it")
    return tests


def _row(cells: list[str], sm: SmDescription) -> tuple[str, str, _MeasuredRow]:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{len(cells)} cells instead of {len(COLUMNS)}")
    test, key, *numbers = cells
    if test not in _TESTS:
        raise InputError(f"unknown test {shown(test)}; there are {', '.join(_TESTS)}")
    given = dict(zip(COLUMNS[2:], numbers, strict=True))
    row = {column: _number(given[column], column) for column in _TESTS[test].needs}
    if extra := [column for column, text in given.items() if text and column not in row]:
        raise InputError(f"{test} has no {extra[0]}; leave the cell empty")
    rate = row.get("ops_per_cycle", 1.0)
    if not 0 < rate <= sm.lanes:
        raise InputError(f"ops_per_cycle must be above 0 and at most the {sm.lanes} lanes, not {rate:g}")
    if test in ("throughput", "bank") and rate > _MOST_OF_THEORY * sm.theory:
        raise InputError(f"{test} is single issue, of at most {sm.theory:g} per cycle, not {rate:g}")
    if not 0 <= row.get("gap", 0) <= _MOST_CYCLES or not 0 < row.get("latency", 1) <= _MOST_CYCLES:
        raise InputError(f"gap and latency are cycles, not {given['gap']} and {given['latency']}")
    return test, _key(test, key), row


def _key(test: str, key: str) -> str:
    match = re.fullmatch(_TESTS[test].key, key, re.ASCII)
    registers = sorted(map(int, match.groups())) if match is not None else []
    if match is None or registers != sorted(set(registers)) or max(registers, default=0) >= REGISTERS:
        raise InputError(f"{shown(key)} is no key of the test {test}; write such as {_TESTS[test].example}")
    if test == "code":
        return f"{int(key, 16):#04x}"
    return ":".join(f"R{register}" for register in registers) or key


def _number(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{column} must be a number, not {shown(text)}") from None
    if not isfinite(value):
        raise InputError(f"{column} must be finite, not {shown(text)}")
    return value


def _pairs(rows: Mapping[str, _MeasuredRow], sm: SmDescription) -> dict[Pair, float]:
    """Return the throughput of every pair of the registers, as a share of theory."""
    registers = sorted({int(name[1:]) for key in rows for name in key.split(":")})
    keys = {(a, b): f"R{a}:R{b}" for a, b in combinations(registers, 2)}
    _refuse_missing("pairs of registers", [key for key in keys.values() if key not in rows])
    return {pair: rows[key]["ops_per_cycle"] / sm.theory for pair, key in keys.items()}


def _codes(rows: Mapping[str, _MeasuredRow]) -> CodeResult | None:
    keys = [f"{code:#04x}" for code in range(CODES)] if rows else []
    _refuse_missing("control codes", [key for key in keys if key not in rows])
    columns = ([rows[key][column] for key in keys] for column in ("gap", "ops_per_cycle", "latency"))
    return interpret(*columns) if rows else None


def _refuse_missing(what: str, missing: list[str]) -> None:
    if missing:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise InputError(f"{what} are missing: {', '.join(missing[:_LISTED])}{more}; measure them, too")


def _single(tests: _MeasuredTests, codes: CodeResult | None) -> float:
    """Return the throughput of single issue: as measured, or the best of a pair or of the single-issue code."""
    rates = [row["ops_per_cycle"] for row in (tests["throughput"] or tests["bank"]).values()]
    if codes is not None and not tests["throughput"]:
        rates.append(codes.throughput[SINGLE_ISSUE])
    if not rates:
        raise InputError("no throughput of single issue: add a row such as throughput,FMUL,127.5,,")
    return max(rates)
