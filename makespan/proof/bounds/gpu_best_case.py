"""A lower bound on the shortest schedule of a whole GPU, in time that does not depend on the number of blocks."""

from dataclasses import replace

from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import WarpAssignment
from makespan.proof.bounds import best_case


def least_possible(gpu: GpuInstance) -> int:
    """Cycles that every schedule takes, whatever the dispatcher and the schedulers do.

    A block has its room for as long as it takes alone at least: so some slot, or what there is of a resource on all
    SMs, is taken for that long by all blocks that share it. And the work of all blocks keeps ports busy, those of all
    SMs, or of one with as many blocks of a grid as some SM must have.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CCLL"), 2),)
    >>> least_possible(GpuInstance.of(block, 10**9, Machine.of({"C": 1, "L": 1}), sms=10, resident=4))
    400000000

    Raises:
        UnsupportedError: there are delays as places.
    """
    machine = replace(gpu.machine, assignment=WarpAssignment.ANY)  # of the warps of a later block
    found, taken = list[int](), [0] * len(gpu.room)
    for grid in gpu.grids:
        alone = best_case.least_possible(Instance.merged(grid.block, machine))
        found.append(-(-grid.blocks // (gpu.sms * gpu.most_resident(grid))) * alone)
        taken = [cycles + grid.blocks * own * alone for cycles, own in zip(taken, grid.takes, strict=True)]
        busiest = -(-grid.blocks // gpu.sms)
        found += best_case.busy(machine, [(program, busiest * count) for program, count in grid.block])
    found += (-(-cycles // (gpu.sms * room)) for cycles, room in zip(taken, gpu.room, strict=True))
    everybody = [(program, grid.blocks * count) for grid in gpu.grids for program, count in grid.block]
    return max((*found, *best_case.busy(machine, everybody, sms=gpu.sms)))
