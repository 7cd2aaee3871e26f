"""`makespan measure launch`: launch times of empty kernels."""

from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.estimates.commands.microbench.benchmark import MicrobenchOptions, benchmark, options, warp_size_option


@click.command(
    "launch",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure launch --emit cuda -o bench",
        "makespan measure launch --fit launch.csv --gpu rtx-3070 --gpu-out mine.toml",
    ),
)
@options
@warp_size_option
def command(warp_size: int, **given: Any) -> None:
    """Measure launch times for kleimenov-popova: write the programs, or fit a line for each size of the block.

    Samples are CSV: blocks,warps_per_block,seconds.
    """
    from makespan.estimates.microbench import fit, programs, samples

    asked = MicrobenchOptions(**given)
    benchmark(
        asked,
        samples.LAUNCH,
        programs=lambda language: programs.launch_source(language, warp_size=warp_size),
        fit=lambda found, _, source: fit.fit_launch(found, source, force=asked.force),
    )
