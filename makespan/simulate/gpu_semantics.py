"""The definition of a whole GPU, written to be read: SMs as `simulate.semantics` defines them, and a dispatcher.

The rules stand in docs/model.md, "The whole GPU". Between two cycles blocks end and others get their room, which takes
no time; so a state is what is there after that. SMs share nothing else: each takes a step that it could take alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from makespan.errors import UnsupportedError
from makespan.gpu import GpuInstance
from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.simulate import semantics
from makespan.simulate.semantics import State


class GpuState(NamedTuple):
    """What the past leaves behind at the beginning of a cycle, once blocks have got the room that there is.

    Args:
        sms: every SM that has work, sorted, as they are all alike. Where a slot is empty, its warps have finished;
            those of a block that has its room but not begun yet wait for that at one of their first places.
        left: blocks that have no room yet.
    """

    sms: tuple[State, ...]
    left: int


def starts(gpu: GpuInstance) -> Iterator[GpuState]:
    """Every way in which the blocks that get their room in cycle 0 may be spread over the SMs, and may begin.

    Raises:
        UnsupportedError: several grids, or a scheduler that promises something.
    """
    if len(gpu.grids) > 1:
        raise UnsupportedError(
            f"the definition of a whole GPU knows one grid, not {len(gpu.grids)}; ask for each alone"
        )
    if gpu.machine.scheduler is not Scheduler.ANY:
        raise UnsupportedError(
            "the definition of a whole GPU does not know a scheduler that promises something; leave the promise out:"
            ' scheduler = "any" in the machine file'
        )
    for spread in _spreads(min(gpu.blocks, gpu.slots), gpu.sms, gpu.resident):
        for sms in product(*(_empty(gpu.sm(blocks)) for blocks in spread)):
            yield from _dispatched(gpu, sms, gpu.blocks)


def steps(gpu: GpuInstance, state: GpuState) -> Iterator[GpuState]:
    """Every state that may follow one cycle later, each once; none once all blocks have ended."""
    found = dict[GpuState, None]()
    for sms in product(*(set(semantics.steps(_sm(gpu, sm), sm)) for sm in state.sms)):
        found.update(dict.fromkeys(_dispatched(gpu, sms, state.left)))
    if state.sms:
        yield from found


def finished(state: GpuState) -> bool:
    """Whether all blocks have ended; as soon as no SM has work none is left."""
    return not state.sms


def _spreads(blocks: int, sms: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to put so many blocks on so many SMs at most, up to `most` on each, largest first."""
    if not blocks:
        yield ()
    for here in range(min(blocks, most), 0, -1) if sms else ():
        for others in _spreads(blocks - here, sms - 1, here):
            yield (here, *others)


def _sm(gpu: GpuInstance, sm: State) -> Instance:
    """The SM of which this is a state: it has as many slots as blocks began on it together."""
    return gpu.sm(len(sm.places) // gpu.grid.warps)


def _empty(instance: Instance) -> Iterator[State]:
    """An SM on which all slots are empty, and its warps spread over the partitions in any way that is allowed."""
    ends = tuple(program.end for program in instance.programs())
    pending = ((),) * instance.warps if instance.runs_ahead else ()
    held = ((),) * len(instance.machine.pools)
    for partitions in instance.assignments():
        parts = partitions if instance.machine.partitions > 1 else ()
        yield State(ends, (0,) * instance.warps, held, (), parts, pending)


def _dispatched(gpu: GpuInstance, sms: Sequence[State], left: int) -> Iterator[GpuState]:
    """Every way in which blocks get room: as many as there are, or as there is room for, in any of the empty slots."""
    room = [(number, slot) for number, sm in enumerate(sms) for slot in _empty_slots(gpu, sm)]
    coming = min(left, len(room))
    for taken in combinations(room, coming):
        slots = [[slot for other, slot in taken if other == number] for number in range(len(sms))]
        for begun in product(*(_begun(gpu, sm, own) for sm, own in zip(sms, slots, strict=True))):
            working = sorted(sm for sm in begun if not semantics.finished(_sm(gpu, sm), sm))
            yield GpuState(tuple(working), left - coming)


def _empty_slots(gpu: GpuInstance, sm: State) -> list[int]:
    """The slots all of whose warps have finished."""
    instance = _sm(gpu, sm)
    slots = gpu.slots_of_warps(len(sm.places) // gpu.grid.warps)
    taken = {
        slot
        for warp, ((slot, _), program) in enumerate(zip(slots, instance.programs(), strict=True))
        if sm.places[warp] != program.end or sm.waits[warp] or (sm.pending and sm.pending[warp])
    }
    return sorted({slot for slot, _ in slots} - taken)


def _begun(gpu: GpuInstance, sm: State, slots: Iterable[int]) -> Iterator[State]:
    """Every way in which blocks begin in these slots, on any path, each after a delay of its own for all its warps."""
    instance, slots = _sm(gpu, sm), list(slots)
    coming = [
        (warp, slots.index(slot))
        for warp, (slot, _) in enumerate(gpu.slots_of_warps(len(sm.places) // gpu.grid.warps))
        if slot in slots
    ]
    programs = tuple(instance.programs())
    for delays in product(range(gpu.dispatch + 1), repeat=len(slots)):
        for first in product(*(programs[warp].starts for warp, _ in coming)):
            places, waits = list(sm.places), list(sm.waits)
            for (warp, block), place in zip(coming, first, strict=True):
                places[warp], waits[warp] = place, delays[block]
            yield from semantics.settled(instance, sm._replace(places=tuple(places), waits=tuple(waits)))
