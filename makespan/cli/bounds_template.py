"""`makespan bounds-template`: a loop-bounds file to fill in."""

from pathlib import Path

import click

from makespan.cli.source import cuda_options, launch_options, read_module
from makespan.errors import InputError


@click.command("bounds-template")
@click.argument("source")
@click.option("--input-format", type=click.Choice(["ptx"]), help="format of standard input (SOURCE '-')")
@click.option("--kernel", metavar="NAME", help="only this kernel")
@click.option("--loop-bound", "loop_bounds", multiple=True, metavar="LABEL=N|FILE", help="bounds already known")
@launch_options
@cuda_options
def command(
    source: str,
    input_format: str | None,
    kernel: str | None,
    loop_bounds: tuple[str, ...],
    param: tuple[str, ...],
    block: str | None,
    grid: str | None,
    arch: str | None,
    keep_ptx: Path | None,
) -> None:
    """Print a bounds file for the loops of SOURCE; fill in the numbers and pass it as --loop-bound FILE."""
    from makespan import flow, ptx

    module = read_module(source, input_format, arch=arch, keep_ptx=keep_ptx)
    kernels = module.kernels if kernel is None else (module.kernel(kernel),)
    if not kernels:
        raise InputError(f"{source}: no kernel in this file: it has no .entry with a body")
    click.echo(ptx.bounds_template(kernels, flow.loop_bounds(loop_bounds), flow.launch(block, grid, param)), nl=False)
