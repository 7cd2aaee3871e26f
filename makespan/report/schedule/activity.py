"""What every port and every warp does in every cycle of a schedule: plain data for charts, tables and explanations."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import merge
from itertools import accumulate, count, groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from makespan.instance import Instance
from makespan.program import BARRIER
from makespan.schedule import Schedule


class Why(StrEnum):
    """Why a warp that has not finished issues nothing, or why a port is idle."""

    STALLED = "stalled"
    """The latency of its last instruction has not passed."""
    PORT = "port"
    """It is ready, and all ports of its class are held."""
    SLOT = "slot"
    """It is ready and a port of its class is free, but other warps use up the issue width."""
    BARRIER = "barrier"
    """It waits for other warps of its block."""
    NOBODY = "nobody"
    """The port is free, and no warp is ready for its class."""


class Bar(NamedTuple):
    """`warp` issues the instruction at `place` in `first_cycle`, and holds port `port` of `unit` for `cycles` cycles.

    The warp may go on `latency` cycles after `first_cycle`.
    """

    first_cycle: int
    cycles: int
    warp: int
    place: int
    unit: str
    port: int
    latency: int


class Wait(NamedTuple):
    """`warp` issues nothing: its last instruction of class `unit` stalls it, its next one is of class `unit`, or |."""

    first_cycle: int
    cycles: int
    warp: int
    unit: str
    why: Why


class Gap(NamedTuple):
    """Port `port` of class `unit` is idle."""

    first_cycle: int
    cycles: int
    unit: str
    port: int
    why: Why


Edges = Mapping[str, Sequence[int]]
"""For a class of units the cycles in which something begins or ceases to hold, in turn and increasing."""


def bars(instance: Instance, schedule: Schedule) -> tuple[Bar, ...]:
    """One bar per warp-instruction, by cycle and then by warp. Ports may be held beyond the makespan.

    Ports of a class are interchangeable: a warp that goes on as soon as its port is free keeps it, others take the
    lowest free ones.

    >>> instance = Instance.of("CL", 2)
    >>> schedule = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    >>> [(bar.first_cycle, bar.warp, bar.unit) for bar in bars(instance, schedule)]
    [(0, 0, 'C'), (1, 0, 'L'), (1, 1, 'C'), (2, 1, 'L')]
    """
    per_group = [[place.unit for place in group.program.places] for group in instance.groups]
    unit_of = [per_group[group] for group in instance.group_of_warp()]
    units = {unit.name: unit for unit in instance.machine.units}
    chosen = [iter(own) for own in schedule.latencies]
    held: dict[str, dict[int, tuple[int, int]]] = {name: {} for name, unit in units.items() if unit.capacity > 1}
    found = []
    for cycle, ops in groupby(schedule.ops(instance), attrgetter("cycle")):
        executing = [(warp, place, unit_of[warp][place]) for _, warp, place in ops]
        warps: dict[str, list[int]] = {}
        for warp, _, name in executing:
            if name in held:
                warps.setdefault(name, []).append(warp)
        ports = {name: _taken(held[name], cycle, units[name].interval, together) for name, together in warps.items()}
        for warp, place, name in executing:
            port = ports[name][warp] if name in ports else 0
            latency = next(chosen[warp]) if chosen else units[name].latency.most
            found.append(Bar(cycle, units[name].interval, warp, place, name, port, latency))
    return tuple(found)


def _taken(held: dict[int, tuple[int, int]], cycle: int, interval: int, warps: Sequence[int]) -> Mapping[int, int]:
    """The port of every issuing warp of one class; `held` says by port when it is free again and who held it last."""
    for port in [port for port, (free, _) in held.items() if free < cycle]:
        del held[port]
    last = {warp: port for port, (free, warp) in held.items() if free == cycle}
    kept = {warp: last[warp] for warp in warps if warp in last}
    taken = {port for port, (free, _) in held.items() if free > cycle} | set(kept.values())
    others = (port for port in count() if port not in taken)
    ports = {warp: kept[warp] if warp in kept else next(others) for warp in warps}
    held.update((port, (cycle + interval, warp)) for warp, port in ports.items())
    return ports


def held(instance: Instance, schedule: Schedule, bars: Iterable[Bar]) -> tuple[Wait, ...]:
    """How long every warp waits at barriers, by first cycle and then by warp.

    The k-th barrier of a block opens when all of its warps have come to theirs, or have finished.

    >>> instance = Instance.of("C|L", 2)
    >>> schedule = Schedule(((0,), (1,), (0,), (1,)), ((0, 1, 2), (0, 1, 2)))
    >>> [tuple(wait) for wait in held(instance, schedule, bars(instance, schedule))]
    [(1, 1, 0, '|', <Why.BARRIER: 'barrier'>)]
    """
    if not instance.has_barriers:
        return ()
    ends: list[list[int]] = [[0] for _ in schedule.paths]  # when each warp had executed so many instructions
    for bar in bars:
        ends[bar.warp].append(bar.first_cycle + bar.latency)
    arrivals: list[list[int]] = []  # of every warp, at its barriers and at its end
    for program, path, own in zip(instance.programs(), schedule.paths, ends, strict=True):
        done = accumulate((program.places[place].unit != BARRIER for place in path), initial=0)
        at = [so_far for so_far, place in zip(done, path, strict=False) if program.places[place].unit == BARRIER]
        arrivals.append([own[so_far] for so_far in (*at, -1)])
    blocks = instance.block_of_warp()
    opens: dict[tuple[int, int], int] = {}
    for number in range(max(map(len, arrivals)) - 1):
        for warp, times in enumerate(arrivals):
            key = blocks[warp], number
            opens[key] = max(opens.get(key, 0), times[min(number, len(times) - 1)])
    found = (
        Wait(since, opens[blocks[warp], number] - since, warp, BARRIER, Why.BARRIER)
        for warp, times in enumerate(arrivals)
        for number, came in enumerate(times[:-1])
        for since in [max(came, opens.get((blocks[warp], number - 1), 0))]  # barriers may stand in a row
    )
    return tuple(sorted(wait for wait in found if wait.cycles))


def waits(bars: Iterable[Bar], gates: Iterable[Wait] = ()) -> tuple[Wait, ...]:
    """Everything that a warp does between its bars and until it has finished; all warps are ready from cycle 0 on.

    Whether a ready warp lacks a port or an issue slot changes from cycle to cycle: here every such wait is one for a
    port, and `split` tells them apart.

    Args:
        bars: all bars of a schedule in order of time.
        gates: what `held` says of the schedule.
    """
    free: dict[int, int] = {}
    found: list[Wait] = []
    told: Iterator[Bar | Wait] = merge(bars, gates, key=attrgetter("first_cycle"))
    for entry in told:
        if isinstance(entry, Wait):
            found.append(entry)
            free[entry.warp] = entry.first_cycle + entry.cycles
            continue
        first, _, warp, _, unit, _, latency = entry
        since = free.get(warp, 0)
        if first > since:
            found.append(Wait(since, first - since, warp, unit, Why.PORT))
        if latency > 1:
            found.append(Wait(first + 1, latency - 1, warp, unit, Why.STALLED))
        free[warp] = first + latency
    return tuple(found)


def full(instance: Instance, bars: Iterable[Bar]) -> Edges:
    """When all ports of a class begin and cease to be held; empty where no issue width makes the difference."""
    if instance.machine.issue_width is None:
        return {}
    changes: dict[str, defaultdict[int, int]] = {unit: defaultdict(int) for unit in instance.machine.capacities}
    for first, cycles, _, _, unit, _, _ in bars:
        changes[unit][first] += 1
        changes[unit][first + cycles] -= 1
    return {unit: _crossings(changes[unit], capacity) for unit, capacity in instance.machine.capacities.items()}


def _crossings(changes: Mapping[int, int], most: int) -> tuple[int, ...]:
    """Where the sum of all changes so far becomes `most`, or ceases to be."""
    found: list[int] = []
    total = 0
    for cycle, change in sorted(changes.items()):
        total += change
        if (total == most) == (len(found) % 2 == 0):
            found.append(cycle)
    return tuple(found)


def parts(first: int, cycles: int, edges: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """A stretch cut at the edges: first cycle, cycles, and whether it lies between an odd edge and the next.

    >>> list(parts(0, 5, (2, 4)))
    [(0, 2, False), (2, 2, True), (4, 1, False)]
    """
    before = bisect_right(edges, first)
    cuts = (first, *edges[before : bisect_left(edges, first + cycles)], first + cycles)
    for number, (begin, end) in enumerate(pairwise(cuts), before):
        yield begin, end - begin, number % 2 == 1


def split(waits: Iterable[Wait], full: Edges) -> Iterator[Wait]:
    """The same waits, those of ready warps cut into waits for a port and waits for an issue slot."""
    for wait in waits:
        if wait.why is not Why.PORT or wait.unit not in full:
            yield wait
            continue
        for first, cycles, port in parts(wait.first_cycle, wait.cycles, full[wait.unit]):
            yield Wait(first, cycles, wait.warp, wait.unit, Why.PORT if port else Why.SLOT)


def gaps(instance: Instance, bars: Iterable[Bar], waits: Iterable[Wait], makespan: int) -> tuple[Gap, ...]:
    """When ports are idle before the makespan, and why; by class, port and cycle.

    A ready warp that finds an idle port and does not issue lacks an issue slot: that is work conservation.
    """
    wanted: dict[str, list[tuple[int, int]]] = {unit: [] for unit in instance.machine.capacities}
    for wait in waits:
        if wait.why is Why.PORT or wait.why is Why.SLOT:
            wanted[wait.unit].append((wait.first_cycle, wait.first_cycle + wait.cycles))
    edges = {unit: _union(stretches) for unit, stretches in wanted.items()}
    free = {(unit, port): 0 for unit, capacity in instance.machine.capacities.items() for port in range(capacity)}
    idle: dict[tuple[str, int], list[tuple[int, int]]] = {key: [] for key in free}
    for first, cycles, _, _, unit, port, _ in bars:
        idle[unit, port].append((free[unit, port], first))
        free[unit, port] = first + cycles
    return tuple(
        Gap(begin, length, unit, port, Why.SLOT if slot else Why.NOBODY)
        for (unit, port), stretches in idle.items()
        for first, end in (*stretches, (free[unit, port], makespan))
        if first < end
        for begin, length, slot in parts(first, end - first, edges[unit])
    )


def _union(stretches: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Where the union of stretches begins and ends; stretches that touch are one."""
    found: list[int] = []
    for first, end in sorted(stretches):
        if found and first <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += first, end
    return tuple(found)
