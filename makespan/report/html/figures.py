"""Where the marks of the small figures stand, in the user units of their SVG; the templates only draw them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from makespan.report.gantt import round_numbers

WIDTH = 900
_LEFT, _RIGHT, _ROW = 120, 120, 26
_FARTHEST = 0.6
"""How far beyond the worst case the axis of the ladder goes, as a share of the span; what is farther is an arrow."""
_CURVE_HEIGHT, _CURVE_LEFT = 260, 70
_STRIP = 54


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    text: str


class Rung(NamedTuple):
    """A row of the ladder: from `x` to `to`, equal for one number; `beyond` where it is right of the axis."""

    y: float
    name: str
    kind: str
    x: float
    to: float
    beyond: bool
    text: str


class Ladder(NamedTuple):
    """The bound ladder; `span` is the proven stretch from the best to the worst case."""

    height: float
    rungs: Sequence[Rung]
    span: tuple[float, float]
    ticks: Sequence[Tick]


def ladder(rows: Sequence[Mapping[str, Any]]) -> Ladder:
    """The figure of those rows that have numbers. Its axis does not begin at 0."""
    known = [row for row in rows if row["lower"] is not None]
    best = next(row for row in known if row["name"] == "best case")
    worst = next(row for row in known if row["name"] == "worst case")
    spread = max(int(worst["upper"]) - int(best["lower"]), 2)
    within = [row["upper"] for row in known if row["upper"] <= worst["upper"] + _FARTHEST * spread]
    low, high = int(best["lower"]) - 0.05 * spread, max(map(int, within)) + 0.05 * spread
    scale = (WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(cycles: int) -> float:
        return round(_LEFT + (min(float(cycles), high) - low) * scale, 1)

    rungs = [
        Rung(
            _ROW * (number + 0.5),
            row["name"],
            row["kind"],
            x(row["lower"]),
            x(row["upper"]),
            row["upper"] > high,
            interval(row["lower"], row["upper"]),
        )
        for number, row in enumerate(known)
    ]
    ticks = [Tick(x(at), f"{at:,}") for at in _ticks(math.ceil(low), math.floor(high), 7)]
    return Ladder(_ROW * len(known), rungs, (x(best["lower"]), x(worst["upper"])), ticks)


def interval(lower: int, upper: int) -> str:
    """`1,234` or `1,234 to 1,300`."""
    return f"{lower:,}" if lower == upper else f"{lower:,} to {upper:,}"


def _ticks(low: int, high: int, most: int) -> range:
    """At most so many round numbers within."""
    low = max(low, 0)
    step = next(step for step in round_numbers() if (high - low) / step <= most)
    return range(-(-low // step) * step, high + 1, step)


class Strip(NamedTuple):
    """The occupancy of one class: the outline of a filled area, at full height where all ports are held."""

    y: float
    name: str
    points: str
    share: str
    colour: str


class Occupancy(NamedTuple):
    """A strip for each class above one another, over all cycles."""

    height: float
    strips: Sequence[Strip]
    strip_height: float
    ticks: Sequence[Tick]


def occupancy(data: Mapping[str, Any]) -> Occupancy:
    """The figure of the occupancy, in which an area is a number of port-cycles."""
    makespan, width = data["makespan"], data["bucket_cycles"]
    scale, full = (WIDTH - _LEFT - _RIGHT) / makespan, _STRIP - 14
    strips = []
    for number, entry in enumerate(data["classes"]):
        base = _STRIP * (number + 1) - 4
        points = [f"{_LEFT},{base}"]
        for bucket, held in enumerate(entry["held"]):
            first, end = bucket * width, min((bucket + 1) * width, makespan)
            y = base - full * held / (entry["capacity"] * (end - first))
            points += [f"{_LEFT + first * scale:.2f},{y:.2f}", f"{_LEFT + end * scale:.2f},{y:.2f}"]
        points.append(f"{_LEFT + makespan * scale:.2f},{base}")
        share = f"{100 * entry['total'] / (entry['capacity'] * makespan):.1f} %"
        strips.append(Strip(base, entry["name"], " ".join(points), share, entry["colour"]))
    ticks = [Tick(round(_LEFT + at * scale, 1), f"{at:,}") for at in _ticks(0, makespan, 8)]
    return Occupancy(_STRIP * len(strips), strips, full, ticks)


class Curve(NamedTuple):
    """Bounds over the number of warps: lines as points, and both axes."""

    height: float
    left: float
    lower: str
    upper: str
    pessimistic: str
    marks: Sequence[tuple[float, float]]
    ticks: Sequence[Tick]
    levels: Sequence[Tick]


def curve(points: Sequence[Mapping[str, Any]]) -> Curve:
    """The figure of the curve; both axes begin at 0."""
    most_warps = int(points[-1]["warps"])
    most = max(int(point["pessimistic"]) for point in points)
    width, height = WIDTH - _CURVE_LEFT - 30, _CURVE_HEIGHT - 16

    def across(warps: int) -> float:
        return round(_CURVE_LEFT + width * warps / most_warps, 1)

    def at(point: Mapping[str, Any], key: str) -> tuple[float, float]:
        return across(point["warps"]), round(16 + height * (1 - point[key] / most), 1)

    def line(key: str) -> str:
        return _points(at(point, key) for point in points)

    return Curve(
        _CURVE_HEIGHT,
        _CURVE_LEFT,
        line("lower"),
        line("upper"),
        line("pessimistic"),
        [at(point, "upper") for point in points],
        [Tick(across(warps), str(warps)) for warps in _ticks(0, most_warps, 12)],
        [Tick(round(16 + height * (1 - level / most), 1), f"{level:,}") for level in _ticks(0, most, 6)],
    )


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in pairs)
