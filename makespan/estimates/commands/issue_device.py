"""Options that name an SM for the dual-issue tests, and its measurement."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from makespan.cli.help_page import stack
from makespan.cli.parameters import OneOf
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.dual_issue import Characteristics
    from makespan.estimates.dual_issue.arbiter import Pattern

REGISTERS = 32
# The first arguments of `measure_characteristics`.
device_options = stack(
    click.option("--device", metavar="vgk110[:KEY=VALUE,...]", help="a virtual GK110 (the default); keys: noise, seed,"
                 " conflicts, arbiter, bubbles, latency"),
    click.option("--import", "table", type=click.Path(path_type=Path), metavar="FILE.csv", help="measurements instead:"
                 " test,key,ops_per_cycle,gap,latency"),
    click.option("--lanes", type=int, help="32-bit lanes of an SM, with --import [default: 192]"),
    click.option("--schedulers", type=int, help="warp schedulers of an SM, with --import [default: 4]"),
    click.option("--threshold", type=OneOf(["auto", "patent"]), default="auto", show_default=True,
                 help="a bank conflict: by the largest gap of throughputs, or below 99.5 % of theory"),
    click.option("--fast", is_flag=True, help="compare each register with one of each bank, not with all"),
)  # fmt: skip


def measure_characteristics(
    *,
    device: str | None = None,
    table: Path | None = None,
    lanes: int | None = None,
    schedulers: int | None = None,
    threshold: str = "auto",
    fast: bool = False,
    registers: int = REGISTERS,
    single_code: bool = False,
    only: "Sequence[Pattern]" = (),
) -> "Characteristics":
    """Return the characteristics that the tests find in a device or in a table of measurements.

    Args:
        only: the patterns to measure; none: the six of the ranking.

    Raises:
        InputError: options that contradict each other, or that name no device and no table.
        MeasurementError: a test whose result would be a guess.
    """
    from makespan.estimates.dual_issue import SmDescription, Threshold, characterise, measurements, parse_device
    from makespan.estimates.dual_issue.arbiter import PATTERNS

    limit = Threshold(threshold)
    given = {name: number for name, number in (("lanes", lanes), ("schedulers", schedulers)) if number is not None}
    if table is not None:
        if device is not None or fast or single_code:
            raise InputError("--import is a finished measurement: no --device, --fast or --single-code beside it")
        return measurements.read(table, SmDescription(**given), limit)
    if given:
        raise InputError("--lanes and --schedulers describe the SM of --import; a device knows its own")
    name = device or "vgk110"
    return characterise(
        parse_device(name),
        range(registers),
        limit,
        name=name,
        origin=f"makespan measure dual-issue on the virtual device {name}",
        is_virtual=True,
        fast=fast,
        single_code=single_code,
        only=only or PATTERNS,
    )
