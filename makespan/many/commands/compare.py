"""`makespan compare`: the worst case against the pessimistic bound, over the number of warps and a quantity."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import source_options
from makespan.cli.output import paint_verdicts, quiet_option, refuse_twice, write_all
from makespan.cli.parameters import FILE, SECONDS, SIZE, FormType
from makespan.cli.running import DONE, INTERRUPTED, UNDECIDED, interruptible
from makespan.cli.source import instances
from makespan.host.errors import InputError
from makespan.host.stopwatch import within
from makespan.kernels.options import OptionForm
from makespan.many.report.comparison import comparison_subject, comparison_summary, comparison_table, status_counts
from makespan.many.report.comparison_file import DATA, check_comparison_path, write_comparison
from makespan.many.study.comparison import (
    Comparison,
    ComparisonPoint,
    MachineAxis,
    MachineQuantity,
    compute_points,
    plan_points,
)
from makespan.model.instance import Instance
from makespan.model.strings import SUFFIXES
from makespan.proof.engines import Limits
from makespan.report.lines import assumption_lines, terminal_width, wrap_line

MAX_POINTS = 10_000
_DIGITS = 7  # longer numbers are refused before they are converted


def read_axis(text: str) -> MachineAxis:
    """Read `L=1..4`, `L.latency=20,100..103,400`, `L.interval=1..4` or `issue-width=1..4`.

    Raises:
        InputError: the text is something else, or makes too many values. Which classes there are is known later.
    """
    match = re.fullmatch(r"(?:(issue-width)|([A-Z])(?:\.(capacity|interval|latency))?)=(.+)", text)
    if match is None:
        raise InputError(f"{text!r} is not of the kind L=1..4, L.latency=1..20, L.interval=1..4 or issue-width=1..4")
    width, unit, quantity, written = match.groups()
    values: list[int] = []
    for item in written.split(","):
        numbers = _range(item)
        if numbers is None:
            raise InputError(f"{item!r} is neither a number from 1 nor a rising range such as 1..4")
        if len(values) + len(numbers) > MAX_POINTS:  # before they are made: a range may be huge
            raise InputError(f"{item} makes more than {MAX_POINTS} values")
        values += numbers
    return MachineAxis(MachineQuantity(width or quantity or "capacity"), tuple(values), unit)


_AXIS = FormType(OptionForm("X=A..B|X.LATENCY=A..B|X.INTERVAL=A..B|ISSUE-WIDTH=A..B", read_axis))


def _range(item: str) -> range | None:
    match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})(?:\.\.(\d{{1,{_DIGITS}}}))?", item, re.ASCII)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if 1 <= first <= last else None


@click.command(
    "compare", cls=HelpCommand, epilog=examples("makespan compare --string CLLCLL --warps 1..8 -o curve.png")
)
@source_options
@section(
    "Source",
    click.option(
        "--vary", type=_AXIS, help="a heat map: also over ports, latency or interval of a class, or issue width"
    ),
)
@section(
    "Output",
    click.option(
        "--output",
        "-o",
        "outputs",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="a picture (.png, .svg, .pdf) or data (.csv, .json); can be repeated",
    ),
)
@section(
    "Effort",
    click.option("--best-case", is_flag=True, help="also the shortest work-conserving schedules"),
    click.option("--time-limit", type=SECONDS, default=10.0, show_default=True, help="per point"),
    click.option("--total-time-limit", type=SECONDS, default=600.0, show_default=True, help="for all points together"),
    click.option("--memory-limit", type=SIZE, default="8GiB", show_default=True, help="for the tables of a search"),
)
@quiet_option
def command(
    vary: MachineAxis | None,
    outputs: tuple[Path, ...],
    best_case: bool,
    time_limit: float,
    total_time_limit: float,
    memory_limit: int,
    quiet: bool,
    **source: Any,
) -> int:
    """The worst case against M^L + M^C, over the number of warps: curves or, with --vary, a heat map.

    SOURCE is a kernel (.ptx, .cu, .cubin) or '-', and --warps A..B says for which numbers of warps.
    """
    _check_outputs(outputs)
    with within(total_time_limit) as reading:
        asked = _instances(source, vary)
    points = plan_points(asked, vary)
    # One clock for all points: the time that reading took is gone.
    whole = Limits(reading.left, memory_limit)
    found: list[ComparisonPoint] = []
    with interruptible(whole, quiet=quiet):
        found.extend(compute_points(points, seconds=time_limit, whole=whole, best_case=best_case))
    name = source["source"] or "--string"
    comparison = Comparison(str(name), asked[0].machine, vary, tuple(found), whole.interrupted)
    try:
        write_all(partial(write_comparison, comparison, path) for path in outputs)
    finally:  # a file that fails must not cost the answer
        click.echo(paint_verdicts(_verdict(comparison) if quiet else _report(comparison)))
    for path in outputs if not quiet else ():
        click.echo(f"{'data' if path.suffix.lower() in DATA else 'picture'}: {path}")
    if comparison.interrupted:
        return INTERRUPTED
    return DONE if comparison.all_exact else UNDECIDED


def _check_outputs(outputs: Sequence[Path]) -> None:
    """Refuse before the work what would fail after it."""
    for path in outputs:
        check_comparison_path(path)
    refuse_twice(outputs)


def _instances(source: dict[str, Any], vary: MachineAxis | None) -> tuple[Instance, ...]:
    """The instances before anything is varied, one for each number of warps."""
    suffixes = (Path(source["source"] or "").suffix, f".{source['input_format']}")
    if any(suffix in SUFFIXES for suffix in suffixes):
        raise InputError("a comparison needs a kernel or a --string: an instance file says its numbers of warps itself")
    if source["warps"] is None:
        raise InputError("--warps is missing: for which numbers of warps, such as 1..48?")
    # Before a kernel is read: each point is a question of its own.
    count = len(source["warps"]) * (1 if vary is None else len(vary.values))
    if count > MAX_POINTS:
        raise InputError(f"{count} points exceed the limit of {MAX_POINTS}: narrow --warps or --vary")
    return tuple(question.instance for question in instances(**source))


def _report(comparison: Comparison) -> str:
    width = terminal_width()
    said = [*wrap_line(comparison_subject(comparison), width), *assumption_lines(comparison.assumptions, width)]
    return "\n".join([_verdict(comparison), comparison_table(comparison), *said])


def _verdict(comparison: Comparison) -> str:
    return f"{status_counts(comparison)}\n{comparison_summary(comparison)}"
