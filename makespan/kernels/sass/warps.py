"""From a kernel of machine code to the programs of its warps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from makespan.kernels.flow import Barrier, GivenBound, KernelWarps, Launch, PathMode, TraceStep
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
    """Return the warps of a launch, which tell what is missing before there can be programs; arguments as of `program`.

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
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    latencies: Mapping[str, GivenRange] | None = None,
    launch: Launch | None = None,
    warp: int | None = None,
) -> Program:
    """What one warp may execute: everything that hardware with reconvergence allows, or one path.

    Args:
        kernel: a kernel, or its flow, which keeps what was found out of it.
        loop_bounds: bounds that win over those that are inferred.
        take: `taken` or `fall` by label, or by `:ADDRESS`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: `single` for the one path that take or trace fix, and the default with them; `automaton` for all paths,
            of which `take` leaves out sides.
        machine: where it times operations, control bits say what an instruction waits for, else whatever is before it.
        latencies: of operations, instead of those of the machine; see `machine.given_latencies`.
        launch: what is known of block, grid and parameters.
        warp: only this warp of the block; None for what every warp may execute.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, a latency that nobody bounds.
        UnsupportedError: control flow, an opcode, or waiting that cannot be followed; the message names the remedy.
    """
    return warps(
        kernel,
        loop_bounds=loop_bounds,
        take=take,
        trace=trace,
        paths=paths,
        machine=machine,
        latencies=latencies,
        launch=launch,
    ).program(warp)


def programs(
    kernel: SassKernel | SassFlow,
    *,
    launch: Launch,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    latencies: Mapping[str, GivenRange] | None = None,
) -> tuple[tuple[Program, int], ...]:
    """The programs of the warps of one block in the order of the launch, each with how many warps in a row run it.

    Raises:
        InputError: see `program`; a launch without block.
        UnsupportedError: see `program`.
    """
    return warps(
        kernel,
        loop_bounds=loop_bounds,
        take=take,
        trace=trace,
        paths=paths,
        machine=machine,
        latencies=latencies,
        launch=launch,
    ).programs()


def _remarks(timed: SassCode, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
    """What must hold for a program to stand for the kernel, whatever its paths."""
    found = timed.flow
    code = [found.code[number] for number in numbers]
    yield from timed.remarks(numbers)
    if found.kernel.compilation is not None:
        yield assumptions.compiled_by(found.kernel.compilation)
    yield assumptions.as_compiled(found.kernel.sm, timed.machine.name)
    if branches:
        yield assumptions.lanes("no data race makes lanes that load one address see two values")
        aligned = sorted({found.code[n].line for n in numbers if found.effects[n].barrier is Barrier.ALIGNED})
        if aligned:
            where = found.at(*aligned)
            yield assumptions.lanes(
                f"the lanes of a warp come together to the barriers at {where}, as their PTX promises"
            )
    effects = [found.effects[number] for number in numbers]
    if guarded := sum(effect.guard is not None and effect.transfer is None for effect in effects):
        nothing = ", and may be done after one cycle, as where they do nothing" if timed.timings else ""
        yield assumptions.instructions(
            f"guarded instructions are issued whatever their predicate{nothing} ({guarded} of them)"
        )
    if any("c[" in operand for instruction in code for operand in instruction.operands):
        yield assumptions.instructions("constants among the operands are in the cache of constants")
