"""What lapses, queues and late lines add to bounds, as docs/benchmarks.md has it."""

from pathlib import Path

import pytest

from benchmarks.known_sm import HEAD, WARPS, question_of, table_row
from makespan.host import tool

TABLE = (
    (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text().partition(HEAD + "\n")[2].partition("\n\n")[0]
).splitlines()[1:]


@pytest.mark.skipif(None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed")
@pytest.mark.parametrize(("kernel", "warps"), [("vecadd", 4), ("vecadd", 48), ("reduction", 8), ("polynomial", 16)])
def test_a_row_of_the_table_is_what_the_benchmark_computes(kernel: str, warps: int) -> None:
    assert table_row(kernel, question_of(kernel, "sm_86"), warps) in TABLE


def test_each_row_of_the_table_adds_up() -> None:
    assert len(TABLE) == 16 * len(WARPS) - 2  # the two kernels with barriers have 8 warps in a block
    for row in TABLE:
        plain, lapses, queues, warm, factor, near, far, cold = row.strip("| ").split(" | ")[2:]
        assert int(warm) == int(plain) + int(lapses) + int(queues)
        assert (factor, cold) == (f"{int(warm) / int(plain):.2f}", f"{int(far) / int(plain):.2f}")
        assert int(warm) < int(near) < int(far)
