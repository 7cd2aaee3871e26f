"""One question about a whole GPU: grids of blocks, and SMs to which a dispatcher gives them when there is room."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from makespan.host.errors import InputError
from makespan.model import assumptions
from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.instance import MAX_WARPS, Group, Instance, drop_uncounted_queues
from makespan.model.machine import Machine
from makespan.model.machine.values import MAX_SMS, check_whole
from makespan.model.program import Program, merge_groups, merge_neighbours
from makespan.model.wording import count_words, cycle_words

MAX_BLOCKS = 2**62
"""More than the largest grid of CUDA, (2^31 - 1) x 65535 x 65535, on purpose: numbers are exact whatever their size."""
MAX_DISPATCH = 100_000
MAX_DRAM = 10**18
"""The most cycles in which DRAM may be busy."""
MAX_GRIDS = 16
MAX_ROOM = 2**40
_MOST_SHOWN = 4

BlockPrograms: TypeAlias = tuple[tuple[Program, int], ...]
"""The programs of the warps of a block in the order of the launch, each with the number of warps that run it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The equal blocks of one launch.

    Args:
        block: the programs of the warps of a block. Its warps are numbered from 0 in this order. Equal programs that
            follow one another are put together.
        blocks: the number of blocks.
        takes: the amount of each resource of an SM that a resident block takes, in the order of `GpuInstance.room`.
    """

    block: BlockPrograms
    blocks: int
    takes: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        check_whole(self.blocks, "the number of blocks of a grid", MAX_BLOCKS)
        if not [Group(program, warps) for program, warps in self.block]:  # which refuses what is no group
            raise InputError("a block needs at least one warp")
        if any(isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= MAX_ROOM for one in self.takes):
            raise InputError(f"a block takes a whole number 0..{MAX_ROOM} of each resource, not {self.takes!r:.80}")
        object.__setattr__(self, "block", merge_neighbours(self.block))  # equal questions are equal values

    @property
    def warps(self) -> int:
        """Return the number of warps of a block."""
        return sum(warps for _, warps in self.block)


@dataclass(frozen=True, slots=True)
class GpuInstance:
    """Grids that are launched together on SMs that are all alike; docs/model.md, "The whole GPU", has the rules.

    Args:
        grids: the grids. All blocks are there from cycle 0 on, and may be dispatched in any order.
        machine: the machine of each SM. It has no queues if no lapses of any program are known, as in an `Instance`.
        sms: the number of SMs that take part.
        room: the amount of each resource that an SM has. For one grid with R resident blocks per SM it is `(R,)`, and
            each block takes `(1,)`.
        dispatch: the most cycles from when a block gets its room until its warps begin; the least is 0.
        dram: the most cycles in which DRAM may be busy. Latencies may stand still in them (docs/theory.md, 16).

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CLL"), 8),)
    >>> gpu = GpuInstance.of(block, 4096, Machine.of({"C": 1, "L": 1}), sms=46, resident=6)
    >>> gpu.resident, gpu.slots, gpu.is_one_wave
    (6, 276, False)

    Raises:
        InputError: nothing to do, a block that fits on no SM, or sizes past the limits.
    """

    grids: tuple[Grid, ...]
    machine: Machine
    sms: int
    room: tuple[int, ...]
    dispatch: int = 0
    dram: int = 0

    def __post_init__(self) -> None:
        check_whole(self.sms, "the number of SMs", MAX_SMS)
        if not 1 <= len(self.grids) <= MAX_GRIDS:
            raise InputError(f"a GPU executes 1..{MAX_GRIDS} grids here, not {len(self.grids)}")
        if isinstance(self.dispatch, bool) or not 0 <= self.dispatch <= MAX_DISPATCH:
            raise InputError(f"the cycles of dispatch must be 0..{MAX_DISPATCH}, not {self.dispatch!r:.40}")
        if isinstance(self.dram, bool) or not isinstance(self.dram, int) or not 0 <= self.dram <= MAX_DRAM:
            raise InputError(f"the cycles in which DRAM is busy must be 0..{MAX_DRAM}, not {self.dram!r:.40}")
        for room in self.room:
            check_whole(room, "what an SM has of a resource", MAX_ROOM)
        for grid in self.grids:
            if len(grid.takes) != len(self.room) or not any(grid.takes):
                raise InputError("a block takes something of an SM, and says of each resource how much")
            if any(one > room for one, room in zip(grid.takes, self.room, strict=True)):
                raise InputError(f"a block that takes {grid.takes} fits on no SM, which has {self.room}")
        # grids may share an SM, so the warps of all of them count together
        if sum(self.most_resident(grid) * grid.warps for grid in self.grids) > MAX_WARPS:
            raise InputError(f"more than {MAX_WARPS} warps could be resident on an SM")
        for grid in self.grids:
            resident(grid.block, self.most_resident(grid), self.machine)  # refuses what does not fit the machine
        programs = [program for grid in self.grids for program, _ in grid.block]
        object.__setattr__(self, "machine", drop_uncounted_queues(self.machine, programs))

    @classmethod
    def of(
        cls,
        block: Iterable[tuple[Program, int]],
        blocks: int,
        machine: Machine,
        *,
        sms: int,
        resident: int,
        dispatch: int = 0,
        dram: int = 0,
    ) -> "GpuInstance":
        """Return the instance of one grid, of which `resident` blocks fit on an SM."""
        return cls((Grid(tuple(block), blocks),), machine, sms, (resident,), dispatch, dram)

    def fitting(self, grid: Grid) -> int:
        """Return how many blocks of a grid fit on an SM without other grids, even if fewer are launched."""
        return min(room // takes for takes, room in zip(grid.takes, self.room, strict=True) if takes)

    def most_resident(self, grid: Grid) -> int:
        """Return how many blocks of a grid can be on one SM at the same time, if no other grid is there."""
        return min(grid.blocks, self.fitting(grid))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Return the assumptions under which the worst case is one of its source: those of an SM and of a GPU."""
        sms = (resident(grid.block, 1, self.machine) for grid in self.grids)
        # blocks come one by one, so the assumption that all start together is not made
        of_sms = (note for sm in sms for note in sm.assumed(start_together=False) if self._applies(note, sm))
        return tuple(dict.fromkeys([*map(assumptions.gpu, self._of_gpu()), *of_sms]))

    def _applies(self, note: Assumption, sm: Instance) -> bool:
        # the bound of an SM by itself counts queues where there are no barriers
        return note.kind is not AssumptionKind.QUEUES or sm.has_barriers or not self.has_lone_sms

    def _of_gpu(self) -> Iterator[str]:
        yield "all blocks are there in cycle 0, and nothing else is on these SMs"
        if len(self.grids) == 1:
            blocks, warps = count_words(self.fitting(self.grid), "block"), count_words(self.grid.warps, "warp")
            yield f"{blocks} of {warps} can be resident on an SM, no more and no less, as long as so many are left"
        yield (
            "the dispatcher is work-conserving: as long as blocks are left there is one that fits on no SM; which of"
            " them goes where is free"
        )
        begin = f"at most {cycle_words(self.dispatch)} after" if self.dispatch else "in the cycle in which"
        yield f"the warps of a block begin {begin} it gets its room, which it keeps until its last warp has finished"
        if self.dram:
            yield (
                f"SMs share the dispatcher, and DRAM, which is busy in at most {cycle_words(self.dram)}: in these a"
                " latency may stand still; what else they share is in the latencies"
            )
        else:
            yield "SMs share nothing but the dispatcher: what else they share, caches and memory, is in the latencies"
        if self.machine.partitions > 1 and len(self.grids) > 1:
            yield "blocks of several launches may have their warps in any partitions, spread evenly or not"
        elif self.machine.partitions > 1 and not self.is_one_wave:
            yield "a warp of a later block belongs to the partition of the warp whose place it takes"

    def __str__(self) -> str:
        """Return the blocks and the SMs on one line."""
        grids = " + ".join(f"{count_words(grid.blocks, 'block')} of {_block_words(grid)}" for grid in self.grids)
        return f"{grids} on {count_words(self.sms, 'SM')} of machine {self.machine}"

    def alone(self, number: int) -> "GpuInstance":
        """Return the same SMs with only one of the grids."""
        return self if len(self.grids) == 1 else replace(self, grids=(self.grids[number],))

    @property
    def width(self) -> int:
        """Return the number of warps of a slot: the most that a block of any grid has."""
        return max(grid.warps for grid in self.grids)

    @property
    def most_together(self) -> int:
        """Return how many blocks of all grids can be on one SM at the same time, at most.

        >>> from makespan import Machine, Program
        >>> block = ((Program.chain("CL"), 2),)
        >>> grids = Grid(block, 9, takes=(1, 40)), Grid(block, 9, takes=(1, 60))
        >>> gpu = GpuInstance(grids, Machine.of({"C": 1, "L": 1}), sms=2, room=(16, 100))
        >>> gpu.most_together, gpu.alone(1).most_together
        (2, 1)
        """
        most = sum(self.most_resident(grid) for grid in self.grids)
        # every block takes at least the least amount of a resource, whichever grid it comes from
        for number, room in enumerate(self.room):
            if least := min(grid.takes[number] for grid in self.grids):
                most = min(most, room // least)
        return most

    @property
    def blocks(self) -> int:
        """Return the number of blocks of all grids."""
        return sum(grid.blocks for grid in self.grids)

    @property
    def grid(self) -> Grid:
        """Return the only grid.

        Raises:
            ValueError: there are several.
        """
        (grid,) = self.grids
        return grid

    @property
    def resident(self) -> int:
        """Return how many blocks of the only grid can be on one SM at the same time."""
        return self.most_resident(self.grid)

    @property
    def slots(self) -> int:
        """Return how many blocks of the only grid can be on the GPU at the same time."""
        return self.sms * self.resident

    @property
    def is_one_wave(self) -> bool:
        """Return whether all blocks of the only grid have room from the beginning."""
        return len(self.grids) == 1 and self.blocks <= self.slots

    @property
    def has_lone_sms(self) -> bool:
        """Return whether every SM is a question of its own.

        It is if all blocks begin in cycle 0, and nothing that SMs share delays them.
        """
        # a delay of dispatch or a busy DRAM could differ from SM to SM
        return self.is_one_wave and not self.dispatch and not self.dram

    @property
    def has_lapses(self) -> bool:
        """Return whether schedulers may lapse, lines may be late, or instructions may wait in queues."""
        return any(resident(grid.block, 1, self.machine).has_lapses for grid in self.grids)

    @property
    def without_lapses(self) -> "GpuInstance":
        """Return the same grids on schedulers that never lapse, with all lines there, and without queues.

        Its schedules are schedules of this instance, so its lower bounds hold here. Its upper bounds may not.
        """
        if not self.has_lapses:
            return self
        grids = (
            replace(grid, block=tuple((program.lapsing(()), warps) for program, warps in grid.block))
            for grid in self.grids
        )
        return replace(self, grids=tuple(grids), machine=replace(self.machine, queues=()))

    def sm(self, blocks: int) -> Instance:
        """Return an SM with this number of blocks of the only grid, which start together."""
        return resident(self.grid.block, blocks, self.machine)

    def slots_of_warps(self, blocks: int) -> tuple[tuple[int, int], ...]:
        """Return, for every warp of `sm(blocks)` in its order, the number of its block and its number in the block.

        A block that gets the slot of one that has ended takes over the warp numbers of that block, one by one.

        >>> from makespan import Machine, Program
        >>> block = (Program.chain("CL"), 1), (Program.chain("C"), 1), (Program.chain("CL"), 1)
        >>> gpu = GpuInstance.of(block, 9, Machine.of({"C": 1, "L": 1}), sms=1, resident=2)
        >>> gpu.slots_of_warps(2)  # an instance lists its warps by program, then by block
        ((0, 0), (0, 2), (1, 0), (1, 2), (0, 1), (1, 1))
        """
        return tuple(divmod(number, self.grid.warps) for number in self.sm(blocks).number_of_warp())


def resident(block: BlockPrograms, blocks: int, machine: Machine) -> Instance:
    """Return the instance of this number of equal blocks, which start together on one SM of a machine."""
    return Instance.merged([(program, warps * blocks) for program, warps in block], machine, blocks=blocks)


def assuming(block: BlockPrograms, *told: Assumption) -> BlockPrograms:
    """Return the same block with more assumptions for its programs."""
    return tuple((program.assuming((*program.assumptions, *told)), warps) for program, warps in block)


def _block_words(grid: Grid) -> str:
    programs = merge_groups(grid.block)
    shown = [f"{warps} x {program}" for program, warps in programs[:_MOST_SHOWN]]
    if others := sum(warps for _, warps in programs[_MOST_SHOWN:]):
        shown.append(f"{others} x others")
    return " + ".join(shown)
