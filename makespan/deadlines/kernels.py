"""What a launch asks of the SMs of a partition: a `GpuInstance`, and the questions about one SM where that is enough.

Let the partition have S SMs, on each of which exactly R blocks of the launch fit at the same time, out of B. With B
<= S R no block needs to wait for room. Where they begin at once, too, all of them start together, in one wave, and an
SM has at least B - (S - 1) R and at most min(R, B) of them. The slowest SM ends the kernel. More blocks can never be
faster at worst as long as every port is held for one cycle: take the worst schedule of k blocks and let the warps of
one more block issue only what the others leave. Ports and issue slots that the others use are theirs in every cycle as
before, so their schedule is unchanged, and in no cycle could one more instruction be issued. A warp that holds a port
for longer can delay another, which may be the better for it, and one more block may spread the warps over partitions
in another way; so on such a machine every number of blocks is a question of its own.
With more blocks than S R some start when others end, and only theorem G speaks of them.
"""

from dataclasses import replace
from math import prod

from makespan.deadlines.description import KernelLaunch
from makespan.host.errors import InputError
from makespan.kernels.gpu_question import as_given, dispatch_cycles, of_kernel
from makespan.kernels.question import LaunchedKernel, launched
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import Machine, narrow_intervals
from makespan.model.machine.gpus import Gpu

MAX_QUESTIONS = 64


def on_sms(launch: KernelLaunch, sms: int, card: Gpu | None = None) -> GpuInstance:
    """Return all blocks of a launch on a partition of so many SMs.

    Args:
        card: the GPU that they belong to. All its other SMs count as at work, whatever runs there, where a latency
            grows with the number of active SMs.

    Raises:
        InputError: a kernel that cannot be read or made a program; a launch that lacks something, more resident blocks
            than an SM holds, or a latency that grows where nobody says on which GPU.
    """
    question = launch.question
    growing = [(name, latency) for name, latency in question.latencies.items() if latency.depends_on]
    if growing and card is None:
        name, latency = growing[0]
        raise InputError(
            f"latency of {name}: {latency} depends on {latency.depends_on}: say on which GPU, with"
            ' gpu = "NAME" at the top (--gpu for CSV)'
        )
    found = launched(question, launch.machine, card)
    chosen = launch.machine or (found.default_machine if card is None else card.machine)
    machine = narrow_intervals(chosen, launch.holds)
    if found.launch.grid is None:
        return as_given(_one_block(found, machine, sms, card), launch.machine, card)
    if prod(found.launch.grid) == 1 and question.blocks_per_sm is None:
        found = LaunchedKernel(replace(found.question, blocks_per_sm=1), found.module, found.kernel)
    return as_given(of_kernel(found, machine, sms=sms, card=card), launch.machine, card)


def _one_block(kernel: LaunchedKernel, machine: Machine, sms: int, card: Gpu | None) -> GpuInstance:
    """Of a number of warps alone."""
    if kernel.launch.block is not None or kernel.question.warps is None:
        raise InputError("the number of blocks is not known: give grid, such as grid = 1 (or warps = N for one block)")
    (block,) = kernel.blocks(machine)
    return GpuInstance.of(block, 1, machine, sms=sms, resident=1, dispatch=dispatch_cycles(card))


def on_one_sm(gpu: GpuInstance) -> tuple[Instance, ...]:
    """What may run on one of the SMs, if all blocks start together; the worst of these worst cases is that of the GPU.

    Raises:
        InputError: there are too many questions.
    """
    most = gpu.resident
    least = most if _more_is_worse(gpu.machine) else max(1, gpu.blocks - (gpu.sms - 1) * most)
    if most - least >= MAX_QUESTIONS:
        raise InputError(
            f"{most} blocks on an SM with partitions, or whose ports are held for longer than a cycle;"
            f" the limit is {MAX_QUESTIONS}"
        )
    return tuple(gpu.sm(count) for count in range(least, most + 1))


def _more_is_worse(machine: Machine) -> bool:
    """Return whether one more block can never make the others faster at worst."""
    held = (max((unit.interval, *(use.most for use in unit.uses))) for unit in machine.units)
    return machine.partitions == 1 and all(cycles == 1 for cycles in held)
