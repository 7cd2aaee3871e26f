"""A Gantt chart as PNG, SVG or PDF: unit lanes above, warp rows below, cycles from left to right.

Short schedules are drawn bar by bar, with numbers where there is room. Longer ones become one image per
panel, whose columns are cycles or, when there are more cycles than columns, the mixture of several; so
neither time nor size grows much with the number of instructions. Lengths are pixels at 150 per inch.
"""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.report.activity import Gap, Why, bars, full, gaps, held, waits
from makespan.report.figures import DPI, PICTURES, rendered
from makespan.report.files import check_writable, write_whole
from makespan.report.gantt import Panel, Scale, shows, units_panel, warps_panel
from makespan.report.looks import legend
from makespan.report.panel_drawing import POINT, draw_panel, label_points
from makespan.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_MARGIN, _NARROWEST, _WIDEST, _WIDEST_CYCLE = 36, 1100, 2000, 90
_MOST_LANES, _LANES_HEIGHT, _MOST_ROWS, _ROWS_HEIGHT, _TALLEST_ROW = 24, 480, 256, 900, 48
_TITLE_LINE, _LINE, _CAPTION, _AXIS, _KEY = 42, 32, 52, 90, 205
_STYLE = {"hatch.linewidth": 0.8}
_BOLD: dict[str, Any] = {"size": 13, "weight": "bold"}
_GREY = "#505050"
_PLAIN: dict[str, Any] = {"size": 9, "color": _GREY}


def draw_gantt(instance: Instance, schedule: Schedule, path: Path, *, title: str, subtitle: str = "") -> None:
    """Write the picture of `schedule` to `path`, whole or not at all; equal arguments give equal bytes.

    The suffix of `path` says the format. `title` (the verdict) and `subtitle` are wrapped, and cut after
    three lines each.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, or a file that cannot be written.
    """
    check_picture_path(path)
    picture = rendered_gantt(instance, schedule, path.suffix.lower(), title=title, subtitle=subtitle)
    write_whole(path, picture, "the picture")


def rendered_gantt(instance: Instance, schedule: Schedule, suffix: str, *, title: str, subtitle: str = "") -> bytes:
    """The content of the file that `draw_gantt` writes; `suffix` is one of `PICTURES`."""
    scale = Scale.of(schedule.makespan, width=_WIDEST, widest_cycle=_WIDEST_CYCLE)
    issued = bars(instance, schedule)
    between = waits(issued, held(instance, schedule, issued))
    idle = gaps(instance, issued, between, schedule.makespan)
    lanes = units_panel(instance, issued, idle, schedule.makespan, most_rows=_MOST_LANES)
    rows = warps_panel(instance, issued, between, full(instance, issued), most_rows=_MOST_ROWS)
    chart = _Chart(scale, lanes, rows, instance.machine, _idle(instance.machine, idle), title, subtitle)
    return rendered(lambda: _figure(chart), suffix, **_STYLE)


def _idle(machine: Machine, gaps: Iterable[Gap]) -> str | None:
    """What to call the colour of ports for which no warp is ready; None where there are none."""
    name = "idle unit" if machine.issue_width is None else "idle: no ready warp"
    return name if any(gap.why is Why.NOBODY for gap in gaps) else None


def check_picture_path(path: Path) -> None:
    """Refuse a path at once that no picture can be written to, so that no work is lost on it.

    Raises:
        InputError: another suffix than .png, .svg and .pdf, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: the name of a picture must end in .png, .svg or .pdf")
    check_writable(path, "the picture")


class _Chart(NamedTuple):
    scale: Scale
    lanes: Panel
    rows: Panel
    machine: Machine
    idle: str | None
    title: str
    subtitle: str


class _Page:
    """A figure that is filled in pixels from its upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / DPI, height / DPI), facecolor="white")

    def write(self, x: int, y: int, text: str, **how: Any) -> None:
        self.figure.text(x / self.width, 1 - y / self.height, text, parse_math=False, va="top", **how)

    def axes(self, x: int, y: int, width: int, height: int) -> "Axes":
        bottom = 1 - (y + height) / self.height
        return self.figure.add_axes((x / self.width, bottom, width / self.width, height / self.height))

    def legend(self, y: int, keys: "Sequence[Patch]", columns: int) -> None:
        self.figure.legend(
            handles=keys, ncols=columns, loc="upper left", bbox_to_anchor=(_MARGIN / self.width, 1 - y / self.height),
            frameon=False, borderpad=0, borderaxespad=0, handlelength=1.6, columnspacing=1.6, labelspacing=0.4,
        )  # fmt: skip


def _figure(chart: _Chart) -> "Figure":
    """Title, legend, lanes and rows from top to bottom."""
    scale, lanes, rows, machine, idle, *_ = chart
    units = tuple(machine.capacities)
    left = 2 * _MARGIN + 12 * max(map(len, lanes.names + rows.names))
    width = max(left + scale.width + 2 * _MARGIN, _NARROWEST)
    inside = width - 2 * _MARGIN
    keys = legend(shows((lanes, rows)), units, idle=idle)
    key_rows = -(-len(keys) // (inside // _KEY))
    lines = [(line, _TITLE_LINE, _BOLD) for line in _lines(chart.title, inside, **_BOLD)]
    lines += [(line, _LINE, _PLAIN) for line in _lines(chart.subtitle, inside, **_PLAIN)]
    header = _MARGIN + sum(down for _, down, _ in lines) + _LINE * key_rows
    lane, row = _row_pixels(lanes, _LANES_HEIGHT), _row_pixels(rows, _ROWS_HEIGHT)
    page = _Page(width, header + lane * len(lanes.names) + row * len(rows.names) + 2 * _CAPTION + _AXIS)
    y = _MARGIN
    for line, down, look in lines:
        page.write(_MARGIN, y, line, **look)
        y += down
    page.legend(y + 6, keys, columns=-(-len(keys) // key_rows))
    y = header
    for panel, pixels in ((lanes, lane), (rows, row)):
        page.write(left, y + 20, _caption(panel, machine, scale, pixels), color=_GREY)
        axes = page.axes(left, y + _CAPTION, scale.width, pixels * len(panel.names))
        draw_panel(axes, panel, scale, units, pixels)
        y += _CAPTION + pixels * len(panel.names)
    _number_cycles(axes, scale)
    return page.figure


def _lines(text: str, width: int, *, size: int, weight: str = "normal", **_: Any) -> list[str]:
    """`text` in at most three lines that fit into `width`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)

    def across(line: str) -> float:
        return POINT * text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]

    printable = "".join(letter if letter.isprintable() or letter.isspace() else "\ufffd" for letter in text)
    for letters in range(width // 8, 8, -4):
        lines = textwrap.wrap(printable, letters, max_lines=3, placeholder=" ...")
        if all(across(line) <= width for line in lines):
            break
    return lines


def _caption(panel: Panel, machine: Machine, scale: Scale, pixels: int) -> str:
    if max(panel.depths) > 1:
        return f"{panel.kind} (each row mixes up to {max(panel.depths)}: shades are shares)"
    bars, numbers = {
        "units": ("while a warp holds the port", "the executing warp"),
        "warps": ("the cycle of issue", "the executed place"),
    }[panel.kind]
    notes = [] if machine.is_basic else [f"bars: {bars}"]
    notes += [f"numbers: {numbers}"] if label_points(panel, scale, pixels) else []
    return f"{panel.kind} ({'; '.join(notes)})" if notes else panel.kind


def _row_pixels(panel: Panel, height: int) -> int:
    return max(4, min(_TALLEST_ROW, height // len(panel.names)))


def _number_cycles(axes: "Axes", scale: Scale) -> None:
    axes.set_xticks(scale.ticks(), [f"{tick:,}" for tick in scale.ticks()])
    axes.spines["bottom"].set_visible(True)
    mixed = f" (each column mixes {scale.cycles} cycles: shades are shares of time)" if scale.cycles > 1 else ""
    axes.set_xlabel(f"cycle{mixed}")
