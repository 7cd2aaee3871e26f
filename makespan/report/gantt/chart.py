"""A Gantt chart as plain data, of whatever it tells: panels of rows with bars, arrows and marks above one time axis.

Times are whole cycles or ticks. `figure` draws a chart for a file and `svg` for a page; neither knows its subject.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import NamedTuple

IDLE = "#EAEAEA"
"""The ground of a row on which something could run."""

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Source: Okabe and Ito, Color Universal Design, 2008, without yellow, which stands for a missing issue slot."""
_HATCHES = ("///", "xxx", "+++", "---", "...")
_TINT_OF_HATCH = 0.5
_GAP = 150  # pixels, unless that is much of the width


class GanttLook(NamedTuple):
    """The look of a bar: the colour of its ground, and a hatch as matplotlib writes it, in the colour `line`."""

    face: str
    hatch: str = ""
    line: str = "#FFFFFF"

    @classmethod
    def numbered(cls, number: int, tints: Sequence[float] = ()) -> "GanttLook":
        """Return the look of one of several kinds; colour and hatch together are unique for 28 kinds.

        Args:
            tints: the shares of the colour in the ground, by number; the last counts for all others. None means all.
        """
        lap, place = divmod(number, len(COLOURS))
        hatch = "" if lap == 0 and place < 2 else _HATCHES[(place - 2 + lap) % len(_HATCHES)]
        face = COLOURS[place] if not tints else tint(COLOURS[place], tints[min(number, len(tints) - 1)])
        return cls(face, hatch, tint(COLOURS[place], _TINT_OF_HATCH))

    @property
    def ink(self) -> str:
        """Return the colour of text on the ground, which is black or white, whichever differs more."""
        return "#FFFFFF" if _luminance(self.face) < 0.179 else "#000000"


def tint(colour: str, part: float) -> str:
    """Return a mixture of white and the given part of a colour."""
    mixed = (round(255 - part * (255 - int(colour[at : at + 2], 16))) for at in (1, 3, 5))
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour. Source: WCAG 2.2."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


class CycleWindow(NamedTuple):
    """The cycles from `first` to before `end`."""

    first: int
    end: int

    @property
    def cycles(self) -> int:
        """Return the number of cycles."""
        return self.end - self.first


class GanttRow(NamedTuple):
    """A row with its label.

    Args:
        lanes: the number of bars that stand one below another.
        depth: the number of ports or warps that share the row; their bars overlap, and shades are shares.
        group: the rows of another group stand apart.
    """

    label: str
    lanes: int = 1
    depth: int = 1
    group: int | None = None


class GanttBar(NamedTuple):
    """A bar from `start` to before `end`.

    Args:
        texts: what may stand in it; the first that fits does.
        tip: what a pointer shows on a page.
        thick: the part of the height of its lane.
    """

    row: int
    start: int
    end: int
    look: GanttLook
    texts: tuple[str, ...] = ()
    tip: str = ""
    lane: int = 0
    thick: float = 0.88


class GanttMark(NamedTuple):
    """A mark at a time beside a lane: its kind is a key of `MARKS`."""

    row: int
    at: int
    kind: str
    lane: int = 0


MARKS = {
    "arrival": ("^", "arrival", "▲"),
    "earlier": ("<", "arrival earlier", "◀"),
    "deadline": ("v", "deadline", "▽"),
    "later": (">", "deadline later", "▷"),
    "late": ("X", "end after the deadline", "✖"),
}
"""The symbol of each kind of marks, as matplotlib writes it, its meaning, and a letter like it."""


class GanttArrow(NamedTuple):
    """An arrow from the end of a bar to the start of the next: row, lane and time of either."""

    tail: tuple[int, int, int]
    head: tuple[int, int, int]
    is_bold: bool = False


class GanttLine(NamedTuple):
    """A labelled line through all rows at a time; what is proven has another colour, and an end is not dashed."""

    at: int
    words: str
    is_proven: bool
    is_end: bool


class AxisWindow(NamedTuple):
    """A part of the axis; a gap leaves its cycles out."""

    first: int
    end: int
    is_gap: bool = False


class GanttKey(NamedTuple):
    """An entry of the legend: a look, the kind of a mark, or the word "arrow", and its meaning."""

    look: GanttLook | str
    words: str


@dataclass(frozen=True, slots=True)
class GanttPanel:
    """Rows below one another.

    Args:
        ground: the time until which rows are idle where no bar is. None means that nothing could run.
        tall: the most pixels of a lane in a file.
        axis: the parts of an axis of its own. Empty means the axis of the chart.
    """

    rows: tuple[GanttRow, ...]
    bars: Sequence[GanttBar]
    caption: str = ""
    ground: int | None = None
    tall: int = 48
    axis: tuple[AxisWindow, ...] = ()
    axis_words: str = ""
    arrows: tuple[GanttArrow, ...] = ()
    marks: tuple[GanttMark, ...] = ()

    @property
    def lanes(self) -> int:
        """Return the number of lanes of all rows."""
        return sum(row.lanes for row in self.rows)


@dataclass(frozen=True, slots=True)
class Gantt:
    """A chart.

    Args:
        axis: the parts of the time axis.
        width: the pixels of the axis in a file.
        unit: the times in one unit of the axis; its numbers are whole where it is 1.
        axis_words: the words below the axis.
        subtitles: the lines below the title.
        caption: the text above the panels.
    """

    title: str
    subtitles: tuple[str, ...]
    panels: tuple[GanttPanel, ...]
    axis: tuple[AxisWindow, ...]
    width: int
    keys: tuple[GanttKey, ...]
    axis_words: str = "cycle"
    unit: Fraction = Fraction(1)
    caption: str = ""
    lines: tuple[GanttLine, ...] = ()


def round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


def axis_width(cycles: int, widest: int, widest_cycle: int) -> int:
    """Return the most pixels, up to `widest`, that give each cycle equally many whole pixels if it has any.

    >>> axis_width(915, 2000, 90), axis_width(10, 2000, 90), axis_width(100_000, 2000, 90)
    (1830, 900, 2000)
    """
    return cycles * min(widest_cycle, widest // cycles) if cycles <= widest else widest


class ScaledAxis:
    """An axis of some parts, drawn `width` pixels wide. Parts that are no gaps have one scale."""

    def __init__(self, parts: Sequence[AxisWindow], width: float) -> None:
        gap = min(_GAP, width / 8)
        shown = sum(part.end - part.first for part in parts if not part.is_gap)
        self.parts, self.width = tuple(parts), width
        self.per_pixel = shown / (width - gap * sum(part.is_gap for part in parts))
        self.lefts = [0.0]
        for part in parts:
            self.lefts.append(self.lefts[-1] + (gap if part.is_gap else (part.end - part.first) / self.per_pixel))

    def at(self, time: float) -> float:
        """Return the pixels from the left end of the axis to a time. Times beyond an end are drawn at the end."""
        number = next((n for n, part in enumerate(self.parts) if time < part.end), len(self.parts) - 1)
        part, left, right = self.parts[number], self.lefts[number], self.lefts[number + 1]
        return left + (right - left) * min(1.0, max(0.0, (time - part.first) / (part.end - part.first)))

    def pieces(self, start: int, end: int) -> Iterator[tuple[float, float]]:
        """Yield from where to where a stretch is drawn: once for each part to scale that has some of it."""
        for part, left in zip(self.parts, self.lefts, strict=False):
            if not part.is_gap and start < part.end and end > part.first:
                yield (
                    left + max(0, start - part.first) / self.per_pixel,
                    left + (min(end, part.end) - part.first) / self.per_pixel,
                )

    def ticks(self, letter: float, unit: Fraction = Fraction(1)) -> list[tuple[float, str]]:
        """Return places and numbers: round ones, as far apart as `letter` pixels for each letter need.

        The numbers are in units of the axis. Of whole cycles both ends of each part have one, too.
        """
        high = self.parts[-1].end / unit
        room = self.per_pixel / float(unit) * letter * (len(f"{math.ceil(high):,}") + (2 if unit == 1 else 4))
        # a unit is divided into tenths until the numbers are close enough; a cycle is not divided
        fine = 1 if unit == 1 else next(10**power for power in count() if room * 10**power >= 1)
        step = Fraction(next(step for step in round_numbers() if step >= room * fine), fine)
        parts = [(part.first / unit, part.end / unit) for part in self.parts if not part.is_gap]
        inside = (n * step for first, end in parts for n in range(math.ceil(first / step), math.floor(end / step) + 1))
        found: dict[Fraction, float] = {}
        for each in (*(end for part in parts for end in part if unit == 1), *inside):
            at = self.at(float(each * unit))
            if all(abs(at - other) >= room * float(unit) / self.per_pixel for other in found.values()):
                found[each] = at
        return [
            (at, f"{int(each):,}" if each.denominator == 1 else f"{float(each):g}")
            for each, at in sorted(found.items())
        ]
