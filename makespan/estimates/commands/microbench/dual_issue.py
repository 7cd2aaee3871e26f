"""`makespan measure dual-issue`: what FFMA throughput an SM sustains, and which registers and codes reach it."""

from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.cli.parameters import choice
from makespan.estimates.commands.issue_device import REGISTERS, device_options, measure_characteristics
from makespan.estimates.commands.microbench.benchmark import write_program
from makespan.host.errors import InputError


@click.command("dual-issue", cls=HelpCommand, epilog=examples("makespan measure dual-issue --device vgk110"))
@device_options
@click.option(
    "--registers", type=int, default=REGISTERS, show_default=True, metavar="N", help="compare R0..R(N-1), 2 to 255"
)
@click.option("--single-code", is_flag=True, help="code 0x20 instead of 0x05 for FFMAs of a pattern that issue alone")
@click.option("--pattern", "only", multiple=True, metavar="1-2-2-1", help="measure this one; others than the six, too")
@click.option("--machine-out", type=click.Path(path_type=Path), metavar="FILE.toml", help="write a machine file")
@choice("--emit", "portable", "write programs instead of measuring", default=False)
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="where to write them")
@format_option()
def command(
    registers: int,
    single_code: bool,
    only: tuple[str, ...],
    machine_out: Path | None,
    emit: str | None,
    folder: Path | None,
    output: str,
    **device: Any,
) -> None:
    """Measure latency, register banks, control codes and the best order of single and dual issues.

    The device is virtual, or a CSV table of measurements. With --emit, kernels are written instead: the latency and
    throughput test for any CUDA GPU.
    """
    from makespan.estimates.dual_issue import method
    from makespan.estimates.dual_issue.arbiter import parse_pattern
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
    patterns = tuple(map(parse_pattern, only))
    found = measure_characteristics(**device, registers=registers, single_code=single_code, only=patterns)
    if machine_out is not None:
        write_whole(machine_out, method.machine_file(found).encode(), "the machine file")
    click.echo(render(output, text=lambda: report.text(found), data=lambda: report.document(found)))
