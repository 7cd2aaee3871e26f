"""From a SOURCE argument and its options to instances."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from makespan import strings
from makespan.cli.output import Decorator
from makespan.cli.parameters import Capacity, Memory, Seconds, Warps
from makespan.engines import BACKENDS
from makespan.errors import InputError, ParseError
from makespan.instance import MAX_WARPS, Instance
from makespan.machine import PAPER, Machine, find
from makespan.program import Program
from makespan.strings import NamedInstance
from makespan.text_file import claim_input, decoded, read_stream

if TYPE_CHECKING:
    from makespan.flow import GivenBound, Launch
    from makespan.ptx import Kernel, Module

FORMATS = ("ptx", "toml", "jsonl")
KERNEL_FORMATS = ("ptx", "cu")
MAX_STDIN_BYTES = strings.MAX_FILE_BYTES


def stack(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help shows them in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


cuda_options = stack(
    click.option("--arch", metavar="compute_NN", help="what a .cu file is compiled for [default: compute_75]"),
    click.option("--keep-ptx", type=click.Path(path_type=Path), metavar="FILE.ptx", help="leave the PTX of a .cu file"),
)

launch_options = stack(
    click.option("--param", multiple=True, metavar="NAME=N", help="value of a kernel parameter, by name or position"),
    click.option("--block", metavar="N|XxYxZ", help="threads of a block; says how many warps it has"),
    click.option("--grid", metavar="N|XxYxZ", help="blocks of the grid"),
)

kernel_options = stack(
    click.option("--kernel", metavar="NAME", help="which kernel of a module"),
    click.option(
        "--profile",
        type=click.Choice(["paper", "fermi", "modern"]),
        default="paper",
        show_default=True,
        help="how opcodes map to unit classes",
    ),
    click.option("--classes", type=click.Path(path_type=Path), help="TOML file: opcode = class, over the table"),
    click.option("--unknown", metavar="CLASS", help="class of opcodes that no table knows (otherwise an error)"),
    click.option(
        "--loop-bound",
        "loop_bounds",
        multiple=True,
        metavar="LABEL=N|LABEL==N|FILE",
        help="at most N, exactly N, or a bounds file",
    ),
    click.option("--trust-bounds", is_flag=True, help="--loop-bound counts even where the code contradicts it"),
    launch_options,
    click.option("--take", multiple=True, metavar="LABEL=taken|fall", help="fix a branch: this path only"),
    click.option("--trace", type=click.Path(path_type=Path), help="file with one decision per executed branch"),
    click.option(
        "--paths",
        type=click.Choice(["automaton", "single"]),
        help="all paths of a warp (default), or the one that --take or --trace fixes (default with them)",
    ),
    cuda_options,
)

machine_options = stack(
    click.option("--capacity", type=Capacity(), help="units per class, such as C=2,L=1"),
    click.option("--machine", metavar="NAME|FILE.toml", help="a shipped machine or a machine file"),
)

source_options = stack(
    click.argument("source", required=False),
    click.option("--string", "letters", metavar="CLLC...", help="an instruction string instead of SOURCE"),
    click.option("--warps", type=Warps(), help="number of warps of a block, or a range for a curve"),
    click.option("--input-format", type=click.Choice(FORMATS), help="format of standard input (SOURCE '-')"),
    click.option(
        "--blocks-per-sm",
        type=click.IntRange(1, MAX_WARPS),
        default=1,
        show_default=True,
        help="thread blocks on the SM, each of so many warps; those of a block wait for each other at barriers",
    ),
    machine_options,
    kernel_options,
)

engine_options = stack(
    click.option("--backend", type=click.Choice(list(BACKENDS)), default="auto", show_default=True, help="the engine"),
    click.option("--time-limit", type=Seconds(), default=60.0, show_default=True, help="per instance"),
    click.option("--memory-limit", type=Memory(), default="8GiB", show_default=True, help="for the tables of a search"),
    click.option(
        "--threads", type=click.IntRange(1, 256), default=1, show_default=True, help="for solvers that use several"
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="of solvers' random numbers"
    ),
)


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How a kernel becomes a program; the fields are the options of the same names."""

    kernel: str | None = None
    profile: str = "paper"
    classes: Path | None = None
    unknown: str | None = None
    loop_bounds: tuple[str, ...] = ()
    trust_bounds: bool = False
    param: tuple[str, ...] = ()
    block: str | None = None
    grid: str | None = None
    take: tuple[str, ...] = ()
    trace: Path | None = None
    paths: Literal["automaton", "single"] | None = None
    blocks_per_sm: int = 1
    arch: str | None = None
    keep_ptx: Path | None = None

    def files(self) -> tuple[Path, ...]:
        """What is read beside the kernel."""
        return (*filter(None, (self.classes, self.trace)), *bounds_files(self.loop_bounds))


def bounds_files(loop_bounds: Sequence[str]) -> tuple[Path, ...]:
    """The files among the values of `--loop-bound`."""
    return tuple(Path(given) for given in loop_bounds if "=" not in given)


def instances(
    source: str | None,
    letters: str | None,
    warps: range | None,
    input_format: str | None,
    capacity: Machine | None,
    machine: str | None,
    **options: Any,
) -> tuple[NamedInstance, ...]:
    """The instances that `source_options` ask for, the rest of which are `KernelOptions`; all are checked first.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    kernel = KernelOptions(**options)
    if source is None and letters is None:
        raise _usage("what is to be solved? give SOURCE, a kernel or a file of instances, or --string LETTERS")
    if source is not None and letters is not None:
        raise _usage(f"SOURCE ({source}) and --string exclude each other: give one of them")
    if capacity is not None and machine is not None:
        raise InputError("--capacity and --machine exclude each other")
    if source is not None and _format(source, input_format) not in KERNEL_FORMATS:
        if warps is not None or capacity is not None or machine is not None:
            raise InputError(
                "an instance file says warps and capacity itself: no --warps, --capacity, --machine beside it"
            )
        if kernel != KernelOptions():
            raise InputError("an instance file takes no options for kernels (--kernel, --profile, --loop-bound, ...)")
        return _instance_file(source, _format(source, input_format))
    chosen = capacity or _machine(machine)
    blocks = kernel.blocks_per_sm
    if letters is None:
        groups = _kernel_groups(str(source), input_format, kernel, warps)
        several = [[(program, count * blocks) for program, count in block] for block in groups]
        return tuple(NamedInstance(Instance.merged(g, chosen, blocks=blocks), str(source)) for g in several)
    if replace(kernel, blocks_per_sm=1) != KernelOptions():
        raise InputError("--string takes no options for kernels (--kernel, --profile, --loop-bound, --take, ...)")
    if warps is None:
        raise InputError("--warps is missing: how many warps run?")
    program = strings.parse_string(letters, chosen)
    found = (Instance.of(program, count * blocks, chosen, blocks=blocks) for count in warps)
    return tuple(NamedInstance(instance, "--string") for instance in found)


def _usage(message: str) -> click.UsageError:
    """An error that points to the help of the command."""
    return click.UsageError(message, click.get_current_context(silent=True))


def read_module(
    source: str,
    input_format: str | None = None,
    *,
    arch: str | None = None,
    keep_ptx: Path | None = None,
    beside: Sequence[Path] = (),
) -> "Module":
    """The PTX module named on the command line; files that are read later are not written to."""
    from makespan import ptx

    for path in beside:
        claim_input(path)
    kind = _format(source, input_format)
    if kind == "cu":
        from makespan.ptx import cuda

        return cuda.read(Path(source), arch=arch, keep=keep_ptx)
    if arch is not None or keep_ptx is not None:
        raise InputError(f"{source}: --arch and --keep-ptx are for CUDA source (.cu)")
    if kind != "ptx":
        raise InputError(f"{source}: not a kernel file; expected .ptx or .cu")
    return ptx.parse(ptx.decode(_stdin("PTX file"), "<stdin>"), "<stdin>") if source == "-" else ptx.read(Path(source))


@contextmanager
def telling_how_to_keep(module: "Module") -> Iterator[None]:
    """Errors about PTX that was made on the way say so, and how to look at it."""
    from makespan.ptx import KEEP_HINT

    try:
        yield
    except InputError as error:
        if module.compilation is None or f"PTX of {module.compilation.source}:" not in str(error):
            raise
        if isinstance(error, ParseError):
            raise error.adding(KEEP_HINT) from None
        raise type(error)(f"{error}\n({KEEP_HINT})") from None


def _kernel_groups(
    source: str, input_format: str | None, options: KernelOptions, warps: range | None
) -> Iterator[tuple[tuple[Program, int], ...]]:
    """For every asked number of warps of a block, the programs of the chosen kernel and how many warps run each."""
    from makespan import ptx

    module = read_module(source, input_format, arch=options.arch, keep_ptx=options.keep_ptx, beside=options.files())
    kernel = module.kernel(options.kernel)
    launch = ptx.fitted(launched(options), kernel)
    if launch.grid is not None and options.blocks_per_sm > prod(launch.grid):
        raise InputError(f"--blocks-per-sm {options.blocks_per_sm}: the grid has only {prod(launch.grid)} blocks")
    known = launch.warps_per_block
    if warps is None and known is None:
        raise InputError("--warps is missing: how many warps run? (or --block, the threads of a block)")
    if warps is not None and known is not None and warps != range(known, known + 1):
        given = "--block" if options.block is not None else f"{source}: .reqntid of kernel {kernel.name}"
        raise InputError(f"{given} means {known} warps for each block, and --warps says otherwise: leave --warps out")
    with telling_how_to_keep(module):
        if known is not None:
            yield ptx.programs(kernel, **program_options(module, kernel, options))
        else:
            program = ptx.program(kernel, **program_options(module, kernel, options))
            yield from (((program, count),) for count in warps or ())


def launched(options: KernelOptions) -> "Launch":
    """What the options say of the launch."""
    from makespan import flow

    return flow.launch(options.block, options.grid, options.param)


def program_options(module: "Module", kernel: "Kernel", options: KernelOptions) -> dict[str, Any]:
    """The options that make programs of a kernel."""
    from makespan import flow

    return {
        "loop_bounds": given_bounds(module, kernel, options),
        "take": flow.takes(options.take),
        "trace": None if options.trace is None else flow.read_trace(options.trace),
        "paths": options.paths,
        "launch": launched(options),
        **classification(options),
    }


def given_bounds(module: "Module", kernel: "Kernel", options: KernelOptions) -> "tuple[GivenBound, ...]":
    """What the options say of the loops of a kernel, one of those in a module."""
    from makespan import flow, ptx

    given = flow.loop_bounds(options.loop_bounds, trusted=options.trust_bounds)
    return ptx.bounds_for(kernel, given, module.kernels)


def classification(options: KernelOptions) -> dict[str, Any]:
    """The options that say which opcode needs which unit class."""
    from makespan import ptx

    classes = None if options.classes is None else ptx.read_classes(options.classes)
    return {"profile": options.profile, "classes": classes, "unknown": options.unknown}


def _machine(name: str | None) -> Machine:
    if name is None:
        return PAPER
    file = find(name)
    return replace(file.machine, caveats=file.caveats)


def _format(source: str, input_format: str | None) -> str:
    """The format of SOURCE, by its suffix or, for '-', as stated."""
    if source == "-":
        if input_format is None:
            raise InputError(f"SOURCE '-' needs --input-format {'|'.join(FORMATS)}")
        return input_format
    if input_format is not None:
        raise InputError("--input-format is for SOURCE '-'; a file is known by its suffix")
    kind = Path(source).suffix.removeprefix(".")
    if kind not in (*FORMATS, *KERNEL_FORMATS):
        raise InputError(f"{source}: unknown kind of file; expected .ptx, .cu, .toml or .jsonl (or give --string)")
    return kind


def _instance_file(source: str, kind: str) -> tuple[NamedInstance, ...]:
    if source == "-":
        text = decoded(_stdin("file of instances"), "file of instances", "<stdin>")
        return strings.parse_instances(text, "<stdin>", f".{kind}")
    return strings.read_instances(Path(source))


def _stdin(what: str) -> bytes:
    claim_input(sys.stdin.buffer)
    return read_stream(sys.stdin.buffer, what, MAX_STDIN_BYTES, "<stdin>")
