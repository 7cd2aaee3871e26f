"""The interface of a GPU that a campaign needs, and its identity. This module knows no driver."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

LaunchExtent: TypeAlias = tuple[int, int, int]


class CacheState(StrEnum):
    """The state of the caches when a kernel starts.

    Args:
        WARM: the kernel has just run on the same buffers.
        THRASHED: memory of twice the size of the L2 cache was written after the buffers were filled.
        COLD: the same, and the code was loaded anew.
    """

    WARM = "warm"
    THRASHED = "thrashed"
    COLD = "cold"


class NeighbourLoad(StrEnum):
    """The load of the other SMs: nothing that the campaign started, or reading memory all the time."""

    IDLE = "idle"
    HOG = "hog"


class DeviceIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of the device that was measured.

    Args:
        name: the name that the driver reports.
        capability: the compute capability, such as `8.6`.
        driver: the version of the driver.
        sms: the number of SMs.
        clock_khz: the highest clock of the SMs in kHz. None means that the driver does not report it.
        virtual: whether the device simulates the model, so that its runs are no measurements.
    """

    name: str
    capability: str
    driver: str
    sms: int
    clock_khz: int | None
    virtual: bool


class MeasuredDevice(Protocol):
    """A GPU, or a simulation of one. Failures raise `MeasurementError`."""

    @property
    def identity(self) -> DeviceIdentity:
        """Return the identity of the device."""

    def load(self, image: bytes, kernel: str) -> None:
        """Load machine code in place of what was loaded before. `launch` runs this kernel from now on."""

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes of its memory, a multiple of 256."""

    def write(self, address: int, data: bytes) -> None:
        """Copy to its memory."""

    def read(self, address: int, size: int) -> bytes:
        """Copy from its memory."""

    def overwrite_cache(self) -> None:
        """Write memory of twice the size of its L2 cache."""

    def launch(
        self,
        grid: LaunchExtent,
        block: LaunchExtent,
        shared: int,
        arguments: Sequence[bytes],
        neighbours: NeighbourLoad,
    ) -> tuple[int, ...]:
        """Run the kernel to its end, and return the SMs on which neighbours ran.

        Args:
            shared: the bytes of dynamic shared memory of a block.
            arguments: the bytes of every parameter.
        """
