"""The sample kernels on a real multiprocessor: what is proven, what the bound loses, and what blocking warps would say.

    python -m benchmarks.kernels --warps 8 --seconds 1

A row of Markdown for each kernel, on the path that ptx/README.md documents. Twice, with the latencies below where the
machine knows no upper end: once every other number is fixed too, at its upper end, and accesses are coalesced and of
32 bits (`COALESCED`); once all ranges are those of the file.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from makespan import Instance, Limits, Machine, Result, solve
from makespan.cli.source import kernel_question
from makespan.kernels.ptx import Dependences
from makespan.kernels.question import KernelQuestion
from makespan.model.machine import find_machine, given_intervals, narrow_intervals
from makespan.model.simulate import POLICIES, run
from makespan.proof.bounds.theorem_1s import bound

FOLDER = "ptx"
KERNELS: dict[str, dict[str, tuple[str, ...]]] = {
    "vecadd": {"take": ("$L__BB0_2=fall",)},
    "saxpy_unrolled": {},
    "polynomial": {},
    "fir": {"loop_bounds": ("$L__BB0_1==16",)},
    "matmul_tiled": {"take": ("$L__BB0_2=taken",), "loop_bounds": ("$L__BB0_3==8",)},
    "reduction": {"loop_bounds": ("$L__BB0_1==8",)},
    "warp_reduction": {"take": ("$L__BB0_2=fall",)},
    "stencil": {"take": ("$L__BB0_2=fall",)},
    "fft_butterfly": {},
    "nbody": {
        "take": ("$L__BB0_7=fall", "$L__BB0_4=fall"),
        "loop_bounds": ("$L__BB0_3==15", "$L__BB0_6==3"),
    },
    "nearest_point": {"take": ("$L__BB0_3=fall",), "loop_bounds": ("$L__BB0_2==32",)},
    "sha256_round": {},
    "histogram": {"take": ("$L__BB0_2=fall",)},
    "bitonic": {"loop_bounds": ("$L__BB0_1==5",)},
    "mandelbrot": {"take": ("$L__BB0_3=fall",)},
    "spmv_csr": {"take": ("$L__BB0_5=fall", "$L__BB0_4=fall"), "loop_bounds": ("$L__BB0_3==32",)},
}
LATENCIES = (
    dict.fromkeys(("global", "local", "atomic"), 400)
    | dict.fromkeys(("shared", "constant", "parameter", "special", "shuffle", "barrier"), 30)
    | {"vote": 12, "fp64": 45, "fence": 200}
)
COALESCED = "memory=2", "path=4"


class Row(NamedTuple):
    """Cycles of one kernel."""

    kernel: str
    fixed: Result
    longest_run: int
    ranged: Result
    blocking: int

    def __str__(self) -> str:
        best = self.fixed.best_case
        assert best is not None
        cells = (
            self.kernel,
            _interval(self.fixed),
            f"{best.lower}..{best.upper}",
            f"{self.fixed.bounds.upper / best.lower:.2f}",
            self.longest_run,
            self.blocking,
            _interval(self.ranged),
        )
        return f"| {' | '.join(map(str, cells))} |"


def _interval(result: Result) -> str:
    lower, upper = result.bounds.lower, result.bounds.upper
    return f"**{upper}**" if lower == upper else f"{lower}..{upper}"


def rows(machine: Machine, warps: int, seconds: float) -> Iterator[Row]:
    """One after another."""
    ends = {each.name: each.most or LATENCIES[each.name] for each in machine.operations if each.name != "texture"}
    every = [f"{name}={cycles}" for name, cycles in ends.items()]
    opened = [f"{each.name}=..{ends[each.name]}" for each in machine.operations if each.most is None]
    coalesced = narrow_intervals(machine, given_intervals(COALESCED))
    held = (tuple(replace(use, least=use.most) for use in unit.uses) for unit in coalesced.units)
    fixed = replace(
        coalesced, units=tuple(replace(unit, uses=uses) for unit, uses in zip(coalesced.units, held, strict=True))
    )
    for kernel, path in KERNELS.items():
        named = f"{FOLDER}/{kernel}.ptx"
        asked = replace(kernel_question(named, latencies=every, **path), warps=warps)  # type: ignore[arg-type]
        instance = asked.instance(fixed)
        ranged = replace(kernel_question(named, latencies=opened, **path), warps=warps)  # type: ignore[arg-type]
        yield Row(
            kernel,
            solve(instance, best_case=True, limits=Limits(seconds)),
            max(run(instance, policy).makespan for policy in POLICIES),
            solve(ranged.instance(machine), limits=Limits(seconds)),
            bound(_blocking(asked, fixed)),
        )


def _blocking(asked: KernelQuestion, machine: Machine) -> Instance:
    return replace(asked, dependences=Dependences.BLOCKING).instance(machine)


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="turing")
    parser.add_argument("--warps", default="4,8,16,48")
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    for warps in map(int, given.warps.split(",")):
        print(f"\n{warps} warps\n")
        print("| kernel | fixed | best case | upper / best | longest run | blocking | ranges |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row in rows(find_machine(given.machine).machine, warps, given.seconds):
            print(row, flush=True)


if __name__ == "__main__":
    main()
