"""From samples to figures of a GPU: each is the slope of a line, so that what does not depend on the count cancels."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from statistics import median

from makespan.errors import InputError, MeasurementError
from makespan.estimators.gpu import Gpu
from makespan.estimators.kleimenov_popova.device import PREFIX
from makespan.estimators.kleimenov_popova.launch_time import EmptyKernel, fit_launches
from makespan.estimators.kleimenov_popova.microbench.chains import CHAIN, STREAM
from makespan.estimators.kleimenov_popova.microbench.samples import BANDWIDTH, MEMORY, Sample
from makespan.estimators.line import fit_line
from makespan.estimators.parameter import TOO_FEW, Parameter

NOISE = 0.05
"""By how much a measured issue delay may be below one cycle, the least there is."""

_KEYS = {CHAIN: "latency.{}", STREAM: "delay.{}", MEMORY: "lat_{}", BANDWIDTH: "band_{}"}


def fitted(samples: Iterable[Sample], gpu: Gpu, source: str, *, force: bool = False) -> tuple[Parameter, ...]:
    """The figures that samples tell; of several runs of a count the median counts, and all say how sure it is.

    Args:
        gpu: whose clock turns seconds into cycles.
        source: where the samples are from.
        force: take times that are on no line.

    Raises:
        InputError: seconds, and no clock.
        MeasurementError: one count only, times that do not rise with the count or are on no line; an issue delay far
            below one cycle.
    """
    runs: dict[tuple[str, str], dict[int, list[float]]] = {}
    for sample in samples:
        cycles = sample.time * gpu.number("clock_ghz") * 1e9 if sample.in_seconds else sample.time
        runs.setdefault((sample.measure, sample.name), {}).setdefault(sample.count, []).append(cycles)
    return tuple(
        _parameter(measure, name, by_count, source).accepted(force=force) for (measure, name), by_count in runs.items()
    )


def _parameter(measure: str, name: str, runs: Mapping[int, list[float]], source: str) -> Parameter:
    value = _value(measure, name, [(count, median(times)) for count, times in sorted(runs.items())])
    line = fit_line((count, time) for count, times in runs.items() for time in times)
    error = line.slope_error
    return Parameter(
        key=f"{PREFIX}.{_KEYS[measure].format(name)}",
        value=Fraction(value),
        error=error * value**2 if error is not None and measure == BANDWIDTH else error,  # of 1 / slope
        r_squared=None if error is None else line.r_squared,
        note=f"{source}: slope of a line through {len(runs)} counts",
        doubts=(TOO_FEW,) if error is None else (),
    )


def _value(measure: str, name: str, points: list[tuple[float, float]]) -> float:
    if len(points) < 2:
        raise MeasurementError(f"{measure} of {name}: one count is no line; measure at least two")
    slope = float(fit_line(points).slope)
    if slope <= 0:
        raise MeasurementError(f"{measure} of {name}: the time does not rise with the count; measure again")
    if measure == BANDWIDTH:
        return 1 / slope
    if measure == STREAM:
        return _issue_delay(slope, name)
    return slope


def _issue_delay(slope: float, name: str) -> float:
    if slope < 1 - NOISE:
        raise MeasurementError(
            f"delay of {name}: {slope:.3g} cycles for an instruction of one warp, fewer than 1: instructions were"
            " dropped or issued in pairs; measure again, or give it"
        )
    return max(slope, 1.0)


def launch_figures(measured: Iterable[EmptyKernel], source: str, *, force: bool = False) -> tuple[Parameter, ...]:
    """The launch lines as figures of a GPU; raises as `fit_launches` does."""
    found = []
    for warps, fit in fit_launches(measured, force=force).items():
        scatter = fit.line.scatter
        said = "" if scatter is None else f", times about it by {scatter / fit.mean:.2%} of their mean"
        for name, value, error in (
            ("x1", fit.line.slope, fit.line.slope_error),
            ("x2", fit.line.intercept, fit.line.intercept_error),
        ):
            r_squared = None if scatter is None else fit.line.r_squared
            note = f"{source}: line of blocks of {warps} warps{said}"
            made = Parameter(f"{PREFIX}.launch.{warps}.{name}", value, error, r_squared, note, fit.doubts)
            try:
                made.figure()
            except InputError as refused:
                raise InputError(f"{source}: {refused}") from None
            found.append(made)
    return tuple(found)
