"""`makespan measure throughput`: operations per cycle of an SM or compute unit."""

from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.estimates.commands.microbench.benchmark import MicrobenchOptions, benchmark, options, run_options


@click.command("throughput", cls=HelpCommand, epilog=examples("makespan measure throughput --emit opencl -o bench"))
@options
@run_options
def command(**given: Any) -> None:
    """Measure the throughputs of hong-kim: write the programs, run them, or fit what they measured."""
    from makespan.estimates.microbench import fit, programs, samples

    asked = MicrobenchOptions(**given)
    asked.needs_gpu("SMs and clock")

    def measured(device: Any) -> Any:
        from makespan.estimates.microbench.on_opencl import measure_throughput

        return measure_throughput(device)

    benchmark(
        asked,
        samples.THROUGHPUT,
        programs=programs.throughput_source,
        fit=lambda found, gpu, source: fit.fit_throughput(found, gpu, source, force=asked.force),
        measured=measured,
    )
