"""`makespan benchmark`: a library of instances, what is known of them, and who is better."""

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import LazyGroup

COMMANDS = {
    "run": "solve the instances, and hold what comes out against what is known",
    "table": "instances solved, gaps and times, by family and solver",
    "check": "execute schedules, verify bundles, compare claims",
    "show": "the instances as JSON lines, for other solvers",
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    sections={"Commands": COMMANDS},
    elsewhere={name: f"{__name__}.tables:{name}" for name in ("table", "show")},
    no_args_is_help=False,
    epilog=examples("makespan benchmark table benchmarks/library"),
)
def command() -> None:
    """A library of instances, what is known of each, and what solvers claim of them."""
