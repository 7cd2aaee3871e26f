"""`makespan benchmark show`: the instances of a library as JSON lines."""

import json
from pathlib import Path

import click

from makespan.cli.benchmark.library import Asked, library_options, posed
from makespan.cli.parameters import examples
from makespan.verify import digest


@click.command("show", epilog=examples("makespan benchmark show benchmarks/library --family paper"))
@library_options
def command(folder: Path, families: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The instances of LIBRARY as JSON lines: name, digest, and the instance as in a bundle (docs/bundle.md)."""
    asked = Asked.of(folder, families, names)
    for entry in asked.entries:
        instance = posed(entry, asked.library)
        click.echo(json.dumps({"instance": entry.name, "digest": digest(instance), "question": instance}))
