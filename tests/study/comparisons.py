"""Comparisons: one that is solved, and two with made-up numbers."""

from dataclasses import replace
from functools import cache

from makespan.many.study.comparison import (
    BestCase,
    Comparison,
    MachineAxis,
    MachineQuantity,
    PointResult,
    compute_points,
    plan_points,
)
from makespan.model.assumptions import caveat
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Machine
from makespan.model.result import Bounds, Upper
from makespan.proof.engines import Limits

LETTERS = "LLLLCCCCCCCCCLLCCCCCCC"
"""On one port of each class M^L + M^C is 22 cycles a warp; by the theorem the worst case of three or more is less."""

PORTS = MachineAxis(MachineQuantity.CAPACITY, (1, 2), "L")
OPEN = PointResult(
    Bounds(40, 50), Upper.SEARCH, 60, BestCase(Bounds(20, 30), "least-possible", "schedule"), "search", 1.0, ()
)
SHUT = PointResult(Bounds(50, 50), Upper.THEOREM_E, 60, None, "certificate", 1.0, (caveat("always"), caveat("here")))


def instances(letters: str, warps: range, machine: Machine = PAPER) -> list[Instance]:
    return [Instance.of(letters, count, machine) for count in warps]


@cache
def known_curve() -> Comparison:
    points = compute_points(
        plan_points(instances(LETTERS, range(1, 49)), None), seconds=5, whole=Limits(60), best_case=False
    )
    return Comparison("--string", PAPER, None, tuple(points))


def grid() -> Comparison:
    """Warps 1 and 2, one and two ports: exact, bounded, not computed and exact."""
    points = plan_points(instances("CLL", range(1, 3)), PORTS)
    found = (SHUT, OPEN, None, replace(SHUT, assumptions=(caveat("always"), caveat("there"))))
    told = tuple(replace(point, found=one) for point, one in zip(points, found, strict=True))
    return Comparison("k.ptx", PAPER, PORTS, told)


def curve() -> Comparison:
    points = plan_points(instances("CLL", range(1, 4)), None)
    told = tuple(replace(point, found=one) for point, one in zip(points, (SHUT, OPEN, None), strict=True))
    return Comparison("k.ptx", PAPER, None, told)
