"""The marks of a schedule of tasks in the user units of its SVG, which the template only draws."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from makespan.deadlines.report.chart import DeadlineChart, JobSpan, TaskBar
from makespan.deadlines.report.picture import unit_of
from makespan.model.units import shown_time
from makespan.report.html.marks import AxisTick
from makespan.report.lines import make_visible
from makespan.report.pictures import shorten_middle
from makespan.report.schedule.panels import round_numbers

COLOURS = 7
_LETTER = 6.3
_TALL, _SPUN = 0.76, 0.4  # of a row


class GanttLayout(NamedTuple):
    """The measures for one width of a window.

    Args:
        left: The width beside the chart for the names of rows; `above` is the height over each row where they stand
            there.
        letters: The most letters of a name.
        ticks: The most ticks of the axis.
    """

    name: str
    width: int
    left: int
    right: int
    above: int
    row: int
    letters: int
    ticks: int


LAYOUTS = (GanttLayout("wide", 1000, 170, 12, 0, 26, 24, 8), GanttLayout("narrow", 350, 8, 12, 15, 22, 44, 4))
"""For a window on a desk and on paper, and for a telephone."""


class GanttText(NamedTuple):
    """A text at a point of the drawing."""

    x: float
    y: float
    text: str
    looks: str


class Box(NamedTuple):
    """A bar with its text, and the title that a pointer shows."""

    x: float
    y: float
    width: float
    height: float
    looks: str
    title: str
    text: str


class Stroke(NamedTuple):
    """A line, an arrow or a mark as an SVG path."""

    path: str
    looks: str
    title: str = ""


class Drawing(NamedTuple):
    """A schedule: rows of resources above, rows of tasks below."""

    layout: GanttLayout
    height: float
    names: tuple[GanttText, ...]
    boxes: tuple[Box, ...]
    strokes: tuple[Stroke, ...]
    ticks: tuple[AxisTick, ...]
    axis: float
    unit: str


def gantt_drawing(chart: DeadlineChart, tick: Fraction, layout: GanttLayout) -> Drawing:
    """Return the drawing of a chart; `tick` is in seconds."""
    return _GanttDraft(chart, tick, layout).drawing()


class _GanttDraft:
    """A chart with the scales of its drawing."""

    def __init__(self, chart: DeadlineChart, tick: Fraction, layout: GanttLayout) -> None:
        self.chart, self.tick, self.layout = chart, tick, layout
        self.high = layout.row + layout.above
        lanes = max((span.lanes for span in chart.spans), default=1)
        self.job = layout.above + layout.row * (1 + lanes) / 2
        self.middle = self.high * len(chart.resources) + 14
        self.axis = self.middle + self.job * len(chart.tasks)

    def x(self, time: int) -> float:
        chart, layout = self.chart, self.layout
        inside = min(max(time, chart.start), chart.end) - chart.start  # clip to the chart
        return round(layout.left + inside * (layout.width - layout.left - layout.right) / (chart.end - chart.start), 1)

    def drawing(self) -> Drawing:
        unit, size = unit_of(self.chart.end * self.tick)
        names = (*self.names(self.chart.resources, 0, self.high), *self.names(self.chart.tasks, self.middle, self.job))
        strokes = (*self.arrows(), *(stroke for span in self.chart.spans for stroke in self.job_marks(span)))
        return Drawing(
            self.layout,
            self.axis + 34,
            names,
            tuple(map(self.box, self.chart.bars)),
            (*strokes, *self.handovers()),
            tuple(self.ticks(size)),
            self.axis,
            unit,
        )

    def names(self, names: tuple[str, ...], top: float, high: float) -> Iterator[GanttText]:
        for number, name in enumerate(names):
            y = top + high * number
            short = shorten_middle(make_visible(name), self.layout.letters)
            if self.layout.above:
                yield GanttText(self.layout.left, round(y + 11, 1), short, "name")
            else:
                yield GanttText(self.layout.left - 8, round(y + high / 2 + 4, 1), short, "name")

    def centre(self, row: int) -> float:
        return self.high * row + self.layout.above + self.layout.row / 2

    def lane(self, span: JobSpan) -> float:
        room = self.job - self.layout.above
        top = self.middle + self.job * span.row + self.layout.above
        return round(top + room / 2 + (span.lane - (span.lanes - 1) / 2) * 0.7 * room / span.lanes, 1)

    def box(self, bar: TaskBar) -> Box:
        """Return a bar; its text is left out where it does not fit."""
        x, width = self.x(bar.start), max(self.x(bar.end) - self.x(bar.start), 0.4)
        height = self.layout.row * (_SPUN if bar.is_spin else _TALL)
        name, _, number = bar.label.rpartition("#")
        text = next((t for t in (f"{name}#{number}", f"#{number}") if len(t) * _LETTER <= width - 2), "")
        kind = "other" if bar.task is None else f"t{bar.task % COLOURS}"
        times = f"{shown_time(bar.start * self.tick)} to {shown_time(bar.end * self.tick)}"
        does = ", spins" if bar.is_spin else ""
        return Box(
            x, round(self.centre(bar.row) - height / 2, 1), round(width, 1), round(height, 1),
            f"{kind} spins" if bar.is_spin else kind,
            f"{make_visible(bar.label)} on {make_visible(self.chart.resources[bar.row])}{does}: {times}",
            "" if bar.is_spin else make_visible(text),
        )  # fmt: skip

    def arrows(self) -> Iterator[Stroke]:
        for arrow in self.chart.arrows:
            x, to_x, y, to_y = self.x(arrow.end), self.x(arrow.start), self.centre(arrow.row), self.centre(arrow.to_row)
            half = self.layout.row * _TALL / 2
            looks = "arrow own" if arrow.is_of_job else "arrow"
            if arrow.row == arrow.to_row:
                high = y - half - 6
                yield Stroke(f"M{x} {y - half:.1f}Q{(x + to_x) / 2:.1f} {high:.1f} {to_x} {to_y - half:.1f}", looks)
            else:
                side = half if to_y > y else -half
                yield Stroke(f"M{x} {y + side:.1f}L{to_x} {to_y - side:.1f}", looks)

    def handovers(self) -> Iterator[Stroke]:
        for source, follower in self.chart.handovers:
            one, other = self.chart.spans[source], self.chart.spans[follower]
            if self.is_inside(one.completion) and self.is_inside(other.arrival):
                path = f"M{self.x(one.completion)} {self.lane(one)}L{self.x(other.arrival)} {self.lane(other)}"
                yield Stroke(path, "arrow")

    def is_inside(self, time: int) -> bool:
        return self.chart.start <= time <= self.chart.end

    def job_marks(self, span: JobSpan) -> Iterator[Stroke]:
        """Yield a job: its line, where something of it runs, when it came and when it must end."""
        y, colour = self.lane(span), f"t{span.task % COLOURS}"
        name = f"{make_visible(self.chart.tasks[span.row])}#{span.number}"
        took, allowed = ((end - span.arrival) * self.tick for end in (span.completion, span.deadline))
        title = f"{name}: {shown_time(took)} from arrival to end, {shown_time(allowed)} until its deadline"
        yield Stroke(f"M{self.x(span.arrival)} {y}H{self.x(span.completion)}", f"job {colour}", title)
        parts = [f"M{self.x(start)} {y}H{self.x(end)}" for start, end in span.parts if end > self.chart.start]
        yield Stroke("".join(parts), f"part {colour}", title)
        if self.is_inside(span.arrival):
            yield Stroke(f"M{self.x(span.arrival)} {y + 3}l4 7h-8z", "arrival", "arrival")
        if self.is_inside(span.deadline):
            yield Stroke(f"M{self.x(span.deadline)} {y - 3}l4 -7h-8z", "deadline", "deadline")
        if span.is_late and self.is_inside(span.completion):
            yield Stroke(f"M{self.x(span.completion) - 5} {y - 5}l10 10m0 -10l-10 10", "late", "end after the deadline")

    def ticks(self, size: Fraction) -> Iterator[AxisTick]:
        """Yield round times of the axis, in its unit; fractions of it where it is short."""
        low, high = self.chart.start * self.tick / size, self.chart.end * self.tick / size
        fine = next(10**power for power in range(30) if (high - low) * 10**power >= 2 * self.layout.ticks)
        step = Fraction(next(step for step in round_numbers() if (high - low) * fine / step <= self.layout.ticks), fine)
        for number in range(-(-low // step), high // step + 1):
            yield AxisTick(self.x(round(number * step * size / self.tick)), f"{float(number * step):g}")
