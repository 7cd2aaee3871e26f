"""`makespan solve --deadline --clock`: a gate on one makespan, with exact rounding."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import Instance
from makespan import solve as prove
from makespan.cli import solve as solve_command
from makespan.host.errors import InputError
from makespan.model.deadline import Deadline, DeadlineOutcome, read_deadline
from makespan.model.result import Bounds
from makespan.report.result import text
from tests.command import Runner, command_fixture
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SCHEMA = published("result-2")
KNOWN = ("--string", "CLLCLL", "--warps", 2)  # 10 cycles at worst


solve = command_fixture("solve")


@pytest.mark.parametrize(
    ("deadline", "code", "line"),
    [
        ("10cycles", 0, "deadline met if every instruction takes one cycle: 10 cycles, with 0 to spare"),
        ("11 cycles", 0, "deadline met if every instruction takes one cycle: 11 cycles, with 1 to spare"),
        (
            "9cycles",
            1,
            "deadline missed if every instruction takes one cycle: 9 cycles, a schedule is 1 cycle too late",
        ),
        ("1cycle", 1, "deadline missed if every instruction takes one cycle: 1 cycle, a schedule is 9 cycles too late"),
    ],
)
def test_a_deadline_in_cycles_needs_no_clock(solve: Runner, deadline: str, code: int, line: str) -> None:
    done = solve(*KNOWN, "--deadline", deadline)
    assert (done.code, done.out.splitlines()[1]) == (code, line)


@pytest.mark.parametrize(
    ("deadline", "clock", "code"),
    [
        ("10ns", "1GHz", 0),
        ("9.999ns", "1GHz", 1),
        ("10ns", "999.999999MHz", 1),
        ("7.143ns", "1.4GHz", 0),
        ("7.142ns", "1.4GHz", 1),
        ("30ns", "0.333333333GHz", 1),  # 9.99999999 cycles
        ("200ns", "1.4GHz", 0),
    ],
)
def test_a_deadline_in_time_is_turned_into_cycles_exactly(solve: Runner, deadline: str, clock: str, code: int) -> None:
    assert solve(*KNOWN, "--deadline", deadline, "--clock", clock).code == code


def test_a_deadline_without_a_unit_may_be_in_cycles(solve: Runner) -> None:
    for deadline in ("5", "0.5"):
        done = solve(*KNOWN, "--deadline", deadline)
        assert (done.code, done.out) == (2, "")
        lacks = f"makespan: --deadline {deadline} lacks its unit: cycles, or with --clock one of ps, ns, us, ms, s\n"
        assert done.err == lacks


def test_a_deadline_of_part_of_a_cycle_is_refused(solve: Runner) -> None:
    done = solve(*KNOWN, "--deadline", "139.5cycles")
    message = "makespan: --deadline 139.5cycles: cycles must be whole, such as 280cycles\n"
    assert (done.code, done.out, done.err) == (2, "", message)


def test_the_second_line_says_time_cycles_and_clock(solve: Runner) -> None:
    done = solve(*KNOWN, "--deadline", "200ns", "--clock", "1.4GHz")
    assert (
        done.out.splitlines()[1]
        == "deadline met if every instruction takes one cycle: 200 ns, 280 cycles at 1.4 GHz, with 270 to spare"
    )


def test_a_clock_beside_cycles_changes_no_answer(solve: Runner) -> None:
    done = solve(*KNOWN, "--deadline", "9cycles", "--clock", "1.4GHz")
    assert (done.code, done.err) == (1, "")
    assert "\ndeadline missed if every instruction takes one cycle: 6.42857 ns, 9 cycles at 1.4 GHz, " in done.out


def test_a_deadline_that_only_one_path_meets_says_so(solve: Runner) -> None:
    done = solve(ROOT / "ptx" / "divergent.ptx", "--warps", 2, "--take", "S=fall", "--deadline", "6cycles")
    assert done.out.splitlines()[1] == (
        "deadline met for the PTX as written, for this path only, if every instruction takes one cycle:"
        " 6 cycles, with 0 to spare"
    )
    assert solve(ROOT / "ptx" / "divergent.ptx", "--warps", 2, "--deadline", "6cycles").code == 1


def test_json_has_the_gate_exactly(solve: Runner) -> None:
    done = solve(*KNOWN, "--deadline", "7.2ns", "--clock", "1.4GHz", "--format", "json")
    document = json.loads(done.out)
    SCHEMA.validate(document)
    assert done.code == 0
    assert document["deadline"] == {
        "cycles": 10,
        "seconds": "9/1250000000",
        "clock_hz": "1400000000",
        "outcome": "met",
        "slack_cycles": 0,
    }
    document["deadline"]["outcome"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(document)


def test_a_bounded_result_is_decided_where_the_deadline_is_outside(
    solve: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded = replace(prove(Instance.of("CLLCLL", 2)), bounds=Bounds(10, 13))
    monkeypatch.setattr(solve_command, "solve", lambda *_, **__: bounded)
    done = {at: solve(*KNOWN, "--deadline", f"{at}cycles") for at in (9, 10, 12, 13)}
    assert {at: outcome.code for at, outcome in done.items()} == {9: 1, 10: 3, 12: 3, 13: 0}
    assert (
        "\ndeadline undecided if every instruction takes one cycle: 12 cycles, the worst case lies within 10..13\n"
        in done[12].out
    )


def test_of_several_results_the_worst_answer_counts(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", "1..3", "--deadline", "10cycles")
    assert done.code == 1
    assert [line.split()[-1] for line in done.out.splitlines()[:4]] == ["deadline", "met", "met", "missed"]
    assert done.out.splitlines()[4:] == [
        "3 results if every instruction takes one cycle: 3 exact",
        "deadline of 10 cycles if every instruction takes one cycle: 2 met, 1 missed",
    ]
    assert solve("--string", "CLLCLL", "--warps", "1..3", "--deadline", "14cycles").code == 0


def test_csv_has_two_columns_more(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", "2..3", "--deadline", "10cycles", "--format", "csv")
    rows = [line.split(",") for line in done.out.splitlines()]
    assert rows[0][-2:] == ["deadline_cycles", "deadline"]
    assert [row[-2:] for row in rows[1:]] == [["10", "met"], ["10", "missed"]]


def test_an_expected_value_that_is_wrong_is_no_in_any_case(solve: Runner, tmp_path: Path) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"string": "CLLCLL", "warps": 2, "capacity": {"C": 1, "L": 1}, "makespan": 9}\n')
    assert solve(file, "--deadline", "10cycles").code == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--deadline", "200ns"),
            "--deadline 200ns needs --clock, the frequency that turns it into cycles, such as 1.4GHz (or give cycles,"
            " such as 280cycles)",
        ),
        (("--clock", "1GHz"), "--clock turns a deadline into cycles: give --deadline, such as 200ns"),
        (
            ("--deadline", "9cycles", "--clock", "1"),
            "--clock: '1' lacks its unit; one of Hz, kHz, MHz, GHz",
        ),
        (
            ("--deadline", "200", "--clock", "1GHz"),
            "--deadline 200 lacks its unit: cycles, or with --clock one of ps, ns, us, ms, s",
        ),
        (("--deadline", "1us", "--clock", "1"), "--clock: '1' lacks its unit; one of Hz, kHz, MHz, GHz"),
        (("--deadline", "0cycles"), "--deadline must be more than zero"),
        (("--deadline", "0ns", "--clock", "1GHz"), "--deadline must be more than zero"),
        (("--deadline", "-1ns", "--clock", "1GHz"), "--deadline must be a time such as \"200us\", not '-1ns'"),
        (("--deadline", "9" * 19 + "cycles"), None),
    ],
)
def test_what_is_no_deadline_is_refused_before_the_work(
    solve: Runner, options: tuple[str, ...], message: str | None
) -> None:
    done = solve(*KNOWN, *options)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert message is None or done.err == f"makespan: {message}\n"


@given(
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 10**3)),
    st.integers(1, 10**10),
)
def test_the_gate_says_what_exact_times_say(lower: int, more: int, seconds: Fraction, clock: int) -> None:
    picoseconds = int(seconds * 10**12)
    gate = read_deadline(f"{max(1, picoseconds)}ps", f"{clock}Hz")
    assert gate is not None
    due, bounds = Fraction(max(1, picoseconds), 10**12), Bounds(lower, lower + more)
    expected = DeadlineOutcome.UNDECIDED
    if Fraction(bounds.upper, clock) <= due:
        expected = DeadlineOutcome.MET
    elif Fraction(bounds.lower, clock) > due:
        expected = DeadlineOutcome.MISSED
    assert gate.outcome(bounds) is expected
    assert str(outcome := gate.outcome(bounds)) in text.deadline_verdict(gate, bounds), outcome


def test_a_deadline_below_one_cycle_is_missed() -> None:
    gate = read_deadline("1ps", "1GHz")
    assert gate is not None
    assert gate.cycles == 0
    assert gate.outcome(Bounds(1, 1)) is DeadlineOutcome.MISSED


def test_nothing_given_is_no_gate() -> None:
    assert read_deadline(None, None) is None
    with pytest.raises(InputError):
        read_deadline(None, "1GHz")
    assert str(Deadline(3)) == "3 cycles"
