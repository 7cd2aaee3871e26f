"""From a SOURCE argument and its options to instances."""

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from makespan.cli.help_page import option_name, section, stack
from makespan.cli.parameters import Capacity, Memory, OneOf, Seconds, Warps
from makespan.host.errors import InputError
from makespan.host.text_file import claim_input, decode_text, read_stream
from makespan.kernels import kernel_file
from makespan.model import strings
from makespan.model.instance import MAX_WARPS, Instance
from makespan.model.machine import (
    PAPER,
    Machine,
    SchedulerPromise,
    WarpAssignment,
    assign_modulo,
    find_machine,
    given_intervals,
    given_latencies,
    narrow_intervals,
)
from makespan.model.strings import NamedInstance
from makespan.proof.engines import BACKENDS

if TYPE_CHECKING:
    from makespan.kernels.question import Kernel, KernelQuestion, Module

FORMATS = ("ptx", "toml", "jsonl")
PROFILE = "paper"
MAX_SHARED_BYTES = 1 << 20
MAX_STDIN_BYTES = strings.MAX_FILE_BYTES


cuda_options = section(
    "Kernel",
    click.option(
        "--arch",
        metavar="sm_NN|compute_NN",
        help="sm_NN: the machine code for these GPUs; compute_NN: what PTX a .cu file becomes [default: that of the GPU"
        " or machine that is named, else compute_75]",
    ),
    click.option("--keep-ptx", type=click.Path(path_type=Path), metavar="FILE.ptx", help="leave the PTX of a .cu file"),
)

launch_options = section(
    "Launch",
    click.option("--param", multiple=True, metavar="NAME=N", help="value of a kernel parameter, by name or position"),
    click.option("--block", metavar="N|XxYxZ", help="threads of a block; says how many warps it has"),
    click.option("--grid", metavar="N|XxYxZ", help="blocks of the grid"),
)

kernel_options = stack(
    section(
        "Kernel",
        click.option("--kernel", metavar="NAME", help="which kernel of a module"),
        click.option(
            "--profile",
            type=OneOf(["paper", "fermi", "modern"]),
            default=PROFILE,
            show_default=True,
            help="how opcodes of PTX map to unit classes",
        ),
        click.option("--classes", type=click.Path(path_type=Path), help="TOML file: opcode = class, over the table"),
        click.option("--unknown", metavar="CLASS", help="class of opcodes that no table knows (otherwise an error)"),
    ),
    section(
        "Loops and branches",
        click.option(
            "--loop-bound",
            "loop_bounds",
            multiple=True,
            metavar="LABEL=N|LABEL==N|FILE",
            help="at most N, exactly N, or a bounds file",
        ),
        click.option("--trust-bounds", is_flag=True, help="--loop-bound counts even where the code contradicts it"),
        click.option("--take", multiple=True, metavar="LABEL=taken|fall", help="fix a branch: this path only"),
        click.option("--trace", type=click.Path(path_type=Path), help="file with one decision per executed branch"),
        click.option(
            "--paths",
            type=OneOf(["automaton", "single"]),
            help="all paths of a warp (default), or the one that --take or --trace fixes (default with them)",
        ),
    ),
    launch_options,
    cuda_options,
)

machine_option = section(
    "Machine", click.option("--machine", metavar="NAME|FILE.toml", help="a shipped machine or a machine file")
)

machine_options = section(
    "Machine",
    click.option("--capacity", type=Capacity(), help="units per class, such as C=2,L=1"),
    machine_option,
    click.option(
        "--hold",
        "holds",
        multiple=True,
        metavar="RESOURCE=[N..|..]N",
        help="cycles for which a port is held, such as memory=2, where the machine has a wider range",
    ),
)

timing_options = section(
    "Machine",
    click.option(
        "--dependences",
        type=OneOf(["registers", "blocking"]),
        help="what an instruction of PTX waits for [default: registers on a machine that times operations, else"
        " blocking]",
    ),
    click.option(
        "--latency",
        "latencies",
        multiple=True,
        metavar="OPERATION=[N..|..]N",
        help="cycles of an operation, such as global=..900, where the machine does not know, or you know better",
    ),
)

source_options = stack(
    section(
        "Source",
        click.argument("source", required=False),
        click.option("--string", "letters", metavar="CLLC...", help="an instruction string instead of SOURCE"),
        click.option("--warps", type=Warps(), help="number of warps of a block, or a range for a curve"),
        click.option("--input-format", type=OneOf(FORMATS), help="format of standard input (SOURCE '-')"),
        click.option(
            "--instance",
            metavar="N|NAME",
            help="one instance of a file, by its number from 1 or by its name [default: all]",
        ),
    ),
    machine_options,
    timing_options,
    kernel_options,
    section(
        "Launch",
        click.option(
            "--blocks-per-sm",
            type=click.IntRange(1, MAX_WARPS),
            metavar="N",
            help="thread blocks on the SM, each of so many warps; those of a block wait for each other at barriers"
            " [default: 1; of machine code as many as can be resident]",
        ),
        click.option(
            "--dynamic-shared",
            type=click.IntRange(0, MAX_SHARED_BYTES),
            metavar="BYTES",
            help="shared memory that the launch gives a block of machine code, which decides how many can be resident",
        ),
    ),
)

promise_options = section(
    "Machine",
    click.option(
        "--scheduler",
        type=OneOf(list(map(str, SchedulerPromise))),
        help="what the scheduler promises besides work conservation [default: what the machine says, or any]",
    ),
    click.option(
        "--assignment",
        type=OneOf([str(WarpAssignment.MODULO)]),
        help="warp w belongs to partition w mod their number, where the machine leaves it open",
    ),
)

engine_options = section(
    "Effort",
    click.option("--backend", type=OneOf(list(BACKENDS)), default="auto", show_default=True, help="the engine"),
    click.option("--time-limit", type=Seconds(), default=60.0, show_default=True, help="per instance"),
    click.option("--memory-limit", type=Memory(), default="8GiB", show_default=True, help="for the tables of a search"),
    click.option(
        "--threads",
        type=click.IntRange(1, 256),
        metavar="N",
        default=1,
        show_default=True,
        help="for solvers that use several",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        metavar="N",
        default=0,
        show_default=True,
        help="of solvers' random numbers",
    ),
)


def instances(
    source: str | None,
    letters: str | None,
    warps: range | None,
    input_format: str | None,
    capacity: Machine | None,
    machine: str | None,
    holds: Sequence[str] = (),
    instance: str | None = None,
    **options: Any,
) -> tuple[NamedInstance, ...]:
    """The instances that `source_options` ask for, the rest of which are for `kernel_question`; all are checked first.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    check_source(source, letters)
    if source is not None and (suffix := kind_of_source(source, input_format)) in strings.SUFFIXES:
        if warps is not None or capacity is not None or machine is not None or holds:
            raise InputError(
                "an instance file says warps and capacity itself: no --warps, --capacity, --machine, --hold beside it"
            )
        if given_options(options):
            raise InputError("an instance file takes no options for kernels (--kernel, --profile, --loop-bound, ...)")
        found = _instance_file(source, suffix)
        return found if instance is None else (strings.choose_instance(found, instance, source),)
    check_no_instance(instance)
    named, intervals = given_machine(capacity, machine), given_intervals(holds)
    if letters is None:
        from makespan.kernels.question import launched

        kernel = launched(kernel_question(str(source), input_format, warps=warps, **options), named)
        chosen = narrow_intervals(named or kernel.default_machine, intervals)
        return tuple(NamedInstance(each, str(source)) for each in kernel.instances(chosen))
    chosen = narrow_intervals(named or PAPER, intervals)
    check_string(options, {"blocks_per_sm"})
    if warps is None:
        raise InputError("--warps is missing: how many warps run?")
    program, blocks = strings.parse_string(letters, chosen), options.get("blocks_per_sm") or 1
    return tuple(
        NamedInstance(Instance.of(program, count * blocks, chosen, blocks=blocks), "--string") for count in warps
    )


def promised(machine: Machine, scheduler: str | None, assignment: str | None) -> Machine:
    """Return the machine under what `promise_options` say.

    Raises:
        InputError: partitions by numbers of warps on a machine without partitions.
    """
    found = machine if assignment is None else assign_modulo(machine)
    return found if scheduler is None else replace(found, scheduler=SchedulerPromise(scheduler))


def check_source(source: str | None, letters: str | None) -> None:
    """One of a SOURCE and a string is needed.

    Raises:
        UsageError: none or both.
    """
    if source is None and letters is None:
        raise _usage("what is to be solved? give SOURCE, a kernel or a file of instances, or --string LETTERS")
    if source is not None and letters is not None:
        raise _usage(f"SOURCE ({source}) and --string exclude each other: give one of them")


def check_no_instance(instance: str | None) -> None:
    """Only a file of instances has several to choose from.

    Raises:
        InputError: one is chosen.
    """
    if instance is not None:
        raise InputError(f"--instance {instance} is for a file of instances ({' or '.join(strings.SUFFIXES)})")


def given_machine(capacity: Machine | None, machine: str | None) -> Machine | None:
    """Return the machine that is asked for, if any.

    Raises:
        InputError: two of them, or a file that is none.
    """
    if capacity is not None and machine is not None:
        raise InputError("--capacity and --machine exclude each other")
    return capacity if machine is None else find_machine(machine).machine


def given_options(options: Mapping[str, Any]) -> set[str]:
    """Those of the options for `kernel_question` that are given."""
    unsaid = signature(kernel_question).parameters
    return {name for name, value in options.items() if value != unsaid[name].default}


def check_string(options: Mapping[str, Any], allowed: Set[str]) -> None:
    """A string says all but its warps itself, and what is `allowed`.

    Raises:
        InputError: something else is given.
    """
    given = given_options(options)
    if given & {"latencies", "dependences"}:
        raise InputError(
            "--latency and --dependences are for kernels; in a string write what an instruction needs, and its latency,"
            " behind its letter, such as L()@400..900 C(1)"
        )
    if given - allowed == {"grid"}:
        raise InputError("--grid of a --string is for a whole GPU: leave it out, or use solve with --gpu or --sms")
    if given - allowed:
        raise InputError("--string takes no options for kernels (--kernel, --profile, --loop-bound, --take, ...)")


def _usage(message: str) -> click.UsageError:
    """Return an error that points to the help of the command."""
    return click.UsageError(message, click.get_current_context(silent=True))


def kernel_question(
    source: str,
    input_format: str | None = None,
    *,
    warps: range | None = None,
    blocks_per_sm: int | None = None,
    dynamic_shared: int | None = None,
    kernel: str | None = None,
    profile: str = PROFILE,
    classes: Path | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[str] = (),
    trust_bounds: bool = False,
    param: Sequence[str] = (),
    block: str | None = None,
    grid: str | None = None,
    take: Sequence[str] = (),
    trace: Path | None = None,
    paths: Literal["automaton", "single"] | None = None,
    dependences: str | None = None,
    latencies: Sequence[str] = (),
    arch: str | None = None,
    keep_ptx: Path | None = None,
) -> "KernelQuestion":
    """What the options of these names ask; files that they name are read, and the standard input, but no kernel file.

    Raises:
        InputError: an option or a file that is not understood, or a source that is no kernel file.
    """
    from makespan.kernels import flow, ptx
    from makespan.kernels.question import KernelQuestion

    kind_of_source(source, input_format)
    own = {} if classes is None else ptx.read_classes(classes)
    return KernelQuestion(
        ptx.parse(ptx.decode(_stdin("PTX file"), "<stdin>"), "<stdin>") if source == "-" else Path(source),
        entry=kernel,
        launch=flow.launch(block, grid, param, named=option_name),
        warps=warps,
        blocks_per_sm=blocks_per_sm,
        dynamic_shared=dynamic_shared,
        loop_bounds=flow.loop_bounds(loop_bounds, trusted=trust_bounds),
        classes=ptx.Classes(profile, own, unknown),
        take=flow.parse_takes(take),
        trace=None if trace is None else flow.read_trace(trace),
        paths=paths,
        dependences=None if dependences is None else ptx.Dependences(dependences),
        latencies=given_latencies(latencies),
        arch=arch,
        keep_ptx=keep_ptx,
        named=option_name,
    )


def chosen_kernels(module: "Module", name: str | None) -> "Sequence[Kernel]":
    """Return the kernel of this name, or all, of which there is at least one.

    Raises:
        InputError: there is none.
    """
    return (module.kernel(name),) if name is not None or not module.kernels else module.kernels


def kind_of_source(source: str, input_format: str | None) -> str:
    """Return the suffix of SOURCE or, for '-', the one of the format that is stated."""
    if source == "-":
        if input_format is None:
            raise InputError(f"SOURCE '-' needs --input-format {'|'.join(FORMATS)}")
        return f".{input_format}"
    if input_format is not None:
        raise InputError("--input-format is for SOURCE '-'; a file is known by its suffix")
    suffix, known = Path(source).suffix, (*kernel_file.KINDS, *strings.SUFFIXES)
    if suffix not in known and not kernel_file.is_kernel(source):
        expected = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(f"{source}: unknown kind of file; expected {expected} (or give --string)")
    return suffix


def _instance_file(source: str, suffix: str) -> tuple[NamedInstance, ...]:
    if source == "-":
        text = decode_text(_stdin("file of instances"), "file of instances", "<stdin>")
        return strings.parse_instances(text, "<stdin>", suffix)
    return strings.read_instances(Path(source))


def _stdin(what: str) -> bytes:
    claim_input(sys.stdin.buffer)
    return read_stream(sys.stdin.buffer, what, MAX_STDIN_BYTES, "<stdin>")
