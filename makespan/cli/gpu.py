"""`makespan solve --gpu`: a launch on a whole GPU, or on some of its SMs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import option_name
from makespan.cli.output import QUIET, remark, render
from makespan.cli.running import exit_code, interruptible
from makespan.cli.source import (
    check_no_instance,
    check_string,
    given_machine,
    kernel_question,
    promised_machine,
    source_kind,
)
from makespan.cli.window import ResultFiles
from makespan.host.errors import InputError, MissingInput, MissingInputsError
from makespan.kernels.options import given_options
from makespan.model import strings
from makespan.model.deadline import Deadline, read_deadline
from makespan.model.gpu import GpuInstance, GpuResult
from makespan.model.machine import PAPER, Machine, given_intervals, gpus, narrow_intervals
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import MAX_SMS, check_whole
from makespan.model.units import frequency
from makespan.proof.engines import Limits
from makespan.report.gpu import text
from makespan.report.gpu.bundle import write_gpu_bundle as write_bundle
from makespan.report.gpu.document import GpuClock, gpu_result_document
from makespan.report.gpu.picture import draw_gpu
from makespan.report.lines import terminal_width
from makespan.report.pictures import PICTURES, check_picture_path
from makespan.report.result.document import deadline_document
from makespan.report.result.text import best_case_lines
from makespan.report.result.text import deadline_verdict as in_time
from makespan.report.schedule.file import ENDS

_LAUNCHES = ".toml"


@dataclass(frozen=True, slots=True)
class GpuLaunch:
    """A question about a GPU: all blocks that are launched on its SMs.

    Args:
        card: the GPU that the SMs belong to; None if that is not known.
        clock: of the SM; None where nothing tells it.
        gate: the deadline; None without one.
    """

    instance: GpuInstance
    card: Gpu | None
    clock: GpuClock | None
    gate: Deadline | None

    @property
    def name(self) -> str | None:
        """Return the name of the GPU."""
        return None if self.card is None else self.card.name


def gpu_launch(
    source: str | None,
    letters: str | None,
    warps: range | None,
    input_format: str | None,
    capacity: Machine | None,
    machine: str | None,
    holds: Sequence[str] = (),
    *,
    gpu: str | None,
    sms: str | None,
    scheduler: str | None,
    assignment: str | None,
    deadline: str | None,
    clock: str | None,
    instance: str | None = None,
    **about: Any,
) -> GpuLaunch:
    """Return the launch that `source_options` and `gpu_options` ask for, or all of a file; options are checked first.

    Args:
        about: the other options of a kernel, by keyword.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no launch.
    """
    kind = source_kind(source, letters, input_format)
    check_no_instance(instance)
    if kind in strings.SUFFIXES and (kind != _LAUNCHES or source == "-"):
        raise InputError(
            f"{source}: instances are about one SM: --gpu and --sms are for a kernel, --string, or a file of launches,"
            f" whose name ends in {_LAUNCHES}"
        )
    card = None if gpu is None else gpus.find_gpu(gpu)
    count = _count(card, sms)
    # What can be refused without reading a kernel is refused before: a compiler may take long.
    named, intervals = given_machine(capacity, machine), given_intervals(holds)
    if kind == _LAUNCHES:
        from makespan.kernels.gpu_question import shared_gpu

        if warps is not None or assignment is not None or given_options(about):
            raise InputError(
                f"{source}: a file of launches says itself what is launched: no options for kernels (--block, --grid,"
                " --latency, ...) and no --assignment beside it"
            )
        found = shared_gpu(Path(str(source)), named, card, sms=count, holds=intervals)
    elif letters is None:
        from makespan.kernels.gpu_question import gpu_instance

        question = kernel_question(str(source), input_format, warps=warps, **about)
        found = gpu_instance(question, card, sms=count, machine=named, holds=intervals)
    else:
        chosen = narrow_intervals(named or (PAPER if card is None else card.machine), intervals)
        found = _of_string(letters, warps, chosen, named, count, card, about)
    found = replace(found, machine=promised_machine(found.machine, scheduler, assignment))
    # A deadline in time is checked last: the clock may be that of the GPU.
    ticks = _clock(card, clock)
    hertz = ticks.hertz if ticks else None
    if found.dram:
        from makespan.kernels.dram import check_clock

        check_clock(card, hertz)
    return GpuLaunch(found, card, ticks, None if deadline is None else read_deadline(deadline, hertz))


def _count(card: Gpu | None, sms: str | None) -> int:
    """Return how many SMs take part; without a GPU, only their number says it."""
    if card is not None:
        return card.count_sms(sms)
    if sms is None or not (sms.isascii() and sms.isdecimal() and len(sms) <= 40):  # names of MIG need a GPU
        raise InputError(f"--sms {sms}: without --gpu only a number of SMs is known, such as 4")
    check_whole(count := int(sms), "--sms: the number of SMs", MAX_SMS)
    return count


def _clock(card: Gpu | None, clock: str | None) -> GpuClock | None:
    """Return the clock that is given, else the base clock that the vendor of the GPU promises, if any."""
    if clock is not None:
        return GpuClock(frequency(clock, "--clock"), "--clock")
    if card is None or card.missing("base_clock_ghz"):
        return None
    status = card.datum("base_clock_ghz").status
    return GpuClock(card.hertz("base_clock_ghz"), f"base clock of {card.name}: {status}")


def _of_string(
    letters: str,
    warps: range | None,
    machine: Machine,
    named: Machine | None,
    sms: int,
    card: Gpu | None,
    about: Mapping[str, Any],
) -> GpuInstance:
    """Return blocks of warps that all execute one string, on SMs of a machine; `named` is the one that is given."""
    from makespan.kernels import flow
    from makespan.kernels.gpu_question import GRID, as_given, dispatch_cycles
    from makespan.kernels.residency import RESIDENT, given_resident

    check_string(about, {"blocks_per_sm", "grid"})
    grid, resident = flow.launch(None, about["grid"], named=option_name).grid, about["blocks_per_sm"]
    needed = ((MissingInput("warps", "N", "the warps of a block"), warps), (GRID, grid), (RESIDENT, resident))
    if missing := [each for each, value in needed if value is None]:  # all in one message
        raise MissingInputsError.of("--string", missing, option_name)
    if warps is None or grid is None or len(warps) != 1:
        raise InputError("--warps: of a GPU one launch is asked for: one number of warps of a block")
    resident = given_resident(resident, warps[0], None if card is None else card.limits, option_name)
    block = ((strings.parse_string(letters, machine), warps[0]),)
    dispatch = dispatch_cycles(card)
    blocks = GpuInstance.of(block, prod(grid), machine, sms=sms, resident=resident, dispatch=dispatch)
    return as_given(blocks, named, card)


def is_about_gpu(options: Mapping[str, Any]) -> bool:
    """Return whether the options are about a whole GPU, and not about one SM."""
    return options["gpu"] is not None or options["sms"] is not None


def refuse_one_sm(output: str, backend: str, *, timeline: bool) -> None:
    """Refuse options that are about one SM alone.

    Raises:
        InputError: an option for such a question.
    """
    others = {"--timeline": timeline, f"--backend {backend}": backend != "auto", "--format csv": output == "csv"}
    if said := [name for name, is_given in others.items() if is_given]:
        raise InputError(f"{said[0]} is for one SM: leave it out, or --gpu and --sms")


def check_gpu_picture(path: Path) -> None:
    """Refuse a file that is no picture of a schedule of a whole GPU.

    Raises:
        InputError: a schedule as data, or what is no picture.
    """
    if path.suffix.lower() in set(ENDS) - set(PICTURES):
        raise InputError(
            f"{path}: schedules as data are of one SM; of a whole GPU it is a picture, whose name must end in"
            " .png, .svg or .pdf"
        )
    check_picture_path(path)


def print_answer(launch: GpuLaunch, limits: Limits, output: str, files: ResultFiles, *, best_case: bool) -> int:
    """Solve a launch, print the answer and write the files; return the exit code."""
    from makespan.proof.engines.gpu import solve_gpu

    if files.gantt and len(launch.instance.grids) > 1:
        raise InputError("--gantt draws the blocks of one launch: leave it out, or ask for each launch alone")
    with interruptible(limits, quiet=output == QUIET):
        result = solve_gpu(launch.instance, best_case=best_case, limits=limits)
    click.echo(_answer_text(launch, result, output))  # first: a file that fails must not cost the answer
    # Without a window the picture chooses what it draws of many waves.
    is_cut = files.first is not None or files.end is not None
    written = files.write(
        result.witness.makespan if result.witness and is_cut else None,
        lambda path, part: draw_gpu(result, path, window=part),
        partial(write_bundle, result),
    )
    for line in written:
        if output != QUIET:
            remark(line, output)
    return exit_code(result, gate=launch.gate)


def _answer_text(launch: GpuLaunch, result: GpuResult, output: str) -> str:
    gate, name = launch.gate, launch.name
    remarks = [] if gate is None else [in_time(gate, result.bounds, result.caveats)]
    return render(
        output,
        text=lambda: text.gpu_report(result, remarks, name=name, clock=launch.clock, width=terminal_width()),
        data=lambda: gpu_document(launch, result),
        quiet=lambda: "\n".join([str(result), *best_case_lines(result.best_case), *remarks]),
    )


def gpu_document(launch: GpuLaunch, result: GpuResult) -> dict[str, Any]:
    """Return the answer as `--format json` prints it."""
    gated = {} if launch.gate is None else {"deadline": deadline_document(launch.gate, result.bounds)}
    return {**gpu_result_document(result, name=launch.name, clock=launch.clock), **gated}
