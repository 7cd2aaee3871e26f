"""What the microbenchmarks have in common: programs, samples, and descriptions completed by a fit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import stack
from makespan.cli.output import TEXT, format_option, render
from makespan.cli.parameters import choice
from makespan.host.errors import InputError
from makespan.kernels import kernel_file
from makespan.model.machine.values import shown

if TYPE_CHECKING:
    from makespan.estimates.microbench.parameter import Parameter
    from makespan.estimates.microbench.samples import MicrobenchSample, SampleColumns
    from makespan.estimates.opencl import Opened
    from makespan.model.machine.gpus import Gpu

_PATH = click.Path(path_type=Path)


def _description(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    del context, parameter
    if path is not None and path.suffix != ".toml":
        raise InputError(f"--gpu-out {shown(str(path))}: the name must end in .toml, or --gpu cannot read it")
    return path


options = stack(
    choice("--emit", "cuda opencl ptx", "write the programs that measure", default=False),
    click.option("-o", "--output", "target", type=_PATH, metavar="DIR|FILE", help="folder, or file of samples"),
    click.option("--fit", type=_PATH, metavar="SAMPLES.csv", help="parameters from samples"),
    click.option("--gpu", metavar="NAME|FILE.toml", help="the description that the fit completes"),
    click.option("--gpu-out", type=_PATH, callback=_description, metavar="FILE.toml", help="write it, completed"),
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


def benchmark(
    asked: MicrobenchOptions,
    table: "SampleColumns",
    *,
    programs: Callable[[Any], dict[str, str]],
    fit: "Callable[[tuple[MicrobenchSample, ...], Gpu, str], tuple[Parameter, ...]]",
    measured: "Callable[[Opened], Iterable[MicrobenchSample]] | None" = None,
) -> None:
    """Write the programs, run them, or fit their samples, as the options ask.

    Args:
        table: of the samples.
        programs: the files, by name, in CUDA or OpenCL; PTX is what a compiler makes of the former.
        fit: what samples tell of a GPU, and the name of their source.
        measured: samples of an OpenCL device.
    """
    if asked.emit is not None:
        is_ptx = asked.emit == "ptx"
        for name, text in programs("cuda" if is_ptx else asked.emit).items():
            path = write_program(asked.target, name, text)
            click.echo(f"written: {path}")
            if is_ptx:
                kernel_file.read(path, keep_ptx=path.with_suffix(".ptx"))
                click.echo(f"written: {path.with_suffix('.ptx')}")
    elif asked.fit is not None:
        _fit(asked, asked.fit, table, fit)
    elif measured is not None:
        _run(asked, table, measured)


def _fit(asked: MicrobenchOptions, path: Path, table: "SampleColumns", fit: Any) -> None:
    from makespan.estimates.microbench import samples
    from makespan.host.output_file import check_writable, write_whole
    from makespan.model.machine.gpus import Gpu, find_gpu, gpu_text

    if asked.gpu_out is not None:
        check_writable(asked.gpu_out, "the GPU file")
    described = Gpu(path.stem, {}) if asked.gpu is None else find_gpu(asked.gpu, rewritten=True)
    parameters = fit(samples.read(path, table), described, shown(path.name))
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


def _lines(parameters: "Sequence[Parameter]") -> Iterator[str]:
    width = max(len(found.key) for found in parameters)
    for found in parameters:
        sure = "" if found.error is None else f"  +- {found.error:.3g}"
        line = "" if found.r_squared is None else f"  R^2 {float(found.r_squared):.6f}"
        yield f"{found.key:<{width}}  {float(found.value):>12.6g} {found.datum().unit}{sure}{line}  {found.note}"
        yield from (f"warning: {found.key}: {doubt}" for doubt in found.doubts)


def _run(asked: MicrobenchOptions, table: "SampleColumns", measured: Any) -> None:
    from makespan.estimates.microbench import samples
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
