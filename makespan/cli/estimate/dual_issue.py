"""`makespan estimate --method dual-issue`: the time of FFMAs at the throughput that an SM sustains."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.estimate.options import kernel_options, report_options
from makespan.cli.issue_device import device_options, measured
from makespan.cli.source import read_module, telling_how_to_keep
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.dual_issue import Work
    from makespan.estimators.gpu import Gpu

_REGISTERS = 32
_K20_SMS, _K20_CLOCK = 13, 0.706


@click.command("dual-issue")
@click.argument("source", required=False)
@click.option("--ffma", type=float, metavar="N", help="FFMA lane-operations of the launch, in place of SOURCE")
@kernel_options
@device_options
@click.option("--gpu", metavar="NAME|FILE.toml", help="a description with the number of SMs and their clock")
@click.option("--sms", type=int, metavar="N", help="SMs of the GPU [default without --import: 13, as on Tesla K20]")
@click.option("--clock-ghz", type=float, metavar="GHZ", help="SM clock [default without --import: 0.706, Tesla K20]")
@report_options
def command(
    source: str | None,
    ffma: float | None,
    kernel: str | None,
    param: tuple[str, ...],
    block: str | None,
    grid: str | None,
    loop_bounds: tuple[str, ...],
    gpu: str | None,
    sms: int | None,
    clock_ghz: float | None,
    explain: bool,
    output: str,
    arch: str | None,
    keep_ptx: Path | None,
    **device: Any,
) -> None:
    """Estimate the time of an FFMA-bound launch: FFMAs over the FFMAs per cycle that an SM was found to sustain.

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) whose fma.rn.f32 are counted; without one, --ffma.
    """
    from makespan.estimators import gpu as gpus
    from makespan.estimators.dual_issue import Work, estimate
    from makespan.estimators.dual_issue.arbiter import PATTERNS
    from makespan.report import estimate as report

    if (source is None) == (ffma is None):
        raise InputError("give either SOURCE or --ffma, the FFMA lane-operations of the launch")
    if source is None:
        if any((kernel, param, block, grid, loop_bounds, arch, keep_ptx)):
            raise InputError("--ffma takes no options for kernels (--kernel, --param, --block, --grid, ...)")
        work = Work(float(ffma or 0))
    else:
        work = _counted(source, kernel, param, block, grid, loop_bounds, arch, keep_ptx)
    described = None if gpu is None else gpus.find(gpu)
    sms, clock_ghz = _size(described, sms, clock_ghz, is_virtual=device["table"] is None)
    found = measured(registers=_REGISTERS, only=PATTERNS, **device)
    result = estimate(found, work, sms=sms, clock_ghz=clock_ghz, gpu=described)
    click.echo(json.dumps(report.document(result)) if output == "json" else report.text(result, explain=explain))


def _size(gpu: "Gpu | None", sms: int | None, clock_ghz: float | None, *, is_virtual: bool) -> tuple[int, float | None]:
    """SMs and clock: as described, as given, or, with the virtual GK110, those of the reference machine."""
    if gpu is not None:
        if sms is not None or clock_ghz is not None:
            raise InputError("--gpu says the SMs and their clock: no --sms and --clock-ghz beside it")
        return gpu.whole("sms"), gpu.number("clock_ghz")
    if is_virtual:
        return (_K20_SMS if sms is None else sms), (_K20_CLOCK if clock_ghz is None else clock_ghz)
    if sms is None:
        raise InputError("--sms is missing: how many SMs has the GPU that was measured? (or --gpu)")
    return sms, clock_ghz


def _counted(
    source: str,
    kernel: str | None,
    param: tuple[str, ...],
    block: str | None,
    grid: str | None,
    loop_bounds: tuple[str, ...],
    arch: str | None,
    keep_ptx: Path | None,
) -> "Work":
    from makespan import ptx
    from makespan.estimators.dual_issue import Work
    from makespan.estimators.profile import profile

    module = read_module(source, arch=arch, keep_ptx=keep_ptx)
    chosen = module.kernel(kernel)
    with telling_how_to_keep(module):
        bounds = ptx.bounds_for(chosen, ptx.loop_bounds(loop_bounds), module.kernels)
        return Work.of(profile(chosen, ptx.launch(block, grid, param), loop_bounds=bounds))
