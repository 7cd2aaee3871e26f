"""The OpenCL devices of this computer, opened so that they time what they do."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from makespan.host.errors import InputError, MeasurementError

# Brings an OpenCL platform that runs on the CPU, without system packages.
REMEDY = "pip install pyopencl pocl-binary-distribution"


def devices() -> list[Any]:
    """Return all devices of all platforms, in their order, as pyopencl has them.

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


class Opened:
    """A device of this computer, with a queue that takes times; `cl` is pyopencl, and `device` what it calls one.

    Args:
        number: of the device, from 0 on.

    Raises:
        InputError: there are fewer devices.
        MeasurementError: there is no OpenCL, or the device cannot time what it does, or does not open.
    """

    def __init__(self, number: int = 0) -> None:
        found = devices()
        if not 0 <= number < len(found):
            names = "; ".join(f"{at}: {printable(device.name)}" for at, device in enumerate(found))
            raise InputError(f"--device {number}: no such device; there are {names}")
        self.cl, self.device = import_module("pyopencl"), found[number]
        self.name = printable(self.device.name)
        profiling = self.cl.command_queue_properties.PROFILING_ENABLE
        if not self.device.queue_properties & profiling:  # without it, events have no times
            raise MeasurementError(f"{self.name}: its driver cannot time what it does (no profiling); take another")
        with self.explained("opening the device"):
            self.context = self.cl.Context([self.device])
            self.queue = self.cl.CommandQueue(self.context, properties=profiling)

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn what OpenCL refuses within into a `MeasurementError` of one line, which says that `what` failed."""
        try:
            yield
        except self.cl.Error as error:
            raise MeasurementError(f"{self.name}: {what} failed: {str(error).strip().splitlines()[0]}") from None

    def kernel(self, source: str, name: str) -> Any:
        """Return a kernel of a program that is built for the device.

        Raises:
            MeasurementError: it does not build; the message has the build log.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.cl.CompilerWarning)  # some compilers talk whenever they build
            try:
                return self.cl.Kernel(self.cl.Program(self.context, source).build(cache_dir=False), name)
            except self.cl.Error as error:
                raise MeasurementError(f"{self.name}: a kernel does not build; its build log:\n{error}") from None

    def buffer(self, size: int, content: Any = None) -> Any:
        """Return memory of the device, with that content if there is any."""
        flags = self.cl.mem_flags
        with self.explained("allocating memory"):
            if content is None:
                return self.cl.Buffer(self.context, flags.READ_WRITE, size)
            return self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=content)

    def nanoseconds(self, enqueue: Any, *arguments: Any, **options: Any) -> int:
        """Return the time of one command by the clock of the device."""
        with self.explained("running"):
            event = enqueue(*arguments, **options)
            event.wait()
            return int(event.profile.end - event.profile.start)


def printable(text: str) -> str:
    """Return the text of a driver on one line, without what a terminal cannot print."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
