"""No bound is below what a public simulator of the SM counts, be code and constants in their caches or not."""

from pathlib import Path

import pytest

from benchmarks.simulated_windows import HEAD, STARTS, instance_of, question_of, sharper, simulated, table_row
from makespan.host import tool
from makespan.proof.bounds.lapses import lapse_proof

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
needs_compiler = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)


@needs_compiler
@pytest.mark.parametrize("row", simulated(), ids=lambda row: f"{row['kernel']}-{row['arch']}-{row['block']}")
def test_no_bound_is_below_a_simulated_window(row: dict[str, str]) -> None:
    """With every range as it is in the machine file, and with accesses known to be as coalesced as they are.

    The table of the page has the latter.
    """
    question, proofs = question_of(row), {}
    for start in STARTS:
        instance = instance_of(question, start)
        proofs[start] = sharper(row, instance)
        assert lapse_proof(instance).upper >= proofs[start].upper >= int(row[start])
    assert table_row(row, proofs) in PAGE.read_text().splitlines()


def test_the_page_has_a_row_for_each_window_and_no_other() -> None:
    table = PAGE.read_text().partition(HEAD + "\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line.split(" | ")[:3] for line in table] == [
        [f"| {row['kernel']}", row["arch"], row["block"]] for row in simulated()
    ]
