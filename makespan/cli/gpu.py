"""`makespan solve --gpu`: a launch on a whole GPU, or on some of its SMs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import option_name, section
from makespan.cli.output import QUIET, all_written, refuse_twice, remark, rendered
from makespan.cli.running import DONE, GATE, INTERRUPTED, UNDECIDED, attended
from makespan.cli.source import (
    check_no_instance,
    check_source,
    check_string,
    given_machine,
    given_options,
    kernel_question,
    kind_of_source,
    promised,
)
from makespan.cli.window import check_window, window, written
from makespan.host.errors import InputError, MissingInput, MissingInputsError
from makespan.model import strings
from makespan.model.deadline import Deadline, read_deadline
from makespan.model.gpu import GpuInstance, GpuResult
from makespan.model.machine import PAPER, GivenRange, Machine, given_intervals, gpus, narrow_intervals
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import MAX_SMS, check_whole
from makespan.model.result import Status
from makespan.model.units import frequency
from makespan.proof.engines import Limits
from makespan.report.gpu import text
from makespan.report.gpu.bundle import write as write_bundle
from makespan.report.gpu.clock import Clock
from makespan.report.gpu.document import document
from makespan.report.gpu.picture import draw_gpu
from makespan.report.lines import terminal_width
from makespan.report.pictures import PICTURES, check_picture_path
from makespan.report.result.bundle import check_bundle_path
from makespan.report.result.document import deadline_document
from makespan.report.result.text import deadline as in_time
from makespan.report.result.text import shortest
from makespan.report.schedule.file import ENDS

gpu_options = section(
    "Whole GPU",
    click.option(
        "--gpu", metavar="NAME|FILE.toml", help="all blocks of --grid on a whole GPU, a shipped one or that of a file"
    ),
    click.option("--sms", metavar="N|NAME", help="on so many SMs, or those of a MIG instance [default: all of --gpu]"),
)


_LAUNCHES = ".toml"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is launched on SMs; `card` is the GPU that they belong to, if that is known."""

    instance: GpuInstance
    card: Gpu | None
    clock: Clock | None
    gate: Deadline | None

    @property
    def name(self) -> str | None:
        """Of the GPU."""
        return None if self.card is None else self.card.name


def asked(
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
    **options: Any,
) -> Asked:
    """Return the launch that `source_options` and `gpu_options` ask for, or all of a file; all are checked first.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no launch.
    """
    from makespan.kernels.dram import check_clock
    from makespan.kernels.gpu_question import as_given

    check_source(source, letters)
    check_no_instance(options.pop("instance", None))
    kind = "" if source is None else kind_of_source(source, input_format)
    if kind in strings.SUFFIXES and (kind != _LAUNCHES or source == "-"):
        raise InputError(
            f"{source}: instances are about one SM: --gpu and --sms are for a kernel, --string, or a file of launches,"
            f" whose name ends in {_LAUNCHES}"
        )
    card = None if gpu is None else gpus.find_gpu(gpu)
    count = _count(card, sms)
    named, intervals = given_machine(capacity, machine), given_intervals(holds)
    if kind == _LAUNCHES:
        if warps is not None or assignment is not None or given_options(options):
            raise InputError(
                f"{source}: a file of launches says itself what is launched: no options for kernels (--block, --grid,"
                " --latency, ...) and no --assignment beside it"
            )
        instance = _of_file(Path(str(source)), named, intervals, count, card)
    elif letters is None:
        from makespan.kernels.gpu_question import of_kernel
        from makespan.kernels.question import launched

        kernel = launched(kernel_question(str(source), input_format, warps=warps, **options), named, card)
        chosen = named or (kernel.default_machine if card is None else card.machine)
        instance = of_kernel(kernel, narrow_intervals(chosen, intervals), sms=count, card=card)
    else:
        chosen = narrow_intervals(named or (PAPER if card is None else card.machine), intervals)
        instance = _of_string(letters, warps, chosen, count, card, options)
    instance = as_given(instance, named, card)
    instance = replace(instance, machine=promised(instance.machine, scheduler, assignment))
    ticks = _clock(card, clock)
    if instance.dram:
        check_clock(card, ticks.hertz if ticks else None)
    return Asked(
        instance, card, ticks, None if deadline is None else read_deadline(deadline, ticks.hertz if ticks else None)
    )


def _of_file(
    path: Path, named: Machine | None, intervals: Mapping[str, GivenRange], sms: int, card: Gpu | None
) -> GpuInstance:
    """Launches that share the GPU, on one machine."""
    from makespan.kernels import launch_file as launches
    from makespan.kernels.gpu_question import of_kernels

    found = launches.read(path, named, card)
    defaults = () if named or card else dict.fromkeys(launch.kernel.default_machine for launch in found.launches)
    if len(defaults) > 1:
        raise InputError(f"{path}: the launches are for different machines: say which one with --machine or --gpu")
    chosen = named or (card.machine if card else next(iter(defaults)))
    try:
        return of_kernels(found.launches, narrow_intervals(chosen, intervals), sms=sms, card=card, room=found.room)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None


def _count(card: Gpu | None, sms: str | None) -> int:
    """Return how many SMs take part."""
    if card is not None:
        return card.count_sms(sms)
    if sms is None or not (sms.isascii() and sms.isdecimal() and len(sms) <= 40):
        raise InputError(f"--sms {sms}: without --gpu only a number of SMs is known, such as 4")
    check_whole(count := int(sms), "--sms: the number of SMs", MAX_SMS)
    return count


def _clock(card: Gpu | None, clock: str | None) -> Clock | None:
    """What is given, or what the vendor of the GPU promises."""
    if clock is not None:
        return Clock(frequency(clock, "--clock"), "--clock")
    if card is None or card.missing("base_clock_ghz"):
        return None
    status = card.datum("base_clock_ghz").status
    return Clock(card.hertz("base_clock_ghz"), f"base clock of {card.name}: {status}")


def _of_string(
    letters: str, warps: range | None, machine: Machine, sms: int, card: Gpu | None, options: dict[str, Any]
) -> GpuInstance:
    """Blocks of warps that all execute one string."""
    from makespan.kernels import flow
    from makespan.kernels.gpu_question import GRID, RESIDENT, dispatch_cycles, given_resident

    check_string(options, {"blocks_per_sm", "grid"})
    grid, resident = flow.launch(None, options["grid"], named=option_name).grid, options["blocks_per_sm"]
    needed = ((MissingInput("warps", "N", "the warps of a block"), warps), (GRID, grid), (RESIDENT, resident))
    if missing := [each for each, value in needed if value is None]:
        raise MissingInputsError.of("--string", missing, option_name)
    if warps is None or grid is None or len(warps) != 1:
        raise InputError("--warps: of a GPU one launch is asked for: one number of warps of a block")
    resident = given_resident(resident, warps[0], card, option_name)
    block = ((strings.parse_string(letters, machine), warps[0]),)
    dispatch = dispatch_cycles(card)
    return GpuInstance.of(block, prod(grid), machine, sms=sms, resident=resident, dispatch=dispatch)


def is_asked(options: Mapping[str, Any]) -> bool:
    """Return whether the options are about a whole GPU, and not about one SM."""
    return options["gpu"] is not None or options["sms"] is not None


def refuse(output: str, backend: str, *, timeline: bool) -> None:
    """Refuse what is about one SM alone.

    Raises:
        InputError: an option for such a question.
    """
    others = {"--timeline": timeline, f"--backend {backend}": backend != "auto", "--format csv": output == "csv"}
    if said := [name for name, is_given in others.items() if is_given]:
        raise InputError(f"{said[0]} is for one SM: leave it out, or --gpu and --sms")


@dataclass(frozen=True, slots=True)
class Files:
    """What is left of a result: pictures of the witness, of some of its cycles or of all, and the evidence."""

    gantt: tuple[Path, ...] = ()
    bundle: Path | None = None
    first: int | None = None
    end: int | None = None

    def check(self) -> None:
        """Refuse before the work what would fail after it.

        Raises:
            InputError: what is no picture, cannot be written, is there twice, or would have no cycle.
        """
        for path in self.gantt:
            if path.suffix.lower() in set(ENDS) - set(PICTURES):
                raise InputError(
                    f"{path}: schedules as data are of one SM; of a whole GPU it is a picture, whose name must end in"
                    " .png, .svg or .pdf"
                )
            check_picture_path(path)
        if self.bundle is not None:
            check_bundle_path(self.bundle)
        refuse_twice((*self.gantt, *((self.bundle,) if self.bundle else ())))
        check_window(self.gantt, self.first, self.end)

    def write(self, result: GpuResult) -> list[str]:
        """Return a line for each file that is written: no picture of a part that begins after the schedule has ended.

        Raises:
            InputError: a file that cannot be written; the others are.
        """
        part, drawn = None, self.gantt
        if result.witness is not None and (self.first is not None or self.end is not None):
            part = window(result.witness.makespan, self.first, self.end)
            drawn = () if part is None else drawn
        writing = [partial(draw_gpu, result, path, window=part) for path in drawn]
        all_written([*writing, partial(write_bundle, result, self.bundle)] if self.bundle else writing)
        return [*written(drawn), *([f"bundle: {self.bundle}"] if self.bundle else [])]


def answer(asked: Asked, limits: Limits, output: str, files: Files, *, best_case: bool) -> int:
    """Solve, print, and leave files; the exit code."""
    from makespan.proof.engines.gpu import solve_gpu

    if files.gantt and len(asked.instance.grids) > 1:
        raise InputError("--gantt draws the blocks of one launch: leave it out, or ask for each launch alone")
    with attended(limits, quiet=output == QUIET):
        result = solve_gpu(asked.instance, best_case=best_case, limits=limits)
    click.echo(_printed(asked, result, output))  # first: a file that fails costs nobody the answer
    for line in files.write(result):
        if output != QUIET:
            remark(line, output)
    if result.interrupted:
        return INTERRUPTED
    if asked.gate is not None:
        return GATE[asked.gate.outcome(result.bounds)]
    return DONE if result.status is Status.EXACT else UNDECIDED


def _printed(asked: Asked, result: GpuResult, output: str) -> str:
    gate, name = asked.gate, asked.name
    remarks = [] if gate is None else [in_time(gate, result.bounds, result.caveats)]
    return rendered(
        output,
        text=lambda: text.report(result, remarks, name=name, clock=asked.clock, width=terminal_width()),
        data=lambda: told(asked, result),
        quiet=lambda: "\n".join([str(result), *shortest(result.best_case), *remarks]),
    )


def told(asked: Asked, result: GpuResult) -> dict[str, Any]:
    """Return the document of a launch."""
    gated = {} if asked.gate is None else {"deadline": deadline_document(asked.gate, result.bounds)}
    return {**document(result, name=asked.name, clock=asked.clock), **gated}
