"""`makespan benchmark show`: the instances of a library as JSON lines."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import DATA
from makespan.cli.running import BAD_INPUT, DONE
from makespan.many.commands.benchmark.library import ChosenInstances, library_options
from makespan.verify import digest


@click.command("show", cls=HelpCommand, epilog=examples("makespan benchmark show benchmarks/library --family paper"))
@library_options
def command(folder: Path, families: tuple[str, ...], names: tuple[str, ...]) -> int:
    """The instances of LIBRARY as JSON lines: name, digest, and the instance as in a bundle (docs/bundle.md)."""
    posed, failed = ChosenInstances.of(folder, families, names).posed()
    for name, instance in posed.items():
        click.echo(DATA["json"]({"instance": name, "digest": digest(instance), "question": instance}))
    return BAD_INPUT if failed else DONE
