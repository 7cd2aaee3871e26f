"""`makespan estimate`: what is likely, by published models; never a bound."""

import click

from makespan.cli.help_page import examples
from makespan.cli.lazy import CommandRow, LazyGroup
from makespan.host.errors import did_you_mean

METHODS = {
    "hong-kim": "memory and computation warps (Hong, Kim 2009)",
    "kleimenov-popova": "waves and bandwidths (Kleimenov, Popova 2021)",
    "opencl-cost-table": "a measured table of costs (Pöppl 2014)",
    "dual-issue": "sustained FFMA throughput (Zhang et al. 2017)",
}
# Names that the literature behind a method suggests.
ALIASES = {"static-fixpoint": "kleimenov-popova", "cost-table": "opencl-cost-table"}

_METHOD = "--method"
COMMANDS = (
    *(CommandRow(name, about, f"{__name__}.methods:{name.replace('-', '_')}") for name, about in METHODS.items()),
    CommandRow("compare", "all of them, beside what is proven (also --compare)", f"{__name__}.compare"),
    CommandRow("evaluate", "how good a cost table predicts (also --evaluate)", f"{__name__}.cost_table:evaluate"),
)


class MethodGroup(LazyGroup):
    """A group whose first word is a method, alone or behind --method, or --compare or --evaluate."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make the method the command."""
        return super().parse_args(ctx, _with_command(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the method under the name by which the help calls it."""
        name, method, rest = super().resolve_command(ctx, args)
        return f"{_METHOD} {name}" if name in METHODS else f"--{name}", method, rest


def _with_command(args: list[str]) -> list[str]:
    words = [*args[0].split("=", 1), *args[1:]] if args and args[0].startswith(f"{_METHOD}=") else args
    is_method = words[:1] == [_METHOD]
    named, *rest = words[is_method:] or [""]
    name = ALIASES.get(named, named)
    if is_method and name not in METHODS:
        near = did_you_mean(name, METHODS)
        raise click.UsageError(f"unknown method {name!r}{near or ';'} there are {', '.join(METHODS)}")
    name = name.removeprefix("--") if name in ("--compare", "--evaluate") else name
    if name in (row.name for row in COMMANDS):
        return [name, *rest]
    if not set(args) & {"-h", "--help"}:
        raise click.UsageError(f"which method? begin with --method {'|'.join(METHODS)}, or --compare for all")
    return args


@click.group(
    cls=MethodGroup,
    table=COMMANDS,
    no_args_is_help=False,
    epilog=examples("makespan estimate --method dual-issue --ffma 1e9", "makespan estimate --method hong-kim --help"),
    options_metavar="",
    subcommand_metavar="--method NAME [OPTIONS] [SOURCE]",
)
def command() -> None:
    """Estimate the time of a kernel launch by a published model. An estimate is not a bound.

    `makespan estimate --method NAME --help` shows the options of a method; its name may also stand without --method.
    The names static-fixpoint (kleimenov-popova) and cost-table (opencl-cost-table) are known, too.
    """
