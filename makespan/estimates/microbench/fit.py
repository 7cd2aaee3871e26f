"""From samples to parameters of a GPU: most are slopes of lines, so that what does not depend on the count cancels.

Of several runs of a count the median counts; the line through all of them says how sure the slope is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from statistics import mean, median, stdev
from typing import Literal

from makespan.estimates.hong_kim.model import exact, operations_per_cycle
from makespan.estimates.line import FittedLine, fit_line
from makespan.estimates.microbench.samples import BANDWIDTH, DELAY, LATENCY, MEMORY_LATENCY, PATTERNS, MicrobenchSample
from makespan.host.errors import InputError, MeasurementError
from makespan.model.machine.gpus import KEYS, DatumStatus, Gpu, GpuDatum, gpu_datum
from makespan.model.machine.values import shown

Method = Literal["slope", "single", "whole-gpu"]

LEAST_R_SQUARED = Fraction(98, 100)  # below, the times are on no line
TOO_FEW = "two times only: nothing says how well they fit"
BANDWIDTH_LIMITED = "bandwidth_limited: within 5 % of the distance that the bandwidth causes"
LOAD_BYTES = 4  # of a thread: the memory kernels load one float
LEAST_POINTS = 4
BANDWIDTH_MARGIN = Fraction(105, 100)
# Of the throughputs of one operation, greatest less smallest over the median: more is not one number.
MOST_SPREAD = Fraction(10, 100)
# Of launch times about their line, over their mean: more is no line, unless it rises and explains them by R^2.
MOST_SCATTER = 0.1
NOISE = 0.05  # by how much a measured issue delay may be below one cycle, the least there is

_KEYS = {
    LATENCY: "kleimenov_popova.latency.{}",
    DELAY: "kleimenov_popova.delay.{}",
    MEMORY_LATENCY: "kleimenov_popova.lat_{}",
    BANDWIDTH: "kleimenov_popova.band_{}",
}
_MEM_LD = "hong_kim.mem_ld"
_DEPARTURE = {"coalesced": "hong_kim.departure_del_coal", "uncoalesced": "hong_kim.departure_del_uncoal"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a GPU that was fitted to samples.

    Args:
        key: in a GPU description.
        error: standard error, in the unit of the value; None if there are too few points for one.
        r_squared: of the line it is the slope of; None if it is none.
        note: from what it was computed.
        doubts: what speaks against it.
    """

    key: str
    value: Fraction
    error: float | None
    r_squared: Fraction | None
    note: str
    doubts: tuple[str, ...] = ()

    def datum(self) -> GpuDatum:
        """Return the number for a GPU description."""
        sure = "" if self.error is None else f", standard error {self.error:.3g}"
        fit = "" if self.r_squared is None else f", R^2 {float(self.r_squared):.6f}"
        source = "; ".join([f"microbenchmark, {self.note}{sure}{fit}", *self.doubts])
        return gpu_datum(self.key, float(self.value), source=source, status=DatumStatus.MEASURED)

    def document(self) -> dict[str, object]:
        """Return the number as plain data."""
        return {
            "key": self.key,
            "value": float(self.value),
            "unit": self.datum().unit,
            "standard_error": self.error,
            "r_squared": None if self.r_squared is None else float(self.r_squared),
            "bandwidth_limited": BANDWIDTH_LIMITED in self.doubts,
            "note": self.note,
            "doubts": list(self.doubts),
        }

    def accepted(self, *, force: bool) -> "Parameter":
        """Return the parameter, with a doubt if `force` takes a bad fit.

        Raises:
            MeasurementError: it does not.
        """
        if self.r_squared is None or self.r_squared >= LEAST_R_SQUARED:
            return self
        doubt = f"R^2 is {float(self.r_squared):.4f}, below {float(LEAST_R_SQUARED)}"
        if not force:
            name = self.key.partition(".")[2]
            raise MeasurementError(f"{name}: {doubt}: the times are not on a line; measure again, or --force")
        return replace(self, doubts=(*self.doubts, doubt))


@dataclass(frozen=True, slots=True)
class _Runs:
    """The times of one thing that was measured, by count."""

    name: str
    times: Mapping[int, list[Fraction]]

    @property
    def counts(self) -> str:
        numbers = sorted(self.times)
        return ", ".join(map(str, numbers)) if len(numbers) <= 6 else f"{numbers[0]}..{numbers[-1]}"

    @property
    def all(self) -> list[tuple[int, Fraction]]:
        return [(count, time) for count, times in self.times.items() for time in times]

    @property
    def middle(self) -> FittedLine:
        return fit_line((count, median(times)) for count, times in self.times.items())

    def needs(self, least: int) -> None:
        if len(self.times) < least:
            raise InputError(f"{self.name}: samples of at least {least} different counts are needed, not {self.counts}")

    def slope(self, key: str, note: str, *, least: int = 2, per: Fraction = Fraction(1)) -> Parameter:
        """Return the slope as a parameter, over the `per` things that each count is."""
        self.needs(least)
        value, line = self.middle.slope / per, fit_line(self.all)  # medians give the value, all runs its error
        if value <= 0:  # noise outweighs what the count adds
            raise MeasurementError(
                f"{key.partition('.')[2]} would be {float(value):.4g}: the time does not grow with the count; measure"
                " with larger ones"
            )
        note = f"{note}: slope of a line through {self.counts}{_divisor_text(per)}"
        if line.slope_error is None:
            return Parameter(key, value, None, None, note, (TOO_FEW,))
        return Parameter(key, value, line.slope_error / float(per), line.r_squared, note)


def _runs(samples: Iterable[MicrobenchSample], gpu: Gpu | None = None) -> dict[tuple[str, ...], _Runs]:
    """Return the times by what was measured, in cycles by the clock of `gpu`, or as they are without a GPU."""
    found: dict[tuple[str, ...], dict[int, list[Fraction]]] = {}
    for sample in samples:
        clock = exact(gpu.number("clock_ghz"), "clock_ghz") * 10**9 if gpu and sample.in_seconds else 1
        found.setdefault(sample.what, {}).setdefault(sample.count, []).append(sample.time * clock)
    return {what: _Runs(" of ".join(what), times) for what, times in found.items()}


def fit_memory(
    samples: Sequence[MicrobenchSample], gpu: Gpu, source: str, *, method: Method = "slope", force: bool = False
) -> tuple[Parameter, ...]:
    """Return the memory latency and the departure delays that the samples give.

    `slope` fits lines; `single` divides the time of one walk by its length, launch included, in place of the latency;
    `whole-gpu` divides the time of full grids by their requests, in place of the departure delays. Without samples of
    the latency kernel the latency is the time of the coalesced line at one request.

    Args:
        gpu: of which a request has `hong_kim.uncoal_per_mw` transactions, or one for each thread of a warp.
        source: where the samples are from.
        force: take what the quality of the fit speaks against.

    Raises:
        InputError: too few samples, or a number of the GPU that is missing.
        MeasurementError: a line that the samples do not lie on, or a time that does not grow.

    Source: slopes from T = Mem_LD + (R - 1) departure_del of a queue that takes one request every departure_del; the
        other methods from the slide deck by Ostapenko.
    """
    runs = {what[0]: each for what, each in _runs(samples, gpu).items()}
    found = []
    walks = runs.get(PATTERNS[0])
    if walks is not None:
        walk = _single(walks, source) if method == "single" else walks.slope(_MEM_LD, source)
        found.append(walk)
    for pattern, key in _DEPARTURE.items():
        if pattern not in runs:
            continue
        per = _transactions(gpu) if pattern == "uncoalesced" else Fraction(1)
        if method == "whole-gpu":
            found.append(_whole_gpu(key, runs[pattern], gpu, per, source))
            continue
        departure = runs[pattern].slope(key, source, least=LEAST_POINTS, per=per)
        if walks is None and pattern == "coalesced":
            note = f"{source}: time of the coalesced line at one request"
            found.append(Parameter(_MEM_LD, runs[pattern].middle.at(1), None, departure.r_squared, note))
        found.append(departure)
    return tuple(parameter.accepted(force=force) for parameter in found)


def _single(walks: _Runs, source: str) -> Parameter:
    value, error = _mean([time / count for count, time in walks.all])
    return Parameter(_MEM_LD, value, error, None, f"{source}: time over length of walks of {walks.counts} loads")


def _whole_gpu(key: str, runs: _Runs, gpu: Gpu, per: Fraction, source: str) -> Parameter:
    """Return the deck's T f SMs / (K global_size / warp_size), whose denominator is the number of requests.

    The runs with the most requests count: in them the latency of the first request weighs least.
    """
    most = max(runs.times)
    value, error = _mean([time * gpu.whole("sms") / most for time in runs.times[most]])
    limited = value / per <= BANDWIDTH_MARGIN * bandwidth_departure(gpu)  # then it says nothing of the departure delay
    note = f"{source}: time of the whole GPU over {most} requests of a warp{_divisor_text(per)}"
    error = None if error is None else error / float(per)
    return Parameter(key, value / per, error, None, note, (BANDWIDTH_LIMITED,) if limited else ())


def bandwidth_departure(gpu: Gpu) -> Fraction:
    """Return the cycles between two requests of an SM that the memory bandwidth leaves if all SMs are busy."""
    # GB/s over GHz
    bytes_per_cycle = exact(gpu.number("mem_bw_gbs"), "mem_bw_gbs") / exact(gpu.number("clock_ghz"), "clock_ghz")
    return LOAD_BYTES * gpu.whole("warp_size") * gpu.whole("sms") / bytes_per_cycle


def _transactions(gpu: Gpu) -> Fraction:
    given = gpu.get("hong_kim.uncoal_per_mw")
    return Fraction(gpu.whole("warp_size")) if given is None else exact(given, "uncoal_per_mw")


def fit_throughput(
    samples: Sequence[MicrobenchSample], gpu: Gpu, source: str, *, force: bool = False
) -> tuple[Parameter, ...]:
    """Return the operations per cycle of one SM: the median of the runs of each operation.

    Names that end in 4 are those of operations on vectors, whose runs count components.

    Raises:
        InputError: an operation that has no place in a GPU description, or a number of the GPU that is missing.
        MeasurementError: runs of an operation that differ by more than 10 % of their median.
    """
    clock, sms = exact(gpu.number("clock_ghz"), "clock_ghz"), gpu.whole("sms")
    found = []
    for (operation,), runs in _runs(samples).items():
        rates = [
            operations_per_cycle(
                global_size=1, operations=work, seconds=time, clock_mhz=clock * 1000, compute_units=sms
            )
            for work, time in runs.all
        ]
        rate = median(rates)
        spread = (max(rates) - min(rates)) / rate
        doubts = (f"its runs differ by {float(spread):.1%}",) if spread > MOST_SPREAD else ()
        if doubts and not force:
            raise MeasurementError(f"{operation}: {doubts[0]} of their median; measure again, or --force")
        note = f"{source}: median of {len(rates)} runs"
        found.append(Parameter(_throughput_key(operation), rate, _mean(rates)[1], None, note, doubts))
    return tuple(found)


def _throughput_key(operation: str) -> str:
    scalar = operation.removesuffix("4")
    table = "hong_kim.throughput." if scalar == operation else "hong_kim.vector_throughput."
    if table + scalar not in KEYS:
        known = ", ".join(key.removeprefix(table) for key in KEYS if key.startswith(table))
        raise InputError(f"a GPU description has no place for operation {shown(operation)}; known: {known}, and NAME4")
    return table + scalar


def fit_instructions(
    samples: Iterable[MicrobenchSample], gpu: Gpu, source: str, *, force: bool = False
) -> tuple[Parameter, ...]:
    """Return latencies and issue delays of instructions, and latencies and bandwidths of memory.

    Raises:
        InputError: one count only, or seconds, and no clock.
        MeasurementError: times that do not grow with the count or are on no line; a delay far below one cycle.
    """
    found = []
    for (measure, name), runs in _runs(samples, gpu).items():
        one = runs.slope(_KEYS[measure].format(name), source)
        if measure == BANDWIDTH:
            value = 1 / one.value  # the slope is cycles per byte; its error follows by the derivative of 1 / x
            one = replace(one, value=value, error=None if one.error is None else one.error * float(value) ** 2)
        if measure == DELAY and one.value < 1 - NOISE:
            raise MeasurementError(
                f"delay of {name}: {float(one.value):.3g} cycles for an instruction of one warp, fewer than 1:"
                " instructions were dropped or issued in pairs; measure again, or give it"
            )
        # below 1 is noise: see NOISE
        found.append(replace(one, value=max(one.value, Fraction(1))) if measure == DELAY else one)
    return tuple(parameter.accepted(force=force) for parameter in found)


def fit_launch(samples: Iterable[MicrobenchSample], source: str, *, force: bool = False) -> tuple[Parameter, ...]:
    """Return the launch time as a line in the number of blocks, for every number of warps of a block.

    Raises:
        InputError: one size of the grid only.
        MeasurementError: a line that falls or begins below zero, or times that scatter about it by more than a tenth
            of their mean while R^2 is below 0.98.

    Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021: one regression per block size.
    """
    found = []
    for (warps,), runs in sorted(_runs(samples).items(), key=lambda item: int(item[0][0])):
        runs.needs(2)
        line, average = fit_line(runs.all), float(mean(time for _, time in runs.all))
        if min(line.slope, line.intercept) < 0:
            raise MeasurementError(
                f"blocks of {warps} warps: launch time {float(line.slope):g} s/block * blocks +"
                f" {float(line.intercept):g} s cannot be negative; measure again, with larger grids or more repetitions"
            )
        doubts = (
            (TOO_FEW,) if line.scatter is None else _scatter_notes(line, line.scatter / average, warps, force=force)
        )
        said = "" if line.scatter is None else f", times about it by {line.scatter / average:.2%} of their mean"
        for name, value, error in (
            ("x1", line.slope, line.slope_error),
            ("x2", line.intercept, line.intercept_error),
        ):
            fit, note = None if error is None else line.r_squared, f"{source}: line of blocks of {warps} warps{said}"
            found.append(Parameter(f"kleimenov_popova.launch.{warps}.{name}", value, error, fit, note, doubts))
    return tuple(found)


def _scatter_notes(line: FittedLine, share: float, warps: str, *, force: bool) -> tuple[str, ...]:
    if line.r_squared is None or line.r_squared >= LEAST_R_SQUARED or share <= MOST_SCATTER:
        return ()
    doubt = f"the times scatter about the line by {share:.0%} of their mean"
    if not force:
        raise MeasurementError(f"blocks of {warps} warps: {doubt}; measure again, or --force")
    return (doubt,)


def _mean(values: Sequence[Fraction]) -> tuple[Fraction, float | None]:
    """Return the mean and its standard error; one value has none."""
    return mean(values), None if len(values) == 1 else stdev(values) / sqrt(len(values))


def _divisor_text(per: Fraction) -> str:
    return "" if per == 1 else f", over {float(per):g} transactions of each"
