"""Throughputs of operations from measured times."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median

from makespan.errors import InputError, MeasurementError
from makespan.estimators.gpu_keys import KEYS
from makespan.estimators.hong_kim.measured_device import Device, mean_with_error
from makespan.estimators.hong_kim.samples import ThroughputSample
from makespan.estimators.hong_kim.throughput import operations_per_cycle
from makespan.estimators.parameter import Parameter
from makespan.machine.values import shown

MOST_SPREAD = Fraction(10, 100)
"""Of the throughputs of one operation, greatest less smallest over the median: more is not one number."""


def fit_throughput(
    samples: Sequence[ThroughputSample], device: Device, *, force: bool = False
) -> tuple[Parameter, ...]:
    """Operations per cycle of one SM: the median of the runs of each operation.

    Names that end in 4 are those of operations on vectors, whose runs count components.

    Raises:
        InputError: an operation that has no place in a GPU description, or a number of the device that is missing.
        MeasurementError: runs of an operation that differ by more than 10 % of their median.
    """
    found = []
    for operation, runs in _by_operation(samples).items():
        clock, sms = device.known("clock_ghz"), int(device.known("sms"))
        rates = [
            operations_per_cycle(
                global_size=run.global_size,
                operations=run.operations,
                seconds=run.seconds,
                clock_mhz=clock * 1000,
                compute_units=sms,
            )
            for run in runs
        ]
        rate = median(rates)
        spread = (max(rates) - min(rates)) / rate
        doubts = (f"its runs differ by {float(spread):.1%}",) if spread > MOST_SPREAD else ()
        if doubts and not force:
            raise MeasurementError(f"{operation}: {doubts[0]} of their median; measure again, or --force")
        _, error = mean_with_error(rates)
        found.append(Parameter(_throughput_key(operation), rate, error, None, f"median of {len(runs)} runs", doubts))
    return tuple(found)


def _by_operation(samples: Iterable[ThroughputSample]) -> Mapping[str, list[ThroughputSample]]:
    runs: dict[str, list[ThroughputSample]] = {}
    for sample in samples:
        runs.setdefault(sample.operation, []).append(sample)
    return runs


def _throughput_key(operation: str) -> str:
    scalar = operation.removesuffix("4")
    table = "hong_kim.throughput." if scalar == operation else "hong_kim.vector_throughput."
    if table + scalar not in KEYS:
        known = ", ".join(key.removeprefix(table) for key in KEYS if key.startswith(table))
        raise InputError(f"a GPU description has no place for operation {shown(operation)}; known: {known}, and NAME4")
    return table + scalar
