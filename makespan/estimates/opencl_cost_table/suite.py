"""The benchmark suite: experiments B1 to B7, the measurement of their points, and the cost table that these give."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import hypot, pi, sqrt
from typing import Literal

import msgspec

from makespan.estimates.opencl_cost_table import fits
from makespan.estimates.opencl_cost_table.device import (
    COLUMNS,
    Benchmark,
    Element,
    Measurement,
    TimedDevice,
    TimedRun,
    repeat_run,
)
from makespan.estimates.opencl_cost_table.table import (
    BASE,
    DIVISION_BY_LITERAL,
    OPERATIONS,
    AccessKind,
    LinearCost,
    OpenClCostTable,
    OperationCost,
    RowCounts,
    Saturation,
    Transfer,
)
from makespan.host.errors import InputError, MeasurementError

STEP, LARGEST = 128 << 10, 16 << 20  # bytes of the sweep over sizes
QUICK = 16  # points of it
FIXED_ITEMS = 1 << 20
USUAL_GROUP = 256
MOST_CHAINED = 128

IntChain = Literal["mixed", "fold"]
_ID = "const int i = get_global_id(0); "
_XY = f"{_ID}const int x = (i/{COLUMNS})%4096; const int y = (i/1)%{COLUMNS}; "
_SIGNS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_NUMBER: Mapping[Element, float] = {"float": 1.5, "double": 1.5, "int": 7}
_WRITE: dict[str, int] = {AccessKind.WRITE: 1}
_COPY: dict[str, int] = {AccessKind.UNCLASSIFIED: 1, AccessKind.WRITE: 1}


def _benchmark(
    name: str, body: str, element: Element, counts: Mapping[str, int], literals: int = 0, *, has_rows: bool = False
) -> Benchmark:
    number = None if has_rows else _NUMBER[element]
    return Benchmark(name, body, element, number, RowCounts({BASE: 1, **counts}, literals))


EMPTY = _benchmark("empty", "", "float", {})
STORE = _benchmark("store", f"{_ID}out[i] = a;", "float", _WRITE)
COPIES: Mapping[Element, Benchmark] = {
    element: _benchmark(f"copy {element}", f"{_ID}out[i] = in[i];", element, _COPY) for element in _NUMBER
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A cost that is found as the time of one kernel less that of the same kernel without it.

    Args:
        row: of the table.
        more: the kernel with it.
        less: and without.
        times: how often it occurs in `more`.
    """

    row: str
    more: Benchmark
    less: Benchmark
    times: int = 1


def _signs(elements: Iterable[Element]) -> Iterator[tuple[str, Element, str]]:
    for element in elements:
        kind = "INT" if element == "int" else element.upper()
        yield from ((f"{kind}_{name}", element, sign) for name, sign in _SIGNS.items())


def _one_operation(row: str, element: Element, sign: str) -> Difference:
    """Return B4: one operation on an element of an array and an argument, with its result stored."""
    more = _benchmark(row, f"{_ID}out[i] = in[i] {sign} a;", element, {**_COPY, row: 1})
    return Difference(row, more, COPIES[element])


def _chain(row: str, element: Element, sign: str, n: int, *, is_mixed: bool) -> Difference:
    """Return B5: n operations that depend on each other; exclusive or between them keeps a compiler from folding."""

    def kernel(name: str, steps: Iterable[str], counts: Mapping[str, int]) -> Benchmark:
        body = f"{_ID}{element} v = in[i]; {' '.join(steps)} out[i] = v;"
        return _benchmark(name, body, element, {**_COPY, **counts})

    if not is_mixed:
        return Difference(row, kernel(f"{row} x{n}", [f"v = v {sign} a;"] * n, {row: n}), COPIES[element])
    more = kernel(f"{row} x{n}", (f"v = (v {sign} c[{at}]) ^ v;" for at in range(n)), {row: n})
    less = kernel(f"exclusive or x{n}", (f"v = c[{at}] ^ v;" for at in range(n)), {row: 0})
    return Difference(row, more, less)


def _other_differences() -> Iterator[Difference]:
    """Yield the rest of B4, divisions by literals, then B6, kinds of memory, and B7, classes of reads.

    Kinds of memory are a store less nothing, and reads less a kernel that only stores. A class of reads is a read at an
    index that is recovered as in an iteration, less a kernel that stores the index; the array of the complex class is
    read by columns, and `a` is the number of rows.
    """
    yield Difference(
        DIVISION_BY_LITERAL,
        _benchmark("recovery", f"{_XY}out[i] = x ^ y;", "int", {**_WRITE, "INT_DIV": 4}, literals=4),
        _benchmark("number", f"{_ID}out[i] = i ^ a;", "int", _WRITE),
        times=4,
    )
    yield Difference(AccessKind.WRITE, STORE, EMPTY)
    yield Difference(AccessKind.UNCLASSIFIED, COPIES["float"], STORE)
    local = (
        f"{_ID}__local float shared[{USUAL_GROUP}]; const int own = get_local_id(0); shared[own] = a;"
        " barrier(CLK_LOCAL_MEM_FENCE); out[i] = shared[own ^ 1];"
    )
    for access, body, times in ((AccessKind.LOCAL, local, 2), (AccessKind.PRIVATE, f"{_ID}out[i] = i;", 1)):
        yield Difference(access, _benchmark(access, body, "float", {**_WRITE, access: times}), STORE, times)
    for access, index, recovered in (
        (AccessKind.CONSTANT, "1", 0),
        (AccessKind.INTERVAL, "y", 4),
        (AccessKind.CONTINUOUS, f"y + x*{COLUMNS}", 4),
        (AccessKind.COMPLEX, "x + y*a", 4),
    ):
        counts = {**_WRITE, "INT_DIV": recovered}
        yield Difference(
            access,
            _benchmark(access, f"{_XY}out[i] = in[{index}];", "int", {**counts, access: 1}, recovered, has_rows=True),
            _benchmark(f"index of {access}", f"{_XY}out[i] = {index};", "int", counts, recovered, has_rows=True),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The sweeps of the experiments.

    Args:
        quick: 16 sizes instead of 128.
        full: all numbers of chained operations from 1 to 128, instead of the powers of two.
        int_chain: whether chains of integers are `mixed` with exclusive or, so that they stay chains.
        double: measure floats of 64 bits, too.
        tolerance: of the standard error of a point, relative to its mean.
    """

    quick: bool = False
    full: bool = False
    int_chain: IntChain = "mixed"
    double: bool = False
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(f"--rel-tol {self.tolerance}: a part of the mean, above 0 and below 1")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of transfers in bytes; a work-item of a kernel stands for 4 of them."""
        step = LARGEST // QUICK if self.quick else STEP
        return tuple(range(step, LARGEST + 1, step))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return the numbers of chained operations."""
        doubled = tuple(1 << power for power in range(MOST_CHAINED.bit_length()))
        return tuple(range(1, MOST_CHAINED + 1)) if self.full else doubled

    @property
    def _operations(self) -> tuple[tuple[str, Element, str], ...]:
        return tuple(_signs(("float", "int", "double") if self.double else ("float", "int")))

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Return the experiments B4, B6 and B7."""
        return (*(_one_operation(*each) for each in self._operations), *_other_differences())

    def chains(self, n: int) -> tuple[Difference, ...]:
        """Return the chains of n operations of experiment B5."""
        mixed = {"int"} if self.int_chain == "mixed" else set[str]()
        return tuple(_chain(*each, n, is_mixed=each[1] in mixed) for each in self._operations)


def groups(largest: int) -> tuple[int, ...]:
    """Return the sizes of work-groups of B3, which divide the fixed number of work-items."""
    return tuple(1 << power for power in range(min(largest, FIXED_ITEMS).bit_length()))


ITEM_BYTES = 4
ClockFunction = Callable[[], float]
Kept = Callable[[str, Measurement], None]


@dataclass(frozen=True, slots=True)
class SuitePoint:
    """A point to measure; its key names the experiment and the size."""

    key: str
    prepare: Callable[[], TimedRun]


def points(device: TimedDevice, plan: Plan) -> tuple[SuitePoint, ...]:
    """Return all points of the suite, those that are compared with each other side by side, so that drift hits both."""
    return tuple({point.key: point for point in _points(device, plan)}.values())


def measure(
    device: TimedDevice,
    plan: Plan,
    *,
    known: Mapping[str, Measurement] | None = None,
    kept: Kept | None = None,
    seconds: float | None = None,
    clock: ClockFunction = time.monotonic,
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
            # what early points save goes to later ones
            share = None if seconds is None else max(0.0, begin + seconds - clock()) / (len(every) - done)
            found[point.key] = repeat_run(point.prepare(), tolerance=plan.tolerance, seconds=share, clock=clock)
        if kept is not None:
            kept(point.key, found[point.key])
    return found


def tabulate(device: TimedDevice, plan: Plan, measured: Mapping[str, Measurement], day: date) -> OpenClCostTable:
    """Return the cost table that the points of `measure` give; times are medians, in microseconds."""
    group, items = _group(device), [size // ITEM_BYTES for size in plan.sizes]

    def sweep(kernel: Benchmark) -> list[float]:
        return [measured[_key(kernel, each, group)].median for each in items]

    def line(difference: Difference, *, through_origin: bool = False) -> LinearCost:
        both = zip(sweep(difference.more), sweep(difference.less), strict=True)
        once = [(more - less) / difference.times for more, less in both]
        return fits.line(items, once, through_origin=through_origin)

    def transfer(*, back: bool) -> LinearCost:
        return fits.line(plan.sizes, [measured[_transfer_key(size, back)].median for size in plan.sizes])

    def operation(difference: Difference) -> OperationCost:
        """Return the cost of an operation; only divisions have an intercept, and those by literals are linear."""
        one = line(difference, through_origin=not difference.row.endswith("_DIV"))
        law = Saturation(kind="linear")
        if difference.row != DIVISION_BY_LITERAL:
            law = fits.as_published(saturation(difference.row), one)
        return OperationCost(saturation=law, **msgspec.structs.asdict(one))

    def saturation(row: str) -> Saturation:
        times, errors = dict[int, float](), dict[int, float]()
        for n in plan.lengths:
            chain = next(chain for chain in plan.chains(n) if chain.row == row)
            more, less = (measured[_key(kernel, FIXED_ITEMS, group)] for kernel in (chain.more, chain.less))
            times[n] = more.median - less.median
            # the error of a median is that of the mean times sqrt(pi / 2), as for normal noise
            errors[n] = sqrt(pi / 2) * hypot(more.se, less.se)
        return fits.saturation(times, FIXED_ITEMS, errors=errors, irregular=row.endswith("_DIV"))

    copies = {size: measured[_key(COPIES["float"], FIXED_ITEMS, size)].median for size in groups(device.max_work_group)}
    if min(copies.values()) <= 0:
        raise MeasurementError(f"{FIXED_ITEMS} elements are copied in 0 us by the clock of the device; take another")
    differences = {difference.row: difference for difference in plan.differences}
    operations = {row: each for row, each in differences.items() if row in (*OPERATIONS, DIVISION_BY_LITERAL)}
    return OpenClCostTable(
        device=device.name,
        driver=device.driver,
        date=day.isoformat(),
        units="us",
        transfer=Transfer(to=transfer(back=False), back=transfer(back=True)),
        base=fits.line(items, sweep(EMPTY)),
        wg=fits.work_group(copies),
        ops={row: operation(each) for row, each in operations.items()},
        access={str(row): line(each) for row, each in differences.items() if row not in operations},
        max_work_group=device.max_work_group,
        work_group=group,
        int_chain=plan.int_chain,
        rel_tol=plan.tolerance,
        not_converged=tuple(key for key, measurement in measured.items() if not measurement.converged),
    )


def _points(device: TimedDevice, plan: Plan) -> Iterator[SuitePoint]:
    def transfer(size: int, back: bool) -> SuitePoint:
        return SuitePoint(_transfer_key(size, back), lambda: device.transfer(size, back=back))

    def kernel(kernel: Benchmark, work_items: int, group: int) -> SuitePoint:
        return SuitePoint(_key(kernel, work_items, group), lambda: device.benchmark(kernel, work_items, group))

    yield from (transfer(size, back) for size in plan.sizes for back in (False, True))
    group, every = _group(device), [EMPTY, *(kernel for each in plan.differences for kernel in (each.less, each.more))]
    yield from (kernel(each, size // ITEM_BYTES, group) for size in plan.sizes for each in every)
    yield from (kernel(COPIES["float"], FIXED_ITEMS, size) for size in groups(device.max_work_group))
    chained = (each for n in plan.lengths for chain in plan.chains(n) for each in (chain.less, chain.more))
    yield from (kernel(each, FIXED_ITEMS, group) for each in chained)


def _group(device: TimedDevice) -> int:
    return min(USUAL_GROUP, 1 << (device.max_work_group.bit_length() - 1))


def _key(kernel: Benchmark, work_items: int, group: int) -> str:
    return f"{kernel.name}, {work_items} work-items in groups of {group}"


def _transfer_key(size: int, back: bool) -> str:
    return f"transfer {'from' if back else 'to'}, {size} bytes"
