"""From a SOURCE argument and its options to instances."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan import strings
from makespan.cli.parameters import Capacity, Warps
from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import PAPER, Machine, read_machine, shipped_machines
from makespan.program import Program
from makespan.strings import NamedInstance

if TYPE_CHECKING:
    from makespan.ptx import Module

FORMATS = ("ptx", "toml", "jsonl")
MAX_STDIN_BYTES = strings.MAX_FILE_BYTES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _stack(*options: Decorator) -> Decorator:
    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


kernel_options = _stack(
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
    click.option("--take", multiple=True, metavar="LABEL=taken|fall", help="fix a branch: this path only"),
    click.option("--trace", type=click.Path(path_type=Path), help="file with one decision per executed branch"),
)

machine_options = _stack(
    click.option("--capacity", type=Capacity(), help="units per class, such as C=2,L=1"),
    click.option("--machine", metavar="NAME|FILE.toml", help="a shipped machine or a machine file"),
)

source_options = _stack(
    click.argument("source", required=False),
    click.option("--string", "letters", metavar="CLLC...", help="an instruction string instead of SOURCE"),
    click.option("--warps", type=Warps(), help="number of warps, or a range for a curve"),
    click.option("--input-format", type=click.Choice(FORMATS), help="format of standard input (SOURCE '-')"),
    machine_options,
    kernel_options,
)


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How a kernel becomes a program; the fields are the options of the same names."""

    kernel: str | None = None
    profile: str = "paper"
    classes: Path | None = None
    unknown: str | None = None
    loop_bounds: tuple[str, ...] = ()
    take: tuple[str, ...] = ()
    trace: Path | None = None


def instances(
    source: str | None,
    letters: str | None,
    warps: range | None,
    input_format: str | None,
    capacity: Machine | None,
    machine: str | None,
    kernel: KernelOptions,
) -> tuple[NamedInstance, ...]:
    """The instances that the command line asks for; everything is checked before any is solved.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    if (source is None) == (letters is None):
        raise InputError("give either SOURCE or --string")
    if capacity is not None and machine is not None:
        raise InputError("--capacity and --machine exclude each other")
    if source is not None and _format(source, input_format) != "ptx":
        if warps is not None or capacity is not None or machine is not None:
            raise InputError(
                "an instance file says warps and capacity itself: no --warps, --capacity, --machine beside it"
            )
        if kernel != KernelOptions():
            raise InputError("an instance file takes no options for kernels (--kernel, --profile, --loop-bound, ...)")
        return _instance_file(source, _format(source, input_format))
    if letters is None or kernel == KernelOptions():
        if warps is None:
            raise InputError("--warps is missing: how many warps run?")
        chosen = capacity or _machine(machine)
        program = (
            kernel_program(str(source), input_format, kernel)
            if letters is None
            else strings.parse_string(letters, chosen)
        )
        name = "--string" if letters is not None else str(source)
        return tuple(NamedInstance(Instance.of(program, count, chosen), name) for count in warps)
    raise InputError("--string takes no options for kernels (--kernel, --profile, --loop-bound, --take, ...)")


def read_module(source: str, input_format: str | None = None) -> "Module":
    """The PTX module named on the command line."""
    from makespan import ptx

    if _format(source, input_format) != "ptx":
        raise InputError(f"{source}: not a kernel file; expected .ptx")
    return ptx.parse(_stdin(), "<stdin>") if source == "-" else ptx.read(Path(source))


def kernel_program(source: str, input_format: str | None, options: KernelOptions) -> Program:
    """The program of the chosen kernel."""
    from makespan import ptx

    module = read_module(source, input_format)
    kernel = module.kernel(options.kernel)
    return ptx.program(
        kernel,
        loop_bounds=ptx.bounds_for(kernel, ptx.loop_bounds(options.loop_bounds), module.kernels),
        take=ptx.takes(options.take),
        trace=None if options.trace is None else ptx.read_trace(options.trace),
        **classification(options),
    )


def classification(options: KernelOptions) -> dict[str, Any]:
    """The options that say which opcode needs which unit class."""
    from makespan import ptx

    classes = None if options.classes is None else ptx.read_classes(options.classes)
    return {"profile": options.profile, "classes": classes, "unknown": options.unknown}


def _machine(name: str | None) -> Machine:
    if name is None:
        return PAPER
    shipped = shipped_machines()
    if name in shipped:
        return shipped[name]
    if name.endswith(".toml"):
        return read_machine(Path(name))
    raise InputError(f"unknown machine {name!r}; shipped: {', '.join(shipped)}; or give a .toml file")


def _format(source: str, input_format: str | None) -> str:
    """The format of SOURCE, by its suffix or, for '-', as stated."""
    if source == "-":
        if input_format is None:
            raise InputError(f"SOURCE '-' needs --input-format {'|'.join(FORMATS)}")
        return input_format
    if input_format is not None:
        raise InputError("--input-format is for SOURCE '-'; a file is known by its suffix")
    suffix = Path(source).suffix
    if suffix == ".cu":
        raise InputError(f"{source}: compile CUDA source to PTX first: nvcc -O3 -ptx {source}")
    if suffix.removeprefix(".") not in FORMATS:
        raise InputError(f"{source}: unknown kind of file; expected .ptx, .toml or .jsonl (or give --string)")
    return suffix.removeprefix(".")


def _instance_file(source: str, kind: str) -> tuple[NamedInstance, ...]:
    if source == "-":
        return strings.parse_instances(_stdin(), "<stdin>", f".{kind}")
    return strings.read_instances(Path(source))


def _stdin() -> str:
    data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(data) > MAX_STDIN_BYTES:
        raise InputError(f"<stdin>: larger than {MAX_STDIN_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("<stdin>: it is not UTF-8 text") from None
