"""A schedule of a whole GPU as a picture: blocks on SMs, the last dispatch, the makespan and what is proven of them.

`gpu_chart` returns data, which the rest only draws. A bar is a block, a line of a row is a slot, and colours tell waves
apart.
Of very many waves the first and the last ones are shown, so time and size do not grow with the number of blocks.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.host.errors import InputError, UnsupportedError
from makespan.host.output_file import write_whole
from makespan.model.gpu import GpuInstance, GpuResult, GpuSchedule, SmHistory
from makespan.model.result import Status
from makespan.model.wording import count_words
from makespan.report.gpu.stays import block_stays, count_begins, count_slots, last_dispatch, most_in_a_slot
from makespan.report.gpu.text import picture_subtitle
from makespan.report.pictures import (
    CAPTION_INK,
    INK,
    LINE,
    LINES,
    MARGIN,
    PROVEN,
    PicturePage,
    check_picture_path,
    fitting_lines,
    head_lines,
    render_figure,
    text_width,
)
from makespan.report.schedule.looks import IDLE
from makespan.report.schedule.panels import CycleWindow, round_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_LETTER, _BETWEEN = 12, 24  # pixels of a figure of a number, and between two numbers


class AxisPart(NamedTuple):
    """A part of the axis, `pixels` wide from `left` on, which shows a window."""

    window: CycleWindow
    left: float
    pixels: float
    is_gap: bool = False

    @property
    def right(self) -> float:
        """Return the pixel at which the part ends."""
        return self.left + self.pixels


class WindowAxis(NamedTuple):
    """A time axis: parts from left to right without space between them.

    A gap leaves cycles out, other parts are to scale.
    """

    parts: tuple[AxisPart, ...]

    @classmethod
    def of(cls, makespan: int, end: int, waves: int, *, width: int, wave: int, shown: int, gap: int) -> "WindowAxis":
        """Return the axis of a schedule with this number of waves, which extends to cycle `end`.

        The axis shows all of the schedule if a wave then has at least `wave` pixels, and else the first and the last
        `shown` waves. The part behind the schedule is drawn to scale, unless it is longer than the schedule.

        >>> [part.window[:] for part in WindowAxis.of(10**6, 10**6, 1000, width=900, wave=5, shown=9, gap=100).parts]
        [(0, 9000), (9000, 991000), (991000, 1000000)]
        """
        # the two shown parts and the gap between them are never longer than the whole
        each = min(makespan // 3, max(1, makespan * shown // waves))
        is_long = end > 2 * makespan
        room = width - gap * is_long
        scaled = makespan if is_long else end
        windows = [(CycleWindow(0, scaled), False)]
        if waves * wave * scaled > room * makespan and each:
            room -= gap
            windows = [
                (CycleWindow(0, each), False),
                (CycleWindow(each, makespan - each), True),
                (CycleWindow(makespan - each, scaled), False),
            ]
            if (scaled - makespan) > each:
                is_long, room = True, width - 2 * gap
                windows[-1] = CycleWindow(makespan - each, makespan), False
        if is_long:
            windows.append((CycleWindow(makespan, end), True))  # the proven end is far away, and is drawn behind a gap
        cycles = sum(window.cycles for window, is_gap in windows if not is_gap)
        parts, left = list[AxisPart](), 0.0
        for window, is_gap in windows:
            parts.append(AxisPart(window, left, gap if is_gap else room * window.cycles / cycles, is_gap))
            left = parts[-1].right
        return cls(tuple(parts))

    @classmethod
    def to_scale(cls, window: CycleWindow, width: int) -> "WindowAxis":
        """Return an axis of one part for a window."""
        return cls((AxisPart(window, 0, width),))

    @property
    def width(self) -> float:
        """Return the width of all parts in pixels."""
        return self.parts[-1].right

    def at(self, cycle: int) -> float:
        """Return the pixels from the left end of the axis to a cycle. Cycles beyond an end are drawn at the end."""
        part = next((part for part in self.parts if cycle < part.window.end), self.parts[-1])
        share = (cycle - part.window.first) / part.window.cycles
        return part.left + part.pixels * min(1.0, max(0.0, share))

    def ticks(self) -> list[int]:
        """Return round numbers of cycles in the parts to scale, as far apart as their digits need, and the ends."""
        figures = _LETTER * len(f"{self.parts[-1].window.end:,}") + _BETWEEN
        found = list[int]()
        scale = min(part.window.cycles / part.pixels for part in self.parts if not part.is_gap)
        step = next(step for step in round_numbers() if step >= figures * scale)
        for part in self.parts:
            if part.is_gap:
                continue
            first, end = part.window
            near = range(math.ceil(first / step) * step, end + 1, step)
            found += [tick for tick in near if not found or self.at(tick) - self.at(found[-1]) >= figures]
        return found


WIDTH, NARROW = 2000, 640
"""Widths of the whole picture, in pixels."""

MOST_BARS = 500_000
"""The most bars of a picture. It has too few pixels to show more."""

TONES = ("#440154", "#46327E", "#365C8D", "#277F8E", "#1FA187", "#4AC16D", "#A0DA39", "#FDE725")
"""Colours of waves. Source: viridis, Smith and van der Walt, matplotlib 1.5, 2015; for all kinds of colour vision."""

_WAITS: dict[str, Any] = {"facecolor": "white", "edgecolor": "#9A9A9A", "hatch": "////", "linewidth": 0}
_DARK = 5  # the number of the first colours on which numbers are white
_WIDEST_CYCLE, _NARROWEST_WAVE, _SHOWN_WAVES, _GAP = 90, 6, 12, 150
_HEIGHT, _MOST_LINES, _ROW_NAME = 1400, 1100, 22
_HIGHEST_SLOT, _READABLE_SLOT, _LOWEST_SLOT = 26, 8, 2
_NAMES, _CAPTION_POINTS, _AXIS, _LABEL = 120, 9, 90, 30
_MOST_NUMBERED, _NUMBER_POINTS, _LOWEST_NUMBER = 999, 7, 16
_VECTORS = 4000  # bars; more are embedded as an image
_EDGED, _EDGED_SLOT = 9, 4  # pixels of a bar and of its line that can have a white edge
_SMALL, _TOOTH = 8, 10


class BlockBar(NamedTuple):
    """A block on a line, from the cycle in which it gets its room until its end. Its warps begin in cycle `begin`.

    Args:
        number: its number in the order of dispatch, from 0. None means that blocks are not numbered.
    """

    row: int
    line: int
    wave: int
    room: int
    begin: int
    end: int
    number: int | None = None


class CycleMark(NamedTuple):
    """A cycle that is marked by a line: one of this schedule, or a proven bound."""

    cycle: int
    words: str
    is_proven: bool
    is_end: bool


@dataclass(frozen=True, slots=True)
class GpuChart:
    """The picture as data.

    Args:
        rows: the names of the SMs that are drawn, each with `lines` slots.
        waves: the largest number of waves of an SM.
        marks: the marks in the order of time.
        caption: the text about what bars do not show.
    """

    axis: WindowAxis
    rows: tuple[str, ...]
    lines: int
    bars: tuple[BlockBar, ...]
    waves: int
    makespan: int
    marks: tuple[CycleMark, ...]
    caption: str


def cycle_marks(result: GpuResult) -> Iterator[CycleMark]:
    """Yield marks for the last dispatch and the end, both of the witness and of the proof."""
    schedule = _witness(result)
    last, witness = max(map(last_dispatch, schedule.histories)), schedule.makespan
    if last:
        yield CycleMark(last, "last dispatch in this schedule", is_proven=False, is_end=False)
    if (proof := result.last_dispatch) is not None and not result.instance.is_one_wave:
        latest = proof.block * proof.charged // proof.scale
        yield CycleMark(latest, "last dispatch, proven bound", is_proven=True, is_end=False)
    if result.status is Status.EXACT:
        yield CycleMark(witness, "the worst case, exactly", is_proven=True, is_end=True)
        return
    yield CycleMark(witness, "end of this schedule", is_proven=False, is_end=True)
    yield CycleMark(result.bounds.upper, "proven bound", is_proven=True, is_end=True)


def _witness(result: GpuResult) -> GpuSchedule:
    if result.witness is None:
        raise UnsupportedError(
            "a picture of a whole GPU: no schedule was found, as runs take too long before they repeat; give more time"
        )
    return result.witness


def gpu_chart(result: GpuResult, *, width: int, window: CycleWindow | None = None) -> GpuChart:
    """Return the chart of the witness in `width` pixels.

    Without a window it shows all, or the first and the last waves.

    Raises:
        UnsupportedError: several grids, or no schedule was found.
        InputError: a window with too many blocks.
    """
    gpu, witness = result.instance, _witness(result)
    most, lines = max(map(most_in_a_slot, witness.histories)), max(map(count_slots, witness.histories))
    said = sorted(cycle_marks(result))
    if window is None:
        width = min(width, _WIDEST_CYCLE * said[-1].cycle)
        axis = WindowAxis.of(
            witness.makespan, said[-1].cycle, most, width=width,
            wave=_NARROWEST_WAVE, shown=_SHOWN_WAVES, gap=min(_GAP, width // 8),
        )  # fmt: skip
    else:
        axis = WindowAxis.to_scale(window, min(width, _WIDEST_CYCLE * window.cycles))
        said = [mark for mark in said if window.first <= mark.cycle <= window.end]
    rows, notes = _chart_rows(witness, lines)
    _check_size([history for _, history in rows], axis)
    bars = [bar for number, (_, history) in enumerate(rows) for bar in _block_bars(gpu, witness, history, number, axis)]
    # numbers say the order of dispatch only if every block of the GPU is drawn
    is_numbered = len(axis.parts) == 1 and window is None and gpu.blocks == len(bars) <= _MOST_NUMBERED
    if is_numbered:
        order = sorted(bars, key=lambda bar: (bar.room, bar.row, bar.line))
        bars = [bar._replace(number=number) for number, bar in enumerate(order)]
    if idle := gpu.sms - sum(history.sms for history in witness.histories):
        notes.append(f"{count_words(idle, 'SM')} without a block")
    return GpuChart(
        axis=axis,
        rows=tuple(name for name, _ in rows),
        lines=lines,
        bars=tuple(bars),
        waves=max(-(-history.blocks // count_slots(history)) for history in witness.histories),
        makespan=witness.makespan,
        marks=tuple(said),
        caption="; ".join([*notes, f"a line for every slot, a bar for every block; a wave: {_wave_words(lines)}"]),
    )


def _wave_words(lines: int) -> str:
    return f"the next {count_words(lines, 'block')} of an SM"


def _chart_rows(schedule: GpuSchedule, lines: int) -> tuple[list[tuple[str, SmHistory]], list[str]]:
    most = max(1, _MOST_LINES // lines)
    named, first = list[tuple[str, SmHistory]](), 0
    for history in schedule.histories:
        last = first + history.sms - 1
        named.append((f"SM {first}" if history.sms == 1 else f"SMs {first}-{last}", history))
        first = last + 1
    if first * lines * _READABLE_SLOT <= _HEIGHT:
        each = [history for history in schedule.histories for _ in range(history.sms)]
        return [(f"SM {number}", history) for number, history in enumerate(each)], []
    if len(named) <= most:
        return named, ["a row for SMs that do the same"]
    # the SM that ends last is always drawn: it makes the makespan
    longest = max(named, key=lambda row: row[1].cycles)
    shown = named[:most] if longest in named[:most] else [*named[: most - 1], longest]
    left = first - sum(history.sms for _, history in shown)
    return shown, ["a row for SMs that do the same", f"{count_words(left, 'SM')} left out"]


def _check_size(rows: Iterable[SmHistory], axis: WindowAxis) -> None:
    blocks = sum(count_begins(history, part.window) for history in rows for part in axis.parts if not part.is_gap)
    if blocks > MOST_BARS:
        raise InputError(
            f"the part that the picture shows has {blocks} blocks, and it draws {MOST_BARS} at most: take a smaller one"
        )


def _block_bars(
    gpu: GpuInstance, schedule: GpuSchedule, history: SmHistory, row: int, axis: WindowAxis
) -> Iterator[BlockBar]:
    shown = (part.window for part in axis.parts if not part.is_gap)
    # a block that spans several parts is drawn once, in full
    found = dict.fromkeys(stay for window in shown for stay in block_stays(gpu, schedule, history, window))
    each = count_slots(history)
    for stay in found:
        yield BlockBar(row, stay.slot, stay.order // each, stay.room, stay.begin, stay.end)


def draw_gpu(result: GpuResult, path: Path, *, window: CycleWindow | None = None) -> None:
    """Write the picture of the witness to `path`, whole or not at all; equal arguments give equal bytes.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, a window with too many blocks, or a file that cannot be
            written.
        UnsupportedError: several grids, or no schedule was found.
    """
    check_picture_path(path)
    write_whole(path, render_gpu_picture(result, path.suffix.lower(), window=window), "the picture")


def render_gpu_picture(
    result: GpuResult, suffix: str, *, width: int = WIDTH, window: CycleWindow | None = None, is_titled: bool = True
) -> bytes:
    """Return the content of the file that `draw_gpu` writes; `suffix` is one of `PICTURES`.

    Args:
        is_titled: whether the verdict stands above it; a page that has it already needs no other.
    """
    shown = gpu_chart(result, width=width - 4 * MARGIN - _NAMES, window=window)
    title, subtitle = str(result), picture_subtitle(result)
    if window is not None:
        subtitle += f"; cycles {window.first:,} to {window.end - 1:,} of {shown.makespan:,}"
    said = (title, subtitle) if is_titled else ("", "")
    return render_figure(lambda: _figure(shown, *said), suffix, title=title, about=describe_chart(shown))


def describe_chart(shown: GpuChart) -> str:
    """Return a description of the picture for a screen reader."""
    said = "; ".join(f"{mark.words}: cycle {mark.cycle:,}" for mark in shown.marks)
    shape = f"{count_words(shown.waves, 'wave')} on {count_words(len(shown.rows), 'row')} of SMs"
    return f"A Gantt chart of blocks: {shape}. {said}"


def _figure(shown: GpuChart, title: str, subtitle: str) -> "Figure":
    slot = max(_LOWEST_SLOT, min(_HIGHEST_SLOT, _HEIGHT // (len(shown.rows) * shown.lines)))
    apart = max(1, slot // 4)
    row = slot * shown.lines + apart
    left = MARGIN + 24 + round(max(text_width(name, size=9) for name in shown.rows))
    width = max(round(left + shown.axis.width) + 2 * MARGIN, NARROW)
    lines = head_lines(title, subtitle, width - 2 * MARGIN)
    keys = _legend_keys(shown)
    columns = max(1, min(len(keys), (width - 2 * MARGIN) // 150))
    levels = _label_levels(shown, left, width)
    words = fitting_lines(f"{shown.caption}{_number_note(shown, slot)}", width - 2 * MARGIN, size=_CAPTION_POINTS)
    above = MARGIN + sum(line.height for line in lines) + LINE * -(-len(keys) // columns) + 12
    header = above + LINE * len(words)
    labels = _LABEL * (1 + max(levels, default=-1)) + 10
    height = row * len(shown.rows)
    page = PicturePage(width, header + labels + height + _AXIS)
    page.legend(page.head(lines) + 6, keys, columns)
    page.write(MARGIN, above, "\n".join(words), color=CAPTION_INK, size=_CAPTION_POINTS, linespacing=1.4)
    axes = page.axes(left, header + labels, round(shown.axis.width), height)
    axes.set(xlim=(0, shown.axis.width), ylim=(height, 0))
    _draw_ground(axes, shown, slot, row)
    _draw_bars(axes, shown, slot, row)
    _draw_gaps(axes, shown, height)
    _draw_names(axes, shown, row, row - apart)
    for mark, level in zip(shown.marks, levels, strict=True):
        _draw_mark(page, axes, mark, shown.axis.at(mark.cycle), (left, header + labels, level))
    return page.figure


def _legend_keys(shown: GpuChart) -> "list[Patch]":
    from matplotlib.patches import Patch

    count = min(shown.waves, len(TONES))
    names = [f"wave {number + 1}" for number in range(count)]
    if shown.waves > count:
        names = [f"{name}, {number + count + 1}, ..." for number, name in enumerate(names)]
    tones, occur = (
        [_wave_tone(number, shown.waves) for number in range(count)],
        {_wave_tone(bar.wave, shown.waves) for bar in shown.bars},
    )
    keys = [Patch(facecolor=tone, linewidth=0, label=n) for tone, n in zip(tones, names, strict=True) if tone in occur]
    if any(bar.begin > bar.room for bar in shown.bars):
        keys.append(Patch(label="has its room, not begun", **_WAITS))
    return [*keys, Patch(facecolor=IDLE, linewidth=0, label="empty slot")]


def _wave_tone(wave: int, total: int) -> str:
    """Return the colour of a wave: as different as possible for few waves, in turn for many."""
    if total >= len(TONES):
        return TONES[wave % len(TONES)]
    return TONES[round(wave * (len(TONES) - 1) / max(1, total - 1))]


def _number_note(shown: GpuChart, slot: int) -> str:
    return "; numbers: the order in which blocks get their room" if _is_numbered(shown, slot) else ""


def _is_numbered(shown: GpuChart, slot: int) -> bool:
    return slot >= _LOWEST_NUMBER and any(bar.number is not None for bar in shown.bars)


def _draw_ground(axes: "Axes", shown: GpuChart, slot: int, row: int) -> None:
    end = shown.axis.at(shown.makespan)
    boxes = [(0.0, end, number * row, number * row + slot * shown.lines) for number in range(len(shown.rows))]
    _add_boxes(axes, boxes, facecolor=IDLE, zorder=0)
    ticks = [shown.axis.at(tick) for tick in shown.axis.ticks()]
    axes.vlines(ticks, 0, row * len(shown.rows), color=LINES, linewidth=0.4, zorder=0.5)


def _draw_bars(axes: "Axes", shown: GpuChart, slot: int, row: int) -> None:
    """Draw the bars, all of one colour together, and numbers where there is room."""
    by_tone, waiting = defaultdict[str, list[tuple[float, float, float, float]]](list), []
    is_numbered, wide = _is_numbered(shown, slot), text_width("0" * len(str(len(shown.bars))), size=_NUMBER_POINTS) + 4
    for bar in shown.bars:
        ends, top = (shown.axis.at(bar.room), shown.axis.at(bar.end)), bar.row * row + bar.line * slot
        tone = _wave_tone(bar.wave, shown.waves)
        edge = 0.75 if slot >= _EDGED_SLOT and ends[1] - ends[0] >= _EDGED else 0.0
        inset = 1 if slot >= 2 * _EDGED_SLOT else 0
        begin = max(ends[0] + edge, shown.axis.at(bar.begin))
        by_tone[tone].append((begin, ends[1] - edge, top + inset / 2, top + slot - inset / 2))
        if bar.begin > bar.room:
            waiting.append((ends[0] + edge, begin, top + inset / 2, top + slot - inset / 2))
        if is_numbered and wide <= ends[1] - begin:
            _write_number(axes, str(bar.number), tone, (begin + ends[1]) / 2, top + slot / 2)
    is_image = len(shown.bars) > _VECTORS
    for tone, boxes in sorted(by_tone.items()):
        _add_boxes(axes, boxes, facecolor=tone, linewidth=0, zorder=1, rasterized=is_image)
    if waiting:
        _add_boxes(axes, waiting, zorder=1, rasterized=is_image, **_WAITS)


def _write_number(axes: "Axes", number: str, tone: str, x: float, y: float) -> None:
    from matplotlib.patheffects import withStroke

    ink = "white" if TONES.index(tone) < _DARK else INK
    text = axes.text(x, y, number, size=_NUMBER_POINTS, color=ink, ha="center", va="center_baseline", zorder=4)
    text.set_path_effects([withStroke(linewidth=2.5, foreground=tone)])


def _add_boxes(axes: "Axes", boxes: Iterable[tuple[float, float, float, float]], **look: Any) -> None:
    from matplotlib.collections import PolyCollection

    corners = [[(a, top), (b, top), (b, bottom), (a, bottom)] for a, b, top, bottom in boxes]
    axes.add_collection(PolyCollection(corners, **{"linewidth": 0, **look}))


def _draw_gaps(axes: "Axes", shown: GpuChart, height: int) -> None:
    """Draw the gaps as white areas between two broken lines, with the number of cycles that are left out."""
    for part in shown.axis.parts:
        if not part.is_gap:
            continue
        _add_boxes(axes, [(part.left, part.right, -1, height + 1)], facecolor="white", zorder=2)
        steps = range(0, height + _TOOTH, _TOOTH)
        for side in (part.left, part.right):
            if side < shown.axis.at(shown.makespan):  # else nothing is cut there
                tooth = [side + (4 if number % 2 else -4) for number in range(len(steps))]  # a zigzag
                axes.plot(tooth, steps, color=CAPTION_INK, linewidth=0.8, zorder=2.5)
        left_out = f"{part.window.cycles:,}\ncycles\nleft out"
        axes.text(
            (part.left + part.right) / 2, height / 2, left_out, size=_SMALL, color=CAPTION_INK,
            ha="center", va="center", zorder=2.5,
        )  # fmt: skip


def _draw_names(axes: "Axes", shown: GpuChart, row: int, lines: int) -> None:
    step = -(-_ROW_NAME // row)
    numbers = range(0, len(shown.rows), step)
    axes.set_yticks([number * row + lines / 2 for number in numbers], [shown.rows[number] for number in numbers])
    ticks = shown.axis.ticks()
    axes.set_xticks([shown.axis.at(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.set_xlabel("cycle")


def _mark_label(mark: CycleMark) -> str:
    return f"{mark.words}: {mark.cycle:,}"


def _label_extent(mark: CycleMark, at: float, left: int, width: int) -> tuple[float, float]:
    """Return the ends of the label of a mark. It lies to the left of its line if there is room."""
    wide = text_width(_mark_label(mark), size=_SMALL) + 6
    right = max(left + at, MARGIN + wide)
    return right - wide, min(right, width)


def _label_levels(shown: GpuChart, left: int, width: int) -> tuple[int, ...]:
    """Return the height of each label above the axes, such that no label meets another label or its line."""
    at = [left + shown.axis.at(mark.cycle) for mark in shown.marks]
    extents = [_label_extent(mark, x - left, left, width) for mark, x in zip(shown.marks, at, strict=True)]

    def meet(levels: Sequence[int], one: int, other: int) -> bool:
        (low, high), (first, last) = extents[one], extents[other]
        if levels[one] == levels[other]:
            return low - 12 < last and first - 12 < high
        return levels[one] < levels[other] and low - 4 < at[other] < high + 4

    every = range(len(at))

    def faults(levels: tuple[int, ...]) -> tuple[int, int]:
        return sum(meet(levels, one, other) for one, other in permutations(every, 2)), sum(levels)

    # there are at most four marks, so every assignment can be tried
    return min(product(every, repeat=len(at)), key=faults)


def _draw_mark(page: PicturePage, axes: "Axes", mark: CycleMark, at: float, place: tuple[int, int, int]) -> None:
    """Draw a line through all rows, up to the label of the mark."""
    from matplotlib.lines import Line2D

    left, top, level = place
    colour = PROVEN if mark.is_proven else INK
    style: dict[str, Any] = {"color": colour, "linewidth": 1.4, "linestyle": "-" if mark.is_end else (0, (4, 2))}
    axes.axvline(at, zorder=3, clip_on=False, **style)
    x, above = (left + at) / page.width, top - 6 - _LABEL * level
    _, right = _label_extent(mark, at, left, page.width)
    high = above - 16 if right == left + at else above
    page.figure.add_artist(Line2D((x, x), (1 - top / page.height, 1 - high / page.height), **style))
    page.write(right - 6, above, _mark_label(mark), size=_SMALL, color=colour, ha="right", va="bottom")
