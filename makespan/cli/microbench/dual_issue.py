"""`makespan microbench dual-issue`: what FFMA throughput an SM sustains, and which registers and codes reach it."""

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.issue_device import device_options, measured
from makespan.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command("dual-issue")
@device_options
@click.option("--registers", type=int, default=32, show_default=True, metavar="N", help="compare R0..R(N-1), 2 to 255")
@click.option("--single-code", is_flag=True, help="code 0x20 instead of 0x05 for FFMAs of a pattern that issue alone")
@click.option("--pattern", "only", multiple=True, metavar="1-2-2-1", help="measure this one; others than the six, too")
@click.option("--machine-out", type=click.Path(path_type=Path), metavar="FILE.toml", help="write a machine file")
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="draw the patterns (.png, .svg, .pdf)"
)
@click.option("--sms", type=int, metavar="N", help="SMs of the GPU, for Gflop/s in the picture")
@click.option("--clock-ghz", type=float, metavar="GHZ", help="SM clock, for Gflop/s in the picture")
@click.option("--emit", type=click.Choice(["kepleras", "portable"]), help="write programs instead of measuring")
@click.option("--test", type=click.Choice(["bank", "code", "pattern", "latency"]), help="whose programs to write")
@click.option("-o", "folder", type=click.Path(path_type=Path), metavar="DIR", help="where to write them")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    registers: int,
    single_code: bool,
    only: tuple[str, ...],
    machine_out: Path | None,
    plot: Path | None,
    sms: int | None,
    clock_ghz: float | None,
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
    from makespan.estimators.dual_issue.arbiter import PATTERNS, parse_pattern
    from makespan.report import dual_issue as report
    from makespan.report.dual_issue_plot import Gpu, draw_patterns
    from makespan.report.files import check_writable, write_whole
    from makespan.report.plot import check_picture_path

    if emit is not None:
        _emit(emit, test, folder, registers)
        return
    if test is not None or folder is not None:
        raise InputError("--test and -o say what to write with --emit; add --emit kepleras or --emit portable")
    if machine_out is not None:
        check_writable(machine_out, "the machine file")
    if plot is not None:
        check_picture_path(plot)
    if (sms is None) != (clock_ghz is None) or (sms is not None and plot is None):
        raise InputError("--sms and --clock-ghz go together, and with --plot")
    if (sms is not None and sms < 1) or (clock_ghz is not None and not (isfinite(clock_ghz) and clock_ghz > 0)):
        raise InputError("--sms must be at least 1, and --clock-ghz a number above 0")
    if plot is not None and machine_out is not None and plot.resolve() == machine_out.resolve():
        raise InputError("two outputs have the same name")
    gpu = None if sms is None or clock_ghz is None else Gpu(sms, clock_ghz)
    patterns = tuple(map(parse_pattern, only)) or PATTERNS
    found = measured(registers=registers, single_code=single_code, only=patterns, **device)
    if plot is not None:
        draw_patterns(found, plot, gpu=gpu)
    if machine_out is not None:
        write_whole(machine_out, machine_file.text(found).encode(), "the machine file")
    click.echo(json.dumps(report.document(found)) if output == "json" else report.text(found))


def _emit(kind: str, test: str | None, folder: Path | None, registers: int) -> None:
    """Write the programs of a test into a folder."""
    from makespan.report.files import write_whole

    if folder is None:
        raise InputError("-o is missing: into which folder?")
    if kind == "kepleras" and test is None:
        raise InputError("--test is missing: bank, code, pattern or latency?")
    if kind == "portable" and test not in (None, "latency"):
        raise InputError(f"--emit portable writes the latency and throughput test; {test} needs registers and codes")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make the folder: {error.strerror or error}") from None
    count = 0
    for name, content in _programs(kind, test, registers):
        write_whole(folder / name, content.encode(), "the program")
        count += 1
    click.echo(f"{count} files in {folder}")


def _programs(kind: str, test: str | None, registers: int) -> "Iterator[tuple[str, str]]":
    from makespan.estimators.dual_issue import kepler, portable

    if kind == "portable":
        yield from portable.sources().items()
    else:
        yield from kepler.listings(str(test), range(registers))
