"""The tools of the tests that count effort: what they miss, no test finds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import Looks, TooManyCalls, calls

ROOT = Path(__file__).parents[1]


def test_a_budget_of_looks_ends_after_so_many() -> None:
    budget = Looks(3)
    assert [budget.expired for _ in range(5)] == [False, False, False, True, True]
    assert budget.looked == 5


def test_a_part_of_a_budget_of_looks_ends_with_it() -> None:
    part = Looks(3).part(0.5)
    assert [part.expired for _ in range(3)] == [False, False, True]


def test_calls_are_counted_alike_every_time_and_too_many_are_stopped() -> None:
    def work(size: int) -> None:
        for _ in range(size):
            abs(size)

    assert calls(lambda: work(1000)) - calls(lambda: work(0)) == 1000
    with pytest.raises(TooManyCalls):
        calls(lambda: work(10**12), most=1000)
    assert sys.getprofile() is None


def test_the_cpu_report_counts_what_a_test_and_its_children_spend(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_three.py").write_text(
        "import subprocess, sys, time\n"
        "def test_light(): time.sleep(0.3)\n"
        "def test_heavy(): sum(range(5_000_000))\n"
        "def test_child(): subprocess.run([sys.executable, '-c', 'sum(range(5_000_000))'], check=True)\n"
    )
    command = [sys.executable, "-m", "pytest", "-n1", "-p", "no:cacheprovider", "--cpu-report", "2", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"CPU seconds: \d+\.\d in 3 tests", run.stdout)
    named = re.findall(r"^ +\d+\.\d\d  .*::(\w+)$", run.stdout, re.MULTILINE)
    assert sorted(named) == ["test_child", "test_heavy"]
