"""The kernel model of a PTX kernel: what the main thread of every warp executes, and how long that takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.kleimenov_popova.control_flow import ControlFlow
from makespan.estimates.kleimenov_popova.device import VARIABLE, GpuParameters, Timing, read_gpu
from makespan.estimates.kleimenov_popova.piecewise import exact
from makespan.estimates.kleimenov_popova.thread_time import LoopRule, Single, ThreadTime, thread_time
from makespan.estimates.kleimenov_popova.thread_time import Sequence as Steps
from makespan.estimates.kleimenov_popova.waves import HitRates, KernelModel, Thread, WarpDemand
from makespan.estimates.profile import KernelProfile, MemoryOperation, profile
from makespan.estimates.profile.launched import Launched
from makespan.estimates.profile.opcodes import kind, memory_access
from makespan.host.errors import InputError
from makespan.kernels.flow import WARP_LANES, GivenBound, Launch
from makespan.kernels.ptx import PtxKernel
from makespan.model.machine.gpus import Gpu

_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class ThreadModel:
    """The main thread of some warps of every block.

    Args:
        warps: their numbers in the block.
        bytes: that one thread moves from and to the device memory.
        uncoalesced_bytes: those of it that go in uncoalesced requests.
        choices: lines of branches that all lanes take alike, in an unknown direction: the longer side counts.
    """

    warps: tuple[int, ...]
    steps: Steps
    time: ThreadTime
    syncs: int
    bytes: float
    uncoalesced_bytes: float
    choices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PtxModel:
    """The model of a PTX kernel, its launch and its GPU; blocks are taken to be alike.

    Args:
        timing: of the classes of instructions that it has.
    """

    device: GpuParameters
    kernel: KernelModel
    threads: tuple[ThreadModel, ...]
    timing: Timing
    rule: LoopRule
    notes: tuple[str, ...]


def from_ptx(
    kernel: PtxKernel,
    launch: Launch,
    gpu: Gpu,
    hits: HitRates,
    *,
    rule: LoopRule = "unroll2",
    loop_bounds: Sequence[GivenBound] = (),
    **resources: Any,
) -> PtxModel:
    """Return the model of a launch of a PTX kernel.

    Args:
        resources: registers and shared memory, as `profile` takes them.

    Raises:
        InputError: a launch without block or grid, a loop without bound, an instruction of no known class, an issue
            delay that is none; or numbers of the GPU that are missing: all of them, each with how to get it.
        UnsupportedError: see `profile`.
    """
    hits.checked()
    launched = Launched.of(kernel, launch, loop_bounds)
    singles = to_singles(launched)
    device, timing = _read_gpu(gpu, launched, singles)
    if device.limits.warp_size != WARP_LANES:
        raise InputError(f"GPU {gpu.name}: warps of {device.limits.warp_size} threads; those of PTX have {WARP_LANES}")
    profiled = profile(kernel, launch, loop_bounds=loop_bounds, **resources)
    uncoalesced = _uncoalesced_parts(profiled.device_memory)
    dram = exact(device.latency.dram)
    flows: dict[object, tuple[ControlFlow, list[int]]] = {}
    for warp in range(launched.launch.warps_per_block or 0):
        terrain, sides = launched.terrain(warp), launched.decided(warp)
        trips = tuple(info.bound and info.bound.maximum for info in terrain.infos)
        control = ControlFlow(
            terrain,
            singles,
            sides,
            launched.uniform,
            lambda steps: float(thread_time(steps, timing, rule).cycles(dram)),
            launched.launch.named,
        )
        flows.setdefault((tuple(sides.items()), trips), (control, []))[1].append(warp)  # warps alike share one flow
    threads = []
    for control, warps in flows.values():
        steps = control.sequence()
        traffic = _traffic(launched, steps, uncoalesced)
        time = thread_time(steps, timing, rule)
        threads.append(ThreadModel(tuple(warps), steps, time, *traffic, tuple(sorted(control.choices))))
    notes = tuple(_notes(threads, kernel, profiled))
    return PtxModel(device, _kernel_model(threads, launched, hits, profiled), tuple(threads), timing, rule, notes)


def to_singles(launched: Launched) -> tuple[Single, ...]:
    """Return every instruction as the recurrence sees it.

    Raises:
        InputError: an instruction of no known class.
    """
    code, blocks = launched.flow.code, launched.flow.blocks
    ends = (blocks[latch] for loop in launched.nest.loops for latch in loop.latches)
    last = {block.stop - 1 for block in ends if block.stop > block.first}
    back_edges = {number for number in last if code[number].name == "bra" and not code[number].guard}
    return tuple(
        Single(number, kind(instruction, launched.kernel.file), effect.reads, effect.writes, number in back_edges)
        for number, (instruction, effect) in enumerate(zip(code, launched.flow.effects, strict=True))
    )


def _read_gpu(gpu: Gpu, launched: Launched, singles: Iterable[Single]) -> tuple[GpuParameters, Timing]:
    """Return the numbers of a GPU for these instructions, if none is missing."""
    where, written = dict[str, str](), list[str]()  # an instruction of each class, if possible one with a result
    for single in singles:
        first_result = bool(single.writes) and single.kind != VARIABLE and single.kind not in written
        if first_result:
            written.append(single.kind)
        if first_result or single.kind not in where:
            instruction = launched.flow.code[single.number]
            where[single.kind] = f"{instruction.opcode}, line {instruction.line}"
    return read_gpu(gpu, where, written)


def _traffic(
    launched: Launched, steps: Steps, uncoalesced: Mapping[tuple[int, str], float]
) -> tuple[int, float, float]:
    """Return the barriers of a thread, the bytes that it moves, and those of them in uncoalesced requests."""
    syncs, moved, apart = 0, 0, 0.0
    for single, count in steps.executions(with_back_edges=True).items():
        instruction = launched.flow.code[single.number]
        access = memory_access(instruction)
        syncs += count if single.kind == InstructionKind.BAR else 0
        if access is not None and access.is_device:
            moved += access.lane_bytes * count
            apart += access.lane_bytes * count * uncoalesced.get((instruction.line, str(instruction)), 0.0)
    return syncs, moved, apart


def _uncoalesced_parts(operations: Iterable[MemoryOperation]) -> dict[tuple[int, str], float]:
    """Return the part of what an instruction moves that goes in uncoalesced requests, by line and text."""
    moved: dict[tuple[int, str], list[float]] = {}
    for operation in operations:
        both = moved.setdefault((operation.line, operation.text), [0.0, 0.0])
        both[bool(operation.coalesced)] += operation.executions * operation.warp_bytes
    return {key: apart / (apart + together) for key, (apart, together) in moved.items() if apart}


def _kernel_model(
    threads: Iterable[ThreadModel], launched: Launched, hits: HitRates, profiled: KernelProfile
) -> KernelModel:
    by_number: dict[int, WarpDemand] = {}
    for thread in threads:
        time = thread.time.cycles.numeric()
        one = Thread(time, float(thread.time.delay), thread.bytes, thread.uncoalesced_bytes, hits, thread.syncs)
        for number in thread.warps:
            lanes = min(WARP_LANES, launched.threads - number * WARP_LANES)  # the last warp of a block may be partial
            by_number[number] = WarpDemand.of([one] * lanes)  # every lane stands for the main thread of its warp
    warps = [by_number[number] for number in sorted(by_number)]
    return KernelModel(launched.threads, launched.blocks, warps, profiled.registers, profiled.shared_bytes)


def _notes(threads: Iterable[ThreadModel], kernel: PtxKernel, profiled: KernelProfile) -> Iterator[str]:
    yield "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions"
    if kernel.compilation is not None:
        yield str(kernel.compilation)
    lines = sorted({line for thread in threads for line in thread.choices})
    if lines and profiled.is_exact:  # otherwise the profile says so
        listed = ", ".join(map(str, lines[:_MOST_LINES])) + ", ..." * (len(lines) > _MOST_LINES)
        yield f"all lanes take the branch at line {listed} alike, and which way is not known: the longer side counts"
    if profiled.registers is None:
        yield "registers of a thread are not known (PTX has none of the hardware): give --regs, or --ptxas FILE"
    if profiled.spill_bytes:
        yield f"{profiled.spill_bytes} bytes of spilled registers are not in the memory traffic"
    yield from profiled.notes
