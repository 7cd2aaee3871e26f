"""What a user says of a launch."""

import pytest

from makespan.errors import InputError
from makespan.flow import launch


def test_options_are_read() -> None:
    found = launch("16x8", "64", ["param 1=0x10", "n=-1", "x=2.5e1"])
    assert found.block == (16, 8, 1)
    assert found.grid == (64, 1, 1)
    assert dict(found.parameters) == {"1": 16, "n": -1, "x": 25.0}
    assert found.warps_per_block == 4
    assert launch("33").warps_per_block == 2
    assert launch().warps_per_block is None


@pytest.mark.parametrize(
    ("block", "grid", "parameters", "message"),
    [
        ("2048", None, [], "at least 1 and at most 1024x1024x64"),
        ("0", None, [], "at least 1"),
        ("64x64", None, [], "more than 1024 threads"),
        ("1x1x65", None, [], "at most 1024x1024x64"),
        ("a", None, [], "give a number such as 256"),
        ("1x1x1x1", None, [], "give a number such as 256"),
        (None, "1x65536", [], "at most 2147483647x65535x65535"),
        (None, None, ["n"], "give NAME=VALUE"),
        (None, None, ["n=1=2"], "give NAME=VALUE"),
        (None, None, ["n=many"], "no number"),
        (None, None, ["n=1e999"], "no number"),
        (None, None, ["n=1", "n=2"], "already has the value 1"),
    ],
)
def test_what_is_no_launch_is_refused(block: str | None, grid: str | None, parameters: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        launch(block, grid, parameters)
