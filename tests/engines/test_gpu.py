"""Solving whole GPUs: every interval holds what a walk over all states of all SMs finds."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from makespan import Bounds, InputError, Latency, Limits, Machine, Program, UnitClass, solve
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.machine import PortResource, SchedulerPromise, Use
from makespan.model.result import Status
from makespan.model.simulate import gpu_run
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.model.strings import parse_string
from makespan.proof.bounds.best_case import least_possible_gpu
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.proof.engines.gpu import solve_gpu
from tests.oracle import brute_force_gpu
from tests.strategies import gpus

MACHINE = Machine.of({"C": 1, "L": 1})
BLOCK = ((Program.chain("CLLCLL"), 2),)


@settings(max_examples=12)
@given(gpus(most_blocks=3, most=2))
def test_the_interval_holds_the_truth(gpu: GpuInstance) -> None:
    truth, found = brute_force_gpu(gpu), solve_gpu(gpu, best_case=True)
    assert found.bounds.lower <= truth.upper <= found.bounds.upper
    assert found.best_case is not None
    assert found.best_case.lower <= truth.lower <= found.best_case.upper
    assert found.witness is not None
    assert replay_gpu(gpu, found.witness) == found.bounds.lower
    if not found.sms or found.shortest is not None:
        assert replay_gpu(gpu, found.shortest or found.witness) == found.best_case.upper


@settings(max_examples=5)
@given(gpus(most_blocks=2, most=2))
def test_one_wave_is_exact_where_its_sms_are(gpu: GpuInstance) -> None:
    gpu = replace(gpu, grids=(replace(gpu.grid, blocks=min(gpu.blocks, gpu.slots)),), dispatch=0)
    truth, found = brute_force_gpu(gpu), solve_gpu(gpu, best_case=True)
    assert (found.upper_evidence, found.last_dispatch) == ("one-wave", None)
    most, fewest = min(gpu.blocks, gpu.resident), max(1, gpu.blocks - (gpu.sms - 1) * gpu.resident)
    assert [one.instance for one in found.sms] == [gpu.sm(blocks) for blocks in range(most, fewest - 1, -1)]
    assert found.bounds.upper == max(one.bounds.upper for one in found.sms)
    if all(one.bounds.status is Status.EXACT for one in found.sms):
        assert found.bounds == Bounds(truth.upper, truth.upper)


def test_blocks_that_begin_late_are_no_instance_of_an_sm() -> None:
    """Together two blocks take 4 cycles; with one a cycle late they take 6 (docs/theory.md, 15)."""
    machine = Machine("two ports", (UnitClass("C", 2, interval=2, latency=Latency(1, 2)),))
    late = GpuInstance.of(((Program.chain("CC"), 1),), 2, machine, sms=1, resident=2, dispatch=1)
    assert solve(late.sm(2)).bounds.upper + late.dispatch < brute_force_gpu(late).upper
    assert solve_gpu(late).bounds.upper >= brute_force_gpu(late).upper


def test_a_launch_that_fits_has_the_number_of_one_sm() -> None:
    gpu = GpuInstance.of(BLOCK, 184, MACHINE, sms=46, resident=4)
    found = solve_gpu(gpu)
    assert found.bounds == solve(gpu.sm(4)).bounds
    assert found.witness is not None
    assert (found.witness.makespan, sum(history.sms for history in found.witness.histories)) == (34, 46)


def test_all_numbers_of_blocks_count_where_blocks_are_few() -> None:
    found = solve_gpu(GpuInstance.of(BLOCK, 7, MACHINE, sms=4, resident=3))
    assert [one.instance.warps for one in found.sms] == [6, 4, 2]
    assert found.witness is not None
    assert {history.blocks: history.sms for history in found.witness.histories} == {3: 1, 2: 1, 1: 2}


def test_the_bound_of_one_wave_is_the_largest_of_its_sms() -> None:
    """Without time for a search no SM is exact."""
    gpu = GpuInstance.of(((Program.chain("CLCCLLCLCL"), 5),), 7, Machine.of({"C": 2, "L": 1}), sms=4, resident=3)
    found = solve_gpu(gpu, limits=Limits(0))
    assert found.bounds.upper == max(one.bounds.upper for one in found.sms)
    assert found.bounds.lower == max(one.bounds.lower for one in found.sms) < found.bounds.upper


def test_the_shortest_schedule_is_shown() -> None:
    for blocks in 3, 30:
        gpu = GpuInstance.of(((Program.chain("CLC"), 1), (Program.chain("LLL"), 1)), blocks, MACHINE, sms=1, resident=3)
        found = solve_gpu(gpu, best_case=True)
        assert found.shortest is not None
        assert found.best_case is not None
        assert replay_gpu(gpu, found.shortest) == found.best_case.upper < found.bounds.lower


def test_a_million_blocks_keep_their_proof_when_time_is_short() -> None:
    gpu = GpuInstance.of(BLOCK, 1_000_000, MACHINE, sms=46, resident=4)
    found = solve_gpu(gpu, limits=Limits(0))
    assert found.last_dispatch is not None
    assert found.bounds.upper == found.last_dispatch.upper
    assert found.witness is not None
    assert sum(history.sms * history.blocks for history in found.witness.histories) == 1_000_000


def test_the_proof_is_kept_without_any_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run of ever so many letters is short enough; what no schedule falls short of is below the worst case, too."""
    monkeypatch.setattr(gpu_run, "MAX_WORK", 1000)
    gpu = GpuInstance.of(((Program.chain("CLLCL" * 60), 8),), 1_000_000, MACHINE, sms=46, resident=6)
    found = solve_gpu(gpu, best_case=True, limits=Limits(0))
    assert (found.witness, found.policy) == (None, "")
    assert found.bounds == found.best_case == Bounds(least_possible_gpu(gpu), theorem_g(gpu).upper)


SPLIT = Machine(
    "split",
    (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(1, 40), uses=(Use(("memory",), 1, 4),))),
    issue_width=1,
    partitions=2,
    resources=(PortResource("memory", 1, shared=True),),
)
AHEAD = ((parse_string("L()@4..40L()C(1,2)@4|C()@4", SPLIT), 3), (parse_string("CCL", SPLIT), 1))


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize(
    "gpu",
    [
        GpuInstance.of(BLOCK, 7, MACHINE, sms=4, resident=3),
        GpuInstance.of(BLOCK, 7, MACHINE, sms=4, resident=3, dispatch=5),
        GpuInstance.of(BLOCK, 65_536, MACHINE, sms=46, resident=6),
        GpuInstance.of(((Program.chain("CLLCL" * 12), 8),), 65_536, MACHINE, sms=46, resident=6),
        GpuInstance.of(AHEAD, 65_536, SPLIT, sms=46, resident=4),
        GpuInstance((Grid(AHEAD, 500), Grid(((Program.chain("CL"), 2),), 300)), SPLIT, 5, (3,)),
        GpuInstance.of(BLOCK, 500, replace(MACHINE, scheduler=SchedulerPromise.FAIR), sms=4, resident=3),
    ],
    ids=["one wave", "dispatch", "waves", "long", "partitions", "launches", "fair"],
)
def test_there_is_always_a_schedule_of_the_whole_gpu(gpu: GpuInstance, interrupted: bool) -> None:
    """Whatever the time: here none is left from the beginning, or the user has stopped."""
    limits = Limits(60 if interrupted else 0)
    if interrupted:
        limits.interrupt()
    found = solve_gpu(gpu, limits=limits)
    assert found.interrupted == interrupted
    assert found.witness is not None
    assert replay_gpu(gpu, found.witness) == found.bounds.lower <= found.bounds.upper
    assert sum(history.sms * history.blocks for history in found.witness.histories) == gpu.blocks
    assert found.bounds.lower > least_possible_gpu(gpu)


def test_what_is_no_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="solve_gpu takes a GpuInstance"):
        solve_gpu("4096 blocks")  # type: ignore[arg-type]
