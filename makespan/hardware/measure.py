"""`makespan measure`: runs on a GPU, against bounds, or for the numbers of machines and models."""

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import CommandRow, LazyGroup

_MODELS = "makespan.estimates.commands.measure"
_NUMBERS = "Numbers of machines and models"
COMMANDS = (
    CommandRow("validate", "runs of a kernel, held against its worst case", "makespan.hardware.command", "Kernels"),
    CommandRow(
        "sm",
        "latencies, intervals, partitions, work conservation (machine files)",
        "makespan.hardware.microbench",
        _NUMBERS,
    ),
    CommandRow("memory", "latency and departure delays (hong-kim)", f"{_MODELS}:memory", _NUMBERS),
    CommandRow("throughput", "operations per cycle (hong-kim)", f"{_MODELS}:throughput", _NUMBERS),
    CommandRow("latency", "latencies, issue delays, bandwidths (kleimenov-popova)", f"{_MODELS}:latency", _NUMBERS),
    CommandRow("launch", "launch times of empty kernels (kleimenov-popova)", f"{_MODELS}:launch", _NUMBERS),
    CommandRow(
        "opencl",
        "the cost table of a device (opencl-cost-table)",
        "makespan.estimates.commands.cost_table:measure",
        _NUMBERS,
    ),
    CommandRow(
        "dual-issue",
        "register banks, control codes, best pattern (dual-issue)",
        f"{_MODELS}:dual_issue",
        _NUMBERS,
    ),
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    no_args_is_help=False,
    epilog=examples("makespan measure sm --emit cuda -o bench", "makespan measure memory --emit cuda -o bench"),
)
def command() -> None:
    """Hold runs of a kernel on a GPU against its bound, or measure the numbers of a machine or of a model."""
