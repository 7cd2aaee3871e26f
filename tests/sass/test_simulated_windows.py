"""No bound is below what a public simulator of the multiprocessor counts, with code and constants in their caches."""

import csv
from pathlib import Path

import pytest

from makespan.cli.source import kernel_question
from makespan.host import tool
from makespan.kernels.question import launch_kernel
from makespan.model.machine import given_intervals, narrow_intervals
from makespan.proof.bounds.theorem_1s import bound

pytestmark = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)
DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[2] / "ptx"


def windows() -> list[dict[str, str]]:
    lines = (DATA / "simulated_windows.tsv").read_text().splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


@pytest.mark.parametrize("row", windows(), ids=lambda row: f"{row['kernel']}-{row['arch']}-{row['block']}")
def test_no_bound_is_below_a_simulated_window(row: dict[str, str]) -> None:
    """With every range as it is in the machine file, and with accesses known to be as coalesced as they are."""
    folder = DATA if row["kernel"] == "shared_loads" else SAMPLES
    question = kernel_question(
        str(folder / f"{row['kernel']}.ptx"),
        arch=row["arch"],
        block=row["block"],
        grid="1",
        blocks_per_sm=1,
        param=words(row["param"]),
        loop_bounds=words(row["loop_bound"]),
        latencies=[f"{operation}=..{row['global']}" for operation in ("global", "atomic")],
    )
    launched = launch_kernel(question)
    wide = launched.default_machine
    least = next(
        use.least for unit in wide.units for use in unit.uses if unit.name == "L" and "memory" in use.resources
    )
    coalesced = narrow_intervals(wide, given_intervals([f"memory=..{max(int(row['passes']), least)}"]))
    bounds = [bound(instance) for machine in (wide, coalesced) for instance in launched.instances(machine)]
    assert len(bounds) == 2
    assert min(bounds) >= int(row["window"])
