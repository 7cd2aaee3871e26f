"""Launches whose blocks share SMs: every SM by its own clock, beside all that a work-conserving GPU may do."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from makespan.hardware import campaign, judgement
from makespan.hardware import report as validation
from makespan.hardware.campaign import SCHEMA, Campaign, CampaignRun, RunCondition, WarpRecord
from makespan.hardware.device import CacheState, DeviceFault, NeighbourLoad, SimulatedDevice
from makespan.hardware.judgement import CampaignJudgement, WindowKind, WindowsByKind
from makespan.host.errors import MeasurementError
from makespan.model.gpu import GpuInstance
from makespan.model.machine import PAPER
from makespan.model.program import InstructionOrigin, Program
from makespan.proof.bounds import theorem_g
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import solve_gpu
from tests.strategies import chains, gpus

IDLE = RunCondition("zeros", 0, CacheState.THRASHED, NeighbourLoad.IDLE)


def clocked(gpu: GpuInstance) -> GpuInstance:
    """The same, where every instruction reads the clock."""
    block = tuple(
        (replace(program, origins=(InstructionOrigin("", 1, "SR_CLOCK"),) * len(program.places)), warps)
        for program, warps in gpu.grid.block
    )
    return replace(gpu, grids=(replace(gpu.grid, block=block),))


def simulated(gpu: GpuInstance, seed: int, launches: int, fault: DeviceFault | None = None) -> WindowsByKind:
    device = SimulatedDevice(clocked(gpu), "8.6", seed, fault)
    grid, block = (gpu.blocks, 1, 1), (32 * gpu.grid.warps, 1, 1)
    about = Campaign(SCHEMA, device.identity, "k.ptx", "k", "", "", grid, block, 0, {}, 7)
    return judgement.judged_windows(list(campaign.launch_runs(device, about, b"", [], [IDLE] * launches)))


def held(gpu: GpuInstance, seen: WindowsByKind) -> WindowKind:
    result = solve_gpu(gpu, limits=Limits(0.05))
    return WindowKind((*seen.alone, *seen.shared), result, result, {})


@given(gpu=gpus(), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=25, deadline=None)
def test_no_sm_of_an_honest_gpu_comes_to_the_bound_of_the_launch(gpu: GpuInstance, seed: int) -> None:
    assume(all(any(place.unit != "|" for place in program.places) for program, _ in gpu.grid.block))
    seen = simulated(gpu, seed, 3)
    assert not held(gpu, seen).violations
    for window in (*seen.alone, *seen.shared):  # an SM by itself is a GPU of one SM, with the blocks that it got
        assert (
            window.cycles
            < theorem_g.theorem_g(replace(gpu, sms=1, grids=(replace(gpu.grid, blocks=window.blocks),))).upper
        )
    assert sum(window.blocks for window in (*seen.alone, *seen.shared)) == 3 * gpu.blocks


Block = tuple[tuple[int, str], ...]
"""Of every warp the cycles until it begins, and what it has to issue."""
Sm = tuple[int, tuple[Block, ...]]
"""The cycle of the first issue on it, or -1; and the blocks that are there."""


def longest(warps: tuple[str, ...], blocks: int, sms: int, resident: int, late: int) -> tuple[int, int]:
    """Of all runs of the machine of the paper: cycles from the first issue on an SM to its last, and all, at most.

    Each warp begins by itself, up to `late` cycles after its block has got its room.
    """

    def dispatched(gpu: tuple[Sm, ...], left: int) -> Iterator[tuple[tuple[Sm, ...], int]]:
        free = [number for number, (_, there) in enumerate(gpu) if len(there) < resident]
        if not left or not free:
            yield tuple(sorted(gpu)), left
            return
        for number, delays in product(free, product(range(late + 1), repeat=len(warps))):
            first, there = gpu[number]
            more: Sm = (first, tuple(sorted((*there, tuple(zip(delays, warps, strict=True))))))
            yield from dispatched((*gpu[:number], more, *gpu[number + 1 :]), left - 1)

    def issued(sm: Sm, cycle: int) -> Iterator[tuple[Sm, int]]:
        first, there = sm
        own = {(block, warp): todo for block, each in enumerate(there) for warp, todo in enumerate(each)}
        ready = [[at for at, (delay, todo) in own.items() if not delay and todo[:1] == unit] for unit in "CL"]
        for picks in product(*(each or [(-1, -1)] for each in ready)):
            after = (
                tuple((max(0, delay - 1), todo[(block, warp) in picks :]) for warp, (delay, todo) in enumerate(each))
                for block, each in enumerate(there)
            )
            begun = cycle if first < 0 and any(ready) else first
            still = sorted(each for each in after if any(todo for _, todo in each))
            yield (begun, tuple(still)), cycle - begun if any(ready) else 0

    frontier, cycle, most = set(dispatched(((-1, ()),) * sms, blocks)), 0, 0
    while frontier:
        reached = set()
        for gpu, left in frontier:
            for made in product(*(set(issued(sm, cycle)) for sm in gpu)):
                most = max([most, *(window for _, window in made)])
                reached |= set(dispatched(tuple(sm for sm, _ in made), left))
        frontier = {(gpu, left) for gpu, left in reached if any(there for _, there in gpu)}
        cycle += 1
    return most, cycle


@example(block=(Program.chain("LC"), Program.chain("L")), blocks=3, sms=2, resident=1, late=1, seed=3)
@given(
    block=st.lists(chains("CL", 2), min_size=1, max_size=2).map(tuple),
    blocks=st.integers(1, 4),
    sms=st.integers(1, 2),
    resident=st.integers(1, 2),
    late=st.integers(0, 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=15, deadline=None)
def test_windows_are_those_of_all_runs_that_there_can_be(
    block: tuple[Program, ...], blocks: int, sms: int, resident: int, late: int, seed: int
) -> None:
    assume(blocks * len(block) * late < 7)
    warps = tuple("".join(place.unit for place in program.places) for program in block)
    gpu = GpuInstance.of([(one, 1) for one in block], blocks, PAPER, sms=sms, resident=resident, dispatch=late)
    window, cycles = longest(warps, blocks, sms, resident, late)
    proven = [proof.upper for proof in theorem_g._of_one_grid(gpu) if proof.counting != theorem_g.PAIRS or not late]
    assert window < cycles <= min(proven)
    if sms == 1 and not late:
        assert window == cycles - 1
    seen = simulated(gpu, seed, 2)
    assert max(each.cycles for each in (*seen.alone, *seen.shared)) <= window


SMALL = GpuInstance.of(((Program.chain("CLLC"), 2),), 7, PAPER, sms=2, resident=2)


@pytest.mark.parametrize("fault", [DeviceFault.IDLE, DeviceFault.FULL])
def test_a_fault_of_a_launch_is_found(fault: DeviceFault) -> None:
    found = held(SMALL, simulated(SMALL, 1, 16, fault))
    assert {window.run for window in found.violations} == {7, 15}


def test_a_fault_of_full_sms_shows_on_full_sms_alone() -> None:
    lone = replace(SMALL, grids=(replace(SMALL.grid, blocks=1),))
    seen = simulated(lone, 1, 16, DeviceFault.FULL)
    assert len(seen.alone) == 16
    assert not held(lone, seen).violations


def warp(block: int, sm: int, start: int, end: int) -> WarpRecord:
    return WarpRecord(block, 0, sm, block, start, end)


def test_a_window_of_an_sm_is_from_the_first_start_to_the_last_end_by_its_own_clock() -> None:
    run = CampaignRun(5, IDLE, (warp(0, 1, 70, 90), warp(1, 0, 5, 9), warp(2, 1, 50, 69), warp(3, 1, 60, 95)))
    seen = judgement.judged_windows([run])
    (shared,), (alone,) = seen.shared, seen.alone
    assert (shared.sm, shared.block, shared.blocks, shared.cycles) == (1, 2, 3, 45)
    assert (shared.together, shared.apart) == (2, 10)
    assert (alone.sm, alone.block, alone.cycles, alone.together) == (0, 1, 4, 1)


@pytest.mark.parametrize(("last", "together"), [(20, 2), (19, 1)])
def test_a_block_is_there_as_long_as_it_reads_the_clock(last: int, together: int) -> None:
    (window,) = judgement.judged_windows([CampaignRun(0, IDLE, (warp(0, 1, 10, last), warp(1, 1, 20, 30)))]).shared
    assert window.together == together


def test_more_blocks_than_there_is_room_for_are_no_launch_of_the_bound() -> None:
    run = CampaignRun(3, IDLE, (warp(0, 1, 1, 4), warp(1, 1, 2, 5), warp(2, 1, 3, 6)))
    with pytest.raises(MeasurementError, match="run 3: 3 blocks were on SM 1 at the same time, and the bound is of 2"):
        held(SMALL, judgement.judged_windows([run]))


def test_shared_sms_beside_neighbours_are_set_aside() -> None:
    hog = RunCondition("zeros", 0, CacheState.THRASHED, NeighbourLoad.HOG)
    run = CampaignRun(0, hog, (warp(0, 1, 1, 4), warp(1, 1, 2, 5), warp(2, 0, 3, 6)), (3,))
    seen = judgement.judged_windows([run])
    assert (len(seen.alone), seen.shared, seen.set_aside) == (1, (), 2)


@pytest.mark.parametrize(("beyond", "violations"), [(-1, 0), (0, 1)])
def test_a_launch_at_its_bound_is_not_below_it(beyond: int, violations: int) -> None:
    end = 100 + solve_gpu(SMALL, limits=Limits(0.05)).bounds.upper + beyond
    run = CampaignRun(0, IDLE, (warp(0, 1, 100, 110), warp(1, 1, 111, end)))
    assert len(held(SMALL, judgement.judged_windows([run])).violations) == violations


def test_what_is_above_a_bound_is_said_first() -> None:
    lone = solve(SMALL.sm(1), limits=Limits(0.05))
    seen = judgement.judged_windows([CampaignRun(0, IDLE, (warp(0, 0, 1, 4), warp(1, 1, 1, 2), warp(2, 1, 3, 10**6)))])
    kinds = WindowKind(seen.alone, lone, lone, {}), replace(held(SMALL, seen), windows=seen.shared)
    device = SimulatedDevice(clocked(SMALL), "8.6", 1).identity
    about = Campaign(SCHEMA, device, "k.ptx", "k", "", "", (3, 1, 1), (32, 1, 1), 0, {}, 7)
    judged = CampaignJudgement(about, (CampaignRun(0, IDLE, ()),), kinds, 0, {"hong-kim": 12.5})
    said = validation.campaign_verdict(judged)
    assert said.index("NOT BELOW THE BOUND in 1 of 1 shared SM") < said.index("; below the bound in all of 1 block")
    document = validation.campaign_document(judged)
    assert [kind["of"] for kind in document["kinds"]] == ["block", "launch"]
    assert validation.campaign_report(judged).count("hong-kim") == 1  # beside the launch alone
