"""What a campaign needs of a GPU, and who it is; nothing here knows a driver."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

LaunchExtent: TypeAlias = tuple[int, int, int]


class CacheState(StrEnum):
    """What caches hold when a kernel starts.

    Args:
        WARM: it has just run on the same buffers.
        THRASHED: memory of twice the size of the L2 cache was written since its buffers were filled.
        COLD: and its code was loaded anew.
    """

    WARM = "warm"
    THRASHED = "thrashed"
    COLD = "cold"


class NeighbourLoad(StrEnum):
    """What the other SMs do: nothing that the campaign started, or reading memory all the time."""

    IDLE = "idle"
    HOG = "hog"


class DeviceIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who was measured.

    Args:
        name: as the driver calls it.
        capability: the compute capability, such as `8.6`.
        driver: its version.
        sms: how many SMs it has.
        clock_khz: the highest of the SMs, as the driver says; None where it does not.
        virtual: whether it is a simulation of the model, whose runs are no measurements.
    """

    name: str
    capability: str
    driver: str
    sms: int
    clock_khz: int | None
    virtual: bool


class MeasuredDevice(Protocol):
    """A GPU, or what stands for one; what fails raises `MeasurementError`."""

    @property
    def identity(self) -> DeviceIdentity:
        """Who it is."""

    def load(self, image: bytes, kernel: str) -> None:
        """Load machine code, in place of what was loaded before; `launch` means this kernel from now on."""

    def allocate(self, size: int) -> int:
        """Return the address of so many bytes of its memory, a multiple of 256."""

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
        """Run the kernel to its end, and say on which SMs the neighbours ran.

        Args:
            shared: bytes of dynamic shared memory.
            arguments: the bytes of every parameter.
        """
