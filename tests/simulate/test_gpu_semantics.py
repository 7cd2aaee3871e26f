"""The definition of a whole GPU, against cases worked out by hand and SMs that are on their own."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.host.errors import UnsupportedError
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.simulate.gpu_semantics import GpuState, has_finished, next_states, start_states
from tests.oracle import brute_force, brute_force_gpu, standing
from tests.strategies import barrier_instances, gpus, instances

HALVES = Machine("halves", (UnitClass("C", 1), UnitClass("L", 1)), partitions=2, assignment=WarpAssignment.MODULO)


def gpu_of(
    string: str, blocks: int, sms: int, resident: int, *, warps: int = 1, machine: Machine = PAPER, dispatch: int = 0
) -> GpuInstance:
    block = ((Program.chain(string), warps),)
    return GpuInstance.of(block, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


@pytest.mark.parametrize(
    ("gpu", "shortest", "longest"),
    [
        (gpu_of("C", 3, 2, 1), 2, 2),
        (gpu_of("CL", 3, 1, 2), 4, 4),  # the third block comes in cycle 2, beside the L of the second one
        (gpu_of("CCL", 3, 1, 2), 7, 7),  # six of C, and an L at the end
        (gpu_of("C", 3, 2, 2), 2, 2),  # two on one SM, one on the other
        (gpu_of("C", 3, 2, 2, machine=Machine.of({"C": 2})), 1, 1),
        (gpu_of("C", 2, 1, 1, dispatch=2), 2, 6),
        (gpu_of("C|L", 2, 1, 1, warps=2), 8, 8),  # C C, then L L, in each of them
        (gpu_of("C", 4, 1, 2, machine=HALVES), 2, 2),  # blocks 0 and 1 in partitions 0 and 1, and who comes later, too
        (gpu_of("L|", 2, 1, 1), 2, 2),  # a barrier at the end takes no time
    ],
)
def test_shortest_and_longest_schedule_by_hand(gpu: GpuInstance, shortest: int, longest: int) -> None:
    assert brute_force_gpu(gpu) == Bounds(shortest, longest)


def test_a_block_that_comes_takes_the_partition_of_the_slot() -> None:
    gpu = gpu_of("CC", 3, 1, 2, machine=HALVES)  # the third follows one of two that share nothing
    (start,) = start_states(gpu)
    walk = [start]
    while not has_finished(walk[-1]):
        walk += [next(next_states(gpu, walk[-1]))]
    assert len(walk) - 1 == 4
    assert {sm.partitions for state in walk for sm in state.sms} == {(0, 1)}


def test_blocks_that_are_left_come_as_soon_as_there_is_room() -> None:
    gpu = gpu_of("C", 5, 2, 2)
    sm = gpu.sm(2)
    both, one = standing(sm, 0, 0), standing(sm, 0, 1)
    assert list(start_states(gpu)) == [GpuState((both, both), (1,))]
    (after,) = start_states(gpu)
    assert set(next_states(gpu, after)) == {
        GpuState((both, standing(sm, 0, 1)), (0,)),
        GpuState((both, standing(sm, 1, 0)), (0,)),
    } | {GpuState(tuple(sorted((both, one))), (0,))}
    assert list(next_states(gpu, GpuState((), (0,)))) == []


@given(st.one_of(instances(most_warps=2), barrier_instances(most_warps=2, most=4)), st.integers(1, 2))
@settings(max_examples=25)
def test_blocks_that_all_fit_are_on_sms_of_their_own(instance: Instance, blocks: int) -> None:
    block = tuple((group.program, group.warps) for group in instance.groups)
    gpu = GpuInstance.of(block, blocks, instance.machine, sms=1, resident=blocks + 1)
    assert brute_force_gpu(gpu) == brute_force(gpu.sm(blocks))


def test_blocks_begin_in_any_way_to_spread_them() -> None:
    """Three or four on two SMs that have room for three."""
    for blocks, spreads in (3, {(3,), (1, 2)}), (4, {(1, 3), (2, 2)}):
        begun = start_states(gpu_of("C", blocks, 2, 3))
        assert {tuple(sorted(len(sm.places) for sm in state.sms)) for state in begun} == spreads


def test_of_several_empty_slots_a_block_may_take_any() -> None:
    gpu = gpu_of("C", 3, 1, 2, machine=HALVES)
    (start,) = start_states(gpu)
    assert {state.sms[0].places for state in next_states(gpu, start)} == {(0, 1), (1, 0)}


@given(instances(most_warps=2), st.integers(1, 3), st.integers(0, 2))
@settings(max_examples=25)
def test_one_slot_executes_block_after_block(instance: Instance, blocks: int, dispatch: int) -> None:
    block = tuple((group.program, group.warps) for group in instance.groups)
    gpu = GpuInstance.of(block, blocks, instance.machine, sms=1, resident=1, dispatch=dispatch)
    alone = brute_force(gpu.sm(1))
    assert brute_force_gpu(gpu) == Bounds(blocks * alone.lower, blocks * (alone.upper + dispatch))


@given(gpus(most_blocks=4, most=2))
@settings(max_examples=25)
def test_any_walk_dispatches_every_block_once_and_leaves_no_room_before_the_last_one(gpu: GpuInstance) -> None:
    for state in start_states(gpu):
        while not has_finished(state):
            after = min(next_states(gpu, state))
            assert 0 <= after.left[0] <= state.left[0]
            assert not any(after.left) or len(after.sms) == gpu.sms
            state = after
        assert state == GpuState((), (0,))


TWO_PORTS = Machine.of({"C": 2})


def grids_of(
    *grids: tuple[str, int, int], room: int, sms: int = 1, machine: Machine = PAPER, dispatch: int = 0
) -> GpuInstance:
    """Grids of so many blocks of one warp, which take so much of the only resource."""
    each = (Grid(((Program.chain(string), 1),), blocks, (takes,)) for string, blocks, takes in grids)
    return GpuInstance(tuple(each), machine, sms, (room,), dispatch)


@pytest.mark.parametrize(
    ("gpu", "shortest", "longest"),
    [
        (grids_of(("C", 1, 1), ("L", 1, 1), room=2), 1, 1),  # beside each other
        (grids_of(("C", 1, 1), ("L", 1, 1), room=1), 2, 2),  # one after another
        (grids_of(("CCC", 1, 2), ("C", 2, 1), room=3, machine=TWO_PORTS), 3, 4),  # CCC first, or after both C
        (grids_of(("C", 2, 1), ("CC", 1, 1), room=1, sms=2), 2, 3),  # CC beside both C, or after one of them
        (grids_of(("C", 1, 1), ("L", 1, 1), room=1, dispatch=1), 2, 4),
        (grids_of(("C", 1, 1), ("C", 2, 1), room=3, machine=HALVES), 2, 3),  # all can be in one partition
        (grids_of(("C|L", 1, 1), ("CC", 1, 1), room=2), 3, 4),  # a barrier is no concern of other blocks
    ],
)
def test_blocks_of_several_grids_share_an_sm_by_hand(gpu: GpuInstance, shortest: int, longest: int) -> None:
    assert brute_force_gpu(gpu) == Bounds(shortest, longest)


def test_blocks_that_share_an_sm_have_room_of_every_resource() -> None:
    """Of the first resource there is plenty; of the second one block leaves nothing to the other."""
    grids = tuple(Grid(((Program.chain(letter), 1),), 1, takes) for letter, takes in (("C", (1, 2)), ("L", (1, 1))))
    assert brute_force_gpu(GpuInstance(grids, PAPER, 1, (4, 2))) == Bounds(2, 2)
    assert brute_force_gpu(GpuInstance(grids, PAPER, 1, (4, 3))) == Bounds(1, 1)


def test_every_warp_of_several_grids_is_in_any_partition_for_as_long_as_it_is_there() -> None:
    """Three warps, each in a partition of its own, or all in one."""
    thirds = Machine("thirds", (UnitClass("C", 1), UnitClass("L", 1)), partitions=3)
    grids = Grid(((Program.chain("CC"), 3),), 1), Grid(((Program.chain("L"), 1),), 1)
    assert brute_force_gpu(GpuInstance(grids, thirds, 1, (2,))) == Bounds(2, 6)


@given(gpus(most_blocks=3, most=2, most_slots=2))
@settings(max_examples=10)
def test_a_grid_in_two_parts_is_the_same_where_partitions_do_not_matter(gpu: GpuInstance) -> None:
    gpu = replace(gpu, machine=replace(gpu.machine, partitions=1))
    assume(gpu.blocks > 1)
    parts = replace(gpu.grid, blocks=gpu.blocks - 1), replace(gpu.grid, blocks=1)
    assert brute_force_gpu(replace(gpu, grids=parts)) == brute_force_gpu(gpu)


def test_what_the_definition_does_not_know_is_named() -> None:
    fair = Machine("fair", (UnitClass("C", 1, latency=Latency(1, 1)),), scheduler=SchedulerPromise.FAIR)
    with pytest.raises(UnsupportedError, match="a scheduler that promises something"):
        list(start_states(gpu_of("C", 2, 1, 1, machine=fair)))
