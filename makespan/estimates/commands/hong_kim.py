"""`makespan estimate --method hong-kim`: the time of a launch from memory and computation warp parallelism."""

from math import prod
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, option_name
from makespan.cli.parameters import choice
from makespan.estimates.commands.question import (
    LaunchOptions,
    described_gpu,
    gpu_options,
    kernel_options,
    report_options,
    resource_options,
    show,
)
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates import Estimate
    from makespan.model.machine.gpus import Gpu

active_blocks_option = click.option(
    "--active-blocks", type=click.IntRange(1, 4096), help="resident blocks of an SM, whatever fits (hong-kim)"
)


@click.command(
    "hong-kim",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method hong-kim ptx/vecadd.ptx --block 128 --grid 80 --gpu quadro-fx5600 \\",
        "    --set mem_ld=500",
    ),
)
@click.argument("source", required=False)
@click.option("--counts", metavar="comp=N,coal=N,...", help="dynamic counts of one thread, in place of SOURCE")
@gpu_options
@kernel_options
@resource_options
@active_blocks_option
@choice("--variant", "isca09 issue-bounded", "as published, or at least the time to issue all instructions")
@choice("--rep", "real ceil", "fillings of an SM: a real number as published, or whole waves")
@choice(
    "--comp-model",
    "uniform throughput",
    "all instructions alike, or by the table of throughputs [default: the table if it has one of the kernel's]",
    default=False,
)
@report_options
def command(
    counts: str | None,
    gpu: str,
    settings: tuple[str, ...],
    active_blocks: int | None,
    output: str,
    explain: bool,
    **options: Any,
) -> None:
    """Estimate a launch by memory and computation warp parallelism (Hong and Kim, ISCA 2009).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu); without one, --counts says what a thread executes.
    """
    from makespan.estimates.question import hong_kim

    asked = LaunchOptions.taken(options)
    if (asked.source is None) == (counts is None):
        raise InputError("give either SOURCE or --counts, such as comp=27,uncoal=6,coal=0,synch=6")
    card = described_gpu(gpu, settings, "hong_kim")
    if counts is None:
        found = hong_kim(asked.question(card), card, active_blocks, **options)
    else:
        found = _of_counts(counts, asked, card, active_blocks, options)
    show(found, explain=explain, output=output)


def _of_counts(
    text: str, asked: LaunchOptions, gpu: "Gpu", active_blocks: int | None, variant: dict[str, Any]
) -> "Estimate":
    from makespan.estimates.hong_kim import HongKimKernel
    from makespan.estimates.hong_kim.explained import estimate_launch
    from makespan.estimates.hong_kim.inputs import counts
    from makespan.kernels import flow

    asked.refuse("--counts says what a thread executes", "block", "grid", "regs", "smem")
    launch = flow.launch(asked.kernel["block"], asked.kernel["grid"], named=option_name)
    if launch.block is None or launch.grid is None:
        raise InputError(f"--{'grid' if launch.block else 'block'} is missing: how large is the launch?")
    found: dict[str, Any] = {"comp_insts": 0, **counts(text, "--counts")}
    kernel = HongKimKernel(
        threads_per_block=prod(launch.block),
        blocks=prod(launch.grid),
        regs_per_thread=asked.resources["regs"],
        smem_per_block=asked.resources["smem"],
        active_blocks_per_sm=active_blocks,
        **found,
    )
    return estimate_launch(gpu, kernel, **variant)
