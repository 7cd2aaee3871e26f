"""The Gantt chart of a schedule: lanes of ports above, rows of warps below, cycles from left to right.

A class letter has the same look on every machine. A wait for a class has the hatch of the class on a light tint of its
colour. C and L have no hatch, and their tints differ in grey, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from makespan.host.output_file import write_whole
from makespan.model.instance import Instance
from makespan.model.schedule import Schedule
from makespan.report.gantt.chart import (
    IDLE,
    AxisWindow,
    CycleWindow,
    Gantt,
    GanttBar,
    GanttKey,
    GanttLook,
    GanttPanel,
    GanttRow,
    axis_width,
)
from makespan.report.gantt.figure import MOST_ROWS, render_chart
from makespan.report.pictures import check_picture_path
from makespan.report.schedule.activity import ScheduleTrace, Wait, Why, lanes

LETTERS = "CLSDTABEFGHIJKMNOPQRUVWXYZ"
"""The classes of the paper and of GPUs come first, because the first colours differ the most."""
_TINTS = (0.35, 0.15, 0.2)
_OF_NO_CLASS = {
    Why.BARRIER: GanttLook("#9A9A9A", "\\\\\\"),
    Why.SLOT: GanttLook("#F0E442", "...", "#8A7F00"),
    Why.RESOURCE: GanttLook("#EADCC3", "xx", "#A98A55"),
    Why.STALLED: GanttLook("#FFFFFF", "--", "#B9B2A3"),
    Why.RESULT: GanttLook("#FFFFFF", "..", "#9FB6C3"),
}
"""Stalls are the rule on a GPU, so they look nearly like a finished warp."""
_WIDEST, _WIDEST_CYCLE = 2000, 90
_MOST_LANES, _OVERVIEW_ROWS, _EXCERPT_CYCLE, _GAP = 24, 64, 8, 150
_LETTER = 7.5  # the least pixels of a letter in a bar


@cache  # charts have many spans of few looks
def span_look(why: Why | None, unit: str) -> GanttLook:
    """Return the look of what a warp or a port does. None means that it executes an instruction of the class."""
    if why in _OF_NO_CLASS:
        return _OF_NO_CLASS[why]
    return GanttLook.numbered(LETTERS.index(unit), () if why is None else _TINTS)


class ScheduleView(NamedTuple):
    """The title of a picture of a schedule, and the window that it shows.

    Args:
        title: the verdict. It is wrapped and cut after three lines, and so is `subtitle`.
        window: the cycles that are shown. None means all cycles.
    """

    title: str
    subtitle: str = ""
    window: CycleWindow | None = None


class ScheduleSpan(NamedTuple):
    """A span of cycles in one row.

    Args:
        unit: the class that the row has to do with in these cycles, or `|` at a barrier.
        why: the reason why the warp issues nothing or the port is idle. None means that the warp issues, or that the
            port is held.
        warp: the warp, or None for an idle port.
        place: the place that is issued, or None.
        port: the port of its class that the warp takes, or None.
    """

    row: int
    first_cycle: int
    cycles: int
    unit: str
    why: Why | None
    warp: int | None = None
    place: int | None = None
    port: int | None = None


class SpanRows(NamedTuple):
    """Rows and their spans; where a row has none its port is idle and no warp is ready for it, or its warp is done."""

    rows: tuple[GanttRow, ...]
    spans: Sequence[ScheduleSpan]


class _GrowingRows(list[GanttRow]):
    """Rows that are added one by one."""

    def put(self, name: str, partition: int | None, depth: int = 1, *, parted: bool) -> int:
        """Add a row and return its number. None stands for what all partitions share."""
        home = "all" if partition is None else f"p{partition}"
        self.append(GanttRow(f"{home}: {name}" if parted else name, 1, depth, -1 if partition is None else partition))
        return len(self) - 1


def lane_rows(trace: ScheduleTrace, most_rows: int) -> SpanRows:
    """Return one lane per port with the warps that hold it until the makespan, and with what ready warps lack.

    A class or resource that no instruction uses has no lane. Beyond `most_rows` ports, those of a pool share a lane.
    """
    machine, makespan = trace.instance.machine, trace.schedule.makespan
    used = {bar.unit for bar in trace.bars} | {hold.resource for hold in trace.holds}
    shown = [lane for lane in lanes(machine) if lane.name in used]
    depths, is_parted = Counter((lane.name, lane.partition) for lane in shown), machine.partitions > 1
    rows, row, shared = _GrowingRows(), dict[tuple[str, int], int](), dict[tuple[str, int | None], int]()
    for name, port, partition in shown:
        if len(shown) <= most_rows:
            label = f"{name}{port}" if name.isupper() else f"{name} {port}"
            row[name, port] = rows.put(label, partition, parted=is_parted)
        else:
            depth = depths[name, partition]
            if (name, partition) not in shared:
                label = f"{name} x{depth}" if depth > 1 else name
                shared[name, partition] = rows.put(label, partition, depth, parted=is_parted)
            row[name, port] = shared[name, partition]
    spans = [
        ScheduleSpan(row[name, port], first, min(cycles, makespan - first), unit, None, warp, place)
        for name, port, first, cycles, unit, warp, place in (
            *((bar.unit, bar.port, *bar[:2], bar.unit, bar.warp, bar.place) for bar in trace.bars),
            *((hold.resource, hold.port, *hold[:2], hold.unit, hold.warp, None) for hold in trace.holds),
        )
    ]
    spans += [
        ScheduleSpan(row[gap.unit, gap.port], gap.first_cycle, gap.cycles, gap.unit, gap.why)
        for gap in trace.gaps
        if gap.why is not Why.NOBODY
    ]
    return SpanRows(tuple(rows), spans)


def warp_rows(trace: ScheduleTrace, most_rows: int) -> SpanRows:
    """Return one row per warp, partition by partition. Neighbours share a row beyond `most_rows` warps."""
    depth = -(-trace.instance.warps // most_rows)
    rows, row = _GrowingRows(), dict[int, int]()
    together: defaultdict[int, list[int]] = defaultdict(list)
    for warp, partition in enumerate(trace.partitions):
        together[partition].append(warp)
    for partition, warps in sorted(together.items()):
        for first in range(0, len(warps), depth):
            some = warps[first : first + depth]
            number = rows.put(_warps_label(some), partition, len(some), parted=trace.instance.machine.partitions > 1)
            row |= dict.fromkeys(some, number)
    spans = [ScheduleSpan(row[wait.warp], *wait[:2], wait.unit, wait.why, wait.warp) for wait in trace.waits]
    spans += [
        ScheduleSpan(row[bar.warp], bar.first_cycle, 1, bar.unit, None, bar.warp, bar.place, bar.port)
        for bar in trace.bars
    ]
    return SpanRows(tuple(rows), spans)


def _warps_label(warps: Sequence[int]) -> str:
    if len(warps) == 1:
        return f"warp {warps[0]}"
    are_neighbours = warps[-1] - warps[0] == len(warps) - 1
    return f"warps {warps[0]}{'-' if are_neighbours else ', ..., '}{warps[-1]}"


def draw_gantt(instance: Instance, schedule: Schedule, path: Path, view: ScheduleView) -> None:
    """Write the picture of `schedule` to `path`, whole or not at all; equal arguments give equal bytes.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, or a file that cannot be written.
    """
    check_picture_path(path)
    write_whole(path, render_gantt(instance, schedule, path.suffix.lower(), view), "the picture")


def render_gantt(instance: Instance, schedule: Schedule, suffix: str, view: ScheduleView) -> bytes:
    """Return the content of the file that `draw_gantt` writes; `suffix` is one of `PICTURES`."""
    window = CycleWindow(0, schedule.makespan) if view.window is None else view.window
    cycles = f"cycles {window.first:,} to {window.end - 1:,} of {schedule.makespan:,}"
    about = f"A Gantt chart of ports and warps, {cycles}: {view.subtitle}"
    subtitle = "; ".join(filter(None, (view.subtitle, cycles if window.cycles < schedule.makespan else "")))
    trace = ScheduleTrace.of(instance, schedule)
    return render_chart(schedule_chart(trace, view.title, subtitle, window), suffix, about=about)


def schedule_chart(trace: ScheduleTrace, title: str, subtitle: str, window: CycleWindow) -> Gantt:
    """Return the chart of a window. Excerpts are added if a column of pixels mixes several cycles."""
    machine = trace.instance.machine
    width = axis_width(window.cycles, _WIDEST, _WIDEST_CYCLE)
    is_long = window.cycles > width
    every = lane_rows(trace, _MOST_LANES), warp_rows(trace, _OVERVIEW_ROWS if is_long else MOST_ROWS)
    unused = sorted(set(machine.capacities) - {bar.unit for bar in trace.bars})
    notes = [f"no instruction uses {', '.join(unused)}"] if unused else []
    said = [(), ()] if machine.is_basic else [("bars: while a warp holds the port",), ("bars: the cycle of issue",)]
    panels, seen = [], set[tuple[Why | None, str]]()
    for kind, shown, bars, numbers in zip(
        ("units", "warps"), every, said, ("the executing warp", "the executed place"), strict=True
    ):
        own = [span for span in shown.spans if span.first_cycle < window.end and window.first < _end(span)]
        seen |= {(span.why, span.unit) for span in own}
        is_numbered = _is_numbered(own, window, width / window.cycles)
        most = max(row.depth for row in shown.rows)
        told = [f"each row mixes up to {most}: shades are shares"] if most > 1 else list(bars)
        told += [f"numbers: {numbers}"] if is_numbered and most == 1 else []
        told += notes if kind == "units" else []
        panels.append(
            GanttPanel(
                shown.rows,
                list(_bars(own, numbered=is_numbered and most == 1)),
                f"{kind} ({'; '.join(told)})" if told else kind,
                ground=trace.schedule.makespan if kind == "units" else None,
            )
        )
    if is_long:
        panels.append(_excerpts(every[1], trace.waits, window))
    mixed = f" (a column mixes about {window.cycles / width:.2g} cycles: shades are shares of time)"
    return Gantt(
        title,
        (subtitle,) if subtitle else (),
        tuple(panels),
        (AxisWindow(*window),),
        width,
        tuple(_keys(trace, seen, window)),
        axis_words=f"cycle{mixed if is_long else ''}",
    )


def _end(span: ScheduleSpan) -> int:
    return span.first_cycle + span.cycles


def _bars(spans: Iterable[ScheduleSpan], *, numbered: bool) -> Iterator[GanttBar]:
    for row, first, cycles, unit, why, warp, place, port in spans:
        number = place if port is not None else warp
        texts = (str(number),) if numbered and why is None else ()
        yield GanttBar(row, first, first + cycles, span_look(why, unit), texts)


def _is_numbered(spans: Iterable[ScheduleSpan], window: CycleWindow, pixels: float) -> bool:
    """Return whether all numbers have room. Bars that an end of the window cuts do not count."""
    whole = (s for s in spans if s.why is None and window.first <= s.first_cycle and _end(s) < window.end)
    needs = (len(str(s.warp if s.port is None else s.place)) / s.cycles for s in whole)
    return _LETTER * max(needs, default=1.0) <= pixels


def _excerpts(shown: SpanRows, waits: Iterable[Wait], window: CycleWindow) -> GanttPanel:
    """Return excerpts, cycle by cycle: the beginning, where warps wait most, and the end."""
    cycles = (_WIDEST - 2 * _GAP) // 3 // _EXCERPT_CYCLE
    first, end = window
    inner = busiest_window(waits, CycleWindow(first + cycles, end - cycles), cycles)
    windows = CycleWindow(first, first + cycles), inner, CycleWindow(end - cycles, end)
    parts = [AxisWindow(*windows[0])]
    for one in windows[1:]:
        gap = [AxisWindow(parts[-1].end, one.first, is_gap=True)] if one.first > parts[-1].end else []
        parts += [*gap, AxisWindow(*one)]
    spans = [s for s in shown.spans if any(s.first_cycle < one.end and one.first < _end(s) for one in windows)]
    mixed = max(row.depth for row in shown.rows)
    shared = f" (each row mixes up to {mixed}: shades are shares)" if mixed > 1 else ""
    return GanttPanel(
        shown.rows,
        list(_bars(spans, numbered=False)),
        f"excerpts, cycle by cycle: the beginning, where warps wait most, the end{shared}",
        axis=tuple(parts),
        axis_words="cycle",
    )


def busiest_window(waits: Iterable[Wait], window: CycleWindow, cycles: int) -> CycleWindow:
    """Return the window of `cycles` cycles, within `window`, in which warps wait most. Of equal ones the middle counts.

    Stalls and waits for results do not count. Of equally busy windows the one nearest to the middle is taken.
    """
    first = window.first
    changes = [0] * (window.cycles + 1)
    for wait in waits:
        if wait.why not in (Why.STALLED, Why.RESULT):
            changes[min(max(wait.first_cycle - first, 0), window.cycles)] += 1
            changes[min(max(wait.first_cycle + wait.cycles - first, 0), window.cycles)] -= 1
    # the inner sum is the number of waiting warps per cycle, the outer one makes the sum over any window a difference
    before = list(accumulate(accumulate(changes[:-1]), initial=0))
    last = window.cycles - cycles  # the last first cycle that is possible
    at = max(range(last + 1), key=lambda at: (before[at + cycles] - before[at], -abs(2 * at - last)))
    return CycleWindow(first + at, first + at + cycles)


def _keys(trace: ScheduleTrace, shown: Set[tuple[Why | None, str]], window: CycleWindow) -> Iterator[GanttKey]:
    """Yield the legend of what is shown in a window, a reason and a class each, class by class."""
    first, end = window
    machine = trace.instance.machine
    for unit in machine.capacities:
        for why, words in ((None, "executes on"), (Why.PORT, "waits for")):
            if (why, unit) in shown:
                yield GanttKey(span_look(why, unit), f"{words} {unit}")
    others = {
        Why.STALLED: "stalled after its issue" if trace.instance.runs_ahead else "stalled on latency",
        Why.RESULT: "waits for a result",
        Why.RESOURCE: "waits for a resource",
        Why.SLOT: "no issue slot left",
        Why.BARRIER: "waits at a barrier",
    }
    reasons = {why for why, _ in shown}
    yield from (GanttKey(_OF_NO_CLASS[why], words) for why, words in others.items() if why in reasons)
    used = {bar.unit for bar in trace.bars}
    if any(
        gap.why is Why.NOBODY and gap.unit in used and gap.first_cycle < end and first < gap.first_cycle + gap.cycles
        for gap in trace.gaps
    ):
        yield GanttKey(GanttLook(IDLE), "idle unit" if machine.issue_width is None else "idle: no ready warp")
