"""The clock of a GPU: what turns proven cycles into time."""

from dataclasses import dataclass
from fractions import Fraction

from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.result import Bounds
from makespan.model.units import shown_frequency, time_at_least, time_at_most


@dataclass(frozen=True, slots=True)
class GpuClock:
    """A frequency that an SM has at least; it is assumed, for nobody proves it.

    Args:
        source: who says so.
    """

    hertz: Fraction
    source: str

    def __str__(self) -> str:
        return f"{shown_frequency(self.hertz)} ({self.source})"

    @property
    def assumption(self) -> Assumption:
        """What must hold for a time."""
        text = f"the clock of the SMs is {self} at least, and whatever it is no latency has more cycles"
        return assumptions.clock(text)

    def time(self, bounds: Bounds) -> str:
        """How long these cycles take: at least, which is rounded down, and at most, which is rounded up, to six digits.

        >>> GpuClock(Fraction(10**9), "as given").time(Bounds(500, 1500))
        '500 ns .. 1.5 us'
        >>> GpuClock(Fraction(3 * 10**9), "as given").time(Bounds(1000, 1000))
        '333.333 ns .. 333.334 ns'
        """
        ends = time_at_least(bounds.lower / self.hertz), time_at_most(bounds.upper / self.hertz)
        return " .. ".join(dict.fromkeys(ends))
