"""Registers and the banks of the register file that hold them; a bank reads one register per cycle."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from makespan.host.errors import InputError

ZERO = 255  # RZ reads as zero, forgets what is written to it, and needs no port
MAX_REGISTERS = 255
_INDEX_BITS, _MOST_BITS = 8, 3


Banks: TypeAlias = Callable[[int], int]  # which bank a register is in, by its number


@dataclass(frozen=True, slots=True)
class BankFunction:
    """A bank number made of some bits of the register number, the lowest first.

    >>> [GK110_BANKS(register) for register in (0, 1, 4, 7, 8)]
    [0, 1, 2, 3, 0]
    """

    bits: tuple[int, ...]

    def __post_init__(self) -> None:
        if list(self.bits) != sorted(set(self.bits)) or not set(self.bits) <= set(range(_INDEX_BITS)):
            raise InputError(f"bank bits are different bits 0..{_INDEX_BITS - 1} in rising order, not {self.bits}")

    def __call__(self, register: int) -> int:
        """Return the number of the bank."""
        return sum((register >> bit & 1) << place for place, bit in enumerate(self.bits))

    def __str__(self) -> str:
        taken = [f"(r >> {bit}) & 1" if bit else "r & 1" for bit in self.bits]
        terms = [f"({bit}) << {place}" if place else f"({bit})" for place, bit in enumerate(taken)]
        return " | ".join(terms) or "0"


# Source: Zhang et al., PPoPP 2017: bank 0 {0, 2, 8, 10, ...}, 1 {1, 3, ...}, 2 {4, 6, ...}, 3 {5, 7, ...}.
GK110_BANKS = BankFunction((0, 2))


def ways(registers: Iterable[int], banks: Banks) -> int:
    """Return the most registers, each counted once, that one bank has to read: 0 or 1 is no conflict."""
    counts = Counter(banks(register) for register in set(registers) if register != ZERO)
    return max(counts.values(), default=0)


def function_of(classes: Sequence[Sequence[int]]) -> BankFunction | None:
    """Return the fewest register number bits, at most three, that tell the classes apart; None if no choice does."""
    home = {register: number for number, members in enumerate(classes) for register in members}
    for size in range(_MOST_BITS + 1):
        for bits in combinations(range(_INDEX_BITS), size):
            function = BankFunction(bits)
            images = {(number, function(register)) for register, number in home.items()}
            if len(images) == len(classes) == len({bank for _, bank in images}):
                return function
    return None
