"""`makespan measure latency`: latencies and issue delays of instructions, latencies and bandwidths of memory."""

from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.estimates.commands.microbench.benchmark import MicrobenchOptions, benchmark, options


@click.command(
    "latency",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure latency --emit cuda -o bench",
        "makespan measure latency --fit latency.csv --gpu rtx-3070 --gpu-out mine.toml",
    ),
)
@options
def command(**given: Any) -> None:
    """Measure latencies, issue delays and memory for kleimenov-popova: write the programs, or fit their samples.

    Samples are CSV: measure,name,count,cycles (or seconds) with measures latency, delay, memory and bandwidth. What
    cannot be measured so, as moves and branches, must be given.
    """
    from makespan.estimates.microbench import fit, programs, samples

    asked = MicrobenchOptions(**given)
    benchmark(
        asked,
        samples.INSTRUCTIONS,
        programs=programs.instructions_source,
        fit=lambda found, gpu, source: fit.fit_instructions(found, gpu, source, force=asked.force),
    )
