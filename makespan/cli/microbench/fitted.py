"""What the microbenchmarks have in common: programs, samples, and descriptions completed by a fit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.source import stack
from makespan.errors import InputError
from makespan.machine.values import shown

if TYPE_CHECKING:
    from makespan.estimators.gpu import Gpu
    from makespan.estimators.parameter import Parameter


def _description(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """The name of a description, which is read again by its ending."""
    del context, parameter
    if path is not None and path.suffix != ".toml":
        raise InputError(f"--gpu-out {shown(str(path))}: the name must end in .toml, or --gpu cannot read it")
    return path


LANGUAGES = ("cuda", "opencl", "ptx")

emit_option = click.option("--emit", type=click.Choice(LANGUAGES), help="write the programs that measure")
run_options = stack(
    click.option("--run", is_flag=True, help="measure on an OpenCL device of this computer, and write samples"),
    click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="folder, or file of samples"),
    click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="number of the OpenCL device"),
)
fit_options = stack(
    click.option("--fit", type=click.Path(path_type=Path), metavar="SAMPLES.csv", help="figures from samples"),
    click.option("--gpu", metavar="NAME|FILE.toml", help="the description that the fit completes"),
    click.option(
        "--gpu-out",
        type=click.Path(path_type=Path),
        callback=_description,
        metavar="FILE.toml",
        help="write it, completed",
    ),
    click.option(
        "--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="of the fit"
    ),
)


def one_of(**given: bool) -> None:
    """Refuse none or several of these options."""
    if sum(given.values()) != 1:
        raise InputError(f"give one of {', '.join(f'--{name}' for name in given)}")


def show(gpu: "Gpu", parameters: tuple["Parameter", ...], gpu_out: Path | None, output: str) -> None:
    """Print what was fitted, and complete the description of the GPU by it."""
    from makespan.estimators.gpu import write

    if gpu_out is not None:
        write(gpu.with_figures({found.key: found.figure() for found in parameters}), gpu_out)
    if output == "json":
        click.echo(json.dumps({"schema": "makespan.microbench/1", "parameters": [_document(p) for p in parameters]}))
        return
    width = max(len(found.key) for found in parameters)
    for found in parameters:
        sure = "" if found.error is None else f"  +- {found.error:.3g}"
        fit = "" if found.r_squared is None else f"  R^2 {float(found.r_squared):.6f}"
        click.echo(f"{found.key:<{width}}  {float(found.value):>12.6g} {found.figure().unit}{sure}{fit}  {found.note}")
        for doubt in found.doubts:
            click.echo(f"warning: {found.key}: {doubt}")
    if gpu_out is not None:
        click.echo(f"GPU description: {gpu_out}")


def _document(found: "Parameter") -> dict[str, Any]:
    return {
        "key": found.key,
        "value": float(found.value),
        "unit": found.figure().unit,
        "standard_error": found.error,
        "r_squared": None if found.r_squared is None else float(found.r_squared),
        "bandwidth_limited": found.bandwidth_limited,
        "note": found.note,
        "doubts": list(found.doubts),
    }


def emit_file(folder: Path | None, name: str, text: str) -> None:
    """Write a program into a folder, which is made if need be.

    Raises:
        InputError: no folder, or one that cannot be written to.
    """
    from makespan.report.files import write_whole

    if folder is None:
        raise InputError("-o is missing: the folder for the programs")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make the folder: {error.strerror or error}") from None
    write_whole(folder / name, text.encode(), "the program")
    click.echo(f"written: {folder / name}")


def write_samples(target: Path | None, text: str, device: str) -> None:
    """Samples to a file, or to standard output."""
    from makespan.report.files import write_whole

    if target is None:
        click.echo(text, nl=False)
        return
    write_whole(target, text.encode(), "the samples")
    click.echo(f"samples of {device}: {target}")
