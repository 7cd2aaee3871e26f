"""From samples to figures of a GPU: each is the slope of a line, so that what does not depend on the count cancels."""

from collections.abc import Iterable
from statistics import median

from makespan.errors import InputError, MeasurementError
from makespan.estimators.gpu import Figure, Gpu, Status, figure
from makespan.estimators.kleimenov_popova.device import PREFIX
from makespan.estimators.kleimenov_popova.launch_time import EmptyKernel, LaunchLine, fit_launches
from makespan.estimators.kleimenov_popova.microbench.chains import CHAIN, STREAM
from makespan.estimators.kleimenov_popova.microbench.samples import BANDWIDTH, MEMORY, Sample
from makespan.estimators.line import fit_line

NOISE = 0.05
"""By how much a measured issue delay may be below one cycle, the least there is."""

_KEYS = {CHAIN: "latency.{}", STREAM: "delay.{}", MEMORY: "lat_{}", BANDWIDTH: "band_{}"}


def fitted(samples: Iterable[Sample], gpu: Gpu, source: str) -> dict[str, Figure]:
    """The figures that samples tell, by key; of several runs of a count the median counts.

    Args:
        gpu: whose clock turns seconds into cycles.
        source: where the samples are from.

    Raises:
        InputError: seconds, and no clock.
        MeasurementError: one count only, or times that do not rise with the count; an issue delay far below one cycle.
    """
    runs: dict[tuple[str, str], dict[int, list[float]]] = {}
    for sample in samples:
        cycles = sample.time * gpu.number("clock_ghz") * 1e9 if sample.in_seconds else sample.time
        runs.setdefault((sample.measure, sample.name), {}).setdefault(sample.count, []).append(cycles)
    found: dict[str, Figure] = {}
    for (measure, name), by_count in runs.items():
        key = f"{PREFIX}.{_KEYS[measure].format(name)}"
        value = _value(measure, name, [(count, median(times)) for count, times in sorted(by_count.items())])
        found[key] = figure(key, value, source=source, status=Status.MEASURED)
    return found


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


def launch_figures(measured: Iterable[EmptyKernel], source: str) -> dict[str, Figure]:
    """The launch lines as figures of a GPU, by key; raises as `fit_launches` does."""
    found: dict[str, Figure] = {}
    for warps, line in fit_launches(measured).items():
        for name in LaunchLine._fields:
            key = f"{PREFIX}.launch.{warps}.{name}"
            try:
                found[key] = figure(key, getattr(line, name), source=source, status=Status.MEASURED)
            except InputError as error:
                raise InputError(f"{source}: {error}") from None
    return found
