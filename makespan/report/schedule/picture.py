"""A Gantt chart as PNG, SVG or PDF: lanes of units above, rows of warps below, cycles from left to right.

Short schedules are drawn bar by bar, with numbers where there is room. Longer ones become one image per panel. A column
of the image is a cycle or, if there are more cycles than columns, a mixture of several. So neither time nor size grows
much with the number of instructions. Lengths are pixels at 150 per inch.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from makespan.host.output_file import write_whole
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.schedule import Schedule
from makespan.report.pictures import (
    CAPTION_INK,
    LINE,
    MARGIN,
    PicturePage,
    check_picture_path,
    head_lines,
    render_figure,
)
from makespan.report.schedule.activity import IdleGap, Wait, Why, bars, full, gaps, waits
from makespan.report.schedule.by_number import order_by_number
from makespan.report.schedule.looks import legend_patches
from makespan.report.schedule.panel_drawing import ROW_NAME, draw_panel, label_points
from makespan.report.schedule.panels import (
    ChartPanel,
    CycleWindow,
    TimeScale,
    busiest_window,
    shown_kinds,
    units_panel,
    warps_panel,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_NARROWEST, _WIDEST, _WIDEST_CYCLE = 1100, 2000, 90
_MOST_LANES, _LANES_HEIGHT, _MOST_ROWS, _ROWS_HEIGHT, _TALLEST_ROW = 24, 480, 256, 900, 48
_OVERVIEW_ROWS, _OVERVIEW_HEIGHT = 64, 384
_EXCERPT_ROWS, _EXCERPT_HEIGHT, _EXCERPT_CYCLE, _APART = 120, 480, 8, 40
_EXCERPTS = ("the beginning", "where warps wait most", "the end")
_CAPTION, _AXIS, _KEY = 52, 90, 205
_STYLE = {"hatch.linewidth": 0.8}


class ScheduleView(NamedTuple):
    """The title of a picture of a schedule, and the window that it shows.

    Args:
        title: the verdict. It is wrapped and cut after three lines, and so is `subtitle`.
        window: the cycles that are shown. None means all cycles.
    """

    title: str
    subtitle: str = ""
    window: CycleWindow | None = None


def draw_gantt(instance: Instance, schedule: Schedule, path: Path, view: ScheduleView) -> None:
    """Write the picture of `schedule` to `path`, whole or not at all; equal arguments give equal bytes.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, or a file that cannot be written.
    """
    check_picture_path(path)
    write_whole(path, render_gantt(instance, schedule, path.suffix.lower(), view), "the picture")


def render_gantt(instance: Instance, schedule: Schedule, suffix: str, view: ScheduleView) -> bytes:
    """Return the content of the file that `draw_gantt` writes; `suffix` is one of `PICTURES`."""
    title, subtitle, window = view
    shown = CycleWindow(0, schedule.makespan) if window is None else window
    cycles = f"cycles {shown.first:,} to {shown.end - 1:,} of {schedule.makespan:,}"
    if shown.cycles < schedule.makespan:
        subtitle = f"{subtitle}; {cycles}" if subtitle else cycles

    def drawn() -> "Figure":
        return _figure(_gantt_chart(instance, schedule, shown)._replace(title=title, subtitle=subtitle))

    about = f"A Gantt chart of ports and warps, {cycles}: {subtitle}"
    return render_figure(drawn, suffix, title=title, about=about, **_STYLE)


class _PlacedPanel(NamedTuple):
    """A panel with its time axis and the height of its rows. Only excerpts have a `mark`."""

    panel: ChartPanel
    scale: TimeScale
    pixels: int
    caption: str
    mark: str | None = None


class _GanttChart(NamedTuple):
    keys: "Sequence[Patch]"
    scale: TimeScale
    parts: Sequence[_PlacedPanel]
    excerpts: Sequence[_PlacedPanel]
    title: str = ""
    subtitle: str = ""


def _gantt_chart(instance: Instance, schedule: Schedule, window: CycleWindow) -> _GanttChart:
    """Return what is drawn, with its sizes. Excerpts are added if a column mixes several cycles."""
    instance, schedule = order_by_number(instance, schedule)
    scale = TimeScale.of(window, width=_WIDEST, widest_cycle=_WIDEST_CYCLE)
    issued = bars(instance, schedule)
    between = waits(instance, schedule, issued)
    idle = gaps(instance, schedule, issued, between)
    # a column then mixes several cycles, and excerpts show single ones
    is_long = scale.cycles > 1
    lanes = units_panel(instance, schedule, issued, idle, most_rows=_MOST_LANES)
    every = full(instance, issued)
    rows = warps_panel(instance, schedule, issued, between, every, most_rows=_OVERVIEW_ROWS if is_long else _MOST_ROWS)
    drawn = lanes.within(window), rows.within(window)
    # with headings every lane must keep room for its name
    room = min(_ROWS_HEIGHT, max(_LANES_HEIGHT, ROW_NAME * len(lanes.names) if lanes.headings else 0))
    unused = sorted(set(instance.machine.capacities) - {bar.unit for bar in issued})
    parts = [
        _place_panel(panel, scale, most, instance.machine, unused)
        for panel, most in zip(drawn, (room, _OVERVIEW_HEIGHT if is_long else _ROWS_HEIGHT), strict=True)
    ]
    whole = warps_panel(instance, schedule, issued, between, every, most_rows=_EXCERPT_ROWS) if is_long else rows
    excerpts = list(_place_excerpts(whole, between, scale)) if is_long else []
    name = _idle_name(instance.machine, idle, window, unused)
    keys = legend_patches(
        shown_kinds(drawn), tuple(instance.machine.capacities), idle=name, runs_ahead=instance.runs_ahead
    )
    return _GanttChart(keys, scale, parts, excerpts)


def _place_panel(
    panel: ChartPanel, scale: TimeScale, most: int, machine: Machine, unused: Sequence[str]
) -> _PlacedPanel:
    pixels = max(4, min(_TALLEST_ROW, most // len(panel.names)))
    return _PlacedPanel(panel, scale, pixels, _panel_caption(panel, machine, scale, pixels, unused))


def _place_excerpts(rows: ChartPanel, between: Iterable[Wait], scale: TimeScale) -> Iterator[_PlacedPanel]:
    """Yield excerpts at the beginning, at the end, and where warps wait most in between."""
    first, end = scale.window
    width = (scale.width - 2 * _APART) // 3
    cycles = width // _EXCERPT_CYCLE
    inner = busiest_window(between, CycleWindow(first + cycles, end - cycles), cycles)
    windows = CycleWindow(first, first + cycles), inner, CycleWindow(end - cycles, end)
    shared = f" ({_mixture_note(rows)})" if max(rows.depths) > 1 else ""
    for mark, window, words in zip("abc", windows, _EXCERPTS, strict=True):
        panel = rows.within(window)
        pixels = max(4, min(_TALLEST_ROW, _EXCERPT_HEIGHT // len(panel.names)))
        own = TimeScale.of(window, width=width, widest_cycle=_EXCERPT_CYCLE)
        yield _PlacedPanel(panel, own, pixels, f"{mark}: {words}{shared}", mark)


def _idle_name(machine: Machine, gaps: Iterable[IdleGap], window: CycleWindow, unused: Collection[str]) -> str | None:
    """Return the name of ports for which no warp is ready. None means that there are none in the window."""
    name = "idle unit" if machine.issue_width is None else "idle: no ready warp"
    shown = (
        gap.why is Why.NOBODY
        and gap.unit not in unused
        and gap.first_cycle < window.end
        and window.first < gap.first_cycle + gap.cycles
        for gap in gaps
    )
    return name if any(shown) else None


def _figure(chart: _GanttChart) -> "Figure":
    names = [name for part in (*chart.parts, *chart.excerpts) for name in part.panel.names]
    left = 2 * MARGIN + 12 * max(map(len, names))
    width = max(left + chart.scale.width + 2 * MARGIN, _NARROWEST)
    inside = width - 2 * MARGIN
    key = max(_KEY, 12 * max(len(str(patch.get_label())) for patch in chart.keys) - 23)
    key_rows = -(-len(chart.keys) // (inside // key))
    lines = head_lines(chart.title, chart.subtitle, inside)
    header = MARGIN + sum(line.height for line in lines) + LINE * key_rows
    below = [_panel_height(chart.excerpts[0]) + _AXIS] if chart.excerpts else []
    page = PicturePage(width, header + sum(map(_panel_height, chart.parts)) + _AXIS + sum(below))
    y = page.head(lines)
    page.legend(y + 6, chart.keys, columns=-(-len(chart.keys) // key_rows))
    y = header
    for part in chart.parts:
        axes = _draw_part(page, part, left, y)
        y += _panel_height(part)
    _number_cycles(axes, chart.scale)
    for number, part in enumerate(chart.excerpts):
        _mark_excerpt(axes, part, chart.scale)
        own = _draw_part(page, part, left + number * (part.scale.width + _APART), y + _AXIS)
        _number_cycles(own, part.scale)
        first, *_, last = own.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
        if number:
            own.set_yticks(())
    return page.figure


def _panel_height(part: _PlacedPanel) -> int:
    return _CAPTION + part.pixels * len(part.panel.names)


def _draw_part(page: PicturePage, part: _PlacedPanel, x: int, y: int) -> "Axes":
    page.write(x, y + 20, part.caption, color=CAPTION_INK)
    axes = page.axes(x, y + _CAPTION, part.scale.width, part.pixels * len(part.panel.names))
    draw_panel(axes, part.panel, part.scale, part.pixels)
    return axes


def _mark_excerpt(axes: "Axes", excerpt: _PlacedPanel, scale: TimeScale) -> None:
    window = excerpt.scale.window
    beside = 12 * scale.cycles / scale.pixels
    middle = (window.first + window.end) / 2 - scale.window.first
    at = min(max(middle, beside), scale.window.cycles - beside)
    axes.axvline(at, color="black", linewidth=0.8, linestyle=":", zorder=3)
    box = {"facecolor": "white", "edgecolor": "black", "linewidth": 0.6, "boxstyle": "circle,pad=0.15"}
    axes.text(at, 0, excerpt.mark or "", size=8, ha="center", va="center", bbox=box, zorder=4)


def _panel_caption(panel: ChartPanel, machine: Machine, scale: TimeScale, pixels: int, unused: Sequence[str]) -> str:
    notes = [f"no instruction uses {', '.join(unused)}"] if unused and panel.kind == "units" else []
    if max(panel.depths) > 1:
        return f"{panel.kind} ({'; '.join([_mixture_note(panel), *notes])})"
    bars, numbers = {
        "units": ("while a warp holds the port", "the executing warp"),
        "warps": ("the cycle of issue", "the executed place"),
    }[panel.kind]
    said = [] if machine.is_basic else [f"bars: {bars}"]
    said += [f"numbers: {numbers}"] if label_points(panel, scale, pixels) else []
    return f"{panel.kind} ({'; '.join(said + notes)})" if said + notes else panel.kind


def _mixture_note(panel: ChartPanel) -> str:
    return f"each row mixes up to {max(panel.depths)}: shades are shares"


def _number_cycles(axes: "Axes", scale: TimeScale) -> None:
    ticks = scale.ticks()
    axes.set_xticks([tick - scale.window.first for tick in ticks], [f"{tick:,}" for tick in ticks])
    axes.spines["bottom"].set_visible(True)
    mixed = f" (each column mixes {scale.cycles} cycles: shades are shares of time)" if scale.cycles > 1 else ""
    axes.set_xlabel(f"cycle{mixed}")
