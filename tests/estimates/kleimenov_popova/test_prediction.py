"""Numbers of the model of Kleimenov and Popova: figure 3, worked examples K1 to K10, and the rules."""

from fractions import Fraction
from typing import NamedTuple

import pytest

from makespan.estimates.kleimenov_popova import (
    GpuParameters,
    HitRates,
    Levels,
    Rules,
    by_throughput,
    by_units,
    estimate,
    fixpoint,
    from_ptx,
)
from makespan.estimates.kleimenov_popova.device import LaunchLine, Timing
from makespan.estimates.kleimenov_popova.prediction import relative_error
from makespan.estimates.kleimenov_popova.thread_time import Repeat, Sequence, thread_time, unrolled_times
from makespan.estimates.microbench import fit
from makespan.estimates.microbench.fit import Parameter
from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.host.errors import InputError, MeasurementError
from makespan.kernels.flow import launch
from makespan.model.machine.occupancy import SmLimits
from tests.estimates.kleimenov_popova.inputs import FIGURE_3, alike, device, gpu, kernel, straight

FINE = Rules(eps=1e-9)
S, B, F, I = "setp", "bra", "f64", "i32"  # noqa: E741 - the letters of figure 3
BODY = straight(
    (S, "r1", "p1"),
    (B, "p1", ""),
    (F, "fd1", "fd2"),
    (F, "fd2", "fd3"),
    (F, "fd3 fd9", "fd1"),
    (I, "r1", "r1"),
)
SETS = {"A": ((6, 48, 6), (1, 1, 32, 1)), "B": ((6, 8, 6), (1, 1, 2, 1)), "C": ((6, 10, 6), (1, 1, 1, 1))}


def timing(name: str) -> Timing:
    latencies, delays = SETS[name]
    return Timing(
        dict(zip((S, F, I), map(float, latencies), strict=True)),
        dict(zip((S, B, F, I), map(float, delays), strict=True)),
    )


# rules T and U


def test_rules_t_and_u_take_throughput_and_units_of_a_processing_block() -> None:
    assert [by_units(units) for units in (32, 16, 8, 1, 64)] == [1, 2, 4, 32, 1]
    # compute capability 6.1, with four processing blocks: both rules agree
    assert [by_throughput(rate / 4) for rate in (128, 4, 32)] == [by_units(units) for units in (32, 1, 8)] == [1, 32, 4]


def test_rule_t_refuses_the_throughput_of_a_whole_sm() -> None:
    with pytest.raises(InputError, match=r"0\.25 is below 1 cycle: rule T.*divide a figure per SM"):
        by_throughput(128)
    with pytest.raises(InputError, match="below 1"):
        Timing({}, {"f32": 0.25})


# figure 3


class Figure3(NamedTuple):
    """Cycles of figure 3: of one to three iterations, of 15 trips by both rules and as printed, and of one more."""

    iterations: tuple[int, int, int]
    unrolled: float
    exact: int
    printed: float
    steady: int


FIGURES = {
    "A": Figure3((136, 280, 424), 2100, 2152, 2100, 144),
    "B": Figure3((26, 57, 88), 427.5, 460, 412.5, 31),
    "C": Figure3((29, 63, 97), 472.5, 505, 465, 34),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure_3_has_the_published_times(name: str) -> None:
    figure, known = FIGURES[name], timing(name)
    took = [thread_time(Sequence(BODY.steps * count), known).cycles(0) for count in (1, 2, 3)]
    assert took == list(figure.iterations)
    loop = Sequence((Repeat("LOOP", BODY, 15),))
    assert thread_time(loop, known).cycles(0) == Fraction(figure.unrolled)
    assert {label: str(cycles) for label, cycles in unrolled_times(loop, known).items()} == {"LOOP": str(took[1])}
    exact = {  # this body has no back edge
        trips: thread_time(Sequence((Repeat("LOOP", BODY, trips),)), known, "exact").cycles(0)
        for trips in (15, 64, 65, 1000)  # beyond 64 iterations the steady increment is extended
    }
    assert exact == {trips: figure.exact + (trips - 15) * figure.steady for trips in exact}
    # the form as printed omits an issue delay in the inner maximum
    (lat_s, lat_f, lat_i), (_, del_b, del_f, del_i) = SETS[name]
    inner = max(max(del_f + del_i, lat_i) + lat_s + del_b, lat_f)
    assert (lat_s + del_b + 2 * lat_f + inner + 2 * lat_f + del_f + del_i) / 2 * 15 == figure.printed


def test_figure_3_with_the_back_edge_counted() -> None:
    """Set B with del_B = 1: T1 27, T2 58, T15 461."""
    found = [
        from_ptx(
            kernel(FIGURE_3.replace("15;", f"{trips};")),
            launch("32", "1"),
            gpu(latency_f64=8, delay_f64=2),
            HitRates(0, 0),
            rule="exact",
        )
        .threads[0]
        .steps.loops[0]
        for trips in (1, 2, 15)
    ]
    took = [thread_time(Sequence((loop,)), timing("B"), "exact").cycles(0) for loop in found]
    assert took == [27, 58, 461]


def test_expression_of_lat_is_printed_as_a_maximum() -> None:
    loads = straight(("global", "a", "x"), ("f32", "b", "y"), ("f32", "x y", "z"))
    time = thread_time(loads, Timing({"f32": 10.0}, {"global": 1.0, "f32": 1.0})).cycles
    assert str(time) == "max(12, 1 + lat)"
    assert time.is_convex


def test_time_after_a_loop_waits_for_what_the_loop_left_behind() -> None:
    """T2 = 2, the register is ready at 1 + lat: after 10 trips it is ready at 10 + max(0, 1 + lat - 2)."""
    body = straight(("global", "a", "x"))
    after = straight(("f32", "x", "y")).steps
    steps = Sequence((Repeat("LOOP", body, 10), *after))
    time = thread_time(steps, Timing({"f32": 4.0}, {"global": 1.0, "f32": 1.0})).cycles
    assert [time(lat) for lat in (0, 1, 100)] == [11, 11, 110]


def test_where_one_trip_of_a_loop_would_fall_with_lat_its_running_maximum_counts() -> None:
    """T2 = max(6, 4 + lat) and z is ready at 63, so that its reader issues at max(T2/2, 63 - T2/2): 60, 41, 102."""
    body = straight(("f32", "", "z"), ("f64", "x", "y"), ("global", "a", "x"))
    steps = Sequence((Repeat("LOOP", body, 1), *straight(("f32", "z", "v")).steps))
    delays = dict.fromkeys(("f32", "f64", "global"), 1.0)
    time = thread_time(steps, Timing({"f32": 60.0, "f64": 1.0}, delays)).cycles
    assert [time(lat) for lat in (0, 40, 200)] == [61, 61, 103]


# worked examples


class Worked(NamedTuple):
    """A worked example: times of the full waves and of the last, their latencies, cycles, and what limits the first."""

    bandwidth: Levels
    delay: float
    times: tuple[float, float]
    latencies: tuple[tuple[float, ...], tuple[float, ...]]
    cycles: float
    limiter: str


IDLE = (80, 220, 400, 680)
WORKED = {
    "K1": Worked(Levels(128, 32, 8, 4), 40, (1325, 1325), (IDLE, IDLE), 3975, "dependences"),
    "K2": Worked(Levels(1, 1e9, 1e9, 1e9), 40, (2048, 1325), ((562, 220, 400, 680), IDLE), 5421, "bandwidth of L1"),
    "K3": Worked(
        Levels(128, 2, 1, 0.5),
        40,
        (4096, 2048),
        ((80, 220, 1364, 2728), (80, 220, 400, 1403)),
        10240,
        "bandwidth of uncoal",
    ),
    "K4": Worked(Levels(2, 1, 1, 100), 40, (2048, 1325), ((80, 1184, 400, 680), IDLE), 5421, "bandwidth of L2"),
    "K5": Worked(Levels(1e9, 1e9, 1e9, 1e9), 900, (3600, 1800), (IDLE, IDLE), 9000, "issue"),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_examples_k1_to_k5(name: str) -> None:
    example = WORKED[name]
    found = estimate(device(example.bandwidth), alike(delay=example.delay), rules=FINE)
    full, last = found.waves
    assert (full.repeats, last.repeats, full.limiter) == (2, 1, example.limiter)
    assert (full.time, last.time) == pytest.approx(example.times, rel=1e-6)
    assert full.latency == pytest.approx(example.latencies[0], rel=1e-6)
    assert last.latency == pytest.approx(example.latencies[1], rel=1e-6)
    assert found.cycles == pytest.approx(example.cycles, rel=1e-6)
    assert found.seconds == pytest.approx(example.cycles / 1e9, rel=1e-6)
    assert found.launch_s == 0
    assert any("no launch time is known" in warning for warning in found.warnings)


def test_the_processing_block_with_the_most_warps_decides_the_issue() -> None:
    """Three warps on two processing blocks: one has two of them, so twice 900 cycles of issue."""
    kernel = alike(delay=900, threads=96, blocks=1, syncs=0)
    assert estimate(device(), kernel, rules=FINE).cycles == pytest.approx(1800)


def test_intermediate_values_of_the_worked_examples() -> None:
    found = estimate(device(), alike())
    assert found.departure_delay == 10
    assert (found.occupancy.blocks_per_sm, found.occupancy.warps_per_block) == (4, 2)
    assert [(wave.blocks, wave.repeats, wave.unloaded) for wave in found.waves] == [(8, 2, 1325), (4, 1, 1325)]


def test_barriers_cost_more_if_the_block_counts_in_threads() -> None:
    """1325 has one departure delay of 10 for the second warp; counted in threads it has 63."""
    assert estimate(device(), alike(), sync_unit="threads").waves[0].time == pytest.approx(1315 + 630)


@pytest.mark.parametrize(("eps", "expected"), [(1, 10238.693677), (1e-3, 10239.999159)])
def test_k6_printed_stop_test_depends_on_eps(eps: float, expected: float) -> None:
    printed = Rules(eps, until_supplied=False)
    assert estimate(device(WORKED["K3"].bandwidth), alike(), rules=printed).cycles == pytest.approx(expected, abs=1e-6)
    assert estimate(device(WORKED["K3"].bandwidth), alike(), rules=Rules(eps)).cycles == pytest.approx(10240, abs=1e-8)


@pytest.mark.parametrize(
    ("demanded", "first", "end", "iterations"),
    [
        (64000, [380, 468.42105263, 493.25842697, 498.63325740], (500, 40), 18),
        (128000, [380, 836.84210526, 980.50314465], (1000, 90), 14),
    ],
    ids=["K7", "K8"],
)
def test_k7_k8_sequences_of_the_fixed_point(
    demanded: float, first: list[float], end: tuple[float, float], iterations: int
) -> None:
    times: list[float] = []

    def time(lat: float) -> float:
        times.append(100 + 10 * lat)
        return times[-1]

    found = fixpoint(time, demanded, 128, 28, Rules(eps=1e-6))
    assert found.time == times[-1]
    assert times[: len(first)] == pytest.approx(first, abs=1e-8)
    assert (found.time, found.latency) == pytest.approx(end, rel=1e-9)
    assert found.iterations == iterations


def test_k8_a_level_that_nothing_waits_for() -> None:
    found = fixpoint(lambda _: 700, 2000, 1, 28)
    assert (found.time, found.latency, found.is_insensitive) == (2000, 28, True)


def test_a_wave_counts_the_bandwidth_of_levels_that_nothing_waits_for() -> None:
    found = estimate(device(Levels(1e9, 1e9, 0.5, 1e9)), alike(time=lambda _: 100, uncoal=0))
    assert found.waves[0].time == pytest.approx(2048 / 0.5)
    assert found.waves[0].insensitive == ("DRAM",)
    assert "nothing waits for DRAM: only the bandwidth limits there" in found.warnings


def test_as_printed_an_idle_level_becomes_faster_than_without_load() -> None:
    assert fixpoint(lambda lat: 100 + 10 * lat, 200, 1, 28, Rules.as_printed()).time == pytest.approx(200, abs=1e-4)
    assert fixpoint(lambda lat: 100 + 10 * lat, 200, 1, 28).time == 380


def test_as_printed_a_level_that_cannot_deliver_is_said_to_be_overlooked() -> None:
    narrow = device(Levels(1e-12, 1e9, 1e9, 1e9))
    printed = estimate(narrow, alike(), rules=Rules.as_printed())
    assert printed.cycles < 1000
    assert any("the bandwidth of L1 cannot deliver in this time" in warning for warning in printed.warnings)
    assert not any("only the bandwidth limits there" in warning for warning in printed.warnings)
    still = estimate(device(Levels(1e9, 1e9, 1e9, 1e-3)), alike(time=lambda _: 1000), rules=Rules.as_printed())
    assert any("the bandwidth of uncoal cannot deliver" in warning for warning in still.warnings)
    corrected = estimate(narrow, alike())
    assert any("nothing waits for L1: only the bandwidth" in warning for warning in corrected.warnings)
    assert not any("cannot deliver" in warning for warning in corrected.warnings)


def test_as_printed_a_time_that_stands_still_hides_an_overload() -> None:
    def time(lat: float) -> float:
        return max(100 + 2 * lat, 1000)

    printed = fixpoint(time, 2000, 1, 28, Rules.as_printed())
    assert (printed.time, printed.iterations) == (1000, 2)
    found = fixpoint(time, 2000, 1, 28)
    assert (found.time, found.latency) == pytest.approx((2000, 950), rel=1e-9)


def test_a_fixed_point_that_is_not_reached_says_so() -> None:
    slow = fixpoint(lambda lat: 1e9 + lat, 1e9 + 1e3, 1, 400, Rules(max_iterations=100))
    assert not slow.is_converged
    assert (slow.iterations, slow.mul > 1) == (100, True)


# launch and error


def fit_launch(times: dict[int, Fraction]) -> tuple[Parameter, ...]:
    """The line through empty kernels with blocks of 4 warps."""
    samples = [MicrobenchSample(("4",), (blocks,), seconds, in_seconds=True) for blocks, seconds in times.items()]
    return fit.fit_launch(samples, "test")


def test_k9_regression_returns_the_line() -> None:
    fitted = fit_launch({blocks: Fraction(blocks * 2, 10**9) + Fraction(5, 10**6) for blocks in (1, 10, 100)})
    line = LaunchLine(*(float(each.value) for each in fitted))
    assert line.x1 == pytest.approx(2e-9, rel=1e-12)
    assert line.x2 == pytest.approx(5e-6, rel=1e-12)
    assert line.seconds(1000) == pytest.approx(7e-6, rel=1e-12)


def test_launch_time_is_added_to_the_waves() -> None:
    known = GpuParameters(
        2, 2, 1.0, Levels(80, 220, 400, 680), Levels(128, 32, 8, 4), device().limits, {2: LaunchLine(2e-9, 5e-6)}
    )
    found = estimate(known, alike(), measured_s=1e-5)
    assert found.launch_s == pytest.approx(20 * 2e-9 + 5e-6)
    assert found.seconds == pytest.approx(5.04e-6 + 3975e-9)
    assert found.error == pytest.approx(abs(1e-5 - 9.015e-6) / 1e-5)
    assert not found.warnings


def test_k10_relative_error() -> None:
    assert relative_error(2.0, 1.9) == pytest.approx(0.05)
    with pytest.raises(InputError, match="measured time must be positive"):
        relative_error(0, 1)


def test_one_grid_is_no_line() -> None:
    with pytest.raises(InputError, match="4: samples of at least 2 different counts are needed, not 1"):
        fit_launch({1: Fraction(1, 10**6)})
    with pytest.raises(MeasurementError, match="cannot be negative"):
        fit_launch({1: Fraction(2, 10**6), 10: Fraction(1, 10**6)})


# bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hits": (1.5, 0)}, "l1pct must be within 0..1"),
        ({"hits": (0, float("nan"))}, "l2pct must be within 0..1"),
        ({"hits": (0.7, 0.6)}, "at most 1 together"),
        ({"uncoal": 17}, r"uncoalMem 17 must be within 0\.\.mem, and mem is 16"),
        ({"mem": float("nan"), "uncoal": float("nan")}, "must be within"),
        ({"delay": float("nan")}, "delay must be finite"),
        ({"syncs": -1}, "syncs must be finite and at least 0"),
        ({"time": lambda lat: 1000 - lat}, "its time falls to .*; it must not fall"),
        ({"time": lambda lat: float("nan")}, "not a number of cycles"),
        ({"threads": 0}, "threads per block must be at least 1, not 0"),
        ({"threads": 2048}, "a block of this GPU has at most 1024"),
        ({"threads": 320}, "the block fits on no SM: it needs 10 warps, an SM has 8"),
        ({"blocks": 0}, "at least 1 block"),
    ],
)
def test_a_kernel_model_out_of_range_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate(device(), alike(**changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("latency", "bandwidth", "clock", "message"),
    [
        (Levels(80, 220, 400, 399), Levels(1, 1, 1, 1), 1.0, "lat_uncoal 399 is below lat_DRAM 400"),
        (Levels(0, 220, 400, 680), Levels(1, 1, 1, 1), 1.0, "lat_L1 must be positive"),
        (Levels(80, 220, 400, 680), Levels(1, 0, 1, 1), 1.0, "band_L2 must be positive"),
        (Levels(80, 220, 400, 680), Levels(1, 1, float("nan"), 1), 1.0, "band_DRAM must be positive"),
        (Levels(80, 220, 400, 680), Levels(1, 1, 1, 1), 0.0, "clock_ghz must be positive"),
    ],
)
def test_a_device_out_of_range_is_refused(latency: Levels, bandwidth: Levels, clock: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GpuParameters(2, 2, clock, latency, bandwidth, SmLimits(warp_size=32, blocks=1))


def test_eps_must_be_positive() -> None:
    with pytest.raises(InputError, match="eps must be positive"):
        Rules(eps=0)
