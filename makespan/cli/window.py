"""`--gantt`, `--from`, `--to` and `--bundle`: the files of a result, and which cycles of a schedule are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from makespan.cli.help_page import Decorator, section
from makespan.cli.output import refuse_twice, write_all
from makespan.cli.parameters import FILE
from makespan.host.errors import InputError
from makespan.report.gantt.chart import CycleWindow
from makespan.report.pictures import PICTURES
from makespan.report.result.bundle import check_bundle_path
from makespan.report.schedule.file import ENDS


def gantt_option(what: str) -> Decorator:
    """Return the option `gantt`: the files to write a schedule to, and in the help which schedule that is."""
    return section(
        "Output",
        click.option(
            "--gantt", type=FILE, multiple=True, metavar="FILE", help=f"{what} as {' '.join(ENDS)}; can be repeated"
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


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files of a result: its schedule, of which pictures may show a part, and its evidence."""

    gantt: tuple[Path, ...]
    bundle: Path | None
    first: int | None
    end: int | None

    def check(self, check_path: Callable[[Path], None]) -> None:
        """Refuse files before the work starts that could not be written after it.

        Args:
            check_path: refuses a file that is none of a schedule.

        Raises:
            InputError: a file that cannot be written, that is there twice, or that would have no cycle.
        """
        for path in self.gantt:
            check_path(path)
        if self.bundle is not None:
            check_bundle_path(self.bundle)
        refuse_twice((*self.gantt, *((self.bundle,) if self.bundle else ())))
        if self.first is None and self.end is None:
            return
        if not self.gantt or any(path.suffix.lower() not in PICTURES for path in self.gantt):
            raise InputError("--from and --to are for a picture: give --gantt with a name in .png, .svg or .pdf")
        if self.end is not None and self.end <= (self.first or 0):
            raise InputError(f"--from {self.first or 0} --to {self.end}: the picture would have no cycle")

    def write(
        self,
        makespan: int | None,
        draw: Callable[[Path, CycleWindow | None], None],
        leave: Callable[[Path], None] = lambda _: None,
    ) -> list[str]:
        """Write all files and return a line for each.

        Args:
            makespan: of the schedule, in cycles; None without a schedule.

        Raises:
            InputError: a file that cannot be written; the others are.
        """
        part, drawn = None, self.gantt
        if drawn and makespan is not None and self.first is not None and self.first >= makespan:
            # A window that begins after the end of the schedule leaves no picture, and the answer still counts.
            said = f"--from {self.first}: the schedule has only {makespan} cycles, numbered from 0; no picture"
            click.echo(f"makespan: {said}", err=True)
            drawn = ()
        elif drawn and makespan is not None:
            part = CycleWindow(self.first or 0, makespan if self.end is None else min(self.end, makespan))
        bundle = [self.bundle] if self.bundle else []
        write_all([*(partial(draw, path, part) for path in drawn), *(partial(leave, path) for path in bundle)])
        kinds = {path: "picture" if path.suffix.lower() in PICTURES else "schedule" for path in drawn}
        return [*(f"{kind}: {path}" for path, kind in kinds.items()), *(f"bundle: {path}" for path in bundle)]
