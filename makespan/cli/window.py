"""`--gantt`, `--from` and `--to`: the files of a schedule, and which of its cycles a picture shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from makespan.cli.help_page import Decorator, section
from makespan.host.errors import InputError
from makespan.report.pictures import PICTURES
from makespan.report.schedule.file import ENDS
from makespan.report.schedule.panels import CycleWindow


def gantt_option(what: str) -> Decorator:
    """Return the option `gantt`: the files to write a schedule to, and in the help which schedule that is."""
    return section(
        "Output",
        click.option(
            "--gantt",
            type=click.Path(path_type=Path),
            multiple=True,
            metavar="FILE",
            help=f"{what} as {' '.join(ENDS)}; can be repeated",
        ),
    )


window_options = section(
    "Output",
    click.option(
        "--from", "first", type=click.IntRange(0), metavar="CYCLE", help="the first that the picture of --gantt shows"
    ),
    click.option("--to", "end", type=click.IntRange(1), metavar="CYCLE", help="the first that it leaves out"),
)
"""Give a command `first` and `end`, both None where they are not given."""


def check_window(gantt: Sequence[Path], first: int | None, end: int | None) -> None:
    """Refuse a window before the work starts that no schedule has.

    Raises:
        InputError: there is no picture, or it would have no cycle.
    """
    if first is None and end is None:
        return
    if not gantt or any(path.suffix.lower() not in PICTURES for path in gantt):
        raise InputError("--from and --to are for a picture: give --gantt with a name in .png, .svg or .pdf")
    if end is not None and end <= (first or 0):
        raise InputError(f"--from {first or 0} --to {end}: the picture would have no cycle")


def drawn_window(makespan: int, first: int | None, end: int | None) -> CycleWindow | None:
    """Return the cycles to draw; cycles beyond the makespan are cut.

    None, with a line on stderr, means that the schedule ends before the first of them: the answer is known by then, and
    the exit code is that of the answer.

    None, with a line on stderr, where the schedule is over before the first of them: the answer is known by then, and
    the exit code is that of the answer.
    """
    if first is not None and first >= makespan:
        said = f"--from {first}: the schedule has only {makespan} cycles, numbered from 0; no picture"
        click.echo(f"makespan: {said}", err=True)
        return None
    return CycleWindow(first or 0, makespan if end is None else min(end, makespan))


def written_lines(paths: Sequence[Path]) -> Iterator[str]:
    """Yield a line for each file of a schedule."""
    yield from (f"{'picture' if path.suffix.lower() in PICTURES else 'schedule'}: {path}" for path in paths)
