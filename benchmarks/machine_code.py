"""The sample kernels as PTX and as the machine code made of it: what is proven of both on one machine, and how soon.

    python -m benchmarks.machine_code --arch sm_86 --seconds 2

A row of Markdown for each kernel: all paths of a block of 256 threads of it as PTX, the same as machine code, and as
many blocks of the machine code as can be resident. Memory has the latencies below, all else those of the machine file.
Lapses, late lines and queues are left out; `benchmarks.known_sm` says what they add.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from benchmarks.kernels import FOLDER, KERNELS
from makespan import Bounds, Limits, Machine, solve
from makespan.cli.source import kernel_question
from makespan.kernels.question import KernelQuestion, launch_kernel

BLOCKS = {"matmul_tiled": "16x16", "stencil": "32x8"}
"""Threads of a block where not 256 in a row."""

PARAMETERS = {
    "matmul_tiled": ("3=128",),
    "nbody": ("2=63",),
    "nearest_point": ("5=33",),
}
"""What decides how often loops run."""

LATENCIES = ("global=300..600", "atomic=..600")


class Answer(NamedTuple):
    """What is proven of one question, in cycles, and after how many seconds, compilers included."""

    bounds: Bounds
    seconds: float

    def __str__(self) -> str:
        lower, upper = self.bounds.lower, self.bounds.upper
        return f"{f'**{upper}**' if lower == upper else f'{lower}..{upper}'} | {self.seconds:.1f}"


def answer(question: KernelQuestion, machine: Machine, seconds: float) -> Answer:
    """Read, compile, follow and solve, without lapses."""
    begun = perf_counter()
    found = solve(question.instance(machine).without_lapses, limits=Limits(seconds))
    return Answer(found.bounds, perf_counter() - begun)


def rows(arch: str, seconds: float) -> Iterator[str]:
    """One after another."""
    for kernel in KERNELS:
        asked = {
            "source": f"{FOLDER}/{kernel}.ptx",
            "block": BLOCKS.get(kernel, "256"),
            "param": PARAMETERS.get(kernel, ()),
            "latencies": LATENCIES,
        }
        ptx = kernel_question(**asked)  # type: ignore[arg-type]
        code = kernel_question(**asked, arch=arch, warm=True)  # type: ignore[arg-type]
        machine = launch_kernel(code).default_machine
        answers = [answer(each, machine, seconds) for each in (ptx, replace(code, blocks_per_sm=1), code)]
        yield f"| {kernel} | {' | '.join(map(str, answers))} |"


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_86")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    print("| kernel | PTX, 8 warps | s | machine code, 8 warps | s | 48 warps | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows(given.arch, given.seconds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
