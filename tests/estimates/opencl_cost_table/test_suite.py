"""The benchmark suite finds out what a virtual device hides; fits, repetitions, and points that are kept."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from itertools import count
from math import exp
from pathlib import Path

import msgspec
import numpy as np
import pytest

from makespan.estimates.opencl_cost_table import fits, points_file
from makespan.estimates.opencl_cost_table import table as tables
from makespan.estimates.opencl_cost_table.device import (
    MOST,
    Measurement,
    VirtualOpenClDevice,
    repeat_run,
    summary,
)
from makespan.estimates.opencl_cost_table.suite import Plan, groups, measure, tabulate
from makespan.estimates.opencl_cost_table.table import LinearCost, OpenClCostTable, OperationCost, Saturation
from makespan.host.errors import InputError, MeasurementError

PUBLISHED = tables.find("rmbp-gt650m")
TODAY = date(2026, 1, 2)


def operation(nanoseconds: float, law: Saturation, icept: float = 0.0) -> OperationCost:
    return OperationCost(slope=nanoseconds * 1e-3, icept=icept, saturation=law)


def sat(x_sat: int, tau: float | None = None) -> Saturation:
    return Saturation(kind="sat", x_sat=x_sat, tau=None if tau is None else tau * 1e-3)


LINEAR, FREE = Saturation(kind="linear"), Saturation(kind="count_free")
HIDDEN = OpenClCostTable(
    device="hidden",
    driver="",
    date="2026-01-01",
    units="us",
    transfer=PUBLISHED.transfer,
    base=PUBLISHED.base,
    wg=PUBLISHED.wg,
    ops={
        "FLOAT_ADD": operation(0.5, sat(8)),
        "FLOAT_SUB": operation(0.6, sat(12, 0.3)),
        "FLOAT_MUL": operation(0.7, LINEAR),
        "FLOAT_DIV": operation(0.9, LINEAR, 30.0),
        "INT_ADD": operation(0.5, FREE),
        "INT_SUB": operation(0.4, FREE),
        "INT_MUL": operation(0.8, sat(5, 0.1)),
        "INT_DIV": operation(3.5, LINEAR, 40.0),
        "INT_DIV_LITERAL": operation(0.5, LINEAR),
        **{f"DOUBLE_{name}": operation(1.5, LINEAR) for name in ("ADD", "SUB", "MUL", "DIV")},
    },
    access={
        "LOCAL_ACCESS": LinearCost(slope=0.3e-3),
        "UNCLASSIFIED_GLOBAL_READ": LinearCost(slope=0.5e-3),
        "CONSTANT_GLOBAL_READ": LinearCost(slope=0.4e-3),
        "CACHED_GLOBAL_READ": LinearCost(slope=0.45e-3),
        "GLOBAL_READ": LinearCost(slope=0.9e-3, icept=30),
        "COMPLEX_GLOBAL_READ": LinearCost(slope=3.5e-3, icept=30),
        "GLOBAL_WRITE": LinearCost(slope=0.3e-3),
    },
    max_work_group=1024,
)


def found_by(device: VirtualOpenClDevice, plan: Plan) -> OpenClCostTable:
    return tabulate(device, plan, measure(device, plan), TODAY)


@pytest.mark.parametrize("seed", range(2))
def test_the_suite_recovers_a_hidden_table(seed: int) -> None:
    """Slopes within 1 %, the work-group factor within 2 % at every size, bandwidths within 0.5 %; x_sat exactly."""
    found = found_by(VirtualOpenClDevice(HIDDEN, noise=0.01, seed=seed), Plan(tolerance=0.002, double=True))
    assert not found.not_converged
    for row, truth in HIDDEN.ops.items():
        measured = found.ops[row]
        assert measured.unresolved or measured.slope == pytest.approx(truth.slope, rel=0.01), row
        law, hidden = measured.saturation, truth.saturation
        assert (law.kind, law.x_sat) == (hidden.kind, hidden.x_sat), row
        if hidden.tau is not None:
            assert law.tau == pytest.approx(hidden.tau, rel=0.02), row
    for row, line in HIDDEN.access.items():
        assert found.access[row].slope == pytest.approx(line.slope, rel=0.01), row
    assert found.access["PRIVATE_ACCESS"].slope <= 4e-6  # it is free
    assert found.base.slope == pytest.approx(HIDDEN.base.slope, rel=0.01)
    for size in range(1, 1025):
        assert found.wg.factor(size) == pytest.approx(HIDDEN.wg.factor(size), rel=0.02), size
    assert found.transfer.to.slope == pytest.approx(HIDDEN.transfer.to.slope, rel=0.005)
    assert found.transfer.back.slope == pytest.approx(HIDDEN.transfer.back.slope, rel=0.005)
    assert {row for row in HIDDEN.ops if found.ops[row].unresolved} == set()


def test_intercepts_are_found_where_the_model_has_them() -> None:
    found = found_by(VirtualOpenClDevice(HIDDEN, noise=0.0005), Plan(tolerance=0.0002))
    assert found.ops["FLOAT_DIV"].icept == pytest.approx(30, rel=0.1)
    assert found.ops["INT_DIV"].icept == pytest.approx(40, rel=0.1)
    assert found.access["COMPLEX_GLOBAL_READ"].icept == pytest.approx(30, rel=0.1)
    assert found.transfer.to.icept == pytest.approx(HIDDEN.transfer.to.icept, rel=0.05)
    assert {found.ops[row].icept for row in ("FLOAT_ADD", "INT_MUL", "INT_DIV_LITERAL")} == {0}


def test_a_quiet_device_is_recovered_exactly() -> None:
    found = found_by(VirtualOpenClDevice(HIDDEN, noise=0), Plan(quick=True, full=True))
    for row, truth in HIDDEN.ops.items():
        if not row.startswith("DOUBLE"):
            assert found.ops[row].slope == pytest.approx(truth.slope, rel=1e-7), row
            assert found.ops[row].saturation.x_sat == truth.saturation.x_sat
    assert found.access["PRIVATE_ACCESS"].unresolved


def test_without_saturation_the_law_is_linear() -> None:
    rows = {row: operation(0.5, LINEAR) for row in HIDDEN.ops}
    hidden = msgspec.structs.replace(HIDDEN, ops=rows)
    found = found_by(VirtualOpenClDevice(hidden, seed=5), Plan(tolerance=0.005))
    assert {law.saturation.kind for law in found.ops.values()} == {"linear"}


def test_an_irregular_division_becomes_a_table() -> None:
    law = Saturation(kind="table", points=((1, 1.0), (8, 4.0), (16, 0.3), (64, 2.0), (128, 0.2)))
    hidden = msgspec.structs.replace(HIDDEN, ops={**HIDDEN.ops, "FLOAT_DIV": operation(0.9, law)})
    found = found_by(VirtualOpenClDevice(hidden, noise=0.001), Plan(quick=True)).ops["FLOAT_DIV"]
    assert found.saturation.kind == "table"
    for n in (1, 8, 16, 64, 128):
        truth = hidden.ops["FLOAT_DIV"].microseconds(n, 1 << 20)
        assert found.microseconds(n, 1 << 20) == pytest.approx(truth, rel=0.05)


def test_what_is_lost_in_noise_is_not_guessed() -> None:
    tiny = {row: operation(1e-6, FREE) for row in HIDDEN.ops}
    found = found_by(VirtualOpenClDevice(msgspec.structs.replace(HIDDEN, ops=tiny), seed=1), Plan(quick=True))
    lost = [row for row, cost in found.ops.items() if cost.unresolved]
    assert len(lost) >= len(found.ops) - 2  # one in 40 is above two standard errors by chance
    assert all(found.ops[row].slope == found.ops[row].icept == 0 for row in lost)


def test_folded_chains_measure_nothing_of_the_base() -> None:
    found = found_by(VirtualOpenClDevice(HIDDEN, seed=2), Plan(quick=True, int_chain="fold", tolerance=0.002))
    assert found.int_chain == "fold"
    assert found.ops["INT_MUL"].saturation.kind == "sat"


def test_repetition_rule() -> None:
    """10, 12, 11, 13, 9: mean 11, standard error 0.70710678, 6.43 %."""
    measured = summary([10, 12, 11, 13, 9], 0.01)
    assert (measured.mean, measured.runs, measured.median, measured.converged) == (11, 5, 11, False)
    assert measured.se == pytest.approx(0.70710678, abs=5e-9)
    assert f"{measured.se / measured.mean:.2%}" == "6.43%"
    assert summary([10, 12, 11, 13, 9], 0.0643).converged
    assert not summary([10, 12, 11, 13, 9], 0.0642).converged


def times(*values: float) -> Callable[[], float]:
    ahead: Iterator[float] = iter(values)
    return lambda: next(ahead)


def test_the_first_run_is_for_warming_up() -> None:
    assert repeat_run(times(1000, 5, 5, 5, 5, 5)) == Measurement(5, 0, 5, 5, True)


def test_runs_end_after_200_or_when_the_time_is_over() -> None:
    steps = count()
    noisy = lambda: float(next(steps) % 2) + 0.5  # noqa: E731
    everything = repeat_run(noisy)
    assert (everything.runs, everything.converged) == (MOST, False)
    clock = count()
    early = repeat_run(noisy, seconds=10, clock=lambda: float(next(clock)))
    assert (5 <= early.runs < 20, early.converged) == (True, False)


def test_lines_against_numpy() -> None:
    x, noise = np.arange(1.0, 33), np.random.default_rng(1).normal(0, 0.3, 32)
    y = 2.5 * x + 7 + noise
    found = fits.line(x.tolist(), y.tolist())
    (slope, icept), covariance = np.polyfit(x, y, 1, cov=True)
    assert (found.slope, found.icept) == pytest.approx((slope, icept))
    assert found.se == pytest.approx(float(np.sqrt(covariance[0, 0])))
    assert found.r2 == pytest.approx(float(np.corrcoef(x, y)[0, 1] ** 2))
    assert fits.line(x.tolist(), y.tolist(), through_origin=True).icept == 0


@pytest.mark.parametrize("times", [[5.0] * 32, [5.0 - 0.1 * n for n in range(32)], [0.0] * 32])
def test_a_slope_that_is_none_is_unresolved(times: list[float]) -> None:
    found = fits.line(range(32), times)
    assert (found.slope, found.icept, found.unresolved) == (0, 0, True)


def test_an_intercept_below_zero_is_zero() -> None:
    assert fits.line(range(32), [2.0 * n - 50 for n in range(32)]).icept == 0


def test_a_flat_device_has_no_work_group_factor() -> None:
    found = fits.work_group({1 << n: 100.0 for n in range(11)})
    assert found.factor(1) == found.factor(1024) == 1


def test_one_exponential_is_enough_where_there_is_one() -> None:
    found = fits.work_group({1 << n: 3 * (1 + 20 * exp(-(1 << n) / 6)) for n in range(11)})
    for size in (1, 2, 3, 7, 20, 500):
        assert found.factor(size) == pytest.approx(1 + 20 * exp(-size / 6), rel=0.02)


def test_the_factor_of_large_groups_does_not_suffer_from_noise_at_small_ones() -> None:
    times = {1 << n: 1 + 100 * exp(-(1 << n) / 2) + 3 * exp(-(1 << n) / 40) for n in range(11)}
    noisy = {**times, 1: times[1] * 1.05, 2: times[2] / 1.05}
    found = fits.work_group(noisy)
    for size in (8, 16, 32, 64, 128):
        assert found.factor(size) == pytest.approx(times[size], rel=0.02), size


def test_saturation_begins_where_squares_are_least() -> None:
    law = {n: 10.0 + 3 * max(0, n - 11) for n in range(1, 129)}
    assert fits.saturation(law, 1000) == Saturation(kind="sat", x_sat=11, tau=3 / 1000)
    assert fits.saturation({n: 4.0 * n for n in range(1, 129)}, 1000).kind == "linear"
    assert fits.saturation(dict.fromkeys(range(1, 129), 4.0), 1000).kind == "count_free"


def test_the_published_form_of_the_law_is_the_same_law() -> None:
    one = LinearCost(slope=3e-3)
    fitted = Saturation(kind="sat", x_sat=9, tau=3e-3)
    published = fits.as_published(fitted, one)
    assert published == Saturation(kind="sat", x_sat=8)
    laws = [OperationCost(slope=3e-3, saturation=law) for law in (fitted, published)]
    assert len({tuple(law.microseconds(n, 1000) for n in range(129)) for law in laws}) == 1
    assert fits.as_published(fitted, LinearCost(slope=1e-3)) == fitted


def test_plans() -> None:
    assert len(Plan().sizes) == 128
    assert (Plan().sizes[0], Plan().sizes[-1]) == (128 << 10, 16 << 20)
    assert len(Plan(quick=True).sizes) == 16
    assert Plan().lengths == (1, 2, 4, 8, 16, 32, 64, 128)
    assert Plan(full=True).lengths == tuple(range(1, 129))
    assert groups(4096)[-1] == 4096
    assert groups(1000)[-1] == 512
    with pytest.raises(InputError, match="--rel-tol 0: a part of the mean"):
        Plan(tolerance=0)


def test_points_of_something_else_are_not_mixed_in(tmp_path: Path) -> None:
    device, plan, path = VirtualOpenClDevice(HIDDEN), Plan(quick=True), tmp_path / "t.points.json"
    assert points_file.read_points(path, device, plan) == {}
    path.write_text(points_file.text(device, plan, {"a": Measurement(1, 0, 5, 1, True)}, is_complete=False))
    with pytest.raises(InputError, match=r"t.points.json: has points of virtual hidden or of other options; remove it"):
        points_file.read_points(path, device, Plan())
    with pytest.raises(InputError, match="or of other options"):
        points_file.read_points(path, VirtualOpenClDevice(HIDDEN, seed=1), plan)
    path.write_text(points_file.text(device, plan, {"a": Measurement(1, 0, 5, 1, True)}, is_complete=True))
    assert points_file.read_points(path, device, plan) == {}
    plain = points_file.text(device, plan, {"a": Measurement(1, 0, 5, 1, True)}, is_complete=False)
    times = ("[NaN,0,5,1,", "[1,-1,5,1,", "[1,0,5,Infinity,", "[1,0,5,-1,")
    broken = [re.sub(r"\[1(\.0)?,0(\.0)?,5,1(\.0)?,", wrong, plain) for wrong in times]
    assert plain not in broken
    for text in ("nonsense", "{}", '{"schema": "x"}', *broken):
        path.write_text(text)
        with pytest.raises(InputError, match="not a file of measured points"):
            points_file.read_points(path, device, plan)


def test_a_device_without_double_precision_says_so() -> None:
    device = VirtualOpenClDevice(PUBLISHED)
    with pytest.raises(MeasurementError, match=r"no floats of 64 bits \(cl_khr_fp64\); leave out --double"):
        measure(device, Plan(double=True))


def test_time_is_shared_out_among_the_points() -> None:
    clock = count()
    device, plan = VirtualOpenClDevice(HIDDEN, noise=0.5), Plan(quick=True)
    measured = measure(device, plan, seconds=1e-9, clock=lambda: float(next(clock)))
    assert {point.runs for point in measured.values()} == {5}
    assert tabulate(device, plan, measured, TODAY).not_converged
