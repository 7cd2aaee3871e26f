"""The symbols of the model with their values, as the equations give them."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from makespan.estimators.estimate import Origin, Quantity


class Row(NamedTuple):
    """A symbol, exactly; the note has its equation."""

    name: str
    value: Fraction | int
    unit: str = ""
    note: str = ""

    @property
    def quantity(self) -> Quantity:
        """The same for a reader."""
        value = self.value if isinstance(self.value, int) else float(self.value)
        return Quantity(self.name, value, self.unit, Origin.DERIVED, self.note)


class Rows(dict[str, Row]):
    """Rows by name, in the order of the computation."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        super().__init__((row.name, row) for row in rows)

    def value(self, name: str) -> Fraction:
        """The number of a symbol."""
        return Fraction(self[name].value)
