"""No bound is below what a public simulator of the multiprocessor counts, be code and constants in their caches or not."""

import csv
from pathlib import Path

import pytest

from makespan.cli.source import kernel_question
from makespan.host import tool
from makespan.kernels.question import launch_kernel
from makespan.model.instance import Instance
from makespan.model.machine import given_intervals, narrow_intervals
from makespan.proof.bounds.lapses import lapse_proof

pytestmark = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)
DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[2] / "ptx"
COLD = ["fetch=..600", "constant-miss=..600"]


def windows() -> list[dict[str, str]]:
    lines = (DATA / "simulated_windows.tsv").read_text().splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


def instances(row: dict[str, str], *, warm: bool) -> list[Instance]:
    """Return the block of a row on its machine, and on one whose accesses are known to be as coalesced as they are."""
    folder = SAMPLES if (SAMPLES / f"{row['kernel']}.ptx").exists() else DATA
    question = kernel_question(
        str(folder / f"{row['kernel']}.ptx"),
        arch=row["arch"],
        block=row["block"],
        grid="1",
        blocks_per_sm=1,
        param=words(row["param"]),
        loop_bounds=words(row["loop_bound"]),
        latencies=[*(f"{operation}=..{row['global'].replace('-', '300')}" for operation in ("global", "atomic")), *COLD],
        warm=warm,
    )
    wide = launch_kernel(question).default_machine
    least = next(
        use.least for unit in wide.units for use in unit.uses if unit.name == "L" and "memory" in use.resources
    )
    coalesced = narrow_intervals(wide, given_intervals([f"memory=..{max(int(row['passes']), least)}"]))
    return [one for machine in (wide, coalesced) for one in launch_kernel(question, machine).instances(machine)]


@pytest.mark.parametrize("row", windows(), ids=lambda row: f"{row['kernel']}-{row['arch']}-{row['block']}")
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_no_bound_is_below_a_simulated_window(row: dict[str, str], warm: bool) -> None:
    proofs = [lapse_proof(one) for one in instances(row, warm=warm)]
    assert len(proofs) == 2
    assert min(proof.upper for proof in proofs) >= int(row["warm" if warm else "cold"])
    if __import__("os").environ.get("SHOW"):
        p = min(proofs, key=lambda p: p.upper)
        print("ROW", row["kernel"], row["arch"], row["block"], "warm" if warm else "cold", row["warm" if warm else "cold"], p.base.upper, p.credits, p.windows, p.misses, p.upper)
