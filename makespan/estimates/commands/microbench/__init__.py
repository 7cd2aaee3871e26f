"""`makespan microbench`: measure the parameters of a method, or write the programs that measure them."""

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import LazyGroup

COMMANDS = {
    "memory": "latency and departure delays (hong-kim)",
    "throughput": "operations per cycle (hong-kim)",
    "latency": "latencies, issue delays, bandwidths (kleimenov-popova)",
    "launch": "launch times of empty kernels (kleimenov-popova)",
    "sm": "latencies, intervals, partitions, work conservation (machine files)",
    "opencl": "the cost table of a device (opencl-cost-table)",
    "dual-issue": "register banks, control codes, best pattern (dual-issue)",
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    sections={"Commands": COMMANDS},
    elsewhere={"sm": "makespan.hardware.microbench"},
    no_args_is_help=False,
    epilog=examples("makespan microbench memory --emit cuda -o bench"),
)
def command() -> None:
    """Measure the parameters of an estimator, or write the programs that measure them."""
