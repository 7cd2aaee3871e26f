"""The kernel model of a PTX kernel: what the main thread of every warp executes, and how long that takes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.kleimenov_popova import gpu_timing
from makespan.estimates.kleimenov_popova.control_flow import ControlFlow
from makespan.estimates.kleimenov_popova.demand import HitRates, KernelModel, Thread, WarpDemand
from makespan.estimates.kleimenov_popova.device import GpuParameters
from makespan.estimates.kleimenov_popova.gpu_timing import Timing
from makespan.estimates.kleimenov_popova.piecewise import exact
from makespan.estimates.kleimenov_popova.recurrence import LoopRule, Single
from makespan.estimates.kleimenov_popova.recurrence import Sequence as Steps
from makespan.estimates.kleimenov_popova.thread_time import ThreadTime, thread_time
from makespan.estimates.profile import KernelProfile, MemoryOperation, Resources, profile
from makespan.estimates.profile.launched import Launched
from makespan.estimates.profile.opcodes import DEVICE, kind, memory_access
from makespan.host.errors import InputError
from makespan.kernels.flow import WARP_LANES, GivenBound, Launch
from makespan.kernels.ptx import PtxFlow, PtxInstruction, PtxKernel
from makespan.model.machine.gpus import Gpu

Length: TypeAlias = Callable[[Steps], float]
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
    """The model of a PTX kernel and its launch; blocks are taken to be alike.

    Args:
        timing: of the classes of instructions that it has.
    """

    kernel: KernelModel
    threads: tuple[ThreadModel, ...]
    timing: Timing
    rule: LoopRule
    notes: tuple[str, ...]


def from_ptx(
    kernel: PtxKernel,
    launch: Launch,
    gpu: Gpu,
    device: GpuParameters,
    hits: HitRates,
    *,
    rule: LoopRule = LoopRule.UNROLL2,
    loop_bounds: Sequence[GivenBound] = (),
    resources: Resources | None = None,
    registers: int | None = None,
    dynamic_shared_bytes: int = 0,
) -> PtxModel:
    """Return the model of a launch of a PTX kernel.

    Args:
        device: the numbers of that GPU.
        resources: what `ptxas -v` says.
        registers: per thread of the hardware, over what `resources` says; None if not known.
        dynamic_shared_bytes: per block, given at launch.

    Raises:
        InputError: a launch without block or grid, a loop without bound, an instruction of no known class, latencies
            or delays that are missing.
        UnsupportedError: see `profile`.
    """
    hits.checked()
    launched = Launched.of(kernel, launch, loop_bounds)
    if device.limits.warp_size != WARP_LANES:
        raise InputError(f"GPU {gpu.name}: warps of {device.limits.warp_size} threads; those of PTX have {WARP_LANES}")
    profiled = profile(
        kernel,
        launch,
        loop_bounds=loop_bounds,
        resources=resources,
        registers=registers,
        dynamic_shared_bytes=dynamic_shared_bytes,
    )
    source = _LaunchedCode(launched, singles(launched))
    timing = gpu_timing.timing(gpu, *_examples(launched.flow, source.singles))
    uncoalesced = _uncoalesced_parts(profiled.device_memory)
    dram = exact(device.latency.dram)

    def length(steps: Steps) -> float:
        return float(thread_time(steps, timing, rule).cycles(dram))

    threads = tuple(_thread(source, timing, rule, uncoalesced, *made) for made in source.sequences(length))
    model = _kernel_model(threads, launched, hits, profiled)
    return PtxModel(model, threads, timing, rule, tuple(_notes(threads, source, profiled)))


def device_of(gpu: Gpu, kernel: PtxKernel, launch: Launch) -> GpuParameters:
    """Return the numbers of a GPU, if none is missing that a launch of this kernel needs.

    Raises:
        InputError: a launch without block or grid, an instruction of no known class, an issue delay that is none; or
            numbers that are missing: all of them, those for classes of instructions too, each with how to get it.
    """
    launched = Launched.of(kernel, launch)
    example, where = _examples(launched.flow, singles(launched))
    gpu_timing.check_delays(gpu)
    gpu.require(*GpuParameters.keys(gpu), *gpu_timing.keys(gpu, example), where=gpu_timing.by_key(where))
    return GpuParameters.of(gpu)


def singles(launched: Launched) -> tuple[Single, ...]:
    """Return every instruction as the recurrence sees it.

    Raises:
        InputError: an instruction of no known class.
    """
    kernel, back = launched.kernel, _back_edges(launched)
    made = []
    for number, (instruction, effect) in enumerate(zip(launched.flow.code, launched.flow.effects, strict=True)):
        made.append(Single(number, kind(instruction, kernel.file), effect.reads, effect.writes, number in back))
    return tuple(made)


def _back_edges(launched: Launched) -> frozenset[int]:
    """Return the unconditional branches back to the head of a loop around them, by number of the instruction."""
    code, blocks = launched.flow.code, launched.flow.blocks
    ends = {blocks[latch] for loop in launched.nest.loops for latch in loop.latches}
    last = {block.stop - 1 for block in ends if block.stop > block.first}
    return frozenset(number for number in last if code[number].name == "bra" and not code[number].guard)


def _examples(found: PtxFlow, singles: Iterable[Single]) -> tuple[dict[str, Single], dict[str, str]]:
    """Return an instruction of each class of the kernel, if possible one with a result, and where it stands."""
    example: dict[str, Single] = {}
    for single in singles:
        if single.kind not in example or (single.writes and not example[single.kind].writes):
            example[single.kind] = single
    return example, {name: _at(found.code[single.number]) for name, single in example.items()}


def _at(instruction: PtxInstruction) -> str:
    return f"{instruction.opcode}, line {instruction.line}"


@dataclass(frozen=True, slots=True)
class _LaunchedCode:
    """A kernel with its launch."""

    launched: Launched
    singles: tuple[Single, ...]

    def sequences(self, length: Length) -> Iterator[tuple[Steps, tuple[int, ...], list[int]]]:
        """Yield the sequences that warps execute, the lines where a side was chosen, and the warps that execute it."""
        alike: dict[object, tuple[ControlFlow, list[int]]] = {}
        for warp in range(self.launched.launch.warps_per_block or 0):
            terrain, sides = self.launched.terrain(warp), self.launched.decided(warp)
            trips = tuple(info.bound and info.bound.maximum for info in terrain.infos)
            control = ControlFlow(
                terrain, self.singles, sides, self.launched.uniform, length, self.launched.launch.named
            )
            alike.setdefault((tuple(sides.items()), trips), (control, []))[1].append(warp)
        for control, warps in alike.values():
            steps = control.sequence()
            yield steps, tuple(sorted(control.choices)), warps

    def moved(self, number: int) -> int:
        access = memory_access(self.launched.flow.code[number])
        return access.lane_bytes if access is not None and access.space in DEVICE else 0


def _thread(
    source: _LaunchedCode,
    timing: Timing,
    rule: LoopRule,
    uncoalesced: Mapping[tuple[int, str], float],
    steps: Steps,
    choices: tuple[int, ...],
    warps: list[int],
) -> ThreadModel:
    code = source.launched.flow.code
    executions = steps.executions(with_back_edges=True)
    moved = {number: source.moved(number) * count for number, count in executions.items()}
    return ThreadModel(
        warps=tuple(warps),
        steps=steps,
        time=thread_time(steps, timing, rule),
        syncs=sum(count for number, count in executions.items() if source.singles[number].kind == InstructionKind.BAR),
        bytes=sum(moved.values()),
        uncoalesced_bytes=sum(
            some * uncoalesced.get((code[number].line, str(code[number])), 0.0) for number, some in moved.items()
        ),
        choices=choices,
    )


def _uncoalesced_parts(operations: Iterable[MemoryOperation]) -> dict[tuple[int, str], float]:
    """Return the part of what an instruction moves that goes in uncoalesced requests, by line and text."""
    moved: dict[tuple[int, str], list[float]] = {}
    for operation in operations:
        both = moved.setdefault((operation.line, operation.text), [0.0, 0.0])
        both[bool(operation.coalesced)] += operation.executions * operation.warp_bytes
    return {key: apart / (apart + together) for key, (apart, together) in moved.items() if apart}


def _kernel_model(
    threads: Iterable[ThreadModel],
    launched: Launched,
    hits: HitRates,
    profiled: KernelProfile,
) -> KernelModel:
    by_number: dict[int, WarpDemand] = {}
    for thread in threads:
        time = thread.time.cycles.numeric()
        for number in thread.warps:
            lanes = min(WARP_LANES, launched.threads - number * WARP_LANES)  # the last warp of a block may be partial
            one = Thread(time, float(thread.time.delay), thread.bytes, thread.uncoalesced_bytes, hits, thread.syncs)
            by_number[number] = WarpDemand.of([one] * lanes)  # every lane stands for the main thread of its warp
    warps = [by_number[number] for number in sorted(by_number)]
    return KernelModel(
        launched.threads,
        launched.blocks,
        lambda _: warps,
        is_uniform=True,
        registers=profiled.registers,
        shared_bytes=profiled.shared_bytes,
    )


def _notes(threads: Iterable[ThreadModel], source: _LaunchedCode, profiled: KernelProfile) -> Iterator[str]:
    yield "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions"
    if source.launched.kernel.compilation is not None:
        yield str(source.launched.kernel.compilation)
    lines = sorted({line for thread in threads for line in thread.choices})
    if lines and profiled.is_exact:  # otherwise the profile says so
        listed = ", ".join(map(str, lines[:_MOST_LINES])) + ", ..." * (len(lines) > _MOST_LINES)
        yield f"all lanes take the branch at line {listed} alike, and which way is not known: the longer side counts"
    if profiled.registers is None:
        yield "registers of a thread are not known (PTX has none of the hardware): give --regs, or --ptxas FILE"
    if profiled.spill_bytes:
        yield f"{profiled.spill_bytes} bytes of spilled registers are not in the memory traffic"
    yield from profiled.notes
