"""Options that name the measurements of dual issue, and their characteristics."""

from typing import TYPE_CHECKING

import click

from makespan.cli.help_page import stack
from makespan.cli.parameters import OneOf
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.dual_issue import Characteristics

# The arguments of `read_characteristics`.
table_options = stack(
    click.option("--import", "table", metavar="NAME|FILE.csv", help="measurements, test,key,ops_per_cycle,gap,latency"
                 " [default: tesla-k20, as published]"),
    click.option("--lanes", type=int, help="32-bit lanes of an SM, with --import [default: 192]"),
    click.option("--schedulers", type=int, help="warp schedulers of an SM, with --import [default: 4]"),
    click.option("--threshold", type=OneOf(["auto", "patent"]), default="auto", show_default=True,
                 help="a bank conflict: by the largest gap of throughputs, or below 99.5 % of theory"),
)  # fmt: skip


def read_characteristics(
    *, table: str | None = None, lanes: int | None = None, schedulers: int | None = None, threshold: str = "auto"
) -> "Characteristics":
    """Return the characteristics that a table of measurements gives; None is the published one.

    Raises:
        InputError: no such table, or a size of the SM of the published one.
        MeasurementError: a test whose result would be a guess.
    """
    from makespan.estimates.dual_issue import K20, SmDescription, Threshold, find

    given = {name: number for name, number in (("lanes", lanes), ("schedulers", schedulers)) if number is not None}
    if table is None and given:
        raise InputError("--lanes and --schedulers describe the SM of --import")
    return find(table or K20, SmDescription(**given), Threshold(threshold))
