"""Fits of samples: on a memory and a GPU whose parameters are known, through noise, and where there is no line."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from makespan.estimates.kleimenov_popova import LaunchLine, Levels, Timing
from makespan.estimates.microbench.fit import (
    Method,
    Parameter,
    bandwidth_departure,
    fit_instructions,
    fit_launch,
    fit_memory,
    fit_throughput,
)
from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.host.errors import InputError, MeasurementError
from makespan.model.machine import gpus
from tests.estimates.kleimenov_popova.inputs import gpu
from tests.estimates.microbench.virtual_gpu import VirtualGpu
from tests.estimates.microbench.virtual_memory import GTX280, QUADRO, DepartureQueue

REQUESTS = (32, 64, 128, 256)
HD6970 = gpus.find_gpu("hd6970")


def described(transactions: int, **known: float) -> gpus.Gpu:
    """A GPU of which a request has so many transactions."""
    data = {"warp_size": 32, "hong_kim.uncoal_per_mw": transactions, **known}
    return gpus.Gpu("test", {key: gpus.gpu_datum(key, value, source="test") for key, value in data.items()})


def values(parameters: Sequence[Parameter]) -> dict[str, Fraction]:
    return {found.key.partition(".")[2]: found.value for found in parameters}


# memory


def recovered(
    several: tuple[MicrobenchSample, ...], per_request: int, *, method: Method = "slope", force: bool = False
) -> dict[str, Fraction]:
    return values(fit_memory(several, described(per_request), "test", method=method, force=force))


@pytest.mark.parametrize(
    ("memory", "coalesced", "uncoalesced"),
    [
        (QUADRO, [544, 672, 928, 1440], [10650, 20890, 41370, 82330]),
        (GTX280, [574, 702, 958, 1470], [15770, 31130, 61850, 123290]),
    ],
    ids=["hong_kim_isca09_quadro_fx5600", "hong_kim_isca09_gtx280"],
)
def test_parameters_are_recovered_exactly_from_a_departure_queue(
    memory: DepartureQueue, coalesced: list[int], uncoalesced: list[int]
) -> None:
    assert [memory.run("coalesced", count) for count in REQUESTS] == coalesced
    assert [memory.run("uncoalesced", count) for count in REQUESTS] == uncoalesced
    truth = {
        "mem_ld": memory.latency,
        "departure_del_coal": memory.departure_coal,
        "departure_del_uncoal": memory.departure_uncoal,
    }
    assert recovered(memory.samples(), memory.uncoal_per_mw) == truth
    departures = tuple(sample for sample in memory.samples() if sample.what != ("latency",))
    assert recovered(departures, memory.uncoal_per_mw) == truth  # the latency is where the line starts


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("memory", [QUADRO, GTX280])
def test_one_percent_of_noise_costs_less_than_two(memory: DepartureQueue, seed: int) -> None:
    noisy = replace(memory, noise=0.01, seed=seed)
    found = recovered(noisy.samples(repeats=10), memory.uncoal_per_mw)
    for name, value in recovered(memory.samples(), memory.uncoal_per_mw).items():
        assert float(found[name]) == pytest.approx(float(value), rel=0.02), name


def test_the_overhead_of_a_launch_cancels_but_in_a_single_walk() -> None:
    late = replace(QUADRO, overhead=5000)
    assert recovered(late.samples(), 32) == recovered(QUADRO.samples(), 32)
    single = recovered(late.samples(steps=(1000,)), 32, method="single")["mem_ld"]
    assert single == Fraction(420 * 1000 + 5000, 1000)


def test_all_sms_measure_the_bandwidth_in_place_of_the_departure_delay() -> None:
    """As in the worked example of Hong and Kim: 16 SMs share 80 GB/s at 1 GHz, 25.6 cycles for each request."""
    crowd = replace(QUADRO, sms=16, departure_chip=Fraction(16, 10))
    card = described(32, clock_ghz=1, sms=16, mem_bw_gbs=80)
    found = fit_memory(crowd.whole_gpu_samples(requests=(4096,)), card, "test", method="whole-gpu")
    assert bandwidth_departure(card) == Fraction("25.6")
    assert float(found[0].value) == pytest.approx(25.6, rel=0.01)
    assert "bandwidth_limited" in found[0].datum().source
    assert [each.document()["bandwidth_limited"] for each in found] == [True, True]


def test_all_sms_measure_the_departure_delay_where_bandwidth_is_plenty() -> None:
    wide = DepartureQueue(420, 40, 10, 32, sms=4, departure_chip=Fraction(1))
    card = described(32, clock_ghz=1, sms=4, mem_bw_gbs=512)
    found = fit_memory(wide.whole_gpu_samples(requests=(2048,)), card, "test", method="whole-gpu")
    assert float(found[0].value) == pytest.approx(40, rel=0.01)
    assert [each.document()["bandwidth_limited"] for each in found] == [False, False]


def test_times_in_seconds_become_cycles_of_the_clock() -> None:
    hertz = Fraction("1.35") * 10**9
    seconds = tuple(replace(each, time=each.time / hertz, in_seconds=True) for each in QUADRO.samples())
    found = values(fit_memory(seconds, gpus.find_gpu("quadro-fx5600"), "test"))
    assert found == recovered(QUADRO.samples(), 32)
    with pytest.raises(InputError, match=r"clock_ghz \[GHz\] is not known"):
        fit_memory(seconds, described(32), "test")


def scattered(times: list[int], pattern: str = "coalesced") -> tuple[MicrobenchSample, ...]:
    counted = zip(REQUESTS, times, strict=False)
    return tuple(MicrobenchSample((pattern,), (count,), Fraction(time)) for count, time in counted)


def test_times_that_are_not_on_a_line_are_refused_unless_forced() -> None:
    several = scattered([544, 1500, 700, 1440])
    with pytest.raises(MeasurementError, match=r"mem_ld: R\^2 is 0\.\d+, below 0\.98: .* --force"):
        recovered(several, 32)
    (latency, departure) = fit_memory(several, described(32), "test", force=True)
    assert "below 0.98" in departure.datum().source
    assert latency.doubts


def test_a_time_that_does_not_grow_is_refused_even_if_forced() -> None:
    with pytest.raises(MeasurementError, match="departure_del_coal would be -"):
        recovered(scattered([1000, 900, 800, 700]), 32, force=True)
    with pytest.raises(MeasurementError, match="departure_del_coal would be 0: the time does not grow"):
        recovered(scattered([500, 500, 500, 500]), 32, force=True)


@pytest.mark.parametrize(
    ("several", "said"),
    [
        (scattered([544, 672, 928]), "coalesced: samples of at least 4 different counts are needed, not 32, 64, 128"),
        (scattered([13440], "latency"), "latency: samples of at least 2 different counts are needed, not 32"),
    ],
)
def test_too_few_samples_are_refused(several: tuple[MicrobenchSample, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recovered(several, 32)


# throughput


def timed(operation: str, rate: int, *, components: int = 1, factor: float = 1) -> MicrobenchSample:
    """A run of 2^20 work-items with 1000 operations on 24 compute units at 880 MHz, at so many per cycle."""
    work = 2**20 * 1000 * components
    seconds = Fraction(work, rate * 880 * 10**6 * 24) * Fraction(factor)
    return MicrobenchSample((operation,), (1000 * components, 2**20), seconds, in_seconds=True)


def test_the_median_of_the_runs_is_taken_and_vectors_count_their_components() -> None:
    runs = [timed("f32_add", 21, factor=factor) for factor in (1.02, 1, 0.99)]
    found = fit_throughput([*runs, timed("f32_add4", 40, components=4)], HD6970, "test")
    assert values(found) == {"throughput.f32_add": 21, "vector_throughput.f32_add": 40}
    assert found[1].error is None


def test_runs_that_differ_are_refused_unless_forced() -> None:
    runs = [timed("sin", 1), timed("sin", 1, factor=1.3)]
    with pytest.raises(MeasurementError, match=r"sin: its runs differ by 2\d\.\d% of their median"):
        fit_throughput(runs, HD6970, "test")
    assert fit_throughput(runs, HD6970, "test", force=True)[0].doubts


# instructions and launches

KNOWN = VirtualGpu(
    timing=Timing(
        {"f32": 6.0, "f64": 48.0, "i32": 5.0, "sfu": 21.0}, {"f32": 1.0, "f64": 32.0, "sfu": 4.0, "global": 2.0}
    ),
    memory=Levels(82, 216, 400, 680),
    bandwidth=Levels(128, 250, 77, 20),
    launch={1: LaunchLine(2e-9, 5e-6), 4: LaunchLine(3e-9, 6e-6)},
)
EXPECTED = {
    **{f"latency.{name}": value for name, value in KNOWN.timing.latencies.items()},
    **{f"delay.{name}": value for name, value in KNOWN.timing.delays.items()},
    **{f"lat_{name}": value for name, value in zip(("L1", "L2", "DRAM", "uncoal"), KNOWN.memory, strict=True)},
    **{f"band_{name}": value for name, value in zip(("L1", "L2", "DRAM", "uncoal"), KNOWN.bandwidth, strict=True)},
}


def line(measure: str, name: str, times: dict[int, float], *, in_seconds: bool = False) -> list[MicrobenchSample]:
    return [MicrobenchSample((measure, name), (n,), Fraction(time), in_seconds) for n, time in times.items()]


def test_every_parameter_is_recovered_exactly_or_to_two_percent_with_one_percent_of_noise() -> None:
    found = values(fit_instructions(replace(KNOWN, overhead=37).samples(), gpu(), "virtual"))
    assert found == pytest.approx(EXPECTED, rel=1e-12)
    for seed in range(5):
        noisy = replace(KNOWN, noise=0.01, seed=seed)
        found = values(fit_instructions(noisy.samples(repeats=60), gpu(), "virtual"))
        assert found == pytest.approx(EXPECTED, rel=0.02)


def test_launch_lines_are_recovered() -> None:
    exact = values(fit_launch(KNOWN.launches(), "virtual"))
    lines = {"1.x1": 2e-9, "1.x2": 5e-6, "4.x1": 3e-9, "4.x2": 6e-6}
    assert exact == pytest.approx({f"launch.{name}": value for name, value in lines.items()}, rel=1e-9)
    noisy = replace(KNOWN, noise=0.01, seed=3)
    assert values(fit_launch(noisy.launches(repeats=100), "virtual")) == pytest.approx(exact, rel=0.02)


def test_a_delay_a_little_below_one_cycle_is_one_and_far_below_is_refused() -> None:
    near = line("delay", "f32", {64: 64 * 0.97, 192: 192 * 0.97})
    assert [each.value for each in fit_instructions(near, gpu(), "test")] == [1]
    with pytest.raises(MeasurementError, match="fewer than 1"):
        fit_instructions(line("delay", "f32", {64: 32, 192: 96}), gpu(), "test")


def test_samples_that_make_no_line_are_refused() -> None:
    with pytest.raises(InputError, match="latency of f32: samples of at least 2 different counts are needed, not 64"):
        fit_instructions(line("latency", "f32", {64: 10}), gpu(), "test")
    with pytest.raises(MeasurementError, match=r"latency\.f32 would be 0: the time does not grow with the count"):
        fit_instructions(line("latency", "f32", {64: 10, 192: 10}), gpu(), "test")


def test_how_sure_a_figure_is_stands_beside_it_and_in_its_source() -> None:
    first, second = {64: 380.0, 192: 1150.0, 320: 1920.0}, {64: 390.0, 192: 1160.0, 320: 1930.0}
    some = [*line("latency", "f32", first), *line("latency", "f32", second)]
    (found,) = fit_instructions(some, gpu(), "latency, 'my.csv'")
    assert found.error is not None
    assert found.error == pytest.approx(0.0240, abs=1e-3)
    source = found.datum().source
    assert "latency, 'my.csv': slope of a line through 64, 192, 320" in source
    assert "standard error 0.0" in source
    assert "R^2 0.99" in source
    (band,) = fit_instructions([replace(each, what=("bandwidth", "L2")) for each in some], gpu(), "test")
    assert band.error == pytest.approx(found.error / float(found.value) ** 2, rel=1e-6)
    (two,) = fit_instructions(some[:2], gpu(), "test")
    assert (two.error, two.r_squared) == (None, None)
    assert "two times only" in two.datum().source


def test_seconds_of_instructions_become_cycles_by_the_clock() -> None:
    some = line("latency", "f32", {64: 64 * 6e-9, 192: 192 * 6e-9}, in_seconds=True)
    assert [float(each.value) for each in fit_instructions(some, gpu(), "test")] == pytest.approx([6])
    with pytest.raises(InputError, match="clock_ghz"):
        fit_instructions(some, gpus.Gpu("bare", {}), "test")
