"""What the microbenchmarks of kleimenov-popova have in common: programs into a folder, figures into a description."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.microbench.fitted import LANGUAGES, emit_file, one_of
from makespan.cli.source import stack
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.gpu import Figure, Gpu

options = stack(
    click.option("--emit", type=click.Choice(LANGUAGES), help="write the programs that measure"),
    click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="folder for --emit"),
    click.option("--fit", type=click.Path(path_type=Path), metavar="FILE.csv", help="figures from what was measured"),
    click.option("--gpu", metavar="NAME|FILE.toml", help="the description that the fit completes"),
    click.option("--gpu-out", type=click.Path(path_type=Path), metavar="FILE.toml", help="write it, completed"),
    click.option(
        "--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="of the fit"
    ),
)
"""What both benchmarks have."""


def emit_or_fit(
    emit: Any,
    folder: Path | None,
    fit: Path | None,
    gpu: str | None,
    gpu_out: Path | None,
    output: str,
    *,
    sources: Callable[[Any], Mapping[str, str]],
    figures: Callable[[Path, "Gpu"], Mapping[str, "Figure"]],
) -> None:
    """Do what was asked for.

    Args:
        sources: the files, by name, in a language.
        figures: what a file of samples tells of a GPU, by key.
    """
    one_of(emit=emit is not None, fit=fit is not None)
    if fit is None:
        if gpu is not None or gpu_out is not None:
            raise InputError("--gpu and --gpu-out are for --fit")
        for name, text in sources(emit).items():
            emit_file(folder, name, text)
        return
    from makespan.estimators.gpu import Gpu, find, write

    if folder is not None:
        raise InputError("-o is for --emit; a fit is written with --gpu-out FILE.toml")
    described = Gpu(fit.stem, {}) if gpu is None else find(gpu)
    found = figures(fit, described)
    if gpu_out is not None:
        write(described.with_figures(found), gpu_out)
    _show(found, gpu_out, output)


def _show(found: Mapping[str, "Figure"], gpu_out: Path | None, output: str) -> None:
    if output == "json":
        parameters = [{"key": key, "value": one.value, "unit": one.unit} for key, one in found.items()]
        click.echo(json.dumps({"schema": "makespan.microbench/1", "parameters": parameters}))
        return
    width = max(map(len, found))
    for key, one in found.items():
        click.echo(f"{key:<{width}}  {one.value:>12.6g} {one.unit}")
    if gpu_out is not None:
        click.echo(f"GPU description: {gpu_out}")
