"""Rows of a chart, drawn on given axes: bar by bar with numbers, or as one image. Lengths are pixels, 150 per inch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from makespan.report.activity import Why
from makespan.report.figures import DPI
from makespan.report.gantt import Panel, Scale, Span, round_numbers
from makespan.report.looks import IDLE, Look

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

POINT = DPI / 72
_NARROWEST_BAR, _LOWEST_BAR = 8, 10
_VECTORS = 5000  # shapes of one kind; more are embedded as an image
_SMALLESTPOINTS = 5.0
_LINES = "#BDBDBD"


def draw_panel(axes: "Axes", panel: Panel, scale: Scale, units: Sequence[str], pixels: int) -> None:
    """The spans of one panel, the names of its rows, and lines at the ticks.

    Args:
        units: all classes of the machine; their order says their colours.
        pixels: the height of a row.
    """
    if _bar_by_bar(panel, scale, pixels):
        _draw_bars(axes, panel, scale, units)
        if points := label_points(panel, scale, pixels):
            _draw_numbers(axes, panel, scale, units, points)
    else:
        _draw_image(axes, panel, scale, units)
        if pixels >= 16:
            axes.hlines(range(1, len(panel.names)), 0, scale.makespan, color="white", linewidth=pixels / 10 / POINT)
    if scale.cycles == 1:
        axes.vlines(scale.ticks(), 0, len(panel.names), color=_LINES, linewidth=0.4)
    _name_rows(axes, panel, pixels)
    axes.set(xlim=(0, scale.columns * scale.cycles), ylim=(len(panel.names), 0), xticks=())


def _bar_by_bar(panel: Panel, scale: Scale, pixels: int) -> bool:
    return scale.pixels >= _NARROWEST_BAR and pixels >= _LOWEST_BAR and max(panel.depths) == 1


def _layers(spans: Iterable[Span], units: Sequence[str]) -> "list[tuple[Look, list[Span]]]":
    """Spans by their look, in the order in which they are drawn."""
    layers: defaultdict[Look, list[Span]] = defaultdict(list)
    for span in spans:
        layers[Look.of(span.why, span.unit, units)].append(span)
    return sorted(layers.items(), key=lambda layer: (layer[0].number, layer[0].why or ""))


def _draw_bars(axes: "Axes", panel: Panel, scale: Scale, units: Sequence[str]) -> None:
    from matplotlib.collections import PolyCollection

    def add(spans: Iterable[tuple[int, int, int]], **look: Any) -> None:
        boxes = [[(x, y + 0.06), (x + n, y + 0.06), (x + n, y + 0.94), (x, y + 0.94)] for y, x, n in spans]
        axes.add_collection(PolyCollection(boxes, linewidth=0.6, rasterized=len(boxes) > _VECTORS, **look))

    if panel.kind == "units":
        add([(row, 0, scale.makespan) for row in range(len(panel.names))], facecolor=IDLE)
    for look, spans in _layers(panel.pieces(), units):
        add((span[:3] for span in spans), **look.style)


def _draw_numbers(axes: "Axes", panel: Panel, scale: Scale, units: Sequence[str], points: float) -> None:
    from matplotlib.patheffects import withStroke

    for row, first, cycles, unit, why, label in panel.spans:
        if why is not None or points > _widest_points(len(label) / cycles, scale):
            continue
        look = Look.of(why, unit, units)
        text = axes.text(first + cycles / 2, row + 0.52, label, size=points, ha="center", va="center_baseline")
        text.set_color(look.ink)
        if look.hatched or cycles > 1:  # hatches or lines of the axis run through it
            text.set_path_effects([withStroke(linewidth=2.5, foreground=look.style["facecolor"])])


def label_points(panel: Panel, scale: Scale, pixels: int) -> float | None:
    """The size of the numbers in the bars; None where the widest is not readable. Bars cut by the end do not count."""
    if not _bar_by_bar(panel, scale, pixels):
        return None
    labelled = [span for span in panel.spans if span.why is None]
    whole = [span for span in labelled if span.first_cycle + span.cycles < scale.makespan]
    digits = max(len(span.label) / span.cycles for span in whole or labelled)
    points = min(9.0, 0.6 * pixels / POINT, _widest_points(digits, scale))
    return points if points >= _SMALLESTPOINTS else None


def _widest_points(digits: float, scale: Scale) -> float:
    """The largest size at which so many digits fit into the width of a cycle."""
    return 0.85 * scale.pixels / POINT / (0.64 * digits)


def _draw_image(axes: "Axes", panel: Panel, scale: Scale, units: Sequence[str]) -> None:
    """One image of all rows: every colour with its share of the column's time."""
    import numpy as np
    from matplotlib.colors import to_rgb

    shape = len(panel.names), scale.columns
    time = np.minimum(scale.cycles, scale.makespan - scale.cycles * np.arange(scale.columns))
    most = np.outer(panel.depths, time)
    background = np.array(to_rgb(IDLE if panel.kind == "units" else "white"))
    image = np.full((*shape, 3), background)
    for look, busy in _shares(panel, scale, units):
        image += (busy / most)[..., None] * (look.style["facecolor"] - background)
    axes.imshow(
        np.rint(255 * image.clip(0, 1)).astype(np.uint8), interpolation="nearest", aspect="auto",
        extent=(0, scale.columns * scale.cycles, len(panel.names), 0),
    )  # fmt: skip


def _shares(panel: Panel, scale: Scale, units: Sequence[str]) -> "Iterator[tuple[Look, NDArray[np.float64]]]":
    """For every look how many cycles of each row and column have it; waits of ready warps are told apart here."""
    shape = len(panel.names), scale.columns
    for look, spans in _layers(panel.spans, units):
        edges = panel.full.get(units[look.number]) if look.why is Why.PORT else None
        everything = _busy(spans, shape, scale.cycles)
        if edges is None:
            yield look, everything
            continue
        for_port = _busy(spans, shape, scale.cycles, edges)
        yield look, for_port
        yield Look(-1, Why.SLOT), everything - for_port


def _busy(
    spans: Sequence[Span], shape: tuple[int, int], cycles: int, edges: Sequence[int] | None = None
) -> "NDArray[np.float64]":
    """Cycles that the spans cover in every row and column; with edges, only from an odd one to the next.

    A span covers whole columns from the one in which it begins on, less what it leaves out there, and the beginning
    of the one in which it ends.
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
        column = end // cycles
        np.add.at(covered, (row, column), sign)
        np.add.at(ends, (row, column), -sign * (counted[end] - before[column]))
    return (covered.cumsum(axis=1) * np.diff(before, append=before[-1]) + ends)[:, : shape[1]]


def _name_rows(axes: "Axes", panel: Panel, pixels: int) -> None:
    """As many names as fit, at a regular distance."""
    step = next(step for step in round_numbers() if step * pixels >= 22)
    rows = range(0, len(panel.names), step)
    axes.set_yticks([row + 0.5 for row in rows], [panel.names[row] for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
