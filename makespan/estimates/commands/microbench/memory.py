"""`makespan measure memory`: latency of the device memory and departure delays of requests."""

from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.parameters import choice
from makespan.estimates.commands.microbench.benchmark import (
    MicrobenchOptions,
    benchmark,
    options,
    run_options,
    warp_size_option,
)


@click.command(
    "memory",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure memory --emit cuda -o bench",
        "makespan measure memory --fit memory.csv --gpu quadro-fx5600 --gpu-out mine.toml",
    ),
)
@options
@run_options
@warp_size_option
@choice("--latency", "chase sum", "loads whose addresses were loaded, or the sum of the slides")
@choice(
    "--method",
    "slope single whole-gpu",
    "slopes; one walk over its length for the latency; full grids for the departure delays",
)
def command(warp_size: int, latency: Any, method: Any, **given: Any) -> None:
    """Measure the memory parameters of hong-kim: write the programs, run them, or fit what they measured."""
    from makespan.estimates.microbench import fit, programs, samples

    asked, plan = MicrobenchOptions(**given), programs.MemoryPlan(warp_size, latency=latency)
    asked.needs_gpu("warp size, clock")

    def measured(device: Any) -> Any:
        from makespan.estimates.microbench.on_opencl import measure_memory

        return measure_memory(device, plan)

    benchmark(
        asked,
        samples.MEMORY,
        programs=lambda language: programs.memory_source(language, plan),
        fit=lambda found, gpu, source: fit.fit_memory(found, gpu, source, method=method, force=asked.force),
        measured=measured,
    )
