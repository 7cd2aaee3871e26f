"""The look of answers: exact is a diamond or a plain cell, bounded a bar or a hatched cell, no answer a cross."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.model.result import Bounds, Status
from makespan.report.lines import wrap_line
from makespan.report.pictures import GREY, INK, LINES, formula_text, shorten, shorten_middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

WIDTH, HEIGHT, WIDEST, TALLEST = 9.6, 6.6, 16.0, 12.0  # inches
COLUMN, ROW, LEFT, RIGHT, HEAD, FOOT = 0.46, 0.36, 0.85, 1.3, 1.1, 1.0  # inches
_LETTER, _MOST_LETTERS = 0.085, 24  # inches; of what is written beside a row of cells
_LINE, _LETTERS = 0.23, 120  # inches of a line of the head, and what fits into it
_READABLE = 0.25  # inches of a cell that can hold a number
_LARGE, _SMALL = 7.0, 2.0  # points of a marker
_ROOMY = 60  # points that large markers have room for
MAP = "cividis"
"""Source: Nunez, Anderton and Renslow, PLOS ONE 13(7), 2018. It suits all kinds of colour vision and rises in grey."""

EXACT, BAR, UNKNOWN, HATCH = "D", "_", "x", "////"


def marker_size(points: int) -> float:
    """Return the size of a marker for which this number of markers has room."""
    return max(_SMALL, _LARGE * min(1.0, _ROOMY / points))


def draw_head(figure: "Figure", title: str, subject: str, said: str) -> None:
    """Write the title, the subject and what is `said` above a finished figure, which grows until all of it fits.

    Names from outside are not read as formulas.
    """
    lines = wrap_line(said, _LETTERS, hang=0)
    _grow(figure, _LINE * (len(lines) - 1))
    height = figure.get_figheight()
    look: dict[str, Any] = {"size": 13, "weight": "bold", "color": INK}
    figure.text(0.02, 1 - 0.3 / height, formula_text(title), va="center", **look)
    for number, line in enumerate((shorten(subject, _LETTERS), *lines)):
        figure.text(0.02, 1 - (0.6 + _LINE * number) / height, line, va="center", color=GREY, parse_math=False)


def _grow(figure: "Figure", inches: float) -> None:
    """Add room at the top. Everything else keeps its distance from the bottom."""
    legends = [(each, each.get_bbox_to_anchor().transformed(figure.transFigure.inverted())) for each in figure.legends]
    share = figure.get_figheight() / (figure.get_figheight() + inches)
    figure.set_figheight(figure.get_figheight() + inches)
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position(original=True).bounds
        axes.set_position((left, bottom * share, width, height * share))
    for legend, box in legends:
        legend.set_bbox_to_anchor((box.x0, box.y0 * share), transform=figure.transFigure)


def draw_interval(axes: "Axes", x: float, ends: tuple[float, float], colour: str, marker: str, size: float) -> None:
    """Draw a marker for a value, or a bar with two ends for an interval."""
    if ends[0] == ends[1]:
        axes.plot(x, ends[1], marker, ms=size * 0.8, color=colour, mew=0, zorder=3, clip_on=False)
        return
    axes.plot((x, x), ends, color=colour, linewidth=size * 0.35, solid_capstyle="butt", zorder=3)
    axes.plot((x, x), ends, BAR, color=colour, ms=size * 1.5, mew=1.6, zorder=3)


def draw_unknown(axes: "Axes", at: Sequence[float], size: float) -> None:
    """Draw crosses on the axis for values without an answer."""
    across = axes.get_xaxis_transform()
    axes.plot(at, [0.03] * len(at), UNKNOWN, ms=size * 0.8, color=GREY, mew=1.3, transform=across, clip_on=False)


def style_axes(axes: "Axes") -> None:
    """Give the axes whole numbers and faint lines, and no frame."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=13, integer=True, steps=[1, 2, 4, 5, 8, 10]))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(axis="y", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def set_room(axes: "Axes", first: float, last: float) -> None:
    """Leave some space beside the first and the last value of the axis."""
    beside = max(0.6, 0.015 * (last - first))
    axes.set_xlim(first - beside, last + beside)


def interval_keys(several: Iterable[Bounds], colour: str, marker: str, name: str) -> "list[Line2D]":
    """Return the legend of markers and bars of a colour, as far as they occur."""
    from matplotlib.lines import Line2D

    states = {bounds.status for bounds in several}
    keys = []
    if Status.EXACT in states:
        keys.append(Line2D([], [], ls="", marker=marker, color=colour, mew=0, label=f"{name}, exact"))
    if Status.BOUNDED in states:
        label = f"{name}, bounded: lower to upper"
        keys.append(Line2D([], [], ls="", marker=BAR, color=colour, ms=10, mew=2, label=label))
    return keys


def unknown_key(label: str) -> "Line2D":
    """Return the legend of a cross."""
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=UNKNOWN, color=GREY, ms=7, mew=1.3, label=label)


class MapCell(NamedTuple):
    """A cell of a map: the number that its colour stands for, its text, and whether it is exact."""

    value: float
    text: str
    status: Status


class MapWords(NamedTuple):
    """The words of a map: what its axes and its scale are, and what hatches and crosses mean."""

    x: str
    y: str
    scale: str
    bounded: str
    unknown: str


def map_figure(
    columns: Sequence[Any], rows: Sequence[Any], cells: Mapping[tuple[Any, Any], MapCell], words: MapWords
) -> "Figure":
    """Return a map with a coloured cell for each pair of a column and a row; one that is not in `cells` is a cross."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    left = max(LEFT, 0.5 + _LETTER * min(_MOST_LETTERS, max(len(str(row)) for row in rows)))
    width = min(WIDEST, max(WIDTH, left + COLUMN * len(columns) + RIGHT))
    height = min(TALLEST, max(4.2, HEAD + ROW * len(rows) + FOOT))
    figure = Figure(figsize=(width, height), facecolor="white")
    inside = (width - left - RIGHT, height - HEAD - FOOT)
    axes = figure.add_axes((left / width, FOOT / height, inside[0] / width, inside[1] / height))
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5))
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    colours, scale = colormaps[MAP], Normalize(0, max((cell.value for cell in cells.values()), default=1) or 1)
    inches = (inside[0] / len(columns), inside[1] / len(rows))
    for x, column in enumerate(columns):
        for y, row in enumerate(rows):
            if (cell := cells.get((column, row))) is None:
                _draw_unknown_cell(axes, (x, y), inches)
            else:
                _draw_cell(axes, (x, y), inches, cell, colours(scale(cell.value)))
    for axis, label, values, most in ((axes.xaxis, words.x, columns, 32), (axes.yaxis, words.y, rows, 30)):
        step = -(-len(values) // most)  # as many values as can be read
        names = [shorten_middle(str(value), _MOST_LETTERS) for value in values[::step]]
        axis.set_ticks(range(0, len(values), step), names, parse_math=False)
        axis.set_label_text(label, parse_math=False)
    place = axes.get_position()
    beside = figure.add_axes((place.x1 + 0.15 / width, place.y0, 0.2 / width, place.height))
    bar = figure.colorbar(ScalarMappable(scale, colours), cax=beside)
    bar.set_label(words.scale)
    bar.outline.set_visible(False)
    keys: list[Patch | Line2D] = []
    if Status.BOUNDED in {cell.status for cell in cells.values()}:
        keys.append(Patch(facecolor="white", edgecolor=INK, hatch=HATCH, linewidth=0.4, label=words.bounded))
    if len(cells) < len(columns) * len(rows):
        keys.append(unknown_key(words.unknown))
    if keys:
        figure.legend(handles=keys, loc="lower left", ncols=2, frameon=False, bbox_to_anchor=(0.01, 0.0))
    return figure


def _draw_unknown_cell(axes: "Axes", at: tuple[int, int], inches: tuple[float, float]) -> None:
    from matplotlib.patches import Rectangle

    x, y = at
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor=LINES, linewidth=0.4))
    axes.plot(x, y, UNKNOWN, color=GREY, ms=min(7.0, 30 * min(inches)), mew=1.2)


def _draw_cell(
    axes: "Axes", at: tuple[int, int], inches: tuple[float, float], cell: MapCell, colour: tuple[float, ...]
) -> None:
    """Draw a coloured cell, with its number if there is room."""
    from matplotlib.patches import Rectangle

    x, y = at
    # the perceived brightness of a colour (ITU-R BT.601) decides whether text on it is dark or white
    light = sum(share * part for share, part in zip((0.299, 0.587, 0.114), colour[:3], strict=True)) > 0.5
    ink = INK if light else "white"
    hatch = HATCH if cell.status is Status.BOUNDED else ""
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=ink, hatch=hatch, linewidth=0))
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=0.8))
    if inches[0] >= _READABLE and inches[1] >= _READABLE * 0.6:
        size = min(8.0, 19 * inches[0], 72 * inches[0] / max(1, 0.62 * len(cell.text)))
        ground = {"facecolor": colour, "edgecolor": "none", "pad": 2}  # hatches do not run through the number
        axes.text(x, y, cell.text, size=size, color=ink, ha="center", va="center", bbox=ground)
