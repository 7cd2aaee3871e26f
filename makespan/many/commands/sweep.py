"""`makespan sweep`: many questions to `solve`, and a table of what it answers, as data and as pictures."""

from pathlib import Path, PurePath

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.lazy import CommandRow, LazyGroup
from makespan.cli.output import quiet_option
from makespan.cli.parameters import FILE, SECONDS
from makespan.cli.running import DONE, INTERRUPTED, UNDECIDED
from makespan.host.errors import BrokenPromiseError, InputError
from makespan.many.commands.asking import WORKERS, QuestionRun, bundles_option, table_option
from makespan.many.report.sweep_file import check_table_path, write_table
from makespan.many.report.sweep_picture import draw_sweep
from makespan.many.spec import read_spec
from makespan.many.sweep.rows import choose_rows, sweep_rows
from makespan.many.sweep.running import SweepTally
from makespan.many.sweep.store import open_store
from makespan.report.pictures import check_picture_path

COMMANDS = (
    CommandRow("run", "answer what a spec asks: makespan sweep SPEC.toml -o TABLE", f"{__name__}:run"),
    CommandRow("export", "the table as CSV or Parquet", f"{__name__}:export"),
    CommandRow("plot", "curves, maps and times as a picture", f"{__name__}:plot"),
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


@click.command(
    "run",
    cls=HelpCommand,
    epilog=examples(
        "makespan sweep warps.toml -o warps.sqlite", "makespan sweep warps.toml -o warps.sqlite --retry-failed"
    ),
)
@click.argument("spec", metavar="SPEC.toml", type=FILE)
@table_option
@click.option("--workers", type=WORKERS, help="processes here [default: one for each core]")
@click.option("--scheduler", metavar="ADDRESS", help="of a dask.distributed cluster, such as tcp://10.0.0.1:8786")
@click.option("--wall-limit", type=SECONDS, default=3600.0, show_default=True, help="of a job, before it is killed")
@click.option("--retry-failed", is_flag=True, help="ask again what has failed before")
@bundles_option
@quiet_option
def run(
    spec: Path,
    table: Path,
    workers: int | None,
    scheduler: str | None,
    wall_limit: float,
    retry_failed: bool,
    bundles: Path | None,
    quiet: bool,
) -> int:
    """Answer all questions of a spec, several at once, and keep the answers.

    What the table has already is not computed again, so a sweep that was interrupted goes on where it was. The exit
    code is 0 when every question has an answer, and 3 when some have none.
    """
    if workers is not None and scheduler is not None:
        raise InputError("--workers are of this machine, and those of --scheduler are counted there: give one of them")
    folder = spec.resolve().parent
    asking = QuestionRun(spec, folder, table, wall_limit, workers, scheduler, retry_failed, bundles, quiet=quiet)
    asking.check()
    tally = asking.answer([question.ask for question in read_spec(spec)])
    return INTERRUPTED if tally is None else _tell_tally(tally, table)


def _tell_tally(tally: SweepTally, table: Path) -> int:
    """Print the result of a sweep, and return the exit code."""
    known = f", {tally.known} known before" if tally.known else ""
    missing = tally.failed + tally.skipped
    lost = f"; {missing} have none, and 'makespan sweep export' tells why" if missing else ""
    such = f" ({tally.reason})" if tally.reason else ""
    again = "; --retry-failed asks them again" if tally.skipped else ""
    click.echo(
        f"{tally.known + tally.answered} of {tally.total} questions have an answer in {table}{known}{lost}{such}{again}"
    )
    # Two proofs that exclude each other are a bug of this program, whatever else the sweep found.
    if tally.contradictions:
        raise BrokenPromiseError("; ".join(map(str, tally.contradictions)))
    return DONE if not missing else UNDECIDED


@click.command(
    "plot",
    cls=HelpCommand,
    epilog=examples(
        "makespan sweep plot warps.sqlite --over warps --by capacity -o curves.png",
        "makespan sweep plot warps.sqlite --over warps --over capacity -o map.png",
        "makespan sweep plot warps.sqlite --by capacity -o times.png",
    ),
)
@click.argument("table", metavar="TABLE", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="a picture: .png, .svg, .pdf")
@click.option("--over", multiple=True, metavar="OPTION", help="the axis of curves; twice: the axes of a map")
@click.option("--by", metavar="OPTION", help="a curve for each value")
@click.option("--where", multiple=True, metavar="OPTION=VALUE", help="only such questions; can be repeated")
def plot(table: Path, output: Path, over: tuple[str, ...], by: str | None, where: tuple[str, ...]) -> None:
    """Draw worst cases over an option, as curves, or over two, as a map; without --over, how long answers took."""
    check_picture_path(output)
    if len(over) > 2 or (len(over) == 2 and by is not None):
        raise InputError("--over is given once for curves, which --by tells apart, and twice for a map")
    wanted = [(name, value) for name, sign, value in (each.partition("=") for each in where) if sign]
    if len(wanted) < len(where):
        raise InputError("--where: expected OPTION=VALUE, such as warps=8")
    with open_store(table) as store:
        found = sweep_rows(store)
    if not found:
        raise InputError(f"{table}: nothing was asked yet")
    left = choose_rows(found, wanted)
    draw_sweep(left, over, by, output)
    click.echo(f"{len(left)} questions: {output}")


@click.command("export", cls=HelpCommand, epilog=examples("makespan sweep export warps.sqlite -o warps.csv"))
@click.argument("table", metavar="TABLE", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="a file .csv or .parquet")
def export(table: Path, output: Path) -> None:
    """Write all questions of a table with their answers, or with the reason why there is none."""
    check_table_path(output)
    with open_store(table) as store:
        found = sweep_rows(store)
    write_table(found, output)
    click.echo(f"{len(found)} questions: {output}")
