"""Measurements from outside as a table: read as if the device had been measured, and refused where they are wrong."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from makespan.estimates.dual_issue import measurements, method
from makespan.estimates.dual_issue.bank_relation import Threshold
from makespan.estimates.dual_issue.device import SmDescription
from makespan.estimates.dual_issue.registers import GK110_BANKS
from makespan.estimates.dual_issue.truth import GK110_GAPS
from makespan.host.errors import InputError, MeasurementError
from makespan.model import machine

GK110 = SmDescription(192, 4, 32)
HEADER = "test,key,ops_per_cycle,gap,latency"


def rows() -> list[str]:
    """The published numbers of GK110 as if somebody had typed them in."""
    found = [HEADER, "latency,FFMA,,,9.0", "throughput,FMUL,127.50,,"]
    found += [
        f"bank,R{a}:R{b},{119.18 if GK110_BANKS(a) == GK110_BANKS(b) else 127.5},,"
        for a, b in combinations(range(16), 2)
    ]
    found += [
        f"code,{code:#04x},{min(127.5, 512 / gap) if gap else 16.2:.1f},{gap},{max(9, gap)}"
        for code, gap in enumerate(GK110_GAPS)
    ]
    found += ["pattern,1-2-2-1,186.35,,", "pattern,2-1-2-1,151.8,,", "pattern,1-1-2-2,92.7,,"]
    return found


def read(lines: list[str], threshold: Threshold = Threshold.AUTO) -> object:
    return measurements.parse("\n".join(lines), "k20.csv", GK110, threshold)


@pytest.mark.parametrize("threshold", Threshold)
def test_a_table_says_what_the_tests_would_have_found(threshold: Threshold) -> None:
    found = measurements.parse("\n".join(rows()), "k20.csv", GK110, threshold)
    assert found.banks is not None
    assert found.codes is not None
    assert found.banks.function == GK110_BANKS
    assert (len(found.codes.dual), len(found.codes.immediate), len(found.codes.delayed)) == (1, 40, 215)
    assert len(found.codes.fields) == 10
    assert (found.latency, found.single, found.sustained) == (9.0, 127.5, 186.35)
    assert [result.pattern for result in found.best] == [(1, 2, 2, 1)]


def test_tests_may_be_left_out() -> None:
    found = measurements.parse(f"{HEADER}\nthroughput,FMUL,127.5,,\n", "x.csv", GK110)
    assert (found.latency, found.banks, found.codes, found.patterns, found.best) == (None, None, None, (), ())
    assert found.sustained == 127.5


def test_single_issue_is_taken_from_pairs_or_codes_if_it_is_not_there() -> None:
    without = [row for row in rows() if not row.startswith("throughput")]
    assert measurements.parse("\n".join(without), "x.csv", GK110).single == 127.5
    only_codes = [row for row in without if not row.startswith("bank")]
    assert measurements.parse("\n".join(only_codes), "x.csv", GK110).single == 127.5


def replaced(old: str, new: str) -> Callable[[], list[str]]:
    def change() -> list[str]:
        lines = "\n".join(rows())
        assert old in lines
        return lines.replace(old, new, 1).split("\n")

    return change


def without(*starts: str) -> Callable[[], list[str]]:
    return lambda: [row for row in rows() if not row.startswith(starts)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (without("test,"), "line 1: the columns are test,key,ops_per_cycle,gap,latency"),
        (lambda: [HEADER], "no measurement in it"),
        (without("bank,R0:R7"), "pairs of registers are missing: R0:R7; measure them, too"),
        (
            without("bank,R0:R7", "bank,R1:"),
            "pairs of registers are missing: R0:R7, R1:R2, R1:R3, R1:R4, R1:R5 and 10 more; measure",
        ),
        (
            without("code,0x1", "code,0x20"),
            "control codes are missing: 0x10, 0x11, 0x12, 0x13, 0x14 and 12 more; measure",
        ),
        (lambda: [*rows(), "bank,R1:R0,127,,"], "bank R0:R1 is there twice"),
        (lambda: [*rows(), "code,0X2F,30,16,16"], "code 0x2f is there twice"),
        (lambda: [*rows(), "pattern,1-2-2-1,1,,"], "pattern 1-2-2-1 is there twice"),
        (replaced("186.35", "192.01"), "ops_per_cycle must be above 0 and at most the 192 lanes, not 192.01"),
        (replaced("186.35", "0"), "ops_per_cycle must be above 0"),
        (replaced("186.35", "-3"), "ops_per_cycle must be above 0"),
        (replaced("186.35", "nan"), "ops_per_cycle must be finite, not 'nan'"),
        (replaced("186.35", ""), "ops_per_cycle must be a number, not ''"),
        (replaced("186.35", "fast"), "ops_per_cycle must be a number, not 'fast'"),
        (replaced("186.35,,", "186.35,,9"), "pattern has no latency; leave the cell empty"),
        (replaced("186.35,,", "186.35,"), "4 cells instead of 5"),
        (replaced("code,0x20,127.5,1,9", "code,0x20,127.5,-1,9"), "gap and latency are cycles, not -1 and 9"),
        (replaced("code,0x20", "code,0x120"), "code '0x120' is outside of 0x00..0xff"),
        (replaced("code,0x20", "code,twenty"), "'twenty' is no key of the test code; write such as 0x20"),
        (replaced("bank,R0:R1,", "bank,R0:R255,"), "registers are different ones of R0..R254"),
        (replaced("bank,R0:R1,", "bank,R0:R0,"), "registers are different"),
        (replaced("bank,R0:R1,", "bank,0-1,"), "'0-1' is no key of the test bank; write such as R0:R1"),
        (replaced("pattern,1-2-2-1", "pattern,3"), "'3' is no pattern"),
        (replaced("pattern,1-2-2-1", "pattern,1-1-1-1"), "pattern 1-1-1-1 is not in the ranking"),
        (replaced("latency,FFMA", "latency,FADD"), "the key of latency is FFMA, not 'FADD'"),
        (replaced("latency,FFMA", "speed,FFMA"), "unknown test 'speed'; there are latency, throughput, bank"),
        (lambda: [HEADER, "pattern,1-2-2-1,186,,"], "no throughput of single issue: add a row"),
        (replaced("FMUL,127.50", "FMUL,150"), "throughput is single issue, of at most 128 per cycle, not 150"),
        (replaced("bank,R0:R1,127.5", "bank,R0:R1,150"), "bank is single issue, of at most 128 per cycle, not 150"),
    ],
)
def test_tables_that_are_wrong_say_where(make: Callable[[], list[str]], message: str) -> None:
    with pytest.raises(InputError) as error:
        read(make())
    assert str(error.value).startswith("k20.csv: ")
    assert message in str(error.value)


def test_a_relation_that_is_none_of_banks_is_a_failed_measurement() -> None:
    with pytest.raises(MeasurementError, match="noisy or not bank-like"):
        read(replaced("bank,R0:R2,119.18", "bank,R0:R2,127.5")())


def test_patterns_need_a_code_that_opens_dual_issues() -> None:
    with pytest.raises(MeasurementError, match="device has no dual issue"):
        read(replaced("code,0x04,16.2,0,9", "code,0x04,127.5,1,9")())


def test_conflicts_of_two_costs_are_a_failed_measurement() -> None:
    """The largest gap would take the cheaper ones for none."""
    costs = {(True, 0): 126.0, (True, 1): 98.0, (True, 2): 98.0, (True, 3): 98.0}
    pairs = combinations(range(12), 2)
    lines = [f"bank,R{a}:R{b},{costs.get((a % 4 == b % 4, a % 4), 127.5)},," for a, b in pairs]
    with pytest.raises(MeasurementError, match="3 of 66 pairs lie between conflict and none"):
        read([HEADER, "throughput,FMUL,127.5,,", *lines])


@pytest.mark.parametrize("count", [8, 32, 255])
def test_codes_that_all_open_dual_issues_are_no_stall_field(count: int) -> None:
    lines = [f"code,{code:#04x},127.5,{int(code >= count)},9" for code in range(256)]
    found = measurements.parse("\n".join([HEADER, *lines]), "x.csv", GK110)
    assert found.codes is not None
    assert len(found.codes.dual) == count
    assert not found.codes.fields


def test_throughputs_without_a_clear_gap_are_a_failed_measurement() -> None:
    lines = [HEADER, *(f"bank,R{a}:R{b},{110 + 2 * b + a % 2},," for a, b in combinations(range(6), 2))]
    with pytest.raises(MeasurementError, match="unresolved: the largest gap"):
        read(lines)


@pytest.mark.parametrize("given", [(96, 4, 32), (192, 0, 32), (192, 4, 0)])
def test_an_sm_has_lanes_for_its_schedulers(given: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="lanes are fewer"):
        SmDescription(*given)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the table of measurements: No such file"):
        measurements.read(tmp_path / "none.csv", GK110)
    (tmp_path / "binary.csv").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        measurements.read(tmp_path / "binary.csv", GK110)
    (tmp_path / "large.csv").write_text("x" * (measurements.MAX_BYTES + 1))
    with pytest.raises(InputError, match="larger than 8 MiB"):
        measurements.read(tmp_path / "large.csv", GK110)


def test_the_machine_file_of_a_table_is_valid_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "k20.toml"
    path.write_text(method.machine_file(measurements.parse("\n".join(rows()), "k20.csv", GK110)))
    found = machine.find_machine(str(path))
    assert found.machine.capacities == {"C": 6}
    assert str(found.machine.units[0].latency) == "1..9"
    assert found.values("issue") == {"width": 4, "schedulers": 4, "dispatch": 2}
    assert all(figure.source for figure in found.data)
    assert not found.unverified
    assert any("bank of register r: (r & 1) | ((r >> 2) & 1) << 1" in note for note in found.notes)


def test_the_machine_file_of_few_measurements_says_no_more_than_they_do(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    table = f"{HEADER}\nthroughput,FMUL,127.5,,\n"
    path.write_text(method.machine_file(measurements.parse(f"{table}latency,FFMA,,,9\n", 'a"\n\\.csv', GK110)))
    found = machine.find_machine(str(path))
    keys = ["units.C.capacity", "units.C.latency", "issue.width", "issue.schedulers"]
    assert [figure.key for figure in found.data] == keys
    with pytest.raises(InputError, match="x: a machine file needs the latency of FFMA"):
        method.machine_file(measurements.parse(table, "x.csv", GK110))
