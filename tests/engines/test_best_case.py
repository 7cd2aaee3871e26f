"""The best case has its own share of the time, and its own account of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.result import Bounds
from makespan.model.simulate import POLICIES, run
from makespan.proof.engines import Limits, portfolio, solve
from makespan.proof.engines.backends import CERTIFICATES
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import choose
from makespan.proof.policy_gap import enclosing
from makespan.report.result.bundle import result_bundle
from makespan.report.result.document import result_document
from makespan.report.result.text import result_report
from tests.command import Runner

CONVOY = Instance.of("LLLLCCCCCCCCCLLCCCCCCC", 8)
"""Theorem E proves the worst case; the best one is hard."""


@dataclass
class Clock:
    now: float = 0.0
    left: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def slow_best_case(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock, and a search for the best case that takes 40 seconds on it."""
    clock = Clock()

    def best_case(instance: Instance, limits: Limits) -> Bounds | None:
        clock.left.append(limits.remaining)
        clock.now += 40
        return None

    monkeypatch.setattr(choose, "best_case", best_case)
    return clock


def test_the_time_of_the_best_case_is_not_that_of_the_worst_case(slow_best_case: Clock) -> None:
    result = solve(CONVOY, best_case=True, limits=Limits(60, clock=slow_best_case))
    assert (result.seconds, result.best_case_seconds) == (0, 40)
    assert "found by certificate in 0.00 s, the best case in 40.00 s" in result_report(result)
    assert result_document(result)["best_case_seconds"] == 40


def test_nothing_is_said_of_the_time_of_a_best_case_that_nobody_asked_for() -> None:
    result = solve(CONVOY)
    assert result.best_case_seconds is None
    assert "best" not in result_report(result)
    assert "best_case_seconds" not in result_document(result)


def test_evidence_has_no_time_of_the_best_case(slow_best_case: Clock) -> None:
    result = solve(CONVOY, best_case=True, limits=Limits(60, clock=slow_best_case))
    assert "best_case_seconds" not in json.dumps(result_bundle(result))


def test_a_hard_worst_case_leaves_the_best_case_its_share(
    slow_best_case: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(instance: Instance, limits: Limits) -> Iterator[Finding]:
        slow_best_case.now += limits.remaining
        return iter(())

    monkeypatch.setattr(CERTIFICATES, "find", lambda instance, known, limits: spent(instance, limits.whole or limits))
    hard = Instance.of("LLLLCCCCCCCCCLLCCCCCCC", 8, Machine.of({"C": 2, "L": 1}))
    result = solve(hard, best_case=True, limits=Limits(60, clock=slow_best_case))
    assert result.seconds == 45
    assert slow_best_case.left == [60 * portfolio.SHARE_OF_BEST_CASE]


def test_a_result_without_a_best_case_is_enclosed_by_what_is_known_at_once() -> None:
    runs = {policy: run(CONVOY, policy) for policy in POLICIES}
    fastest = min(schedule.makespan for schedule in runs.values())
    assert enclosing(solve(CONVOY), runs).best_case == Bounds(8 * 16, fastest)  # 16 instructions of class C


def test_a_page_searches_for_the_best_case_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slow_best_case: Clock
) -> None:
    page = Runner("report", capsys)
    asked = ("--string", "LLLLCCCCCCCCCLLCCCCCCC", "--warps", 8, "-o", tmp_path / "p.html")
    assert page(*asked).code == 0
    assert slow_best_case.left == []
    assert page(*asked, "--best-case").code == 0
    assert len(slow_best_case.left) == 1
