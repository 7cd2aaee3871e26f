"""`makespan estimate --method dual-issue`: the time of FFMAs at the throughput that an SM sustains."""

from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.estimates.commands.issue_device import read_characteristics, table_options
from makespan.estimates.commands.question import LaunchOptions, kernel_options, report_options, show
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.model.machine.gpus import Gpu

_K20_SMS, _K20_CLOCK = 13, 0.706  # Tesla K20, the reference machine of the sources; GHz


@click.command(
    "dual-issue",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method dual-issue --ffma 1e9",
        "makespan estimate --method dual-issue ptx/polynomial.ptx --block 256 --grid 104 --param 3=26624",
    ),
)
@click.argument("source", required=False)
@click.option("--ffma", type=float, metavar="N", help="FFMA lane-operations of the launch, in place of SOURCE")
@kernel_options
@table_options
@click.option("--gpu", metavar="NAME|FILE.toml", help="a description with the number of SMs and their clock")
@click.option("--sms", type=int, metavar="N", help="SMs of the GPU [default: of tesla-k20 13]")
@click.option("--clock-ghz", type=float, metavar="GHZ", help="SM clock [default: of tesla-k20 0.706]")
@report_options
def command(
    ffma: float | None,
    gpu: str | None,
    sms: int | None,
    clock_ghz: float | None,
    explain: bool,
    output: str,
    **options: Any,
) -> None:
    """Estimate the time of an FFMA-bound launch: FFMAs over the FFMAs per cycle that an SM was found to sustain.

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) whose fma.rn.f32 are counted; without one, --ffma.
    """
    from makespan.estimates.dual_issue import K20, FfmaWork, estimate
    from makespan.model.machine import gpus

    asked = LaunchOptions.taken(options)
    if (asked.source is None) == (ffma is None):
        raise InputError("give either SOURCE or --ffma, the FFMA lane-operations of the launch")
    if ffma is not None:
        asked.refuse("--ffma says how many there are")
    work = FfmaWork.of(asked.question().profile()) if ffma is None else FfmaWork(ffma)
    card = None if gpu is None else gpus.find_gpu(gpu)
    sms, clock_ghz = _size(card, sms, clock_ghz, is_k20=options["table"] in (None, K20))
    found = estimate(read_characteristics(**options), work, sms=sms, clock_ghz=clock_ghz, gpu=card)
    show(found, explain=explain, output=output)


def _size(gpu: "Gpu | None", sms: int | None, clock_ghz: float | None, *, is_k20: bool) -> tuple[int, float | None]:
    """Return the number of SMs and their clock: as described, as given, or of a Tesla K20."""
    if gpu is not None:
        if sms is not None or clock_ghz is not None:
            raise InputError("--gpu says the SMs and their clock: no --sms and --clock-ghz beside it")
        return gpu.whole("sms"), gpu.number("clock_ghz")
    if is_k20:
        return (_K20_SMS if sms is None else sms), (_K20_CLOCK if clock_ghz is None else clock_ghz)
    if sms is None:
        raise InputError("--sms is missing: how many SMs has the GPU that was measured? (or --gpu)")
    return sms, clock_ghz
