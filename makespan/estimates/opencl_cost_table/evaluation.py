"""How good the predictions of a cost table are: q = predicted time / time of the device, over many random kernels.

The times of a real device are measured.
"""

import random
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, floor, fsum, log, log2

import numpy as np

from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.device import RELATIVE, TimedDevice, repeat_run
from makespan.estimates.opencl_cost_table.expression import (
    Array,
    Expression,
    Iteration,
    IterationVariable,
    Type,
    literal,
    operation,
    overflows,
)
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, predict
from makespan.estimates.opencl_cost_table.table import OpenClCostTable
from makespan.host.errors import InputError, MeasurementError

DEPTH, MAX_DEPTH = 3, 6
OPERATORS = {"random": "+-*/", "realistic": "+-*"}
Set = typing.Literal["random", "realistic"]
_LEAVES = {"own element": 50, "constant read": 15, "transposed read": 10, "literal": 15, "variable": 10}  # in percent
_GROWTH = 0.5  # how often an operand is an operation again
_LARGEST_LITERAL = 1000.0


def iterations(array: Array, *, kind: Set, seed: int, depth: int = DEPTH) -> Iterator[Iteration]:
    """Yield random iterations over a float array of two dimensions, without end; equal seeds give equal ones.

    Leaves are the own element (50 %), an element that is the same for all (15 %), the transposed element (10 %), a
    literal (15 %) and an iteration variable (10 %). Where an integer would be divided by another, the divisor is a
    variable plus 1, so that none divides by zero. Expressions whose integers may leave 32 bits, and mere constants, are
    drawn again.

    Args:
        kind: `random` has the operators + - * /, `realistic` no division.
    """
    if array.type is not Type.FLOAT or len(array.shape) != 2 or min(array.shape) < 2:
        raise InputError(f"samples read a float array of two dimensions of at least 2, not {array.name}: {array.shape}")
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"--depth {depth}: from 1 to {MAX_DEPTH}")
    draw = _Draw(array, OPERATORS[kind], random.Random(f"{kind} {seed}"))  # noqa: S311 - no secret
    while True:
        try:
            body = draw.tree(depth, is_root=True)
        except InputError:  # constants that divide by zero or leave 32 bits
            continue
        if not body.is_constant and not overflows(body):
            yield Iteration(array, ("x", "y"), body)


@dataclass(frozen=True, slots=True)
class _Draw:
    array: Array
    operators: str
    random: random.Random

    def tree(self, depth: int, *, is_root: bool = False) -> Expression:
        if depth == 0 or not (is_root or self.random.random() < _GROWTH):
            return self._leaf()
        sign = self.random.choice(self.operators)
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        if sign == "/" and left.type is right.type is Type.INT:  # a divisor of at least 1: never zero
            right = operation("+", self._variable(), literal(1))
        return operation(sign, left, right)

    def _leaf(self) -> Expression:
        variables = self._variables()
        match self.random.choices(list(_LEAVES), list(_LEAVES.values()))[0]:
            case "own element":
                return Expression(self.array, tuple(variables))
            case "constant read":
                return self._read_modulo([literal(1), literal(1)])
            case "transposed read":
                return self._read_modulo(variables[::-1])
            case "literal":
                return literal(self.random.uniform(-_LARGEST_LITERAL, _LARGEST_LITERAL))
            case _:
                return self._variable()

    def _read_modulo(self, subscripts: list[Expression]) -> Expression:
        pairs = zip(subscripts, self.array.shape, strict=True)
        return Expression(self.array, tuple(operation("%", index, literal(extent)) for index, extent in pairs))

    def _variable(self) -> Expression:
        return self.random.choice(self._variables())

    def _variables(self) -> list[Expression]:
        return [Expression(IterationVariable(*each)) for each in zip("xy", self.array.shape, strict=True)]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 10
BINS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class PredictionSample:
    """A kernel with its predicted and its measured time, in microseconds."""

    expression: str
    predicted: float
    measured: float
    converged: bool

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
    iterations: Sequence[Iteration],
    *,
    group: int,
    tolerance: float = RELATIVE,
    seconds: float | None = None,
    kept: Callable[[PredictionSample], None] | None = None,
) -> Quality:
    """Predict and run kernels; the first that is measured tells nothing of the second.

    Args:
        group: work-items of a work-group.
        seconds: for all runs; every kernel gets its share, and 5 runs at least.
        kept: is told of every sample as soon as it is there.

    Raises:
        InputError: the table cannot price a kernel.
        MeasurementError: the device cannot run one.
    """
    samples = []
    share = None if seconds is None else seconds / len(iterations)
    for iteration in iterations:
        counts = count(iteration, interval_bytes=table.interval_bytes)
        predicted = predict(table, LaunchWork(counts, iteration.work_items, group)).kernel
        measured = repeat_run(device.iteration(iteration, group), tolerance=tolerance, seconds=share)
        if measured.median <= 0:
            raise MeasurementError(f"{device.name}: a kernel takes 0 us by its clock; give a larger --shape")
        samples.append(PredictionSample(str(iteration), predicted, measured.median, measured.converged))
        if kept is not None:
            kept(samples[-1])
    return Quality(tuple(samples), device.name, device.is_virtual)
