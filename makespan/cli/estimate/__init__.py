"""`makespan estimate`: what is likely, by published models; never a bound."""

import click

from makespan.cli.lazy import LazyGroup

METHODS = {
    "hong-kim": "memory and computation warps (Hong, Kim 2009)",
    "kleimenov-popova": "waves and bandwidths (Kleimenov, Popova 2021)",
    "opencl-cost-table": "a measured table of costs (Pöppl 2014)",
    "dual-issue": "sustained FFMA throughput (Zhang et al. 2017)",
}
ALIASES = {"static-fixpoint": "kleimenov-popova", "cost-table": "opencl-cost-table"}
"""Names that the literature behind a method suggests."""

COMPARE = "compare"
COMMANDS = {**METHODS, COMPARE: "all of them, beside what is proven (also --compare)"}


class MethodGroup(LazyGroup):
    """Takes the method as `--method NAME` anywhere, or as the first word; `--compare` anywhere asks for all methods."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the method to the front, where a group expects its command."""
        return super().parse_args(ctx, _method_first(list(args)))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The method under the name by which the help calls it."""
        name, method, rest = super().resolve_command(ctx, args)
        return f"--method {name}" if name in METHODS else f"--{name}", method, rest


def _method_first(args: list[str]) -> list[str]:
    if "--compare" in args:
        if any(word.partition("=")[0] == "--method" for word in args) or args[0] in (*METHODS, *ALIASES):
            raise click.UsageError("give either --method NAME or --compare, which asks all methods")
        args.remove("--compare")
        return [COMPARE, *args]
    for at, word in enumerate(args):
        if word == "--method" and at + 1 < len(args):
            return [_method(args[at + 1]), *args[:at], *args[at + 2 :]]
        if word.startswith("--method="):
            return [_method(word.partition("=")[2]), *args[:at], *args[at + 1 :]]
    if args and args[0] in ALIASES:
        return [ALIASES[args[0]], *args[1:]]
    if not (args and args[0] in COMMANDS) and not set(args) & {"-h", "--help"}:
        raise click.UsageError(f"which method? give --method {'|'.join(METHODS)}, or --compare for all")
    return args


def _method(name: str) -> str:
    if name not in METHODS and name not in ALIASES:
        raise click.UsageError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
    return ALIASES.get(name, name)


@click.group(
    cls=MethodGroup,
    package=__name__,
    commands=COMMANDS,
    no_args_is_help=False,
    options_metavar="",
    subcommand_metavar="--method NAME [OPTIONS] [SOURCE]",
)
def command() -> None:
    """Estimate the time of a kernel launch by a published model. An estimate is not a bound.

    `makespan estimate --method NAME --help` shows the options of a method; its name may also come first, without
    --method. The names static-fixpoint (kleimenov-popova) and cost-table (opencl-cost-table) are known, too.
    """
