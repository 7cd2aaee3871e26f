"""Options that name an SM for the dual-issue tests, and its measurement."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from makespan.cli.source import stack
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.dual_issue import Characteristics
    from makespan.estimators.dual_issue.arbiter import Pattern

_LANES, _SCHEDULERS = 192, 4
device_options = stack(
    click.option("--device", metavar="vgk110[:KEY=VALUE,...]", help="a virtual GK110 (the default); keys: noise, seed,"
                 " conflicts, arbiter, bubbles, latency"),
    click.option("--import", "table", type=click.Path(path_type=Path), metavar="FILE.csv", help="measurements instead:"
                 " test,key,ops_per_cycle,gap,latency"),
    click.option("--lanes", type=int, help="32-bit lanes of an SM, with --import [default: 192]"),
    click.option("--schedulers", type=int, help="warp schedulers of an SM, with --import [default: 4]"),
    click.option("--threshold", type=click.Choice(["auto", "patent"]), default="auto", show_default=True,
                 help="a bank conflict: by the largest gap of throughputs, or below 99.5 % of theory"),
    click.option("--fast", is_flag=True, help="compare each register with one of each bank, not with all"),
)  # fmt: skip
"""The options that `measured` takes."""


def measured(
    *,
    device: str | None,
    table: Path | None,
    lanes: int | None,
    schedulers: int | None,
    threshold: str,
    fast: bool,
    registers: int,
    single_code: bool = False,
    only: "Sequence[Pattern]",
) -> "Characteristics":
    """What the options' device or table is found to be.

    Raises:
        InputError: options that contradict each other, or see `characterise` and `measurements.read`.
        MeasurementError: a result that would be a guess.
    """
    from makespan.estimators.dual_issue import Threshold, characterise, measurements, parse_device

    limit = Threshold(threshold)
    if table is not None:
        if device is not None or fast or single_code:
            raise InputError("--import is a finished measurement: no --device, --fast or --single-code beside it")
        return measurements.read(
            table,
            measurements.Sm(_LANES if lanes is None else lanes, _SCHEDULERS if schedulers is None else schedulers, 32),
            limit,
        )
    if lanes is not None or schedulers is not None:
        raise InputError("--lanes and --schedulers describe the SM of --import; a device knows its own")
    name = device or "vgk110"
    return characterise(
        parse_device(name),
        range(registers),
        limit,
        name=name,
        origin=f"makespan microbench dual-issue on the virtual device {name}",
        is_virtual=True,
        fast=fast,
        single_code=single_code,
        only=only,
    )
