"""`makespan measure memory` and its neighbours: programs that measure, their samples, and the numbers of models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, stack
from makespan.cli.output import TEXT, format_option, render
from makespan.cli.parameters import FILE, choice
from makespan.estimates.commands.methods import read_characteristics, table_options
from makespan.estimates.microbench import fit, on_opencl, programs, samples
from makespan.estimates.microbench.fit import Parameter
from makespan.estimates.microbench.samples import MicrobenchSample, SampleColumns
from makespan.host.errors import InputError
from makespan.kernels import kernel_file
from makespan.model.machine.values import shown

if TYPE_CHECKING:
    from makespan.estimates.opencl import Opened
    from makespan.model.machine.gpus import Gpu


def _description(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    del context, parameter
    if path is not None and path.suffix != ".toml":
        raise InputError(f"--gpu-out {shown(str(path))}: the name must end in .toml, or --gpu cannot read it")
    return path


options = stack(
    choice("--emit", "cuda opencl ptx", "write the programs that measure", default=False),
    click.option("-o", "--output", "target", type=FILE, metavar="DIR|FILE", help="folder, or file of samples"),
    click.option("--fit", type=FILE, metavar="SAMPLES.csv", help="parameters from samples"),
    click.option("--gpu", metavar="NAME|FILE.toml", help="the description that the fit completes"),
    click.option("--gpu-out", type=FILE, callback=_description, metavar="FILE.toml", help="write it, completed"),
    format_option(what="of the fit"),
    click.option("--force", is_flag=True, help="take times that are on no line"),
)
run_options = stack(
    click.option("--run", is_flag=True, help="measure on an OpenCL device of this computer, and write samples"),
    click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="number of the OpenCL device"),
)
warp_size_option = click.option(
    "--warp-size", type=click.IntRange(1, 1024), default=32, show_default=True, help="of --emit and --run"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobenchOptions:
    """The options of a microbenchmark, of which exactly one of `emit`, `run` and `fit` is given."""

    emit: Any
    target: Path | None
    fit: Path | None
    gpu: str | None
    gpu_out: Path | None
    output: str
    force: bool
    run: bool | None = None
    device: int = 0

    def __post_init__(self) -> None:
        ways = {"emit": self.emit is not None, "run": self.run, "fit": self.fit is not None}
        if sum(map(bool, ways.values())) != 1:
            raise InputError(f"give one of {', '.join(f'--{name}' for name, way in ways.items() if way is not None)}")
        if self.fit is None and (self.gpu is not None or self.gpu_out is not None or self.force):
            raise InputError("--gpu, --gpu-out and --force are for --fit")
        if self.fit is not None and self.target is not None:
            raise InputError("-o is for --emit and --run; a fit is written with --gpu-out FILE.toml")

    def needs_gpu(self, of_what: str) -> None:
        """Refuse a fit without the description of what was measured."""
        if self.fit is not None and self.gpu is None:
            raise InputError(f"--gpu is missing: the description of what was measured ({of_what})")


@click.command(
    "memory",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure memory --emit cuda -o bench",
        "makespan measure memory --fit memory.csv --gpu quadro-fx5600 --gpu-out mine.toml",
    ),
)
@options
@run_options
@warp_size_option
@choice("--latency", "chase sum", "loads whose addresses were loaded, or the sum of the slides")
@choice(
    "--method",
    "slope single whole-gpu",
    "slopes; one walk over its length for the latency; full grids for the departure delays",
)
def memory(warp_size: int, latency: Any, method: Any, **given: Any) -> None:
    """Measure the memory parameters of hong-kim: write the programs, run them, or fit what they measured."""
    asked, plan = MicrobenchOptions(**given), programs.MemoryPlan(warp_size, latency=latency)
    asked.needs_gpu("warp size, clock")
    _benchmark(
        asked,
        samples.MEMORY,
        sources=lambda language: programs.memory_source(language, plan),
        fitted=lambda found, gpu, source: fit.fit_memory(found, gpu, source, method=method, force=asked.force),
        measured=lambda device: on_opencl.measure_memory(device, plan),
    )


@click.command("throughput", cls=HelpCommand, epilog=examples("makespan measure throughput --emit opencl -o bench"))
@options
@run_options
def throughput(**given: Any) -> None:
    """Measure the throughputs of hong-kim: write the programs, run them, or fit what they measured."""
    asked = MicrobenchOptions(**given)
    asked.needs_gpu("SMs and clock")
    _benchmark(
        asked,
        samples.THROUGHPUT,
        sources=programs.throughput_source,
        fitted=lambda found, gpu, source: fit.fit_throughput(found, gpu, source, force=asked.force),
        measured=on_opencl.measure_throughput,
    )


@click.command(
    "latency",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure latency --emit cuda -o bench",
        "makespan measure latency --fit latency.csv --gpu rtx-3070 --gpu-out mine.toml",
    ),
)
@options
def latency(**given: Any) -> None:
    """Measure latencies, issue delays and memory for kleimenov-popova: write the programs, or fit their samples.

    Samples are CSV: measure,name,count,cycles (or seconds) with measures latency, delay, memory and bandwidth. What
    cannot be measured so, as moves and branches, must be given.
    """
    asked = MicrobenchOptions(**given)
    _benchmark(
        asked,
        samples.INSTRUCTIONS,
        sources=programs.instructions_source,
        fitted=lambda found, gpu, source: fit.fit_instructions(found, gpu, source, force=asked.force),
    )


@click.command(
    "launch",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure launch --emit cuda -o bench",
        "makespan measure launch --fit launch.csv --gpu rtx-3070 --gpu-out mine.toml",
    ),
)
@options
@warp_size_option
def launch(warp_size: int, **given: Any) -> None:
    """Measure launch times for kleimenov-popova: write the programs, or fit a line for each size of the block.

    Samples are CSV: blocks,warps_per_block,seconds.
    """
    asked = MicrobenchOptions(**given)
    _benchmark(
        asked,
        samples.LAUNCH,
        sources=lambda language: programs.launch_source(language, warp_size=warp_size),
        fitted=lambda found, _, source: fit.fit_launch(found, source, force=asked.force),
    )


def _benchmark(
    asked: MicrobenchOptions,
    table: SampleColumns,
    *,
    sources: Callable[[Any], dict[str, str]],
    fitted: "Callable[[tuple[MicrobenchSample, ...], Gpu, str], tuple[Parameter, ...]]",
    measured: "Callable[[Opened], Iterable[MicrobenchSample]] | None" = None,
) -> None:
    """Write the programs, run them, or fit their samples, as the options ask.

    Args:
        table: of the samples.
        sources: the programs, by file, in CUDA or OpenCL; PTX is what a compiler makes of the former.
        fitted: what samples tell of a GPU, and the name of their source.
        measured: samples of an OpenCL device.
    """
    if asked.emit is not None:
        is_ptx = asked.emit == "ptx"
        for name, text in sources("cuda" if is_ptx else asked.emit).items():
            path = write_program(asked.target, name, text)
            click.echo(f"written: {path}")
            if is_ptx:
                kernel_file.read(path, keep_ptx=path.with_suffix(".ptx"))
                click.echo(f"written: {path.with_suffix('.ptx')}")
    elif asked.fit is not None:
        _fit(asked, asked.fit, table, fitted)
    elif measured is not None:
        _run(asked, table, measured)


def _fit(asked: MicrobenchOptions, path: Path, table: SampleColumns, fitted: Any) -> None:
    from makespan.host.output_file import check_writable, write_whole
    from makespan.model.machine.gpus import Gpu, find_gpu, gpu_text

    if asked.gpu_out is not None:
        check_writable(asked.gpu_out, "the GPU file")
    described = Gpu(path.stem, {}) if asked.gpu is None else find_gpu(asked.gpu, rewritten=True)
    parameters = fitted(samples.read(path, table), described, shown(path.name))
    if asked.gpu_out is not None:
        described = described.with_data({found.key: found.datum() for found in parameters})
        write_whole(asked.gpu_out, gpu_text(described).encode(), "the GPU file")
    said = render(
        asked.output,
        text=lambda: "\n".join(_lines(parameters)),
        data=lambda: {"schema": "makespan.microbench/1", "parameters": [found.document() for found in parameters]},
    )
    click.echo(said)
    if asked.gpu_out is not None and asked.output == TEXT:
        click.echo(f"GPU description: {asked.gpu_out}")


def _lines(parameters: Sequence[Parameter]) -> Iterator[str]:
    width = max(len(found.key) for found in parameters)
    for found in parameters:
        sure = "" if found.error is None else f"  +- {found.error:.3g}"
        line = "" if found.r_squared is None else f"  R^2 {float(found.r_squared):.6f}"
        yield f"{found.key:<{width}}  {float(found.value):>12.6g} {found.datum().unit}{sure}{line}  {found.note}"
        yield from (f"warning: {found.key}: {doubt}" for doubt in found.doubts)


def _run(asked: MicrobenchOptions, table: SampleColumns, measured: Any) -> None:
    from makespan.estimates.opencl import Opened
    from makespan.host.output_file import write_whole

    device = Opened(asked.device)
    text = samples.text(measured(device), table)
    if asked.target is None:
        click.echo(text, nl=False)
        return
    write_whole(asked.target, text.encode(), "the samples")
    click.echo(f"samples of {device.name}: {asked.target}")


def write_program(folder: Path | None, name: str, text: str) -> Path:
    """Return the path of a program that was written into a folder, which is made if need be.

    Raises:
        InputError: no folder, or one that cannot be written to.
    """
    from makespan.host.output_file import make_folder, write_whole

    if folder is None:
        raise InputError("-o is missing: the folder for the programs")
    make_folder(folder, "the programs")
    write_whole(folder / name, text.encode(), "the program")
    return folder / name


@click.command("dual-issue", cls=HelpCommand, epilog=examples("makespan measure dual-issue --import tesla-k20"))
@table_options
@click.option("--machine-out", type=FILE, metavar="FILE.toml", help="write a machine file")
@choice("--emit", "portable", "write programs instead", default=False)
@click.option("-o", "--output", "folder", type=FILE, metavar="DIR", help="where to write them")
@format_option()
def dual_issue(machine_out: Path | None, emit: str | None, folder: Path | None, output: str, **table: Any) -> None:
    """Tell register banks, control codes and the best order of single and dual issues from a table of measurements.

    With --emit, kernels are written instead: the latency and throughput test for any CUDA GPU.
    """
    from makespan.estimates.report import dual_issue as report
    from makespan.host.output_file import check_writable, write_whole

    if emit is not None:
        paths = [write_program(folder, name, content) for name, content in programs.ffma_source().items()]
        click.echo(f"{len(paths)} files in {folder}")
        return
    if folder is not None:
        raise InputError("-o says where to write programs; add --emit portable")
    if machine_out is not None:
        check_writable(machine_out, "the machine file")
    found = read_characteristics(**table)
    if machine_out is not None:
        write_whole(machine_out, report.machine_file(found).encode(), "the machine file")
    click.echo(render(output, text=lambda: report.text(found), data=lambda: report.document(found)))
