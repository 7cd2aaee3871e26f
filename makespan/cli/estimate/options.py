"""Options that several methods have."""

from pathlib import Path

import click

from makespan.cli.source import cuda_options, launch_options, stack

kernel_options = stack(
    click.option("--kernel", metavar="NAME", help="which kernel of a module"),
    launch_options,
    click.option(
        "--loop-bound",
        "loop_bounds",
        multiple=True,
        metavar="LABEL=N|LABEL==N|FILE",
        help="iterations of a loop that are not inferred",
    ),
    cuda_options,
)
"""A kernel and its launch; how its opcodes map to units does not matter to an estimate."""

resource_options = stack(
    click.option("--regs", type=click.IntRange(1, 4096), help="registers of a thread, as ptxas -v says"),
    click.option("--ptxas", type=click.Path(path_type=Path), metavar="FILE", help="output of ptxas -v, for registers"),
    click.option(
        "--smem",
        type=click.IntRange(0, 2**31),
        default=0,
        show_default=True,
        help="bytes of dynamic shared memory of a block, beside what the kernel declares",
    ),
)

report_options = stack(
    click.option("--explain", is_flag=True, help="all quantities, with their sources"),
    click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True),
)
