"""`makespan microbench memory`: latency of the device memory and departure delays of requests."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.microbench.fitted import emit_file, emit_option, fit_options, one_of, run_options, show, write_samples
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.hong_kim.sources import MemoryPlan


@click.command("memory")
@emit_option
@run_options
@click.option("--warp-size", type=click.IntRange(1, 1024), default=32, show_default=True, help="of --emit and --run")
@click.option("--loads", type=click.IntRange(1, 512), default=8, show_default=True, help="of a thread, unrolled")
@click.option("--warps", default="4,8,16,32", show_default=True, metavar="N,...", help="sizes of the block, in warps")
@click.option("--steps", default="1024,4096", show_default=True, metavar="N,...", help="lengths of the latency walk")
@click.option("--repeats", type=click.IntRange(1, 1000), default=5, show_default=True, help="runs of each")
@click.option(
    "--caches", type=click.IntRange(1, 64), default=4, show_default=True, help="last caches that a walk covers"
)
@click.option(
    "--latency",
    type=click.Choice(["chase", "sum"]),
    default="chase",
    show_default=True,
    help="loads whose addresses were loaded, or the sum of the slides",
)
@click.option("--ptx-target", default="sm_75", show_default=True, metavar="sm_NN", help="of --emit ptx")
@fit_options
@click.option(
    "--method",
    type=click.Choice(["slope", "single", "whole-gpu"]),
    default="slope",
    show_default=True,
    help="slopes; one walk over its length for the latency; full grids for the departure delays",
)
@click.option(
    "--uncoal-per-mw",
    type=click.FloatRange(min=1),
    metavar="N",
    help="transactions of a request [default: warp size of --gpu]",
)
@click.option("--force", is_flag=True, help="take a fit that is not good enough")
def command(
    emit: str | None,
    run: bool,
    fit: Path | None,
    target: Path | None,
    device: int,
    gpu: str | None,
    method: Any,
    uncoal_per_mw: float | None,
    force: bool,
    gpu_out: Path | None,
    output: str,
    **plan: Any,
) -> None:
    """Measure the memory parameters of hong-kim: write the programs, run them, or fit what they measured."""
    one_of(emit=emit is not None, run=run, fit=fit is not None)
    if fit is None and (gpu or gpu_out or force):
        raise InputError("--gpu, --gpu-out and --force are for --fit")
    if emit is not None:
        _emit(emit, target, _plan(**plan))
    elif run:
        _run(device, target, _plan(**plan))
    elif fit is not None:
        from makespan.estimators.gpu import find
        from makespan.estimators.hong_kim.measured_device import Device
        from makespan.estimators.hong_kim.memory_fit import fit_memory
        from makespan.estimators.hong_kim.samples import read_memory

        if gpu is None:
            raise InputError("--gpu is missing: the description of what was measured (warp size, clock)")
        described = find(gpu)
        known = Device.of(described, uncoal_per_mw=uncoal_per_mw)
        show(described, fit_memory(read_memory(fit), known, method=method, force=force), gpu_out, output)


def _plan(
    warp_size: int, loads: int, warps: str, steps: str, repeats: int, caches: int, latency: Any, ptx_target: str
) -> "MemoryPlan":
    from makespan.estimators.hong_kim.sources import MemoryPlan

    numbers = (_numbers("--warps", warps), _numbers("--steps", steps))
    return MemoryPlan(warp_size, loads, *numbers, repeats=repeats, caches=caches, latency=latency, target=ptx_target)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= 9 for word in words):
        raise InputError(f"{option} {text[:60]!r}: give whole numbers such as 4,8,16,32")
    return tuple(map(int, words))


def _emit(language: Any, folder: Path | None, plan: "MemoryPlan") -> None:
    from makespan.estimators.hong_kim.sources import SUFFIXES, memory_source

    emit_file(folder, f"memory{SUFFIXES[language]}", memory_source(language, plan))


def _run(number: int, target: Path | None, plan: "MemoryPlan") -> None:
    from makespan.estimators.hong_kim.opencl_device import OpenCLDevice
    from makespan.estimators.hong_kim.samples import memory_csv

    device = OpenCLDevice(number)
    write_samples(target, memory_csv(device.measure_memory(plan)), device.name)
