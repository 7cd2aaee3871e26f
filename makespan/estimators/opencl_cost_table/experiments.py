"""The experiments B1 to B7 of the suite: kernels, what each work-item of them does, and over what they sweep."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.opencl_cost_table.access import Access
from makespan.estimators.opencl_cost_table.counting import BASE, DIVISION_BY_LITERAL, Counts
from makespan.estimators.opencl_cost_table.device import COLUMNS, Benchmark, Element

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
_WRITE: dict[str, int] = {Access.WRITE: 1}
_COPY: dict[str, int] = {Access.UNCLASSIFIED: 1, Access.WRITE: 1}


def _benchmark(name: str, body: str, element: Element, counts: Mapping[str, int], literals: int = 0) -> Benchmark:
    return Benchmark(name, body, element, _NUMBER[element], Counts({BASE: 1, **counts}, literals))


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
    """B4: one operation; its operands are an element of an array and an argument, and its result is stored."""
    kind = "INT" if element == "int" else element.upper()
    for name, sign in _SIGNS.items():
        body = f"{_ID}out[i] = in[i] {sign} a;"
        counts = {**_COPY, f"{kind}_{name}": 1}
        yield Difference(f"{kind}_{name}", _benchmark(f"{kind}_{name}", body, element, counts), COPIES[element])


def literal_division() -> Difference:
    """B4 for divisions by literals, as the variables of an iteration of two dimensions are recovered by them."""
    return Difference(
        DIVISION_BY_LITERAL,
        _benchmark("recovery", f"{_XY}out[i] = x ^ y;", "int", {**_WRITE, "INT_DIV": 4}, literals=4),
        _benchmark("number", f"{_ID}out[i] = i ^ a;", "int", _WRITE),
        times=4,
    )


def kinds_of_memory() -> Iterator[Difference]:
    """B6: a store, and reads from global, local and private memory, less a kernel that only stores."""
    yield Difference(Access.WRITE, STORE, EMPTY)
    yield Difference(Access.UNCLASSIFIED, COPIES["float"], STORE)
    local = (
        f"{_ID}__local float shared[{USUAL_GROUP}]; const int own = get_local_id(0); shared[own] = a;"
        " barrier(CLK_LOCAL_MEM_FENCE); out[i] = shared[own ^ 1];"
    )
    for access, body, times in ((Access.LOCAL, local, 2), (Access.PRIVATE, f"{_ID}out[i] = i;", 1)):
        yield Difference(access, _benchmark(access, body, "float", {**_WRITE, access: times}), STORE, times)


def classes_of_reads() -> Iterator[Difference]:
    """B7: a read at an index that is recovered as in an iteration, less a kernel that stores the index.

    The array of the complex class is read by columns; `a` is the number of rows.
    """
    for access, index in (
        (Access.CONSTANT, "1"),
        (Access.INTERVAL, "y"),
        (Access.CONTINUOUS, f"y + x*{COLUMNS}"),
        (Access.COMPLEX, "x + y*a"),
    ):
        recovered = 0 if access is Access.CONSTANT else 4
        counts = {**_WRITE, "INT_DIV": recovered} if recovered else {**_WRITE}
        yield Difference(
            access,
            _by_rows(access, f"{_XY}out[i] = in[{index}];", {**counts, access: 1}, recovered),
            _by_rows(f"index of {access}", f"{_XY}out[i] = {index};", counts, recovered),
        )


def _by_rows(name: str, body: str, counts: Mapping[str, int], literals: int) -> Benchmark:
    return replace(_benchmark(name, body, "int", counts, literals), a=None)


@dataclass(frozen=True, slots=True)
class Chain:
    """B5: n operations that depend on each other, less what the kernel does besides."""

    row: str
    element: Element
    sign: str
    is_mixed: bool

    def more(self, n: int) -> Benchmark:
        """With n operations; mixed ones alternate with exclusive or, and no compiler can make one of them."""
        mixed = (f"v = (v {self.sign} c[{at}]) ^ v;" for at in range(n))
        return self._kernel(f"{self.row} x{n}", mixed if self.is_mixed else [f"v = v {self.sign} a;"] * n, n)

    def less(self, n: int) -> Benchmark:
        """Without them."""
        if not self.is_mixed:
            return COPIES[self.element]
        return self._kernel(f"exclusive or x{n}", (f"v = c[{at}] ^ v;" for at in range(n)), 0)

    def _kernel(self, name: str, steps: Iterable[str], n: int) -> Benchmark:
        body = f"{_ID}{self.element} v = in[i]; {' '.join(steps)} out[i] = v;"
        return _benchmark(name, body, self.element, {**_COPY, self.row: n})


def chains(element: Element, int_chain: IntChain) -> Iterator[Chain]:
    """B5 of all operations of a type."""
    kind = "INT" if element == "int" else element.upper()
    for name, sign in _SIGNS.items():
        yield Chain(f"{kind}_{name}", element, sign, element == "int" and int_chain == "mixed")


@dataclass(frozen=True, slots=True)
class Plan:
    """Over what the experiments sweep.

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
        """In bytes, for transfers; a work-item of a kernel stands for 4 of them."""
        step = LARGEST // QUICK if self.quick else STEP
        return tuple(range(step, LARGEST + 1, step))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Numbers of chained operations."""
        doubled = tuple(1 << power for power in range(MOST_CHAINED.bit_length()))
        return tuple(range(1, MOST_CHAINED + 1)) if self.full else doubled

    @property
    def elements(self) -> tuple[Element, ...]:
        """Types of operations."""
        return ("float", "int", "double") if self.double else ("float", "int")

    @property
    def differences(self) -> tuple[Difference, ...]:
        """B4, B6 and B7."""
        every = [difference for element in self.elements for difference in operations(element)]
        return (*every, literal_division(), *kinds_of_memory(), *classes_of_reads())

    @property
    def chains(self) -> tuple[Chain, ...]:
        """B5."""
        return tuple(chain for element in self.elements for chain in chains(element, self.int_chain))


def groups(largest: int) -> tuple[int, ...]:
    """B3: the sizes of work-groups, which divide the fixed number of work-items."""
    return tuple(1 << power for power in range(min(largest, FIXED_ITEMS).bit_length()))
