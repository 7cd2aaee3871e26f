"""Worst case against pessimistic bound: what is planned, and what is computed of each point."""

from dataclasses import replace

import pytest

from makespan.host.errors import InputError
from makespan.many.report.comparison import status_counts
from makespan.many.study.comparison import (
    BestCase,
    Comparison,
    ComparisonPoint,
    MachineAxis,
    MachineQuantity,
    compute_points,
    plan_points,
)
from makespan.model.assumptions import caveat
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.result import Bounds, Result
from makespan.model.strings import parse_string
from makespan.proof.engines import Limits, solve
from tests.study.comparisons import LETTERS, PORTS, instances


def test_few_warps_are_planned_first_with_every_value() -> None:
    points = plan_points(reversed(instances("CLL", range(1, 3))), PORTS)
    assert [(point.warps, point.value) for point in points] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [point.instance.machine.capacities["L"] for point in points] == [1, 2, 1, 2]
    assert {point.status for point in points} == {"not computed"}


@pytest.mark.parametrize(
    ("axis", "name", "machine"),
    [
        (
            MachineAxis(MachineQuantity.CAPACITY, (3,), "L"),
            "L",
            {"units": (UnitClass("C", 2), UnitClass("L", 3, 4, Latency(5, 9)))},
        ),
        (
            MachineAxis(MachineQuantity.INTERVAL, (3,), "L"),
            "L.interval",
            {"units": (UnitClass("C", 2), UnitClass("L", 1, 3, Latency(5, 9)))},
        ),
        (
            MachineAxis(MachineQuantity.LATENCY, (3,), "L"),
            "L.latency",
            {"units": (UnitClass("C", 2), UnitClass("L", 1, 4, Latency(3, 3)))},
        ),
        (MachineAxis(MachineQuantity.ISSUE_WIDTH, (3,)), "issue-width", {"issue_width": 3}),
    ],
)
def test_an_axis_changes_one_thing_and_says_so(axis: MachineAxis, name: str, machine: dict[str, object]) -> None:
    base = Machine("m", (UnitClass("C", 2), UnitClass("L", 1, 4, Latency(5, 9))), caveats=(caveat("not quite"),))
    changed = axis.machine(base, 3)
    assert axis.name == name
    assert changed == replace(base, name=f"m with {name}=3", **machine)  # type: ignore[arg-type]
    assert changed.caveats == (caveat("not quite"),)


def test_an_axis_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="the values of L must rise"):
        MachineAxis(MachineQuantity.CAPACITY, (2, 2), "L")
    with pytest.raises(InputError, match="the values of L must rise"):
        MachineAxis(MachineQuantity.CAPACITY, (), "L")
    with pytest.raises(InputError, match="the issue width is of no class"):
        MachineAxis(MachineQuantity.ISSUE_WIDTH, (1,), "L")
    with pytest.raises(InputError, match="X: machine 'paper' has no units of class X; it has C, L"):
        plan_points(instances("CLL", range(1, 3)), MachineAxis(MachineQuantity.CAPACITY, (1,), "X"))
    with pytest.raises(InputError, match=r"capacity of L must be 1\.\.1024, not 2000"):
        plan_points(instances("CLL", range(1, 3)), MachineAxis(MachineQuantity.CAPACITY, (2000,), "L"))


def test_no_latency_of_a_class_is_varied_that_no_instruction_has() -> None:
    instance = Instance.of(parse_string("L()C(1)", PAPER), 2)
    with pytest.raises(InputError, match=r"L.latency: these warps run ahead"):
        plan_points([instance], MachineAxis(MachineQuantity.LATENCY, (1, 2), "L"))


def test_after_the_whole_time_nothing_is_computed() -> None:
    points = plan_points(instances("CLL", range(1, 4)), None)
    whole = Limits(60)

    def stop_at_the_second(line: str) -> None:
        if "point 2 of 3: 2 warps" in line:
            whole.interrupt()

    whole.progress = stop_at_the_second
    found = list(compute_points(points, seconds=5, whole=whole, best_case=False))
    assert [point.status for point in found] == ["exact", "exact", "not computed"]
    assert found[2] == points[2]
    comparison = Comparison("k", PAPER, None, tuple(found), interrupted=True)
    assert not comparison.all_exact
    assert (
        status_counts(comparison)
        == "3 points if every instruction takes one cycle: 2 exact, 1 not computed (interrupted)"
    )


def test_a_point_has_no_more_than_its_own_time_and_what_is_left_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def solved(instance: Instance, *, best_case: bool, limits: Limits) -> Result:
        given.append(limits)
        return solve(instance, best_case=best_case)

    monkeypatch.setattr("makespan.many.study.comparison.solve", solved)
    for seconds, whole in ((2.0, Limits(60, 7 << 20)), (60.0, Limits(5, 7 << 20))):
        points = plan_points(instances("CL", range(1, 2)), None)
        (point,) = compute_points(points, seconds=seconds, whole=whole, best_case=True)
        assert point.found is not None
        assert point.found.best_case == BestCase(Bounds(2, 2), "least-possible", "schedule")
        assert given[-1].whole is whole
        assert given[-1].memory_bytes == 7 << 20
    assert given[0].seconds == 2.0
    assert 4.0 < given[1].seconds <= 5.0


def test_the_best_case_says_what_proves_its_sides() -> None:
    instance = Instance.of(LETTERS, 2)
    result = solve(instance, best_case=True)
    assert BestCase.of(result) == BestCase(Bounds(36, 36), "search", "search")
    wide = replace(result, best_case=Bounds(32, 38))
    assert BestCase.of(wide) == BestCase(Bounds(32, 38), "least-possible", "schedule")
    phased = solve(Instance.of("CLL|CLC", 3), best_case=True)
    known = BestCase.of(phased)
    assert known is not None
    assert {known.lower_evidence, known.upper_evidence} <= {"least-possible", "schedule", "phases"}
    assert BestCase.of(replace(result, best_case=None)) is None


def test_only_points_make_a_comparison() -> None:
    with pytest.raises(InputError, match="at least one number of warps"):
        Comparison("k", PAPER, None, ())
    assert ComparisonPoint(Instance.of("CLL", 3, blocks=3)).warps == 3
