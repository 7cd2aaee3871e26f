"""Test C: what the 256 control codes mean, from the distance of two instructions of which the first has the code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from makespan.host.errors import MeasurementError

CODES = 256
SINGLE_ISSUE = 0x20  # the code that the sources call single-issue mode: the next instruction follows one cycle later
TOLERANCE = 0.25  # cycles that a measured distance may be off
_WIDTHS = (5, 4, 3)  # bits of a stall field


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
        """Return the codes of the field, by rising field value."""
        return tuple(self.base + (value << self.shift) for value in range(1 << self.width))


@dataclass(frozen=True, slots=True)
class CodeResult:
    """The measured meaning of each control code.

    Args:
        gaps: cycles from an instruction with the code to the next independent one of its warp.
        throughput: lane-operations per cycle and SM with four warps per scheduler.
        latency: cycles of a chain per instruction.
        fields: groups of codes in which some bits count stall cycles.
    """

    gaps: tuple[float, ...]
    throughput: tuple[float, ...]
    latency: tuple[float, ...]
    fields: tuple[StallField, ...]

    @property
    def dual(self) -> tuple[int, ...]:
        """Return the codes that open a dual issue: the next instruction comes in the same cycle."""
        return tuple(code for code, gap in enumerate(self.gaps) if gap <= TOLERANCE)

    @property
    def immediate(self) -> tuple[int, ...]:
        """Return the codes without extra delay: the next instruction comes in the next cycle."""
        return tuple(code for code, gap in enumerate(self.gaps) if abs(gap - 1) <= TOLERANCE)

    @property
    def delayed(self) -> tuple[int, ...]:
        """Return the codes that delay the next instruction by `gap - 1` extra cycles."""
        return tuple(code for code, gap in enumerate(self.gaps) if gap > 1 + TOLERANCE)


def interpret(gaps: Sequence[float], throughput: Sequence[float], latency: Sequence[float]) -> CodeResult:
    """Return the meaning of measured distances.

    Raises:
        MeasurementError: a distance between dual issue and single issue, or below 0.
    """
    for code, gap in enumerate(gaps):
        if gap < -TOLERANCE or TOLERANCE < gap < 1 - TOLERANCE:
            raise MeasurementError(
                f"unresolved: code {code:#04x} has a gap of {gap:.2f} cycles, neither 0 nor 1; measure it again"
            )
    return CodeResult(tuple(gaps), tuple(throughput), tuple(latency), tuple(_fields(gaps)))


def _fields(gaps: Sequence[float]) -> Iterator[StallField]:
    """Yield the stall fields, wide ones first and then low ones; a code belongs to at most one field."""
    explained: set[int] = set()
    for width, shift in product(_WIDTHS, range(8)):
        if shift + width > 8:
            continue
        mask = ((1 << width) - 1) << shift
        for base in (code for code in range(CODES) if not code & mask):
            found = _field(gaps, base, shift, width)
            if found is not None and not explained & set(found.codes):  # they belong to no field yet
                explained |= set(found.codes)
                yield found


def _field(gaps: Sequence[float], base: int, shift: int, width: int) -> StallField | None:
    """Return the field of these bits, if at least half of its values follow a straight line upwards.

    Codes that open a dual issue count nothing, and are left out.
    """
    size = 1 << width
    values = [(step, gaps[base + (step << shift)]) for step in range(size)]
    values = [(step, gap) for step, gap in values if gap > TOLERANCE]
    if len(values) < 2:
        return None
    (first, low), (second, high) = values[:2]
    slope = round((high - low) / (second - first))  # whole cycles per step; noise is below TOLERANCE
    if slope < 1:
        return None
    last, beyond = 0, list[float]()
    for step, gap in values:
        if not beyond and abs(gap - low - slope * (step - first)) <= TOLERANCE:
            last = step
        else:
            beyond.append(gap)
    if last < size // 2:  # too short a line to be a field
        return None
    constant = beyond and max(beyond) - min(beyond) <= TOLERANCE
    start = round(low - slope * first, 2)
    return StallField(base, shift, width, start, slope, last, round(beyond[0]) if constant else None)
