"""Measurements of a real SM, as a CSV table: `test,key,ops_per_cycle,gap,latency`.

Tests and keys: `latency,FFMA` (latency), `throughput,FMUL` (single issue, without conflicts), `bank,R0:R1` (every pair
of some registers), `code,0x20` (all 256: throughput, gap and latency), `pattern,1-2-2-1`. Cells that a test does not
have stay empty; tests may be left out, but not be incomplete.
"""

import csv
from collections.abc import Mapping
from itertools import islice
from math import isfinite
from pathlib import Path

from makespan.estimates.dual_issue.arbiter import parse_pattern
from makespan.estimates.dual_issue.bank_relation import (
    PATENT_LIMIT,
    BankResult,
    Pair,
    Threshold,
    all_pairs,
    auto_limit,
    check_levels,
    check_registers,
    classify,
)
from makespan.estimates.dual_issue.code_meaning import CodeResult, interpret
from makespan.estimates.dual_issue.device import CODES, SINGLE_ISSUE, SmDescription
from makespan.estimates.dual_issue.method import Characteristics
from makespan.estimates.dual_issue.pattern_ranking import PatternResult, rank_patterns
from makespan.host.errors import InputError
from makespan.host.text_file import read_text
from makespan.model.machine.values import shown

COLUMNS = ("test", "key", "ops_per_cycle", "gap", "latency")
_NEEDED = {
    "latency": ("latency",),
    "throughput": ("ops_per_cycle",),
    "bank": ("ops_per_cycle",),
    "code": ("ops_per_cycle", "gap", "latency"),
    "pattern": ("ops_per_cycle",),
}
_SINGLE = ("throughput", "bank")
# What noise can add to the throughput of single issue, of a lane-operation per scheduler, lane and cycle.
_MOST_OF_THEORY = 1.05
MAX_BYTES = 8 << 20
_LISTED = 5
_MOST_CYCLES = 1e6  # larger gaps and latencies are typing errors


_MeasuredRow = dict[str, float]


def read(path: Path, sm: SmDescription, threshold: Threshold = Threshold.AUTO) -> Characteristics:
    """Return the characteristics that a table of measurements gives.

    Raises:
        InputError: a file that is no such table, is incomplete, or has impossible values.
        MeasurementError: measurements without a clear meaning; see the tests.
    """
    return parse(read_text(path, "table of measurements", MAX_BYTES), str(path), sm, threshold)


def parse(content: str, where: str, sm: SmDescription, threshold: Threshold = Threshold.AUTO) -> Characteristics:
    """Return the same for the text of a table; raises as `read` does."""
    try:
        tests = _tests(content, sm)
        shares = _shares(tests["bank"], sm)
        meaning = _codes(tests["code"])
        single = _single(tests, shares, meaning, sm)
        if meaning is not None and tests["pattern"]:
            meaning.required_dual()  # patterns without dual issue contradict each other
        found = _banks(shares, single / sm.theory, threshold) if shares else None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    reached = [
        PatternResult(parse_pattern(key), row["ops_per_cycle"], row["ops_per_cycle"] / sm.lanes)
        for key, row in tests["pattern"].items()
    ]
    return Characteristics(
        name=Path(where).stem,
        origin=f"measurements in {Path(where).name}",
        is_virtual=False,
        sm=sm,
        latency=tests["latency"]["FFMA"]["latency"] if tests["latency"] else None,
        single=single,
        noise=None,
        banks=found,
        codes=meaning,
        patterns=rank_patterns(reached),
    )


def _tests(content: str, sm: SmDescription) -> dict[str, dict[str, _MeasuredRow]]:
    tests: dict[str, dict[str, _MeasuredRow]] = {test: {} for test in _NEEDED}
    reader = csv.reader(content.splitlines())
    try:
        header = next(reader, None)
        if header != list(COLUMNS):
            raise InputError(f"line 1: the columns are {','.join(COLUMNS)}")
        for cells in reader:
            if cells:
                test, key, row = _row(cells, sm, f"line {reader.line_num}")
                if key in tests[test]:
                    raise InputError(f"line {reader.line_num}: {test} {key} is there twice")
                tests[test][key] = row
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: no CSV: {error}") from None
    if not any(tests.values()):
        raise InputError("no measurement in it")
    return tests


def _row(cells: list[str], sm: SmDescription, at: str) -> tuple[str, str, _MeasuredRow]:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{at}: {len(cells)} cells instead of {len(COLUMNS)}")
    test, raw_key, *numbers = (cell.strip() for cell in cells)
    if test not in _NEEDED:
        raise InputError(f"{at}: unknown test {shown(test)}; there are {', '.join(_NEEDED)}")
    try:
        key = _key(test, raw_key)
    except InputError as error:
        raise InputError(f"{at}: {error}") from None
    given = dict(zip(COLUMNS[2:], numbers, strict=True))
    row = {column: _number(given[column], column, at) for column in _NEEDED[test]}
    if extra := [column for column, text in given.items() if text and column not in row]:
        raise InputError(f"{at}: {test} has no {extra[0]}; leave the cell empty")
    rate = row.get("ops_per_cycle")
    if rate is not None and not 0 < rate <= sm.lanes:
        raise InputError(f"{at}: ops_per_cycle must be above 0 and at most the {sm.lanes} lanes, not {rate:g}")
    if rate is not None and test in _SINGLE and rate > _MOST_OF_THEORY * sm.theory:
        raise InputError(f"{at}: {test} is single issue, of at most {sm.theory:g} per cycle, not {rate:g}")
    if not 0 <= row.get("gap", 0) <= _MOST_CYCLES or not 0 < row.get("latency", 1) <= _MOST_CYCLES:
        raise InputError(f"{at}: gap and latency are cycles, not {given['gap']} and {given['latency']}")
    return test, key, row


def _key(test: str, key: str) -> str:
    try:
        if test == "bank":
            a, b = (int(name[1:]) if name[:1] == "R" and name[1:].isdecimal() else -1 for name in key.split(":"))
            check_registers((a, b))
            return f"R{min(a, b)}:R{max(a, b)}"
        if test == "code":
            number = int(key, 16)
            if not 0 <= number < CODES:
                raise InputError(f"code {shown(key)} is outside of 0x00..0xff")
            return f"{number:#04x}"
    except ValueError:
        example = {"bank": "R0:R1", "code": "0x20"}[test]
        raise InputError(f"{shown(key)} is no key of the test {test}; write such as {example}") from None
    if test == "pattern":
        parse_pattern(key, ranked=True)
        return key
    wanted = {"latency": "FFMA", "throughput": "FMUL"}[test]
    if key != wanted:
        raise InputError(f"the key of {test} is {wanted}, not {shown(key)}")
    return key


def _number(text: str, column: str, at: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{at}: {column} must be a number, not {shown(text)}") from None
    if not isfinite(value):
        raise InputError(f"{at}: {column} must be finite, not {shown(text)}")
    return value


def _shares(rows: Mapping[str, _MeasuredRow], sm: SmDescription) -> dict[Pair, float]:
    rates: dict[Pair, float] = {}
    for key, row in rows.items():
        a, b = (int(name[1:]) for name in key.split(":"))
        rates[a, b] = row["ops_per_cycle"] / sm.theory
    registers = sorted({register for pair in rates for register in pair})
    missing = [f"R{a}:R{b}" for a, b in all_pairs(registers) if (a, b) not in rates]
    _refuse_missing("pairs of registers", missing)
    return rates


def _codes(rows: Mapping[str, _MeasuredRow]) -> CodeResult | None:
    if not rows:
        return None
    keys = [f"{code:#04x}" for code in range(CODES)]
    _refuse_missing("control codes", [key for key in keys if key not in rows])
    return interpret(
        [rows[key]["gap"] for key in keys],
        [rows[key]["ops_per_cycle"] for key in keys],
        [rows[key]["latency"] for key in keys],
    )


def _refuse_missing(what: str, missing: list[str]) -> None:
    if missing:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise InputError(f"{what} are missing: {', '.join(islice(missing, _LISTED))}{more}; measure them, too")


def _single(
    tests: Mapping[str, Mapping[str, _MeasuredRow]],
    shares: Mapping[Pair, float],
    codes: CodeResult | None,
    sm: SmDescription,
) -> float:
    """Return the throughput of single issue: as measured, or the best of a pair or of the single-issue code."""
    if tests["throughput"]:
        return tests["throughput"]["FMUL"]["ops_per_cycle"]
    rates = [share * sm.theory for share in shares.values()]
    rates += [codes.throughput[SINGLE_ISSUE]] if codes else []
    if not rates:
        raise InputError("no throughput of single issue: add a row such as throughput,FMUL,127.5,,")
    return max(rates)


def _banks(shares: Mapping[Pair, float], clean: float, threshold: Threshold) -> BankResult:
    limit = PATENT_LIMIT if threshold is Threshold.PATENT else auto_limit([*shares.values(), clean], None)
    check_levels(shares.values(), limit, None)
    return classify(shares, limit).required()
