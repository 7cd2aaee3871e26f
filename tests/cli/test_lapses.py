"""What commands say of machine code on a machine whose schedulers lapse: the number with lapses, and never `exact`."""

import re
from csv import DictReader
from pathlib import Path
from typing import Any

import pytest

from tests.command import Runner

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "ptx" / "polynomial.sm_86.cubin"
WHERE = (
    "for the machine code on known-ga10x, with unverified latencies (special, branch), with warm caches of code and"
    " constants, on the SM as it is known, if global takes at most 600 cycles"
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of a machine with lapses and without queues."""
    tables = re.split(r"(?m)^(?=\[)", (ROOT / "tests" / "data" / "machines" / "known-ga10x.toml").read_text("utf-8"))
    path = tmp_path_factory.mktemp("machines") / "known.toml"
    path.write_text("".join(table for table in tables if not table.startswith("[queues.")), "utf-8")
    return path


@pytest.fixture
def asked(machine: Path) -> list[object]:
    """Return the arguments of a question about an SM full of blocks of one warp, with warm caches."""
    return [KERNEL, "--machine", machine, "--warps", 1, "--warm", "--latency", "global=..600"]


def document(solve: Runner, asked: list[object], *options: object) -> dict[str, Any]:
    (found,) = solve(*asked, *options, "--format", "json").documents()
    return found


def test_a_quiet_verdict_has_both_numbers(solve: Runner, asked: list[object]) -> None:
    found = document(solve, asked)
    lower, upper, without = found["lower"], found["upper"], found["without_lapses"]["upper"]
    assert upper == found["lapses"]["base"]["upper"] + found["lapses"]["credits"] > without >= lower
    quiet = solve(*asked, "--quiet")
    assert (quiet.code, quiet.err) == (3, "")
    assert quiet.out.splitlines() == [
        f"bounded {WHERE}: the worst case is at least {lower} and at most {upper} cycles;"
        f" without lapses it is at most {without}"
    ]


def test_a_deadline_between_both_numbers_is_not_met(solve: Runner, asked: list[object]) -> None:
    found = document(solve, asked)
    upper, without = found["upper"], found["without_lapses"]["upper"]
    outcomes = {upper: "met", upper - 1: "undecided", without: "undecided", found["lower"] - 1: "missed"}
    for cycles, outcome in outcomes.items():
        gated = document(solve, asked, "--deadline", f"{cycles}cycles")["deadline"]
        assert (gated["outcome"], gated["slack_cycles"]) == (outcome, cycles - upper)
    table = solve(*asked, "--deadline", f"{without}cycles", "--quiet")
    assert table.out.splitlines()[1].startswith(f"deadline undecided {WHERE}: ")


def test_a_fetch_that_nobody_has_timed_is_asked_for(solve: Runner, asked: list[object]) -> None:
    cold = [option for option in asked if option != "--warm"]
    refused = solve(*cold, "--quiet")
    assert (refused.code, refused.out) == (2, "")
    assert "--latency fetch=..N, or --warm" in refused.err
    slow = document(solve, cold, "--latency", "fetch=..600", "--latency", "constant-miss=..500")
    warm = document(solve, asked)
    assert slow["lapses"]["windows"] > 0 == warm["lapses"]["windows"]
    assert slow["lapses"]["base"] == warm["lapses"]["base"]
    # a constant that misses makes its scheduler lapse, too
    more = [slow["lapses"][part] - warm["lapses"][part] for part in ("credits", "windows")]
    assert min(more) > 0
    assert slow["upper"] - warm["upper"] == sum(more)


def test_a_gate_and_a_sweep_have_the_number_with_lapses(
    solve: Runner, asked: list[object], machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(solve, asked)
    spec = tmp_path / "gate.toml"
    spec.write_text(
        f"""
source = "{KERNEL}"
machine = "{machine}"
warps = "1"
warm = true
latency = ["global=..600"]
each.deadline = ["{found["upper"]}cycles", "{found["without_lapses"]["upper"]}cycles"]
""",
        "utf-8",
    )
    gate = Runner("gate", capsys)(spec)
    assert (gate.code, gate.out.splitlines()[-1]) == (3, "2 deadlines: 1 met, 1 undecided")
    table, csv = tmp_path / "table.sqlite", tmp_path / "table.csv"
    assert Runner("sweep run", capsys)(spec, "-o", table).code == 0
    assert Runner("sweep export", capsys)(table, "-o", csv).code == 0
    rows = list(DictReader(csv.read_text("utf-8").splitlines()))
    assert {(row["status"], row["lower"], row["upper"], row["evidence"]) for row in rows} == {
        ("bounded", str(found["lower"]), str(found["upper"]), "lapses")
    }
    assert {row["deadline_outcome"] for row in rows} == {"met", "undecided"}
    assert {row["caveats"].split("; ")[-2] for row in rows} == {"on the SM as it is known"}
