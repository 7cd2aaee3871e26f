"""The OpenCL devices of this computer, opened so that they time what they do."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from makespan.errors import InputError, MeasurementError

REMEDY = "pip install pyopencl pocl-binary-distribution"
"""Brings an OpenCL platform that runs on the CPU, without system packages."""


def devices() -> list[Any]:
    """All devices of all platforms, in their order, as pyopencl has them.

    Raises:
        MeasurementError: there is no OpenCL.
    """
    try:
        cl = import_module("pyopencl")
    except ImportError as error:
        raise MeasurementError(f"no OpenCL here ({error}); install it by: {REMEDY}") from None
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise MeasurementError(f"no OpenCL platform ({error}); install one by: {REMEDY}") from None
    if not found:
        raise MeasurementError(f"no OpenCL device; install one by: {REMEDY}")
    return found


def find(number: int) -> Any:
    """The device of a number, from 0 on.

    Raises:
        InputError: there are fewer.
        MeasurementError: there is no OpenCL.
    """
    found = devices()
    if not 0 <= number < len(found):
        names = "; ".join(f"{at}: {printable(device.name)}" for at, device in enumerate(found))
        raise InputError(f"--device {number}: no such device; there are {names}")
    return found[number]


class Opened(NamedTuple):
    """A device with a queue whose events have times; `cl` is pyopencl."""

    cl: Any
    name: str
    context: Any
    queue: Any


def opened(device: Any) -> Opened:
    """The device, ready to run.

    Raises:
        MeasurementError: it cannot time what it does, or does not open.
    """
    cl, name = import_module("pyopencl"), printable(device.name)
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    if not device.queue_properties & profiling:
        raise MeasurementError(f"{name}: its driver cannot time what it does (no profiling); take another")
    with explained(name, "opening the device"):
        context = cl.Context([device])
        return Opened(cl, name, context, cl.CommandQueue(context, properties=profiling))


@contextmanager
def explained(name: str, what: str) -> Iterator[None]:
    """What OpenCL refuses within is a measurement that failed, told in one line.

    Args:
        name: of the device.
        what: was tried, as in `running`.
    """
    try:
        yield
    except import_module("pyopencl").Error as error:
        raise MeasurementError(f"{name}: {what} failed: {str(error).strip().splitlines()[0]}") from None


def printable(text: str) -> str:
    """What a driver says of itself, for a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
