"""The marks of the small drawings of a page, in the user units of their SVG. The templates only draw them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from makespan.report.gantt.chart import round_numbers

_STRIP = 54


class PageLayout(NamedTuple):
    """The measures of all drawings for one width of a window.

    Args:
        row: the height of a row of the ladder. If it is `stacked`, its name and value stand above its mark.
        sides: the space to the left and to the right of the marks of the ladder.
        strip_sides: the same beside strips of occupancy.
        ticks: the largest number of ticks.
    """

    name: str
    width: int
    stacked: bool
    row: int
    sides: tuple[int, int]
    strip_sides: tuple[int, int]
    curve_left: int
    ticks: int


LAYOUTS = (
    PageLayout("wide", 900, False, 26, (120, 150), (120, 120), 70, 8),
    PageLayout("narrow", 350, True, 42, (8, 28), (24, 62), 52, 4),
)
"""The layouts for a window on a desk or on paper, and for a telephone."""


class PageScale(NamedTuple):
    """An axis on which the numbers from 0 to `high` lie between two places."""

    start: float
    end: float
    high: int

    def at(self, number: int) -> float:
        """Return the place of a number."""
        return round(self.start + number * (self.end - self.start) / self.high, 1)

    def ticks(self, most: int) -> list[tuple[float, int]]:
        """Return places and round numbers, `most` and one at most."""
        step = next(step for step in round_numbers() if self.high / step <= most)
        return [(self.at(number), number) for number in range(0, self.high + 1, step)]


def interval_words(lower: int, upper: int) -> str:
    """Return an interval as text, such as `1234` or `1234 to 1300`."""
    return str(lower) if lower == upper else f"{lower} to {upper}"


class OccupancyStrip(NamedTuple):
    """The occupancy of one class: the outline of a filled area, at full height if all ports are held."""

    y: float
    name: str
    points: str
    share: str
    colour: str


class OccupancyDrawing(NamedTuple):
    """Strips for all classes and resources, one above another, over all cycles."""

    layout: PageLayout
    height: float
    strips: Sequence[OccupancyStrip]
    strip_height: float
    axis: PageScale


def occupancy(data: Mapping[str, Any], layout: PageLayout) -> OccupancyDrawing:
    """Return the drawing of the occupancy, in which an area is a number of port-cycles."""
    makespan, width = data["makespan"], data["bucket_cycles"]
    left, right = layout.strip_sides
    left = max(left, 8 * max(len(entry["name"]) for entry in data["classes"]) + 16)
    layout = layout._replace(strip_sides=(left, right))
    scale, full = (layout.width - left - right) / makespan, _STRIP - 14
    strips = []
    for number, entry in enumerate(data["classes"]):
        base = _STRIP * (number + 1) - 4
        points = [f"{left},{base}"]
        for bucket, held in enumerate(entry["held"]):
            first, end = bucket * width, min((bucket + 1) * width, makespan)
            y = base - full * held / (entry["capacity"] * (end - first))
            points += [f"{left + first * scale:.2f},{y:.2f}", f"{left + end * scale:.2f},{y:.2f}"]
        points.append(f"{left + makespan * scale:.2f},{base}")
        share = f"{100 * entry['total'] / (entry['capacity'] * makespan):.1f} %"
        strips.append(OccupancyStrip(base, entry["name"], " ".join(points), share, entry["colour"]))
    return OccupancyDrawing(layout, _STRIP * len(strips), strips, full, PageScale(left, layout.width - right, makespan))
