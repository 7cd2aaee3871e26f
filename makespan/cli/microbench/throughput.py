"""`makespan microbench throughput`: operations per cycle of an SM or compute unit."""

from pathlib import Path
from typing import Any

import click

from makespan.cli.microbench.fitted import emit_file, emit_option, fit_options, one_of, run_options, show, write_samples
from makespan.errors import InputError


@click.command("throughput")
@emit_option
@run_options
@click.option("--rounds", type=click.IntRange(1, 10**6), default=20, show_default=True, help="of 50 operations each")
@click.option("--repeats", type=click.IntRange(1, 1000), default=5, show_default=True, help="runs of each operation")
@click.option("--ptx-target", default="sm_75", show_default=True, metavar="sm_NN", help="of --emit ptx")
@fit_options
@click.option("--force", is_flag=True, help="take runs that differ by more than 10 %")
def command(
    emit: Any,
    run: bool,
    fit: Path | None,
    target: Path | None,
    device: int,
    rounds: int,
    repeats: int,
    ptx_target: str,
    gpu: str | None,
    force: bool,
    gpu_out: Path | None,
    output: str,
) -> None:
    """Measure the throughputs of hong-kim: write the programs, run them, or fit what they measured."""
    one_of(emit=emit is not None, run=run, fit=fit is not None)
    if fit is None and (gpu or gpu_out or force):
        raise InputError("--gpu, --gpu-out and --force are for --fit")
    if emit is not None:
        from makespan.estimators.hong_kim.sources import SUFFIXES, throughput_source

        source = throughput_source(emit, rounds=rounds, repeats=repeats, target=ptx_target)
        emit_file(target, f"throughput{SUFFIXES[emit]}", source)
    elif run:
        from makespan.estimators.hong_kim.opencl_device import OpenCLDevice
        from makespan.estimators.hong_kim.samples import throughput_csv

        opened = OpenCLDevice(device)
        samples = opened.measure_throughput(rounds=rounds, repeats=repeats)
        write_samples(target, throughput_csv(samples), opened.name)
    elif fit is not None:
        from makespan.estimators.gpu import find
        from makespan.estimators.hong_kim.measured_device import Device
        from makespan.estimators.hong_kim.samples import read_throughput
        from makespan.estimators.hong_kim.throughput_fit import fit_throughput

        if gpu is None:
            raise InputError("--gpu is missing: the description of what was measured (SMs and clock)")
        described = find(gpu)
        found = fit_throughput(read_throughput(fit), Device.of(described), force=force)
        show(described, found, gpu_out, output)
