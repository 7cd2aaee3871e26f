"""`makespan evaluate`: how good predictions are."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, remark, render
from makespan.cli.parameters import SECONDS, OneOf, extents
from makespan.cli.progress import counting
from makespan.cli.running import DONE, NOT_MEASURED
from makespan.estimates.commands.microbench.opencl import device_options, open_device
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.opencl_cost_table.evaluation import Quality

_BOTH = "both"


_EXAMPLES = examples("makespan evaluate cost-table --table rmbp-gt650m --virtual rmbp-gt650m --samples 20")


@click.group(no_args_is_help=False, epilog=_EXAMPLES, help="See how good predictions are, on random expressions.")
def command() -> None:
    """Group the evaluations of prediction methods."""


@command.command(
    "cost-table", cls=HelpCommand, short_help="Predicted over measured times, by a cost table.", epilog=_EXAMPLES
)
@device_options
@click.option("--table", required=True, metavar="NAME|FILE.json", help="the cost table that predicts")
@click.option("--samples", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="of each set")
@click.option(
    "--set",
    "kind",
    type=OneOf(["random", "realistic", _BOTH]),
    default=_BOTH,
    show_default=True,
    help="with all of + - * /, without division, or one after the other",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="of expressions and data")
@click.option("--depth", type=click.IntRange(1, 6), default=3, show_default=True, help="of the expressions, at most")
@click.option("--shape", metavar="RxC", default="1024x1024", show_default=True, help="of the array")
@click.option("--wg", type=click.IntRange(1), help="work-group size [default: that of the table, or 256]")
@click.option("--rel-tol", type=float, default=0.01, show_default=True, help="standard error of a time, relative")
@click.option("--time-limit", type=SECONDS, help="shared out among the samples; each has 5 runs [default: none]")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), metavar="FILE.csv", help="histogram of q")
@click.option("--plot", type=click.Path(path_type=Path), help="draw the histogram: .png, .svg or .pdf")
@format_option()
def cost_table(
    device: int | None,
    virtual: str | None,
    noise: float | None,
    table: str,
    kind: str,
    seed: int,
    target: Path | None,
    plot: Path | None,
    output: str,
    **options: Any,
) -> int:
    """Predict random domain iterations by a cost table, run them on the device, and compare: q = predicted / measured.

    Every result is checked against numpy. q above 1 is a prediction that is too high.
    """
    from makespan.estimates.opencl_cost_table.table import find
    from makespan.estimates.report.prediction_quality import csv, document, draw_quality, text
    from makespan.host.output_file import check_writable, write_whole
    from makespan.report.pictures import check_picture_path

    if target is not None:
        check_writable(target, "the histogram")
    if plot is not None:
        check_picture_path(plot)
        if target is not None and target.resolve() == plot.resolve():
            raise InputError("two outputs have the same name")
    priced = find(table)
    found = open_device(device, virtual, noise, seed)
    if found.name.removeprefix("virtual ") != priced.device.removeprefix("virtual "):
        click.echo(f"warning: the table was measured on {priced.device}, and this is {found.name}", err=True)
    kinds = ("random", "realistic") if kind == _BOTH else (kind,)
    qualities = {name: _quality(name, found, priced, seed, **options) for name in kinds}
    if target is not None:
        write_whole(target, csv(qualities).encode(), "the histogram")
    if plot is not None:
        draw_quality(qualities, plot)
    said = render(
        output,
        text=lambda: "\n".join(text(name, quality) for name, quality in qualities.items()),
        data=lambda: document(qualities),
    )
    click.echo(said)
    for path, what in ((target, "histogram"), (plot, "picture")):
        if path is not None:
            remark(f"{what}: {path}", output)
    wrong = [sample.expression for q in qualities.values() for sample in q.samples if not sample.agrees]
    if wrong:
        click.echo(f"makespan: the device computes something else than numpy: {'; '.join(wrong[:10])}", err=True)
        return NOT_MEASURED
    return DONE


def _quality(
    name: Any,
    device: Any,
    table: Any,
    seed: int,
    *,
    samples: int,
    depth: int,
    shape: str,
    wg: int | None,
    rel_tol: float,
    time_limit: float | None,
) -> "Quality":
    from makespan.estimates.opencl_cost_table.evaluation import evaluate, iterations
    from makespan.estimates.opencl_cost_table.expression import Array, Type

    if not 0 < rel_tol < 1:
        raise InputError(f"--rel-tol {rel_tol}: a part of the mean, above 0 and below 1")
    array = Array("matrix", Type.FLOAT, extents(shape, "--shape"))
    drawn = list(islice(iterations(array, kind=name, seed=seed, depth=depth), samples))
    group = wg or table.work_group or 256
    with counting(samples, f"running {name} samples") as one_more:
        return evaluate(
            device,
            table,
            drawn,
            group=group,
            seed=seed,
            tolerance=rel_tol,
            seconds=time_limit,
            kept=lambda _: one_more(),
        )
