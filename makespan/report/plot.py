"""A Gantt chart as PNG, SVG or PDF: unit lanes above, warp rows below, cycles from left to right.

Short schedules are drawn bar by bar, with numbers where there is room. Longer ones become one image per
panel, whose columns are cycles or, when there are more cycles than columns, the mixture of several; so
neither time nor size grows much with the number of instructions. Lengths are pixels at 150 per inch.
"""

import io
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.program import BARRIER
from makespan.report.files import check_writable, write_whole
from makespan.report.gantt import Panel, Scale, Span, bars, held, round_numbers, runs, units_panel, warps_panel
from makespan.schedule import Schedule

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from numpy.typing import NDArray

_DPI = 150
_POINT = _DPI / 72
_MARGIN, _NARROWEST, _WIDEST, _WIDEST_CYCLE, _NARROWEST_BAR, _LOWEST_BAR = 36, 1100, 2000, 90, 8, 10
_MOST_LANES, _LANES_HEIGHT, _MOST_ROWS, _ROWS_HEIGHT, _TALLEST_ROW = 24, 480, 256, 900, 48
_TITLE_LINE, _LINE, _CAPTION, _AXIS, _KEY = 42, 32, 52, 90, 205
_VECTORS = 5000  # shapes of one kind; more are embedded as an image
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "makespan"},
    ".svg": {"Creator": "makespan", "Date": None},
    ".pdf": {"Creator": "makespan", "Producer": "makespan", "CreationDate": None},
}
_STYLE = {
    "font.size": 9,
    "hatch.linewidth": 0.8,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "makespan",
}
_COLOURS = ("#0072B2", "#E69F00", "#000000", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
"""Source: Okabe and Ito, Color Universal Design, 2008. The first three differ in grey too, the others in hatching."""
_HATCHES = ("", "", "", "///", "...", "xxx", "---", "+++")
_DARK = (0, 2, 3, 5)
_SMALLEST_POINTS = 5.0
_BOLD: dict[str, Any] = {"size": 13, "weight": "bold"}
_IDLE, _TINT, _GREY, _LINES = "#EAEAEA", 0.2, "#505050", "#BDBDBD"
_HELD, _HELD_HATCH, _AT_BARRIER = "#9A9A9A", "\\\\\\", -1
_PLAIN: dict[str, Any] = {"size": 9, "color": _GREY}


def draw_gantt(instance: Instance, schedule: Schedule, path: Path, *, title: str, subtitle: str = "") -> None:
    """Write the picture of `schedule` to `path`, whole or not at all; equal arguments give equal bytes.

    The suffix of `path` says the format. `title` (the verdict) and `subtitle` are wrapped, and cut after
    three lines each.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, or a file that cannot be written.
    """
    check_picture_path(path)
    suffix = path.suffix.lower()
    scale = Scale.of(schedule.makespan, width=_WIDEST, widest_cycle=_WIDEST_CYCLE)
    shown = bars(instance, schedule)
    shown = shown if scale.pixels >= _NARROWEST_BAR else runs(shown)
    lanes = units_panel(instance, shown, most_rows=_MOST_LANES)
    rows = warps_panel(instance, shown, held(instance, schedule), most_rows=_MOST_ROWS)
    units = (*instance.machine.capacities, *((BARRIER,) if instance.has_barriers else ()))
    chart = _Chart(scale, lanes, rows, units, title, subtitle)
    write_whole(path, _render(chart, suffix), "the picture")


def check_picture_path(path: Path) -> None:
    """Refuse a path at once that no picture can be written to, so that no work is lost on it.

    Raises:
        InputError: another suffix than .png, .svg and .pdf, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in _METADATA:
        raise InputError(f"{path}: the name of a picture must end in .png, .svg or .pdf")
    check_writable(path, "the picture")


_Layers = Mapping[tuple[int, bool], Sequence[Span]]
"""Spans by the number of their class, and whether they wait."""


class _Chart(NamedTuple):
    scale: Scale
    lanes: Panel
    rows: Panel
    units: tuple[str, ...]
    title: str
    subtitle: str


def _render(chart: _Chart, suffix: str) -> bytes:
    from matplotlib import style

    content = io.BytesIO()
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        _figure(chart).savefig(content, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])
    return content.getvalue()


class _Page:
    """A figure that is filled in pixels from its upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / _DPI, height / _DPI), facecolor="white")

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
    scale, lanes, rows, units, *_ = chart
    left = 2 * _MARGIN + 12 * max(map(len, lanes.names + rows.names))
    width = max(left + scale.width + 2 * _MARGIN, _NARROWEST)
    inside = width - 2 * _MARGIN
    keys = _legend(units)
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
    for panel, pixels, number in ((lanes, lane, "the executing warp"), (rows, row, "the executed place")):
        page.write(left, y + 20, _caption(number, panel, scale, pixels), color=_GREY)
        axes = page.axes(left, y + _CAPTION, scale.width, pixels * len(panel.names))
        _draw(axes, panel, scale, units, pixels)
        y += _CAPTION + pixels * len(panel.names)
    _number_cycles(axes, scale)
    return page.figure


def _lines(text: str, width: int, *, size: int, weight: str = "normal", **_: Any) -> list[str]:
    """`text` in at most three lines that fit into `width`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)

    def across(line: str) -> float:
        return _POINT * text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]

    printable = "".join(letter if letter.isprintable() or letter.isspace() else "\ufffd" for letter in text)
    for letters in range(width // 8, 8, -4):
        lines = textwrap.wrap(printable, letters, max_lines=3, placeholder=" ...")
        if all(across(line) <= width for line in lines):
            break
    return lines


def _caption(number: str, panel: Panel, scale: Scale, pixels: int) -> str:
    if max(panel.depths) > 1:
        return f"{panel.kind} (each row mixes up to {max(panel.depths)}: shades are shares)"
    return f"{panel.kind} (numbers: {number})" if _label_points(panel, scale, pixels) else panel.kind


def _bar_by_bar(panel: Panel, scale: Scale, pixels: int) -> bool:
    return scale.pixels >= _NARROWEST_BAR and pixels >= _LOWEST_BAR and max(panel.depths) == 1


def _row_pixels(panel: Panel, height: int) -> int:
    return max(4, min(_TALLEST_ROW, height // len(panel.names)))


def _legend(units: Sequence[str]) -> "list[Patch]":
    """What the colours mean; beyond four classes the tints are explained once for all."""
    from matplotlib.patches import Patch

    few = len(units) <= 4
    keys = []
    for number, unit in enumerate(units):
        if unit == BARRIER:
            continue
        keys.append(Patch(**_look(number, False), label=f"executes on {unit}"))
        if few:
            keys.append(Patch(**_look(number, True), label=f"waits for {unit}"))
    if not few:
        keys.append(Patch(**_look(0, True), label="waits: a light tint"))
    if BARRIER in units:
        keys.append(Patch(**_look(_AT_BARRIER, True), label="waits at a barrier"))
    return [*keys, Patch(facecolor=_IDLE, label="idle unit")]


def _look(number: int, waits: bool) -> dict[str, Any]:
    from matplotlib.colors import to_rgb

    if number == _AT_BARRIER:
        return {"facecolor": to_rgb(_HELD), "edgecolor": "white", "hatch": _HELD_HATCH}
    number %= len(_COLOURS)
    if waits:
        return {"facecolor": [1 - _TINT * (1 - part) for part in to_rgb(_COLOURS[number])], "edgecolor": "white"}
    return {"facecolor": to_rgb(_COLOURS[number]), "edgecolor": "white", "hatch": _HATCHES[number]}


def _draw(axes: "Axes", panel: Panel, scale: Scale, units: Sequence[str], pixels: int) -> None:
    """The spans of one panel and the names of its rows."""
    layers: dict[tuple[int, bool], list[Span]] = {}
    for span in panel.spans:
        number = _AT_BARRIER if span.unit == BARRIER else units.index(span.unit)
        layers.setdefault((number, span.waits), []).append(span)
    if _bar_by_bar(panel, scale, pixels):
        _draw_bars(axes, panel, layers, scale)
        if points := _label_points(panel, scale, pixels):
            _draw_numbers(axes, panel, units, points)
    else:
        _draw_image(axes, panel, layers, scale)
        if pixels >= 16:
            axes.hlines(range(1, len(panel.names)), 0, scale.makespan, color="white", linewidth=pixels / 10 / _POINT)
    if scale.cycles == 1:
        axes.vlines(scale.ticks(), 0, len(panel.names), color=_LINES, linewidth=0.4)
    _name_rows(axes, panel, pixels)
    axes.set(xlim=(0, scale.columns * scale.cycles), ylim=(len(panel.names), 0), xticks=())


def _draw_bars(axes: "Axes", panel: Panel, layers: _Layers, scale: Scale) -> None:
    from matplotlib.collections import PolyCollection

    def add(spans: Iterable[tuple[int, int, int]], **look: Any) -> None:
        boxes = [[(x, y + 0.06), (x + n, y + 0.06), (x + n, y + 0.94), (x, y + 0.94)] for y, x, n in spans]
        axes.add_collection(PolyCollection(boxes, linewidth=0.6, rasterized=len(boxes) > _VECTORS, **look))

    if panel.kind == "units":
        add([(row, 0, scale.makespan) for row in range(len(panel.names))], facecolor=_IDLE)
    for (number, waits), spans in sorted(layers.items()):
        add((span[:3] for span in spans), **_look(number, waits))


def _draw_numbers(axes: "Axes", panel: Panel, units: Sequence[str], points: float) -> None:
    from matplotlib.patheffects import withStroke

    for row, first, cycles, unit, waits, label in panel.spans:
        if waits:
            continue
        number = units.index(unit) % len(_COLOURS)
        text = axes.text(first + cycles / 2, row + 0.52, label, size=points, ha="center", va="center_baseline")
        text.set_color("white" if number in _DARK else "black")
        if _HATCHES[number]:
            text.set_path_effects([withStroke(linewidth=2.5, foreground=_COLOURS[number])])


def _label_points(panel: Panel, scale: Scale, pixels: int) -> float | None:
    """The size of the numbers in the bars; None where the widest is not readable."""
    if not _bar_by_bar(panel, scale, pixels):
        return None
    digits = max(len(span.label) for span in panel.spans)
    points = min(9.0, 0.6 * pixels / _POINT, 0.85 * scale.pixels / _POINT / (0.64 * digits))
    return points if points >= _SMALLEST_POINTS else None


def _draw_image(axes: "Axes", panel: Panel, layers: _Layers, scale: Scale) -> None:
    """One image of all rows: every colour with its share of the column's time."""
    import numpy as np
    from matplotlib.colors import to_rgb

    shape = len(panel.names), scale.columns
    time = np.minimum(scale.cycles, scale.makespan - scale.cycles * np.arange(scale.columns))
    most = np.outer(panel.depths, time)
    background = np.array(to_rgb(_IDLE if panel.kind == "units" else "white"))
    image = np.full((*shape, 3), background)
    for (number, waits), spans in sorted(layers.items()):
        image += (_busy(spans, shape, scale.cycles) / most)[..., None] * (
            _look(number, waits)["facecolor"] - background
        )
    axes.imshow(
        np.rint(255 * image.clip(0, 1)).astype(np.uint8), interpolation="nearest", aspect="auto",
        extent=(0, scale.columns * scale.cycles, len(panel.names), 0),
    )  # fmt: skip


def _busy(spans: Sequence[Span], shape: tuple[int, int], cycles: int) -> "NDArray[np.float64]":
    """Cycles that the spans cover in every row and column; a prefix sum of what changes at their ends."""
    import numpy as np

    row, first, length = np.array([span[:3] for span in spans]).T
    change = np.zeros((shape[0], shape[1] + 2))
    for sign, end in ((1, first), (-1, first + length)):
        column, into = np.divmod(end, cycles)
        np.add.at(change, (row, column), sign * (cycles - into))
        np.add.at(change, (row, column + 1), sign * into)
    return change.cumsum(axis=1)[:, : shape[1]]


def _name_rows(axes: "Axes", panel: Panel, pixels: int) -> None:
    """As many names as fit, at a regular distance."""
    step = next(step for step in round_numbers() if step * pixels >= 22)
    rows = range(0, len(panel.names), step)
    axes.set_yticks([row + 0.5 for row in rows], [panel.names[row] for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _number_cycles(axes: "Axes", scale: Scale) -> None:
    axes.set_xticks(scale.ticks(), [f"{tick:,}" for tick in scale.ticks()])
    axes.spines["bottom"].set_visible(True)
    mixed = f" (each column mixes {scale.cycles} cycles: shades are shares of time)" if scale.cycles > 1 else ""
    axes.set_xlabel(f"cycle{mixed}")
