"""The control bits of a machine instruction: what the compiler tells the scheduler about it, on sm_70 and later.

Bits 105..125 of the 128-bit word, from the low end: stall (4), yield (1, inverted), write barrier (3), read barrier
(3), wait mask (6), register reuse (4).

Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1; D. Yan,
CuAssembler, user guide, "Control codes".
"""

from typing import NamedTuple

COUNTERS = 6
"""Scoreboard counters of a warp."""

_FIRST_BIT = 105
_FIELDS = 4, 1, 3, 3, 6, 4
_NONE = 7


class Control(NamedTuple):
    """What the scheduler is told.

    Args:
        stall: cycles from issue before which the warp issues nothing else.
        yields: whether the scheduler is asked to take another warp next.
        write_counter: the scoreboard counter that is up until the result is there; None for none.
        read_counter: the one that is up until the sources have been read; None for none.
        waits: the counters that must be down before issue, bit by bit.
        reuse: the operands that are kept for the next instruction, bit by bit.

    >>> control(0x000EA2000C1E9900_0000000402037981)
    Control(stall=1, yields=False, write_counter=2, read_counter=None, waits=0, reuse=0)
    """

    stall: int
    yields: bool
    write_counter: int | None
    read_counter: int | None
    waits: int
    reuse: int

    @property
    def awaited(self) -> tuple[int, ...]:
        """Return the counters that must be down before issue."""
        return tuple(counter for counter in range(COUNTERS) if self.waits >> counter & 1)

    def __str__(self) -> str:
        """As published listings write it: wait mask, read and write counter, yield, stall.

        >>> str(control(0x000EA2000C1E9900_0000000402037981))
        'B------:R-:W2:-:S01'
        """
        waits = "".join(str(counter) if self.waits >> counter & 1 else "-" for counter in range(COUNTERS))
        read, write = ("-" if counter is None else counter for counter in (self.read_counter, self.write_counter))
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"


def control(word: int) -> Control:
    """Return the control bits of an instruction word of 128 bits."""
    stall, keeps, write, read, waits, reuse = _split(word >> _FIRST_BIT)
    return Control(stall, not keeps, _counter(write), _counter(read), waits, reuse)


def with_control(word: int, bits: Control) -> int:
    """Return the instruction word with other control bits."""
    write, read = (_NONE if counter is None else counter for counter in (bits.write_counter, bits.read_counter))
    packed, at = 0, 0
    fields = bits.stall, int(not bits.yields), write, read, bits.waits, bits.reuse
    for value, width in zip(fields, _FIELDS, strict=True):
        packed |= value << at
        at += width
    return word & ~(((1 << at) - 1) << _FIRST_BIT) | packed << _FIRST_BIT


def _split(packed: int) -> list[int]:
    found = []
    for width in _FIELDS:
        found.append(packed & ((1 << width) - 1))
        packed >>= width
    return found


def _counter(field: int) -> int | None:
    return None if field == _NONE else field
