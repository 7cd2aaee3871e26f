"""The Gantt chart of a schedule of a whole GPU: blocks on SMs, the last dispatch, the makespan and what is proven.

A bar is a block, a lane of a row is a slot, and colours tell waves apart. Of very many waves the first and the last
ones are shown, so time and size do not grow with the number of blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from makespan.host.errors import InputError, UnsupportedError
from makespan.host.output_file import write_whole
from makespan.model.gpu import GpuResult, GpuSchedule, SmHistory
from makespan.model.result import Status
from makespan.model.wording import count_words
from makespan.report.gantt.chart import (
    IDLE,
    AxisWindow,
    CycleWindow,
    Gantt,
    GanttBar,
    GanttKey,
    GanttLine,
    GanttLook,
    GanttPanel,
    GanttRow,
)
from makespan.report.gantt.figure import LEAST_ROW, render_chart
from makespan.report.gpu.stays import block_stays, count_begins, count_slots, last_dispatch, most_in_a_slot
from makespan.report.gpu.text import picture_subtitle
from makespan.report.pictures import check_picture_path

MOST_BARS = 500_000
"""The most bars of a picture. It has too few pixels to show more."""

TONES = ("#440154", "#46327E", "#365C8D", "#277F8E", "#1FA187", "#4AC16D", "#A0DA39", "#FDE725")
"""Colours of waves. Source: viridis, Smith and van der Walt, matplotlib 1.5, 2015; for all kinds of colour vision."""

_WAITS = GanttLook("#FFFFFF", "////", "#9A9A9A")
_WIDTH, _WIDEST_CYCLE, _NARROWEST_WAVE, _SHOWN_WAVES = 1736, 90, 6, 12
_HEIGHT, _MOST_LINES, _TALL, _READABLE = 1200, 1100, 26, 8  # pixels, but the second, which counts lanes
_MOST_NUMBERED, _THICK = 999, 0.94


def proven_lines(result: GpuResult) -> Iterator[GanttLine]:
    """Yield the lines of the last dispatch and of the end, both of the witness and of the proof."""
    schedule = _witness(result)
    last, witness = max(map(last_dispatch, schedule.histories)), schedule.makespan
    if last:
        yield GanttLine(last, "last dispatch in this schedule", is_proven=False, is_end=False)
    if (proof := result.last_dispatch) is not None and not result.instance.is_one_wave:
        latest = proof.block * proof.charged // proof.scale + proof.windows + proof.dram
        yield GanttLine(latest, "last dispatch, proven bound", is_proven=True, is_end=False)
    if result.status is Status.EXACT:
        yield GanttLine(witness, "the worst case, exactly", is_proven=True, is_end=True)
        return
    yield GanttLine(witness, "end of this schedule", is_proven=False, is_end=True)
    yield GanttLine(result.bounds.upper, "proven bound", is_proven=True, is_end=True)


def _witness(result: GpuResult) -> GpuSchedule:
    if result.witness is None:
        raise UnsupportedError(
            "a picture of a whole GPU: no schedule was found, as runs take too long before they repeat; give more time"
        )
    return result.witness


def gpu_chart(result: GpuResult, *, window: CycleWindow | None = None) -> Gantt:
    """Return the chart of the witness. Without a window it shows all, or the first and the last waves.

    Raises:
        UnsupportedError: several grids, or no schedule was found.
        InputError: a window with too many blocks.
    """
    gpu, witness = result.instance, _witness(result)
    most, slots = max(map(most_in_a_slot, witness.histories)), max(map(count_slots, witness.histories))
    lines, subtitle = sorted(proven_lines(result)), picture_subtitle(result)
    if window is None:
        axis = axis_windows(witness.makespan, lines[-1].at, most)
        width = min(_WIDTH, _WIDEST_CYCLE * lines[-1].at)
    else:
        axis, width = (AxisWindow(*window),), min(_WIDTH, _WIDEST_CYCLE * window.cycles)
        lines = [line for line in lines if window.first <= line.at <= window.end]
        subtitle += f"; cycles {window.first:,} to {window.end - 1:,} of {witness.makespan:,}"
    rows, notes = _chart_rows(witness, slots)
    shown = [CycleWindow(part.first, part.end) for part in axis if not part.is_gap]
    _check_size([history for _, history in rows], shown)
    stays = [
        (number, stay, stay.order // count_slots(history))
        for number, (_, history) in enumerate(rows)
        # a block that spans several parts is one bar
        for stay in dict.fromkeys(stay for part in shown for stay in block_stays(gpu, witness, history, part))
    ]
    # numbers say the order of dispatch only if every block of the GPU is drawn
    is_numbered = len(axis) == 1 and window is None and gpu.blocks == len(stays) <= _MOST_NUMBERED
    waves = max(-(-history.blocks // count_slots(history)) for history in witness.histories)
    bars = list[GanttBar]()
    for number, (row, stay, wave) in enumerate(sorted(stays, key=lambda each: (each[1].room, each[0], each[1].slot))):
        if stay.begin > stay.room:
            bars.append(GanttBar(row, stay.room, stay.begin, _WAITS, lane=stay.slot, thick=_THICK))
        look, texts = wave_look(wave, waves), (str(number),) if is_numbered else ()
        tip = f"{rows[row][0]}, slot {stay.slot}, wave {wave + 1}: cycles {stay.begin} to {stay.end - 1}"
        bars.append(GanttBar(row, stay.begin, stay.end, look, texts, tip, lane=stay.slot, thick=_THICK))
    if idle := gpu.sms - sum(history.sms for history in witness.histories):
        notes.append(f"{count_words(idle, 'SM')} without a block")
    notes.append(
        f"a line for every slot, a bar for every block; a wave: the next {count_words(slots, 'block')} of an SM"
    )
    notes += ["numbers: the order in which blocks get their room"] if is_numbered else []
    panel = GanttPanel(tuple(GanttRow(name, slots) for name, _ in rows), bars, ground=witness.makespan, tall=_TALL)
    keys = _keys(sorted({wave for _, _, wave in stays}), waves, waits=any(bar.look == _WAITS for bar in bars))
    return Gantt(
        str(result), (subtitle,), (panel,), axis, width, tuple(keys), caption="; ".join(notes), lines=tuple(lines)
    )


def axis_windows(makespan: int, end: int, waves: int) -> tuple[AxisWindow, ...]:
    """Return the parts of the axis of a schedule with this number of waves, which extends to cycle `end`.

    The axis shows all of the schedule if a wave then has some pixels, and else the first and the last waves. The part
    behind the schedule is drawn to scale, unless it is longer than the schedule.

    >>> [window[:2] for window in axis_windows(10**6, 10**6, 1000)]
    [(0, 12000), (12000, 988000), (988000, 1000000)]
    """
    # the two shown parts and the gap between them are never longer than the whole
    each = min(makespan // 3, max(1, makespan * _SHOWN_WAVES // waves))
    is_far = end > 2 * makespan
    scaled = makespan if is_far else end
    windows = [AxisWindow(0, scaled)]
    if waves * _NARROWEST_WAVE * scaled > _WIDTH * makespan and each:
        is_far = is_far or end - makespan > each
        last = AxisWindow(makespan - each, makespan if is_far else end)
        windows = [AxisWindow(0, each), AxisWindow(each, makespan - each, is_gap=True), last]
    if is_far:
        windows.append(AxisWindow(makespan, end, is_gap=True))
    return tuple(windows)


def _chart_rows(schedule: GpuSchedule, slots: int) -> tuple[list[tuple[str, SmHistory]], list[str]]:
    """Return the SMs that are drawn with their names, and notes on those that are not."""
    most = max(1, min(_MOST_LINES // slots, _HEIGHT // LEAST_ROW))
    named, first = list[tuple[str, SmHistory]](), 0
    for history in schedule.histories:
        last = first + history.sms - 1
        named.append((f"SM {first}" if history.sms == 1 else f"SMs {first}-{last}", history))
        first = last + 1
    if first * max(LEAST_ROW, slots * _READABLE) <= _HEIGHT:
        each = [history for history in schedule.histories for _ in range(history.sms)]
        return [(f"SM {number}", history) for number, history in enumerate(each)], []
    if len(named) <= most:
        return named, ["a row for SMs that do the same"]
    # the SM that ends last is always drawn: it makes the makespan
    longest = max(named, key=lambda row: row[1].cycles)
    shown = named[:most] if longest in named[:most] else [*named[: most - 1], longest]
    left = first - sum(history.sms for _, history in shown)
    return shown, ["a row for SMs that do the same", f"{count_words(left, 'SM')} left out"]


def _check_size(rows: Iterable[SmHistory], shown: Sequence[CycleWindow]) -> None:
    blocks = sum(count_begins(history, part) for history in rows for part in shown)
    if blocks > MOST_BARS:
        raise InputError(
            f"the part that the picture shows has {blocks} blocks, and it draws {MOST_BARS} at most: take a smaller one"
        )


def wave_look(wave: int, waves: int) -> GanttLook:
    """Return the look of a wave: as different as possible for few waves, in turn for many."""
    if waves >= len(TONES):
        return GanttLook(TONES[wave % len(TONES)])
    return GanttLook(TONES[round(wave * (len(TONES) - 1) / max(1, waves - 1))])


def _keys(shown: Sequence[int], waves: int, *, waits: bool) -> Iterator[GanttKey]:
    for number in range(min(waves, len(TONES))):
        if any(wave % len(TONES) == number for wave in shown):
            more = f", {number + 1 + len(TONES)}, ..." if waves > len(TONES) else ""
            yield GanttKey(wave_look(number, waves), f"wave {number + 1}{more}")
    if waits:
        yield GanttKey(_WAITS, "has its room, not begun")
    yield GanttKey(GanttLook(IDLE), "empty slot")


def draw_gpu(result: GpuResult, path: Path, *, window: CycleWindow | None = None) -> None:
    """Write the picture of the witness to `path`, whole or not at all; equal arguments give equal bytes.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, a window with too many blocks, or a file that cannot be
            written.
        UnsupportedError: several grids, or no schedule was found.
    """
    check_picture_path(path)
    chart = gpu_chart(result, window=window)
    write_whole(path, render_chart(chart, path.suffix.lower(), about=describe_chart(chart)), "the picture")


def describe_chart(chart: Gantt) -> str:
    """Return a description of the picture for a screen reader."""
    said = "; ".join(f"{line.words}: cycle {line.at:,}" for line in chart.lines)
    return f"A Gantt chart of blocks on {count_words(len(chart.panels[0].rows), 'row')} of SMs. {said}"
