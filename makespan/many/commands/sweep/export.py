"""`makespan sweep export`: the table as data."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.many.report.sweep_file import check_table_path, write_table
from makespan.many.sweep.rows import sweep_rows
from makespan.many.sweep.store import open_store


@click.command("export", cls=HelpCommand, epilog=examples("makespan sweep export warps.sqlite -o warps.csv"))
@click.argument("table", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="a file .csv or .parquet")
def command(table: Path, output: Path) -> None:
    """Write all questions of a table with their answers, or with the reason why there is none."""
    check_table_path(output)
    with open_store(table) as store:
        found = sweep_rows(store)
    write_table(found, output)
    click.echo(f"{len(found)} questions: {output}")
