"""What machine code changes when it is executed, the front end knows as written, and what results come from as read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from makespan.kernels.sass.effects import register_accesses
from tests import sass_interpreter
from tests.ptx_interpreter.values import LANES, Array
from tests.sass.test_interpreter import LISTINGS, inputs, kernel_in
from tests.sass_interpreter import floats, integers
from tests.sass_interpreter.handlers import HANDLERS
from tests.sass_interpreter.machine import Group, Warp, bits_of
from tests.sass_random import SLOTS


def is_arithmetic(name: str) -> bool:
    """Whether an instruction does nothing but compute registers, as its uniform twin."""
    handler = HANDLERS.get(name) or HANDLERS[name.removeprefix("U")]
    return handler.__module__ in (floats.__name__, integers.__name__)


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_registers_that_change_are_written_and_results_come_from_those_that_are_read(path: Path) -> None:
    kernel = kernel_in(path)
    told = register_accesses(kernel)
    chance = np.random.default_rng(1)
    seen = set()

    def noise(name: str, like: Array) -> Array:
        drawn = chance.integers(0, 2 if like.dtype == bool else 2**32, 1 if name.startswith("U") else LANES)
        return np.broadcast_to(drawn.astype(like.dtype), LANES).copy()

    def watch(warp: Warp, at: int, lanes: Array) -> Callable[[], None]:
        access, instruction = told[at // 16], kernel.code[at // 16]
        before = {name: held.copy() for name, held in warp.registers.items()}

        def after() -> None:
            for name, held in warp.registers.items():
                assert name in access.writes or np.array_equal(held, before.get(name, 0 * held)), instruction
            if not is_arithmetic(instruction.name) or not lanes.any():
                return
            found = dict(warp.registers)
            known = {*access.reads, *access.writes}
            warp.registers = {n: before.get(n, 0 * v).copy() if n in known else noise(n, v) for n, v in found.items()}
            warp.block.code[at][1](warp, Group(0, bits_of(lanes)), lanes)
            assert all(np.array_equal(warp.registers[name], found[name]) for name in access.writes if name in found)
            warp.registers = found
            seen.add(instruction.name)

        return after

    out = np.zeros((64, SLOTS), np.uint32)
    sass_interpreter.run(kernel, block=(64, 1, 1), arguments=[inputs(3), out, 3], watch=watch)
    assert len(seen) > 5
