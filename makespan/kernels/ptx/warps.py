"""From a PTX kernel to the programs of its warps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from makespan.kernels.flow import GivenBound, KernelWarps, Launch, PathMode, TraceStep
from makespan.kernels.ptx.calls import is_inlined
from makespan.kernels.ptx.effects import JUMPS
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.isa import Classes
from makespan.kernels.ptx.module import PtxKernel
from makespan.kernels.ptx.timing import Dependences, PtxCode, timed_code
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.machine import PAPER, GivenRange, Machine
from makespan.model.program import Program


def warps(
    kernel: PtxKernel | PtxFlow,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    dependences: Dependences | None = None,
    latencies: Mapping[str, GivenRange] | None = None,
    launch: Launch | None = None,
) -> KernelWarps:
    """Return the warps of a launch, which tell what is missing before there can be programs; arguments as of `program`.

    Raises:
        InputError: a launch that does not fit, an unknown opcode, an operation that the machine does not time.
        UnsupportedError: control flow that has no natural loops.
    """
    found = flow(kernel)
    fitted = found.semantics.fit_launch(launch or Launch())  # what does not fit is told before unknown opcodes
    code = timed_code(found, Classes(profile, classes or {}, unknown), machine, dependences, latencies or {})
    return KernelWarps(code, fitted, tuple(loop_bounds), partial(_remarks, code), take or {}, trace, paths)


def program(
    kernel: PtxKernel | PtxFlow,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    dependences: Dependences | None = None,
    latencies: Mapping[str, GivenRange] | None = None,
    launch: Launch | None = None,
    warp: int | None = None,
) -> Program:
    """What one warp may execute: everything that hardware with reconvergence allows, or one path.

    One path stands for a kernel only where nothing is left to choose: the longest path need not be the worst case.

    >>> from makespan.kernels import ptx
    >>> text = ".version 8.0 .target sm_80 .entry k() { ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; ret; }"
    >>> ptx.program(ptx.parse(text, "k.ptx").kernel()).letters
    'LC'

    Args:
        kernel: an entry or function with a body, or its flow, which keeps what was found out of it.
        profile: which unit classes there are, see `ptx.PROFILES`.
        loop_bounds: bounds that win over those in comments of the kernel.
        classes: own unit classes by opcode prefix, see `Classes`.
        unknown: the class of opcodes that nothing classifies.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: `single` for the one path that take or trace fix, and the default with them; `automaton` for all paths,
            of which `take` leaves out sides.
        machine: whose operations, if it times any, decide class and latency of each instruction.
        dependences: what an instruction waits for; None for registers where the machine times operations, else for
            whatever is before it.
        latencies: of operations, instead of those of the machine; see `machine.given_latencies`.
        launch: what is known of block, grid and parameters.
        warp: only this warp of the block; None for what every warp may execute.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, an unknown opcode.
        UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.
    """
    return warps(
        kernel,
        profile=profile,
        classes=classes,
        unknown=unknown,
        loop_bounds=loop_bounds,
        take=take,
        trace=trace,
        paths=paths,
        machine=machine,
        dependences=dependences,
        latencies=latencies,
        launch=launch,
    ).program(warp)


def programs(
    kernel: PtxKernel | PtxFlow,
    *,
    launch: Launch,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    dependences: Dependences | None = None,
    latencies: Mapping[str, GivenRange] | None = None,
) -> tuple[tuple[Program, int], ...]:
    """The programs of the warps of one block in the order of the launch, each with how many warps in a row run it.

    Warps differ where the launch decides their branches differently, as in `if (threadIdx.x / 32 == 0)`.

    Raises:
        InputError: see `program`; a launch without block.
        UnsupportedError: see `program`.
    """
    return warps(
        kernel,
        profile=profile,
        classes=classes,
        unknown=unknown,
        loop_bounds=loop_bounds,
        take=take,
        trace=trace,
        paths=paths,
        machine=machine,
        dependences=dependences,
        latencies=latencies,
        launch=launch,
    ).programs()


def _remarks(timed: PtxCode, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
    """What must hold for a program to stand for the kernel, whatever its paths."""
    found, classes = timed.flow, timed.classes
    code = [found.code[number] for number in numbers]
    yield from timed.remarks(numbers)
    if found.kernel.compilation is not None:
        yield assumptions.compiled_by(found.kernel.compilation)
    yield assumptions.as_written()
    if branches:
        yield assumptions.lanes(
            "branches marked .uni are uniform, and no data race makes lanes that load one address see two values"
        )
    if guarded := sum(i.guard is not None and i.name not in JUMPS and not is_inlined(i) for i in code):
        nothing = ", and take one cycle at least, as where they do nothing" if timed.timings else ""
        yield assumptions.instructions(
            f"guarded instructions are issued whatever their predicate{nothing} ({guarded} of them)"
        )
    if classes.overrides:
        yield assumptions.classes(classes.overrides)
    if not timed.operations and (unknown := sorted(classes.unclassified(i.opcode for i in code))):
        yield assumptions.unknown_opcodes(str(classes.unknown), unknown)
