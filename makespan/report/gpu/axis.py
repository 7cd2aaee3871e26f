"""A time axis with gaps: what lies in a part of it is drawn to scale, what lies in a gap is left out."""

import math
from typing import NamedTuple

from makespan.report.schedule.panels import CycleWindow, round_numbers

_LETTER, _BETWEEN = 12, 24  # pixels of a figure of a number, and between two numbers


class AxisPart(NamedTuple):
    """So many pixels from `left` on, for a window."""

    window: CycleWindow
    left: float
    pixels: float
    is_gap: bool = False

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.pixels


class WindowAxis(NamedTuple):
    """Parts from left to right, without anything between them."""

    parts: tuple[AxisPart, ...]

    @classmethod
    def of(cls, makespan: int, end: int, waves: int, *, width: int, wave: int, shown: int, gap: int) -> "WindowAxis":
        """Return the axis of a schedule of so many waves, which goes on until `end`.

        All of it, if a wave has at least `wave` pixels then; else the first and the last `shown` waves. What lies
        behind the schedule is drawn to scale, unless it is longer.

        >>> [part.window[:] for part in WindowAxis.of(10**6, 10**6, 1000, width=900, wave=5, shown=9, gap=100).parts]
        [(0, 9000), (9000, 991000), (991000, 1000000)]
        """
        each = min(makespan // 3, max(1, makespan * shown // waves))
        is_long = end > 2 * makespan
        room = width - gap * is_long
        scaled = makespan if is_long else end
        windows = [(CycleWindow(0, scaled), False)]
        if waves * wave * scaled > room * makespan and each:
            room -= gap
            windows = [
                (CycleWindow(0, each), False),
                (CycleWindow(each, makespan - each), True),
                (CycleWindow(makespan - each, scaled), False),
            ]
            if (scaled - makespan) > each:
                is_long, room = True, width - 2 * gap
                windows[-1] = CycleWindow(makespan - each, makespan), False
        if is_long:
            windows.append((CycleWindow(makespan, end), True))
        cycles = sum(window.cycles for window, is_gap in windows if not is_gap)
        parts, left = list[AxisPart](), 0.0
        for window, is_gap in windows:
            parts.append(AxisPart(window, left, gap if is_gap else room * window.cycles / cycles, is_gap))
            left = parts[-1].right
        return cls(tuple(parts))

    @classmethod
    def to_scale(cls, window: CycleWindow, width: int) -> "WindowAxis":
        """Return one part for a window."""
        return cls((AxisPart(window, 0, width),))

    @property
    def width(self) -> float:
        """Pixels of all parts."""
        return self.parts[-1].right

    def at(self, cycle: int) -> float:
        """Pixels from the left end of the axis; what lies beyond an end is there."""
        part = next((part for part in self.parts if cycle < part.window.end), self.parts[-1])
        share = (cycle - part.window.first) / part.window.cycles
        return part.left + part.pixels * min(1.0, max(0.0, share))

    def ticks(self) -> list[int]:
        """Round numbers of cycles, as far apart as their figures need, where the axis is to scale, and its ends."""
        figures = _LETTER * len(f"{self.parts[-1].window.end:,}") + _BETWEEN
        found = list[int]()
        scale = min(part.window.cycles / part.pixels for part in self.parts if not part.is_gap)
        step = next(step for step in round_numbers() if step >= figures * scale)
        for part in self.parts:
            if part.is_gap:
                continue
            first, end = part.window
            near = range(math.ceil(first / step) * step, end + 1, step)
            found += [tick for tick in near if not found or self.at(tick) - self.at(found[-1]) >= figures]
        return found
