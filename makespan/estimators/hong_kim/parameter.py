"""A number that a microbenchmark gave, how sure it is, and what the fits must know of the device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from makespan.errors import InputError, MeasurementError
from makespan.estimators.gpu import Figure, Gpu, Status, figure
from makespan.estimators.hong_kim.exact import Number, exact

LEAST_R_SQUARED = Fraction(98, 100)
BANDWIDTH_LIMITED = "bandwidth_limited: within 5 % of the distance that the bandwidth causes"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A fitted number.

    Args:
        key: in a GPU description.
        error: standard error, in the unit of the value; None if there are too few points for one.
        r_squared: of the line it is the slope of; None if it is none.
        note: from what it was computed.
        doubts: what speaks against it.
    """

    key: str
    value: Fraction
    error: float | None
    r_squared: Fraction | None
    note: str
    doubts: tuple[str, ...] = ()

    @property
    def bandwidth_limited(self) -> bool:
        """Whether this is the distance that the bandwidth of the memory causes, and not the one that was asked for."""
        return BANDWIDTH_LIMITED in self.doubts

    def figure(self) -> Figure:
        """The number for a GPU description."""
        sure = "" if self.error is None else f", standard error {self.error:.3g}"
        fit = "" if self.r_squared is None else f", R^2 {float(self.r_squared):.6f}"
        source = "; ".join([f"microbenchmark, {self.note}{sure}{fit}", *self.doubts])
        return figure(self.key, float(self.value), source=source, status=Status.MEASURED)

    def accepted(self, *, force: bool) -> "Parameter":
        """This, if it is a number of cycles and the line that it was taken from fits.

        Raises:
            MeasurementError: it is not.
        """
        name = self.key.removeprefix("hong_kim.")
        if self.value <= 0:
            raise MeasurementError(
                f"{name} would be {float(self.value):.4g} cycles: the time does not grow with the requests;"
                " measure with more of them"
            )
        if self.r_squared is None or self.r_squared >= LEAST_R_SQUARED:
            return self
        doubt = f"R^2 is {float(self.r_squared):.4f}, below {float(LEAST_R_SQUARED)}"
        if not force:
            raise MeasurementError(f"{name}: {doubt}: the times are not on a line; measure again, or --force")
        return replace(self, doubts=(*self.doubts, doubt))


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
