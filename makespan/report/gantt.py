"""A schedule as the rows of a Gantt chart: plain data, which `report.plot` and others only draw."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate, count, groupby
from operator import attrgetter
from typing import NamedTuple

from makespan.instance import Instance
from makespan.program import BARRIER
from makespan.schedule import Schedule


class Bar(NamedTuple):
    """`warp` executes on unit `unit`, number `port`, from `first_cycle` on; `place` is the first executed."""

    first_cycle: int
    cycles: int
    warp: int
    place: int
    unit: str
    port: int


class Wait(NamedTuple):
    """`warp` is ready for a unit of class `unit`, but others execute; or it waits at a barrier, where `unit` is |."""

    first_cycle: int
    cycles: int
    warp: int
    unit: str


class Span(NamedTuple):
    """A stretch of one row; `label` is what to write into it where there is room."""

    row: int
    first_cycle: int
    cycles: int
    unit: str
    waits: bool
    label: str


class Scale(NamedTuple):
    """A time axis of `columns` with `cycles` each (the last may have fewer), every one `pixels` wide."""

    makespan: int
    cycles: int
    columns: int
    pixels: int

    @classmethod
    def of(cls, makespan: int, *, width: int, widest_cycle: int) -> "Scale":
        """The scale that fits `makespan` cycles into `width` pixels, all columns equally wide.

        >>> Scale.of(915, width=2000, widest_cycle=90), Scale.of(100_000, width=2000, widest_cycle=90).cycles
        (Scale(makespan=915, cycles=1, columns=915, pixels=2), 50)
        """
        cycles = -(-makespan // width)
        columns = -(-makespan // cycles)
        return cls(makespan, cycles, columns, min(widest_cycle, width // columns))

    @property
    def width(self) -> int:
        """Pixels from cycle 0 to the end of the last column."""
        return self.columns * self.pixels

    def ticks(self) -> list[int]:
        """Round numbers of cycles as far apart as their figures need, and the makespan itself at the end.

        >>> Scale.of(915, width=2000, widest_cycle=90).ticks()[-3:]
        [800, 850, 915]
        """
        room = (12 * len(f"{self.makespan:,}") + 24) * self.cycles / self.pixels
        step = next(step for step in round_numbers() if step >= room)
        return [*range(0, max(1, math.ceil(self.makespan - 0.8 * room)), step), self.makespan]


def round_numbers() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows of a chart from top to bottom; where a row has no span, the unit is idle or the warp has finished.

    Args:
        kind: "units" or "warps".
        names: what stands beside each row.
        depths: how many ports or warps each row stands for; the spans of a row may overlap that often.
        spans: what the rows show.
    """

    kind: str
    names: tuple[str, ...]
    depths: tuple[int, ...]
    spans: tuple[Span, ...]


def bars(instance: Instance, schedule: Schedule) -> tuple[Bar, ...]:
    """One bar of one cycle per warp-instruction, by cycle and then by warp.

    Units of a class are interchangeable: a warp that goes on executing keeps its port, others take the
    lowest free ones.

    >>> instance = Instance.of("CL", 2)
    >>> schedule = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    >>> [(bar.first_cycle, bar.warp, bar.unit) for bar in bars(instance, schedule)]
    [(0, 0, 'C'), (1, 0, 'L'), (1, 1, 'C'), (2, 1, 'L')]
    """
    per_group = [[place.unit for place in group.program.places] for group in instance.groups]
    unit_of = [per_group[group] for group in instance.group_of_warp()]
    held: dict[str, dict[int, int]] = {}
    found = []
    for _, ops in groupby(schedule.ops(instance), attrgetter("cycle")):
        executing = [(cycle, 1, warp, place, unit_of[warp][place]) for cycle, warp, place in ops]
        warps: dict[str, list[int]] = {}
        for _, _, warp, _, unit in executing:
            warps.setdefault(unit, []).append(warp)
        held = {unit: _ports(held.get(unit, {}), together) for unit, together in warps.items()}
        found += [Bar(*op, held[op[4]][op[2]]) for op in executing]
    return tuple(found)


def _ports(before: Mapping[int, int], warps: Sequence[int]) -> dict[int, int]:
    """The port of every executing warp of one class, given those of the cycle before."""
    kept = {warp: before[warp] for warp in warps if warp in before}
    taken = set(kept.values())
    free = (port for port in count() if port not in taken)
    return {warp: kept[warp] if warp in kept else next(free) for warp in warps}


def runs(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """Bars of one warp on one port in consecutive cycles put together, by first cycle and then by warp.

    >>> runs([Bar(0, 1, 7, 0, "C", 0), Bar(1, 1, 7, 1, "C", 0), Bar(2, 1, 7, 2, "L", 0)])[0]
    Bar(first_cycle=0, cycles=2, warp=7, place=0, unit='C', port=0)
    """
    latest: dict[int, Bar] = {}
    found = []
    for bar in bars:
        before = latest.get(bar.warp)
        if before is not None:
            first, cycles, warp, place, unit, port = before
            if (first + cycles, unit, port) == (bar.first_cycle, bar.unit, bar.port):
                latest[warp] = Bar(first, cycles + bar.cycles, warp, place, unit, port)
                continue
            found.append(before)
        latest[bar.warp] = bar
    return tuple(sorted([*found, *latest.values()], key=lambda bar: (bar.first_cycle, bar.warp)))


def held(instance: Instance, schedule: Schedule) -> tuple[Wait, ...]:
    """How long every warp waits at barriers, by first cycle and then by warp.

    The k-th barrier of a block opens when all of its warps have come to theirs, or have finished.

    >>> instance = Instance.of("C|L", 2)
    >>> held(instance, Schedule(((0,), (1,), (0,), (1,)), ((0, 1, 2), (0, 1, 2))))
    (Wait(first_cycle=1, cycles=1, warp=0, unit='|'),)
    """
    if not instance.has_barriers:
        return ()
    executed: list[list[int]] = [[] for _ in schedule.paths]
    for cycle, warp, _ in schedule.ops(instance):
        executed[warp].append(cycle)
    arrivals: list[list[int]] = []  # of every warp, at its barriers and at its end
    for program, path, cycles in zip(instance.programs(), schedule.paths, executed, strict=True):
        done = accumulate((program.places[place].unit != BARRIER for place in path), initial=0)
        at = [so_far for so_far, place in zip(done, path, strict=False) if program.places[place].unit == BARRIER]
        arrivals.append([cycles[so_far - 1] + 1 if so_far else 0 for so_far in (*at, len(cycles))])
    blocks = instance.block_of_warp()
    opens: dict[tuple[int, int], int] = {}
    for number in range(max(map(len, arrivals)) - 1):
        for warp, times in enumerate(arrivals):
            key = blocks[warp], number
            opens[key] = max(opens.get(key, 0), times[min(number, len(times) - 1)])
    found = (
        Wait(since, opens[blocks[warp], number] - since, warp, BARRIER)
        for warp, times in enumerate(arrivals)
        for number, came in enumerate(times[:-1])
        for since in [max(came, opens.get((blocks[warp], number - 1), 0))]  # barriers may stand in a row
    )
    return tuple(sorted(wait for wait in found if wait.cycles))


def waits(bars: Iterable[Bar], gates: Iterable[Wait] = ()) -> tuple[Wait, ...]:
    """What every warp waits for before each of its bars or runs; all warps are ready from cycle 0 on.

    Args:
        bars: all bars of a schedule in order of time.
        gates: what `held` says of the schedule.
    """
    free: dict[int, int] = {}
    found: list[Wait] = []
    told: Iterator[Bar | Wait] = merge(bars, gates, key=attrgetter("first_cycle"))
    for entry in told:
        since = free.get(entry.warp, 0)
        if entry.first_cycle > since:
            found.append(Wait(since, entry.first_cycle - since, entry.warp, entry.unit))
        if isinstance(entry, Wait):
            found.append(entry)
        free[entry.warp] = entry.first_cycle + entry.cycles
    return tuple(found)


def units_panel(instance: Instance, bars: Iterable[Bar], *, most_rows: int) -> Panel:
    """One lane per port, labelled with the executing warps; one lane per class beyond `most_rows` ports."""
    capacities = instance.machine.capacities
    if sum(capacities.values()) > most_rows:
        names = [f"{unit} x{capacity}" if capacity > 1 else unit for unit, capacity in capacities.items()]
        lane = {unit: row for row, unit in enumerate(capacities)}
        spans = tuple(Span(lane[b.unit], b.first_cycle, b.cycles, b.unit, False, str(b.warp)) for b in bars)
        return Panel("units", tuple(names), tuple(capacities.values()), spans)
    ports = [(unit, port) for unit, capacity in capacities.items() for port in range(capacity)]
    row = {key: number for number, key in enumerate(ports)}
    spans = tuple(Span(row[b.unit, b.port], b.first_cycle, b.cycles, b.unit, False, str(b.warp)) for b in bars)
    return Panel("units", tuple(f"{unit}{port}" for unit, port in ports), (1,) * len(ports), spans)


def warps_panel(instance: Instance, bars: Sequence[Bar], gates: Sequence[Wait] = (), *, most_rows: int) -> Panel:
    """One row per warp, labelled with the executed places; neighbours share a row beyond `most_rows` warps."""
    warps = instance.warps
    depth = -(-warps // most_rows)
    firsts = range(0, warps, depth)
    depths = tuple(min(depth, warps - first) for first in firsts)
    return Panel("warps", tuple(map(_warp_name, firsts, depths)), depths, tuple(_warp_spans(bars, gates, depth)))


def _warp_spans(bars: Sequence[Bar], gates: Sequence[Wait], depth: int) -> Iterator[Span]:
    for wait in waits(bars, gates):
        yield Span(wait.warp // depth, wait.first_cycle, wait.cycles, wait.unit, True, "")
    for bar in bars:
        yield Span(bar.warp // depth, bar.first_cycle, bar.cycles, bar.unit, False, str(bar.place))


def _warp_name(first: int, depth: int) -> str:
    return f"warp {first}" if depth == 1 else f"warps {first}-{first + depth - 1}"
