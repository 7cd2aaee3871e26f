"""`makespan compare`: what it prints and writes, what it refuses, and with which exit code."""

import csv
import json
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest

from makespan.many.commands import compare as compare_command
from makespan.model.instance import Instance
from makespan.model.result import Result
from makespan.proof.engines import Limits, solve
from tests.command import Runner

ROOT = Path(__file__).parents[2]
LETTERS = "LLLLCCCCCCCCCLLCCCCCCC"


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_curve_comes_with_its_numbers(compare: Runner, tmp_path: Path) -> None:
    picture, data, document = (tmp_path / f"curve{suffix}" for suffix in (".png", ".csv", ".json"))
    done = compare("--string", LETTERS, "--warps", "1..48", "-o", picture, "-o", data, "-o", document)
    assert done.code == 0
    assert done.err == ""
    assert done.out.splitlines()[:2] == [
        "48 points if every instruction takes one cycle: 48 exact",
        "M^L + M^C is 0.0 to 15.4 % above the worst case",
    ]
    assert done.out.splitlines()[-3:] == [
        f"picture: {picture}",
        f"data: {data}",
        f"data: {document}",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")
    theorem = [22, 41, *(22 * warps - 3 * (warps - 1) for warps in range(3, 49))]
    assert [(int(row["lower"]), int(row["upper"])) for row in rows(data)] == [(cycles, cycles) for cycles in theorem]
    points = json.loads(document.read_text())["points"]
    assert [point["worst_case"]["upper"] for point in points] == theorem
    assert [point["pessimistic"]["value"] for point in points] == [22 * warps for warps in range(1, 49)]


def test_a_heat_map_comes_with_its_table(compare: Runner, tmp_path: Path) -> None:
    data, picture = tmp_path / "map.csv", tmp_path / "map.svg"
    done = compare("--string", "CLLC", "--warps", "1..3", "--vary", "L.latency=1,4..5", "-o", data, "-o", picture)
    assert done.code == 0
    assert "on machine paper (C=1, L=1) with L.latency=1,4,5" in done.out
    assert "worst case in cycles, by warps and latency of L (cycles); A..B: bounded; -: not computed" in done.out
    assert "latency of L (cycles)" in picture.read_text()
    found = {(int(row["warps"]), int(row["value"])): int(row["upper"]) for row in rows(data)}
    assert list(found) == [(warps, value) for warps in (1, 2, 3) for value in (1, 4, 5)]
    assert [found[1, value] for value in (1, 4, 5)] == [4, 10, 12]  # a warp alone waits for its two loads
    for name in ("issue-width", "L", "C.interval"):
        done = compare("--string", "CL", "--warps", "2", "--vary", f"{name}=1..2")
        assert done.code == 0
        assert f"with {name}=1..2" in done.out


def test_a_kernel_is_compared_with_all_its_options(compare: Runner) -> None:
    done = compare(
        ROOT / "ptx" / "fir.ptx",
        "--warps",
        "3..4",
        "--loop-bound",
        "$L__BB0_1=16",
        "--blocks-per-sm",
        "2",
        "--time-limit",
        "1",
    )
    assert done.code in (0, 3)
    assert [line.split()[0] for line in done.out.splitlines()[3:5]] == ["6", "8"]
    assert "assumptions:" in done.out


def test_what_is_only_bounded_is_exit_code_3(compare: Runner, tmp_path: Path) -> None:
    hard = ("--string", "CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", "--warps", "12", "--capacity", "C=2,L=1")
    data = tmp_path / "d.csv"
    done = compare(*hard, "--time-limit", "0.2", "-o", data)
    assert done.code == 3
    (row,) = rows(data)
    assert row["status"] == "bounded"
    assert int(row["lower"]) < int(row["upper"]) <= int(row["pessimistic"])


def test_after_the_total_time_points_stay_unknown(compare: Runner, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    done = compare("--string", "CLLC", "--warps", "1..3", "--total-time-limit", "0.000001", "-o", data)
    assert done.code == 3
    assert done.out.splitlines()[:2] == [
        "3 points if every instruction takes one cycle: 3 not computed",
        "no point was computed",
    ]
    assert {row["status"] for row in rows(data)} == {"not computed"}
    assert {row["upper"] for row in rows(data)} == {""}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_keep_the_points_so_far(
    number: signal.Signals, code: int, compare: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(instance: Instance, *, best_case: bool, limits: Limits) -> Result:
        if instance.warps == 3:
            signal.raise_signal(number)
        return solve(instance, best_case=best_case, limits=limits)

    monkeypatch.setattr("makespan.many.study.comparison.solve", interrupted)
    data, picture = tmp_path / "d.csv", tmp_path / "d.pdf"
    done = compare("--string", "CLLC", "--warps", "1..5", "-o", data, "-o", picture)
    assert done.code == code
    assert "interrupted: finishing with the bounds so far (again to abort)" in done.err
    states = [row["status"] for row in rows(data)]
    assert states[:2] == ["exact", "exact"]
    assert states[2] != "not computed"
    assert states[3:] == ["not computed"] * 2
    assert "(interrupted)" in done.out
    assert picture.read_bytes().startswith(b"%PDF")


def test_a_file_that_fails_costs_neither_the_table_nor_the_other_files(
    compare: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, data = tmp_path / "gone", tmp_path / "d.csv"
    folder.mkdir()

    def removing(instance: Instance, *, best_case: bool, limits: Limits) -> Result:
        folder.rmdir()
        return solve(instance, best_case=best_case, limits=limits)

    monkeypatch.setattr("makespan.many.study.comparison.solve", removing)
    done = compare(*STRING, "--warps", "2", "--best-case", "-o", folder / "p.png", "-o", data)
    assert done.code == 2
    assert done.err == f"makespan: {folder}/p.png: cannot write the picture: No such file or directory\n"
    assert done.out.splitlines()[0] == "1 point if every instruction takes one cycle: 1 exact"
    (row,) = rows(data)
    assert (row["best_lower"], row["lower"], row["pessimistic"]) == (
        "6",
        "6",
        "8",
    )  # four loads after the first C, and a C after the last


STRING = ("--string", "CLLC")
RANGE = (*STRING, "--warps", "1..3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (STRING, "--warps is missing: for which numbers of warps, such as 1..48?"),
        ((*STRING, "--warps", "5..2"), "5..2 must be a number or a rising range within 1..65536"),
        (
            ("--warps", "1..3"),
            "what is to be solved? give SOURCE, a kernel or a file of instances, or --string LETTERS",
        ),
        (("known.toml",), "a comparison needs a kernel or a --string"),
        (("-", "--input-format", "jsonl"), "a comparison needs a kernel or a --string"),
        ((*RANGE, "-o", "figure.jpg"), "must end in .png, .svg, .pdf, .csv or .json"),
        ((*RANGE, "-o", "no/folder/figure.png"), "cannot write the comparison: No such file or directory"),
        ((*RANGE, "-o", "a.csv", "-o", "a.csv"), "a.csv: two outputs have this name"),
        ((*RANGE, "--vary", "X=1..4"), "X: machine 'paper' has no units of class X; it has C, L"),
        ((*RANGE, "--vary", "X.latency=1..4"), "X.latency: machine 'paper' has no units of class X; it has C, L"),
        ((*RANGE, "--vary", "L"), "'L' is not of the kind L=1..4"),
        ((*RANGE, "--vary", "issue-width.latency=1"), "is not of the kind L=1..4"),
        ((*RANGE, "--vary", "L.speed=1..4"), "'L.speed=1..4' is not of the kind L=1..4"),
        ((*RANGE, "--vary", "L=4..1"), "'4..1' is neither a number from 1 nor a rising range such as 1..4"),
        ((*RANGE, "--vary", "L=0..1"), "'0..1' is neither a number from 1 nor a rising range such as 1..4"),
        ((*RANGE, "--vary", "L=1..2,2"), "the values of L must rise"),
        ((*RANGE, "--vary", "L=1..9999999"), "1..9999999 makes more than 10000 values"),
        ((*RANGE, "--vary", "L=1..2000"), "capacity of L must be 1..1024, not 1025"),
        ((*STRING, "--warps", "1..6000", "--vary", "L=1..2"), "12000 points exceed the limit of 10000"),
        ((*RANGE, "--time-limit", "0"), "0 must be positive and finite"),
    ],
)
def test_bad_input_is_one_line_before_any_work(
    arguments: tuple[str, ...],
    message: str,
    compare: Runner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare_command, "compute_points", Mock(side_effect=AssertionError("work was begun")))
    monkeypatch.chdir(tmp_path)
    done = compare(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_quiet_leaves_the_verdict(compare: Runner) -> None:
    done = compare("--string", "CLLC", "--warps", "1..3", "--quiet")
    assert done.out.splitlines() == [
        "3 points if every instruction takes one cycle: 3 exact",
        "M^L + M^C is 0.0 to 50.0 % above the worst case",
    ]


def test_what_is_varied_is_no_reason_to_forget_a_condition(compare: Runner) -> None:
    unknown = "for a whole SM without its partitions, although lapses are left out, "
    unknown += "if the unknown latencies of pascal-gp100 (C, L, S, D) were one cycle"
    done = compare("--string", "CLLC", "--warps", 2, "--machine", "pascal-gp100", "--vary", "C=1..2", "--quiet")
    assert done.out.startswith(f"2 points {unknown}: ")
    done = compare("--string", "CLLC", "--warps", 2, "--vary", "C.latency=1..2", "--quiet")
    assert done.out.startswith("2 points: ")
