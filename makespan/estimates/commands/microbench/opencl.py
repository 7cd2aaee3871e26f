"""`makespan measure opencl`: measure the cost table of an OpenCL device."""

import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, stack
from makespan.cli.parameters import SECONDS, choice
from makespan.cli.progress import counting
from makespan.cli.running import DONE, INTERRUPTED
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.opencl_cost_table.device import Measurement, TimedDevice
    from makespan.estimates.opencl_cost_table.suite import Plan
    from makespan.estimates.opencl_cost_table.table import OpenClCostTable

_SECONDS_PER_SAVE = 2.0
_SECONDS = {False: 480.0, True: 60.0}  # by --quick
_SHOWN = 10


# The options that choose a device: a real one, or one that takes as long as a table says.
device_options = stack(
    click.option("--device", type=click.IntRange(0), help="number of the OpenCL device [default: 0]"),
    click.option("--virtual", metavar="NAME|FILE.json", help="no device: one that takes as long as a table says"),
    click.option("--noise", type=click.FloatRange(0, 1, max_open=True), help="of --virtual, relative [default: 0.01]"),
)


@click.command("opencl", cls=HelpCommand, epilog=examples("makespan measure opencl --quick -o table.json"))
@device_options
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="of the noise of --virtual"
)
@click.option("--quick", is_flag=True, help="16 sizes instead of 128")
@click.option("--full", is_flag=True, help="chains of all lengths from 1 to 128, instead of powers of two")
@click.option("--rel-tol", type=float, default=0.01, show_default=True, help="standard error of a point, relative")
@choice(
    "--int-chain",
    "mixed fold",
    "chains of integers mixed with exclusive or, or as they are, which compilers fold into one operation",
)
@click.option("--double", is_flag=True, help="measure floats of 64 bits, too")
@click.option("--time-limit", type=SECONDS, help="for all points; each has 5 runs [default: 480, with --quick 60]")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE.json", help="the table")
def command(
    device: int | None,
    virtual: str | None,
    noise: float | None,
    seed: int,
    quick: bool,
    full: bool,
    rel_tol: float,
    int_chain: Any,
    double: bool,
    time_limit: float | None,
    output: Path,
) -> int:
    """Measure the cost table of an OpenCL device, by profiling events.

    The measured points are kept beside the table, in FILE.points.json. A suite that is interrupted goes on from there
    when the same command is given again.
    """
    from makespan.estimates.opencl_cost_table import points_file
    from makespan.estimates.opencl_cost_table.suite import Plan, measure, points, tabulate
    from makespan.estimates.opencl_cost_table.table import table_json
    from makespan.estimates.report.cost_prediction import cost_table_text as shown
    from makespan.host.output_file import check_writable, write_whole

    if output.suffix != ".json":
        raise InputError(f"{output}: the name of a cost table must end in .json")
    check_writable(output, "the cost table")
    plan = Plan(quick, full, int_chain, double, rel_tol)
    found = open_device(device, virtual, noise, seed)
    path = points_file.beside(output)
    earlier = points_file.read_points(path, found, plan)
    keeper = _Keeper(path, found, plan, earlier)
    if earlier:
        click.echo(f"{len(earlier)} points are known from {path}", err=True)
    try:
        with ExitStack() as stack:
            one_more = stack.enter_context(counting(len(points(found, plan)), f"measuring {found.name}"))
            stack.callback(keeper.save)

            def kept(key: str, measurement: "Measurement") -> None:
                keeper.keep(key, measurement)
                one_more()

            measured = measure(found, plan, known=earlier, kept=kept, seconds=time_limit or _SECONDS[quick])
    except KeyboardInterrupt:
        keeper.save()  # again: a second Ctrl-C can have stopped the first time
        click.echo(f"interrupted: {len(keeper.points)} points are in {path}; the same command goes on", err=True)
        return INTERRUPTED
    table = tabulate(found, plan, measured, date.today())
    write_whole(output, table_json(table).encode(), "the cost table")
    keeper.save(is_complete=True)
    click.echo(shown(table))
    _warn(table, len(measured))
    click.echo(f"cost table: {output}; measured points: {path}")
    return DONE


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
