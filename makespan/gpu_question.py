"""The launch of a kernel on a whole GPU, or on some of its SMs: from a question about a kernel to a `GpuInstance`."""

from dataclasses import replace
from math import prod

from makespan import ptx
from makespan.errors import InputError
from makespan.gpu import GpuInstance
from makespan.kernel_file import Naming
from makespan.machine import Machine, compatible, gpus
from makespan.machine.gpus import Gpu
from makespan.machine.occupancy import Occupancy, occupancy
from makespan.question import Kernel, KernelQuestion, LaunchedKernel, launched


def gpu_instance(
    question: KernelQuestion,
    gpu: str | Gpu | None = None,
    *,
    sms: int | None = None,
    machine: Machine | None = None,
) -> GpuInstance:
    """All blocks of the grid of a launch on a GPU, as `solve_gpu` takes them.

    Args:
        gpu: a shipped one by its name, a GPU file, or what was read; None where only the number of SMs is known.
        sms: how many take part; None for all of them.
        machine: see `of_kernel`.

    Raises:
        InputError: no such GPU, nobody says how many SMs there are, or see `of_kernel`.

    >>> from pathlib import Path
    >>> from makespan import KernelQuestion, Launch
    >>> launch = Launch(block=(256, 1, 1), grid=(4096, 1, 1))
    >>> vecadd = KernelQuestion(Path("ptx/vecadd.ptx"), launch=launch, blocks_per_sm=6)
    >>> print(gpu_instance(vecadd, sms=46))
    4096 blocks of 8 x automaton of 21 places on 46 SMs of machine paper (C=1, L=1)
    """
    card = gpus.find(gpu) if isinstance(gpu, str) else gpu
    if card is not None:
        return of_kernel(launched(question), machine, sms=card.count_sms(None if sms is None else str(sms)), card=card)
    if sms is None:
        raise InputError("a whole GPU has how many SMs? give gpu, such as 'rtx-3070', or sms")
    return of_kernel(launched(question), machine, sms=sms)


def of_kernel(
    kernel: LaunchedKernel, machine: Machine | None = None, *, sms: int, card: Gpu | None = None
) -> GpuInstance:
    """All blocks of the grid of a launch, on so many SMs.

    Args:
        machine: each SM; None for that of `card`, or without one for `LaunchedKernel.default_machine`.
        card: the GPU, of which all SMs that do not take part count as active, too; None where nobody says which, and
            then an SM holds what those of the architecture of the code do.

    Raises:
        InputError: no grid, several numbers of warps, code that does not run on the GPU, or a number of resident blocks
            that is not known or cannot be; or see `question.instances`.
    """
    asked, grid = kernel.question, kernel.launch.grid
    if grid is None:
        raise InputError(f"{asked.named('grid')} is missing: how many blocks are launched?")
    if card is not None:
        _check_code(kernel.kernel, card)
    blocks, others = prod(grid), 0 if card is None else card.whole("sms") - sms
    active = min(sms, blocks) + others  # whatever is at work on the others
    given = {name: latency.for_sms(active) for name, latency in asked.latencies.items()}
    known = LaunchedKernel(replace(asked, latencies=given), kernel.module, kernel.kernel)
    chosen = machine or (known.default_machine if card is None else card.machine)
    each = known.blocks(chosen)
    if len(each) != 1:
        raise InputError(f"{asked.named('warps')}: of a GPU one launch is asked for, and this means {len(each)}")
    resident, told = _resident(known, sum(warps for _, warps in each[0]), card)
    block = tuple((program.assuming((*program.assumptions, *told)), warps) for program, warps in each[0])
    return GpuInstance.of(block, blocks, chosen, sms=sms, resident=resident, dispatch=dispatch_cycles(card))


def dispatch_cycles(card: Gpu | None) -> int:
    """From when a block gets its room until its warps begin, at most; where nobody knows it that counts as none."""
    return 0 if card is None or card.missing("dispatch_cycles") else card.whole("dispatch_cycles")


def given_resident(asked: int | None, warps: int, card: Gpu | None, named: Naming) -> int:
    """The blocks that are said to be resident on an SM, each of so many warps, where nobody knows better.

    Raises:
        InputError: none are said, or more than an SM of the GPU holds whatever the kernel.
    """
    if asked is None:
        raise InputError(
            f"{named('blocks_per_sm')} is missing: how many blocks are resident on an SM at once? (machine code"
            f" tells: a .cubin, or {named('arch')} sm_NN)"
        )
    if card is not None:
        _check(asked, occupancy(card.limits, warps_per_block=warps), named)
    return asked


def _check_code(kernel: Kernel, card: Gpu) -> None:
    if isinstance(kernel, ptx.Kernel) or card.sm is None or compatible(kernel.sm, card.sm):
        return
    raise InputError(
        f"{kernel.source}: GPU {card.name}, of sm_{card.sm}, does not execute machine code for sm_{kernel.sm}"
    )


def _resident(kernel: LaunchedKernel, warps: int, card: Gpu | None) -> tuple[int, tuple[str, ...]]:
    """How many blocks are resident on an SM, and why."""
    asked, named = kernel.question.blocks_per_sm, kernel.question.named
    if isinstance(kernel.kernel, ptx.Kernel):
        return given_resident(asked, warps, card, named), ()
    room = kernel.residency(warps, None if card is None else card.limits)
    if asked is None and (unknown := (*room.unknown, *room.unrounded)):
        raise InputError(
            f"{kernel.kernel.source}: what limits the resident blocks is not known of this GPU ({', '.join(unknown)}):"
            f" say {named('blocks_per_sm')}"
        )
    _check(asked or room.blocks_per_sm, room, named)
    return asked or room.blocks_per_sm, (str(room),)


def _check(asked: int, room: Occupancy, named: Naming) -> None:
    if asked > room.blocks_per_sm:
        raise InputError(f"{named('blocks_per_sm')} {asked}: only {room}")
