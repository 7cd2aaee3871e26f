"""A lower bound on the shortest schedule of a whole GPU, in time that does not depend on the number of blocks."""

from makespan.bounds import best_case
from makespan.gpu import GpuInstance
from makespan.instance import Instance


def least_possible(gpu: GpuInstance) -> int:
    """Cycles that every schedule takes, whatever the dispatcher and the schedulers do.

    A block has its room for as long as it takes alone at least: so some slot, or what there is of a resource on all
    SMs, is taken for that long by all blocks that share it. And the work of all blocks keeps ports busy, those of all
    SMs, or of one with as many blocks as some SM must have.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CCLL"), 2),)
    >>> least_possible(GpuInstance.of(block, 10**9, Machine.of({"C": 1, "L": 1}), sms=10, resident=4))
    400000000

    Raises:
        UnsupportedError: there are delays as places.
    """
    machine, found = gpu.machine, [0]
    alone = []
    for grid in gpu.grids:
        block = Instance.merged(grid.block, machine)
        block.require(best_case.KNOWS, "the least possible")
        alone.append(best_case.longest_warp(block))
    for number, room in enumerate(gpu.room):
        taken = sum(grid.blocks * grid.takes[number] * cycles for grid, cycles in zip(gpu.grids, alone, strict=True))
        found.append(-(-taken // (gpu.sms * room)))
    warps = [(program, grid.blocks * count) for grid in gpu.grids for program, count in grid.block]

    def fullest(work: list[int]) -> int:
        """Some partition of some SM has the average at least."""
        total = sum(count * own for (_, count), own in zip(warps, work, strict=True))
        return -(-total // (gpu.sms * machine.partitions))

    found += best_case.busy(machine, warps, fullest, gpu.sms)
    found += alone
    if len(gpu.grids) == 1:
        found.append(-(-gpu.blocks // gpu.slots) * alone[0])
        most = -(-gpu.blocks // gpu.sms)
        found += best_case.busy(machine, [(program, most * count) for program, count in gpu.grid.block], lambda _: 0)
    return max(found)
