"""How the meaning of an opcode becomes the computation of an instruction: signs, widths, predicates and constants."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from makespan.kernels.flow import Computation, SourceOperand
from makespan.kernels.flow.arithmetic import ones
from makespan.kernels.sass.instruction_set import constant_place
from makespan.kernels.sass.operands import (
    OperandValue,
    SassOperands,
    predicate_name,
    predicate_source,
    register_names,
    value_sources,
)

_M = ones(32)

KnownBytes: TypeAlias = Mapping[tuple[int, int], int]
"""What is known of constants, by bank and offset in bytes."""

OpcodeModifiers: TypeAlias = tuple[str, ...]


class OpcodeMeaning(NamedTuple):
    """What an instruction computes: of these values and the predicates that it reads, a register and predicates.

    Args:
        compute: from values without sign, then predicates, to the register (if it writes one), then predicates.
        width: of the register that is written, in bits.
        defaults: the predicates that are read, where the text leaves them out.
    """

    values: tuple[OperandValue, ...]
    compute: Callable[..., tuple[Any, ...]]
    width: int = 32
    defaults: tuple[str, ...] = ()
    is_lenient: bool = False

    def computation(self, operands: SassOperands, known: KnownBytes) -> Computation | None:
        """What an instruction with these operands computes; None where one of them has another form."""
        registers = register_names(operands.register, self.width) if operands.register else ()
        found = [value_sources(value) for value in self.values]
        parts = [part for part in found if part is not None]
        if registers is None or len(parts) < len(found) or len(operands.read) > len(self.defaults):
            return None
        read = (*operands.read, *self.defaults[len(operands.read) :])
        inputs = [_resolve_constant(source, known) for part in parts for source in part] + [
            predicate_source(text) for text in read
        ]
        widths, written, compute = [len(part) for part in parts], len(operands.written), self.compute

        def split_up(*flat: Any) -> tuple[Any, ...]:
            rest, values = list(flat), []
            for width in widths:
                low, *high = rest[:width]
                values.append(low if not high else None if low is None or high[0] is None else low | high[0] << 32)
                del rest[:width]
            result = compute(*values, *rest)
            if not registers:
                return result[:written]
            whole, *predicates = result
            halves = [None if whole is None else whole >> 32 * part & _M for part in range(len(registers))]
            return (*halves, *predicates[:written])

        results = (*registers, *map(predicate_name, operands.written))
        return Computation(results, tuple(inputs), split_up, self.is_lenient)


MeaningRule: TypeAlias = Callable[[OpcodeModifiers, SassOperands], OpcodeMeaning | None]
"""What an opcode means with these modifiers and operands; None where nobody knows."""


def has_only(modifiers: OpcodeModifiers, *allowed: str) -> bool:
    """Return whether there are no others, and none twice."""
    return set(modifiers) <= set(allowed) and len(set(modifiers)) == len(modifiers)


def with_signs(
    values: tuple[OperandValue, ...], compute: Callable[..., tuple[Any, ...]]
) -> Callable[..., tuple[Any, ...]]:
    """Return the computation of values with the signs that they have."""
    if not any(value.sign for value in values):
        return compute

    def applied(*given: Any) -> tuple[Any, ...]:
        found = [_with_sign(a, value.sign, value.width) for a, value in zip(given, values, strict=False)]
        return compute(*found, *given[len(values) :])

    return applied


def _with_sign(a: Any, sign: str, w: int) -> Any:
    if a is None or not sign:
        return a
    return a ^ ones(w) if sign == "~" else (0 - a) & ones(w)


def known_word(bank: int, offset: int, known: KnownBytes, size: int = 4) -> int | None:
    """So many bytes of constants as a number, where all of them are known."""
    found = [known.get((bank, offset + at)) for at in range(size)]
    return None if None in found else int.from_bytes(bytes(byte or 0 for byte in found), "little")


def _resolve_constant(source: SourceOperand, known: KnownBytes) -> SourceOperand:
    at = constant_place(source.register or "")
    value = known_word(*at, known) if at else None
    return source if value is None else SourceOperand(None, value, source.mask)
