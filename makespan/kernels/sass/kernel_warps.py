"""From a kernel of machine code to the programs of its warps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Unpack

from makespan.kernels.flow import Barrier, GivenBound, KernelWarps, Launch, PathMode, TraceStep, WarpOptions
from makespan.kernels.sass.graph import SassFlow, flow
from makespan.kernels.sass.module import SassKernel
from makespan.kernels.sass.timing import SassCode, timed_code
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.machine import PAPER, GivenRange, Machine
from makespan.model.program import Program


def warps(
    kernel: SassKernel | SassFlow,
    *,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    latencies: Mapping[str, GivenRange] | None = None,
    launch: Launch | None = None,
) -> KernelWarps:
    """Return the warps of a launch, which tell what is missing before there can be programs; see `WarpOptions`.

    Raises:
        InputError: a launch that does not fit, or an operation that the machine does not time.
        UnsupportedError: control flow, an opcode, or waiting that cannot be followed.
    """
    found = flow(kernel)
    fitted = found.semantics.fit_launch(launch or Launch())  # what does not fit is told before unknown opcodes
    code = timed_code(found, machine, latencies or {})
    return KernelWarps(code, fitted, tuple(loop_bounds), partial(_remarks, code), take or {}, trace, paths)


def program(
    kernel: SassKernel | SassFlow,
    *,
    launch: Launch | None = None,
    warp: int | None = None,
    **options: Unpack[WarpOptions],
) -> Program:
    """Return what one warp may execute: everything that hardware with reconvergence allows, or one path.

    Args:
        kernel: a kernel, or its flow, which keeps what was found out of it.
        launch: what is known of block, grid and parameters.
        warp: only this warp of the block; None for what every warp may execute.
        options: see `WarpOptions`; control bits say what an instruction waits for if the machine times operations.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, a latency without bound.
        UnsupportedError: control flow, an opcode, or waiting that cannot be followed; the message names the remedy.
    """
    return warps(kernel, launch=launch, **options).program(warp)


def programs(
    kernel: SassKernel | SassFlow, *, launch: Launch, **options: Unpack[WarpOptions]
) -> tuple[tuple[Program, int], ...]:
    """Return the programs of the warps of one block, see `KernelWarps.programs`.

    Raises:
        InputError: see `program`; a launch without block.
        UnsupportedError: see `program`.
    """
    return warps(kernel, launch=launch, **options).programs()


def _remarks(timed: SassCode, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
    found = timed.flow
    effects = [found.effects[number] for number in numbers]
    lanes = ["no data race makes lanes that load one address see two values"] * branches
    aligned = sorted({found.code[n].line for n in numbers if found.effects[n].barrier is Barrier.ALIGNED})
    if branches and aligned:
        lanes.append(
            f"the lanes of a warp come together to the barriers at {found.at(*aligned)}, as their PTX promises"
        )
    yield from timed.remarks(numbers)
    yield from assumptions.about_code(
        found.kernel.compilation,
        assumptions.as_compiled(found.kernel.sm, timed.machine.name),
        lanes,
        sum(effect.guard is not None and effect.transfer is None for effect in effects),
        ", and may be done after one cycle, as where they do nothing" if timed.timings else "",
    )
    if any("c[" in operand for number in numbers for operand in found.code[number].operands):
        yield assumptions.instructions("constants among the operands are in the cache of constants")
