"""The comparison with all schedules: what it draws, what it counts, and that it sees what is wrong."""

import json
import sys
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks import schedulability_exhaustive as comparison
from benchmarks.schedulability_exhaustive import KINDS, Compared, Tally, compared, demands, system
from makespan.deadlines.chains import predecessors
from makespan.deadlines.holistic import AnalysisLimits, Response, Responses, responses
from makespan.deadlines.task import (
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskSet,
    one_kernel,
)

A = one_kernel("a", 2, 5, 5, priority=2, partition="gpu")
B = one_kernel("b", 4, 10, 10, priority=1, partition="gpu")
PAIR = TaskSet((A, B), (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY),))


def drawn(name: str, count: int = 40) -> list[TaskSet]:
    return [system(Random(f"{name} {number}"), KINDS[name]) for number in range(count)]


@pytest.mark.parametrize("name", KINDS)
def test_no_resource_is_overloaded_and_a_system_comes_again(name: str) -> None:
    found = drawn(name, 10)
    assert all(KINDS[name].load <= max(demands(list(s.tasks)).values()) <= 1 for s in found)
    assert found == drawn(name, 10)


def test_kinds_have_what_they_are_named_after() -> None:
    """And the first one nothing but kernels."""
    assert all(task.core is None and len(task.segments) == 1 for s in drawn("kernels") for task in s.tasks)
    assert any(not task.of(SegmentKind.KERNEL, SegmentKind.COPY) for s in drawn("CPU time") for task in s.tasks)
    for name in ("CPU time", "chains, CPU time", "spin", "mixed"):
        assert any(task.of(SegmentKind.CPU) for s in drawn(name) for task in s.tasks)
    assert {len(predecessors(s)) for s in drawn("chains")} == {1, 2}
    assert {len(sources) for s in drawn("joins") for sources in predecessors(s).values()} == {1, 2, 3}
    assert any(task.of(SegmentKind.COPY) and len(task.segments) > 2 for s in drawn("segments") for task in s.tasks)
    assert any(task.spins for s in drawn("spin") for task in s.tasks)
    assert any(segment.delay for s in drawn("launch delays") for task in s.tasks for segment in task.segments)


def test_threads_that_spin_demand_their_core() -> None:
    segments = (
        JobSegment(SegmentKind.CPU, 1),
        JobSegment(SegmentKind.COPY, 2, "h2d"),
        JobSegment(SegmentKind.KERNEL, 3, "gpu"),
    )
    spinning = GpuTask("a", segments, 12, 12, priority=1, core="cpu", wait=HostWait.SPIN)
    assert {place: share * 12 for place, share in demands([spinning]).items()} == {"cpu": 6, "h2d": 2, "gpu": 3}
    assert demands([replace(spinning, wait=HostWait.BLOCK)])["cpu"] * 12 == 1


def test_a_pair_by_hand() -> None:
    """`a` waits for all but a tick of `b`, `b` for one `a`."""
    found = compared(PAIR)
    assert found is not None
    assert [(one.bound and one.bound.total, one.response, one.end) for one in found.values()] == [(5, 5, 5), (6, 6, 6)]
    assert all(one.is_exact and one.is_in_time and not one.is_undecided for one in found.values())
    assert not [fault for one in found.values() for fault in one.faults]
    assert compared(PAIR, most_states=3) is None


@pytest.mark.parametrize(
    ("total", "end", "is_exact", "faults"),
    [(6, 6, True, 0), (7, 8, False, 0), (5, 6, False, 1), (6, 5, False, 1), (7, 7, True, 1), (5, 5, True, 2)],
)
def test_what_is_wrong_of_a_response_of_six(total: int, end: int, is_exact: bool, faults: int) -> None:
    one = Compared(6, Response(total, end, (), None), is_exact, 6, 6)
    assert len(list(one.faults)) == faults
    assert one.is_undecided is (total > 6)


def test_without_a_bound_a_task_in_time_is_undecided() -> None:
    assert Compared(6, None, False, 6, 6).is_undecided
    assert not Compared(5, None, False, 6, 6).is_undecided
    assert not list(Compared(5, None, False, 6, 6).faults)


def test_a_row_by_hand() -> None:
    """Bounds of 5 for 5, of 9 for 6 beyond the deadline, none for 4, and one that is late."""
    tally = Tally()
    tally.systems = 2
    far, met = Response(9, 9, (), None), Response(5, 5, (), None)
    tally.tasks = [Compared(5, met, True, 5, 5), Compared(8, far, False, 6, 6)]
    tally.tasks += [Compared(4, None, False, 4, 4), Compared(8, far, False, 9, 9)]
    assert list(tally.row.items()) == [
        *(("systems", 2), ("left out", 0), ("tasks", 4), ("in time", 3), ("undecided", 2), ("no bound", 1)),
        *(("claimed exact", 1), ("undecided share", 0.6667), ("attained", 2), ("mean ratio", 1.167)),
        *(("largest ratio", 1.5), ("wrong", 0)),
    ]


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, list[dict[str, Any]]]:
    monkeypatch.setattr(sys, "argv", ["schedulability_exhaustive", *options])
    code = comparison.main()
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, (chains, kernels) = run(
        monkeypatch, capsys, "--systems", "3", "--kind", "chains", "--kind", "kernels", "--seed", "5"
    )
    assert code == chains["wrong"] == kernels["wrong"] == 0
    assert (chains["kind"], kernels["kind"]) == ("chains", "kernels")
    assert kernels["systems"] == 3
    assert kernels["attained"] == kernels["claimed exact"] == kernels["tasks"] >= 6


def test_a_bound_that_is_too_low_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def less(task_set: TaskSet, limits: AnalysisLimits) -> Responses:
        found = responses(task_set, limits)
        of = {name: known and replace(known, total=known.total - 1) for name, known in found.of.items()}
        return replace(found, of=of)

    monkeypatch.setattr(comparison, "responses", less)
    code, (row,) = run(monkeypatch, capsys, "--systems", "1", "--kind", "kernels")
    assert code == 1
    assert row["wrong"] == 2 * row["tasks"]


def test_what_is_known_is_printed_when_somebody_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(task_set: TaskSet) -> dict[str, Compared] | None:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(task_set)
        return compared(task_set)

    calls: list[TaskSet] = []
    monkeypatch.setattr(comparison, "compared", ended)
    code, (row,) = run(monkeypatch, capsys, "--kind", "kernels")
    assert (code, row["systems"]) == (comparison.INTERRUPTED, 2)
