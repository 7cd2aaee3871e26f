"""Devices by their names: `cuda:0`, or `virtual:7`, which may have a fault."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from makespan.hardware.cuda_device import CudaDevice
from makespan.hardware.device import MeasuredDevice
from makespan.hardware.virtual_device import DeviceFault, SimulatedDevice
from makespan.host.errors import InputError
from makespan.model.gpu import GpuInstance
from makespan.model.machine import is_compatible

_NAME = re.compile(r"cuda:(?P<number>\d{1,3})|virtual:(?P<seed>\d{1,18})(?::(?P<fault>[a-z]{1,20}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedDevice:
    """A device that is not open yet.

    Args:
        number: the number of a GPU. None means a virtual device.
        seed: the seed of a virtual device.
        fault: the fault of a virtual device, if any.
    """

    number: int | None
    seed: int | None
    fault: DeviceFault | None

    def opened(self, capability: str, launch: Callable[[], GpuInstance]) -> MeasuredDevice:
        """Return the open device, which executes machine code for this compute capability.

        Args:
            launch: a function that returns the launch that a virtual device simulates.

        Raises:
            MeasurementError: there is no such device.
            InputError: the device does not execute the code.
        """
        if self.number is None:
            return SimulatedDevice(launch(), capability, self.seed or 0, self.fault)
        device = CudaDevice(self.number)
        has = int(device.identity.capability.replace(".", ""))
        if not is_compatible(int(capability.replace(".", "")), has):
            raise InputError(
                f"{device.identity.name} is of sm_{has} and does not execute this machine code: give --arch sm_{has},"
                " and the --gpu or --machine that it is"
            )
        return device


def named_device(name: str) -> NamedDevice:
    """Return the device of a name.

    Raises:
        InputError: no device has such a name.

    >>> named_device("virtual:7:late")
    NamedDevice(number=None, seed=7, fault=<DeviceFault.LATE: 'late'>)
    """
    match = _NAME.fullmatch(name)
    if match is None or (match["fault"] or "late") not in list(DeviceFault):
        known = ", ".join(DeviceFault)
        raise InputError(f"--device {name:.40}: expected cuda:N or virtual:SEED, perhaps with {known} behind")
    number, seed = (None if match[key] is None else int(match[key]) for key in ("number", "seed"))
    return NamedDevice(number, seed, None if match["fault"] is None else DeviceFault(match["fault"]))
