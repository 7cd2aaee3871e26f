"""What control codes do to the issue of the next instruction, as tables of 256 gaps in cycles; 0 opens a dual issue."""

from dataclasses import dataclass

from makespan.estimators.dual_issue.codec import CODES

GK110_DUAL = 0x04
GK110_PARTNERS = (0x05, 0x06, 0x07)
"""Codes of the second instruction of a pair."""
_GK110_LONGEST = 32


def gk110_gap(code: int) -> int:
    """Cycles from an instruction with this code to the next of its warp, on the reference machine.

    Source: Zhang et al., PPoPP 2017, digitised figure and text; between the digitised points a straight line.
    """
    if code < 0x20:
        return {0x00: 16, GK110_DUAL: 0}.get(code, 1)
    if 0x80 <= code < 0xE0:
        step = code & 15
        return 2 * step + 1 if step <= 10 else _GK110_LONGEST
    step = code & 31
    return step + 1 if step <= 20 else _GK110_LONGEST


GK110_GAPS = tuple(map(gk110_gap, range(CODES)))


@dataclass(frozen=True, slots=True)
class StallField:
    """A contiguous field of the code's bits that counts stall cycles.

    Args:
        base: the code with an empty field; the other bits are those of `base`.
        shift: the lowest bit of the field.
        width: bits of the field.
        start: gap of an empty field, on the straight line: code `base` itself may open a dual issue instead.
        slope: cycles per step.
        last: the largest field value of the straight line; it starts at 0.
        saturation: the gap beyond `last`, where that is one and the same; None where there is none.
    """

    base: int
    shift: int
    width: int
    start: float
    slope: int
    last: int
    saturation: int | None

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes of the field, by rising field value."""
        return tuple(self.base + (value << self.shift) for value in range(1 << self.width))
