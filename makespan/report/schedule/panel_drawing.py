"""Rows of a chart, drawn on given axes: bar by bar with numbers, or as one image. Lengths are pixels, 150 per inch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from makespan.report.pictures import POINT
from makespan.report.schedule.activity import Why
from makespan.report.schedule.looks import IDLE, SpanLook
from makespan.report.schedule.panels import ChartPanel, RowSpan, TimeScale, round_numbers

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_NARROWEST_BAR, _LOWEST_BAR = 8, 10
_VECTORS = 5000  # shapes of one kind; more are embedded as an image
_SMALLESTPOINTS = 5.0
_LINES, _RULES = "#BDBDBD", "#505050"
ROW_NAME = 22  # the height of a name of a row, with what is left above and below
_INSET = 0.06  # of the height of a row, above and below what it shows
_BETWEEN = 0.3  # points on either side of a bar


def draw_panel(axes: "Axes", panel: ChartPanel, scale: TimeScale, pixels: int) -> None:
    """Draw the spans of one panel, the names of its rows, and lines at the ticks below the spans.

    Args:
        panel: the rows in the window of the scale, counted from its first cycle on.
        pixels: the height of a row.
    """
    rows = len(panel.names)
    if panel.kind == "units":
        lanes = [(row, 0, scale.window.cycles) for row in range(rows) if row not in panel.headings]
        _add_boxes(axes, lanes, 0, zorder=0, facecolor=IDLE)
    ticks = [tick - scale.window.first for tick in scale.ticks()]
    axes.vlines(ticks, 0, rows, color=_LINES, linewidth=0.4, zorder=0.5)
    if panel.headings:
        rules = [row + 0.5 for row in panel.headings]
        axes.hlines(rules, 0, scale.window.cycles, color=_RULES, linewidth=0.8, zorder=0.6)
    if _is_bar_by_bar(panel, scale, pixels):
        _draw_bars(axes, panel, scale)
        if points := label_points(panel, scale, pixels):
            _draw_numbers(axes, panel, scale, points)
    else:
        _draw_image(axes, panel, scale, pixels)
    _name_rows(axes, panel, pixels)
    axes.set(xlim=(0, scale.columns * scale.cycles), ylim=(rows, 0), xticks=())


def _is_bar_by_bar(panel: ChartPanel, scale: TimeScale, pixels: int) -> bool:
    return scale.pixels >= _NARROWEST_BAR and pixels >= _LOWEST_BAR and max(panel.depths) == 1


def _spans_by_look(spans: Iterable[RowSpan]) -> list[tuple[SpanLook, list[RowSpan]]]:
    layers: defaultdict[SpanLook, list[RowSpan]] = defaultdict(list)
    for span in spans:
        layers[SpanLook.of(span.why, span.unit)].append(span)
    return sorted(layers.items(), key=lambda layer: (layer[0].number, layer[0].why or ""))


def _draw_bars(axes: "Axes", panel: ChartPanel, scale: TimeScale) -> None:
    between = _BETWEEN * POINT / scale.pixels
    for look, spans in _spans_by_look(panel.pieces()):
        _add_boxes(axes, [span[:3] for span in spans], between, zorder=1, **look.style)


def _add_boxes(axes: "Axes", spans: Sequence[tuple[int, int, int]], between: float, **look: Any) -> None:
    """Add a box for each (row, first cycle, number of cycles). It has no edge: an edge has the colour of the hatch."""
    from matplotlib.collections import PolyCollection

    low, high = _INSET, 1 - _INSET
    ends = [(x + between, x + n - between, y) for y, x, n in spans]
    boxes = [[(a, y + low), (b, y + low), (b, y + high), (a, y + high)] for a, b, y in ends]
    axes.add_collection(PolyCollection(boxes, linewidth=0, rasterized=len(boxes) > _VECTORS, **look))


def _draw_numbers(axes: "Axes", panel: ChartPanel, scale: TimeScale, points: float) -> None:
    from matplotlib.patheffects import withStroke

    for row, first, cycles, unit, why, label in panel.spans:
        if why is not None or points > _widest_points(len(label) / cycles, scale):
            continue
        look = SpanLook.of(why, unit)
        text = axes.text(first + cycles / 2, row + 0.52, label, size=points, ha="center", va="center_baseline")
        text.set_color(look.ink)
        if look.hatch:  # runs through it
            text.set_path_effects([withStroke(linewidth=3.5, foreground=look.face)])


def label_points(panel: ChartPanel, scale: TimeScale, pixels: int) -> float | None:
    """Return the size of the numbers in the bars. None means that the widest is not readable."""
    if not _is_bar_by_bar(panel, scale, pixels):
        return None
    labelled = [span for span in panel.spans if span.why is None]
    # bars that the end of the window cuts do not count
    whole = [span for span in labelled if span.first_cycle + span.cycles < scale.window.cycles]
    digits = max(len(span.label) / span.cycles for span in whole or labelled)
    points = min(9.0, 0.6 * pixels / POINT, _widest_points(digits, scale))
    return points if points >= _SMALLESTPOINTS else None


def _widest_points(digits: float, scale: TimeScale) -> float:
    return 0.85 * scale.pixels / POINT / (0.64 * digits)


def _draw_image(axes: "Axes", panel: ChartPanel, scale: TimeScale, pixels: int) -> None:
    """Draw one image of all rows, in which every look has its share of a column's time.

    It is clear where nothing is.
    """
    import numpy as np
    from matplotlib.colors import to_rgb

    shape = len(panel.names), scale.columns
    time = np.minimum(scale.cycles, scale.window.cycles - scale.cycles * np.arange(scale.columns))
    shares = [(look, busy / np.outer(panel.depths, time)) for look, busy in _look_shares(panel, scale)]
    ground = np.array(to_rgb(IDLE if panel.kind == "units" else "white"))
    flat, filled = np.tile(ground, (*shape, 1)), np.zeros(shape, bool)
    for look, part in shares:
        # a column that mixes looks has the mean of their colours
        flat += part[..., None] * (to_rgb(look.face) - ground)
        filled |= part > 0
    image = _enlarge(flat, pixels, scale.pixels)
    for look, part in shares:
        if look.hatch:
            drawn = _enlarge(part, pixels, scale.pixels) * _hatch_pixels(look.hatch, image.shape[:2])
            image += drawn[..., None] * np.subtract(to_rgb(look.line), to_rgb(look.face))
    inset, line = int(_INSET * pixels + 0.3), np.arange(pixels)
    inside = np.tile((line >= inset) & (line < pixels - inset), shape[0])[:, None]
    opaque = _enlarge(filled, pixels, scale.pixels) & inside
    axes.imshow(
        np.rint(255 * np.dstack((image.clip(0, 1), opaque))).astype(np.uint8), interpolation="nearest", aspect="auto",
        extent=(0, scale.columns * scale.cycles, shape[0], 0), zorder=1,
    )  # fmt: skip


def _enlarge(cells: "NDArray[Any]", height: int, width: int) -> "NDArray[Any]":
    return cells.repeat(height, axis=0).repeat(width, axis=1)


def _hatch_pixels(hatch: str, shape: tuple[int, int]) -> "NDArray[np.bool_]":
    """Return the pixels on the lines of a hatch, about as dense as matplotlib draws them."""
    import numpy as np

    y, x = np.ogrid[: shape[0], : shape[1]]
    far = 24 // len(hatch)
    lines: dict[str, NDArray[np.bool_]] = {
        "/": (x + y) % far < 2,
        "\\": (x - y) % far < 2,
        "x": ((x + y) % far < 1) | ((x - y) % far < 1),
        "-": (y % far < 1) & (x >= 0),
        "+": (y % far < 1) | (x % far < 1),
        ".": (x % far < 2) & ((y + far // 2 * (x // far % 2)) % far < 2),
    }
    return lines[hatch[0]]


def _look_shares(panel: ChartPanel, scale: TimeScale) -> "Iterator[tuple[SpanLook, NDArray[np.float64]]]":
    """Yield, for every look, its cycles in each row and column. Waits of ready warps are split here."""
    shape = len(panel.names), scale.columns
    for look, spans in _spans_by_look(panel.spans):
        edges = panel.full.get(spans[0].unit) if look.why is Why.PORT else None
        everything = _busy_cycles(spans, shape, scale.cycles)
        if edges is None:
            yield look, everything
            continue
        for_port = _busy_cycles(spans, shape, scale.cycles, edges)
        yield look, for_port
        yield SpanLook(-1, Why.SLOT), everything - for_port


def _busy_cycles(
    spans: Sequence[RowSpan], shape: tuple[int, int], cycles: int, edges: Sequence[int] | None = None
) -> "NDArray[np.float64]":
    """Return the cycles that the spans cover in every row and column. With edges, only odd intervals count.

    A span covers whole columns from its first one on, less the part of that column before it begins, plus the part of
    its last column before it ends. So two additions per span are enough, however many columns it covers.
    """
    import numpy as np

    counted = np.arange(shape[1] * cycles + 1)  # what counts before each cycle
    if edges is not None:
        inside = np.searchsorted(np.array(edges, dtype=np.int64), counted[:-1], side="right") % 2
        counted = np.concatenate(([0], np.cumsum(inside)))
    before = counted[::cycles]
    row, first, length = np.array([span[:3] for span in spans]).T
    covered, ends = np.zeros((shape[0], shape[1] + 1)), np.zeros((shape[0], shape[1] + 1))
    for sign, end in ((1, first), (-1, first + length)):
        column = end // cycles  # in which a span begins, or ends
        np.add.at(covered, (row, column), sign)
        np.add.at(ends, (row, column), -sign * (counted[end] - before[column]))
    return (covered.cumsum(axis=1) * np.diff(before, append=before[-1]) + ends)[:, : shape[1]]


def _name_rows(axes: "Axes", panel: ChartPanel, pixels: int) -> None:
    rows = _named_rows(panel, pixels)
    axes.set_yticks([row + 0.5 for row in rows], [panel.names[row] for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _named_rows(panel: ChartPanel, pixels: int) -> list[int]:
    """Return the rows that are named: as many as have room, at a regular distance, and the last one to end."""
    apart = -(-ROW_NAME // pixels)
    step = next(step for step in round_numbers() if step >= apart)
    begins = [heading + 1 for heading in panel.headings] or [0]
    rows = (row for begin, end in pairwise((*begins, len(panel.names))) for row in range(begin, end, step))
    always = {*panel.headings, *(() if panel.last is None else (panel.last,))}
    return sorted(always.union(row for row in rows if all(abs(row - other) >= apart for other in always)))
