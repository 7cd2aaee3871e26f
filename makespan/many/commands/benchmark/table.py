"""`makespan benchmark table`: instances solved, gaps and times, by family and solver."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.many.commands.benchmark.library import ChosenInstances, library_options
from makespan.many.library import claims
from makespan.many.library.claims import BoundClaim
from makespan.many.report.library import (
    KNOWN,
    LibraryRow,
    family_rows,
    instance_rows,
    library_document,
    library_markdown,
    library_text,
)


@click.command(
    "table",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark table benchmarks/library",
        "makespan benchmark table benchmarks/library theirs.jsonl --each --format markdown",
    ),
)
@library_options
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@click.option("--each", is_flag=True, help="a line for each instance, with the best of all claims")
@format_option("markdown")
def command(
    folder: Path, families: tuple[str, ...], names: tuple[str, ...], results: tuple[Path, ...], each: bool, output: str
) -> None:
    """What is known of LIBRARY and what RESULTS claim. Nothing is checked: that is what 'benchmark check' is for."""
    asked = ChosenInstances.of(folder, families, names)
    solvers: dict[str, list[BoundClaim]] = {KNOWN: list(asked.about(asked.known))}
    for path in results:
        for claim in asked.about(claims.read_claims(path)):
            solvers.setdefault(claim.who, []).append(claim)
    every = [claim for found in solvers.values() for claim in found]
    rows: list[LibraryRow] = [*instance_rows(asked.entries, every)] if each else [*family_rows(asked.entries, solvers)]
    click.echo(
        render(
            output,
            text=lambda: library_text(rows),
            data=lambda: library_document(rows),
            markdown=lambda: library_markdown(rows),
        )
    )
