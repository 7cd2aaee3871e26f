"""`makespan sweep`: many questions to `solve`, and a table of what it answers."""

from pathlib import PurePath

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import CommandRow, LazyGroup

COMMANDS = (
    CommandRow("run", "answer what a spec asks: makespan sweep SPEC.toml -o TABLE", f"{__name__}.run"),
    CommandRow("export", "the table as CSV or Parquet", f"{__name__}.table:export"),
    CommandRow("plot", "curves, maps and times as a picture", f"{__name__}.table:plot"),
)


class _Sweep(LazyGroup):
    """A group in which a spec or an option where a command should be means `run`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called."""
        is_run = args[0].startswith("-") or PurePath(args[0]).suffix == ".toml"
        return super().resolve_command(ctx, ["run", *args] if is_run else args)


@click.group(
    cls=_Sweep,
    table=COMMANDS,
    no_args_is_help=False,
    epilog=examples("makespan sweep warps.toml -o warps.sqlite", "makespan sweep export warps.sqlite -o warps.csv"),
    context_settings={"ignore_unknown_options": True},
)
def command() -> None:
    """Answer many questions on this machine or on a cluster, keep the answers in a table, and draw them.

    'makespan sweep SPEC.toml -o TABLE' is 'makespan sweep run SPEC.toml -o TABLE'.
    """
