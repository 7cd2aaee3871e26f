"""What a launch asks of one SM: the instances whose worst cases bound the execution time of a kernel task.

Let the partition have S SMs, on each of which exactly B blocks of the launch fit at the same time, out of G. With G
<= S B no block needs to wait for room, so all of them start together, in one wave, and an SM has at least G - (S - 1)
B and at most min(B, G) of them. The slowest SM ends the kernel. More blocks can never be faster at worst as long as
every port is held for one cycle: take the worst schedule of k blocks and let the warps of one more block issue only
what the others leave. Ports and issue slots that the others use are theirs in every cycle as before, so their
schedule is unchanged, and in no cycle could one more instruction be issued. A warp that holds a port for longer can
delay another, which may be the better for it, and one more block may spread the warps over partitions in another way;
so on such a machine every number of blocks is a question of its own.
More blocks than S B are refused: some would start when others end, and no instance of one SM describes that.
"""

from math import prod

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import Machine, narrowed
from makespan.question import LaunchedKernel, launched, resident
from makespan.schedulability.description import KernelLaunch

MAX_QUESTIONS = 64


def instances(launch: KernelLaunch, sms: int) -> tuple[Instance, ...]:
    """What may run on one of `sms` SMs; the worst of these worst cases bounds the kernel.

    Raises:
        InputError: a kernel that cannot be read or made a program; a launch that lacks something, or has more blocks
            than can be resident at once.
    """
    found = launched(launch.question)
    machine = narrowed(launch.machine or found.default_machine, launch.holds)
    blocks = _blocks(found)
    (block,) = found.blocks(machine)
    most = _resident(launch, blocks, sms)
    fewest = max(1, blocks - (sms - 1) * most)
    least = most if _more_is_worse(machine) else fewest
    if most - least >= MAX_QUESTIONS:
        raise InputError(
            f"{most} blocks on an SM with partitions, or whose ports are held for longer than a cycle;"
            f" the limit is {MAX_QUESTIONS}"
        )
    return tuple(resident(block, count, machine) for count in range(least, most + 1))


def _more_is_worse(machine: Machine) -> bool:
    """Whether one more block can never make the others faster at worst."""
    held = (max((unit.interval, *(use.most for use in unit.uses))) for unit in machine.units)
    return machine.partitions == 1 and all(cycles == 1 for cycles in held)


def _blocks(kernel: LaunchedKernel) -> int:
    """How many blocks the grid has."""
    if kernel.launch.grid is not None:
        return prod(kernel.launch.grid)
    if kernel.launch.block is not None or kernel.question.warps is None:
        raise InputError("the number of blocks is not known: give grid, such as grid = 1 (or warps = N for one block)")
    return 1


def _resident(launch: KernelLaunch, blocks: int, sms: int) -> int:
    """How many blocks of the launch can be on one SM: no more than fit, and no more than there are."""
    most = launch.question.blocks_per_sm
    if most is None:
        if blocks > 1:
            raise InputError(
                f"the grid has {blocks} blocks: give blocks_per_sm, how many of them fit on one SM at the same time"
                " (not more: a number that is too large makes the bound void)"
            )
        most = 1
    if blocks > sms * most:
        raise InputError(
            f"the grid has {blocks} blocks, and {sms} x {most} are resident at once: those that wait for room are not"
            " covered; raise sms of the partition or blocks_per_sm if the GPU has them, or launch fewer blocks that"
            " loop over the data"
        )
    return min(most, blocks)
