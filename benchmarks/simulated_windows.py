"""Bounds beside what a public simulator of the SM counts for one block alone: the table of docs/validation.md.

    python -m benchmarks.simulated_windows

A row of Markdown for each row of tests/sass/data/simulated_windows.tsv, which says what was simulated. Accesses are
known to be as coalesced as they were there. Cold: a first fetch of code or constants takes at most 600 cycles. Warm:
the same kernel has run before.
"""

import csv
from dataclasses import replace
from pathlib import Path

from makespan.cli.source import kernel_question
from makespan.kernels.question import KernelQuestion, launch_kernel
from makespan.model.instance import Instance
from makespan.model.machine import Machine, given_intervals, narrow_intervals
from makespan.model.result import LapseProof
from makespan.proof.bounds import lapse_proof

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "sass" / "data"
SAMPLES = ROOT / "ptx"
STARTS = ("cold", "warm")
FIRST_FETCHES = ("fetch=..600", "constant-miss=..600")
NOT_SEEN = "300"
"""The longest access to global memory of a kernel of which the simulator saw none, though its code has some."""

HEAD = (
    "| kernel | GPU | block | base | cold: simulated | lapses | lines | bound | ratio | warm: simulated | lapses |"
    " lines | bound | ratio |"
)


def simulated() -> list[dict[str, str]]:
    """Return what was simulated, a row for each kernel, architecture and block."""
    lines = (DATA / "simulated_windows.tsv").read_text().splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def question_of(row: dict[str, str]) -> KernelQuestion:
    """Return the question about the block of a row, compiled once for both launches."""
    folder = SAMPLES if (SAMPLES / f"{row['kernel']}.ptx").exists() else DATA
    longest = row["global"].replace("-", NOT_SEEN)
    question = kernel_question(
        str(folder / f"{row['kernel']}.ptx"),
        arch=row["arch"],
        block=row["block"],
        grid="1",
        blocks_per_sm=1,
        param=_words(row["param"]),
        loop_bounds=_words(row["loop_bound"]),
        latencies=[f"global=..{longest}", f"atomic=..{longest}", *FIRST_FETCHES],
    )
    return replace(question, source=question.module())


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


def instance_of(question: KernelQuestion, start: str) -> Instance:
    """Return the block in a cold or a warm launch, with every range as it is in the machine file."""
    (instance,) = launch_kernel(replace(question, warm=start == "warm")).instances()
    return instance


def coalesced(machine: Machine, passes: int) -> Machine:
    """Return the machine whose accesses hold the memory unit for no longer than so many passes take."""
    least = next(
        use.least for unit in machine.units for use in unit.uses if unit.name == "L" and "memory" in use.resources
    )
    return narrow_intervals(machine, given_intervals([f"memory=..{max(passes, least)}"]))


def sharper(row: dict[str, str], instance: Instance) -> LapseProof:
    """Return the bound of an instance whose accesses are known to be as coalesced as they were in the simulation."""
    return lapse_proof(replace(instance, machine=coalesced(instance.machine, int(row["passes"]))))


def table_row(row: dict[str, str], proofs: dict[str, LapseProof]) -> str:
    """Return the row of the table, whose ratios are those of the bounds to the windows."""
    cells = [row["kernel"], row["arch"], row["block"], str(proofs["cold"].base.upper)]
    for start, proof in proofs.items():
        window = int(row[start])
        numbers = (window, proof.credits, proof.windows + proof.misses, proof.upper)
        cells += [*map(str, numbers), f"{proof.upper / window:.2f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    print(HEAD, "|" + " --- |" * (HEAD.count(" | ") + 1), sep="\n")
    for row in simulated():
        question = question_of(row)
        print(table_row(row, {start: sharper(row, instance_of(question, start)) for start in STARTS}), flush=True)


if __name__ == "__main__":
    main()
