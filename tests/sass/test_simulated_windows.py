"""No bound is below what a public simulator of the SM counts, be code and constants in their caches or not."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from makespan.cli.source import kernel_question
from makespan.host import tool
from makespan.kernels.question import KernelQuestion, launch_kernel
from makespan.model.machine import given_intervals, narrow_intervals
from makespan.proof.bounds.lapses import lapse_proof

pytestmark = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)
DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[2] / "ptx"
FIRST_FETCHES = ("fetch=..600", "constant-miss=..600")
NOT_SEEN = "300"
"""The longest access to global memory of a kernel of which the simulator saw none, though its code has some."""


def windows() -> list[dict[str, str]]:
    lines = (DATA / "simulated_windows.tsv").read_text().splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


def question_of(row: dict[str, str]) -> KernelQuestion:
    folder = SAMPLES if (SAMPLES / f"{row['kernel']}.ptx").exists() else DATA
    longest = row["global"].replace("-", NOT_SEEN)
    question = kernel_question(
        str(folder / f"{row['kernel']}.ptx"),
        arch=row["arch"],
        block=row["block"],
        grid="1",
        blocks_per_sm=1,
        param=words(row["param"]),
        loop_bounds=words(row["loop_bound"]),
        latencies=[f"global=..{longest}", f"atomic=..{longest}", *FIRST_FETCHES],
    )
    return replace(question, source=question.module())  # compiled once for both launches


@pytest.mark.parametrize("row", windows(), ids=lambda row: f"{row['kernel']}-{row['arch']}-{row['block']}")
def test_no_bound_is_below_a_simulated_window(row: dict[str, str]) -> None:
    """With every range as it is in the machine file, and with accesses known to be as coalesced as they are."""
    question = question_of(row)
    for start in ("cold", "warm"):
        launched = launch_kernel(replace(question, warm=start == "warm"))
        (instance,) = launched.instances()
        wide = instance.machine
        least = next(
            use.least for unit in wide.units for use in unit.uses if unit.name == "L" and "memory" in use.resources
        )
        coalesced = narrow_intervals(wide, given_intervals([f"memory=..{max(int(row['passes']), least)}"]))
        scattered, sharper = lapse_proof(instance), lapse_proof(replace(instance, machine=coalesced))
        assert scattered.upper >= sharper.upper >= int(row[start])
