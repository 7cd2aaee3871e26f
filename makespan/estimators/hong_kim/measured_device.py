"""What the fits must know of the device that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from makespan.errors import InputError
from makespan.estimators.gpu import Gpu
from makespan.estimators.hong_kim.exact import Number, exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the fits need to know of the device that was measured.

    Args:
        clock_ghz: needed for times in seconds; `sms` and `mem_bw_gbs` for the method `whole-gpu`.
        uncoal_per_mw: transactions of a request of the uncoalesced kernel; each thread has its own.
    """

    uncoal_per_mw: Number
    clock_ghz: Number | None = None
    sms: int | None = None
    mem_bw_gbs: Number | None = None
    load_bytes_per_warp: Number = 128

    @classmethod
    def of(cls, gpu: Gpu, *, uncoal_per_mw: Number | None = None) -> "Device":
        """The device of a description; the kernels load one float a thread."""
        warp = gpu.whole("warp_size")
        sms = gpu.get("sms")
        return cls(
            uncoal_per_mw=warp if uncoal_per_mw is None else uncoal_per_mw,
            clock_ghz=gpu.get("clock_ghz"),
            sms=None if sms is None else int(sms),
            mem_bw_gbs=gpu.get("mem_bw_gbs"),
            load_bytes_per_warp=4 * warp,
        )

    def known(self, name: str) -> Fraction:
        """A number of the device.

        Raises:
            InputError: it is not known.
        """
        value = getattr(self, name)
        if value is None:
            raise InputError(f"{name} of the device is needed here and not known: give --gpu a description with it")
        return exact(value, name, positive=True)

    @property
    def bandwidth_departure(self) -> Fraction:
        """Cycles between two requests of an SM that the bandwidth of the memory leaves, all SMs busy."""
        bytes_per_cycle = self.known("mem_bw_gbs") / self.known("clock_ghz")
        return exact(self.load_bytes_per_warp, "load_bytes_per_warp") * self.known("sms") / bytes_per_cycle


def mean_with_error(values: Sequence[Fraction]) -> tuple[Fraction, float | None]:
    """The mean with its standard error."""
    mean = sum(values, Fraction(0)) / len(values)
    if len(values) == 1:
        return mean, None
    scatter = sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)
    return mean, sqrt(scatter / len(values))
