"""Launches of kernels on a whole GPU, of one or of several that share it: from questions to a `GpuInstance`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from makespan.host.errors import InputError, MissingInput, MissingInputsError, Naming
from makespan.kernels import dram, ptx, sass
from makespan.kernels.question import (
    Kernel,
    KernelQuestion,
    LaunchedKernel,
    check_resident,
    launch_kernel,
    residency_notes,
)
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.gpu import BlockPrograms, GpuInstance, Grid, assuming
from makespan.model.machine import GivenRange, Machine, gpus, is_compatible, machines_for, narrow_intervals
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import Occupancy, ResourceShare, SmLimits, occupancy

GRID = MissingInput("grid", "N", "the blocks of the grid")
RESIDENT = MissingInput("blocks_per_sm", "N", "the blocks that are resident on an SM at once")


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
    known = _beside_dram(at_work(kernel, sms, blocks, card), sms, card)
    chosen = machine or (known.default_machine if card is None else card.machine)
    block = _block(known, chosen, (*_missing_resident(known, card), *known.missing_shared))
    resident, told = _resident(known, sum(warps for _, warps in block), blocks, card)
    (doubts,), busy, served = _dram_service([kernel], [block], [blocks], [min(blocks, sms * resident)], card)
    return GpuInstance.of(
        assuming(block, *told, *served, *doubts),
        blocks,
        chosen,
        sms=sms,
        resident=resident,
        dispatch=dispatch_cycles(card),
        dram=busy,
    )


def as_given(gpu: GpuInstance, machine: Machine | None, card: Gpu | None) -> GpuInstance:
    """Return the instance, which assumes that SMs of the GPU are the given machine unless a shipped one says so."""
    if machine is None or card is None or (card.sm is not None and machine in machines_for(card.sm)):
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
    counts, blocks, shares = [], [], []
    for launch in launches:
        with _telling(launch.name):
            counts.append(_blocks(launch.kernel, card))
    for launch in launches:
        with _telling(launch.name):
            known = _beside_dram(at_work(launch.kernel, sms, sum(counts), card), sms, card)
            blocks.append(_block(known, machine, known.missing_shared if room is None else ()))
            shares.append(_shares(launch, sum(warps for _, warps in blocks[-1]), card, room))
    if room is None:
        _check_registers(launches, shares, card)
    # Resources that limit any of the launches; a launch that takes nothing of one still has an entry there.
    has = {name: share.room for own in shares for name, share in own.items()}
    # No more blocks of a launch are resident at once, whatever room the other launches leave.
    fit = [min(share.room // share.takes for share in own.values() if share.takes) for own in shares]
    at_once = [min(count, sms * most) for count, most in zip(counts, fit, strict=True)]
    # DRAM is shared by all launches: its cycles are counted for all together, and added once.
    doubts, busy, served = _dram_service([launch.kernel for launch in launches], blocks, counts, at_once, card)
    grids = []
    for launch, count, block, own, doubt in zip(launches, counts, blocks, shares, doubts, strict=True):
        taken = ", ".join(f"{share.takes} of {share.room} {share.unit}" for share in own.values() if share.takes)
        said = f"a block of {launch.name} takes {taken} of an SM, which has room for it as long as so much is left"
        # The verdict names room that a user gives; that of machine code follows from rules of occupancy.
        told = assumptions.residency(said) if room is None else assumptions.given_room(said)
        takes = tuple(own[name].takes if name in own else 0 for name in has)
        grids.append(Grid(assuming(block, told, *served, *doubt), count, takes))
    return GpuInstance(tuple(grids), machine, sms, tuple(has.values()), dispatch_cycles(card), busy)


@contextmanager
def _telling(name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise type(error)(f"launch {name}: {error}") from None


def _shares(
    launch: SharedLaunch, warps: int, card: Gpu | None, room: Mapping[str, int] | None
) -> dict[str, ResourceShare]:
    """Return the share that a block takes of each resource of an SM."""
    kernel, source = launch.kernel, launch.kernel.kernel.source
    if room is not None:
        if launch.takes.keys() != room.keys():
            raise InputError(f"takes says what a block takes of each resource of room: {', '.join(room)}")
        found = {name: ResourceShare(launch.takes[name], most, name) for name, most in room.items()}
        fit = min((share.room // share.takes for share in found.values() if share.takes), default=0)
        # Room may be less than a GPU has, never more: a bound for too many blocks says nothing of it.
        if card is not None and fit > (whole := occupancy(card.limits, warps_per_block=warps)).blocks_per_sm:
            raise InputError(f"room and takes let {fit} blocks be resident: only {whole}")
        return found
    if isinstance(kernel.kernel, ptx.PtxKernel):
        raise InputError(
            f"{source}: what a block of PTX takes of an SM is not known: say room and takes (machine code tells: a"
            " .cubin, or arch sm_NN)"
        )
    held = kernel.residency(warps, None if card is None else card.limits)
    _check_known(held, source, "room and takes")
    return dict(held.shares)


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
        try:
            given[name] = latency.for_sms(active)
        except InputError as error:
            raise InputError(f"operation {name}: {error}") from None
    return LaunchedKernel(replace(kernel.question, latencies=given), kernel.module, kernel.kernel)


def _beside_dram(kernel: LaunchedKernel, sms: int, card: Gpu | None) -> LaunchedKernel:
    """Return the kernel with latencies without the cycles in which DRAM is busy; `_dram_service` counts these.

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


def _dram_service(
    kernels: Sequence[LaunchedKernel],
    blocks: Sequence[BlockPrograms],
    counts: Sequence[int],
    at_once: Sequence[int],
    card: Gpu | None,
) -> tuple[list[tuple[Assumption, ...]], int, tuple[Assumption, ...]]:
    """Return doubts about the latencies of each launch, for how long DRAM is busy with all, and what that assumes.

    Args:
        kernels: as they were asked about.
        at_once: blocks of each that can be on the GPU at the same time.
    """
    if card is None:
        return [() for _ in kernels], 0, ()
    given = [kernel.question.latencies for kernel in kernels]
    touched = sum(dram.load_bytes_at_once(block, most) for block, most in zip(blocks, at_once, strict=True))
    doubts = [
        dram.latency_doubts(
            block, sum(at_once), touched, card, {name: each.dram is not None for name, each in own.items()}
        )
        for own, block in zip(given, blocks, strict=True)
    ]
    shares = [latency.dram for own in given for latency in own.values() if latency.dram is not None]
    if not shares:
        return doubts, 0, ()
    busy, told = dram.busy_cycles(list(zip(blocks, counts, strict=True)), card, min(shares))
    return doubts, busy, (told,)


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


def given_resident(asked: int | None, warps: int, card: Gpu | None, named: Naming) -> int:
    """Return the number of blocks that a user says to be resident on an SM, where nothing else tells it.

    Raises:
        MissingInputsError: none are said.
        InputError: more than an SM of the GPU holds whatever the kernel.
    """
    if asked is None:
        raise MissingInputsError.of("a whole GPU", [RESIDENT], named)
    if card is not None:
        check_resident(asked, occupancy(card.limits, warps_per_block=warps), named)
    return asked


def _check_code(kernel: Kernel, card: Gpu) -> None:
    if isinstance(kernel, ptx.PtxKernel) or card.sm is None or is_compatible(kernel.sm, card.sm):
        return
    raise InputError(
        f"{kernel.source}: GPU {card.name}, of sm_{card.sm}, does not execute machine code for sm_{kernel.sm}"
    )


def _missing_resident(kernel: LaunchedKernel, card: Gpu | None) -> tuple[MissingInput, ...]:
    """Return the number of resident blocks as missing, where the user does not say it and nothing tells it."""
    if kernel.question.blocks_per_sm is not None:
        return ()
    if isinstance(kernel.kernel, ptx.PtxKernel):
        return (RESIDENT._replace(instead=(("arch", "sm_NN"),)),)
    warps = kernel.launch.warps_per_block or max(kernel.question.counts or (0,))
    if not warps or kernel.missing_shared:
        return ()
    unknown = _unknown(kernel.residency(warps, None if card is None else card.limits))
    return (RESIDENT._replace(what=f"{RESIDENT.what}, for nobody knows {unknown} of this GPU"),) if unknown else ()


def _resident(kernel: LaunchedKernel, warps: int, blocks: int, card: Gpu | None) -> tuple[int, tuple[Assumption, ...]]:
    """Return how many blocks of `warps` warps are resident on an SM, of `blocks` that are launched, and why."""
    asked, named = kernel.question.blocks_per_sm, kernel.question.named
    if isinstance(kernel.kernel, ptx.PtxKernel):
        # PTX does not tell registers and shared memory: the number is the user's, and an assumption of the bound.
        count = given_resident(asked, warps, card, named)
        return count, (assumptions.given_blocks(count, None),) if blocks > 1 else ()
    room = kernel.residency(warps, None if card is None else card.limits)
    if asked is None:
        _check_known(room, kernel.kernel.source, named("blocks_per_sm"))
    check_resident(asked or room.blocks_per_sm, room, named)
    return asked or room.blocks_per_sm, residency_notes(room, asked, blocks)


def _unknown(room: Occupancy) -> str:
    return ", ".join((*room.unknown, *room.unrounded))


def _check_known(room: Occupancy, source: str, remedy: str) -> None:
    if unknown := _unknown(room):
        raise InputError(
            f"{source}: what limits the resident blocks is not known of this GPU ({unknown}): say {remedy}"
        )
