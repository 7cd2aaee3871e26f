"""`makespan microbench dual-issue`: what FFMA throughput an SM sustains, and which registers and codes reach it."""

from pathlib import Path
from typing import Any

import click

from makespan.cli.issue_device import REGISTERS, IssueDeviceOptions, device_options, measured
from makespan.cli.microbench.benchmark import written
from makespan.cli.output import format_option, rendered
from makespan.errors import InputError


@click.command("dual-issue")
@device_options
@click.option(
    "--registers", type=int, default=REGISTERS, show_default=True, metavar="N", help="compare R0..R(N-1), 2 to 255"
)
@click.option("--single-code", is_flag=True, help="code 0x20 instead of 0x05 for FFMAs of a pattern that issue alone")
@click.option("--pattern", "only", multiple=True, metavar="1-2-2-1", help="measure this one; others than the six, too")
@click.option("--machine-out", type=click.Path(path_type=Path), metavar="FILE.toml", help="write a machine file")
@click.option("--emit", type=click.Choice(["kepleras", "portable"]), help="write programs instead of measuring")
@click.option("--test", type=click.Choice(["bank", "code", "pattern", "latency"]), help="whose programs to write")
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), metavar="DIR", help="where to write them")
@format_option()
def command(
    registers: int,
    single_code: bool,
    only: tuple[str, ...],
    machine_out: Path | None,
    emit: str | None,
    test: str | None,
    folder: Path | None,
    output: str,
    **device: Any,
) -> None:
    """Measure latency, register banks, control codes and the best order of single and dual issues.

    The device is virtual, or a CSV table of measurements. With --emit, kernels are written instead: listings for
    KeplerAs (GK110), or the latency and throughput test for any CUDA GPU.
    """
    from makespan.estimators.dual_issue import machine_file
    from makespan.estimators.dual_issue.arbiter import parse_pattern
    from makespan.report.estimates import dual_issue as report
    from makespan.report.files import check_writable, write_whole

    if emit is not None:
        _emit(emit, test, folder, registers)
        return
    if test is not None or folder is not None:
        raise InputError("--test and -o say what to write with --emit; add --emit kepleras or --emit portable")
    if machine_out is not None:
        check_writable(machine_out, "the machine file")
    asked = IssueDeviceOptions(**device)
    if asked.table is not None and single_code:
        raise InputError("--import is a finished measurement: no --single-code beside it")
    patterns = tuple(map(parse_pattern, only))
    found = measured(asked, registers=registers, single_code=single_code, only=patterns)
    if machine_out is not None:
        write_whole(machine_out, machine_file.text(found).encode(), "the machine file")
    click.echo(rendered(output, text=lambda: report.text(found), data=lambda: report.document(found)))


def _emit(kind: str, test: str | None, folder: Path | None, registers: int) -> None:
    """Write the programs of a test into a folder."""
    from makespan.estimators.dual_issue import kepler
    from makespan.estimators.microbench.programs import ffma_source

    if kind == "kepleras" and test is None:
        raise InputError("--test is missing: bank, code, pattern or latency?")
    if kind == "portable" and test not in (None, "latency"):
        raise InputError(f"--emit portable writes the latency and throughput test; {test} needs registers and codes")
    programs = ffma_source().items() if kind == "portable" else kepler.listings(str(test), range(registers))
    paths = [written(folder, name, content) for name, content in programs]
    click.echo(f"{len(paths)} files in {folder}")
