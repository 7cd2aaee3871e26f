"""The definition of a whole GPU, written to be read: SMs as `simulate.semantics` defines them, and a dispatcher.

The rules stand in docs/model.md, "The whole GPU". Between two cycles blocks end and others get their room, which takes
no time; a state is the state after that. SMs share nothing else: each takes a step that it could take alone. Lapses
of programs are left out here: no SM has credit, and no line is late.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, product
from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.simulate import semantics
from makespan.model.simulate.semantics import SmState


class GpuState(NamedTuple):
    """The state of a GPU at the beginning of a cycle, after blocks have got the room that there is.

    Args:
        sms: every SM that has work, sorted, because all SMs are alike. The warps of an empty slot have finished. The
            warps of a block that has its room but has not begun wait at one of their first places. For several grids, a
            slot has the warps of a block of each grid, and those of all grids but one have finished.
        left: the number of blocks of each grid that have no room yet.
        dram: the number of cycles in which DRAM may still be busy.
    """

    sms: tuple[SmState, ...]
    left: tuple[int, ...]
    dram: int = 0


def start_states(gpu: GpuInstance) -> Iterator[GpuState]:
    """Yield every state after the blocks that get their room in cycle 0 have been spread over the SMs.

    Raises:
        UnsupportedError: a scheduler that promises something.
    """
    if gpu.machine.scheduler is not SchedulerPromise.ANY:
        raise UnsupportedError(
            "the definition of a whole GPU does not know a scheduler that promises something; leave the promise out:"
            ' scheduler = "any" in the machine file'
        )
    left, found = tuple(grid.blocks for grid in gpu.grids), dict[GpuState, None]()
    if len(gpu.grids) > 1:
        found.update(dict.fromkeys(_dispatch_blocks(gpu, [_empty_sm(gpu)] * gpu.sms, left, gpu.dram)))
    else:
        for spread in _block_counts(min(gpu.blocks, gpu.slots), gpu.sms, gpu.resident):
            for sms in product(*(_empty_states(gpu.sm(blocks)) for blocks in spread)):
                found.update(dict.fromkeys(_dispatch_blocks(gpu, sms, left, gpu.dram)))
    yield from found


def next_states(gpu: GpuInstance, state: GpuState) -> Iterator[GpuState]:
    """Yield every state that may follow one cycle later, each once; none once all blocks have ended."""
    found = dict[GpuState, None]()
    for is_busy in range(min(state.dram, 1) + 1):
        ways = (
            {_without_dead_partitions(gpu, after) for after in _sm_successors(gpu, sm, is_busy=bool(is_busy))}
            for sm in state.sms
        )
        for sms in product(*ways):
            found.update(dict.fromkeys(_dispatch_blocks(gpu, sms, state.left, state.dram - is_busy)))
    if state.sms:
        yield from found


_ITS_WAIT = -1
"""Stands, among tokens, for the latency of the last instruction of a warp that blocks."""


def _sm_successors(gpu: GpuInstance, sm: SmState, *, is_busy: bool) -> Iterator[SmState]:
    """Yield every state of an SM that may follow. While DRAM is busy, any latencies that have begun may stand still.

    All that a warp that blocks waits for counts as a latency here. That includes the delay of its block, which the
    state does not tell apart.
    """
    instance = _sm(gpu, sm)
    blocks = [not program.timings for program in instance.programs()]
    waiting = [(warp, _ITS_WAIT) for warp, wait in enumerate(sm.waits) if wait and blocks[warp]]
    waiting += [(warp, token) for warp, tokens in enumerate(sm.pending) for token, _ in tokens]
    for chosen in product((False, True), repeat=len(waiting) * is_busy):
        # a latency that stands still in a cycle of busy DRAM ends one cycle later
        still = {one for one, stands in zip(waiting, chosen, strict=False) if stands}
        waits = tuple(wait + ((warp, _ITS_WAIT) in still) for warp, wait in enumerate(sm.waits))
        pending = tuple(
            tuple((token, left + ((warp, token) in still)) for token, left in tokens)
            for warp, tokens in enumerate(sm.pending)
        )
        yield from semantics.next_states(instance, sm._replace(waits=waits, pending=pending))


def has_finished(state: GpuState) -> bool:
    """Return whether all blocks have ended. Once no SM has work, none is left."""
    return not state.sms


def _block_counts(blocks: int, sms: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put these blocks on at most this number of SMs, up to `most` on each, largest first."""
    if not blocks:
        yield ()
    for here in range(min(blocks, most), 0, -1) if sms else ():
        for others in _block_counts(blocks - here, sms - 1, here):
            yield (here, *others)


class _SmSlots(NamedTuple):
    """An SM with a number of slots. For several grids, each slot has the warps of a block of every grid.

    Args:
        instance: the instance in which each slot is a block.
        of_warp: the slot and the grid of every warp.
    """

    instance: Instance
    of_warp: tuple[tuple[int, int], ...]


@lru_cache(maxsize=16)
def _sm_by_warps(gpu: GpuInstance) -> dict[int, _SmSlots]:
    """Return SMs by their number of warps, without lapses: GPUs are equal here whatever their lapses."""
    gpu = gpu.without_lapses
    block = tuple(group for grid in gpu.grids for group in grid.block)
    most = gpu.most_together
    joint = replace(gpu, grids=(Grid(block, most),), room=(most,))
    ends = list(accumulate(grid.warps for grid in gpu.grids))
    grids = [next(grid for grid, end in enumerate(ends) if warp < end) for warp in range(joint.width)]
    return {
        slots * joint.width: _SmSlots(
            joint.sm(slots), tuple((slot, grids[warp]) for slot, warp in joint.slots_of_warps(slots))
        )
        for slots in range(1, most + 1)
    }


def _slots(gpu: GpuInstance, sm: SmState) -> _SmSlots:
    """Return the SM of a state. For one grid, it has as many slots as blocks began on it together."""
    return _sm_by_warps(gpu)[len(sm.places)]


def _sm(gpu: GpuInstance, sm: SmState) -> Instance:
    return _slots(gpu, sm).instance


def _empty_sm(gpu: GpuInstance) -> SmState:
    """Return an SM whose slots are all empty, for several grids: a block that comes may belong to any partitions."""
    sms = _sm_by_warps(gpu)
    free = next(_empty_states(sms[max(sms)].instance))
    return free._replace(partitions=(0,) * len(free.partitions))


def _without_dead_partitions(gpu: GpuInstance, sm: SmState) -> SmState:
    """Return the same state without the partitions of finished warps, which make no difference."""
    if len(gpu.grids) == 1 or not sm.partitions:
        return sm
    parts = (part * still for part, still in zip(sm.partitions, _unfinished_warps(gpu, sm), strict=True))
    return sm._replace(partitions=tuple(parts))


def _unfinished_warps(gpu: GpuInstance, sm: SmState) -> list[bool]:
    pending = sm.pending or ((),) * len(sm.places)
    rows = zip(_sm(gpu, sm).programs(), sm.places, sm.waits, pending, strict=True)
    return [place != program.end or bool(wait or tokens) for program, place, wait, tokens in rows]


def _empty_states(instance: Instance) -> Iterator[SmState]:
    ends = tuple(program.end for program in instance.programs())
    pending = ((),) * instance.warps if instance.runs_ahead else ()
    held = ((),) * len(instance.machine.pools)
    for partitions in instance.assignments():
        parts = partitions if instance.machine.partitions > 1 else ()
        yield SmState(ends, (0,) * instance.warps, held, (), parts, pending)


PlacedBlocks = frozenset[tuple[int, int, int]]
"""The blocks that get their room, each as (SM, slot, grid)."""


def _dispatch_blocks(gpu: GpuInstance, sms: Sequence[SmState], left: tuple[int, ...], dram: int) -> Iterator[GpuState]:
    """Yield every state after blocks get room, such that no room is left for the blocks of some remaining grid."""
    for placed in _placements(gpu, [_grid_of_slots(gpu, sm) for sm in sms], left):
        coming = [{slot: grid for other, slot, grid in placed if other == number} for number in range(len(sms))]
        rest = tuple(blocks - sum(grid == other for _, _, other in placed) for grid, blocks in enumerate(left))
        for begun in product(*(_begin_blocks(gpu, sm, own) for sm, own in zip(sms, coming, strict=True))):
            # SMs are alike: sorting makes states that differ only in their names equal
            working = sorted(sm for sm in begun if not semantics.has_finished(_sm(gpu, sm), sm))
            yield GpuState(tuple(working), rest, dram)


def _placements(gpu: GpuInstance, sms: Sequence[Sequence[int | None]], left: tuple[int, ...]) -> Iterator[PlacedBlocks]:
    """Yield every set of blocks that may come, given the grid of the block in each slot, or None for an empty slot."""
    frontier: set[PlacedBlocks] = {frozenset()}
    while frontier:
        more = set[PlacedBlocks]()
        for placed in frontier:
            rest = [blocks - sum(grid == other for _, _, other in placed) for grid, blocks in enumerate(left)]
            options = [
                [
                    (number, slot, grid)
                    for number, slots in enumerate(sms)
                    for slot in _free_slots(gpu, number, slots, placed, grid)
                ]
                for grid in range(len(gpu.grids))
            ]
            # the dispatcher is work-conserving: it stops only if some remaining grid fits nowhere
            if not any(rest) or any(blocks and not where for blocks, where in zip(rest, options, strict=True)):
                yield placed
            more |= {placed | {one} for blocks, where in zip(rest, options, strict=True) if blocks for one in where}
        frontier = more


def _free_slots(
    gpu: GpuInstance, number: int, slots: Sequence[int | None], placed: PlacedBlocks, grid: int
) -> list[int]:
    """Return the slots of an SM that a block of a grid may take.

    For several grids slots are mere names: one is enough.
    """
    came = {slot: other for sm, slot, other in placed if sm == number}
    there = [own for own in (*slots, *came.values()) if own is not None]
    takes = zip(gpu.room, *(gpu.grids[own].takes for own in (*there, grid)), strict=True)
    if any(sum(taken) > room for room, *taken in takes):
        return []
    empty = [slot for slot, own in enumerate(slots) if own is None and slot not in came]
    return empty if len(gpu.grids) == 1 else empty[:1]


def _grid_of_slots(gpu: GpuInstance, sm: SmState) -> list[int | None]:
    slots, unfinished = _slots(gpu, sm).of_warp, _unfinished_warps(gpu, sm)
    taken = {slot: grid for (slot, grid), still in zip(slots, unfinished, strict=True) if still}
    return [taken.get(slot) for slot in range(1 + max(slot for slot, _ in slots))]


def _begin_blocks(gpu: GpuInstance, sm: SmState, blocks: Mapping[int, int]) -> Iterator[SmState]:
    """Yield every state after blocks begin in slots, on any path, each after a delay of its own for all its warps."""
    instance, parts = _sm(gpu, sm), range(gpu.machine.partitions)
    coming = [(warp, slot) for warp, (slot, grid) in enumerate(_slots(gpu, sm).of_warp) if blocks.get(slot) == grid]
    programs, is_placed = tuple(instance.programs()), len(gpu.grids) > 1 and len(parts) > 1
    for delays in product(range(gpu.dispatch + 1), repeat=len(blocks)):
        late = dict(zip(blocks, delays, strict=True))
        for first in product(*(programs[warp].starts for warp, _ in coming)):
            places, waits = list(sm.places), list(sm.waits)
            for (warp, slot), place in zip(coming, first, strict=True):
                places[warp], waits[warp] = place, late[slot]
            for chosen in product(parts, repeat=len(coming) * is_placed):
                partitions = list(sm.partitions)
                for (warp, _), part in zip(coming, chosen, strict=False):
                    partitions[warp] = part
                begun = sm._replace(places=tuple(places), waits=tuple(waits), partitions=tuple(partitions))
                yield from semantics.settled_states(instance, begun)
