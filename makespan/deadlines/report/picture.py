"""The worst schedule that was found, as a picture: what cores, engines and partitions run above, whole jobs below."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.report.chart import ALL, ChartView, DeadlineChart, JobSpan, TaskBar, window_chart
from makespan.deadlines.simulation import CompletedJob
from makespan.model.units import SECONDS, shown_time
from makespan.report.pictures import GREY, INK, LINES, shorten, shorten_middle, title_lines, write_figure
from makespan.report.schedule.looks import SpanLook

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _ROW, _HEAD, _LEGEND_ROW, _FOOT, _GAP = 13.0, 0.42, 1.25, 0.26, 0.75, 0.4  # inches
_TITLE_ROW = 0.27  # inches of each line of the title but the first
_LEFT, _RIGHT = 1.75, 0.3  # inches
_LATE, _OTHER = "#D55E00", "#D9D9D9"
_LETTER = 0.075  # inches of a letter in a bar
_BAR, _SPUN = 0.78, 0.42  # of a row
_KEYS_PER_ROW = 6
_READABLE = 12  # letters of a name that is cut
_APART = 0.22  # of a row: an arrival is below its job, a deadline above
_LANE = 0.75  # of a row, for the lanes of jobs that overlap
_LOOKS = 8  # the number of tasks that differ by colour; the number of the job says the rest
_TITLE, _LINE = 98, 150  # letters that fit
_ARRIVAL, _EARLIER, _DEADLINE, _LATER = "^", "<", "v", ">"
_FACES = {_ARRIVAL: INK, _EARLIER: INK, _DEADLINE: "white", _LATER: "white"}
_WORDS = {
    _ARRIVAL: "arrival",
    _EARLIER: "arrival earlier",
    _DEADLINE: "deadline",
    _LATER: "deadline later",
}


def draw_window(window: ScheduleWindow, tick: Fraction, path: Path, *, title: str, view: ChartView = ALL) -> None:
    """Write the picture of a window to `path` (.png, .svg or .pdf), whole or not at all.

    Args:
        tick: The seconds of a tick.

    Raises:
        InputError: a file that cannot be written, or nothing to show.
    """
    shown, words = window_chart(window, view), f"simulated: {window.run.scenario.words}"
    write_figure(lambda: _figure(shown, tick, title, words), path, title=title, about=words)


def _figure(shown: DeadlineChart, tick: Fraction, title: str, words: str) -> "Figure":
    from matplotlib.figure import Figure

    keys = _keys(shown)
    legend = _LEGEND_ROW * -(-len(keys) // _KEYS_PER_ROW)
    heights = [_ROW * len(shown.resources), _ROW * _stretch(shown) * len(shown.tasks)]
    verdict = title_lines(title, _TITLE)
    head = _HEAD + _TITLE_ROW * (len(verdict) - 1)
    height = head + legend + sum(heights) + _GAP + _FOOT
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    _head(figure, height, verdict, (words, latest_line(shown.job, tick)))
    figure.legend(
        handles=keys, loc="upper left", ncols=_KEYS_PER_ROW, frameon=False, borderaxespad=0,
        bbox_to_anchor=(0.02, 1 - (head - 0.18) / height),
    )  # fmt: skip
    unit, size = unit_of(shown.end * tick)
    scale = float(tick / size)
    top = height - head - legend
    for rows, inches, draw in ((shown.resources, heights[0], _draw_bars), (shown.tasks, heights[1], _draw_spans)):
        top -= inches
        axes = figure.add_axes((_LEFT / _WIDTH, top / height, 1 - (_LEFT + _RIGHT) / _WIDTH, inches / height))
        _rows(axes, rows, shown.start * scale, shown.end * scale)
        draw(axes, shown, scale)
        top -= _GAP
    axes.tick_params(axis="x", labelbottom=True, length=3)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel(f"{unit} from the start of the window{missing_words(shown, tick)}")
    return figure


def _head(figure: "Figure", height: float, verdict: Sequence[str], words: Sequence[str]) -> None:
    bold: dict[str, Any] = {"size": 13, "weight": "bold", "color": INK}
    lines = [(0.3 + _TITLE_ROW * row, line, bold) for row, line in enumerate(verdict)]
    last = lines[-1][0]
    lines += [(last + 0.3 + 0.23 * row, shorten(line, _LINE), {"color": GREY}) for row, line in enumerate(words)]
    for down, line, look in lines:
        figure.text(0.02, 1 - down / height, line, va="center", parse_math=False, **look)


def latest_line(job: CompletedJob, tick: Fraction) -> str:
    """Return a line on the job that a picture is about, and how it ends."""
    apart = shown_time(abs(job.slack) * tick)
    outcome = f"{apart} after its deadline" if job.is_late else f"{apart} before its deadline"
    return f"the latest job: {job.task}#{job.number} ends {outcome}; one schedule, no bound"


def missing_words(shown: DeadlineChart, tick: Fraction) -> str:
    """Return what a picture does not show; nothing if it shows all."""
    ends = {"before": shown.start, "after": shown.end}
    cut_off = [f"{side} {shown_time(ends[side] * tick)}" for side in shown.cut]
    before = f"; what is {' and '.join(cut_off)} is left out" if cut_off else ""
    names = zip(("task", "core, engine or partition"), shown.left_out, strict=True)
    return before + "".join(f"; {count} more have no row ({name})" for name, count in names if count)


def _draw_bars(axes: "Axes", shown: DeadlineChart, scale: float) -> None:
    from matplotlib.patheffects import withStroke

    per_inch = (shown.end - shown.start) * scale / (_WIDTH - _LEFT - _RIGHT)
    for bar in shown.bars:
        look = SpanLook(bar.task or 0, None)
        style = {"facecolor": _OTHER} if bar.task is None else look.style
        width, thick = (bar.end - bar.start) * scale, _SPUN if bar.is_spin else _BAR
        faint = 0.4 if bar.is_spin else 1
        axes.barh(
            bar.row + 0.5, width, thick, bar.start * scale, linewidth=0.4, alpha=faint,
            **{"edgecolor": "white", **style},
        )  # fmt: skip
        written = None if bar.is_spin else _bar_label(bar, width / per_inch / _LETTER, len(shown.tasks))
        if written is None:
            continue
        text = axes.text((bar.start + bar.end) / 2 * scale, bar.row + 0.52, written, size=7.5, ha="center", va="center")
        text.set_parse_math(False)
        text.set_color(INK if bar.task is None else look.ink)
        if bar.task is not None and look.hatch:
            text.set_path_effects([withStroke(linewidth=2.5, foreground=look.style["facecolor"])])
    for arrow in shown.arrows:
        way = (arrow.to_row > arrow.row) - (arrow.to_row < arrow.row)
        side = _BAR / 2 * (way or -1)
        begins = (arrow.start * scale, arrow.to_row + 0.5 - (side if way else -side))
        _arrow(axes, (arrow.end * scale, arrow.row + 0.5 + side), begins, is_bold=arrow.is_of_job, is_flat=way == 0)


def _bar_label(bar: TaskBar, letters: float, tasks: int) -> str | None:
    """Return the task and number of a job if they fit, or `#` and the number where colours tell tasks apart."""
    name, _, number = bar.label.rpartition("#")
    room = int(letters) - len(number) - 1
    choices = [bar.label, *([f"{shorten_middle(name, room)}#{number}"] if room >= _READABLE else [])]
    if tasks <= _LOOKS and bar.task is not None:
        choices.append(f"#{number}")
    return next((text for text in choices if len(text) <= letters), None)


def _arrow(
    axes: "Axes", tail: tuple[float, float], head: tuple[float, float], *, is_bold: bool, is_flat: bool = False
) -> None:
    bend = "arc3,rad=-0.25" if is_flat else "arc3,rad=0"
    axes.annotate(
        "", head, tail, zorder=4 if is_bold else 3, annotation_clip=True,
        arrowprops={
            "arrowstyle": "-|>,head_length=0.35,head_width=0.16", "color": INK if is_bold else GREY, "shrinkA": 0,
            "shrinkB": 0, "linewidth": 1.1 if is_bold else 0.6, "connectionstyle": bend,
        },
    )  # fmt: skip


def _stretch(shown: DeadlineChart) -> float:
    """Return how much higher than usual a row is that has to show jobs which overlap."""
    return (1 + max((span.lanes for span in shown.spans), default=1)) / 2


def _draw_spans(axes: "Axes", shown: DeadlineChart, scale: float) -> None:
    apart = _APART / _stretch(shown)
    for span in shown.spans:
        y, colour = _height(span), SpanLook(span.task, None).style["facecolor"]
        ends = (max(span.arrival, shown.start) * scale, min(span.completion, shown.end) * scale)
        axes.plot(ends, (y, y), color=colour, linewidth=1.2, solid_capstyle="butt")
        for start, end in span.parts:
            axes.plot((start * scale, end * scale), (y, y), color=colour, linewidth=4.5, solid_capstyle="butt")
        if span.lanes > 1:
            axes.text(ends[0], y, f"#{span.number} ", size=6.5, ha="right", va="center", color=GREY, clip_on=True)
        mark = _ARRIVAL if span.arrival >= shown.start else _EARLIER
        axes.plot(ends[0], y + apart, marker=mark, mfc=_FACES[mark], mec=INK, ms=6, clip_on=False)
        mark = _DEADLINE if span.deadline <= shown.end else _LATER
        at = min(span.deadline, shown.end) * scale
        axes.plot(at, y - apart, marker=mark, mfc=_FACES[mark], mec=INK, ms=6, clip_on=False, zorder=4)
        if span.is_late and span.completion <= shown.end:
            axes.plot(span.completion * scale, y, marker="X", color=_LATE, mec="white", ms=9, clip_on=False, zorder=5)
    for source, follower in shown.handovers:
        one, other = shown.spans[source], shown.spans[follower]
        _arrow(axes, (one.completion * scale, _height(one)), (other.arrival * scale, _height(other)), is_bold=False)


def _height(span: JobSpan) -> float:
    return span.row + 0.5 + (span.lane - (span.lanes - 1) / 2) * _LANE / span.lanes


def _rows(axes: "Axes", names: Sequence[str], start: float, end: float) -> None:
    axes.set(xlim=(start, end), ylim=(len(names), 0))
    axes.set_yticks([row + 0.5 for row in range(len(names))], [shorten_middle(name, 22) for name in names])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.tick_params(axis="both", length=0, labelbottom=False)
    axes.tick_params(axis="y", pad=8)
    axes.grid(axis="x", color=LINES, linewidth=0.5)
    axes.hlines(range(1, len(names)), start, end, color=LINES, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.spines["bottom"].set_visible(True)


def _keys(shown: DeadlineChart) -> "list[Any]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = {_ARRIVAL if span.arrival >= shown.start else _EARLIER for span in shown.spans}
    marks |= {_DEADLINE if span.deadline <= shown.end else _LATER for span in shown.spans}
    keys: list[Any] = []
    if any(bar.is_spin for bar in shown.bars):
        keys.append(Patch(facecolor=GREY, alpha=0.4, linewidth=0, label="thread spins"))
    if any(bar.task is None for bar in shown.bars):
        keys.append(Patch(facecolor=_OTHER, linewidth=0, label="other tasks"))
    keys.append(Line2D([], [], color=GREY, linewidth=1.2, label="a job, arrival to end"))
    keys.append(Line2D([], [], color=GREY, linewidth=4.5, label="a part of it runs"))
    if shown.arrows or shown.handovers:
        keys.append(Line2D([], [], ls="", marker="$\u2192$", color=GREY, ms=11, label="leads to"))
    keys += [
        Line2D([], [], ls="", marker=mark, mfc=_FACES[mark], mec=INK, label=words)
        for mark, words in _WORDS.items()
        if mark in marks
    ]
    if any(span.is_late for span in shown.spans):
        keys.append(Line2D([], [], ls="", marker="X", color=_LATE, mec="white", ms=9, label="end after the deadline"))
    return keys


def unit_of(seconds: Fraction) -> tuple[str, Fraction]:
    """Return the unit of an axis of this length."""
    return next(
        ((name, size) for name, size in reversed(SECONDS.items()) if seconds >= 2 * size), ("ps", SECONDS["ps"])
    )
