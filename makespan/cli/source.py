"""From SOURCE and its options to what is asked: instances for one SM, or the question about a kernel."""

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import option_name
from makespan.cli.options import FORMATS
from makespan.host.errors import InputError
from makespan.host.text_file import claim_input, decode_text, read_stream
from makespan.kernels import kernel_file, options
from makespan.kernels.options import given_options
from makespan.model import strings
from makespan.model.instance import Instance
from makespan.model.machine import (
    PAPER,
    Machine,
    SchedulerPromise,
    assign_modulo,
    find_machine,
    given_intervals,
    narrow_intervals,
)
from makespan.model.strings import NamedInstance

if TYPE_CHECKING:
    from makespan.kernels.question import Kernel, KernelQuestion, Module

MAX_STDIN_BYTES = strings.MAX_FILE_BYTES


def instances(
    source: str | None,
    letters: str | None,
    warps: range | None,
    input_format: str | None,
    capacity: Machine | None,
    machine: str | None,
    holds: Sequence[str] = (),
    instance: str | None = None,
    **about: Any,
) -> tuple[NamedInstance, ...]:
    """Return the instances that `source_options` ask for; all options are checked first.

    Args:
        about: the other options of a kernel, by keyword.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    kind = source_kind(source, letters, input_format)
    if kind in strings.SUFFIXES:
        if warps is not None or capacity is not None or machine is not None or holds:
            raise InputError(
                "an instance file says warps and capacity itself: no --warps, --capacity, --machine, --hold beside it"
            )
        if given_options(about):
            raise InputError("an instance file takes no options for kernels (--kernel, --profile, --loop-bound, ...)")
        found = _instance_file(str(source), kind)
        return found if instance is None else (strings.choose_instance(found, instance, str(source)),)
    check_no_instance(instance)
    named, intervals = given_machine(capacity, machine), given_intervals(holds)
    if letters is None:  # the parsers of kernels load slowly: a string does without them
        from makespan.kernels.question import launch_kernel

        kernel = launch_kernel(_question(str(source), {"warps": warps, **about}), named)
        chosen = narrow_intervals(named or kernel.default_machine, intervals)
        return tuple(NamedInstance(each, str(source)) for each in kernel.instances(chosen))
    chosen = narrow_intervals(named or PAPER, intervals)
    check_string(about, {"blocks_per_sm"})
    if warps is None:
        raise InputError("--warps is missing: how many warps run?")
    # Letters are classes of the machine, so it must be known before the string is read.
    program, blocks = strings.parse_string(letters, chosen), about.get("blocks_per_sm") or 1
    return tuple(
        NamedInstance(Instance.of(program, count * blocks, chosen, blocks=blocks), "--string") for count in warps
    )


def kernel_question(source: str, input_format: str | None = None, **about: Any) -> "KernelQuestion":
    """Return the question that options ask about a kernel; files that they name are read, but no kernel file.

    Args:
        about: options of a kernel by keyword; what is missing is not given.

    Raises:
        InputError: an option or a file that is not understood, or a source that is no kernel file.
    """
    _suffix(source, input_format)
    return _question(source, about)


def _question(source: str, about: Mapping[str, Any]) -> "KernelQuestion":
    from makespan.kernels import ptx

    file = ptx.parse(ptx.decode(_stdin("PTX file"), "<stdin>"), "<stdin>") if source == "-" else Path(source)
    return options.kernel_question(file, about, option_name)


def chosen_kernels(module: "Module", name: str | None) -> "Sequence[Kernel]":
    """Return the kernel of this name, or all, of which there is at least one.

    Raises:
        InputError: there is none.
    """
    return (module.kernel(name),) if name is not None or not module.kernels else module.kernels


# What a source and the options beside it may be


def source_kind(source: str | None, letters: str | None, input_format: str | None) -> str:
    """Return the suffix of SOURCE or, for standard input, that of its format; nothing for a string.

    Raises:
        UsageError: neither a SOURCE nor a string, or both.
        InputError: a source of an unknown kind, or a format where there is none to state.
    """
    check_source(source, letters)
    return "" if source is None else _suffix(source, input_format)


def check_source(source: str | None, letters: str | None) -> None:
    """Refuse a question without a SOURCE and a string, and one with both.

    Raises:
        UsageError: it leads to the help of the command.
    """
    context = click.get_current_context(silent=True)
    if source is None and letters is None:
        said = "what is to be solved? give SOURCE, a kernel or a file of instances, or --string LETTERS"
        raise click.UsageError(said, context)
    if source is not None and letters is not None:
        raise click.UsageError(f"SOURCE ({source}) and --string exclude each other: give one of them", context)


def _suffix(source: str, input_format: str | None) -> str:
    if source == "-":
        if input_format is None:
            raise InputError(f"SOURCE '-' needs --input-format {'|'.join(FORMATS)}")
        return f".{input_format}"
    if input_format is not None:
        raise InputError("--input-format is for SOURCE '-'; a file is known by its suffix")
    suffix, known = Path(source).suffix, (*kernel_file.KINDS, *strings.SUFFIXES)
    # A program or a library with kernels in it may have any suffix: its first bytes tell.
    if suffix not in known and not kernel_file.is_kernel(source):
        expected = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(f"{source}: unknown kind of file; expected {expected} (or give --string)")
    return suffix


def check_no_instance(instance: str | None) -> None:
    """Refuse to choose an instance where the source is no file of instances.

    Raises:
        InputError: one is chosen.
    """
    if instance is not None:
        raise InputError(f"--instance {instance} is for a file of instances ({' or '.join(strings.SUFFIXES)})")


def check_string(about: Mapping[str, Any], allowed: Set[str]) -> None:
    """Refuse options of kernels beside a string, which says all but its warps and what is `allowed` itself.

    Raises:
        InputError: one is given.
    """
    given = given_options(about)
    if given & {"latencies", "dependences"}:
        raise InputError(
            "--latency and --dependences are for kernels; in a string write what an instruction needs, and its latency,"
            " behind its letter, such as L()@400..900 C(1)"
        )
    if given - allowed == {"grid"}:  # the one option that another command line would take
        raise InputError("--grid of a --string is for a whole GPU: leave it out, or use solve with --gpu or --sms")
    if given - allowed:
        raise InputError("--string takes no options for kernels (--kernel, --profile, --loop-bound, --take, ...)")


def given_machine(capacity: Machine | None, machine: str | None) -> Machine | None:
    """Return the machine that is asked for; None where nothing is said.

    Raises:
        InputError: two of them, or a file that is none.
    """
    if capacity is not None and machine is not None:
        raise InputError("--capacity and --machine exclude each other")
    return capacity if machine is None else find_machine(machine).machine


def promised_machine(machine: Machine, scheduler: str | None, assignment: str | None) -> Machine:
    """Return the machine with what the options `--scheduler` and `--assignment` promise of it.

    Raises:
        InputError: partitions by numbers of warps on a machine without partitions.
    """
    found = machine if assignment is None else assign_modulo(machine)
    return found if scheduler is None else replace(found, scheduler=SchedulerPromise(scheduler))


def _instance_file(source: str, suffix: str) -> tuple[NamedInstance, ...]:
    if source == "-":
        text = decode_text(_stdin("file of instances"), "file of instances", "<stdin>")
        return strings.parse_instances(text, "<stdin>", suffix)
    return strings.read_instances(Path(source))


def _stdin(what: str) -> bytes:
    claim_input(sys.stdin.buffer)  # outputs must not overwrite what is read
    return read_stream(sys.stdin.buffer, what, MAX_STDIN_BYTES, "<stdin>")
