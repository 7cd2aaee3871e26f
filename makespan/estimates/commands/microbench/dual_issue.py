"""`makespan measure dual-issue`: what FFMA throughput an SM sustains, and which registers and codes reach it."""

from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.cli.parameters import choice
from makespan.estimates.commands.issue_device import read_characteristics, table_options
from makespan.estimates.commands.microbench.benchmark import write_program
from makespan.host.errors import InputError


@click.command("dual-issue", cls=HelpCommand, epilog=examples("makespan measure dual-issue --import tesla-k20"))
@table_options
@click.option("--machine-out", type=click.Path(path_type=Path), metavar="FILE.toml", help="write a machine file")
@choice("--emit", "portable", "write programs instead", default=False)
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="where to write them")
@format_option()
def command(machine_out: Path | None, emit: str | None, folder: Path | None, output: str, **table: Any) -> None:
    """Tell register banks, control codes and the best order of single and dual issues from a table of measurements.

    With --emit, kernels are written instead: the latency and throughput test for any CUDA GPU.
    """
    from makespan.estimates.microbench.programs import ffma_source
    from makespan.estimates.report import dual_issue as report
    from makespan.host.output_file import check_writable, write_whole

    if emit is not None:
        paths = [write_program(folder, name, content) for name, content in ffma_source().items()]
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
