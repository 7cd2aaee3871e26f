"""The command line: what it prints, what it refuses, and with which exit code."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from click.shell_completion import ShellComplete

from makespan import cli
from makespan.cli import solve as solve_command
from makespan.host.errors import BrokenPromiseError, InputError
from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.proof.engines import Limits
from makespan.proof.engines import solve as solved
from makespan.report.gantt.chart import CycleWindow
from tests.command import Outcome, Runner
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SHORT = "a search stopped for want of memory: with a larger --memory-limit it may prove more"
HARD = ("--string", "CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", "--warps", "12", "--capacity", "C=2,L=1")
UNITS = '"capacity": {"C": 1, "L": 1}'
GOOD = f'{{"string": "CLLCLL", "warps": 2, {UNITS}, "makespan": 10}}'


def process(*arguments: str, **options: Any) -> Outcome:
    """`makespan ...` as a process of its own."""
    command = [sys.executable, "-m", "makespan", *arguments]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    done = subprocess.run(command, text=True, timeout=600, check=False, **{**pipes, **options})
    return Outcome(done.returncode, done.stdout, done.stderr)


def instance_file(folder: Path, *lines: str, name: str = "some.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(lines) + "\n")
    return file


# What is printed


def test_json_says_what_is_proven_and_how(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", 2, "--capacity", "C=1,L=1", "--format", "json", "--best-case")
    assert (done.code, done.err) == (0, "")
    (document,) = done.documents()
    assert document["seconds"] >= 0
    (step,) = document["history"]
    assert 0 <= step.pop("seconds") <= document["seconds"]
    assert step == {"engine": "certificate", "lower": 10, "upper": 10, "evidence": "theorem-e"}
    assert document.pop("best_case_seconds") >= 0
    del document["seconds"], document["versions"], document["assumptions"], document["history"]
    assert document == {
        "schema": "makespan.result/2",
        "status": "exact",
        "lower": 10,
        "upper": 10,
        "pessimistic": 12,
        "best_case": 9,
        "warps": 2,
        "blocks": 1,
        "capacity": {"C": 1, "L": 1},
        "interval": {"C": 1, "L": 1},
        "latency": {"C": [1, 1], "L": [1, 1]},
        "issue_width": None,
        "machine": "paper",
        "any_units": None,
        "caveats": ["if every instruction takes one cycle"],
        "robust_against": [],
        "string": "CLLCLL",
        "groups": [{"program": "CLLCLL", "warps": 2}],
        "backend": "certificate",
        "evidence": {"lower": "witness", "upper": "theorem-e"},
        "interrupted": False,
        "explanation": {
            "warp": 1,
            "together": 1,
            "cycles": 10,
            "executing": 6,
            "starved": [
                {"unit": "L", "cycles": 3, "by": [{"warp": 0, "cycles": 3}]},
                {"unit": "C", "cycles": 1, "by": [{"warp": 0, "cycles": 1}]},
            ],
            "stalled": [],
            "barriers": 0,
        },
    }


def test_the_example_of_the_paper_with_48_warps(solve: Runner) -> None:
    done = solve("--string", "LLLLCCCCCCCCCLLCCCCCCC", "--warps", 48, "--format", "json")
    (document,) = done.documents()
    assert (document["lower"], document["upper"], document["pessimistic"]) == (915, 915, 1056)
    assert document["machine"] == "paper"
    assert document["best_case"] is None
    assert done.code == 0


def test_text_begins_with_the_verdict_and_ends_with_the_assumptions(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", 2)
    assert done.code == 0
    assert re.sub(r" in \d+\.\d+ s", " in ... s", done.out).splitlines() == [
        "exact if every instruction takes one cycle: the worst case is 10 cycles",
        "2 x CLLCLL on machine paper (C=1, L=1)",
        "at least          10  a schedule that takes so long, replayed",
        "at most           10  proven by theorem-e",
        "M^L + M^C         12  pessimistic: what each class needs alone, added up; 20.0 % above",
        "robust            12  holds even if warps run ahead, anything is shorter, ports more or warps fewer",
        "found by certificate in ... s",
        "the last warp, number 1: 6 cycles executing, 3 starved on L (by warp 0), 1 starved on C (by warp 0)",
        "assumptions:",
        "  - machine 'paper': units C=1, L=1; an instruction holds one unit of its class for one cycle",
        "  - all warps start in cycle 0; a warp executes at most one instruction per cycle, in program order",
        "  - the scheduler is work-conserving in every class",
    ]


@pytest.mark.parametrize("columns", [40, 75])
def test_the_report_is_as_wide_as_the_terminal(columns: int, solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, *lines = solve("--string", "CLLCLL", "--warps", 2, "--machine", "pascal-gp100").out.splitlines()
    assert max(map(len, lines)) in range(columns - 12, columns + 1)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ("--string", "CLLCLL", "--warps", 2),
            ["exact if every instruction takes one cycle: the worst case is 10 cycles"],
        ),
        (
            ("--string", "CLLCLL", "--warps", 2, "--deadline", "12cycles"),
            [
                "exact if every instruction takes one cycle: the worst case is 10 cycles",
                "deadline met if every instruction takes one cycle: 12 cycles, with 2 to spare",
            ],
        ),
        (("--string", "CLLCLL", "--warps", "1..3"), ["3 results if every instruction takes one cycle: 3 exact"]),
        (
            (ROOT / "ptx" / "vecadd.ptx", "--block", 256, "--gantt", "v.json", "--bundle", "w.json"),
            ["exact for the PTX as written, if every instruction takes one cycle: the worst case is 140 cycles"],
        ),
    ],
)
def test_quiet_leaves_the_verdict(
    arguments: Sequence[object], lines: list[str], solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = solve(*arguments, "--quiet")
    assert (done.code, done.out.splitlines(), done.err) == (0, lines, "")
    assert {path.name for path in tmp_path.iterdir()} == ({"v.json", "w.json"} if "--gantt" in arguments else set())


def test_quiet_is_about_text(solve: Runner) -> None:
    done = solve("--string", "CL", "--warps", 2, "-q", "--format", "json")
    assert (done.code, done.out) == (2, "")
    assert "--quiet leaves the verdict of a text: leave out --format" in done.err


# What a verdict says of the machine and the source

KERNEL = (ROOT / "ptx" / "divergent.ptx", "--warps", 2)
SLOW = "[units]\nC = { capacity = 1, latency = 4 }\nL = { capacity = 1, latency = [20, 30] }\n"
HALF = "[units]\nC = { capacity = 1, interval = 2 }\nL = { capacity = 1 }\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--string", "CL", "--warps", 2), "if every instruction takes one cycle"),
        (("--string", "CL", "--warps", 2, "--capacity", "C=2,L=1"), "if every instruction takes one cycle"),
        (("--string", "CL", "--warps", 2, "--machine", "half.toml"), "if every latency is one cycle"),
        (("--string", "CL", "--warps", 2, "--machine", "slow.toml"), ""),
        (
            ("--string", "C", "--warps", 5, "--machine", "pascal-gp100"),
            "for a whole SM without its partitions, although lapses are left out, "
            "if the unknown latencies of pascal-gp100 (C, L, S, D) were one cycle",
        ),
        (KERNEL, "for the PTX as written, if every instruction takes one cycle"),
        ((*KERNEL, "--machine", "slow.toml"), "for the PTX as written"),
        ((*KERNEL, "--machine", "slow.toml", "--scheduler", "fair"), "for the PTX as written, for a fair scheduler"),
        (("--string", "CL", "--warps", 2, "--machine", "fair.toml"), "for a fair scheduler"),
        (("--string", "CL", "--warps", 2, "--machine", "fair.toml", "--scheduler", "any"), ""),
        (
            (*KERNEL, "--take", "S=fall"),
            "for the PTX as written, for this path only, if every instruction takes one cycle",
        ),
        ((*KERNEL, "--take", "S=fall", "--machine", "slow.toml"), "for the PTX as written, for this path only"),
        (("one.jsonl",), "if every instruction takes one cycle"),
    ],
)
def test_a_verdict_says_under_which_conditions_its_number_holds(
    arguments: Sequence[object], said: str, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.toml").write_text(SLOW)
    Path("half.toml").write_text(HALF)
    Path("fair.toml").write_text(f'scheduler = "fair"\n{SLOW}')
    Path("one.jsonl").write_text(GOOD)
    verdict = solve(*arguments).out.splitlines()[0]
    assert verdict.partition(": the worst case is")[0] in (f"exact {said}".strip(), f"bounded {said}".strip())
    (document,) = solve(*arguments, "--format", "json").documents()
    assert ", ".join(document["caveats"]) == said
    rows = solve(*arguments, "--warps", "2..3").out.splitlines() if "one.jsonl" not in arguments else []
    assert all(row.startswith(f"2 results {said}".strip() + ":") for row in rows[-1:])


def test_a_range_of_warps_gives_a_curve(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", "1..8", "--format", "json")
    assert [document["upper"] for document in done.documents()] == [6, 10, 14, 18, 22, 26, 30, 34]
    assert [document["warps"] for document in done.documents()] == list(range(1, 9))
    head, *rows, foot = solve("--string", "CLLCLL", "--warps", "1..8").out.splitlines()
    assert head == "warps     worst case  status        M^L + M^C  above, %  at most by"
    assert rows[1] == "    2             10  exact                12      20.0  theorem-e"
    assert (len(rows), foot) == (8, "8 results if every instruction takes one cycle: 8 exact")


def test_a_curve_looks_as_that_of_compare(solve: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    curve = solve("--string", "CLLCLL", "--warps", "1..3", "--best-case").out.splitlines()
    assert cli.run(["compare", "--string", "CLLCLL", "--warps", "1..3", "--best-case"]) == 0
    assert capsys.readouterr().out.splitlines()[2:6] == curve[:4]


def test_the_pessimistic_bound_has_its_name_for_two_classes_only(solve: Runner) -> None:
    done = solve("--string", "CLS", "--warps", 3, "--capacity", "C=1,L=1,S=1")
    assert "M^L" not in done.out
    assert "pessimistic bound          9  what each class needs alone, added up; 80.0 % above" in done.out
    head, *_ = solve("--string", "CLS", "--warps", "1..2", "--capacity", "C=1,L=1,S=1").out.splitlines()
    assert "M^L" not in head
    assert "pessimistic bound" in head


def test_csv_has_a_header_and_a_row_per_count(solve: Runner) -> None:
    done = solve("--string", "CLLCLL", "--warps", "1..3", "--format", "csv", "--best-case")
    header, *rows = [line.split(",") for line in done.out.splitlines()]
    assert header == ["warps", "status", "lower", "upper", "pessimistic", "best_case", "backend", "seconds"]
    assert [row[:7] for row in rows] == [
        ["1", "exact", "6", "6", "6", "6", "certificate"],
        ["2", "exact", "10", "10", "12", "9", "certificate"],
        ["3", "exact", "14", "14", "18", "13", "certificate"],
    ]


def test_json_lines_give_one_result_a_line_in_order(solve: Runner, tmp_path: Path) -> None:
    groups = f'{{"groups": [{{"string": "CCC", "warps": 2}}, {{"string": "L", "warps": 1}}], {UNITS}, "name": "mix"}}'
    done = solve(instance_file(tmp_path, GOOD, "", groups, GOOD), "--format", "json")
    assert done.code == 0
    first, second, third = done.documents()
    assert [d["upper"] for d in (first, second, third)] == [10, 6, 10]
    assert (first["expected"], "name" in first, second["name"], second["string"]) == (10, False, "mix", None)
    assert second["groups"] == [{"program": "CCC", "warps": 2}, {"program": "L", "warps": 1}]


def test_toml_gives_one_row_per_instance_in_order(solve: Runner) -> None:
    done = solve(ROOT / "instruction_strings" / "paper.toml")
    assert done.code == 0
    head, *rows, foot = done.out.splitlines()
    assert len(rows) == 13
    assert head.split()[-1] == "name"
    assert rows[0].split() == ["1", "6", "exact", "6", "0.0", "pessimistic", "CLLCLL,", "1", "warp"]
    assert rows[-1].split()[:5] == ["48", "915", "exact", "1056", "15.4"]
    assert foot == "13 results if every instruction takes one cycle: 13 exact"


def test_one_instance_of_a_file_is_as_if_it_were_alone(solve: Runner) -> None:
    done = solve(ROOT / "instruction_strings" / "paper.toml", "--instance", "CLLCLL, 3 warps", "--quiet")
    assert (done.code, done.out) == (0, "exact if every instruction takes one cycle: the worst case is 14 cycles\n")
    for elsewhere in (["--string", "C", "--warps", 1], ["--string", "C", "--warps", 1, "--grid", 1, "--sms", 1]):
        refused = solve(*elsewhere, "--instance", 2)
        assert (refused.code, refused.out) == (2, "")
        assert "--instance 2 is for a file of instances" in refused.err


@pytest.mark.parametrize("kind", ["jsonl", "toml"])
def test_a_dash_reads_instances_from_standard_input(kind: str, solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD if kind == "jsonl" else '[[instance]]\nstring = "CLLCLL"\nwarps = 2\ncapacity = { C = 1, L = 1 }\n'
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))
    done = solve("-", "--input-format", kind, "--format", "json")
    assert done.documents()[0]["upper"] == 10


def test_a_machine_is_known_by_name_or_file(solve: Runner, tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text("[units]\nC = { capacity = 2 }\nL = { capacity = 1 }\n")
    (wide,) = solve("--string", "CC", "--warps", 3, "--machine", file, "--format", "json").documents()
    assert (wide["machine"], wide["upper"]) == ("wide", 4)
    (paper,) = solve("--string", "CC", "--warps", 3, "--machine", "paper", "--format", "json").documents()
    assert (paper["machine"], paper["upper"]) == ("paper", 6)


def test_the_backend_is_the_one_that_was_asked_for(solve: Runner) -> None:
    (document,) = solve("--string", "CLLCLL", "--warps", 3, "--backend", "search", "--format", "json").documents()
    assert document["backend"] == "search"
    assert document["upper"] == 14


# An expected value


@pytest.mark.parametrize(("expected", "code"), [(10, 0), (9, 1), (11, 1)])
def test_an_expected_value_that_differs_is_exit_1(expected: int, code: int, solve: Runner, tmp_path: Path) -> None:
    wrong = f'{{"string": "CLLCLL", "warps": 2, {UNITS}, "makespan": {expected}}}'
    done = solve(instance_file(tmp_path, GOOD, wrong))
    assert done.code == code
    assert (f"EXPECTED {expected}" in done.out) == (code == 1)
    single = solve(instance_file(tmp_path, wrong))
    assert single.code == code
    assert (f"EXPECTED {expected}" in single.out) == (code == 1)


def test_an_expected_value_within_a_wider_interval_is_not_contradicted(solve: Runner, tmp_path: Path) -> None:
    line = f'{{"string": "{HARD[1]}", "warps": 12, "capacity": {{"C": 2, "L": 1}}, "makespan": 198}}'
    assert solve(instance_file(tmp_path, line), "--backend", "search", "--time-limit", "0.01").code == 3


# Bounded, interrupted


@pytest.mark.parametrize("output", ["text", "json", "csv"])
def test_out_of_time_is_exit_3_with_a_proven_interval(output: str, solve: Runner) -> None:
    done = solve(*HARD, "--backend", "search", "--time-limit", "0.01", "--best-case", "--format", output)
    assert (done.code, done.err) == (3, "")
    if output == "json":
        (document,) = done.documents()
        assert document["status"] == "bounded"
        assert document["lower"] < document["upper"] <= document["pessimistic"]
        assert document["best_case"][0] <= document["best_case"][1] <= document["lower"]


def test_one_bounded_result_in_a_curve_is_exit_3(solve: Runner) -> None:
    assert solve(*HARD[:2], "--warps", "1..12", *HARD[4:], "--backend", "search", "--time-limit", "0.1").code == 3


def test_the_memory_limit_ends_a_search_with_bounds(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "elapsed", 0.0)  # the time limit is never reached
    done = solve(*HARD, "--backend", "search", "--memory-limit", "1MB")
    assert (done.code, done.err.splitlines()[-1]) == (3, SHORT)
    assert SHORT not in solve(*HARD, "--backend", "search", "--memory-limit", "1MB", "--quiet").err


def test_a_memory_limit_that_lets_no_search_begin_is_told(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "elapsed", 0.0)
    done = solve(*HARD, "--backend", "search", "--memory-limit", "1KiB")
    assert (done.code, done.err.splitlines()[-1]) == (3, SHORT)
    assert SHORT not in solve(*CL2, "--memory-limit", "1KiB").err


def test_an_answer_that_nobody_reads_is_none() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("solve", "--string", "CL", "--warps", "1..3", "--deadline", "2cycles", stdout=writing)
    os.close(writing)
    assert (done.code, done.err) == (141, "")


def test_a_lack_of_memory_is_one_line(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.cli.solve.solve", Mock(side_effect=MemoryError))
    assert solve("--string", "CL", "--warps", 2) == Outcome(2, "", "makespan: not enough memory for this input\n")


def test_who_is_terminated_prints_the_interval_and_is_exit_143() -> None:
    command = [sys.executable, "-m", "makespan", "solve", *HARD, "--format", "json", "--backend", "search"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline()  # it is under way
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=600)
    done = Outcome(running.returncode, out, err)
    assert done.code == 143
    (document,) = done.documents()
    assert document["interrupted"] is True
    assert document["status"] == "bounded"
    assert done.err.splitlines()[-1] == "interrupted: finishing with the bounds so far (again to abort)"


# Bad input: one line on stderr, exit 2, nothing on stdout

CL = ("--string", "CL")
CL2 = (*CL, "--warps", "2")
BAD_USAGE: dict[str, tuple[Sequence[str], str]] = {
    "no source": (
        (),
        "what is to be solved? give SOURCE, a kernel or a file of instances, or --string LETTERS (see 'makespan ",
    ),
    "two sources": (
        ("x.ptx", *CL2),
        "SOURCE (x.ptx) and --string exclude each other: give one of them (see 'makespan solve",
    ),
    "missing toml": (("missing.toml",), "missing.toml: cannot read the file of instances: No such file or directory"),
    "missing jsonl": (
        ("missing.jsonl",),
        "missing.jsonl: cannot read the file of instances: No such file or directory",
    ),
    "missing ptx": (("missing.ptx", "--warps", "2"), "missing.ptx"),
    "no suffix": (
        ("missing", "--warps", "2"),
        "unknown kind of file; expected .ptx, .cu, .cubin, .fatbin, .toml or .jsonl",
    ),
    "cuda": (("k.cu", "--warps", "2"), "k.cu: cannot read the CUDA source: No such file or directory"),
    "dash without format": (("-",), "SOURCE '-' needs --input-format ptx|toml|jsonl"),
    "format of a file": (("k.jsonl", "--input-format", "toml"), "--input-format is for SOURCE '-'"),
    "no warps": (CL, "--warps is missing: how many warps run?"),
    "no warps at all": ((*CL, "--warps", "0"), "0 must be a number or a rising range within 1..65536"),
    "negative warps": ((*CL, "--warps", "-1"), "'-1' is neither a number of warps nor a range"),
    "huge warps": ((*CL, "--warps", "9" * 20), f"'{'9' * 20}' is neither a number of warps nor a range"),
    "too many warps": ((*CL, "--warps", "65537"), "65537 must be a number or a rising range within 1..65536"),
    "fraction of warps": ((*CL, "--warps", "1.5"), "'1.5' is neither a number of warps nor a range"),
    "falling range": ((*CL, "--warps", "3..2"), "3..2 must be a number or a rising range within 1..65536"),
    "range from zero": ((*CL, "--warps", "0..2"), "0..2 must be a number or a rising range within 1..65536"),
    "open range": ((*CL, "--warps", "2.."), "'2..' is neither a number of warps nor a range"),
    "other digits": ((*CL, "--warps", "²"), "'²' is neither a number of warps nor a range"),
    "too much work": (
        ("--string", "C" * 1000, "--warps", "60000"),
        "60000 warps with 60000000 instructions in all exceed",
    ),
    "negative capacity": ((*CL2, "--capacity", "C=-1"), "capacity of C must be 1..1024, not -1"),
    "no capacity": ((*CL2, "--capacity", "C=0,L=1"), "capacity of C must be 1..1024, not 0"),
    "large capacity": ((*CL2, "--capacity", "C=1025,L=1"), "capacity of C must be 1..1024, not 1025"),
    "other classes": ((*CL2, "--capacity", "X=1"), "'C' at position 1 is no unit class of machine 'custom'; use X"),
    "class left out": ((*CL2, "--capacity", "C=1"), "'L' at position 2 is no unit class of machine 'custom'; use C"),
    "class twice": ((*CL2, "--capacity", "C=1,C=2"), "class C is given twice"),
    "capacity as float": ((*CL2, "--capacity", "C=1e9"), "'C=1e9' is not CLASS=NUMBER, such as C=1"),
    "capacity of 20 digits": ((*CL2, "--capacity", "C=" + "9" * 20), "is not CLASS=NUMBER, such as C=1"),
    "garbage capacity": ((*CL2, "--capacity", "garbage"), "'garbage' is not CLASS=NUMBER, such as C=1"),
    "empty capacity": ((*CL2, "--capacity", ""), "'' is not CLASS=NUMBER, such as C=1"),
    "small letter": ((*CL2, "--capacity", "c=1"), "a unit class is one capital letter A-Z, not 'c'"),
    "long class": ((*CL2, "--capacity", "CORE=1"), "a unit class is one capital letter A-Z, not 'CORE'"),
    "other letters": (
        ("--string", "CLX", "--warps", "2"),
        "'X' at position 3 is no unit class of machine 'paper'; use C, L",
    ),
    "small letters": (("--string", "cl", "--warps", "2"), "'c' at position 1 is no unit class"),
    "new line": (("--string", "C\nX", "--warps", "2"), "'X' at position 2 is no unit class"),
    "empty string": (("--string", "", "--warps", "2"), "the instruction string is empty"),
    "blank string": (("--string", " ", "--warps", "2"), "the instruction string is empty"),
    "no time": ((*CL2, "--time-limit", "0"), "0 must be positive and finite"),
    "negative time": ((*CL2, "--time-limit", "-1"), "-1 must be positive and finite"),
    "no number of seconds": ((*CL2, "--time-limit", "nan"), "nan must be positive and finite"),
    "endless": ((*CL2, "--time-limit", "inf"), "inf must be positive and finite"),
    "time in words": ((*CL2, "--time-limit", "soon"), "'soon' is not a number of seconds"),
    "no memory": ((*CL2, "--memory-limit", "0"), "'0' is not a size such as 8GiB"),
    "odd memory": ((*CL2, "--memory-limit", "8GB/s"), "'8GB/s' is not a size such as 8GiB"),
    "unknown backend": ((*CL2, "--backend", "gurobi"), "'gurobi' is not one of 'auto', 'certificate', 'search'"),
    "unknown format": ((*CL2, "--format", "xml"), "'xml' is not one of 'text', 'json', 'csv'"),
    "unknown option": ((*CL2, "--nope"), "No such option '--nope' (see "),
    "misspelt option": ((*CL2, "--warp", "2"), "No such option '--warp'; did you mean '--warps'? (see "),
    "misspelt backend": ((*CL2, "--backend", "serach"), "'ilp'; did you mean 'search'? (see "),
    "more blocks than the grid": (
        (str(ROOT / "ptx" / "vecadd.ptx"), "--block", "64", "--grid", "2", "--blocks-per-sm", "3"),
        "--blocks-per-sm 3: the grid has only 2 blocks",
    ),
    "unknown machine": ((*CL2, "--machine", "nope"), "unknown machine 'nope'; shipped: "),
    "missing machine": ((*CL2, "--machine", "no.toml"), "no.toml: cannot read the machine file: No such file"),
    "two machines": ((*CL2, "--machine", "paper", "--capacity", "C=1"), "--capacity and --machine exclude each other"),
    "latency of a string": (
        (*CL2, "--latency", "global=9"),
        "--latency and --dependences are for kernels; in a string write what an instruction needs, and its latency,"
        " behind its letter, such as L()@400..900 C(1)",
    ),
    "kernel option": ((*CL2, "--kernel", "k"), "--string takes no options for kernels"),
}


def refused(done: Outcome, message: str) -> bool:
    """Whether `done` is one line that says `message`, exit code 2, and nothing else."""
    line = done.err.removesuffix("\n")
    assert message in line
    assert line.startswith("makespan: ")
    assert "\n" not in line
    assert "Traceback" not in line
    return (done.code, done.out) == (2, "")


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_one_line_and_exit_2(
    case: str, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD_USAGE[case]
    assert refused(solve(*arguments), message)


@pytest.mark.parametrize("case", ["other letters", "huge warps", "missing jsonl", "empty string"])
def test_bad_usage_of_the_process_is_one_line_and_exit_2(case: str, tmp_path: Path) -> None:
    arguments, message = BAD_USAGE[case]
    assert refused(process("solve", *arguments, cwd=tmp_path), message)


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_json_when_json_is_asked_for(
    case: str, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD_USAGE[case]
    done = solve("--format=json", *arguments)
    error = json.loads(done.err)
    assert (done.code, done.out) == (2, "")
    assert message in error["error"]
    assert error["exit_code"] == 2
    assert error["details"] == []


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty jsonl": ("a.jsonl", b"", "a.jsonl: no instance in it"),
    "empty toml": ("a.toml", b"", "a.toml: no instance in it"),
    "binary jsonl": ("a.jsonl", bytes(range(256)), "a.jsonl: cannot read the file of instances: it is not UTF-8 text"),
    "binary toml": ("a.toml", bytes(range(256)), "a.toml: cannot read the file of instances: it is not UTF-8 text"),
    "zeros": ("a.jsonl", bytes(100), "a.jsonl:1: not an instance"),
    "unknown field": ("a.jsonl", GOOD[:-1].encode() + b', "bogus": 1}', "Object contains unknown field `bogus`"),
    "deep arrays": ("a.jsonl", b"[" * 100_000, "a.jsonl:1: not an instance"),
    "deep objects": ("a.jsonl", b'{"string":' * 100_000, "a.jsonl:1: not an instance"),
    "deep toml": ("a.toml", b"x = " + b"[" * 100_000, "a.toml: not a TOML instance file"),
    "bad last line": ("a.jsonl", GOOD.encode() + b"\n" + GOOD.encode() + b"\noops\n", "a.jsonl:3: not an instance"),
    "bad capacity": ("a.jsonl", b'{"string": "C", "warps": 1, "capacity": {"C": -1}}', "a.jsonl:1: capacity of C"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_before_anything_is_solved(
    case: str, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, content, message = BAD_FILES[case]
    Path(name).write_bytes(content)
    assert refused(solve(name), message)


@pytest.mark.parametrize("content", [b"", bytes(range(256))], ids=["empty", "binary"])
def test_a_kernel_file_that_is_none_is_refused(
    content: bytes, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ptx").write_bytes(content)
    assert refused(solve("a.ptx", "--warps", 2), "a.ptx")


def test_a_directory_is_no_source(solve: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert refused(solve(folder), "cannot read the file of instances: Is a directory")


@pytest.mark.parametrize(
    "option",
    [("--warps", "3"), ("--capacity", "C=1,L=1"), ("--machine", "paper"), ("--string", "CL"), ("--kernel", "k")],
)
@pytest.mark.parametrize("name", ["some.jsonl", "some.toml"])
def test_an_instance_file_says_everything_itself(
    name: str, option: Sequence[str], solve: Runner, tmp_path: Path
) -> None:
    assert solve(instance_file(tmp_path, GOOD, name=name), *option).code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a table [units] such as C = { capacity = 1 }"),
        ("= =", "not a TOML machine file"),
        ("[units]\nC = { capacity = 0 }", "capacity of C must be 1..1024, not 0"),
        ("[units]\nC = { capacity = 1, speed = 1 }", "unknown key 'speed'"),
        ("[units]\nC = { capacity = 1 }", "'L' at position 2 is no unit class of machine 'some'"),
    ],
)
def test_a_machine_file_that_is_none_is_refused(text: str, message: str, solve: Runner, tmp_path: Path) -> None:
    assert refused(solve(*CL2, "--machine", instance_file(tmp_path, text, name="some.toml")), message)


# The group


def test_an_unknown_command_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for name, hint in {
        "magic": "",
        "slove": "; did you mean 'solve'?",
        "k.ptx": "; for a file: makespan solve k.ptx",
        "gpus": " any more: it is 'makespan machines --gpus'",
        "bounds-template": " any more: it is 'makespan strings --bounds-template'",
        "validate": " any more: it is 'makespan measure validate'",
        "microbench": " any more: it is 'makespan measure'",
    }.items():
        assert cli.run([name]) == 2
        assert capsys.readouterr().err == f"makespan: no such command {name!r}{hint} (see 'makespan --help')\n"


def test_no_command_is_the_help_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty variable in a script must not look like an answer."""
    assert cli.run([]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.startswith("Usage: makespan")
    assert "worst-case makespan with proof" in done.err


def test_a_machine_that_is_nearly_known_is_named(solve: Runner) -> None:
    done = solve(*CL2, "--machine", "turin")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("makespan: unknown machine 'turin'; did you mean 'turing'? shipped: ada, ")


@pytest.mark.parametrize(
    ("option", "name", "meant"),
    [
        ("--gpu", "h100", "'h100-pcie' or 'h100-sxm'"),  # and no h200, which is as near by its letters
        ("--gpu", "a100", "'a100-pcie' or 'a100-sxm'"),
        ("--gpu", "V100", "'v100-pcie' or 'v100-sxm'"),
        ("--gpu", "rtx3070", "'rtx-3070'"),
        ("--gpu", "RTX 3070", "'rtx-3070'"),
        ("--gpu", "8800", "'8800gt' or '8800gtx'"),
        ("--gpu", "rtx-4900", "'rtx-4090'"),
        ("--machine", "blackwell-gb100x", "'blackwell-gb100'"),
        ("--machine", "kepler", "'kepler-gk104' or 'kepler-gk110'"),
        ("--machine", "ampere", "'ampere-ga100' or 'ampere-ga10x'"),
    ],
)
def test_a_name_that_begins_like_others_means_those(option: str, name: str, meant: str, solve: Runner) -> None:
    done = solve(*CL2, option, name)
    what = "GPU" if option == "--gpu" else "machine"
    assert done.err.startswith(f"makespan: unknown {what} {name!r}; did you mean {meant}? shipped: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "arguments", [["solve", *CL2], ["--help"], ["solve", "--string", "CL", "--warps", "1..3", "--format", "csv"]]
)
def test_an_output_that_takes_nothing_is_one_line_and_exit_2(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = process(*arguments, stdout=full)
    assert (done.code, done.err) == (2, "makespan: cannot write to standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("arguments", "code"), [(["solve", *CL2], 0), (["solve", "--string", "CX", "--warps", "2"], 2)]
)
def test_an_error_that_nobody_can_be_told_keeps_its_exit_code(arguments: list[str], code: int) -> None:
    with Path("/dev/full").open("w") as full:
        assert process(*arguments, stdout=full if code else None, stderr=full).code == code


def test_a_failure_of_a_file_is_no_failure_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_command, "solve", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        cli.run(["solve", *CL2])


def test_a_picture_needs_no_folder_for_the_cache_of_its_library(tmp_path: Path) -> None:
    environment = {**os.environ, "MPLCONFIGDIR": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    done = process("solve", *CL2, "--gantt", str(tmp_path / "a.svg"), "--quiet", env=environment)
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "a.svg").stat().st_size > 0


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"]])
def test_help_and_version_are_exit_0_on_standard_output(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 0
    done = capsys.readouterr()
    assert "makespan" in done.out
    assert done.err == ""


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"]])
def test_help_imports_no_heavy_library(arguments: list[str]) -> None:
    heavy = {"numpy", "matplotlib", "ortools", "numba", "networkx", "lark", "pulp", "pandas", "jinja2"}
    code = f"import sys, makespan.cli as c; c.run({arguments}); print('loaded:', *sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded:"]


def test_a_shell_completes_commands_from_the_table_without_loading_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = ShellComplete(cli.cli, {}, "makespan", "_MAKESPAN_COMPLETE")
    assert "--deadline" in [item.value for item in shell.get_completions(["solve"], "--dead")]
    monkeypatch.setattr("makespan.cli.lazy.import_module", None)
    begun = shell.get_completions([], "s")
    assert {item.value: item.help for item in begun} == {
        row.name: row.about for row in cli.COMMANDS if row.name.startswith("s")
    }
    assert "--version" in [item.value for item in shell.get_completions([], "--v")]


def test_a_contradiction_between_our_own_proofs_is_exit_70(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_command, "solve", Mock(side_effect=BrokenPromiseError("not an interval: 3..2 cycles")))
    done = solve(*CL2)
    assert done.code == 70
    assert done.err == "makespan: internal contradiction, please report it: not an interval: 3..2 cycles\n"


def test_a_second_interrupt_aborts_with_exit_130(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_command, "solve", Mock(side_effect=KeyboardInterrupt))
    done = solve(*CL2)
    assert (done.code, done.out) == (130, "")
    assert done.err.endswith("makespan: interrupted\n")


def test_a_bug_is_a_traceback_and_exit_70(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(solve_command, "solve", Mock(side_effect=ZeroDivisionError("by hand")))
    with pytest.raises(SystemExit) as stopped:
        cli.main(["solve", *CL2])
    assert stopped.value.code == 70
    done = capsys.readouterr()
    assert "ZeroDivisionError: by hand" in done.err
    assert done.err.splitlines()[-1].startswith("makespan: this is a bug")


def test_what_standard_output_cannot_encode_is_an_escape(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, out = tmp_path / "m.toml", TextIOWrapper(BytesIO(), "latin-1")
    file.write_text('name = "\u2192"\nunits = { C = { capacity = 1 } }\n', "utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["machines", str(file)])
    out.seek(0)
    assert (stopped.value.code, r"\u2192" in out.read()) == (0, True)


def test_no_text_of_an_input_commands_the_terminal(solve: Runner) -> None:
    done = solve("\x1b[31m\udcff\u202e.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(r"makespan: \x1b[31m\udcff\u202e.toml: cannot read the file of instances: ")


def test_the_schema_itself_is_a_schema_and_refuses_less_than_a_result(solve: Runner) -> None:
    (document,) = solve(*CL2, "--format", "json").documents()
    schema = published("result-2")
    for field in schema.schema["required"]:
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({key: value for key, value in document.items() if key != field})


@pytest.mark.parametrize(
    "start", [["-m", "makespan"], ["-c", "import sys; from makespan.cli import run; sys.exit(run(sys.argv[1:]))"]]
)
def test_a_linear_programme_that_is_stopped_does_not_abort_the_process(start: list[str]) -> None:
    string = "CLLCLCCLLCCLC" * 3 + "CCLCLLCLLLLCLCLC" * 2 + "".join("CL"[at * at % 7 % 2] + "C" for at in range(160))
    options = ["--warps", "48", "--capacity", "C=4,L=2", "--backend", "certificate", "--time-limit", "1"]
    done = subprocess.run(
        [sys.executable, *start, "solve", "--string", string, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "terminate" not in done.stderr


def test_a_reader_that_has_had_enough_sees_no_traceback() -> None:
    command = [sys.executable, "-m", "makespan", "solve", "--string", "CLLC", "--warps", "1..60", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert '"status"' in ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == ""
        assert ran.wait(600) in (0, 141)  # 0 if all was written before


def test_letters_stand_beside_the_source_lines_that_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "k.ptx"
    kernel.write_text(
        ".version 8.0\n.target sm_75\n.visible .entry k()\n{\n.loc 1 3 0\nld.u32 a,[b];\nadd.s32 a,a,a;\n"
        '.loc 1 4 0\nadd.s32 a,a,a;\nst.u32 [b],a;\n.loc 1 3 0\nret;\n}\n.file 1 "k.cu"\n'
    )
    strings = Runner("strings", capsys)
    text = strings(kernel).out
    assert text.splitlines()[-4:] == ["  4 instructions (2 C, 2 L)", "  k.cu:3: LC", "  k.cu:4: CL", "  LCCL"]
    told = json.loads(strings(kernel, "--format", "json").out)
    assert [letter["source_line"] for letter in told["letters"]] == ["k.cu:3", "k.cu:3", "k.cu:4", "k.cu:4"]


def test_a_picture_that_cannot_be_written_costs_no_result(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_command, "_draw", Mock(side_effect=InputError("a.png: cannot write the picture")))
    done = solve(*CL2, "--gantt", "a.png")
    assert done.code == 2
    assert "exact if every instruction takes one cycle: the worst case is 3 cycles" in done.out
    assert "a.png: cannot write the picture" in done.err


def test_a_timeline_is_text_about_one_instance(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    done = solve("--string", "CLLCLL", "--warps", 2, "--timeline")
    assert done.out.splitlines()[-2:] == ["warp 0  CLLCLL", "warp 1  -C-L--LCLL"]
    for others in (("--warps", "2", "--format", "json"), ("--warps", "1..2")):
        done = solve("--string", "CLLCLL", "--timeline", *others)
        assert done.code == 2
        assert "--timeline is text about one instance" in done.err


def test_a_picture_of_a_bounded_result_says_that_it_is_no_worst_case(
    solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "part.svg"

    result = solved(Instance.of("CL", 2))
    open_one = replace(result, bounds=Bounds(result.bounds.lower, 12), pessimistic=12)
    monkeypatch.setattr(solve_command, "solve", lambda *_, **__: open_one)
    assert solve(*CL2, "--gantt", picture).code == 3
    assert "a schedule of 3 cycles; at most 12 are proven: 2 x CL" in picture.read_text()
    monkeypatch.undo()
    assert solve(*CL2, "--gantt", picture).code == 0
    assert "are proven" not in picture.read_text()


def test_json_has_the_bound_for_any_units_where_there_are_intervals(solve: Runner, tmp_path: Path) -> None:
    (tmp_path / "half.toml").write_text(HALF)
    machine = "--machine", tmp_path / "half.toml"
    (document,) = solve("--string", "CLLCLL", "--warps", 2, *machine, "--format", "json").documents()
    said = solve("--string", "CLLCLL", "--warps", 2, *machine).out
    assert re.findall(r"^any units +(\d+) ", said, re.MULTILINE) == [str(document["any_units"])]


def test_a_picture_can_show_a_part_of_the_schedule(solve: Runner, tmp_path: Path) -> None:
    picture = tmp_path / "part.svg"
    done = solve("--string", "CLLCLL", "--warps", 2, "--gantt", picture, "--from", 3, "--to", 900)
    assert done.code == 0
    assert "; cycles 3 to 9 of 10" in picture.read_text()
    done = solve("--string", "CLLCLL", "--warps", 2, "--gantt", picture, "--to", 4)
    assert "; cycles 0 to 3 of 10" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "1"], "--from and --to are for a picture: give --gantt with a name in .png, .svg or .pdf"),
        (["--to", "1", "--gantt", "a.json"], "--from and --to are for a picture"),
        (["--from", "5", "--to", "5", "--gantt", "a.png"], "--from 5 --to 5: the picture would have no cycle"),
        (["--to", "0", "--gantt", "a.png"], "0 is not in the range"),
    ],
)
def test_a_part_that_no_schedule_has_is_refused_before_the_work(
    options: list[str], message: str, solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = solve(*CL2, *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("gate", "code"), [((), 0), (("--deadline", "3cycles"), 0), (("--deadline", "2cycles"), 1)])
def test_a_part_after_the_end_costs_neither_result_nor_bundle_nor_exit_code(
    gate: tuple[str, ...], code: int, solve: Runner, tmp_path: Path
) -> None:
    done = solve(*CL2, *gate, "--gantt", tmp_path / "a.png", "--bundle", tmp_path / "b.json", "--from", 3)
    assert done.code == code
    assert "exact if every instruction takes one cycle: the worst case is 3 cycles" in done.out
    assert done.out.endswith(f"bundle: {tmp_path / 'b.json'}\n")
    assert "picture" not in done.out
    assert done.err == "makespan: --from 3: the schedule has only 3 cycles, numbered from 0; no picture\n"
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.trace.json"])
def test_a_schedule_can_be_had_as_data(name: str, solve: Runner, tmp_path: Path) -> None:
    done = solve(*CL2, "--gantt", tmp_path / name)
    assert done.out.endswith(f"schedule: {tmp_path / name}\n")
    assert (tmp_path / name).stat().st_size > 0
    assert solve(*CL2, "--gantt", tmp_path / "a.txt").code == 2


def test_a_schedule_can_be_had_in_several_files_at_once(solve: Runner, tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.png", "b.svg", "c.csv")]
    done = solve(*CL2, *(word for name in names for word in ("--gantt", name)))
    assert done.out.splitlines()[-3:] == [f"picture: {names[0]}", f"picture: {names[1]}", f"schedule: {names[2]}"]
    assert all(name.stat().st_size > 0 for name in names)
    done = solve(*CL2, "--gantt", names[2], "--gantt", names[2])
    assert (done.code, done.err) == (2, f"makespan: {names[2]}: two outputs have this name\n")


def test_a_file_that_fails_costs_no_other(solve: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = solve_command._draw

    def fail(result: Any, path: Path, shown: CycleWindow | None) -> None:
        if path.suffix == ".png":
            raise InputError(f"{path}: cannot write the picture")
        draw(result, path, shown)

    monkeypatch.setattr(solve_command, "_draw", fail)
    monkeypatch.chdir(tmp_path)
    done = solve(*CL2, "--gantt", "a.png", "--gantt", "b.csv", "--bundle", "c.json")
    assert (done.code, done.err) == (2, "makespan: a.png: cannot write the picture\n")
    assert {path.name for path in tmp_path.iterdir()} == {"b.csv", "c.json"}
    assert "the worst case is 3 cycles" in done.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_knows_nothing_yet_is_stopped_in_one_line(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr("makespan.cli.machines.shipped_machines", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored, in the background
    try:
        assert cli.run(["machines", "--format", "json"]) == code
    finally:
        signal.signal(signal.SIGINT, before)
    done = capsys.readouterr()
    assert (done.out, json.loads(done.err)) == ("", {"error": "interrupted", "details": [], "exit_code": code})
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_second_signal_aborts_and_the_first_is_told(solve: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(solve_command, "solve", stopped)
    done = solve(*CL2)
    assert (done.code, done.out) == (143, "")
    assert done.err.split("\n") == [
        "interrupted: finishing with the bounds so far (again to abort)",
        "",  # ends the line in which a terminal shows ^C
        "makespan: interrupted",
        "",
    ]


def test_an_interrupt_while_libraries_load_is_one_line_and_exit_130(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    done = process("solve", *CL2, env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=ROOT)
    assert done == Outcome(130, "", "makespan: interrupted\n")


def test_only_the_command_has_a_way_of_its_own_to_be_interrupted() -> None:
    code = "import sys, makespan; print(sys.excepthook is sys.__excepthook__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
