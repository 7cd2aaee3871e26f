"""Options that name an OpenCL device, or a virtual one, for the suite of the cost table."""

from typing import TYPE_CHECKING

import click

from makespan.cli.help_page import stack
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.opencl_cost_table.device import TimedDevice

# The options that choose a device: a real one, or one that takes as long as a table says.
device_options = stack(
    click.option("--device", type=click.IntRange(0), help="number of the OpenCL device [default: 0]"),
    click.option("--virtual", metavar="NAME|FILE.json", help="no device: one that takes as long as a table says"),
    click.option("--noise", type=click.FloatRange(0, 1, max_open=True), help="of --virtual, relative [default: 0.01]"),
)


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
    from makespan.estimates.opencl_cost_table.table import find
    from makespan.estimates.opencl_cost_table.virtual_device import NOISE, VirtualOpenClDevice

    return VirtualOpenClDevice(find(virtual), noise=NOISE if noise is None else noise, seed=seed)
