"""How good the predictions of a cost table are: q = predicted time / time of the device, over many random kernels.

The times of a real device are measured.
"""

import random
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, floor, fsum, log, log2

import numpy as np

from makespan.estimates.opencl_cost_table import expression as ex
from makespan.estimates.opencl_cost_table import opencl_code, reference
from makespan.estimates.opencl_cost_table.access import overflows
from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.device import RELATIVE, TimedDevice, repeat_run
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, predict
from makespan.estimates.opencl_cost_table.reference import ArrayValues
from makespan.estimates.opencl_cost_table.table import OpenClCostTable
from makespan.host.errors import InputError, MeasurementError

DEPTH, MAX_DEPTH = 3, 6
SAMPLES, MAX_SAMPLES = 1000, 100_000
OPERATORS = {"random": "+-*/", "realistic": "+-*"}
Set = typing.Literal["random", "realistic"]
_LEAVES = {"own element": 50, "constant read": 15, "transposed read": 10, "literal": 15, "variable": 10}  # in percent
_GROWTH = 0.5  # how often an operand is an operation again
_LARGEST_LITERAL = 1000.0


def iterations(array: ex.Array, *, kind: Set, seed: int, depth: int = DEPTH) -> Iterator[ex.Iteration]:
    """Yield random iterations over a float array of two dimensions, without end; equal seeds give equal ones.

    Leaves are the own element (50 %), an element that is the same for all (15 %), the transposed element (10 %), a
    literal (15 %) and an iteration variable (10 %). Where an integer would be divided by another, the divisor is a
    variable plus 1, so that none divides by zero. Expressions whose integers may leave 32 bits, and mere constants, are
    drawn again.

    Args:
        kind: `random` has the operators + - * /, `realistic` no division.
    """
    if array.type is not ex.Type.FLOAT or len(array.shape) != 2 or min(array.shape) < 2:
        raise InputError(f"samples read a float array of two dimensions of at least 2, not {array.name}: {array.shape}")
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"--depth {depth}: from 1 to {MAX_DEPTH}")
    draw = _Draw(array, OPERATORS[kind], random.Random(f"{kind} {seed}"))  # noqa: S311 - no secret
    while True:
        try:
            body = draw.tree(depth, is_root=True)
        except InputError:  # constants that divide by zero or leave 32 bits
            continue
        if not isinstance(body, ex.Literal) and not overflows(body):
            yield ex.Iteration(array, ("x", "y"), body)


@dataclass(frozen=True, slots=True)
class _Draw:
    array: ex.Array
    operators: str
    random: random.Random

    def tree(self, depth: int, *, is_root: bool = False) -> ex.IterationExpression:
        if depth == 0 or not (is_root or self.random.random() < _GROWTH):
            return self._leaf()
        sign = self.random.choice(self.operators)
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        if sign == "/" and left.type is right.type is ex.Type.INT:  # a divisor of at least 1: never zero
            right = ex.operation("+", self._variable(), ex.literal(1))
        return ex.operation(sign, left, right)

    def _leaf(self) -> ex.IterationExpression:
        match self.random.choices(list(_LEAVES), list(_LEAVES.values()))[0]:
            case "own element":
                return ex.Read(self.array, tuple(self._variables()))
            case "constant read":
                return ex.Read(
                    self.array, tuple(ex.operation("%", ex.literal(1), ex.literal(s)) for s in self.array.shape)
                )
            case "transposed read":
                pairs = zip(reversed(self._variables()), self.array.shape, strict=True)
                return ex.Read(self.array, tuple(ex.operation("%", variable, ex.literal(s)) for variable, s in pairs))
            case "literal":
                return ex.literal(self.random.uniform(-_LARGEST_LITERAL, _LARGEST_LITERAL))
            case _:
                return self._variable()

    def _variable(self) -> ex.Variable:
        return self.random.choice(self._variables())

    def _variables(self) -> list[ex.Variable]:
        return [
            ex.Variable(name, at, extent) for at, (name, extent) in enumerate(zip("xy", self.array.shape, strict=True))
        ]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 10
RELATIVE_ERROR = 1e-5
BINS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class PredictionSample:
    """A kernel with its predicted and its measured time, in microseconds.

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
        """Return predicted over measured; above 1 the prediction is too high."""
        return self.predicted / self.measured


@dataclass(frozen=True, slots=True)
class Quality:
    """The statistics of q over samples.

    Args:
        device: its name.
        is_virtual: whether the device computed its times, so that nothing was measured.
    """

    samples: tuple[PredictionSample, ...]
    device: str
    is_virtual: bool

    def __post_init__(self) -> None:
        if not self.samples:
            raise InputError("no sample: give at least 1")

    @property
    def qs(self) -> list[float]:
        """Return the q of all samples, in their order."""
        return [sample.q for sample in self.samples]

    @property
    def mean(self) -> float:
        """Return the arithmetic mean of q."""
        return fsum(self.qs) / len(self.samples)

    @property
    def geometric_mean(self) -> float:
        """Return the geometric mean of q; 0 if a prediction is 0."""
        return exp(fsum(map(log, self.qs)) / len(self.samples)) if min(self.qs) > 0 else 0.0

    @property
    def within_factor_2(self) -> float:
        """Return the share of samples with 0.5 < q < 2."""
        return sum(0.5 < q < 2 for q in self.qs) / len(self.samples)

    def quantiles(self) -> dict[float, float]:
        """Return the quantiles of q by probability, linear between samples."""
        found = np.quantile(self.qs, QUANTILES)
        return {probability: float(q) for probability, q in zip(QUANTILES, found, strict=True)}

    @property
    def median(self) -> float:
        """Return the median of q."""
        return self.quantiles()[0.5]

    def worst(self) -> list[PredictionSample]:
        """Return the ten samples whose prediction is off by the largest factor, in either direction."""
        return sorted(self.samples, key=lambda s: -abs(log(s.q)) if s.q > 0 else -np.inf)[:WORST]

    def histogram(self) -> list[tuple[float, float, int]]:
        """Return bins of a quarter of an octave: from, to (exclusive), samples; those of q = 0 are in a bin 0..0."""
        places = Counter(floor(log2(q) * BINS_PER_OCTAVE) for q in self.qs if q > 0)
        zeros = [(0.0, 0.0, sum(q == 0 for q in self.qs))] if 0 in self.qs else []
        if not places:
            return zeros
        return zeros + [
            (2 ** (at / BINS_PER_OCTAVE), 2 ** ((at + 1) / BINS_PER_OCTAVE), places[at])
            for at in range(min(places), max(places) + 1)
        ]


def evaluate(
    device: TimedDevice,
    table: OpenClCostTable,
    iterations: Sequence[ex.Iteration],
    *,
    group: int,
    seed: int,
    tolerance: float = RELATIVE,
    seconds: float | None = None,
    kept: Callable[[PredictionSample], None] | None = None,
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


def values(arrays: Iterable[ex.Array], seed: int) -> dict[str, ArrayValues]:
    """Return random data for arrays: floats of 0.5..1.5 and integers of 0..99."""
    draw = np.random.default_rng(seed)
    return {
        array.name: (
            draw.random(array.shape) + 0.5 if array.type == "float" else draw.integers(0, 100, array.shape)
        ).astype(reference.DTYPES[array.type])
        for array in sorted(arrays, key=lambda array: array.name)
    }


def agree(found: ArrayValues, expected: ArrayValues) -> bool:
    """Return whether two results differ by rounding at most: 1e-5 of the value, or of 1 where the value is smaller."""
    return bool(np.allclose(found, expected, rtol=RELATIVE_ERROR, atol=RELATIVE_ERROR, equal_nan=True))


def _sample(
    device: TimedDevice,
    table: OpenClCostTable,
    iteration: ex.Iteration,
    data: Mapping[str, ArrayValues],
    group: int,
    tolerance: float,
    seconds: float | None,
) -> PredictionSample:
    counts = count(iteration, interval_bytes=table.interval_bytes)
    predicted = predict(table, LaunchWork(counts, iteration.work_items, group)).kernel
    executed = device.iteration(iteration, data, group)
    measured = repeat_run(executed.run, tolerance=tolerance, seconds=seconds)
    if measured.median <= 0:
        raise MeasurementError(f"{device.name}: a kernel takes 0 us by its clock; give a larger --shape")
    agrees = agree(executed.result, reference.evaluate(iteration, data))
    text = opencl_code.written_iteration(iteration)
    return PredictionSample(text, predicted, measured.median, measured.converged, agrees)
