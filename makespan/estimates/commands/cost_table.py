"""`makespan measure opencl` measures the cost table of a device, and `makespan estimate --evaluate` tests one."""

import time
from contextlib import ExitStack
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import Decorator, HelpCommand, examples, stack
from makespan.cli.output import format_option, remark, render
from makespan.cli.parameters import FILE, SECONDS, OneOf, choice, extents
from makespan.cli.progress import counting
from makespan.cli.running import DONE, INTERRUPTED
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.opencl_cost_table.device import Measurement, TimedDevice
    from makespan.estimates.opencl_cost_table.evaluation import Quality
    from makespan.estimates.opencl_cost_table.suite import Plan
    from makespan.estimates.opencl_cost_table.table import OpenClCostTable

_SECONDS_PER_SAVE = 2.0
_SECONDS = {False: 480.0, True: 60.0}  # by --quick
_SHOWN = 10
_BOTH = "both"

# The options that choose a device: a real one, or one that takes as long as a table says.
device_options = stack(
    click.option("--device", type=click.IntRange(0), help="number of the OpenCL device [default: 0]"),
    click.option("--virtual", metavar="NAME|FILE.json", help="no device: one that takes as long as a table says"),
    click.option("--noise", type=click.FloatRange(0, 1, max_open=True), help="of --virtual, relative [default: 0.01]"),
)
tolerance_option = click.option(
    "--rel-tol", "tolerance", type=float, default=0.01, show_default=True, help="standard error of a time, relative"
)


def _seed_option(of: str) -> Decorator:
    return click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help=of)


def open_device(device: int | None, virtual: str | None, noise: float | None, seed: int) -> "TimedDevice":
    """Return the device of these options.

    Raises:
        InputError: options that contradict each other, no such device or table.
        MeasurementError: no OpenCL, or a device that cannot be timed.
    """
    if virtual is None:
        if noise is not None:
            raise InputError("--noise is for --virtual")
        from makespan.estimates.opencl_cost_table.opencl_device import OpenCLDevice

        return OpenCLDevice(device or 0)
    if device is not None:
        raise InputError("--device and --virtual exclude each other")
    from makespan.estimates.opencl_cost_table.device import NOISE, VirtualOpenClDevice
    from makespan.estimates.opencl_cost_table.table import find

    return VirtualOpenClDevice(find(virtual), noise=NOISE if noise is None else noise, seed=seed)


@click.command("opencl", cls=HelpCommand, epilog=examples("makespan measure opencl --quick -o table.json"))
@device_options
@_seed_option("of the noise of --virtual")
@click.option("--quick", is_flag=True, help="16 sizes instead of 128")
@click.option("--full", is_flag=True, help="chains of all lengths from 1 to 128, instead of powers of two")
@tolerance_option
@choice(
    "--int-chain",
    "mixed fold",
    "chains of integers mixed with exclusive or, or as they are, which compilers fold into one operation",
)
@click.option("--double", is_flag=True, help="measure floats of 64 bits, too")
@click.option("--time-limit", type=SECONDS, help="for all points; each has 5 runs [default: 480, with --quick 60]")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE.json", help="the table")
def measure(
    device: int | None,
    virtual: str | None,
    noise: float | None,
    seed: int,
    time_limit: float | None,
    output: Path,
    **planned: Any,
) -> int:
    """Measure the cost table of an OpenCL device, by profiling events.

    The measured points are kept beside the table, in FILE.points.json. A suite that is interrupted goes on from there
    when the same command is given again.
    """
    from makespan.estimates.opencl_cost_table import points_file, suite
    from makespan.estimates.opencl_cost_table.table import table_json
    from makespan.estimates.report.cost_prediction import cost_table_text
    from makespan.host.output_file import check_writable, write_whole

    if output.suffix != ".json":
        raise InputError(f"{output}: the name of a cost table must end in .json")
    check_writable(output, "the cost table")
    plan = suite.Plan(**planned)
    found = open_device(device, virtual, noise, seed)
    path = points_file.beside(output)
    earlier = points_file.read_points(path, found, plan)
    keeper = _Keeper(path, found, plan, earlier)
    if earlier:
        click.echo(f"{len(earlier)} points are known from {path}", err=True)
    try:
        with ExitStack() as stack:
            one_more = stack.enter_context(counting(len(suite.points(found, plan)), f"measuring {found.name}"))
            stack.callback(keeper.save)

            def kept(key: str, measurement: "Measurement") -> None:
                keeper.keep(key, measurement)
                one_more()

            seconds = time_limit or _SECONDS[plan.quick]
            measured = suite.measure(found, plan, known=earlier, kept=kept, seconds=seconds)
    except KeyboardInterrupt:
        keeper.save()  # again: a second Ctrl-C can have stopped the first time
        click.echo(f"interrupted: {len(keeper.points)} points are in {path}; the same command goes on", err=True)
        return INTERRUPTED
    table = suite.tabulate(found, plan, measured, date.today())
    write_whole(output, table_json(table).encode(), "the cost table")
    keeper.save(is_complete=True)
    click.echo(cost_table_text(table))
    _warn(table, len(measured))
    click.echo(f"cost table: {output}; measured points: {path}")
    return DONE


def _warn(table: "OpenClCostTable", points: int) -> None:
    rough = table.not_converged
    if rough:
        some = "; ".join(rough[:_SHOWN]) + ("; ..." if len(rough) > _SHOWN else "")
        click.echo(f"warning: {len(rough)} of {points} points are still uncertain: {some}", err=True)


class _Keeper:
    """A writer that saves the known points now and then and at the end, whole or not at all."""

    def __init__(self, path: Path, device: "TimedDevice", plan: "Plan", earlier: "dict[str, Measurement]") -> None:
        self.path, self.device, self.plan = path, device, plan
        self.points = dict(earlier)
        self._saved = time.monotonic()

    def keep(self, key: str, measurement: "Measurement") -> None:
        self.points[key] = measurement
        if time.monotonic() - self._saved > _SECONDS_PER_SAVE:
            self.save()

    def save(self, *, is_complete: bool = False) -> None:
        if not self.points:
            return
        from makespan.estimates.opencl_cost_table import points_file
        from makespan.host.output_file import write_whole

        content = points_file.text(self.device, self.plan, self.points, is_complete=is_complete)
        write_whole(self.path, content.encode(), "the measured points")
        self._saved = time.monotonic()


@click.command(
    "evaluate",
    cls=HelpCommand,
    epilog=examples("makespan estimate --evaluate --table rmbp-gt650m --virtual rmbp-gt650m --samples 20"),
)
@device_options
@click.option("--table", required=True, metavar="NAME|FILE.json", help="the cost table that predicts")
@click.option("--samples", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="of each set")
@click.option("--set", "kind", type=OneOf(["random", "realistic", _BOTH]), default=_BOTH, show_default=True,
              help="with all of + - * /, without division, or one after the other")  # fmt: skip
@_seed_option("of the expressions")
@click.option("--depth", type=click.IntRange(1, 6), default=3, show_default=True, help="of the expressions, at most")
@click.option("--shape", metavar="RxC", default="1024x1024", show_default=True, help="of the array")
@click.option("--wg", type=click.IntRange(1), help="work-group size [default: that of the table, or 256]")
@tolerance_option
@click.option("--time-limit", type=SECONDS, help="shared out among the samples; each has 5 runs [default: none]")
@click.option("-o", "--output", "target", type=FILE, metavar="FILE.csv", help="histogram of q")
@format_option()
def evaluate(
    device: int | None,
    virtual: str | None,
    noise: float | None,
    table: str,
    kind: str,
    seed: int,
    target: Path | None,
    output: str,
    **options: Any,
) -> int:
    """Predict random domain iterations by a cost table, run them on the device, and compare: q = predicted / measured.

    q above 1 is a prediction that is too high.
    """
    from makespan.estimates.opencl_cost_table.table import find
    from makespan.estimates.report.cost_prediction import quality_csv, quality_document, quality_text
    from makespan.host.output_file import check_writable, write_whole

    if target is not None:
        check_writable(target, "the histogram")
    priced = find(table)
    found = open_device(device, virtual, noise, seed)
    if found.name.removeprefix("virtual ") != priced.device.removeprefix("virtual "):
        click.echo(f"warning: the table was measured on {priced.device}, and this is {found.name}", err=True)
    kinds = ("random", "realistic") if kind == _BOTH else (kind,)
    qualities = {name: _quality(name, found, priced, seed, **options) for name in kinds}
    if target is not None:
        write_whole(target, quality_csv(qualities).encode(), "the histogram")
    said = render(
        output,
        text=lambda: "\n".join(quality_text(name, quality) for name, quality in qualities.items()),
        data=lambda: quality_document(qualities),
    )
    click.echo(said)
    if target is not None:
        remark(f"histogram: {target}", output)
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
    tolerance: float,
    time_limit: float | None,
) -> "Quality":
    from makespan.estimates.opencl_cost_table import evaluation
    from makespan.estimates.opencl_cost_table.expression import Array, Type

    if not 0 < tolerance < 1:
        raise InputError(f"--rel-tol {tolerance}: a part of the mean, above 0 and below 1")
    array = Array("matrix", Type.FLOAT, extents(shape, "--shape"))
    with counting(samples, f"running {name} samples") as one_more:
        return evaluation.evaluate(
            device,
            table,
            list(islice(evaluation.iterations(array, kind=name, seed=seed, depth=depth), samples)),
            group=wg or table.work_group or 256,
            tolerance=tolerance,
            seconds=time_limit,
            kept=lambda _: one_more(),
        )
