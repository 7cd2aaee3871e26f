"""What lapses, queues and late lines add to the bounds of the sample kernels as machine code.

    python -m benchmarks.known_sm --arch sm_86

A row of Markdown for each kernel and number of warps, of as many blocks of 128 threads (of 256 where a kernel has
barriers, in a block of its own shape). Memory takes 300 to 600 cycles, all else has the ranges of the machine file.
The last bounds are those of a warm launch, of one whose lines come from the next cache, and of one whose lines take
600 cycles each.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.kernels import FOLDER, KERNELS
from benchmarks.machine_code import LATENCIES, PARAMETERS
from makespan.cli.source import kernel_question
from makespan.kernels.question import KernelQuestion, launch_kernel
from makespan.model.machine import given_latencies
from makespan.model.result import LapseProof
from makespan.proof.bounds import lapse_proof, pessimistic

BLOCKS = {"matmul_tiled": ("16x16", 8), "reduction": ("256", 8), "stencil": ("32x4", 4)}
"""Threads of a block and its warps where not 128 in a row."""

WARPS = (4, 8, 16, 48)
NEXT = ("fetch=..86", "constant-miss=..79")
FAR = ("fetch=..600", "constant-miss=..600")
HEAD = "| kernel | warps | without lapses | lapses | queues | warm | factor | next cache | 600 | factor |"


def question_of(kernel: str, arch: str) -> KernelQuestion:
    """Return the question about the machine code of a kernel, compiled once."""
    block, _ = BLOCKS.get(kernel, ("128", 4))
    question = kernel_question(
        f"{FOLDER}/{kernel}.ptx",
        arch=arch,
        block=block,
        param=PARAMETERS.get(kernel, ()),
        latencies=LATENCIES,
    )
    return replace(question, source=question.module())


def table_row(kernel: str, question: KernelQuestion, warps: int) -> str:
    """Return the row of a kernel with so many warps on the SM."""
    _, of_block = BLOCKS.get(kernel, ("128", 4))
    asked = replace(question, blocks_per_sm=warps // of_block)
    (instance,) = launch_kernel(replace(asked, warm=True)).instances()
    warm, near, far = lapse_proof(instance), _bound(asked, NEXT), _bound(asked, FAR)
    plain = pessimistic(instance.without_lapses)
    cells = [kernel, warps, plain, warm.credits, warm.base.upper - plain]
    cells += [warm.upper, f"{warm.upper / plain:.2f}", near.upper, far.upper, f"{far.upper / plain:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


def _bound(question: KernelQuestion, first_fetches: tuple[str, ...]) -> LapseProof:
    cold = replace(question, latencies=given_latencies([*LATENCIES, *first_fetches]))
    (instance,) = launch_kernel(cold).instances()
    return lapse_proof(instance)


def rows(arch: str) -> Iterator[str]:
    """Yield the rows one after another."""
    for kernel in KERNELS:
        question = question_of(kernel, arch)
        _, of_block = BLOCKS.get(kernel, ("128", 4))
        yield from (table_row(kernel, question, warps) for warps in WARPS if warps >= of_block)


def main() -> None:
    """Read the command line, compute, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_86")
    given = parser.parse_args()
    print(HEAD, "|" + " --- |" * (HEAD.count(" | ") + 1), sep="\n")
    for row in rows(given.arch):
        print(row, flush=True)


if __name__ == "__main__":
    main()
