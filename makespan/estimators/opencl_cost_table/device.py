"""What the suite and the evaluation ask of a device, real or virtual."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from makespan.estimators.opencl_cost_table.counting import Counts
from makespan.estimators.opencl_cost_table.expression import Iteration
from makespan.estimators.opencl_cost_table.reference import Values

Run = Callable[[], float]
"""Runs once and returns the microseconds that the device says it took."""
Element = Literal["float", "int", "double"]
COLUMNS = 1024


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A kernel of the suite.

    Its arguments are `in` and `out`, with an element per work-item, `c` with 128 positive elements, all of type
    `element`, and a number `a`. The elements of `in` are 1..2, as integers 1..1000.

    Args:
        name: of the measured points.
        body: what it does, in OpenCL C.
        a: the number; None: how many rows of 1024 work-items there are.
        counts: what a work-item does, which a virtual device believes.
    """

    name: str
    body: str
    element: Element
    a: float | None
    counts: Counts

    def number(self, work_items: int) -> float:
        """The argument `a` of a launch."""
        return work_items // COLUMNS if self.a is None else self.a

    @property
    def source(self) -> str:
        """The kernel, called `benchmark`."""
        element = self.element
        extension = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if element == "double" else ""
        return (
            f"#pragma OPENCL FP_CONTRACT OFF\n{extension}"
            f"__kernel void benchmark(__global const {element} *in, __global {element} *out,"
            f" __global const {element} *c, const {element} a) {{\n    {self.body}\n}}\n"
        )


class Executed(NamedTuple):
    """A domain iteration on the device: what it computes, and a way to time it."""

    result: Values
    run: Run


class Device(Protocol):
    """An OpenCL device that can time what it does."""

    @property
    def name(self) -> str:
        """Its own."""

    @property
    def is_virtual(self) -> bool:
        """Whether it only computes its times, so that nothing is measured."""

    @property
    def driver(self) -> str:
        """Name and version."""

    @property
    def max_work_group(self) -> int:
        """Work-items of the largest work-group."""

    @property
    def has_double(self) -> bool:
        """Whether it knows floats of 64 bits."""

    def transfer(self, size: int, *, back: bool) -> Run:
        """Move `size` bytes to the device, or back from it."""

    def benchmark(self, kernel: Benchmark, work_items: int, group: int) -> Run:
        """Run a kernel of the suite."""

    def iteration(self, iteration: Iteration, data: Mapping[str, Values], group: int) -> Executed:
        """Run the kernel of a domain iteration on `data`."""
