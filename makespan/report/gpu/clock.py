"""The clock of a GPU: what turns proven cycles into time."""

from dataclasses import dataclass
from fractions import Fraction

from makespan import assumptions
from makespan.assumptions import Assumption
from makespan.result import Bounds
from makespan.schedulability.units import shown_frequency, shown_time


@dataclass(frozen=True, slots=True)
class Clock:
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
        """How long these cycles take, at most and at least.

        >>> Clock(Fraction(10**9), "as given").time(Bounds(500, 1500))
        '500 ns .. 1.5 us'
        """
        ends = [shown_time(Fraction(cycles) / self.hertz) for cycles in (bounds.lower, bounds.upper)]
        return " .. ".join(dict.fromkeys(ends))
