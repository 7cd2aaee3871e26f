"""A number that a microbenchmark gave, and how sure it is."""

from dataclasses import dataclass, replace
from fractions import Fraction

from makespan.host.errors import MeasurementError
from makespan.model.machine.gpus import DatumStatus, GpuDatum, gpu_datum

LEAST_R_SQUARED = Fraction(98, 100)  # below, the times are on no line
TOO_FEW = "two times only: nothing says how well they fit"
BANDWIDTH_LIMITED = "bandwidth_limited: within 5 % of the distance that the bandwidth causes"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a GPU that was fitted to samples.

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
        """Return whether the memory bandwidth causes this distance, which is then not the departure delay."""
        return BANDWIDTH_LIMITED in self.doubts

    def datum(self) -> GpuDatum:
        """Return the number for a GPU description."""
        sure = "" if self.error is None else f", standard error {self.error:.3g}"
        fit = "" if self.r_squared is None else f", R^2 {float(self.r_squared):.6f}"
        source = "; ".join([f"microbenchmark, {self.note}{sure}{fit}", *self.doubts])
        return gpu_datum(self.key, float(self.value), source=source, status=DatumStatus.MEASURED)

    def document(self) -> dict[str, object]:
        """Return the number as plain data."""
        return {
            "key": self.key,
            "value": float(self.value),
            "unit": self.datum().unit,
            "standard_error": self.error,
            "r_squared": None if self.r_squared is None else float(self.r_squared),
            "bandwidth_limited": self.bandwidth_limited,
            "note": self.note,
            "doubts": list(self.doubts),
        }

    def accepted(self, *, force: bool) -> "Parameter":
        """Return the parameter, with a doubt if `force` takes a bad fit.

        Raises:
            MeasurementError: it does not.
        """
        if self.r_squared is None or self.r_squared >= LEAST_R_SQUARED:
            return self
        doubt = f"R^2 is {float(self.r_squared):.4f}, below {float(LEAST_R_SQUARED)}"
        if not force:
            name = self.key.partition(".")[2]
            raise MeasurementError(f"{name}: {doubt}: the times are not on a line; measure again, or --force")
        return replace(self, doubts=(*self.doubts, doubt))
