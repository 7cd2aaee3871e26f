"""How good the predictions of a cost table are: q = predicted time / time of the device, over many kernels.

The times of a real device are measured.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, floor, fsum, log, log2

import numpy as np

from makespan.errors import InputError, MeasurementError
from makespan.estimators.opencl_cost_table import opencl_code, reference
from makespan.estimators.opencl_cost_table.counting import count
from makespan.estimators.opencl_cost_table.device import Device
from makespan.estimators.opencl_cost_table.expression import Array, Iteration
from makespan.estimators.opencl_cost_table.prediction import Work, predict
from makespan.estimators.opencl_cost_table.reference import Values
from makespan.estimators.opencl_cost_table.repetition import RELATIVE, repeated
from makespan.estimators.opencl_cost_table.table import CostTable

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 10
RELATIVE_ERROR = 1e-5
BINS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel; times in microseconds.

    Args:
        agrees: whether the device computed what numpy computes.
    """

    expression: str
    predicted: float
    measured: float
    converged: bool
    agrees: bool

    @property
    def q(self) -> float:
        """Above 1 the prediction is too high."""
        return self.predicted / self.measured


@dataclass(frozen=True, slots=True)
class Quality:
    """Statistics of q over samples.

    Args:
        device: its name.
        is_virtual: whether the device computed its times, so that nothing was measured.
    """

    samples: tuple[Sample, ...]
    device: str
    is_virtual: bool

    def __post_init__(self) -> None:
        if not self.samples:
            raise InputError("no sample: give at least 1")

    @property
    def qs(self) -> list[float]:
        """Of all samples, in their order."""
        return [sample.q for sample in self.samples]

    @property
    def mean(self) -> float:
        """The arithmetic one."""
        return fsum(self.qs) / len(self.samples)

    @property
    def geometric_mean(self) -> float:
        """0 if anything was predicted to take no time."""
        return exp(fsum(map(log, self.qs)) / len(self.samples)) if min(self.qs) > 0 else 0.0

    @property
    def within_factor_2(self) -> float:
        """The share of samples with 0.5 < q < 2."""
        return sum(0.5 < q < 2 for q in self.qs) / len(self.samples)

    def quantiles(self) -> dict[float, float]:
        """Of q, by probability; linear between samples."""
        found = np.quantile(self.qs, QUANTILES)
        return {probability: float(q) for probability, q in zip(QUANTILES, found, strict=True)}

    @property
    def median(self) -> float:
        """Half of the predictions are higher than this many times the truth."""
        return self.quantiles()[0.5]

    def worst(self) -> list[Sample]:
        """The ten that are off by the largest factor, either way."""
        return sorted(self.samples, key=lambda s: -abs(log(s.q)) if s.q > 0 else -np.inf)[:WORST]

    def histogram(self) -> list[tuple[float, float, int]]:
        """Bins of a quarter of an octave: from, to (not included), samples; those of q = 0 are in a bin 0..0."""
        places = Counter(floor(log2(q) * BINS_PER_OCTAVE) for q in self.qs if q > 0)
        zeros = [(0.0, 0.0, sum(q == 0 for q in self.qs))] if 0 in self.qs else []
        if not places:
            return zeros
        return zeros + [
            (2 ** (at / BINS_PER_OCTAVE), 2 ** ((at + 1) / BINS_PER_OCTAVE), places[at])
            for at in range(min(places), max(places) + 1)
        ]


def evaluate(
    device: Device,
    table: CostTable,
    iterations: Sequence[Iteration],
    *,
    group: int,
    seed: int,
    tolerance: float = RELATIVE,
    seconds: float | None = None,
    kept: Callable[[Sample], None] | None = None,
) -> Quality:
    """Predict and run kernels; the first that is measured tells nothing of the second.

    Args:
        group: work-items of a work-group.
        seed: of the data.
        seconds: for all runs; every kernel gets its share, and 5 runs at least.
        kept: is told of every sample as soon as it is there.

    Raises:
        InputError: the table cannot price a kernel.
        MeasurementError: the device cannot run one.
    """
    data = values({array for iteration in iterations for array in iteration.arrays}, seed)
    samples = []
    share = None if seconds is None else seconds / len(iterations)
    for iteration in iterations:
        sample = _sample(device, table, iteration, data, group, tolerance, share)
        samples.append(sample)
        if kept is not None:
            kept(sample)
    return Quality(tuple(samples), device.name, device.is_virtual)


def values(arrays: Iterable[Array], seed: int) -> dict[str, Values]:
    """Random data for arrays: floats of 0.5..1.5 and integers of 0..99."""
    draw = np.random.default_rng(seed)
    return {
        array.name: (
            draw.random(array.shape) + 0.5 if array.type == "float" else draw.integers(0, 100, array.shape)
        ).astype(reference.DTYPES[array.type])
        for array in sorted(arrays, key=lambda array: array.name)
    }


def agree(found: Values, expected: Values) -> bool:
    """Whether two results differ by rounding at most: by 1e-5 of the value, or of 1 where the value is smaller."""
    return bool(np.allclose(found, expected, rtol=RELATIVE_ERROR, atol=RELATIVE_ERROR, equal_nan=True))


def _sample(
    device: Device,
    table: CostTable,
    iteration: Iteration,
    data: Mapping[str, Values],
    group: int,
    tolerance: float,
    seconds: float | None,
) -> Sample:
    counts = count(iteration, interval_bytes=table.interval_bytes)
    predicted = predict(table, Work(counts, iteration.work_items, group)).kernel
    executed = device.iteration(iteration, data, group)
    measured = repeated(executed.run, tolerance=tolerance, seconds=seconds)
    if measured.median <= 0:
        raise MeasurementError(f"{device.name}: a kernel takes 0 us by its clock; give a larger --shape")
    agrees = agree(executed.result, reference.evaluate(iteration, data))
    text = opencl_code.written_iteration(iteration)
    return Sample(text, predicted, measured.median, measured.converged, agrees)
