"""The marks of the small drawings of a page, in the user units of their SVG. The templates only draw them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from makespan.report.gantt.chart import round_numbers

_CURVE_HEIGHT, _STRIP = 260, 54


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


class AxisTick(NamedTuple):
    """A tick on an axis."""

    at: float
    text: str


class LadderRung(NamedTuple):
    """A row of the ladder: its mark from `x` to `to` (equal for one number), and the places of name and value."""

    y: float
    name: str
    kind: str
    x: float
    to: float
    text: str
    name_at: tuple[float, float]
    text_at: tuple[float, float]


class LadderDrawing(NamedTuple):
    """The bound ladder; `span` is the proven interval from the best to the worst case."""

    layout: PageLayout
    height: float
    rungs: Sequence[LadderRung]
    span: tuple[float, float]
    ticks: Sequence[AxisTick]


def ladder(rows: Sequence[Mapping[str, Any]], layout: PageLayout) -> LadderDrawing:
    """Return the drawing of the rows. Its axis begins at 0."""
    left, right = layout.sides
    high = max(int(row["upper"]) for row in rows)

    def x(cycles: int) -> float:
        return round(left + cycles * (layout.width - left - right) / high, 1)

    def rung(number: int, row: Mapping[str, Any]) -> LadderRung:
        y = layout.row * (number + (0.62 if layout.stacked else 0.5))
        name_at = (left + 4, y - 12) if layout.stacked else (left - 8, y + 4)
        text_at = (layout.width - 1, y - 12) if layout.stacked else (x(row["upper"]) + 11, y + 4)
        text = interval_words(row["lower"], row["upper"])
        return LadderRung(y, row["name"], row["kind"], x(row["lower"]), x(row["upper"]), text, name_at, text_at)

    best = next(row for row in rows if row["name"] == "best case")
    worst = next(row for row in rows if row["name"] == "worst case")
    ticks = [AxisTick(x(at), str(at)) for at in _ticks(0, high, layout.ticks)]
    rungs = [rung(number, row) for number, row in enumerate(rows)]
    return LadderDrawing(layout, layout.row * len(rows), rungs, (x(best["lower"]), x(worst["upper"])), ticks)


def interval_words(lower: int, upper: int) -> str:
    """Return an interval as text, such as `1234` or `1234 to 1300`."""
    return str(lower) if lower == upper else f"{lower} to {upper}"


def _ticks(low: int, high: int, most: int) -> range:
    step = next(step for step in round_numbers() if (high - low) / step <= most)
    return range(-(-low // step) * step, high + 1, step)


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
    ticks: Sequence[AxisTick]


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
    ticks = [AxisTick(round(left + at * scale, 1), str(at)) for at in _ticks(0, makespan, layout.ticks)]
    return OccupancyDrawing(layout, _STRIP * len(strips), strips, full, ticks)


class CurveMark(NamedTuple):
    """The bounds for a number of warps, at `x`; `lower` and `upper` are equal if they are exact."""

    x: float
    lower: float
    upper: float
    pessimistic: float


class CurveDrawing(NamedTuple):
    """Bounds over the number of warps as marks, with nothing between them, and both axes."""

    layout: PageLayout
    height: float
    marks: Sequence[CurveMark]
    ticks: Sequence[AxisTick]
    levels: Sequence[AxisTick]


def curve(points: Sequence[Mapping[str, Any]], layout: PageLayout) -> CurveDrawing:
    """Return the drawing of the curve. Both axes begin at 0."""
    most_warps = int(points[-1]["warps"])
    most = max(int(point["pessimistic"]) for point in points)
    left, height = layout.curve_left, _CURVE_HEIGHT - 16
    width = layout.width - left - 30

    def across(warps: int) -> float:
        return round(left + width * warps / most_warps, 1)

    def up(cycles: int) -> float:
        return round(16 + height * (1 - cycles / most), 1)

    def mark(point: Mapping[str, Any]) -> CurveMark:
        return CurveMark(across(point["warps"]), *(up(point[key]) for key in ("lower", "upper", "pessimistic")))

    return CurveDrawing(
        layout,
        _CURVE_HEIGHT,
        list(map(mark, points)),
        [AxisTick(across(warps), str(warps)) for warps in _ticks(0, most_warps, 3 * layout.ticks // 2)],
        [AxisTick(up(level), str(level)) for level in _ticks(0, most, 6)],
    )
