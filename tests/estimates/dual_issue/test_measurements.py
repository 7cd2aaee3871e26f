"""Measurements as a table: read, and refused where they are wrong."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from makespan.estimates.dual_issue import K20, SmDescription, Threshold, find
from makespan.estimates.dual_issue.measurements import MAX_BYTES, parse
from makespan.estimates.report.dual_issue import machine_file
from makespan.host.errors import InputError, MeasurementError
from makespan.host.text_file import shipped_files
from makespan.model import machine

GK110 = SmDescription(192, 4, 32)
HEADER = "test,key,ops_per_cycle,gap,latency"
ROWS = shipped_files("dual_issue", ".csv")[K20].read_text("utf-8").splitlines()


def read(lines: list[str]) -> object:
    return parse("\n".join(lines), "k20.csv", GK110)


def test_tests_may_be_left_out() -> None:
    found = parse(f"{HEADER}\nthroughput,FMUL,127.5,,\n", "x.csv", GK110)
    assert (found.latency, found.banks, found.codes, found.patterns, found.best) == (None, None, None, (), ())
    assert found.sustained == 127.5


def test_single_issue_is_taken_from_pairs_or_codes_if_it_is_not_there() -> None:
    lines = [row for row in ROWS if not row.startswith("throughput")]
    assert parse("\n".join(lines), "x.csv", GK110).single == 127.5
    assert parse("\n".join(row for row in lines if not row.startswith("bank")), "x.csv", GK110).single == 127.5


def replaced(old: str, new: str) -> Callable[[], list[str]]:
    def change() -> list[str]:
        lines = "\n".join(ROWS)
        assert old in lines
        return lines.replace(old, new, 1).split("\n")

    return change


def without(*starts: str) -> Callable[[], list[str]]:
    return lambda: [row for row in ROWS if not row.startswith(starts)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (without("test,"), "k20.csv:3: the columns are test,key,ops_per_cycle,gap,latency"),
        (list, "k20.csv:1: the columns are test,key,ops_per_cycle,gap,latency"),
        (lambda: [HEADER], "no measurement in it"),
        (without("bank,R0:R7"), "pairs of registers are missing: R0:R7; measure them, too"),
        (
            without("bank,R0:R7", "bank,R1:"),
            "pairs of registers are missing: R0:R7, R1:R2, R1:R3, R1:R4, R1:R5 and 26 more; measure",
        ),
        (
            without("code,0x1", "code,0x20"),
            "control codes are missing: 0x10, 0x11, 0x12, 0x13, 0x14 and 12 more; measure",
        ),
        (lambda: [*ROWS, "bank,R1:R0,127,,"], "k20.csv:764: bank R0:R1 is there twice"),
        (lambda: [*ROWS, "code,0X2F,30,16,16"], "code 0x2f is there twice"),
        (lambda: [*ROWS, "pattern,1-2-2-1,1,,"], "pattern 1-2-2-1 is there twice"),
        (replaced("186.35", "192.01"), "ops_per_cycle must be above 0 and at most the 192 lanes, not 192.01"),
        (replaced("186.35", "0"), "ops_per_cycle must be above 0"),
        (replaced("186.35", "-3"), "ops_per_cycle must be above 0"),
        (replaced("186.35", "nan"), "ops_per_cycle must be finite, not 'nan'"),
        (replaced("186.35", ""), "ops_per_cycle must be a number, not ''"),
        (replaced("186.35", "fast"), "ops_per_cycle must be a number, not 'fast'"),
        (replaced("186.35,,", "186.35,,9"), "pattern has no latency; leave the cell empty"),
        (replaced("186.35,,", "186.35,"), "4 cells instead of 5"),
        (replaced("code,0x20,127.5,1,9", "code,0x20,127.5,-1,9"), "gap and latency are cycles, not -1 and 9"),
        (replaced("code,0x20", "code,0x120"), "'0x120' is no key of the test code; write such as 0x20, of 0x00..0xff"),
        (replaced("code,0x20", "code,twenty"), "'twenty' is no key of the test code; write such as 0x20"),
        (replaced("bank,R0:R1,", "bank,R0:R255,"), "'R0:R255' is no key of the test bank; write such as R0:R1"),
        (replaced("bank,R0:R1,", "bank,R0:R0,"), "'R0:R0' is no key of the test bank"),
        (replaced("bank,R0:R1,", "bank,0-1,"), "'0-1' is no key of the test bank; write such as R0:R1"),
        (replaced("pattern,1-2-2-1", "pattern,3"), "'3' is no key of the test pattern; write such as 1-1-2-2, 1-2-1-2"),
        (replaced("pattern,1-2-2-1", "pattern,1-1-1-1"), "'1-1-1-1' is no key of the test pattern"),
        (replaced("latency,FFMA", "latency,FADD"), "'FADD' is no key of the test latency; write such as FFMA"),
        (replaced("latency,FFMA", "speed,FFMA"), "unknown test 'speed'; there are latency, throughput, bank"),
        (lambda: [HEADER, "pattern,1-2-2-1,186,,"], "no throughput of single issue: add a row"),
        (replaced("FMUL,127.50", "FMUL,150"), "throughput is single issue, of at most 128 per cycle, not 150"),
        (replaced("bank,R0:R1,127.50", "bank,R0:R1,150"), "bank is single issue, of at most 128 per cycle, not 150"),
    ],
)  # fmt: skip
def test_tables_that_are_wrong_say_where(make: Callable[[], list[str]], message: str) -> None:
    with pytest.raises(InputError) as error:
        read(make())
    assert str(error.value).startswith("k20.csv:")
    assert message in str(error.value)


TWO_COSTS = {(True, 0): 126.0, (True, 1): 98.0, (True, 2): 98.0, (True, 3): 98.0}
"""The largest gap would take the cheaper conflicts for none."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (replaced("bank,R0:R2,119.17", "bank,R0:R2,127.5"), "noisy or not bank-like"),
        (replaced("code,0x04,16.2,0,", "code,0x04,127.5,1,"), "device has no dual issue"),
        (
            lambda: [
                HEADER,
                "throughput,FMUL,127.5,,",
                *(
                    f"bank,R{a}:R{b},{TWO_COSTS.get((a % 4 == b % 4, a % 4), 127.5)},,"
                    for a, b in combinations(range(12), 2)
                ),
            ],
            "3 of 66 pairs lie between conflict and none",
        ),
        (
            lambda: [HEADER, *(f"bank,R{a}:R{b},{110 + 2 * b + a % 2},," for a, b in combinations(range(6), 2))],
            "unresolved: the largest gap",
        ),
    ],
)
def test_measurements_without_a_clear_meaning_have_failed(make: Callable[[], list[str]], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        read(make())


@pytest.mark.parametrize("given", [(96, 4, 32), (192, 0, 32), (192, 4, 0)])
def test_an_sm_has_lanes_for_its_schedulers(given: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="lanes are fewer"):
        SmDescription(*given)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary, large = tmp_path / "binary.csv", tmp_path / "large.csv"
    binary.write_bytes(b"\xff")
    large.write_text("x" * (MAX_BYTES + 1))
    for path, message in (
        (tmp_path / "none.csv", "cannot read the table of measurements: No such file"),
        (binary, "not UTF-8"),
        (large, "larger than 8 MiB"),
        (Path("k20"), "unknown table of measurements 'k20'.*tesla-k20"),
    ):
        with pytest.raises(InputError, match=message):
            find(str(path))


def test_the_machine_file_of_a_table_is_valid_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "k20.toml"
    path.write_text(machine_file(parse("\n".join(ROWS), "k20.csv", GK110)))
    found = machine.find_machine(str(path))
    assert found.machine.capacities == {"C": 6}
    assert str(found.machine.units[0].latency) == "1..9"
    assert found.values("issue") == {"width": 4, "schedulers": 4, "dispatch": 2}
    assert all(figure.source for figure in found.data)
    assert not found.unverified
    assert "bank of register r: (r & 1) | ((r >> 2) & 1) << 1" in found.notes


def test_the_machine_file_of_few_measurements_says_no_more_than_they_do(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    table = f"{HEADER}\nthroughput,FMUL,127.5,,\n"
    path.write_text(machine_file(parse(f"{table}latency,FFMA,,,9\n", 'a"\n\\.csv', GK110)))
    found = machine.find_machine(str(path))
    keys = ["units.C.capacity", "units.C.latency", "issue.width", "issue.schedulers"]
    assert [figure.key for figure in found.data] == keys
    with pytest.raises(InputError, match="x: a machine file needs the latency of FFMA"):
        machine_file(parse(table, "x.csv", GK110))


@pytest.mark.parametrize("threshold", Threshold)
def test_the_shipped_table_is_published_and_a_file_is_measured(threshold: Threshold, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(ROWS))
    shipped, own = find(K20, threshold=threshold), find(str(path), threshold=threshold)
    assert (shipped.is_published, own.is_published) == (True, False)
    assert (shipped.banks, shipped.codes, shipped.patterns) == (own.banks, own.codes, own.patterns)
