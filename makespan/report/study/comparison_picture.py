"""A comparison as a picture: curves over the number of warps, or a heat map over warps and a quantity of the machine.

Exact is a diamond or a plain cell, bounded a bar or a hatched cell, not computed a cross; nothing is drawn
between points.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from makespan.report.pictures import FASTEST, GREY, INK, LINES, PESSIMISTIC, PROVEN, cut, formula, write_figure
from makespan.report.study.comparison import counts, subject, summary
from makespan.result import Bounds, Status
from makespan.study.comparison import Comparison, Found, Point
from makespan.wording import PAPERS_NAME, pessimistic_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

_WIDTH, _HEIGHT, _WIDEST, _TALLEST = 9.6, 6.6, 16.0, 12.0  # inches
_COLUMN, _ROW, _LEFT, _RIGHT, _HEAD, _FOOT = 0.46, 0.36, 0.85, 1.3, 1.1, 1.0  # inches
_READABLE = 0.25  # inches of a cell that can hold a number
_LARGE, _SMALL = 7.0, 2.0  # points of a marker
_ROOMY = 60  # points that large markers have room for
_MAP = "cividis"
"""Source: Nunez, Anderton and Renslow, PLOS ONE 13(7), 2018; for all kinds of colour vision; monotonic in grey."""

_EXACT, _BAR, _UNKNOWN, _HATCH = "D", "_", "x", "////"


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Write curves or, with an axis, a heat map to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    about = f"{subject(comparison)}; {counts(comparison)}"
    write_figure(lambda: figure_of(comparison), path, title=summary(comparison), about=about)


def figure_of(comparison: Comparison) -> "Figure":
    """The picture as a matplotlib figure, for notebooks."""
    return _curves(comparison) if comparison.axis is None else _heat_map(comparison)


def _curves(comparison: Comparison) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), facecolor="white")
    _head(figure, comparison, _HEIGHT)
    cycles = figure.add_axes((0.09, 0.345, 0.885, 0.435))
    percent = figure.add_axes((0.09, 0.085, 0.885, 0.215), sharex=cycles)
    size = max(_SMALL, _LARGE * min(1.0, _ROOMY / len(comparison.points)))
    _draw_cycles(cycles, comparison.points, size)
    _draw_percent(percent, comparison.points, size)
    for axes in (cycles, percent):
        _plain(axes)
        axes.set_ylim(bottom=0)
        _draw_unknown(axes, [point.warps for point in comparison.points if point.found is None], size)
    cycles.set_ylabel("cycles")
    cycles.tick_params(labelbottom=False)
    first, last = comparison.warps[0], comparison.warps[-1]
    beside = max(0.6, 0.015 * (last - first))
    cycles.set_xlim(first - beside, last + beside)
    percent.set_ylabel(f"{formula(pessimistic_name(comparison.machine))} above\nthe worst case (%)")
    percent.set_xlabel("warps")
    figure.legend(handles=_keys(comparison), loc="upper left", bbox_to_anchor=(0.08, 0.865), ncols=3, frameon=False)
    return figure


def _head(figure: "Figure", comparison: Comparison, height: float) -> None:
    """Three lines of text on top; names from outside are no formulas."""
    title: dict[str, Any] = {"size": 13, "weight": "bold", "color": INK}
    figure.text(0.02, 1 - 0.3 / height, formula(summary(comparison)), va="center", **title)
    proven = f"{counts(comparison)}; proven for every work-conserving scheduler"
    for down, line in ((0.6, subject(comparison)), (0.83, proven)):
        figure.text(0.02, 1 - down / height, cut(line), va="center", color=GREY, parse_math=False)


def _draw_cycles(axes: "Axes", points: Sequence[Point], size: float) -> None:
    """M^L + M^C, the worst case and, where it is known, the best case."""
    for point in points:
        if point.found is None:
            continue
        if point.found.best_case is not None:
            _draw_interval(axes, point.warps, point.found.best_case.bounds, FASTEST, "^", size)
        axes.plot(point.warps, point.found.pessimistic, "s", ms=size, mfc="none", mec=PESSIMISTIC, mew=1.1, zorder=2)
        _draw_interval(axes, point.warps, point.found.worst, PROVEN, _EXACT, size)


def _draw_interval(axes: "Axes", warps: int, bounds: Bounds, colour: str, marker: str, size: float) -> None:
    """A marker for a value, a bar with two ends for an interval."""
    if bounds.status is Status.EXACT:
        axes.plot(warps, bounds.upper, marker, ms=size * 0.8, color=colour, mew=0, zorder=3)
        return
    ends = (bounds.lower, bounds.upper)
    axes.plot((warps, warps), ends, color=colour, linewidth=size * 0.35, solid_capstyle="butt", zorder=3)
    axes.plot((warps, warps), ends, _BAR, color=colour, ms=size * 1.5, mew=1.6, zorder=3)


def _draw_percent(axes: "Axes", points: Sequence[Point], size: float) -> None:
    """How far M^L + M^C is above the worst case; a bar where the worst case is an interval."""
    highest = 0.0
    for point in points:
        if point.found is None:
            continue
        ends = point.found.excess
        highest = max(highest, ends[1])
        if point.found.worst.status is Status.EXACT:
            axes.plot(point.warps, ends[0], _EXACT, ms=size * 0.8, color=PROVEN, mew=0, clip_on=False)
        else:
            axes.plot((point.warps,) * 2, ends, color=PROVEN, linewidth=size * 0.35, solid_capstyle="butt")
            axes.plot((point.warps,) * 2, ends, _BAR, color=PROVEN, ms=size * 1.5, mew=1.6)
    axes.set_ylim(top=1.15 * highest or 1.0)


def _draw_unknown(axes: "Axes", warps: Sequence[int], size: float) -> None:
    """Crosses on the axis."""
    across = axes.get_xaxis_transform()
    axes.plot(warps, [0.03] * len(warps), _UNKNOWN, ms=size * 0.8, color=GREY, mew=1.3, transform=across, clip_on=False)


def _keys(comparison: Comparison) -> "list[Line2D]":
    """The legend: only what occurs."""
    from matplotlib.lines import Line2D

    found, name = comparison.found, pessimistic_name(comparison.machine)
    keys = []
    if found:
        keys.append(
            Line2D(
                [],
                [],
                ls="",
                marker="s",
                mfc="none",
                mec=PESSIMISTIC,
                mew=1.1,
                label="M$^L$ + M$^C$, the pessimistic bound" if name == PAPERS_NAME else name,
            )
        )
    keys += _interval_keys([one.worst for one in found], PROVEN, _EXACT, "worst case")
    best = [one.best_case.bounds for one in found if one.best_case is not None]
    keys += _interval_keys(best, FASTEST, "^", "best case")
    if len(found) < len(comparison.points):
        keys.append(Line2D([], [], ls="", marker=_UNKNOWN, color=GREY, mew=1.3, label="not computed"))
    return keys


def _interval_keys(several: Sequence[Bounds], colour: str, marker: str, name: str) -> "list[Line2D]":
    from matplotlib.lines import Line2D

    states = {bounds.status for bounds in several}
    keys = []
    if Status.EXACT in states:
        keys.append(Line2D([], [], ls="", marker=marker, color=colour, mew=0, label=f"{name}, exact"))
    if Status.BOUNDED in states:
        label = f"{name}, bounded: lower to upper"
        keys.append(Line2D([], [], ls="", marker=_BAR, color=colour, ms=10, mew=2, label=label))
    return keys


def _plain(axes: "Axes") -> None:
    """Whole numbers of warps, faint lines for reading, and no frame."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=13, integer=True, steps=[1, 2, 4, 5, 8, 10]))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(axis="y", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _heat_map(comparison: Comparison) -> "Figure":
    from matplotlib import colormaps
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    columns, rows = len(comparison.warps), _rows(comparison)
    width = min(_WIDEST, max(_WIDTH, _LEFT + _COLUMN * columns + _RIGHT))
    height = min(_TALLEST, max(4.2, _HEAD + _ROW * len(rows) + _FOOT))
    figure = Figure(figsize=(width, height), facecolor="white")
    _head(figure, comparison, height)
    inside = (width - _LEFT - _RIGHT, height - _HEAD - _FOOT)
    axes = figure.add_axes((_LEFT / width, _FOOT / height, inside[0] / width, inside[1] / height))
    highest = max((found.excess[0] for found in comparison.found), default=0.0)
    colours, scale = colormaps[_MAP], Normalize(0, highest or 1.0)
    cell = (inside[0] / columns, inside[1] / len(rows))
    for point in comparison.points:
        _draw_cell(axes, point, (comparison.warps.index(point.warps), rows.index(point.value)), cell, colours, scale)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, len(rows) - 0.5), xlabel="warps")
    _ticks(axes, comparison)
    _scale(figure, axes, colours, scale, formula(pessimistic_name(comparison.machine)))
    keys = _cell_keys(comparison)
    if keys:
        figure.legend(handles=keys, loc="lower left", ncols=2, frameon=False, bbox_to_anchor=(0.01, 0.0))
    return figure


def _rows(comparison: Comparison) -> list[int | None]:
    return [] if comparison.axis is None else list(comparison.axis.values)


def _draw_cell(
    axes: "Axes",
    point: Point,
    at: tuple[int, int],
    inches: tuple[float, float],
    colours: "Colormap",
    scale: "Normalize",
) -> None:
    """A coloured cell with its number where there is room; hatches say bounded, a cross not computed."""
    from matplotlib.patches import Rectangle

    x, y = at
    if point.found is None:
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor=LINES, linewidth=0.4))
        axes.plot(x, y, _UNKNOWN, color=GREY, ms=min(7.0, 30 * min(inches)), mew=1.2)
        return
    colour = colours(scale(point.found.excess[0]))
    light = sum(share * part for share, part in zip((0.299, 0.587, 0.114), colour[:3], strict=True)) > 0.5
    ink = INK if light else "white"
    hatch = _HATCH if point.found.worst.status is Status.BOUNDED else ""
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=ink, hatch=hatch, linewidth=0))
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=0.8))
    if inches[0] >= _READABLE and inches[1] >= _READABLE * 0.6:
        size = min(8.0, 19 * inches[0])
        ground = {"facecolor": colour, "edgecolor": "none", "pad": 2}  # hatches do not run through the number
        axes.text(x, y, _number(point.found), size=size, color=ink, ha="center", va="center", bbox=ground)


def _number(found: Found) -> str:
    least, sign = found.excess[0], "" if found.worst.status is Status.EXACT else "\N{GREATER-THAN OR EQUAL TO}"
    return f"{sign}{least:.1f}" if least < 99.95 else f"{sign}{least:.0f}"


def _ticks(axes: "Axes", comparison: Comparison) -> None:
    """The numbers of warps and the values, as many as can be read."""
    if comparison.axis is None:
        raise ValueError("a heat map needs an axis")
    for axis, values, most in ((axes.xaxis, comparison.warps, 32), (axes.yaxis, comparison.axis.values, 30)):
        step = -(-len(values) // most)
        axis.set_ticks(range(0, len(values), step), [str(value) for value in values[::step]])
    axes.set_ylabel(comparison.axis.label)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _scale(figure: "Figure", axes: "Axes", colours: "Colormap", scale: "Normalize", pessimistic: str) -> None:
    from matplotlib.cm import ScalarMappable

    place = axes.get_position()
    beside = figure.add_axes(
        (place.x1 + 0.15 / figure.get_figwidth(), place.y0, 0.2 / figure.get_figwidth(), place.height)
    )
    bar = figure.colorbar(ScalarMappable(scale, colours), cax=beside)
    bar.set_label(f"{pessimistic} above the worst case (%)")
    bar.outline.set_visible(False)


def _cell_keys(comparison: Comparison) -> "list[Line2D | Patch]":
    """What hatches and crosses mean, if there are any."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Line2D | Patch] = []
    if Status.BOUNDED in {point.status for point in comparison.points}:
        label = "at least so much: the worst case is only bounded"
        keys.append(Patch(facecolor="white", edgecolor=INK, hatch=_HATCH, linewidth=0.4, label=label))
    if any(point.found is None for point in comparison.points):
        keys.append(Line2D([], [], ls="", marker=_UNKNOWN, color=GREY, ms=7, mew=1.3, label="not computed"))
    return keys
