"""From a PTX kernel to the programs of its warps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Unpack

from makespan.kernels.flow import GivenBound, KernelWarps, Launch, PathMode, TraceStep, WarpOptions
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


class PtxOptions(WarpOptions, total=False):
    """The keywords by which PTX makes programs, besides those of every language.

    Args:
        profile: which unit classes there are, see `ptx.PROFILES`.
        classes: own unit classes by opcode prefix, see `Classes`.
        unknown: the class of opcodes that nothing classifies.
        dependences: what an instruction waits for; None for registers where the machine times operations, else for
            whatever is before it.
    """

    profile: str
    classes: Mapping[str, str] | None
    unknown: str | None
    dependences: Dependences | None


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
    """Return the warps of a launch, which tell what is missing before there can be programs; see `PtxOptions`.

    Raises:
        InputError: a launch that does not fit, an unknown opcode, an operation that the machine does not time.
        UnsupportedError: control flow that has no natural loops.
    """
    found = flow(kernel)
    fitted = found.semantics.fit_launch(launch or Launch())  # what does not fit is told before unknown opcodes
    code = timed_code(found, Classes(profile, classes or {}, unknown), machine, dependences, latencies or {})
    return KernelWarps(code, fitted, tuple(loop_bounds), partial(_remarks, code), take or {}, trace, paths)


def program(
    kernel: PtxKernel | PtxFlow, *, launch: Launch | None = None, warp: int | None = None, **options: Unpack[PtxOptions]
) -> Program:
    """Return what one warp may execute: everything that hardware with reconvergence allows, or one path.

    One path stands for a kernel only where nothing is left to choose: the longest path need not be the worst case.

    >>> from makespan.kernels import ptx
    >>> text = ".version 8.0 .target sm_80 .entry k() { ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; ret; }"
    >>> ptx.program(ptx.parse(text, "k.ptx").kernel()).letters
    'LC'

    Args:
        kernel: an entry or function with a body, or its flow, which keeps what was found out of it.
        launch: what is known of block, grid and parameters.
        warp: only this warp of the block; None for what every warp may execute.
        options: see `PtxOptions`.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, an unknown opcode.
        UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.
    """
    return warps(kernel, launch=launch, **options).program(warp)


def programs(
    kernel: PtxKernel | PtxFlow, *, launch: Launch, **options: Unpack[PtxOptions]
) -> tuple[tuple[Program, int], ...]:
    """Return the programs of the warps of one block, see `KernelWarps.programs`.

    Raises:
        InputError: see `program`; a launch without block.
        UnsupportedError: see `program`.
    """
    return warps(kernel, launch=launch, **options).programs()


def _remarks(timed: PtxCode, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
    found, classes = timed.flow, timed.classes
    code = [found.code[number] for number in numbers]
    guarded = sum(i.guard is not None and i.name not in JUMPS and not is_inlined(i) for i in code)
    lanes = ["branches marked .uni are uniform, and no data race makes lanes that load one address see two values"]
    yield from timed.remarks(numbers)
    yield from assumptions.about_code(
        found.kernel.compilation,
        assumptions.as_written(),
        lanes * branches,
        guarded,
        ", and take one cycle at least, as where they do nothing" if timed.timings else "",
    )
    if classes.overrides:
        yield assumptions.classes(classes.overrides)
    if not timed.operations and (unknown := sorted(classes.unclassified(i.opcode for i in code))):
        yield assumptions.unknown_opcodes(str(classes.unknown), unknown)
