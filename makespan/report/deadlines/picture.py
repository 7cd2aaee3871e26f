"""The worst schedule that was found, as a picture: what partitions and cores run above, when jobs must end below.

`chart` is data, which `draw` only draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.report.deadlines.text import slack
from makespan.report.pictures import GREY, INK, LINES, cut, title_lines, write_figure
from makespan.report.schedule.looks import Look
from makespan.schedulability.evidence import Window
from makespan.schedulability.simulation import Completed, Segment
from makespan.schedulability.units import SECONDS, shown_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 120
MOST_TASKS = 24
MOST_LANES = 4
"""Of jobs of one task that overlap; more would be too thin to tell apart."""

_WIDTH, _ROW, _HEAD, _LEGEND_ROW, _FOOT, _GAP = 13.0, 0.42, 1.25, 0.26, 0.75, 0.4  # inches
_TITLE_ROW = 0.27  # inches of each line of the title but the first
_LEFT, _RIGHT = 1.75, 0.3  # inches
_LATE = "#D55E00"
_LETTER = 0.075  # inches of a letter in a bar
_KEYS_PER_ROW = 6
_APART = 0.22  # of a row: an arrival is below its job, a deadline above
_LANE = 0.75  # of a row, for the lanes of jobs that overlap
_LOOKS = 8  # so many tasks differ by colour, and the number of the job says the rest
_TITLE, _LINE = 98, 150  # letters that fit
_ARRIVAL, _EARLIER, _DEADLINE, _LATER = "^", "<", "v", ">"
_FACES = {_ARRIVAL: INK, _EARLIER: INK, _DEADLINE: "white", _LATER: "white"}
_WORDS = {
    _ARRIVAL: "arrival",
    _EARLIER: "arrival earlier",
    _DEADLINE: "deadline",
    _LATER: "deadline later",
}


class Bar(NamedTuple):
    """A part of a job on a row, in ticks from the start of the chart."""

    row: int
    start: int
    end: int
    task: int
    label: str


class Span(NamedTuple):
    """A job on the row of its task, which is the number `task` of all, in ticks from the start of the chart.

    Jobs of a task that overlap are in different lanes of its row: `lane` counts from 0, `lanes` how many there are.
    """

    row: int
    task: int
    arrival: int
    deadline: int
    completion: int
    is_late: bool
    lane: int = 0
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Chart:
    """The picture as data; times in ticks from its start.

    Args:
        resources: what runs kernels and CPU time, a row each.
        tasks: a row each; the number of a task says its look.
        left_out: ticks of the window before the chart begins, and tasks without a row.
    """

    resources: tuple[str, ...]
    tasks: tuple[str, ...]
    bars: tuple[Bar, ...]
    spans: tuple[Span, ...]
    length: int
    left_out: tuple[int, int]
    job: Completed


def chart(window: Window) -> Chart:
    """The window; of a long one its end, which has the job that is the latest, of many tasks those that run in it."""
    every = sorted(window.segments, key=lambda segment: segment.end)
    segments, earlier = every[-MOST_BARS:], every[:-MOST_BARS]
    start = earlier[-1].end if earlier else window.start  # from then on nothing is missing
    length = max(window.end, window.job.deadline, window.job.completion) - start
    jobs = [job for job in window.jobs if job.completion > start]
    present = list(dict.fromkeys([window.job.task, *(s.task for s in reversed(segments)), *(job.task for job in jobs)]))
    order = tuple(window.run.scenario.task_set.by_name)
    tasks = tuple(name for name in order if name in present[:MOST_TASKS])
    resources = tuple(dict.fromkeys(name for name in _resources(window) if any(s.resource == name for s in segments)))
    return Chart(
        resources,
        tasks,
        tuple(_bars(segments, resources, order, start)),
        tuple(_spans([job for job in jobs if job.task in tasks], tasks, order, start)),
        length,
        (start - window.start, len(present) - len(tasks)),
        window.job,
    )


def _spans(jobs: Sequence[Completed], rows: Sequence[str], tasks: Sequence[str], start: int) -> Iterator[Span]:
    for row, name in enumerate(rows):
        own = sorted((job for job in jobs if job.task == name), key=lambda job: job.number)
        lanes = _lanes(own)
        for job, lane in zip(own, lanes, strict=True):
            times = (job.arrival - start, job.deadline - start, job.completion - start)
            yield Span(row, tasks.index(name), *times, job.is_late, lane, max(lanes) + 1)


def _lanes(jobs: Sequence[Completed]) -> list[int]:
    """Of each job, in the order of arrival, the first lane that is free then, or the last that there may be."""
    ends: list[int] = []
    found = []
    for job in jobs:
        lane = next((lane for lane, end in enumerate(ends) if end <= job.arrival), min(len(ends), MOST_LANES - 1))
        ends[lane:] = [job.completion, *ends[lane + 1 :]]
        found.append(lane)
    return found


def draw_window(window: Window, tick: Fraction, path: Path, *, title: str) -> None:
    """Write the picture of a window to `path` (.png, .svg or .pdf), whole or not at all.

    Args:
        tick: seconds.

    Raises:
        InputError: a file that cannot be written.
    """
    words = f"simulated: {window.run.scenario.words}"
    write_figure(lambda: _figure(chart(window), tick, title, words), path, title=title, about=words)


def _resources(window: Window) -> Iterator[str]:
    """Cores and partitions in the order of the task set."""
    yield from (f"partition {partition.name}" for partition in window.run.scenario.task_set.partitions)
    yield from (f"core {name}" for name in window.run.scenario.task_set.cores)


def _bars(segments: Sequence[Segment], rows: Sequence[str], tasks: Sequence[str], start: int) -> Iterator[Bar]:
    for segment in segments:
        label = f"{segment.task} {segment.job}"
        yield Bar(
            rows.index(segment.resource),
            max(0, segment.start - start),
            segment.end - start,
            tasks.index(segment.task),
            label,
        )


def _figure(shown: Chart, tick: Fraction, title: str, words: str) -> "Figure":
    from matplotlib.figure import Figure

    keys = _keys(shown)
    legend = _LEGEND_ROW * -(-len(keys) // _KEYS_PER_ROW)
    heights = [_ROW * len(shown.resources), _ROW * _stretch(shown) * len(shown.tasks)]
    verdict = title_lines(title, _TITLE)
    head = _HEAD + _TITLE_ROW * (len(verdict) - 1)
    height = head + legend + sum(heights) + _GAP + _FOOT
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    _head(figure, height, verdict, (words, _late(shown, tick)))
    figure.legend(
        handles=keys, loc="upper left", ncols=_KEYS_PER_ROW, frameon=False, borderaxespad=0,
        bbox_to_anchor=(0.02, 1 - (head - 0.18) / height),
    )  # fmt: skip
    unit, size = _unit(shown.length * tick)
    scale = float(tick / size)
    top = height - head - legend
    for rows, inches, draw in ((shown.resources, heights[0], _draw_bars), (shown.tasks, heights[1], _draw_spans)):
        top -= inches
        axes = figure.add_axes((_LEFT / _WIDTH, top / height, 1 - (_LEFT + _RIGHT) / _WIDTH, inches / height))
        draw(axes, shown, scale)
        _rows(axes, rows, shown.length * scale)
        top -= _GAP
    axes.tick_params(axis="x", labelbottom=True, length=3)
    axes.set_xlabel(f"{unit} from {_origin(shown, tick)}")
    return figure


def _head(figure: "Figure", height: float, verdict: Sequence[str], words: Sequence[str]) -> None:
    bold: dict[str, Any] = {"size": 13, "weight": "bold", "color": INK}
    lines = [(0.3 + _TITLE_ROW * row, line, bold) for row, line in enumerate(verdict)]
    last = lines[-1][0]
    lines += [(last + 0.3 + 0.23 * row, cut(line, _LINE), {"color": GREY}) for row, line in enumerate(words)]
    for down, line, look in lines:
        figure.text(0.02, 1 - down / height, line, va="center", parse_math=False, **look)


def _late(shown: Chart, tick: Fraction) -> str:
    job = shown.job
    left = slack(job.slack, tick)
    outcome = f"{left.removeprefix('-')} after its deadline" if job.is_late else f"{left} before its deadline"
    return f"the latest job: {job.task} {job.number} ends {outcome}; one schedule, no bound"


def _origin(shown: Chart, tick: Fraction) -> str:
    before, tasks = shown.left_out
    more = f"; {tasks} tasks have no row" if tasks else ""
    if before == 0:
        return f"the start of the window{more}"
    return f"the first bar shown, {shown_time(before * tick)} after the start of the window{more}"


def _draw_bars(axes: "Axes", shown: Chart, scale: float) -> None:
    from matplotlib.patheffects import withStroke

    per_inch = shown.length * scale / (_WIDTH - _LEFT - _RIGHT)
    for row, start, end, task, label in shown.bars:
        look = Look(task, None)
        axes.barh(row + 0.5, (end - start) * scale, 0.78, start * scale, linewidth=0.4, **_outlined(look))
        letters = (end - start) * scale / per_inch / _LETTER
        choices = (label, label.rpartition(" ")[2]) if len(shown.tasks) <= _LOOKS else (label,)
        written = next((text for text in choices if len(text) <= letters), None)
        if written is None:
            continue
        text = axes.text((start + end) / 2 * scale, row + 0.52, written, size=7.5, ha="center", va="center")
        text.set_parse_math(False)
        text.set_color(look.ink)
        if look.hatch:
            text.set_path_effects([withStroke(linewidth=2.5, foreground=look.style["facecolor"])])


def _outlined(look: Look) -> dict[str, Any]:
    return {"edgecolor": "white", **look.style}


def _stretch(shown: Chart) -> float:
    """How much higher than usual a row is that has to show jobs which overlap."""
    return (1 + max((span.lanes for span in shown.spans), default=1)) / 2


def _draw_spans(axes: "Axes", shown: Chart, scale: float) -> None:
    apart = _APART / _stretch(shown)
    for row, task, arrival, deadline, completion, is_late, lane, lanes in shown.spans:
        y, colour = row + 0.5 + (lane - (lanes - 1) / 2) * _LANE / lanes, Look(task, None).style["facecolor"]
        ends = (max(arrival, 0) * scale, min(completion, shown.length) * scale)
        axes.plot(ends, (y, y), color=colour, linewidth=3.5, solid_capstyle="butt")
        mark = _ARRIVAL if arrival >= 0 else _EARLIER
        axes.plot(ends[0], y + apart, marker=mark, mfc=_FACES[mark], mec=INK, ms=6, clip_on=False)
        mark = _DEADLINE if deadline <= shown.length else _LATER
        at = min(deadline, shown.length) * scale
        axes.plot(at, y - apart, marker=mark, mfc=_FACES[mark], mec=INK, ms=6, clip_on=False, zorder=4)
        if is_late and completion <= shown.length:
            axes.plot(completion * scale, y, marker="X", color=_LATE, mec="white", ms=9, clip_on=False, zorder=5)


def _rows(axes: "Axes", names: Sequence[str], length: float) -> None:
    axes.set(xlim=(0, length), ylim=(len(names), 0))
    axes.set_yticks([row + 0.5 for row in range(len(names))], [cut(name, 22) for name in names])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.tick_params(axis="both", length=0, labelbottom=False)
    axes.tick_params(axis="y", pad=8)
    axes.grid(axis="x", color=LINES, linewidth=0.5)
    axes.hlines(range(1, len(names)), 0, length, color=LINES, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.spines["bottom"].set_visible(True)


def _keys(shown: Chart) -> "list[Any]":
    from matplotlib.lines import Line2D

    marks = {_ARRIVAL if span.arrival >= 0 else _EARLIER for span in shown.spans}
    marks |= {_DEADLINE if span.deadline <= shown.length else _LATER for span in shown.spans}
    keys = [Line2D([], [], color=GREY, linewidth=3.5, label="a job, arrival to end")]
    keys += [
        Line2D([], [], ls="", marker=mark, mfc=_FACES[mark], mec=INK, label=words)
        for mark, words in _WORDS.items()
        if mark in marks
    ]
    if any(span.is_late for span in shown.spans):
        keys.append(Line2D([], [], ls="", marker="X", color=_LATE, mec="white", ms=9, label="end after the deadline"))
    return keys


def _unit(seconds: Fraction) -> tuple[str, Fraction]:
    """The unit of the axis."""
    return next(
        ((name, size) for name, size in reversed(SECONDS.items()) if seconds >= 2 * size), ("ps", SECONDS["ps"])
    )
