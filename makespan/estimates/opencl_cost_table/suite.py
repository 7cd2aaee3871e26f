"""The benchmark suite: experiments B1 to B7, the measurement of their points, and the cost table that these give."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import hypot, pi, sqrt
from typing import Literal

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
    WorkGroup,
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


def _benchmark(name: str, body: str, element: Element, counts: Mapping[str, int], literals: int = 0) -> Benchmark:
    return Benchmark(name, body, element, _NUMBER[element], RowCounts({BASE: 1, **counts}, literals))


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


def operations(element: Element) -> Iterator[Difference]:
    """Yield B4: one operation on an element of an array and an argument, with its result stored."""
    kind = "INT" if element == "int" else element.upper()
    for name, sign in _SIGNS.items():
        body = f"{_ID}out[i] = in[i] {sign} a;"
        counts = {**_COPY, f"{kind}_{name}": 1}
        yield Difference(f"{kind}_{name}", _benchmark(f"{kind}_{name}", body, element, counts), COPIES[element])


def literal_division() -> Difference:
    """Return B4 for divisions by literals, as they recover the variables of an iteration of two dimensions."""
    return Difference(
        DIVISION_BY_LITERAL,
        _benchmark("recovery", f"{_XY}out[i] = x ^ y;", "int", {**_WRITE, "INT_DIV": 4}, literals=4),
        _benchmark("number", f"{_ID}out[i] = i ^ a;", "int", _WRITE),
        times=4,
    )


def kinds_of_memory() -> Iterator[Difference]:
    """Yield B6: a store, and reads from global, local and private memory, less a kernel that only stores."""
    yield Difference(AccessKind.WRITE, STORE, EMPTY)
    yield Difference(AccessKind.UNCLASSIFIED, COPIES["float"], STORE)
    local = (
        f"{_ID}__local float shared[{USUAL_GROUP}]; const int own = get_local_id(0); shared[own] = a;"
        " barrier(CLK_LOCAL_MEM_FENCE); out[i] = shared[own ^ 1];"
    )
    for access, body, times in ((AccessKind.LOCAL, local, 2), (AccessKind.PRIVATE, f"{_ID}out[i] = i;", 1)):
        yield Difference(access, _benchmark(access, body, "float", {**_WRITE, access: times}), STORE, times)


def classes_of_reads() -> Iterator[Difference]:
    """Yield B7: a read at an index that is recovered as in an iteration, less a kernel that stores the index.

    The array of the complex class is read by columns; `a` is the number of rows.
    """
    for access, index in (
        (AccessKind.CONSTANT, "1"),
        (AccessKind.INTERVAL, "y"),
        (AccessKind.CONTINUOUS, f"y + x*{COLUMNS}"),
        (AccessKind.COMPLEX, "x + y*a"),
    ):
        recovered = 0 if access is AccessKind.CONSTANT else 4
        counts = {**_WRITE, "INT_DIV": recovered} if recovered else {**_WRITE}
        yield Difference(
            access,
            _by_rows(access, f"{_XY}out[i] = in[{index}];", {**counts, access: 1}, recovered),
            _by_rows(f"index of {access}", f"{_XY}out[i] = {index};", counts, recovered),
        )


def _by_rows(name: str, body: str, counts: Mapping[str, int], literals: int) -> Benchmark:
    return replace(_benchmark(name, body, "int", counts, literals), a=None)


@dataclass(frozen=True, slots=True)
class OperationChain:
    """A chain of experiment B5: n operations that depend on each other, less the rest of the kernel."""

    row: str
    element: Element
    sign: str
    is_mixed: bool

    def more(self, n: int) -> Benchmark:
        """Return the kernel with n operations; exclusive or between them keeps a compiler from folding mixed ones."""
        mixed = (f"v = (v {self.sign} c[{at}]) ^ v;" for at in range(n))
        return self._kernel(f"{self.row} x{n}", mixed if self.is_mixed else [f"v = v {self.sign} a;"] * n, n)

    def less(self, n: int) -> Benchmark:
        """Return the same kernel without the operations."""
        if not self.is_mixed:
            return COPIES[self.element]
        return self._kernel(f"exclusive or x{n}", (f"v = c[{at}] ^ v;" for at in range(n)), 0)

    def _kernel(self, name: str, steps: Iterable[str], n: int) -> Benchmark:
        body = f"{_ID}{self.element} v = in[i]; {' '.join(steps)} out[i] = v;"
        return _benchmark(name, body, self.element, {**_COPY, self.row: n})


def chains(element: Element, int_chain: IntChain) -> Iterator[OperationChain]:
    """Yield B5 of all operations of a type."""
    kind = "INT" if element == "int" else element.upper()
    for name, sign in _SIGNS.items():
        yield OperationChain(f"{kind}_{name}", element, sign, element == "int" and int_chain == "mixed")


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
    def elements(self) -> tuple[Element, ...]:
        """Return the types of operands."""
        return ("float", "int", "double") if self.double else ("float", "int")

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Return the experiments B4, B6 and B7."""
        every = [difference for element in self.elements for difference in operations(element)]
        return (*every, literal_division(), *kinds_of_memory(), *classes_of_reads())

    @property
    def chains(self) -> tuple[OperationChain, ...]:
        """Return the chains of experiment B5."""
        return tuple(chain for element in self.elements for chain in chains(element, self.int_chain))


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
    """Return the cost table that the points of `measure` give."""
    found = _MeasuredPoints(plan, measured, _group(device))
    differences = {difference.row: difference for difference in plan.differences}
    return OpenClCostTable(
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


def _points(device: TimedDevice, plan: Plan) -> Iterator[SuitePoint]:
    for size in plan.sizes:
        for back in (False, True):
            yield SuitePoint(_transfer_key(size, back), lambda size=size, back=back: device.transfer(size, back=back))  # type: ignore[misc]
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


def _kernel(device: TimedDevice, kernel: Benchmark, work_items: int, group: int) -> SuitePoint:
    return SuitePoint(_key(kernel, work_items, group), lambda: device.benchmark(kernel, work_items, group))


def _group(device: TimedDevice) -> int:
    return min(USUAL_GROUP, 1 << (device.max_work_group.bit_length() - 1))


def _key(kernel: Benchmark, work_items: int, group: int) -> str:
    return f"{kernel.name}, {work_items} work-items in groups of {group}"


def _transfer_key(size: int, back: bool) -> str:
    return f"transfer {'from' if back else 'to'}, {size} bytes"


def _work_group(found: "_MeasuredPoints", sizes: tuple[int, ...]) -> WorkGroup:
    times = {size: found.at(COPIES["float"], FIXED_ITEMS, size) for size in sizes}
    if min(times.values()) <= 0:
        raise MeasurementError(f"{FIXED_ITEMS} elements are copied in 0 us by the clock of the device; take another")
    return fits.work_group(times)


@dataclass(frozen=True, slots=True)
class _MeasuredPoints:
    """The measured points by their keys; times are medians, in microseconds."""

    plan: Plan
    measured: Mapping[str, Measurement]
    group: int

    @property
    def items(self) -> list[int]:
        return [size // ITEM_BYTES for size in self.plan.sizes]

    def at(self, kernel: Benchmark, work_items: int, group: int | None = None) -> float:
        return self.measured[_key(kernel, work_items, group or self.group)].median

    def _error(self, kernel: Benchmark) -> float:
        """Return the standard error of a median: that of the mean times sqrt(pi / 2), as for normal noise."""
        return sqrt(pi / 2) * self.measured[_key(kernel, FIXED_ITEMS, self.group)].se

    def sweep(self, kernel: Benchmark) -> list[float]:
        return [self.at(kernel, items) for items in self.items]

    def transfer(self, *, back: bool) -> LinearCost:
        times = [self.measured[_transfer_key(size, back)].median for size in self.plan.sizes]
        return fits.line(self.plan.sizes, times)

    def line(self, difference: Difference, *, through_origin: bool = False) -> LinearCost:
        both = zip(self.sweep(difference.more), self.sweep(difference.less), strict=True)
        once = [(more - less) / difference.times for more, less in both]
        return fits.line(self.items, once, through_origin=through_origin)

    def operation(self, difference: Difference) -> OperationCost:
        """Return the cost of an operation; only divisions have an intercept, and those by literals are linear."""
        cost = self.line(difference, through_origin=not difference.row.endswith("_DIV"))
        chain = next((chain for chain in self.plan.chains if chain.row == difference.row), None)
        law = Saturation(kind="linear") if chain is None else self._saturation(chain, cost)
        return OperationCost(
            slope=cost.slope, icept=cost.icept, se=cost.se, r2=cost.r2, unresolved=cost.unresolved, saturation=law
        )

    def _saturation(self, chain: OperationChain, one: LinearCost) -> Saturation:
        pairs = ((n, chain.more(n), chain.less(n)) for n in self.plan.lengths)
        times, errors = dict[int, float](), dict[int, float]()
        for n, more, less in pairs:
            times[n] = self.at(more, FIXED_ITEMS) - self.at(less, FIXED_ITEMS)
            errors[n] = hypot(self._error(more), self._error(less))
        law = fits.saturation(times, FIXED_ITEMS, errors=errors, irregular=chain.row.endswith("_DIV"))
        return fits.as_published(law, one)
