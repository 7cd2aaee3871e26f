"""The benchmark suite: measures every point of a plan, and turns the points into a cost table."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import hypot, pi, sqrt

from makespan.errors import MeasurementError
from makespan.estimators.opencl_cost_table import fits
from makespan.estimators.opencl_cost_table.counting import DIVISION_BY_LITERAL, OPERATIONS
from makespan.estimators.opencl_cost_table.device import Benchmark, Device, Run
from makespan.estimators.opencl_cost_table.experiments import (
    COPIES,
    EMPTY,
    FIXED_ITEMS,
    USUAL_GROUP,
    Chain,
    Difference,
    Plan,
    groups,
)
from makespan.estimators.opencl_cost_table.repetition import Measurement, repeated
from makespan.estimators.opencl_cost_table.table import CostTable, Line, Operation, Saturation, Transfer, WorkGroup

ITEM_BYTES = 4
Clock = Callable[[], float]
Kept = Callable[[str, Measurement], None]


@dataclass(frozen=True, slots=True)
class Point:
    """Something to measure; the key says what, and at which size."""

    key: str
    prepare: Callable[[], Run]


def points(device: Device, plan: Plan) -> tuple[Point, ...]:
    """All points of the suite, those that are compared with each other side by side, so that drift hits both."""
    return tuple({point.key: point for point in _points(device, plan)}.values())


def measure(
    device: Device,
    plan: Plan,
    *,
    known: Mapping[str, Measurement] | None = None,
    kept: Kept | None = None,
    seconds: float | None = None,
    clock: Clock = time.monotonic,
) -> dict[str, Measurement]:
    """Measure every point that is not yet known.

    Args:
        known: measured earlier on the same device by the same plan.
        kept: is told of every point, known or new, as soon as it is there.
        seconds: for all of it; every point gets its share of what is left, and 5 runs at least.

    Raises:
        MeasurementError: the device lacks something, or a kernel does not build or run.
    """
    if plan.double and not device.has_double:
        raise MeasurementError(f"{device.name} has no floats of 64 bits (cl_khr_fp64); leave out --double")
    found: dict[str, Measurement] = {}
    every, begin = points(device, plan), clock()
    for done, point in enumerate(every):
        if known and point.key in known:
            found[point.key] = known[point.key]
        else:
            share = None if seconds is None else max(0.0, begin + seconds - clock()) / (len(every) - done)
            found[point.key] = repeated(point.prepare(), tolerance=plan.tolerance, seconds=share, clock=clock)
        if kept is not None:
            kept(point.key, found[point.key])
    return found


def tabulate(device: Device, plan: Plan, measured: Mapping[str, Measurement], day: date) -> CostTable:
    """The cost table that the points of `measure` give."""
    found = _Found(plan, measured, _group(device))
    differences = {difference.row: difference for difference in plan.differences}
    return CostTable(
        device=device.name,
        driver=device.driver,
        date=day.isoformat(),
        units="us",
        transfer=Transfer(to=found.transfer(back=False), back=found.transfer(back=True)),
        base=fits.line(found.items, found.sweep(EMPTY)),
        wg=_work_group(found, groups(device.max_work_group)),
        ops={row: found.operation(d) for row, d in differences.items() if row in (*OPERATIONS, DIVISION_BY_LITERAL)},
        access={
            str(row): found.line(d) for row, d in differences.items() if row not in (*OPERATIONS, DIVISION_BY_LITERAL)
        },
        max_work_group=device.max_work_group,
        work_group=_group(device),
        int_chain=plan.int_chain,
        rel_tol=plan.tolerance,
        not_converged=tuple(key for key, measurement in measured.items() if not measurement.converged),
    )


def _points(device: Device, plan: Plan) -> Iterator[Point]:
    for size in plan.sizes:
        for back in (False, True):
            yield Point(_transfer_key(size, back), lambda size=size, back=back: device.transfer(size, back=back))  # type: ignore[misc]
    group = _group(device)
    for size in plan.sizes:
        yield _kernel(device, EMPTY, size // ITEM_BYTES, group)
        for difference in plan.differences:
            yield _kernel(device, difference.less, size // ITEM_BYTES, group)
            yield _kernel(device, difference.more, size // ITEM_BYTES, group)
    for group_size in groups(device.max_work_group):
        yield _kernel(device, COPIES["float"], FIXED_ITEMS, group_size)
    for n in plan.lengths:
        for chain in plan.chains:
            yield _kernel(device, chain.less(n), FIXED_ITEMS, group)
            yield _kernel(device, chain.more(n), FIXED_ITEMS, group)


def _kernel(device: Device, kernel: Benchmark, work_items: int, group: int) -> Point:
    return Point(_key(kernel, work_items, group), lambda: device.benchmark(kernel, work_items, group))


def _group(device: Device) -> int:
    return min(USUAL_GROUP, 1 << (device.max_work_group.bit_length() - 1))


def _key(kernel: Benchmark, work_items: int, group: int) -> str:
    return f"{kernel.name}, {work_items} work-items in groups of {group}"


def _transfer_key(size: int, back: bool) -> str:
    return f"transfer {'from' if back else 'to'}, {size} bytes"


def _work_group(found: "_Found", sizes: tuple[int, ...]) -> WorkGroup:
    times = {size: found.at(COPIES["float"], FIXED_ITEMS, size) for size in sizes}
    if min(times.values()) <= 0:
        raise MeasurementError(f"{FIXED_ITEMS} elements are copied in 0 us by the clock of the device; take another")
    return fits.work_group(times)


@dataclass(frozen=True, slots=True)
class _Found:
    """The measured points, by what they are points of; medians, in microseconds."""

    plan: Plan
    measured: Mapping[str, Measurement]
    group: int

    @property
    def items(self) -> list[int]:
        return [size // ITEM_BYTES for size in self.plan.sizes]

    def at(self, kernel: Benchmark, work_items: int, group: int | None = None) -> float:
        return self.measured[_key(kernel, work_items, group or self.group)].median

    def _error(self, kernel: Benchmark) -> float:
        """Of a median: that of the mean, larger by a quarter, as it is for normal noise."""
        return sqrt(pi / 2) * self.measured[_key(kernel, FIXED_ITEMS, self.group)].se

    def sweep(self, kernel: Benchmark) -> list[float]:
        return [self.at(kernel, items) for items in self.items]

    def transfer(self, *, back: bool) -> Line:
        times = [self.measured[_transfer_key(size, back)].median for size in self.plan.sizes]
        return fits.line(self.plan.sizes, times)

    def line(self, difference: Difference, *, through_origin: bool = False) -> Line:
        both = zip(self.sweep(difference.more), self.sweep(difference.less), strict=True)
        once = [(more - less) / difference.times for more, less in both]
        return fits.line(self.items, once, through_origin=through_origin)

    def operation(self, difference: Difference) -> Operation:
        """Only divisions have an intercept, by the model; those by literals are not chained, and so linear."""
        cost = self.line(difference, through_origin=not difference.row.endswith("_DIV"))
        chain = next((chain for chain in self.plan.chains if chain.row == difference.row), None)
        law = Saturation(kind="linear") if chain is None else self._saturation(chain, cost)
        return Operation(
            slope=cost.slope, icept=cost.icept, se=cost.se, r2=cost.r2, unresolved=cost.unresolved, saturation=law
        )

    def _saturation(self, chain: Chain, one: Line) -> Saturation:
        pairs = ((n, chain.more(n), chain.less(n)) for n in self.plan.lengths)
        times, errors = dict[int, float](), dict[int, float]()
        for n, more, less in pairs:
            times[n] = self.at(more, FIXED_ITEMS) - self.at(less, FIXED_ITEMS)
            errors[n] = hypot(self._error(more), self._error(less))
        law = fits.saturation(times, FIXED_ITEMS, errors=errors, irregular=chain.row.endswith("_DIV"))
        return fits.as_published(law, one)
