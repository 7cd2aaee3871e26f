"""What the microbenchmarks of kleimenov-popova have in common: programs into a folder, figures into a description."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.microbench.fitted import emit_file, emit_option, fit_options, one_of, show
from makespan.cli.source import stack
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.gpu import Gpu
    from makespan.estimators.parameter import Parameter

options = stack(
    emit_option,
    click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="folder for --emit"),
    fit_options,
    click.option("--force", is_flag=True, help="take times that are on no line"),
)
"""What both benchmarks have."""


def emit_or_fit(
    emit: Any,
    folder: Path | None,
    fit: Path | None,
    gpu: str | None,
    gpu_out: Path | None,
    output: str,
    force: bool,
    *,
    sources: Callable[[Any], Mapping[str, str]],
    figures: Callable[[Path, "Gpu", bool], tuple["Parameter", ...]],
) -> None:
    """Do what was asked for.

    Args:
        sources: the files, by name, in a language.
        figures: what a file of samples tells of a GPU; and whether to take a fit that is not good enough.
    """
    one_of(emit=emit is not None, fit=fit is not None)
    if fit is None:
        if gpu is not None or gpu_out is not None or force:
            raise InputError("--gpu, --gpu-out and --force are for --fit")
        for name, text in sources(emit).items():
            emit_file(folder, name, text)
        return
    from makespan.estimators.gpu import Gpu, find

    if folder is not None:
        raise InputError("-o is for --emit; a fit is written with --gpu-out FILE.toml")
    described = Gpu(fit.stem, {}) if gpu is None else find(gpu)
    show(described, figures(fit, described, force), gpu_out, output)
