"""Solving whole GPUs: every interval holds what a walk over all states of all SMs finds."""

from dataclasses import replace

import pytest
from hypothesis import given

from makespan import Bounds, InputError, Machine, Program, solve
from makespan.engines.gpu import solve_gpu
from makespan.gpu import GpuInstance
from makespan.result import Status
from tests.oracle import brute_force_gpu
from tests.strategies import gpus

MACHINE = Machine.of({"C": 1, "L": 1})
BLOCK = ((Program.chain("CLLCLL"), 2),)


@given(gpus(most_blocks=3))
def test_one_wave_is_exact_where_its_sms_are(gpu: GpuInstance) -> None:
    gpu = replace(gpu, grids=(replace(gpu.grid, blocks=min(gpu.blocks, gpu.slots)),), dispatch=0)
    truth, found = brute_force_gpu(gpu), solve_gpu(gpu, best_case=True)
    assert (found.upper_evidence, found.last_dispatch) == ("one-wave", None)
    most, fewest = min(gpu.blocks, gpu.resident), max(1, gpu.blocks - (gpu.sms - 1) * gpu.resident)
    assert [one.instance for one in found.sms] == [gpu.sm(blocks) for blocks in range(most, fewest - 1, -1)]
    if all(one.bounds.status is Status.EXACT for one in found.sms):
        assert found.bounds == Bounds(truth.upper, truth.upper)


def test_a_launch_that_fits_has_the_number_of_one_sm() -> None:
    gpu = GpuInstance.of(BLOCK, 184, MACHINE, sms=46, resident=4)
    found = solve_gpu(gpu)
    assert found.bounds == solve(gpu.sm(4)).bounds
    assert (found.witness.makespan, sum(history.sms for history in found.witness.histories)) == (34, 46)


def test_all_numbers_of_blocks_count_where_blocks_are_few() -> None:
    found = solve_gpu(GpuInstance.of(BLOCK, 7, MACHINE, sms=4, resident=3))
    assert [one.instance.warps for one in found.sms] == [6, 4, 2]
    assert {history.blocks: history.sms for history in found.witness.histories} == {3: 1, 2: 1, 1: 2}


def test_what_is_no_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="solve_gpu takes a GpuInstance"):
        solve_gpu("4096 blocks")  # type: ignore[arg-type]
