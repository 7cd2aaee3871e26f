"""The experiment on exact execution times: what it draws, counts and shows."""

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from benchmarks import schedulability as experiment
from benchmarks.schedulable_fraction import EXACT, PESSIMISTIC, Curve, Point, draw_fractions
from benchmarks.task_sets import rate_monotonic
from makespan import Instance, Machine, Program
from makespan.deadlines.task import GpuPartition, ServerPolicy, TaskSet, one_kernel

POOL = tuple(experiment.Kernel(cycles - 1, cycles, cycles + extra) for cycles, extra in ((20, 5), (33, 0), (51, 20)))


def test_a_kernel_has_both_bounds_and_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, cache = Machine.of({"C": 1, "L": 1}), dict[str, list[int]]()
    asked = [(Program.chain("LLLLCCCCCCCCCLLCCCCCCC"), 8), (Program.chain("CC"), 2)]
    pool = experiment.pool_of(asked, machine, 5.0, cache)
    assert pool == (experiment.Kernel(155, 155, 176), experiment.Kernel(4, 4, 4))  # the reference value, 22 * 8
    monkeypatch.setattr(experiment, "solve", None)
    assert experiment.pool_of(asked, machine, 5.0, cache) == pool


def test_questions_that_differ_have_different_keys() -> None:
    machines = (Machine.of({"C": 1, "L": 1}), Machine.of({"C": 2, "L": 1}))
    keys = {
        experiment.key(Instance.of(letters, warps, machine))
        for letters in ("CL", "LC")
        for warps in (2, 3)
        for machine in machines
    }
    assert len(keys) == 8


def test_both_sets_have_the_periods_of_the_proven_utilisation() -> None:
    for seed in range(20):
        sets = experiment.drawn(POOL, Fraction(4, 5), 3, Random(seed))
        proven, pessimistic = sets[EXACT].tasks, sets[PESSIMISTIC].tasks
        utilisation = sum(Fraction(task.segments[0].wcet, task.period) for task in proven)
        assert Fraction(4, 5) - Fraction(3, 20) < utilisation <= Fraction(4, 5)
        assert [task.period for task in proven] == [task.period for task in pessimistic]
        assert sorted(b.segments[0].wcet - a.segments[0].wcet for a, b in zip(proven, pessimistic, strict=True)) == [
            0,
            5,
            20,
        ]
        assert all(task.deadline == task.period for task in proven)


def test_more_execution_time_or_more_load_helps_nobody() -> None:
    settings = experiment.Settings(sets=40, tasks=3, seed=1)
    low, high = (experiment.point(POOL, settings, Fraction(n, 10)) for n in (3, 8))
    for policy in experiment.POLICIES:
        assert low[policy, PESSIMISTIC].schedulable <= low[policy, EXACT].schedulable
        assert 0 < high[policy, EXACT].schedulable < low[policy, EXACT].schedulable <= 40


@pytest.mark.parametrize(("long", "answer"), [(21, True), (22, False)])
@pytest.mark.parametrize("policy", [ServerPolicy.EDF, ServerPolicy.FIXED_PRIORITY])
def test_a_set_by_hand(policy: ServerPolicy, long: int, answer: bool) -> None:
    """The short kernel waits for all but one tick of the long one: 20 + 20 = 40 is in time, 21 + 20 is not."""
    tasks = rate_monotonic(
        (one_kernel("a", 20, 40, 40, partition="gpu"), one_kernel("b", long, 103, 103, partition="gpu"))
    )
    assert experiment.is_schedulable(TaskSet(tasks, (GpuPartition("gpu", policy),)), policy) is answer


def test_wilson_intervals() -> None:
    """Never beyond 0..1, and not empty at the ends."""
    assert Point(0.5, 0, 10).interval == pytest.approx((0, 0.2775), abs=1e-4)
    assert Point(0.5, 5, 10).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert Point(0.5, 10, 10).interval == pytest.approx((0.7225, 1), abs=1e-4)


def test_weighted_schedulability() -> None:
    curve = Curve("p", "NP-EDF", EXACT, (Point(0.25, 4, 4), Point(0.75, 2, 4)))
    assert curve.weighted == pytest.approx((0.25 * 1 + 0.75 * 0.5) / 1)


def test_one_command_measures_and_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(experiment, "SAMPLES", ("vecadd",))
    picture, cache = tmp_path / "fraction.png", tmp_path / "kernels.json"
    options = ["--sets", "4", "--steps", "4", "--kernels", "6", "--tasks", "3", "--jobs", "1", "--seconds", "0.1"]
    monkeypatch.setattr("sys.argv", ["schedulability", *options, "--cache", str(cache), "--plot", str(picture)])
    experiment.main()
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 4 * (1 + 4 * (3 + 1))  # panels with policies and bounds: points, then the sum
    assert len({row["panel"] for row in rows}) == 4
    assert all(row["interval"][0] <= row["schedulable"] <= row["interval"][1] for row in rows if "interval" in row)
    assert "solving kernel 1 of 6" in err
    assert "3 of 3 utilisations" in err
    assert len(json.loads(cache.read_text())) == 18
    assert picture.read_bytes().startswith(b"\x89PNG")
    experiment.main()
    again, err = capsys.readouterr()
    assert again == out
    assert "solving" not in err


def test_the_picture_names_what_it_shows(tmp_path: Path) -> None:
    points = (Point(0.5, 3, 4), Point(1.0, 1, 4))
    curves = [
        Curve("random strings", policy, times, points)
        for policy in ("NP-FP", "NP-EDF")
        for times in (EXACT, PESSIMISTIC)
    ]
    path = tmp_path / "fraction.svg"
    draw_fractions(curves, path, title="What exactness buys")
    text = path.read_text()
    for words in ("What exactness buys", "random strings", "schedulable task sets (%)", "NP-EDF", "proven worst-case"):
        assert words in text
