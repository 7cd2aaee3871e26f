"""Memory latency and departure delays from measured times."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.hong_kim.exact import exact
from makespan.estimators.hong_kim.measured_device import Device, mean_with_error
from makespan.estimators.hong_kim.samples import PATTERNS, MemorySample
from makespan.estimators.line import Line, fit_line
from makespan.estimators.parameter import BANDWIDTH_LIMITED, Parameter

Method = Literal["slope", "single", "whole-gpu"]

LEAST_POINTS = 4
BANDWIDTH_MARGIN = Fraction(105, 100)

_LATENCY, _COAL, _UNCOAL = "hong_kim.mem_ld", "hong_kim.departure_del_coal", "hong_kim.departure_del_uncoal"


def fit_memory(
    samples: Sequence[MemorySample], device: Device, *, method: Method = "slope", force: bool = False
) -> tuple[Parameter, ...]:
    """Memory latency and departure delays, those of which there are samples.

    `slope` fits lines; `single` divides the time of one walk by its length, launch included, in place of the latency;
    `whole-gpu` divides the time of full grids by their requests, in place of the departure delays. Without samples of
    the latency kernel the latency is the time of the coalesced line at one request.

    Args:
        force: take what the quality of the fit speaks against.

    Raises:
        InputError: too few samples, or a number of the device that is missing.
        MeasurementError: a line that the samples do not lie on, or a time that does not grow.

    Source: slopes from T = Mem_LD + (R - 1) departure_del of a queue that takes one request every departure_del; the
        other methods from the slide deck by Ostapenko.
    """
    walks, coalesced, uncoalesced = (
        [sample for sample in samples if sample.pattern == pattern] for pattern in PATTERNS
    )
    found = [_single(walks, device)] if walks and method == "single" else []
    if walks and method != "single":
        found.append(_latency(walks, device))
    for key, runs in ((_COAL, coalesced), (_UNCOAL, uncoalesced)):
        if runs and method == "whole-gpu":
            found.append(_whole_gpu(key, runs, device))
        elif runs:
            line = _line(runs, device)
            if key == _COAL and not walks:
                found.append(_intercept(line))
            found.append(_departure(key, line, runs, device))
    return tuple(parameter.accepted(force=force) for parameter in found)


def _points(samples: Iterable[MemorySample], device: Device) -> list[tuple[int, Fraction]]:
    return [
        (sample.requests, sample.cycles(device.known("clock_ghz")) if sample.in_seconds else sample.time)
        for sample in samples
    ]


def _latency(walks: Sequence[MemorySample], device: Device) -> Parameter:
    if len({walk.requests for walk in walks}) < 2:
        raise InputError("latency: samples of at least two lengths are needed, or --method single")
    line = fit_line(_points(walks, device))
    note = f"slope of a line through walks of {_lengths(walks)} loads"
    return Parameter(_LATENCY, line.slope, line.slope_error, line.r_squared, note)


def _single(walks: Sequence[MemorySample], device: Device) -> Parameter:
    value, error = mean_with_error([cycles / requests for requests, cycles in _points(walks, device)])
    return Parameter(_LATENCY, value, error, None, f"time over length of walks of {_lengths(walks)} loads, with launch")


def _line(runs: Sequence[MemorySample], device: Device) -> Line:
    if len({run.requests for run in runs}) < LEAST_POINTS:
        raise InputError(
            f"{runs[0].pattern}: samples of at least {LEAST_POINTS} different numbers of requests are needed"
        )
    return fit_line(_points(runs, device))


def _intercept(line: Line) -> Parameter:
    return Parameter(_LATENCY, line.at(1), None, line.r_squared, "time of the coalesced line at one request")


def _departure(key: str, line: Line, runs: Sequence[MemorySample], device: Device) -> Parameter:
    share = _transactions(key, device)
    error = None if line.slope_error is None else line.slope_error / float(share)
    note = f"slope of a line through {_lengths(runs)} requests of a warp{_divided(share)}"
    return Parameter(key, line.slope / share, error, line.r_squared, note)


def _whole_gpu(key: str, runs: Sequence[MemorySample], device: Device) -> Parameter:
    """The deck's T f SMs / (K global_size / warp_size), whose denominator is the number of requests.

    The runs with the most requests count: in them the latency of the first request weighs least.
    """
    share, sms, most = _transactions(key, device), device.known("sms"), max(run.requests for run in runs)
    runs = [run for run in runs if run.requests == most]
    value, error = mean_with_error([cycles * sms / requests for requests, cycles in _points(runs, device)])
    limited = value / share <= BANDWIDTH_MARGIN * device.bandwidth_departure
    return Parameter(
        key,
        value / share,
        None if error is None else error / float(share),
        None,
        f"time of the whole GPU over {_lengths(runs)} requests of a warp{_divided(share)}",
        (BANDWIDTH_LIMITED,) if limited else (),
    )


def _transactions(key: str, device: Device) -> Fraction:
    """Of a request of a warp."""
    return exact(device.uncoal_per_mw, "uncoal_per_mw", positive=True) if key == _UNCOAL else Fraction(1)


def _lengths(samples: Iterable[MemorySample]) -> str:
    numbers = sorted({sample.requests for sample in samples})
    return ", ".join(map(str, numbers)) if len(numbers) <= 6 else f"{numbers[0]}..{numbers[-1]}"


def _divided(share: Fraction) -> str:
    return "" if share == 1 else f", over {float(share):g} transactions of each"
