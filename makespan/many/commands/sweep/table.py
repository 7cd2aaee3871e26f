"""`makespan sweep export` and `makespan sweep plot`: the table of a sweep as data, and as a picture."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.host.errors import InputError
from makespan.many.report.sweep_file import check_table_path, write_table
from makespan.many.report.sweep_picture import draw_sweep
from makespan.many.sweep.rows import choose_rows, sweep_rows
from makespan.many.sweep.series import AnswerTimes, SweepCurves, SweepMap, answer_times, heat_map, sweep_curves
from makespan.many.sweep.store import open_store
from makespan.report.pictures import check_picture_path


@click.command(
    "plot",
    cls=HelpCommand,
    epilog=examples(
        "makespan sweep plot warps.sqlite --over warps --by capacity -o curves.png",
        "makespan sweep plot warps.sqlite --over warps --over capacity -o map.png",
        "makespan sweep plot warps.sqlite --by capacity -o times.png",
    ),
)
@click.argument("table", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="a picture: .png, .svg, .pdf")
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
    shown: SweepCurves | SweepMap | tuple[AnswerTimes, ...]
    match over:
        case ():
            shown = answer_times(left, by)
        case (only,):
            shown = sweep_curves(left, only, by)
        case first, second, *_:
            shown = heat_map(left, (first, second))
    draw_sweep(left, shown, output)
    click.echo(f"{len(left)} questions: {output}")


@click.command("export", cls=HelpCommand, epilog=examples("makespan sweep export warps.sqlite -o warps.csv"))
@click.argument("table", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="a file .csv or .parquet")
def export(table: Path, output: Path) -> None:
    """Write all questions of a table with their answers, or with the reason why there is none."""
    check_table_path(output)
    with open_store(table) as store:
        found = sweep_rows(store)
    write_table(found, output)
    click.echo(f"{len(found)} questions: {output}")
