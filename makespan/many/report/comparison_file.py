"""A comparison as a file: curves over the number of warps, a heat map over warps and a quantity, or data.

In a picture, an exact result is a diamond or a plain cell, a bounded one a bar or a hatched cell, and a point that was
not computed a cross. Nothing is drawn between points.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.many.report import marks
from makespan.many.report.comparison import (
    comparison_csv,
    comparison_json,
    comparison_subject,
    comparison_summary,
    status_counts,
)
from makespan.many.study.comparison import Comparison, ComparisonPoint, MachineAxis, PointResult
from makespan.model.result import Status
from makespan.model.wording import PAPERS_NAME, pessimistic_name, promise_words
from makespan.report.pictures import FASTEST, PESSIMISTIC, PICTURES, PROVEN, formula_text, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Write curves or, with an axis, a heat map to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    about = f"{comparison_subject(comparison)}; {status_counts(comparison)}"
    write_figure(lambda: figure_of(comparison), path, title=comparison_summary(comparison), about=about)


def figure_of(comparison: Comparison) -> "Figure":
    """Return the picture as a matplotlib figure, for notebooks."""
    axis = comparison.axis
    figure = _curves(comparison) if axis is None else _heat_map(comparison, axis)
    said = f"{status_counts(comparison)}; proven for every work-conserving scheduler{promise_words(comparison.caveats)}"
    marks.draw_head(figure, comparison_summary(comparison), comparison_subject(comparison), said)
    return figure


def _curves(comparison: Comparison) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(marks.WIDTH, marks.HEIGHT), facecolor="white")
    cycles = figure.add_axes((0.09, 0.345, 0.885, 0.435))
    percent = figure.add_axes((0.09, 0.085, 0.885, 0.215), sharex=cycles)
    size = marks.marker_size(len(comparison.points))
    _draw_cycles(cycles, comparison.points, size)
    _draw_percent(percent, comparison.points, size)
    for axes in (cycles, percent):
        marks.style_axes(axes)
        axes.set_ylim(bottom=0)
        marks.draw_unknown(axes, [point.warps for point in comparison.points if point.found is None], size)
    cycles.set_ylabel("cycles")
    cycles.tick_params(labelbottom=False)
    first, last = comparison.warps[0], comparison.warps[-1]
    marks.set_room(cycles, first, last)
    percent.set_ylabel(f"{formula_text(pessimistic_name(comparison.machine))} above\nthe worst case (%)")
    percent.set_xlabel("warps")
    figure.legend(handles=_keys(comparison), loc="upper left", bbox_to_anchor=(0.08, 0.865), ncols=3, frameon=False)
    return figure


def _draw_cycles(axes: "Axes", points: Sequence[ComparisonPoint], size: float) -> None:
    """Draw M^L + M^C, the worst case and, if it is known, the best case."""
    for point in points:
        if (found := point.found) is None:
            continue
        if found.best_case is not None:
            best = found.best_case.bounds
            marks.draw_interval(axes, point.warps, (best.lower, best.upper), FASTEST, "^", size)
        axes.plot(point.warps, found.pessimistic, "s", ms=size, mfc="none", mec=PESSIMISTIC, mew=1.1, zorder=2)
        marks.draw_interval(axes, point.warps, (found.worst.lower, found.worst.upper), PROVEN, marks.EXACT, size)


def _draw_percent(axes: "Axes", points: Sequence[ComparisonPoint], size: float) -> None:
    """Draw how far M^L + M^C is above the worst case, with a bar if the worst case is an interval."""
    excess = {point.warps: point.found.excess for point in points if point.found is not None}
    for warps, ends in excess.items():
        marks.draw_interval(axes, warps, ends, PROVEN, marks.EXACT, size)
    axes.set_ylim(top=1.15 * max((most for _, most in excess.values()), default=0.0) or 1.0)


def _keys(comparison: Comparison) -> "list[Line2D]":
    from matplotlib.lines import Line2D

    found, name = comparison.found, pessimistic_name(comparison.machine)
    keys = []
    if found:
        label = "M$^L$ + M$^C$, the pessimistic bound" if name == PAPERS_NAME else name
        keys.append(Line2D([], [], ls="", marker="s", mfc="none", mec=PESSIMISTIC, mew=1.1, label=label))
    keys += marks.interval_keys([one.worst for one in found], PROVEN, marks.EXACT, "worst case")
    best = [one.best_case.bounds for one in found if one.best_case is not None]
    keys += marks.interval_keys(best, FASTEST, "^", "best case")
    if len(found) < len(comparison.points):
        keys.append(marks.unknown_key("not computed"))
    return keys


def _heat_map(comparison: Comparison, axis: MachineAxis) -> "Figure":
    cells = {
        (point.warps, point.value): marks.MapCell(point.found.excess[0], _number(point.found), point.found.worst.status)
        for point in comparison.points
        if point.found is not None
    }
    words = marks.MapWords(
        "warps",
        axis.label,
        f"{formula_text(pessimistic_name(comparison.machine))} above the worst case (%)",
        "at least so much: the worst case is only bounded",
        "not computed",
    )
    return marks.map_figure(comparison.warps, axis.values, cells, words)


def _number(found: PointResult) -> str:
    least, sign = found.excess[0], "" if found.worst.status is Status.EXACT else "\N{GREATER-THAN OR EQUAL TO}"
    return f"{sign}{least:.1f}" if least < 99.95 else f"{sign}{least:.0f}"


DATA: Mapping[str, Callable[[Comparison], str]] = {".csv": comparison_csv, ".json": comparison_json}
"""The content of a file of data, by the end of its name."""


def check_comparison_path(path: Path) -> None:
    """Refuse a path early if no comparison can be written to it, so that no work is lost.

    Raises:
        InputError: an unknown end of the name, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in (*PICTURES, *DATA):
        raise InputError(f"{path}: the name of an output must end in .png, .svg, .pdf, .csv or .json")
    check_writable(path, "the comparison")


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write curves, a heat map or data to `path`, whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    if path.suffix.lower() in PICTURES:
        draw_comparison(comparison, path)
        return
    write_whole(path, DATA[path.suffix.lower()](comparison).encode("utf-8"), "the comparison")
