"""Launches of kernels on a whole GPU, of one or of several that share it: from questions to a `GpuInstance`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from types import MappingProxyType

from makespan.host.errors import InputError, MissingInput, prefix_errors
from makespan.kernels import ptx, sass
from makespan.kernels.dram import LaunchedBlocks, dram_service
from makespan.kernels.launch_file import read_launches
from makespan.kernels.question import Kernel, KernelQuestion, LaunchedKernel, launch_kernel
from makespan.kernels.residency import RESIDENT, given_shares
from makespan.model import assumptions
from makespan.model.gpu import BlockPrograms, GpuInstance, Grid, assuming
from makespan.model.machine import (
    OPERANDS,
    GivenRange,
    Machine,
    gpus,
    is_compatible,
    machines_for,
    narrow_intervals,
)
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import ResourceShare, SmLimits
from makespan.model.program import Program

GRID = MissingInput("grid", "N", "the blocks of the grid")


def gpu_instance(
    question: KernelQuestion,
    gpu: str | Gpu | None = None,
    *,
    sms: int | None = None,
    machine: Machine | None = None,
    holds: Mapping[str, GivenRange] = MappingProxyType({}),
) -> GpuInstance:
    """Return all blocks of the grid of a launch on a GPU, as `solve_gpu` takes them.

    Args:
        gpu: a shipped one by its name, a GPU file, or what was read; None where only the number of SMs is known.
        sms: how many take part; None for all of them.
        machine: see `of_kernel`.
        holds: for how many cycles ports of resources are held, where the machine has a wider range.

    Raises:
        InputError: no such GPU, the number of SMs is missing, or see `of_kernel`.

    >>> from pathlib import Path
    >>> from makespan import KernelQuestion, Launch
    >>> launch = Launch(block=256, grid=4096)
    >>> vecadd = KernelQuestion(Path("ptx/vecadd.ptx"), launch=launch, blocks_per_sm=6)
    >>> print(gpu_instance(vecadd, sms=46))
    4096 blocks of 8 x automaton of 21 places on 46 SMs of machine paper (C=1, L=1)
    """
    card = gpus.find_gpu(gpu) if isinstance(gpu, str) else gpu
    if card is not None:
        sms = card.count_sms(None if sms is None else str(sms))
    elif sms is None:
        raise InputError("a whole GPU has how many SMs? give gpu, such as 'rtx-3070', or sms")
    kernel = launch_kernel(question, machine, card)
    chosen = machine or (kernel.default_machine if card is None else card.machine)
    return as_given(of_kernel(kernel, narrow_intervals(chosen, holds), sms=sms, card=card), machine, card)


def of_kernel(
    kernel: LaunchedKernel, machine: Machine | None = None, *, sms: int, card: Gpu | None = None
) -> GpuInstance:
    """Return all blocks of the grid of a launch, on `sms` SMs.

    Args:
        machine: each SM; None for that of `card`, or without one for `LaunchedKernel.default_machine`.
        card: the GPU; its SMs that do not take part count as active, too. None means that it is not known, and
            then an SM holds what those of the architecture of the code do.

    Raises:
        MissingInputsError: the grid or the number of resident blocks is missing; or see `question.instances`.
        InputError: several numbers of warps, code that does not run on the GPU, or a number of resident blocks that is
            not known or cannot be; or see `question.instances`.
    """
    blocks = _blocks(kernel, card)
    # The order counts: first the latencies for the SMs at work, then without the cycles of DRAM, added below.
    working = at_work(kernel, sms, blocks, card)
    known = _beside_dram(working, sms, card)
    chosen = machine or (known.default_machine if card is None else card.machine)
    room, limits = known.residency, None if card is None else card.limits
    block_warps = known.launch.warps_per_block or max(known.question.counts or (0,))
    block = _block(known, chosen, room.missing_on_gpu(block_warps, limits))
    resident, told = room.on_gpu(sum(warps for _, warps in block), blocks, limits)
    share = {RESIDENT.field: ResourceShare(1, resident, RESIDENT.what)}
    return _on_gpu([LaunchedBlocks(block, blocks, working.question.latencies, share, told)], chosen, sms, card)


def as_given(gpu: GpuInstance, machine: Machine | None, card: Gpu | None) -> GpuInstance:
    """Return the instance, which assumes that SMs of the GPU are the given machine unless a shipped one says so."""
    if machine is None or card is None:
        return gpu
    if card.sm is not None and any(machine.is_alike(shipped) for shipped in machines_for(card.sm)):
        return gpu
    told = assumptions.gpu(
        f"an SM of GPU {card.name} is machine {machine.name!r}, which was given: none that comes with the package for"
        f" compute capability {card.compute_capability or '(not known)'}"
    )
    return replace(gpu, grids=tuple(replace(grid, block=assuming(grid.block, told)) for grid in gpu.grids))


@dataclass(frozen=True, slots=True)
class SharedLaunch:
    """One of several launches.

    Args:
        takes: what a block takes of each resource of an SM; empty where machine code tells.
    """

    name: str
    kernel: LaunchedKernel
    takes: Mapping[str, int]


def shared_gpu(
    path: Path, machine: Machine | None, card: Gpu | None, *, sms: int, holds: Mapping[str, GivenRange]
) -> GpuInstance:
    """Return all blocks of the launches that a file describes, on `sms` SMs.

    Args:
        path: see `read_launches`.
        machine: each SM; None for that of `card`, or without one for the one that all kernels are for by default.
        card: see `of_kernel`.
        sms: how many take part.
        holds: for how long ports are held, see `narrow_intervals`.

    Raises:
        InputError: kernels for different machines where none is named; or see `read_launches` and `of_kernels`.
    """
    asked = read_launches(path)
    with prefix_errors(str(path)):
        # Kernels are read after all tables are checked: a compiler may take long.
        launches = [
            SharedLaunch(own.name, launch_kernel(own.question, machine, card), own.takes) for own in asked.launches
        ]
        # All launches share the SMs, so there is one machine: that which is named, or the only default.
        defaults = () if machine or card else dict.fromkeys(launch.kernel.default_machine for launch in launches)
        if len(defaults) > 1:
            raise InputError("the launches are for different machines: say which one with --machine or --gpu")
        chosen = narrow_intervals(machine or (card.machine if card else next(iter(defaults))), holds)
        gpu = of_kernels(launches, chosen, sms=sms, card=card, room=asked.room)
    return as_given(gpu, machine, card)


def of_kernels(
    launches: Sequence[SharedLaunch],
    machine: Machine,
    *,
    sms: int,
    card: Gpu | None = None,
    room: Mapping[str, int] | None = None,
) -> GpuInstance:
    """Return all blocks of several launches, which are there together, on `sms` SMs.

    Args:
        card: as of `of_kernel`.
        room: what an SM has of each resource; None for what one of `card`, or of the architecture of machine code, has.

    Raises:
        InputError: as of `of_kernel`, with the name of the launch; or what blocks take of an SM is not known.
    """
    counts, parts = [], []
    for launch in launches:
        with prefix_errors(f"launch {launch.name}"):
            counts.append(_blocks(launch.kernel, card))
    for launch, count in zip(launches, counts, strict=True):
        with prefix_errors(f"launch {launch.name}"):
            working = at_work(launch.kernel, sms, sum(counts), card)
            known = _beside_dram(working, sms, card)
            beside = _leave_caches(machine, [other.kernel for other in launches if other is not launch])
            block = _block(known, beside, known.residency.missing_shared if room is None else ())
            block = tuple((_own_lines(program, launch.name), warps) for program, warps in block)
            shares = _shares(launch, sum(warps for _, warps in block), card, room)
            parts.append(LaunchedBlocks(block, count, working.question.latencies, shares))
    if room is None:
        _check_registers(launches, [part.shares for part in parts], card)
    # The verdict names room that a user gives; that of machine code follows from rules of occupancy.
    tell = assumptions.residency if room is None else assumptions.given_room
    told = []
    for launch, part in zip(launches, parts, strict=True):
        taken = ", ".join(f"{one.takes} of {one.room} {one.unit}" for one in part.shares.values() if one.takes)
        said = f"a block of {launch.name} takes {taken} of an SM, which has room for it as long as so much is left"
        told.append(part._replace(told=(tell(said),)))
    return _on_gpu(told, machine, sms, card)


def _leave_caches(machine: Machine, others: Sequence[LaunchedKernel]) -> Machine:
    """Return the machine with the room in caches of code and constants that other kernels on its SMs leave."""
    if machine.lapses is None or not others:
        return machine
    known, flows = machine.lapses, [other.flow for other in others]
    lines = [sass.KernelLines(flow, known) if isinstance(flow, sass.SassFlow) else None for flow in flows]
    return replace(machine, lapses=sass.leave_room(known, lines))


def _own_lines(program: Program, launch: str) -> Program:
    """Return the program with lines of its launch alone: each launch has parameters, and may have code, of its own."""
    return program.lapsing(tuple(lapses.owned_by(launch) for lapses in program.lapses))


def _on_gpu(parts: Sequence[LaunchedBlocks], machine: Machine, sms: int, card: Gpu | None) -> GpuInstance:
    """Return launches that are on a GPU together, with what DRAM does to them."""
    # Resources that limit any of the launches; a launch that takes nothing of one still has an entry there.
    has = {name: share.room for part in parts for name, share in part.shares.items()}
    # No more blocks of a launch are resident at once, whatever room the other launches leave.
    fit = [min(share.room // share.takes for share in part.shares.values() if share.takes) for part in parts]
    at_once = [min(part.launched, sms * most) for part, most in zip(parts, fit, strict=True)]
    # DRAM is shared by all launches: its cycles are counted for all together, and added once.
    served = dram_service(parts, at_once, card)
    grids = []
    for part, doubts in zip(parts, served.doubts, strict=True):
        takes = tuple(part.shares[name].takes if name in part.shares else 0 for name in has)
        grids.append(Grid(assuming(part.block, *part.told, *served.told, *doubts), part.launched, takes))
    expiring = _expiring(machine, [part.latencies for part in parts], served.busy)
    return GpuInstance(tuple(grids), expiring, sms, tuple(has.values()), dispatch_cycles(card), served.busy)


def _expiring(machine: Machine, given: Sequence[Mapping[str, GivenRange]], busy: int) -> Machine:
    """Return the machine whose lapses may come as long after the end of a warp as its operands may be read.

    Args:
        machine: each SM.
        given: the latencies that the user gives for each launch, with the SMs that are active.
        busy: the cycles in which DRAM may be busy, which are no part of a latency with +dram.
    """
    if machine.lapses is None:
        return machine
    own = {operation.name: operation.most or 0 for operation in machine.operations}
    read = [latencies.get(OPERANDS) for latencies in given]
    latest = (own.get(OPERANDS, 0) if one is None else one.most + busy * (one.dram is not None) for one in read)
    # a file that says less than its user, or than its own operation, would free the end of a launch of these lapses
    return replace(machine, lapses=replace(machine.lapses, expiry=max(machine.lapses.expiry, *latest)))


def _shares(
    launch: SharedLaunch, warps: int, card: Gpu | None, room: Mapping[str, int] | None
) -> dict[str, ResourceShare]:
    """Return the share that a block takes of each resource of an SM."""
    limits = None if card is None else card.limits
    if room is None:
        return launch.kernel.residency.shares(warps, limits)
    return given_shares(launch.takes, room, warps, limits)


def _check_registers(
    launches: Sequence[SharedLaunch], shares: Sequence[dict[str, ResourceShare]], card: Gpu | None
) -> None:
    """Leave out registers that never limit; refuse those of launches whose warps have different numbers of them.

    Registers lie in several files, and a warp has all of its in one. So where warps have different numbers, what is
    free in all files together does not tell whether one more fits. If even of the warps with the most a file holds as
    many as there can be, it always does.
    """
    held = [own["registers"] for own in shares if "registers" in own]
    if len({(share.room, share.unit) for share in held}) <= 1:
        return
    most = [
        (card.limits if card is not None else SmLimits.of_sm(launch.kernel.kernel.sm)).warps
        for launch in launches
        if isinstance(launch.kernel.kernel, sass.SassKernel)
    ]
    if any(warps is None or share.room < warps for warps in most for share in held):
        told = "; ".join(
            f"{launch.name}: {own['registers'].unit}"
            for launch, own in zip(launches, shares, strict=True)
            if "registers" in own
        )
        raise InputError(
            f"whether a block still fits beside others of different registers is not known ({told}): compile all with"
            " the same -maxrregcount, or say room and takes"
        )
    # Every file of registers holds as many warps as there can be: registers limit nothing.
    for own in shares:
        own.pop("registers", None)


def _blocks(kernel: LaunchedKernel, card: Gpu | None) -> int:
    """Return how many blocks are launched; 0 means that the grid is not given."""
    if card is not None:
        _check_code(kernel.kernel, card)
    return 0 if kernel.launch.grid is None else prod(kernel.launch.grid)


def at_work(kernel: LaunchedKernel, sms: int, blocks: int, card: Gpu | None) -> LaunchedKernel:
    """Return the kernel with the latencies that hold while its blocks and all other SMs of `card` are at work.

    Args:
        blocks: 0 means that their number is not known; they may be at work on all SMs then.

    Raises:
        InputError: the latency of an operation is not known then.
    """
    # A latency grows with the active SMs: those of `card` that do not take part may be at work for others.
    active = min(sms, blocks or sms) + (0 if card is None else card.whole("sms") - sms)
    given = {}
    for name, latency in kernel.question.latencies.items():
        with prefix_errors(f"operation {name}"):
            given[name] = latency.for_sms(active)
    return LaunchedKernel(replace(kernel.question, latencies=given), kernel.module, kernel.kernel)


def _beside_dram(kernel: LaunchedKernel, sms: int, card: Gpu | None) -> LaunchedKernel:
    """Return the kernel with latencies without the cycles in which DRAM is busy; `dram_service` counts these.

    Raises:
        InputError: it is not known what DRAM moves, or what else uses it.
    """
    given = kernel.question.latencies
    for name, latency in given.items():
        if latency.dram is None:
            continue
        says = f"latency of {name}: {latency} depends on {latency.depends_on}"
        if card is None:
            raise InputError(f"{says}; say on which GPU, with {kernel.question.named('gpu')}")
        # Cycles of DRAM are counted once for the whole GPU, so all that uses it must be in this question.
        if sms < (every := card.whole("sms")):
            raise InputError(
                f"{says}, and nobody says what the other {every - sms} SMs of {card.name} ask of it; ask about all"
                f" {every} SMs, or give {name}=..N"
            )
    beside = {name: latency.beside_dram() for name, latency in given.items()}
    return LaunchedKernel(replace(kernel.question, latencies=beside), kernel.module, kernel.kernel)


def _block(kernel: LaunchedKernel, machine: Machine, missing: Sequence[MissingInput]) -> BlockPrograms:
    """Return the warps of a block; `missing` is what else is missing for the question."""
    # All missing inputs are asked for in one message: those of the grid go along with those of a block.
    grid = (GRID,) if kernel.launch.grid is None else ()
    each = kernel.blocks(machine, (*grid, *missing))
    if len(each) != 1:
        raise InputError(
            f"{kernel.question.named('warps')}: of a GPU one launch is asked for, and this means {len(each)}"
        )
    return each[0]


def dispatch_cycles(card: Gpu | None) -> int:
    """Return the most cycles from when a block gets its room until its warps begin; 0 where the GPU does not say it."""
    return 0 if card is None or card.missing("dispatch_cycles") else card.whole("dispatch_cycles")


def _check_code(kernel: Kernel, card: Gpu) -> None:
    if isinstance(kernel, ptx.PtxKernel) or card.sm is None or is_compatible(kernel.sm, card.sm):
        return
    raise InputError(
        f"{kernel.source}: GPU {card.name}, of sm_{card.sm}, does not execute machine code for sm_{kernel.sm}"
    )
