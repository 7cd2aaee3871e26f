"""A table of a sweep as a picture: worst cases over one option or two, or answers over the time that they took.

Answers look as in a comparison (`marks`). Nothing is drawn between points.
"""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from makespan.many.report import marks
from makespan.many.sweep.rows import FAILED, MISSING, SweepRow, options
from makespan.many.sweep.series import AnswerTimes, SweepCurve, SweepMap, answer_times, heat_map, sweep_curves
from makespan.model.result import Status
from makespan.model.wording import promise_words
from makespan.report.pictures import FASTEST, GREY, PROVEN, RUN, shorten_middle, write_figure
from makespan.report.result import text as result_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_LOOKS = (
    (PROVEN, "D"), (RUN, "o"), (FASTEST, "^"), ("#CC79A7", "s"), ("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "X"),
    (GREY, "*"),
)  # fmt: skip
"""Source of the colours: Okabe and Ito, Color Universal Design, 2008."""

_LEGEND, _COLUMNS, _MOST_LETTERS = 0.845, 3, 26
"""The begin of a legend as a share of the height, its columns, and the letters that fit into a column."""

_LEAST_SECONDS = 1e-3
"""The begin of an axis of times, at which shorter times stand, too."""


def draw_sweep(found: Sequence[SweepRow], over: Sequence[str], by: str | None, path: Path) -> None:
    """Write a picture to `path` (.png, .svg or .pdf), whole or not at all.

    Args:
        over: the option of curves, or both of a map; none for the times of answers.
        by: the option whose values have curves of their own.

    Raises:
        InputError: a file that cannot be written, or rows that no such picture shows; see `series`.
    """
    title, *about = _head_lines(found, over)
    write_figure(lambda: figure_of(found, over, by), path, title=title, about="; ".join(about))


def figure_of(found: Sequence[SweepRow], over: Sequence[str], by: str | None) -> "Figure":
    """Return the picture as a matplotlib figure; see `draw_sweep`."""
    match over:
        case ():
            figure = _times(answer_times(found, by))
        case (only,):
            figure = _curves(only, sweep_curves(found, only, by))
        case first, second, *_:
            figure = _map(first, second, heat_map(found, (first, second)))
    marks.draw_head(figure, *_head_lines(found, over))
    return figure


def _head_lines(found: Sequence[SweepRow], over: Sequence[str]) -> tuple[str, str, str]:
    """Return the title, what all questions have in common, and the numbers of answers with their conditions."""
    values = {name: {str(row.question.get(name, "")) for row in found} for name in options(found)}
    common = ", ".join(f"{name} {next(iter(each))}" for name, each in values.items() if len(each) == 1)
    order = [*map(str, Status), FAILED, MISSING]
    states = sorted((row.status for row in found), key=order.index)
    caveats = list(dict.fromkeys(caveat for row in found for caveat in row.caveats))
    said = result_text.count_states("question", states, caveats)
    if over and any(row.worst is not None for row in found):
        said += f"; proven for every work-conserving scheduler{promise_words(caveats)}"
    title = f"Worst case over {' and '.join(over)}" if over else "Answers over the time that they took"
    return title, common or "several options", said


def _curves(over: str, shown: Sequence[SweepCurve]) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(marks.WIDTH, marks.HEIGHT), facecolor="white")
    top = _top_of_axes(len(shown))
    axes = figure.add_axes((0.09, 0.085, 0.885, top - 0.085))
    every = [x for curve in shown for x, _ in curve.points]
    size, keys, unknown = marks.marker_size(len(every)), list[Line2D](), set[float]()
    for curve, (colour, marker) in zip(shown, cycle(_LOOKS), strict=False):
        for x, worst in curve.points:
            if worst is not None:
                marks.draw_interval(axes, x, (worst.lower, worst.upper), colour, marker, size)
        unknown |= {x for x, worst in curve.points if worst is None}
        keys.append(Line2D([], [], ls="", marker=marker, color=colour, mew=0, label=_label(curve.name, "worst case")))
    if any(worst and worst.status is Status.BOUNDED for curve in shown for _, worst in curve.points):
        keys.append(Line2D([], [], ls="", marker=marks.BAR, color=GREY, ms=10, mew=2, label="bounded: lower to upper"))
    marks.style_axes(axes)
    axes.set_ylim(bottom=0)
    if unknown:
        marks.draw_unknown(axes, sorted(unknown), size)
        keys.append(marks.unknown_key("no answer" if len(shown) == 1 else "no answer for one of them"))
    marks.set_room(axes, min(every), max(every))
    axes.set_ylabel("cycles")
    axes.set_xlabel(over, parse_math=False)
    _legend(figure, keys)
    return figure


def _label(name: str, otherwise: str) -> str:
    return shorten_middle(name, _MOST_LETTERS) or otherwise


def _top_of_axes(groups: int) -> float:
    return _LEGEND - 0.012 - 0.032 * -(-(groups + 2) // _COLUMNS)


def _legend(figure: "Figure", keys: "Sequence[Line2D]") -> None:
    where = (0.08, _LEGEND)
    legend = figure.legend(handles=keys, loc="upper left", bbox_to_anchor=where, ncols=_COLUMNS, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _map(first: str, second: str, shown: SweepMap) -> "Figure":
    signs = {Status.EXACT: "", Status.BOUNDED: "\N{LESS-THAN OR EQUAL TO}"}
    cells = {
        place: marks.MapCell(worst.upper, f"{signs[worst.status]}{worst.upper}", worst.status)
        for place, worst in shown.cells.items()
    }
    words = marks.MapWords(
        first,
        second,
        "worst case in cycles, at most",
        "at most so much: the worst case is only bounded",
        "no answer, or not asked",
    )
    return marks.map_figure(shown.columns, shown.rows, cells, words)


def _times(shown: Sequence[AnswerTimes]) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(marks.WIDTH, marks.HEIGHT), facecolor="white")
    top = _top_of_axes(len(shown))
    axes = figure.add_axes((0.09, 0.085, 0.885, top - 0.085))
    marks.style_axes(axes)
    last = max((seconds for group in shown for seconds in group.answered), default=_LEAST_SECONDS)
    axes.set(
        xscale="log",
        xlim=(_LEAST_SECONDS, max(last * 1.5, 10 * _LEAST_SECONDS)),
        ylim=(0, 102),
        yticks=range(0, 101, 25),
    )
    axes.xaxis.set_major_formatter("{x:g}")
    keys = []
    for group, (colour, _) in zip(shown, cycle(_LOOKS), strict=False):
        for seconds, look in ((group.answered, ":"), (group.exact, "-")):
            # unanswered questions keep the share below 100 %
            reached = [100 * (at + 1) / group.questions for at in range(len(seconds))]
            begin = [max(_LEAST_SECONDS, each) for each in seconds]
            axes.step(
                [_LEAST_SECONDS, *begin, last * 1.5],
                [0, *reached, reached[-1] if reached else 0],
                look,
                where="post",
                color=colour,
            )
        name = _label(group.name, "all questions")
        keys.append(Line2D([], [], color=colour, lw=2, label=f"{name}: {group.questions}"))
    looks: Sequence[tuple[str, str]] = (("-", "exact"), (":", "exact or bounded"))
    keys += [Line2D([], [], color=GREY, ls=look, label=label) for look, label in looks]
    axes.set_xlabel("seconds")
    axes.set_ylabel("share of questions answered in that time (%)")
    _legend(figure, keys)
    return figure
