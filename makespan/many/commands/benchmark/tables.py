"""`makespan benchmark table` and `show`: a library as tables, and as JSON lines for other solvers."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import DATA, format_option, render
from makespan.cli.running import BAD_INPUT, DONE
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
from makespan.verify import digest


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
def table(
    folder: Path, families: tuple[str, ...], names: tuple[str, ...], results: tuple[Path, ...], each: bool, output: str
) -> None:
    """Show what is known of LIBRARY and what RESULTS claim. Nothing is checked here, but by 'benchmark check'."""
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


@click.command("show", cls=HelpCommand, epilog=examples("makespan benchmark show benchmarks/library --family paper"))
@library_options
def show(folder: Path, families: tuple[str, ...], names: tuple[str, ...]) -> int:
    """The instances of LIBRARY as JSON lines: name, digest, and the instance as in a bundle (docs/bundle.md)."""
    posed, failed = ChosenInstances.of(folder, families, names).posed()
    for name, instance in posed.items():
        click.echo(DATA["json"]({"instance": name, "digest": digest(instance), "question": instance}))
    return BAD_INPUT if failed else DONE
