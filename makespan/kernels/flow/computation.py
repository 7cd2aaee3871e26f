"""The computation of an instruction as a value: its sources, its results, and the function between them."""

from collections.abc import Callable, Mapping, Set
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from makespan.kernels.flow.arithmetic import RegisterValue


class SourceOperand(NamedTuple):
    """An input of a computation: a register (or special register) by its own name, or else a constant."""

    register: str | None
    constant: int | None
    mask: int
    is_negated: bool = False


class Computation(NamedTuple):
    """The function that an instruction computes, with its sources and results.

    Args:
        results: the registers that it writes, by their own names; None where a result is thrown away.
        compute: from the values of the sources to those of the results; only if `is_lenient`, it takes unknown ones.
    """

    results: tuple[str | None, ...]
    sources: tuple[SourceOperand, ...]
    compute: "Callable[..., tuple[RegisterValue, ...]]"
    is_lenient: bool = False

    @property
    def yields_predicates(self) -> bool:
        """Return whether all results are 0 or 1, as they are at the largest values of all sources."""
        return all(value in (0, 1) for value in self.apply(self._masks))

    def may_be_known(self, unknown: Set[str]) -> bool:
        """Return whether results may be known although these registers are not, as `p or q` is where p holds.

        It tries the least and the largest values of the others, and those with which they are compared.
        """
        if not self.is_lenient:
            return not any(source.register in unknown for source in self.sources)
        constants = {source.constant for source in self.sources if source.constant is not None}
        tried = {
            # borders of signed and unsigned ranges, and the numbers compared with
            name: {0, 1, mask >> 1, mask, *(constant & mask for constant in constants)}
            for name, mask in self._masks.items()
            if name not in unknown
        }
        states = (dict(zip(tried, values, strict=True)) for values in product(*tried.values()))
        return any(value is not None for state in states for value in self.apply(state))

    @property
    def _masks(self) -> dict[str, int]:
        return {source.register: source.mask for source in self.sources if source.register is not None}

    def apply(self, state: "Mapping[str, RegisterValue]") -> "tuple[RegisterValue, ...]":
        """Return the values of the results, given those of the registers; a register that is missing is unknown."""
        values: list[Any] = []
        for register, constant, mask, is_negated in self.sources:
            value: Any = constant if register is None else state.get(register)
            if value is not None:
                value = value & mask
                values.append(1 - value if is_negated else value)
            elif self.is_lenient:
                values.append(None)
            else:
                return (None,) * len(self.results)  # without leniency one unknown source makes all unknown
        return self.compute(*values)
