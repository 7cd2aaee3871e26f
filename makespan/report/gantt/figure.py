"""A Gantt chart as a PNG, SVG or PDF file, drawn by matplotlib. Lengths are pixels at 150 per inch.

Few bars are drawn one by one, with texts where there is room. Many become one image, of which a column has the mean of
the colours of all that it shows. So neither time nor size grows much with the number of bars.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from makespan.report.gantt.chart import IDLE, MARKS, Gantt, GanttBar, GanttKey, GanttLook, GanttPanel, ScaledAxis
from makespan.report.pictures import (
    CAPTION_INK,
    GREY,
    INK,
    LINE,
    LINES,
    MARGIN,
    POINT,
    PROVEN,
    PicturePage,
    fitting_lines,
    head_lines,
    render_figure,
    shorten_middle,
    text_width,
)

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

NARROW = 1100
"""The least width of a picture."""
MOST_ROWS = 128
"""The most rows that a panel has room for with a label each."""
LEAST_ROW = 14
_TALLEST, _GROUP_GAP, _PANEL_GAP, _AXIS = 1200, 8, 14, 96
_LABEL, _LINE_LABEL, _CAPTION_POINTS = 22, 30, 9
_MOST_LETTERS = 40  # of a label; names of tasks may be of any length
_MOST_BARS, _MOST_MIXED = 4000, 500  # more are drawn as an image; the second where pixels mix cycles
_HATCHED, _LEAST_HATCHED = 20, 10  # width and height from which a hatch does not hide its cell
_SEPARATED = 8  # the width from which bars stand apart
_LETTER, _LEAST_POINTS, _POINTS = 0.64, 5.0, 8.5
_FACES = {"arrival": INK, "earlier": INK, "late": "#D55E00"}
_TOOTH = 10


def render_chart(chart: Gantt, suffix: str, *, about: str) -> bytes:
    """Return the content of a file with the chart; equal charts give equal bytes.

    Args:
        suffix: one of `PICTURES`.
        about: the description that screen readers read after the title.
    """
    return render_figure(lambda: draw_chart(chart), suffix, title=chart.title, about=about, **{"hatch.linewidth": 0.8})


def draw_chart(chart: Gantt) -> "Figure":
    """Return the figure of a chart."""
    labels = [shorten_middle(row.label, _MOST_LETTERS) for panel in chart.panels for row in panel.rows]
    left = MARGIN + 24 + round(max(text_width(label, size=9) for label in labels))
    width = max(left + chart.width + 2 * MARGIN, NARROW)
    inside = width - 2 * MARGIN
    head = head_lines(chart.title, chart.subtitles, inside)
    key = 76 + max((text_width(key.words, size=9) for key in chart.keys), default=0)
    columns = max(1, min(len(chart.keys), int(inside // key)))
    caption = fitting_lines(chart.caption, inside, size=_CAPTION_POINTS) if chart.caption else []
    below_keys = MARGIN + sum(line.height for line in head) + LINE * -(-len(chart.keys) // columns) + 12
    top = below_keys + LINE * len(caption)
    placed = [_PlacedPanel(chart, panel) for panel in chart.panels]
    page = PicturePage(width, top + sum(each.height + each.above + each.below for each in placed))
    page.legend(page.head(head) + 6, [_legend_entry(each) for each in chart.keys], columns)
    page.write(MARGIN, below_keys, "\n".join(caption), color=CAPTION_INK, size=_CAPTION_POINTS, linespacing=1.4)
    y = top
    for each in placed:
        page.write(left, y + 14, "\n".join(each.caption), color=CAPTION_INK, size=_CAPTION_POINTS, linespacing=1.4)
        y += each.above
        each.draw(page.axes(left, y, chart.width, each.height), chart)
        y += each.height + each.below
    _draw_lines(page, chart, left, top + placed[0].above, top + placed[0].above + placed[0].height)
    return page.figure


class _PlacedPanel:
    """A panel with the places of its rows and lanes in pixels from its upper end."""

    def __init__(self, chart: Gantt, panel: GanttPanel) -> None:
        self.panel = panel
        self.axis = ScaledAxis(panel.axis or chart.axis, chart.width)
        fewest = min(row.lanes for row in panel.rows)
        room = _TALLEST // sum(each.lanes for each in chart.panels)
        self.lane = max(2, -(-LEAST_ROW // fewest), min(panel.tall, room))
        self.tops, y = [], 0
        for number, row in enumerate(panel.rows):
            if number and (row.group != panel.rows[number - 1].group or row.lanes > 1):
                y += max(_GROUP_GAP // (1 + (row.lanes > 1)), self.lane // 4)
            self.tops.append(y)
            y += row.lanes * self.lane
        self.height = y
        self.caption = fitting_lines(panel.caption, chart.width, size=_CAPTION_POINTS) if panel.caption else []
        self.above = LINE * len(self.caption) + _PANEL_GAP
        self.above += _LINE_LABEL * len(chart.lines) if panel is chart.panels[0] else 0
        is_last = panel is [each for each in chart.panels if not each.axis][-1]
        self.below = _AXIS if panel.axis or is_last else 0

    def box(self, bar: GanttBar) -> tuple[float, float]:
        """Return the upper and the lower end of a bar."""
        middle, half = self.middle(bar.row, bar.lane), max(1.0, self.lane * bar.thick) / 2
        return middle - half, middle + half

    def middle(self, row: int, lane: int = 0) -> float:
        return self.tops[row] + self.lane * (lane + 0.5)

    def draw(self, axes: "Axes", chart: Gantt) -> None:
        panel, axis = self.panel, self.axis
        axes.set(xlim=(0, axis.width), ylim=(self.height, 0))
        rows = [(top, top + row.lanes * self.lane * 0.94) for top, row in zip(self.tops, panel.rows, strict=True)]
        if panel.ground is not None:
            end = axis.at(panel.ground)
            _add_boxes(axes, [(0, end, top + 0.06 * self.lane, low) for top, low in rows], facecolor=IDLE, zorder=0)
        ticks = axis.ticks(12, chart.unit)
        axes.vlines([at for at, _ in ticks], 0, self.height, color=LINES, linewidth=0.4, zorder=0.5)
        most = _MOST_MIXED if axis.per_pixel > 1 else _MOST_BARS
        is_image = len(panel.bars) > most or max(row.depth for row in panel.rows) > 1
        (self._draw_image if is_image else self._draw_bars)(axes)
        self._draw_marks(axes)
        self._draw_gaps(axes)
        points = 9 if self.lane >= _LABEL or panel.rows[0].lanes > 1 else 6.5
        axes.set_yticks(
            [(top + low) / 2 for top, low in rows], [shorten_middle(row.label, _MOST_LETTERS) for row in panel.rows],
            size=points, parse_math=False,
        )  # fmt: skip
        axes.tick_params(axis="y", length=0)
        axes.spines[:].set_visible(False)
        axes.set_xticks(
            [at for at, _ in ticks] if self.below else [], [words for _, words in ticks] if self.below else []
        )
        if self.below:
            axes.spines["bottom"].set_visible(True)
            axes.set_xlabel(panel.axis_words or chart.axis_words)

    def _draw_bars(self, axes: "Axes") -> None:
        boxes = defaultdict[tuple[GanttLook, bool], list[tuple[float, float, float, float]]](list)
        texts = list[tuple[GanttBar, float, float]]()
        for bar in self.panel.bars:
            top, low = self.box(bar)
            for left, right in self.axis.pieces(bar.start, bar.end):
                apart = 0.6 if right - left >= _SEPARATED else 0
                is_hatched = right - left >= _HATCHED and low - top >= _LEAST_HATCHED
                boxes[bar.look, is_hatched].append((left + apart, right - apart, top, low))
            if bar.texts and (pieces := list(self.axis.pieces(bar.start, bar.end))):
                texts.append((bar, *max(pieces, key=lambda piece: piece[1] - piece[0])))
        for (look, is_hatched), of_look in sorted(boxes.items()):
            _add_boxes(axes, of_look, zorder=1, **_look_style(look, is_hatched=is_hatched))
        self._write_texts(axes, texts)

    def _write_texts(self, axes: "Axes", texts: Sequence[tuple[GanttBar, float, float]]) -> None:
        from matplotlib.patheffects import withStroke

        rooms = (0.9 * (right - left) / POINT / _LETTER / len(bar.texts[-1]) for bar, left, right in texts)
        points = min(_POINTS, 0.6 * self.lane / POINT, *(room for room in rooms if room >= _LEAST_POINTS))
        for bar, left, right in texts:
            letters = 0.9 * (right - left) / POINT / _LETTER / points
            text = next((text for text in bar.texts if len(text) <= letters), None)
            if text is None or points < _LEAST_POINTS:
                continue
            drawn = axes.text(
                (left + right) / 2, self.middle(bar.row, bar.lane), text, size=points, color=bar.look.ink,
                ha="center", va="center_baseline", parse_math=False, zorder=4,
            )  # fmt: skip
            if bar.look.hatch:  # runs through it
                drawn.set_path_effects([withStroke(linewidth=3, foreground=bar.look.face)])

    def _draw_image(self, axes: "Axes") -> None:
        """Draw one image of all lanes, in which every look has its share of a column's time. It is clear elsewhere."""
        import numpy as np
        from matplotlib.colors import to_rgb

        panel, axis = self.panel, self.axis
        lanes = np.cumsum([0, *(row.lanes for row in panel.rows)])
        depths = np.repeat([row.depth for row in panel.rows], [row.lanes for row in panel.rows])[:, None]
        shape = int(lanes[-1]), round(axis.width)
        ground = np.array(to_rgb(IDLE if panel.ground is not None else "white"))
        flat, filled = np.tile(ground, (*shape, 1)), np.zeros(shape, bool)
        hatches: list[tuple[GanttLook, NDArray[np.float64]]] = []
        by_look = defaultdict[GanttLook, list[tuple[int, float, float]]](list)
        for bar in panel.bars:
            for piece in axis.pieces(bar.start, bar.end):
                by_look[bar.look].append((int(lanes[bar.row]) + bar.lane, *piece))
        for look, spans in sorted(by_look.items()):
            part = _column_shares(spans, shape) / depths
            # a column that mixes looks has the mean of their colours
            flat += part[..., None] * (to_rgb(look.face) - ground)
            filled |= part > 1e-9
            # a hatch on a short bar would hide it
            if look.hatch and (wide := [span for span in spans if span[2] - span[1] >= _HATCHED]):
                hatches.append((look, _column_shares(wide, shape) / depths))
        inset = int(0.06 * self.lane + 0.3)
        shown = np.full(self.height, -1)  # the lane of each line of pixels
        for row, top in enumerate(self.tops):
            for lane in range(panel.rows[row].lanes):
                place = top + self.lane * lane
                shown[place + inset : place + self.lane - inset] = lanes[row] + lane
        image = flat[shown]
        for look, part in hatches:
            drawn = part[shown] * _hatch_pixels(look.hatch, (self.height, shape[1]))
            image += drawn[..., None] * np.subtract(to_rgb(look.line), to_rgb(look.face))
        opaque = filled[shown] & (shown >= 0)[:, None]
        axes.imshow(
            np.rint(255 * np.dstack((image.clip(0, 1), opaque))).astype(np.uint8), interpolation="nearest",
            aspect="auto", extent=(0, shape[1], self.height, 0), zorder=1,
        )  # fmt: skip
        axes.set(xlim=(0, axis.width), ylim=(self.height, 0))

    def _draw_marks(self, axes: "Axes") -> None:
        for row, at, kind, lane in self.panel.marks:
            # an arrival stands below its job, a deadline above it
            side = {"deadline": -0.3, "later": -0.3, "late": 0}.get(kind, 0.3)
            axes.plot(
                self.axis.at(at), self.middle(row, lane) + side * self.lane, ls="", **_mark_style(kind), zorder=5,
                clip_on=False,
            )  # fmt: skip
        for (row, lane, at), (to_row, to_lane, to), is_bold in self.panel.arrows:
            down = (to_row > row) - (to_row < row)
            edge = 0.44 * self.lane * (down if self.panel.ground is not None else 0)
            flat = -0.44 * self.lane if down == 0 else 0
            axes.annotate(
                "", (self.axis.at(to), self.middle(to_row, to_lane) - edge + flat),
                (self.axis.at(at), self.middle(row, lane) + edge + flat), zorder=4 if is_bold else 3,
                arrowprops={
                    "arrowstyle": "-|>,head_length=0.35,head_width=0.16", "color": INK if is_bold else GREY,
                    "shrinkA": 0, "shrinkB": 0, "linewidth": 1.1 if is_bold else 0.6,
                    "connectionstyle": f"arc3,rad={0 if down else -0.25}",
                },
            )  # fmt: skip

    def _draw_gaps(self, axes: "Axes") -> None:
        """Draw the gaps as white areas between two broken lines, with the number of cycles that are left out."""
        for number, part in enumerate(self.axis.parts):
            if not part.is_gap:
                continue
            sides = self.axis.lefts[number], self.axis.lefts[number + 1]
            _add_boxes(axes, [(*sides, -1, self.height + 1)], facecolor="white", zorder=2)
            steps = range(0, self.height + _TOOTH, _TOOTH)
            for side in sides[: 2 if number + 1 < len(self.axis.parts) else 1]:
                zigzag = [side + (4 if number % 2 else -4) for number in range(len(steps))]
                axes.plot(zigzag, steps, color=CAPTION_INK, linewidth=0.8, zorder=2.5)
            axes.text(
                sum(sides) / 2, self.height / 2, f"{part.end - part.first:,}\ncycles\nleft out", size=8,
                color=CAPTION_INK, ha="center", va="center", zorder=2.5,
            )  # fmt: skip


def _draw_lines(page: PicturePage, chart: Gantt, left: int, top: int, low: int) -> None:
    """Draw lines through the rows, each up to its label: the labels form a staircase, so that none meets a line."""
    from matplotlib.lines import Line2D

    axis = ScaledAxis(chart.axis, chart.width)
    for level, line in enumerate(sorted(chart.lines)):
        words, x = f"{line.words}: {line.at:,}", left + axis.at(line.at)
        colour, above = PROVEN if line.is_proven else INK, top - 4 - _LINE_LABEL * level
        right = max(x, MARGIN + text_width(words, size=8) + 6)
        ends = (1 - low / page.height, 1 - (above if right == x else above - 24) / page.height)
        style: dict[str, Any] = {"color": colour, "linewidth": 1.4, "linestyle": "-" if line.is_end else (0, (4, 2))}
        page.figure.add_artist(Line2D((x / page.width,) * 2, ends, **style))
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        page.write(right - 6, above, words, size=8, color=colour, ha="right", va="bottom", bbox=ground, zorder=5)


def _add_boxes(axes: "Axes", boxes: Iterable[tuple[float, float, float, float]], **look: Any) -> None:
    """Add boxes from left to right and from top to bottom. They have no edge: it would have the colour of the hatch."""
    from matplotlib.collections import PolyCollection

    corners = [[(a, top), (b, top), (b, low), (a, low)] for a, b, top, low in boxes]
    axes.add_collection(PolyCollection(corners, linewidth=0, **look))


def _look_style(look: GanttLook, *, is_hatched: bool = True) -> dict[str, Any]:
    return {"facecolor": look.face, "hatch": look.hatch if is_hatched else "", "edgecolor": look.line}


def _mark_style(kind: str) -> dict[str, Any]:
    is_late = kind == "late"
    edge = "white" if is_late else INK
    return {"marker": MARKS[kind][0], "mfc": _FACES.get(kind, "white"), "mec": edge, "ms": 9 if is_late else 6}


def _legend_entry(key: GanttKey) -> "Artist":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(key.look, GanttLook):
        return Patch(linewidth=0, label=key.words, **_look_style(key.look))
    if key.look == "arrow":
        return Line2D([], [], ls="", marker="$\u2192$", color=GREY, ms=11, label=key.words)
    return Line2D([], [], ls="", label=key.words, **_mark_style(key.look))


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


def _column_shares(spans: Sequence[tuple[int, float, float]], shape: tuple[int, int]) -> "NDArray[np.float64]":
    """Return the part of every lane and column of pixels that the spans cover, each a lane and two pixels.

    A span covers its first column by what is right of its start, all later ones, and none from its end on. So a few
    additions per span are enough, however many columns it covers.
    """
    import numpy as np

    lane, *ends = np.array(spans).T
    found = np.zeros((shape[0], shape[1] + 2))
    for sign, end in zip((1, -1), ends, strict=True):
        column = end.astype(int)
        np.add.at(found, (lane.astype(int), column), sign * (1 - (end - column)))
        np.add.at(found, (lane.astype(int), column + 1), sign * (end - column))
    return found.cumsum(axis=1)[:, : shape[1]]
