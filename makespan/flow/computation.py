"""What an instruction computes, as a value: from which sources, to which registers, by which function."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from makespan.flow.arithmetic import Value


class Source(NamedTuple):
    """Where an input comes from: a register (or special register) by its own name, or else a constant."""

    register: str | None
    constant: int | None
    mask: int
    is_negated: bool = False


class Computation(NamedTuple):
    """What an instruction does to its results.

    Args:
        results: the registers that it writes, by their own names; None where a result is thrown away.
        compute: from the values of the sources to those of the results; only if `is_lenient`, it takes unknown ones.
    """

    results: tuple[str | None, ...]
    sources: tuple[Source, ...]
    compute: "Callable[..., tuple[Value, ...]]"
    is_lenient: bool = False

    def apply(self, state: "Mapping[str, Value]") -> "tuple[Value, ...]":
        """The values of the results, given those of the registers; a register that is missing is unknown."""
        values: list[Any] = []
        for register, constant, mask, is_negated in self.sources:
            value: Any = constant if register is None else state.get(register)
            if value is not None:
                value = value & mask
                values.append(1 - value if is_negated else value)
            elif self.is_lenient:
                values.append(None)
            else:
                return (None,) * len(self.results)
        return self.compute(*values)
