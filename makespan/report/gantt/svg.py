"""A Gantt chart as SVG within a page, once for a wide and once for a narrow window. Lengths are user units of the SVG.

A page allows no inline style: colours are attributes, and classes get theirs from the style of the page.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from makespan.report.gantt.chart import Gantt, GanttBar, GanttLook, GanttPanel, ScaledAxis
from makespan.report.lines import make_visible
from makespan.report.pictures import shorten_middle

TILES = {
    "/": "M-1 7 L7 -1 M-1 1 L1 -1 M5 7 L7 5",
    "\\": "M-1 -1 L7 7 M5 -1 L7 1 M-1 5 L1 7",
    "x": "M-1 -1 L7 7 M-1 7 L7 -1",
    ".": "M2 3 h2 v.1 h-2",
    "-": "M0 3 H6",
    "+": "M0 3 H6 M3 0 V6",
}
"""The strokes of a tile of six by six units for each hatch."""
_SYMBOLS = {
    "arrival": "m0 3l4 7h-8z",
    "earlier": "m0 6l7 -4v8z",
    "deadline": "m0 -3l4 -7h-8z",
    "later": "m0 -6l-7 -4v8z",
    "late": "m-5 -5l10 10m0 -10l-10 10",
}
WIDTHS = {"wide": 1000, "narrow": 350}
_LETTER, _LABEL, _MOST_LETTERS = 6.6, 15, 24
_TALLEST, _LEAST_ROW, _LEAST_TEXT = 1000, 13, 10
_SEPARATED, _HATCHED = 5, 12
_MOST_BARS = 2000  # more share one path for each look, and have no tips


def chart_svg(chart: Gantt, layout: str, about: str, name: str) -> Markup:
    """Return the element of a chart.

    Args:
        layout: a key of `WIDTHS`. In a narrow one the labels stand above their rows.
        about: the description for screen readers.
        name: a word that is unique on the page, for references within the element.
    """
    return Markup("").join(_SvgDraft(chart, layout, name).parts(about))


def legend_svg(look: GanttLook, name: str) -> Markup:
    """Return a swatch of a look."""
    fill, tile = _fill(look, name) if look.hatch else (look.face, Markup(""))
    return _tag(
        "svg",
        tile + _tag("rect", width=26, height=14, fill=fill),
        class_="swatch",
        width=26,
        height=14,
        aria_hidden="true",
    )


def _tag(name: str, inside: str = "", **attributes: Any) -> Markup:
    """Return an element. Text is escaped, and so are attributes; those without a value are left out."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), f"{value:.6g}" if isinstance(value, float) else value
        )
        for key, value in attributes.items()
        if value != ""
    )
    return Markup("<{}{}>{}</{}>").format(name, written, inside, name)


def _fill(look: GanttLook, name: str) -> tuple[str, Markup]:
    """Return the fill of a hatched look, and the pattern to which it refers."""
    ground = _tag("rect", width=6, height=6, fill=look.face)
    strokes = _tag("path", d=TILES[look.hatch[0]], stroke=look.line, stroke_width=1.3, fill="none")
    pattern = _tag("pattern", ground + strokes, id=name, width=6, height=6, patternUnits="userSpaceOnUse")
    return f"url(#{name})", _tag("defs", pattern)


class _SvgDraft:
    """A chart with the places of its panels."""

    def __init__(self, chart: Gantt, layout: str, name: str) -> None:
        self.chart, self.name, self.layout, self.width = chart, name, layout, WIDTHS[layout]
        labels = [
            shorten_middle(make_visible(row.label), _MOST_LETTERS) for panel in chart.panels for row in panel.rows
        ]
        self.above = _LABEL if layout == "narrow" else 0
        self.left = 8 if self.above else 12 + round(_LETTER * 1.1 * max(map(len, labels)))
        self.axis = ScaledAxis(chart.axis, self.width - self.left - 14)
        self.hatches = dict[GanttLook, tuple[str, Markup]]()

    def x(self, at: float) -> float:
        return round(self.left + at, 1)

    def parts(self, about: str) -> Iterator[Markup]:
        top = 16 * len(self.chart.lines) + 4.0
        drawn, y = list[Markup](), top
        for panel in self.chart.panels:
            placed = _SvgPanel(self, panel, y)
            drawn += placed.draw()
            y = placed.end + 14
        y -= 10
        ticks = self.axis.ticks(7.5, self.chart.unit)
        grid = "".join(f"M{self.x(at)} {top:g}V{y:g}" for at, _ in ticks)
        words = [self.tick(at, text, y + 15) for at, text in ticks]
        height = y + 36
        yield Markup('<svg class="figure gantt {}" viewBox="0 0 {} {:g}" role="img" aria-label="{}">').format(
            self.layout, self.width, height, about
        )
        yield from (tile for _, tile in self.hatches.values())
        yield _tag("path", class_="grid", d=grid)
        yield from (*drawn, *self.gaps(top, y), *self.lines(top, y), *words)
        yield _tag("text", self.chart.axis_words, class_="tick unit", x=self.width - 2, y=y + 30)
        yield Markup("</svg>")

    def tick(self, at: float, text: str, y: float) -> Markup:
        x, half = self.x(at), 3.5 * len(text)
        return _tag("text", text, class_="tick", x=min(max(x, half), self.width - half), y=y)

    def fill(self, look: GanttLook, width: float, height: float) -> str:
        """Return the fill of a bar: a hatch would hide what is narrow."""
        if not look.hatch or width < _HATCHED or height < _LEAST_TEXT:
            return look.face
        if look not in self.hatches:
            self.hatches[look] = _fill(look, f"{self.name}-{len(self.hatches)}")
        return self.hatches[look][0]

    def gaps(self, top: float, low: float) -> Iterator[Markup]:
        for number, part in enumerate(self.axis.parts):
            if part.is_gap:
                left, right = map(self.x, self.axis.lefts[number : number + 2])
                yield _tag("rect", class_="paper", x=left, y=top, width=right - left, height=low - top)
                sides = f"M{left} {top:g}V{low:g}" + (
                    f"M{right} {top:g}V{low:g}" if right < self.x(self.axis.width) else ""
                )
                yield _tag("path", class_="cut", d=sides)
                for line, words in enumerate((f"{part.end - part.first:,}", "cycles", "left out")):
                    yield _tag("text", words, class_="tick", x=(left + right) / 2, y=(top + low) / 2 + 14 * line)

    def lines(self, top: float, low: float) -> Iterator[Markup]:
        """Yield lines through the rows, each up to its label; the labels form a staircase."""
        for level, line in enumerate(sorted(self.chart.lines)):
            words, x, y = f"{line.words}: {line.at:,}", self.x(self.axis.at(line.at)), top - 6 - 16 * level
            looks = f"{'proven' if line.is_proven else 'own'}{'' if line.is_end else ' dashed'}"
            right = max(x - 4, 6.2 * len(words))
            yield _tag("path", class_=f"line {looks}", d=f"M{x} {low:g}V{y - 10 if right < x else y + 4:g}")
            yield _tag("text", words, class_=f"label {looks}", x=right, y=y)


class _SvgPanel:
    """A panel with the places of its rows and lanes."""

    def __init__(self, draft: _SvgDraft, panel: GanttPanel, top: float) -> None:
        self.draft, self.panel = draft, panel
        fewest = min(row.lanes for row in panel.rows)
        lane = max(2.0, _LEAST_ROW / fewest, min(0.54 * panel.tall, _TALLEST / panel.lanes))
        self.lane, self.tops, y = round(lane, 1), list[float](), top
        for number, row in enumerate(panel.rows):
            if number and (row.group != panel.rows[number - 1].group or row.lanes > 1):
                y += 4
            self.tops.append(y + draft.above)
            y = round(self.tops[-1] + row.lanes * self.lane, 1)
        self.end = y

    def middle(self, row: int, lane: int = 0) -> float:
        return round(self.tops[row] + self.lane * (lane + 0.5), 1)

    def draw(self) -> Iterator[Markup]:
        draft, panel = self.draft, self.panel
        if panel.ground is not None:
            for top, row in zip(self.tops, panel.rows, strict=True):
                size: dict[str, Any] = {"width": draft.axis.at(panel.ground), "height": row.lanes * self.lane - 1}
                yield _tag("rect", class_="ground", x=draft.left, y=top, **size)
        yield Markup('<g class="bars">')
        yield from self.bars() if len(panel.bars) <= _MOST_BARS else self.paths()
        yield from self.texts()
        yield Markup("</g>")
        yield from self.marks()
        for top, row in zip(self.tops, panel.rows, strict=True):
            label = shorten_middle(make_visible(row.label), 44 if draft.above else _MOST_LETTERS)
            x, y = (draft.left, top - 3) if draft.above else (draft.left - 8, top + row.lanes * self.lane / 2 + 4)
            yield _tag("text", label, class_="name", x=x, y=round(y, 1))

    def boxes(self, bar: GanttBar) -> Iterator[tuple[float, float, float, float]]:
        """Yield left, top, width and height of each piece of a bar."""
        high = round(max(1.2, self.lane * bar.thick), 1)
        for left, right in self.draft.axis.pieces(bar.start, bar.end):
            width = right - left - (0.6 if right - left > _SEPARATED else 0)
            yield (
                self.draft.x(left),
                round(self.middle(bar.row, bar.lane) - high / 2, 1),
                max(0.4, round(width, 1)),
                high,
            )

    def bars(self) -> Iterator[Markup]:
        for bar in self.panel.bars:
            tip = _tag("title", make_visible(bar.tip)) if bar.tip else Markup("")
            for x, y, width, height in self.boxes(bar):
                fill = self.draft.fill(bar.look, width, height)
                yield _tag("rect", tip, x=x, y=y, width=width, height=height, fill=fill)

    def paths(self) -> Iterator[Markup]:
        paths = defaultdict[str, list[str]](list)
        for bar in self.panel.bars:
            for x, y, width, height in self.boxes(bar):
                paths[self.draft.fill(bar.look, width, height)].append(f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z")
        yield from (_tag("path", fill=fill, d="".join(path)) for fill, path in paths.items())

    def texts(self) -> Iterator[Markup]:
        for bar in self.panel.bars if self.lane * 0.9 >= _LEAST_TEXT else ():
            x, _, width, _ = max(self.boxes(bar), key=lambda box: box[2], default=(0.0,) * 4)
            text = next((each for each in bar.texts if len(each) * _LETTER <= width - 2), "")
            if text:
                dark = "in" if bar.look.ink == "#000000" else "in light"
                y = self.middle(bar.row, bar.lane) + 4
                halo = bar.look.face if bar.look.hatch else ""  # the hatch must not run through the text
                yield _tag("text", make_visible(text), class_=dark, x=round(x + width / 2, 1), y=y, stroke=halo)

    def marks(self) -> Iterator[Markup]:
        axis, x = self.draft.axis, self.draft.x
        for row, at, kind, lane in self.panel.marks:
            path = f"M{x(axis.at(at))} {self.middle(row, lane)}{_SYMBOLS[kind]}"
            yield _tag("path", _tag("title", kind), class_=f"mark {kind}", d=path)
        for (row, lane, at), (to_row, to_lane, to), is_bold in self.panel.arrows:
            down = (to_row > row) - (to_row < row)
            edge = 0.44 * self.lane * (down if self.panel.ground is not None else 0)
            begin, end = self.middle(row, lane) + edge, self.middle(to_row, to_lane) - edge
            tail, head = x(axis.at(at)), x(axis.at(to))
            path = f"M{tail} {begin:.1f}L{head} {end:.1f}"
            if not down:
                over = begin - 0.44 * self.lane
                path = f"M{tail} {over:.1f}Q{(tail + head) / 2:.1f} {over - 8:.1f} {head} {over:.1f}"
            yield _tag("path", class_="arrow own" if is_bold else "arrow", d=path)
