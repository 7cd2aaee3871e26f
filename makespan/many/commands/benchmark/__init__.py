"""`makespan benchmark`: a library of instances, what is known of them, and who is better."""

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import CommandRow, LazyGroup

COMMANDS = (
    CommandRow("run", "solve the instances, and hold what comes out against what is known", f"{__name__}.run"),
    CommandRow("table", "instances solved, gaps and times, by family and solver", f"{__name__}.tables:table"),
    CommandRow("check", "execute schedules, verify bundles, compare claims", f"{__name__}.check"),
    CommandRow("show", "the instances as JSON lines, for other solvers", f"{__name__}.tables:show"),
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    no_args_is_help=False,
    epilog=examples("makespan benchmark table benchmarks/library"),
)
def command() -> None:
    """A library of instances, what is known of each, and what solvers claim of them."""
