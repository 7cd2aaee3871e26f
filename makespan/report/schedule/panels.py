"""A schedule as the rows of a Gantt chart: plain data, which `report.schedule.picture` and others only draw."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import Bar, Edges, IdleGap, Wait, Why, holds, lanes, partitions, parts


class RowSpan(NamedTuple):
    """A span of cycles in one row.

    Args:
        unit: the class that the row has to do with in these cycles, or `|` at a barrier.
        why: the reason why the warp issues nothing or the port is idle. None means that the warp issues, or that the
            port is held.
        label: the text in the span if there is room.
    """

    row: int
    first_cycle: int
    cycles: int
    unit: str
    why: Why | None
    label: str


class CycleWindow(NamedTuple):
    """The cycles from `first` to before `end`."""

    first: int
    end: int

    @property
    def cycles(self) -> int:
        """Return the number of cycles."""
        return self.end - self.first


class TimeScale(NamedTuple):
    """A time axis over a window: `columns` with `cycles` each (the last may have fewer), all `pixels` wide."""

    window: CycleWindow
    cycles: int
    columns: int
    pixels: int

    @classmethod
    def of(cls, window: CycleWindow, *, width: int, widest_cycle: int) -> "TimeScale":
        """Return the scale that fits a window into `width` pixels, with columns of equal width.

        >>> TimeScale.of(CycleWindow(0, 915), width=2000, widest_cycle=90)
        TimeScale(window=CycleWindow(first=0, end=915), cycles=1, columns=915, pixels=2)
        >>> TimeScale.of(CycleWindow(0, 100_000), width=2000, widest_cycle=90).cycles
        50
        """
        cycles = -(-window.cycles // width)
        columns = -(-window.cycles // cycles)
        return cls(window, cycles, columns, min(widest_cycle, width // columns))

    @property
    def width(self) -> int:
        """Return the pixels from the first cycle to the end of the last column."""
        return self.columns * self.pixels

    def ticks(self) -> list[int]:
        """Return round numbers of cycles, as far apart as their digits need, and both ends of the window.

        >>> TimeScale.of(CycleWindow(0, 915), width=2000, widest_cycle=90).ticks()[-3:]
        [800, 850, 915]
        """
        first, end = self.window
        room = (12 * len(f"{end:,}") + 24) * self.cycles / self.pixels
        step = next(step for step in round_numbers() if step >= room)
        inside = range(-(-math.ceil(first + room) // step) * step, max(first, math.ceil(end - room)), step)
        return [first, *inside, end]


def round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """The rows of a chart from top to bottom. Without a span, the port of a row is idle or its warp has finished.

    Args:
        kind: "units" or "warps".
        names: the name beside each row.
        depths: the number of ports or warps that each row stands for. The spans of a row may overlap that often.
        spans: the spans of the rows. Waits of ready warps are not split.
        full: the edges between which a wait of ready warps is for a port, and not for an issue slot, by class. A class
            without edges is always full.
        last: the row that ends last, which is always named. None stands for lanes.
        headings: the rows without spans that are named after the partition of the rows below.
    """

    kind: str
    names: tuple[str, ...]
    depths: tuple[int, ...]
    spans: tuple[RowSpan, ...]
    full: Edges
    last: int | None = None
    headings: tuple[int, ...] = ()

    def within(self, window: CycleWindow) -> "ChartPanel":
        """Return the part in a window, cut at its ends and counted from its first cycle on."""
        first, end = window
        cut = ((span, max(span.first_cycle, first), min(span.first_cycle + span.cycles, end)) for span in self.spans)
        spans = tuple(span._replace(first_cycle=a - first, cycles=b - a) for span, a, b in cut if a < b)
        full = {unit: tuple(edge - first for edge in edges) for unit, edges in self.full.items()}
        return replace(self, spans=spans, full=full)

    def pieces(self) -> Iterator[RowSpan]:
        """Yield the spans, with waits of ready warps split into those for a port and those for an issue slot."""
        for span in self.spans:
            if span.why is not Why.PORT or span.unit not in self.full:
                yield span
                continue
            for first, cycles, port in parts(span.first_cycle, span.cycles, self.full[span.unit]):
                yield span._replace(first_cycle=first, cycles=cycles, why=Why.PORT if port else Why.SLOT)


class _PanelRows:
    """The rows of a panel, with those of a partition below its name."""

    def __init__(self, machine: Machine) -> None:
        self._is_parted = machine.partitions > 1
        self._block: int | None = -1
        self.names: list[str] = []
        self.depths: list[int] = []
        self.headings: list[int] = []

    def add(self, name: str, depth: int, partition: int | None) -> int:
        """Return the number of a new row. The partition None stands for what all partitions share."""
        if self._is_parted and partition != self._block:
            self.headings.append(len(self.names))
            self.names.append("shared" if partition is None else f"partition {partition}")
            self.depths.append(1)
        self._block = partition
        self.names.append(name)
        self.depths.append(depth)
        return len(self.names) - 1

    def panel(self, kind: str, spans: Iterable[RowSpan], full: Edges, last: int | None = None) -> ChartPanel:
        return ChartPanel(kind, tuple(self.names), tuple(self.depths), tuple(spans), full, last, tuple(self.headings))


def units_panel(
    instance: Instance, schedule: Schedule, bars: Sequence[Bar], gaps: Iterable[IdleGap], *, most_rows: int
) -> ChartPanel:
    """Return one lane per port, labelled with the warps that hold it.

    A class or resource that no instruction uses has no lane. Beyond `most_rows` ports, those of a pool share a lane.
    """
    makespan, beside = schedule.makespan, holds(instance, schedule, bars)
    used = {bar.unit for bar in bars} | {hold.resource for hold in beside}
    shown = [lane for lane in lanes(instance.machine) if lane.name in used]
    depths = Counter((lane.name, lane.partition) for lane in shown)
    rows, row = _PanelRows(instance.machine), dict[tuple[str, int], int]()
    for name, port, partition in shown:
        if len(shown) <= most_rows:
            row[name, port] = rows.add(f"{name}{port}" if name.isupper() else f"{name} {port}", 1, partition)
            continue
        depth = depths.pop((name, partition), 0)
        new = rows.add(f"{name} x{depth}" if depth > 1 else name, depth, partition) if depth else len(rows.names) - 1
        row[name, port] = new
    spans = [
        RowSpan(row[unit, port], first, min(cycles, makespan - first), unit, None, str(warp))
        for first, cycles, warp, _, unit, port, _ in bars
    ]
    spans += [
        RowSpan(row[resource, port], first, min(cycles, makespan - first), unit, None, str(warp))
        for first, cycles, warp, unit, resource, port in beside
    ]
    lacking = (gap for gap in gaps if gap.why is not Why.NOBODY)
    spans += [RowSpan(row[gap.unit, gap.port], gap.first_cycle, gap.cycles, gap.unit, gap.why, "") for gap in lacking]
    return rows.panel("units", spans, {})


def warps_panel(
    instance: Instance, schedule: Schedule, bars: Iterable[Bar], waits: Iterable[Wait], full: Edges, *, most_rows: int
) -> ChartPanel:
    """Return one row per warp, labelled with the executed places, partition by partition.

    Neighbours share a row beyond `most_rows` warps.
    """
    depth = -(-instance.warps // most_rows)
    rows, row = _PanelRows(instance.machine), dict[int, int]()
    together: dict[int, list[int]] = {}
    for warp, partition in enumerate(partitions(instance, schedule)):
        together.setdefault(partition, []).append(warp)
    for partition, warps in sorted(together.items()):
        for first in range(0, len(warps), depth):
            mixed = warps[first : first + depth]
            row |= dict.fromkeys(mixed, rows.add(_warp_name(mixed), len(mixed), partition))
    spans = [RowSpan(row[wait.warp], wait.first_cycle, wait.cycles, wait.unit, wait.why, "") for wait in waits]
    spans += [RowSpan(row[bar.warp], bar.first_cycle, 1, bar.unit, None, str(bar.place)) for bar in bars]
    last = max(spans, key=lambda span: (span.first_cycle + span.cycles, -span.row)).row
    return rows.panel("warps", spans, full, last)


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


def shown_kinds(panels: Sequence[ChartPanel]) -> frozenset[tuple[Why | None, str]]:
    """Return the reasons and classes that occur in the panels and need an explanation."""
    whole = {(span.why, span.unit) for panel in panels for span in panel.spans}
    found = {key for key in whole if key[0] is not Why.PORT}
    for panel in panels:
        for unit in {unit for why, unit in whole if why is Why.PORT}:
            found |= _kinds_of_waits(panel, unit)
    return frozenset(found)


def _kinds_of_waits(panel: ChartPanel, unit: str) -> set[tuple[Why | None, str]]:
    """Return whether waits for `unit` are for a port, for an issue slot, or some for each."""
    found: set[tuple[Why | None, str]] = set()
    edges = panel.full.get(unit)
    for span in panel.spans:
        if span.why is Why.PORT and span.unit == unit:
            if edges is None:
                return {(Why.PORT, unit)}
            found |= {
                (Why.PORT if port else Why.SLOT, unit) for *_, port in parts(span.first_cycle, span.cycles, edges)
            }
            if len(found) == 2:  # both occur, and there is no third
                break
    return found


def _warp_name(warps: Sequence[int]) -> str:
    if len(warps) == 1:
        return f"warp {warps[0]}"
    are_neighbours = warps[-1] - warps[0] == len(warps) - 1
    return f"warps {warps[0]}{'-' if are_neighbours else ', ..., '}{warps[-1]}"
