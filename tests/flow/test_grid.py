"""What a user says of a launch."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from makespan.host.errors import InputError
from makespan.kernels.flow import Launch, launch


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


@pytest.mark.parametrize(
    ("given", "extent"),
    [
        (256, (256, 1, 1)),
        ((256,), (256, 1, 1)),
        ([16, 16], (16, 16, 1)),
        ((8, 4, 2), (8, 4, 2)),
        (np.int64(64), (64, 1, 1)),
        (None, None),
    ],
)
def test_an_extent_that_is_left_out_is_one(given: Any, extent: tuple[int, int, int] | None) -> None:
    found = Launch(block=given, grid=given)
    assert (found.block, found.grid) == (extent, extent)
    assert replace(found, parameters={"n": 1}) == Launch(extent, extent, {"n": 1})


@pytest.mark.parametrize("given", ["256", 2.0, True, (), (1, 2, 3, 4), (16, 0.5), (16, True), ((16, 16), 1)])
def test_what_is_no_extent_is_refused_by_the_name_of_the_field(given: Any) -> None:
    for field in ("block", "grid"):
        with pytest.raises(InputError, match=f"^{field} must be a whole number such as 256, or one to three of them"):
            Launch(**{field: given})


@pytest.mark.parametrize("named", [str, "--{}".format])
def test_messages_call_a_field_what_the_user_calls_it(named: Callable[[str], str]) -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: Launch(block=2048, named=named), "block 2048x1x1: at least 1 and at most 1024x1024x64"),
        (lambda: Launch(block=(64, 64), named=named), "block 64x64x1: more than 1024 threads"),
        (lambda: Launch(grid=(1, 65536), named=named), "grid 1x65536x1: at least 1 and at most"),
        (lambda: launch("a", named=named), "block 'a': give a number such as 256"),
        (lambda: launch(parameters=["n"], named=named), "parameters 'n': give NAME=VALUE"),
        (lambda: launch(parameters=["n=1", "n=2"], named=named), "parameters n=2: n already has the value 1"),
    ]
    for wrong, message in refused:
        with pytest.raises(InputError, match=f"^{named(message)}"):
            wrong()
