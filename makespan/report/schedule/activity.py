"""What every port and every warp does in every cycle of a schedule: plain data for charts, tables and explanations."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import count, groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.lowered import ISSUE_SLOT, LoweredMachine
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program
from makespan.model.schedule import Schedule
from makespan.report.schedule.by_number import order_by_number


class Why(StrEnum):
    """The reason why a warp that has not finished issues nothing, or why a port is idle."""

    STALLED = "stalled"
    """The latency of its last instruction has not passed; of a warp that runs ahead, the stall."""
    RESULT = "result"
    """It runs ahead, and what it needs next, or before it has finished, is not there yet."""
    PORT = "port"
    """It is ready, and all ports of its class are held."""
    RESOURCE = "resource"
    """It is ready and a port of its class is free, but not one of a resource that it uses."""
    SLOT = "slot"
    """It is ready and all ports are free that it needs, but other warps use up the issue width."""
    BARRIER = "barrier"
    """It waits for other warps of its block."""
    NOBODY = "nobody"
    """The port is free, and no warp is ready for its class."""


class Bar(NamedTuple):
    """`warp` issues the instruction at `place` in `first_cycle`, and holds port `port` of `unit` for `cycles` cycles.

    Its result is there `latency` cycles after `first_cycle`; a warp that blocks goes on then. Ports of a class are
    numbered through all partitions, those of partition 0 first.
    """

    first_cycle: int
    cycles: int
    warp: int
    place: int
    unit: str
    port: int
    latency: int


class ResourceHold(NamedTuple):
    """An instruction of class `unit` holds port `port` of a resource, numbered through all partitions, besides."""

    first_cycle: int
    cycles: int
    warp: int
    unit: str
    resource: str
    port: int


class Wait(NamedTuple):
    """`warp` issues nothing: an instruction of class `unit` keeps it waiting, or its next one is of class `unit`, or |.

    The wait belongs to `place`: to the instruction that stalls its warp, or else to the one that is to be next, or that
    was the last where a warp has only results to wait for. `cause` is the resource that is missing, or the place of the
    instruction whose result is; else it is None.
    """

    first_cycle: int
    cycles: int
    warp: int
    unit: str
    why: Why
    place: int
    cause: int | str | None = None


class IdleGap(NamedTuple):
    """Port `port` of class `unit` is idle."""

    first_cycle: int
    cycles: int
    unit: str
    port: int
    why: Why


class Lane(NamedTuple):
    """A port of a class or resource, numbered through all partitions, and its partition; None is all of them."""

    name: str
    port: int
    partition: int | None


Condition = tuple[Why, str | None, Sequence[int]]
"""A reason, its cause, and the edges between which it holds."""


def partitions(instance: Instance, schedule: Schedule) -> Sequence[int]:
    """Return the partition of every warp."""
    return instance.partition_of_warp or schedule.partitions


def lanes(machine: Machine) -> tuple[Lane, ...]:
    """Return all ports, partition by partition and then those that all share; the classes first, then resources."""
    lowered = LoweredMachine.of(machine)
    order = {name: number for number, name in enumerate(lowered.capacities)}
    found = []
    for pool in sorted(lowered.pools, key=lambda one: (one.partition is None, one.partition, order[one.name])):
        first = (pool.partition or 0) * pool.capacity
        if pool.name != ISSUE_SLOT:
            found += [Lane(pool.name, first + port, pool.partition) for port in range(pool.capacity)]
    return tuple(found)


def bars(instance: Instance, schedule: Schedule) -> tuple[Bar, ...]:
    """Return one bar per warp-instruction, by cycle and then by warp. Ports may be held beyond the makespan.

    Ports of a class are interchangeable: a warp that goes on as soon as its port is free keeps it, others take the
    lowest free ones.

    >>> instance = Instance.of("CL", 2)
    >>> schedule = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    >>> [(bar.first_cycle, bar.warp, bar.unit) for bar in bars(instance, schedule)]
    [(0, 0, 'C'), (1, 0, 'L'), (1, 1, 'C'), (2, 1, 'L')]
    """
    lowered, programs = LoweredMachine.of(instance.machine), tuple(instance.programs())
    parts = partitions(instance, schedule)
    chosen = [iter(own) for own in schedule.latencies]
    taken = _TakenPorts(lowered)
    found = []
    for cycle, ops in groupby(schedule.ops(instance), attrgetter("cycle")):
        issued = []
        for _, warp, place in ops:
            unit, fixed, _ = lowered.reservation(programs[warp], place)
            cycles = fixed[-1].most
            taken.add(lowered.numbers[parts[warp]][unit], warp, cycle + cycles)
            issued.append((cycles, warp, place, unit))
        ports = taken.ports(cycle)
        for cycles, warp, place, unit in issued:
            latency = next(chosen[warp]) if chosen else lowered.latency(programs[warp], place)[1]
            port = ports[lowered.numbers[parts[warp]][unit], warp]
            found.append(Bar(cycle, cycles, warp, place, unit, port, latency))
    return tuple(found)


def holds(instance: Instance, schedule: Schedule, bars: Iterable[Bar]) -> tuple[ResourceHold, ...]:
    """Return what instructions hold besides the ports of their classes, by cycle and then by warp."""
    lowered, programs = LoweredMachine.of(instance.machine), tuple(instance.programs())
    parts = partitions(instance, schedule)
    chosen = [iter(row) for row in schedule.uses]
    taken = _TakenPorts(lowered)
    found = []
    for cycle, issued in groupby(bars if instance.machine.resources else (), attrgetter("first_cycle")):
        held: list[tuple[Bar, str, int]] = []
        for bar in issued:
            reservation = lowered.reservation(programs[bar.warp], bar.place)
            used = next(chosen[bar.warp]) if chosen else reservation.least_uses
            for hold, (which, cycles) in zip(reservation.uses, used, strict=True):
                held.append((bar, hold.pools[which], cycles))
                taken.add(lowered.numbers[parts[bar.warp]][hold.pools[which]], bar.warp, cycle + cycles)
        ports = taken.ports(cycle)
        for bar, name, cycles in held:
            port = ports[lowered.numbers[parts[bar.warp]][name], bar.warp]
            found.append(ResourceHold(cycle, cycles, bar.warp, bar.unit, name, port))
    return tuple(found)


class _TakenPorts:
    """The ports of each pool that are held: when each is free again, and which warp held it last."""

    def __init__(self, lowered: LoweredMachine) -> None:
        self._pools = lowered.pools
        self._held: list[dict[int, tuple[int, int]]] = [{} for _ in lowered.pools]
        self._coming: defaultdict[int, dict[int, int]] = defaultdict(dict)

    def add(self, pool: int, warp: int, until: int) -> None:
        """Let a warp take a port of this pool in the cycle that comes next, which is free again in cycle `until`."""
        self._coming[pool][warp] = until

    def ports(self, cycle: int) -> Mapping[tuple[int, int], int]:
        """Return the ports, through all partitions, by pool and warp, of those that were added for this cycle."""
        found: dict[tuple[int, int], int] = {}
        for pool, until in self._coming.items():
            _, part, capacity = self._pools[pool]
            ports = self._of(self._held[pool], cycle, until) if capacity > 1 else dict.fromkeys(until, 0)
            found.update(((pool, warp), (part or 0) * capacity + port) for warp, port in ports.items())
        self._coming.clear()
        return found

    @staticmethod
    def _of(held: dict[int, tuple[int, int]], cycle: int, until: Mapping[int, int]) -> Mapping[int, int]:
        for port in [port for port, (free, _) in held.items() if free < cycle]:
            del held[port]
        # a warp that goes on as soon as its port is free keeps it, so that its bars stand in one row
        last = {warp: port for port, (free, warp) in held.items() if free == cycle}
        kept = {warp: last[warp] for warp in until if warp in last}
        taken = {port for port, (free, _) in held.items() if free > cycle} | set(kept.values())
        others = (port for port in count() if port not in taken)
        ports = {warp: kept[warp] if warp in kept else next(others) for warp in until}
        held.update((port, (until[warp], warp)) for warp, port in ports.items())
        return ports


def waits(instance: Instance, schedule: Schedule, bars: Sequence[Bar]) -> tuple[Wait, ...]:
    """Return what every warp does between its bars and until it has finished, by first cycle and then by warp.

    A ready warp waits for what it lacks first: a port of its class or of a resource, or an issue slot. Its wait is cut
    where this changes.

    >>> instance = Instance.of("C|L", 2)
    >>> schedule = Schedule(((0,), (1,), (0,), (1,)), ((0, 1, 2), (0, 1, 2)))
    >>> [tuple(wait)[:4] for wait in waits(instance, schedule, bars(instance, schedule)) if wait.why is Why.BARRIER]
    [(1, 1, 0, '|')]
    """
    own: list[list[Bar]] = [[] for _ in schedule.paths]
    for bar in bars:
        own[bar.warp].append(bar)
    blocks: list[list[_Life]] = [[] for _ in range(instance.blocks)]
    found: list[Wait] = []
    block_of_warp = instance.block_of_warp()
    for warp, (program, path) in enumerate(zip(instance.programs(), schedule.paths, strict=True)):
        blocks[block_of_warp[warp]].append(_life(warp, program, path, own[warp], found.append))
    for lives in blocks:
        _live(lives)
    in_order = attrgetter("first_cycle", "warp")
    found.sort(key=in_order)
    machine = instance.machine
    # without these a ready warp can only lack a port of its class
    if machine.issue_width is not None or machine.resources:
        found = list(_told_apart(instance, schedule, bars, found))
    # where ports are all that is held, the parts of a wait stay together in documents
    is_basic = machine.partitions == 1 and not machine.resources
    return tuple(found if is_basic else sorted(found, key=in_order))


_Life = Generator[int, int, int]
"""Yields when a warp has come to its next barrier, is sent when that opens, and returns when the warp has finished."""


def _live(lives: Sequence[_Life]) -> None:
    """Let the warps of a block live: a barrier opens when all of them have come to theirs, or have finished."""
    opens, standing = 0, [(life, True) for life in lives]
    while standing:
        opened, waiting, arrived = opens, [], []
        for life, is_new in standing:
            try:
                arrived.append(next(life) if is_new else life.send(opened))
                waiting.append((life, False))
            except StopIteration as end:
                opens = max(opens, end.value)
        opens, standing = max((opens, *arrived)), waiting


def _life(warp: int, program: Program, path: Sequence[int], bars: Iterable[Bar], tell: Callable[[Wait], None]) -> _Life:
    """Tell what one warp waits for on its path, from barrier to barrier."""
    now, issued = 0, iter(bars)
    pending: dict[int, tuple[int, Bar]] = {}  # by token when its last result is there, and of which instruction

    def result(tokens: Iterable[int], now: int, place: int) -> int:
        """Return when the last result of these tokens is there, and tell how long `place` waits for it."""
        then, bar = max((pending[token] for token in tokens if token in pending), default=(now, None))
        if then > now and bar is not None:
            tell(Wait(now, then - now, warp, bar.unit, Why.RESULT, place, bar.place))
        return max(now, then)

    for place in path:
        timing = program.timings[place] if program.timings else None
        if timing is not None:
            now = result(timing.awaits, now, place)
        if program.places[place].unit == BARRIER:
            opens = yield now
            if opens > now:
                tell(Wait(now, opens - now, warp, BARRIER, Why.BARRIER, place))
            now = opens
            continue
        bar = next(issued)
        if bar.first_cycle > now:
            tell(Wait(now, bar.first_cycle - now, warp, bar.unit, Why.PORT, place))
        stall = bar.latency if timing is None else timing.stall
        if stall > 1:
            tell(Wait(bar.first_cycle + 1, stall - 1, warp, bar.unit, Why.STALLED, place))
        now = bar.first_cycle + stall
        for token in () if timing is None else timing.sets:
            pending[token] = max(pending.get(token, (0, bar)), (bar.first_cycle + bar.latency, bar))
    return result(pending, now, path[-1])


def _told_apart(instance: Instance, schedule: Schedule, bars: Sequence[Bar], waits: Iterable[Wait]) -> Iterator[Wait]:
    """Yield waits, those of ready warps cut by what they lack first: a port of the class, of a resource, or a slot."""
    parts = partitions(instance, schedule)
    lacking = _lacking(instance, schedule, bars)
    for wait in waits:
        if wait.why is not Why.PORT:
            yield wait
            continue
        conditions = lacking[wait.unit, parts[wait.warp]]
        for first, cycles, why, cause in _reasons(wait.first_cycle, wait.cycles, conditions, Why.SLOT):
            yield Wait(first, cycles, wait.warp, wait.unit, why, wait.place, cause)


def _lacking(
    instance: Instance, schedule: Schedule, bars: Iterable[Bar]
) -> Mapping[tuple[str, int], Sequence[Condition]]:
    """Return, for every class in every partition, when its pools are full, in the order in which they count."""
    lowered, parts = LoweredMachine.of(instance.machine), partitions(instance, schedule)
    changes: list[defaultdict[int, int]] = [defaultdict(int) for _ in lowered.pools]
    bars = tuple(bars)
    held = [(bar.unit, bar) for bar in bars] + [(each.resource, each) for each in holds(instance, schedule, bars)]
    for name, each in held:
        own = changes[lowered.numbers[parts[each.warp]][name]]
        own[each.first_cycle] += 1
        own[each.first_cycle + each.cycles] -= 1

    def full(names: Iterable[str], numbers: Mapping[str, int]) -> tuple[int, ...]:
        """Return when all ports of all of these begin and cease to be held, those of one partition."""
        total: defaultdict[int, int] = defaultdict(int)
        for name in names:
            for cycle, change in changes[numbers[name]].items():
                total[cycle] += change
        return _crossings(total, sum(lowered.capacities[name] for name in names))

    return {
        (unit, partition): [
            (Why.PORT, None, full((unit,), numbers)),
            *((Why.RESOURCE, " or ".join(hold.pools), full(hold.pools, numbers)) for hold in reservation.uses),
        ]
        for unit, reservation in lowered.by_class.items()
        for partition, numbers in enumerate(lowered.numbers)
    }


def _reasons(
    first: int, cycles: int, conditions: Sequence[Condition], otherwise: Why
) -> Iterator[tuple[int, int, Why, str | None]]:
    """Yield a stretch cut by the first of the conditions that holds: first cycle, cycles, reason and its cause."""
    if not conditions:
        yield first, cycles, otherwise, None
        return
    (why, cause, edges), *others = conditions
    for begin, length, holds in parts(first, cycles, edges):
        if holds:
            yield begin, length, why, cause
        else:
            yield from _reasons(begin, length, others, otherwise)


def _crossings(changes: Mapping[int, int], most: int) -> tuple[int, ...]:
    """Return the cycles in which the sum of all changes so far becomes `most`, or ceases to be."""
    found: list[int] = []
    total = 0
    for cycle, change in sorted(changes.items()):
        total += change
        if (total == most) == (len(found) % 2 == 0):
            found.append(cycle)
    return tuple(found)


def parts(first: int, cycles: int, edges: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """Yield a stretch cut at the edges: first cycle, cycles, and whether it lies between an odd edge and the next.

    >>> list(parts(0, 5, (2, 4)))
    [(0, 2, False), (2, 2, True), (4, 1, False)]
    """
    before = bisect_right(edges, first)
    cuts = (first, *edges[before : bisect_left(edges, first + cycles)], first + cycles)
    for number, (begin, end) in enumerate(pairwise(cuts), before):
        yield begin, end - begin, number % 2 == 1


def gaps(instance: Instance, schedule: Schedule, bars: Iterable[Bar], waits: Iterable[Wait]) -> tuple[IdleGap, ...]:
    """Return when ports of classes are idle before the makespan, and why, by class, port and cycle.

    A ready warp that finds an idle port of its class and does not issue lacks a resource or an issue slot: that is work
    conservation. Where warps of several partitions lack different things, an issue slot counts.
    """
    lowered, parts = LoweredMachine.of(instance.machine), partitions(instance, schedule)
    wanted: defaultdict[tuple[bool, str, int | None], list[tuple[int, int]]] = defaultdict(list)
    for wait in waits:
        if wait.why in (Why.PORT, Why.SLOT, Why.RESOURCE):
            part = lowered.pools[lowered.numbers[parts[wait.warp]][wait.unit]].partition
            stretch = wait.first_cycle, wait.first_cycle + wait.cycles
            wanted[wait.why is Why.RESOURCE, wait.unit, part].append(stretch)
    edges = {key: _union(stretches) for key, stretches in wanted.items()}
    idle: dict[Lane, list[tuple[int, int]]] = {
        lane: []
        for unit in lowered.by_class
        for lane in sorted(each for each in lanes(instance.machine) if each.name == unit)
    }
    free, lane_of = dict.fromkeys(idle, 0), {(lane.name, lane.port): lane for lane in idle}
    for first, cycles, _, _, unit, port, _ in bars:
        lane = lane_of[unit, port]
        idle[lane].append((free[lane], first))
        free[lane] = first + cycles
    return tuple(
        IdleGap(begin, length, lane.name, lane.port, why)
        for lane, stretches in idle.items()
        for conditions in [[
            (Why.SLOT, None, edges.get((False, lane.name, lane.partition), ())),
            (Why.RESOURCE, None, edges.get((True, lane.name, lane.partition), ())),
        ]]
        for first, end in (*stretches, (free[lane], schedule.makespan))
        if first < end
        for begin, length, why, _ in _reasons(first, end - first, conditions, Why.NOBODY)
    )  # fmt: skip


@dataclass(frozen=True)
class ScheduleTrace:
    """A schedule for readers, who know warps by their numbers, with all that ports and warps do."""

    instance: Instance
    schedule: Schedule
    bars: tuple[Bar, ...]
    waits: tuple[Wait, ...]

    @classmethod
    def of(cls, instance: Instance, schedule: Schedule) -> "ScheduleTrace":
        """Return the trace of a valid schedule."""
        numbered = order_by_number(instance, schedule)
        issued = bars(*numbered)
        return cls(*numbered, issued, waits(*numbered, issued))

    @cached_property
    def gaps(self) -> tuple[IdleGap, ...]:
        """Return when ports of classes are idle."""
        return gaps(self.instance, self.schedule, self.bars, self.waits)

    @cached_property
    def holds(self) -> tuple[ResourceHold, ...]:
        """Return what instructions hold besides the ports of their classes."""
        return holds(self.instance, self.schedule, self.bars)

    @property
    def partitions(self) -> Sequence[int]:
        """Return the partition of every warp."""
        return partitions(self.instance, self.schedule)


def _union(stretches: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return where the union of stretches begins and ends; stretches that touch are one."""
    found: list[int] = []
    for first, end in sorted(stretches):
        if found and first <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += first, end
    return tuple(found)
