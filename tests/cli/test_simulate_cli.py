"""`makespan simulate`: what it prints and draws, what it refuses, and with which exit code."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from makespan.cli.running import BUG, INTERRUPTED
from makespan.host.errors import BrokenPromiseError
from makespan.many.commands import simulate as simulate_command
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.result import Bounds, Result
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, run
from makespan.proof.engines import Limits, solve
from makespan.proof.policy_gap import PolicyGap, enclosing
from makespan.report import policy_gap
from makespan.report.policy_gap import draw_policy_gap, gap_summary, gap_table
from tests.command import Runner

ROOT = Path(__file__).parents[2]
HARD = ("--string", "CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", "--warps", "12", "--capacity", "C=2,L=1")


def gap_of(instance: Instance, seconds: float = 60.0) -> PolicyGap:
    """The table of all policies."""
    result = solve(instance, best_case=True, limits=Limits(seconds))
    return enclosing(result, {policy: run(instance, policy) for policy in POLICIES})


def test_one_policy_prints_its_statistics(simulate: Runner) -> None:
    done = simulate("--string", "LC", "--warps", 2, "--policy", "oldest")
    assert done.code == 0
    assert done.err == ""
    assert done.out.splitlines() == [
        "simulated if every instruction takes one cycle: 3 cycles under oldest, in one run; this is not a bound",
        "2 x LC on machine paper (C=1, L=1)",
        "policy oldest: the smallest number first",
        "runs with seed 0, fetch groups of 8",
        "cycles                             3",
        "  with 1 issue                     2   66.7 %",
        "  with 2 issues                    1   33.3 %",
        "port-cycles                        6",
        "  C held                           2   66.7 %  2 instructions",
        "  L held                           2   66.7 %  2 instructions",
        "warp-cycles                        6",
        "  issuing                          4   66.7 %",
        "  waiting for a port of L          1   16.7 %",
        "  finished                         1   16.7 %",
    ]


def test_all_policies_stand_between_best_and_worst_case(simulate: Runner) -> None:
    done = simulate("--string", "CLLCLL", "--warps", 2)
    assert done.code == 0
    rows = [line.split()[:2] for line in done.out.splitlines() if line.endswith("one run, not a bound")]
    assert {name for name, _ in rows} == set(POLICIES)
    assert all(9 <= int(cycles) <= 10 for _, cycles in rows)
    assert "worst case      10        100.0  every work-conserving scheduler; at most 10 by theorem-e" in done.out
    assert done.out.splitlines()[0] == "exact if every instruction takes one cycle: the worst case is 10 cycles"


def test_a_worst_case_that_is_not_exact_is_exit_3(simulate: Runner) -> None:
    done = simulate(*HARD, "--time-limit", "0.05", "--format", "json")
    document = json.loads(done.out)
    assert done.code == 3
    assert document["result"]["lower"] < document["result"]["upper"]
    for found in document["runs"]:
        assert document["result"]["lower"] >= found["makespan"]
        assert found["is_bound"] is False


def test_the_json_of_one_run_adds_up(simulate: Runner) -> None:
    done = simulate(
        "--string", "CL|LC", "--warps", 3, "--policy", "two-level", "--group-size", 2, "--format", "json",
        "--ranges", "random", "--seed", 7, "--route", "first", "--blocks-per-sm", 2,
    )  # fmt: skip
    document = json.loads(done.out)
    ways = document["warp_cycles"]
    total = sum(value for value in ways.values() if isinstance(value, int)) + sum(ways["waiting_for_ports"].values())
    assert done.code == 0
    assert document["schema"] == "makespan.simulation/1"
    assert document["choices"] == {
        "latency": "random", "route": "first", "seed": 7, "group_size": 2, "intervals": "most", "assignment": "modulo",
    }  # fmt: skip
    assert document["blocks"] == 2
    assert total == 6 * document["makespan"]
    assert document["is_bound"] is False


SM = """
name = "sm"
partitions = 2
[issue]
width = 1
[resources.lsu]
capacity = 1
shared = true
[units.C]
capacity = 1
[units.L]
capacity = 1
latency = [2, 6]
uses = { lsu = [1, 3] }
"""


def test_warps_that_run_ahead_in_partitions_are_simulated_and_enclosed(simulate: Runner, tmp_path: Path) -> None:
    (tmp_path / "sm.toml").write_text(SM)
    question = ("--string", "L()C()C(1)", "--warps", 2, "--machine", tmp_path / "sm.toml")
    done = simulate(*question, "--policy", "gty")
    assert done.code == 0
    assert done.out.splitlines()[0] == "simulated: 10 cycles under gty, in one run; this is not a bound"
    assert "runs with latency: most, intervals: most, partitions: modulo, seed 0, fetch groups of 8" in done.out
    assert "  lsu held                         6   60.0 %  2 instructions" in done.out
    assert "  waiting for lsu                  3   15.0 %" in done.out
    done = simulate(*question, "--policy", "lrr", "--quiet", "--intervals", "least", "--assignment", "random")
    assert done.out == "simulated: 8 cycles under lrr, in one run; this is not a bound\n"
    document = json.loads(simulate(*question, "--format", "json").out)
    assert {found["makespan"] for found in document["runs"]} == {10}
    assert document["result"]["lower"] == document["result"]["upper"] >= 10


def test_a_range_has_a_row_for_each_number_of_warps(simulate: Runner) -> None:
    done = simulate("--string", "CLLCLL", "--warps", "1..3", "--policy", "gto")
    assert done.out.splitlines() == [
        "warps         cycles  policy, one run each; this is not a bound",
        "    1              6  gto",
        "    2             10  gto",
        "    3             14  gto",
    ]
    done = simulate("--string", "CLLCLL", "--warps", "1..2", "--policy", "gto", "--format", "csv")
    assert done.out.splitlines() == [
        "warps,name,kind,least,most,evidence", "1,gto,run,6,6,one run", "2,gto,run,10,10,one run",
    ]  # fmt: skip


def test_the_csv_of_all_says_what_is_proven(simulate: Runner) -> None:
    lines = simulate("--string", "CLLCLL", "--warps", 2, "--format", "csv").out.splitlines()
    assert lines[1] == "2,best case,proven,9,9,"
    assert lines[-2:] == ["2,worst case,proven,10,10,theorem-e", "2,M^L + M^C,bound,12,12,pessimistic"]
    assert {line.split(",")[2] for line in lines[2:-2]} == {"run"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "all", "--gantt", "a.png"], "--gantt draws the run of one policy: give --policy lrr|gto"),
        (["--policy", "lrr", "--plot", "a.png"], "--plot draws the table of --policy all; --gantt draws the run of"),
        (["--plot", "a.txt"], "a.txt: the name of a picture must end in .png, .svg or .pdf"),
        (["--warps", "1..2", "--plot", "a.png"], "--plot is for one instance; this is a range or a file of several"),
        (["--policy", "magic"], "'magic' is not one of 'lrr', 'gto'"),
        (["--policy", "two-levels"], "'random', 'all'; did you mean 'two-level'? (see 'makespan simulate --help')"),
        (["--group-size", "0"], "0 is not in the range"),
    ],
)
def test_what_makes_no_sense_is_refused(simulate: Runner, arguments: list[str], message: str) -> None:
    done = simulate("--string", "CL", "--warps", 2, *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_pictures_are_written_and_named(simulate: Runner, tmp_path: Path) -> None:
    for name in ("gap.png", "gap.svg", "gap.pdf"):
        done = simulate("--string", "CLLCLL", "--warps", 2, "--plot", tmp_path / name)
        assert done.code == 0
        assert f"picture: {tmp_path / name}" in done.out
        assert (tmp_path / name).stat().st_size > 1_000
    done = simulate("--string", "CLLCLL", "--warps", 2, "--policy", "lrr", "--gantt", tmp_path / "run.svg")
    assert f"picture: {tmp_path / 'run.svg'}" in done.out
    assert "cycles under lrr" in (tmp_path / "run.svg").read_text()
    part = ("--from", 2, "--to", 5)
    simulate("--string", "CLLCLL", "--warps", 2, "--policy", "lrr", "--gantt", tmp_path / "run.svg", *part)
    assert "; cycles 2 to 4 of 9" in (tmp_path / "run.svg").read_text()


def test_the_picture_says_what_is_a_run_and_what_is_proven(tmp_path: Path) -> None:
    gap = gap_of(Instance.of("CLLCLCLLCCLCLLLCLC", 12, Machine.of({"C": 2, "L": 1})), 0.2)
    draw_policy_gap(gap, tmp_path / "gap.svg")
    picture = (tmp_path / "gap.svg").read_text()
    for word in ("best case", "worst case", *POLICIES, "one run, not a bound", "cycles", f"{gap.result.pessimistic:,}"):
        assert word in picture
    draw_policy_gap(gap, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == picture


@pytest.mark.parametrize("opened", [0, 5])
def test_the_axis_begins_at_0_holds_everything_and_the_caption_says_only_what_occurs(opened: int) -> None:
    gap = gap_of(Instance.of("CLLCLL", 2))
    bounds = Bounds(gap.result.bounds.lower, gap.result.bounds.upper + opened)
    gap = replace(gap, result=replace(gap.result, bounds=bounds, pessimistic=40))
    figure = policy_gap._figure(gap)
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    assert (low, high > gap.result.pessimistic) == (0, True)
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "M$^L$ + M$^C$"
    drawn = {tuple(np.ravel(line.get_xdata())) for line in axes.lines}
    assert (gap.result.pessimistic,) in drawn
    (note,) = (text.get_text() for text in figure.texts if text.get_text().startswith("dots: "))
    proven = [row for row in gap.rows() if row.kind != "run"]
    assert ("bars" in note) == any(row.lower < row.upper for row in proven) == (opened > 0)
    assert ("diamonds" in note) == any(row.lower == row.upper for row in proven)


def test_a_single_value_is_drawn_too(tmp_path: Path) -> None:
    draw_policy_gap(gap_of(Instance.of("CCC", 2)), tmp_path / "gap.png")
    assert (tmp_path / "gap.png").stat().st_size > 1_000


def test_runs_narrow_what_is_open() -> None:
    """A run is a schedule: the worst case is no shorter than the longest, the best case no longer than the shortest."""
    instance = Instance.of("CLLCLL", 2)
    longest = solve(instance, best_case=True)
    shortest = min((run(instance, policy) for policy in POLICIES), key=lambda schedule: schedule.makespan)
    opened = replace(
        longest, witness=shortest, bounds=Bounds(shortest.makespan, 99), best_case=Bounds(1, 98), history=()
    )
    gap = enclosing(opened, {"witness": longest.witness, "shortest": shortest})
    assert gap.result.bounds == Bounds(10, 99)
    assert gap.result.witness == longest.witness
    assert gap.best_case == Bounds(1, 9)
    assert "worst case" in gap_table(gap)
    assert "above the slowest of these runs" in gap_summary(gap)


@pytest.mark.parametrize("claim", [{"best_case": Bounds(11, 11)}, {"best_case": Bounds(1, 1), "upper": 9}])
def test_a_run_outside_of_what_is_proven_is_a_bug(claim: dict[str, Any]) -> None:
    instance = Instance.of("CLLCLL", 2)
    result = solve(instance, best_case=True)
    wrong = replace(result, best_case=claim["best_case"])
    if "upper" in claim:
        short = run(instance, "lrr")
        wrong = replace(wrong, witness=short, bounds=Bounds(short.makespan, claim["upper"]))
    with pytest.raises(BrokenPromiseError, match=r"policy gto takes 10 cycles, outside of \d+\.\.\d+"):
        enclosing(wrong, {"gto": run(instance, "gto")})


def test_a_run_outside_of_the_cheap_bounds_is_a_bug(simulate: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.proof.policy_gap.pessimistic", lambda instance: 9)
    done = simulate("--string", "CLLCLL", "--warps", 2, "--policy", "gto")
    assert done.code == BUG
    assert "policy gto takes 10 cycles, outside of 8..9" in done.err


def test_a_run_that_does_not_replay_is_a_bug(simulate: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Schedule(((), (0,), (1,)), ((0,), (0,)))
    monkeypatch.setattr("makespan.proof.policy_gap.run", lambda *_: idle)
    done = simulate("--string", "C", "--warps", 2, "--policy", "gto")
    assert done.code == BUG
    assert "work conservation" in done.err


def test_a_gap_needs_a_best_case() -> None:
    with pytest.raises(ValueError, match="a policy gap needs a result with a best case"):
        list(PolicyGap(solve(Instance.of("CL", 2)), {}).rows())


def test_an_interrupted_proof_is_exit_130_with_the_table(simulate: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(instance: Instance, **options: Any) -> Result:
        return replace(solve(instance, **options), interrupted=True)

    monkeypatch.setattr(sys.modules["makespan.proof.engines"], "solve", interrupted)
    done = simulate("--string", "CLLCLL", "--warps", 2)
    assert done.code == INTERRUPTED
    assert "worst case" in done.out


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom makespan import cli\ncode = cli.run(['simulate', '--help'])\n"
        "print(code, *({'numpy', 'numba', 'matplotlib', 'ortools', 'lark', 'networkx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "0"


def test_every_policy_has_a_line_that_says_what_it_does(simulate: Runner) -> None:
    for policy in POLICIES:
        done = simulate("--string", "CLC", "--warps", 2, "--policy", policy)
        assert f"policy {policy}: " in done.out
    assert simulate_command.ALL not in POLICIES


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ("--warps", 2),
            [
                "exact if every instruction takes one cycle: the worst case is 10 cycles",
                "simulated: 9 to 10 cycles; the slowest of these runs is a worst case",
            ],
        ),
        (
            ("--warps", 2, "--policy", "lrr", "--gantt", "a.csv", "--gantt", "b.json"),
            ["simulated if every instruction takes one cycle: 9 cycles under lrr, in one run; this is not a bound"],
        ),
    ],
)
def test_quiet_leaves_the_verdict(
    arguments: tuple[object, ...],
    lines: list[str],
    simulate: Runner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = simulate("--string", "CLLCLL", *arguments, "--quiet")
    assert (done.code, done.out.splitlines(), done.err) == (0, lines, "")
    assert len(list(tmp_path.iterdir())) == arguments.count("--gantt")
