"""Two warps on any machine: the exact worst and best case by a table of events, without the cycles between them.

The recursion and its proof stand in docs/theory.md, section 8, the words in `events_compiled`. Latencies may be
ranges, programs may have choices. What is not known here: barriers, and ports that can be held in too many ways.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, combinations_with_replacement
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from makespan.host.compiled import ints
from makespan.host.errors import BrokenPromiseError
from makespan.model.feature import PROGRAMS, TIMES
from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.two_warps import events_compiled as loops

KNOWS = PROGRAMS | TIMES

MAX_ENTRIES = 500_000_000
"""Of all tables; an entry has four bytes."""

MAX_HOLDINGS = 2_000
MAX_PORT_ENTRIES = 2_000_000
_ENTRIES_PER_CALL = 200_000
_BYTES_PER_ENTRY = 4
_FAR = 1 << 30

Holding = tuple[tuple[int, ...], ...]
"""For every class that is counted, the cycles for which each port in use is still held, sorted."""


def applies(instance: Instance) -> bool:
    """Return whether there are two warps without barriers, and table and ports stay within the limits."""
    if instance.warps != 2 or instance.beyond(KNOWS):
        return False
    if _entries(instance, 1) > MAX_ENTRIES:
        return False
    found = _holdings(_contended_units(instance), _span(instance))
    return found is not None and _entries(instance, len(found)) <= MAX_ENTRIES


def solve(instance: Instance, limits: Limits) -> Finding:
    """The exact worst case; nothing where limits do not suffice. The instance is one to which the module `applies`."""
    table = _fill(instance, limits, 1)
    if table is None:
        return Finding()
    return Finding(table.witness(), table.start().value, Upper.TWO_WARP_DP)


def best_case(instance: Instance, limits: Limits) -> Bounds | None:
    """The exact best case; None where limits do not suffice. The instance is one to which the module `applies`."""
    table = _fill(instance, limits, -1)
    return None if table is None else Bounds(-table.start().value, -table.start().value)


def _fill(instance: Instance, limits: Limits, sense: int) -> "_Table | None":
    with limits.preparing():
        load()
    ports, holdings = _ports(instance)
    if _entries(instance, holdings) * _BYTES_PER_ENTRY > limits.memory_bytes:
        return None
    table = _Table(instance, ports, holdings)
    return table if table.fill(limits, sense) else None


@cache
def load() -> None:
    """Load or compile every loops."""
    instance = Instance.of("CL", 2, Machine("slow", (UnitClass("C", 1, 2), UnitClass("L", 1))))
    table = _Table(instance, *_ports(instance))
    table.fill(Limits(inf), 1)
    table.witness()


class _LegState(NamedTuple):
    """`mover` is the number of the warp that issued last; the rest as in the loops."""

    mover: int
    leg: int
    leg_of_other: int
    age: int
    holding: int


class _Start(NamedTuple):
    """A way to spend cycle 0: who issues, the state then, and its value."""

    value: int
    issuing: tuple[int, ...]
    state: _LegState


class _Table:
    """The values of all states, for one sense at a time."""

    def __init__(self, instance: Instance, ports: loops.Ports, holdings: int) -> None:
        self._instance, self._ports, self._sense = instance, ports, 1
        self._programs = tuple(instance.programs())
        self._warps = _warps(instance, holdings)
        room = max(2, *(int(warp.most.max()) + 2 for warp in self._warps))
        self._scratch = loops.Scratch(*(np.zeros(room, dtype=np.int64) for _ in range(4)))

    def fill(self, limits: Limits, sense: int) -> bool:
        """Fill in all states, the last ones first; False when a limit comes first."""
        self._sense = sense
        first, second = self._warps
        same = self._instance.identical
        step = max(1, _ENTRIES_PER_CALL * len(second.most) // second.width)
        for a in range(len(first.most) - 1, -1, -1):
            for begin in range(a if same else len(second.most) - 1, -1, -step):
                if limits.expired:
                    return False
                end = max(0, begin - step + 1)
                loops.fill(a, begin, end, same, first, second, self._ports, sense, self._scratch)
        return True

    def start(self) -> _Start:
        """Return the best way to spend cycle 0."""
        return max(self._starts(), key=lambda way: way.value)

    def _starts(self) -> Iterator[_Start]:
        first, second = self._warps
        ports = self._ports
        for a in range(len(self._programs[0].starts)):
            for b in range(len(self._programs[1].starts)):
                unit, other = int(first.next[a]), int(second.next[b])
                held = int(ports.taken[unit, 0])
                if loops.clash(unit, other, 0, 0, ports):
                    for leg in range(first.first[a], first.beyond[a]):
                        yield self._begun((0,), _LegState(0, leg, b, 0, held))
                    for leg in range(second.first[b], second.beyond[b]):
                        yield self._begun((1,), _LegState(1, leg, a, 0, int(ports.taken[other, 0])))
                    continue
                for leg in range(first.first[a], first.beyond[a]):
                    for leg_of_other in range(second.first[b], second.beyond[b]):
                        yield self._begun((0, 1), _LegState(0, leg, leg_of_other, 0, int(ports.taken[other, held])))

    def _begun(self, issuing: tuple[int, ...], state: _LegState) -> _Start:
        mover, other = self._warps[state.mover], self._warps[1 - state.mover]
        at = loops.entry(state.leg, state.leg_of_other, state.holding, state.age, mover, other)
        return _Start(int(mover.table[at]), issuing, state)

    def witness(self) -> Schedule:
        """Return a schedule of the value of the start, once the table is filled for the longest one."""
        start = self.start()
        issuing = {0: start.issuing}
        paths: tuple[list[int], list[int]] = ([], [])
        latencies: tuple[list[int], list[int]] = ([], [])
        legs = [_legs(program) for program in self._programs]
        state, cycle = start.state, 0
        for warp in start.issuing:
            paths[warp].append(legs[warp][_leg_of(state, warp)][0])
        while (after := self._next(state, latencies)) is not None:
            later, warps, state = after
            cycle += later
            issuing[cycle] = warps
            for warp in warps:
                paths[warp].append(legs[warp][_leg_of(state, warp)][0])
        cycles = tuple(issuing.get(number, ()) for number in range(start.value))
        chosen = () if self._instance.machine.fixed_latencies else tuple(map(tuple, latencies))
        return Schedule(cycles, tuple(map(tuple, paths)), chosen)

    def _next(
        self, state: _LegState, latencies: tuple[list[int], list[int]]
    ) -> tuple[int, tuple[int, ...], _LegState] | None:
        """Return the cycles until the next event, who issues, and the state then; latencies are noted once settled."""
        mover, other = self._warps[state.mover], self._warps[1 - state.mover]
        own, others = latencies[state.mover], latencies[1 - state.mover]
        a, b, age = state.leg, state.leg_of_other, state.age
        most, most_of_other = int(mover.most[a]), int(other.most[b])
        arguments = (a, b, age, state.holding, mover, other, self._ports, self._sense)
        if mover.next[a] < 0 and other.next[b] < 0:
            own.append(most)
            others.append(most_of_other)
            return None
        if mover.next[a] < 0 or other.next[b] < 0:
            _, cycle, to, to_of_other = loops.alone(*arguments)
            kind = loops.MOVER_IS_LATER if mover.next[a] < 0 else loops.OTHER_IS_LATER
        else:
            cycle, kind, to, to_of_other = loops.follow(*arguments)
        if cycle == 0:
            raise BrokenPromiseError("a state of the table of two warps has a value that no event gives")
        if kind != loops.MOVER_IS_LATER:  # ready by now, and not before this cycle unless a port was held
            own.append(min(most, cycle))
        if kind != loops.OTHER_IS_LATER and age < most_of_other:
            others.append(min(most_of_other, age + cycle))
        now = int(self._ports.after[min(cycle, self._ports.span), state.holding])
        unit, unit_of_other = int(mover.next[a]), int(other.next[b])
        taken, number = self._ports.taken, state.mover
        if kind == loops.BOTH:
            held = int(taken[unit_of_other, taken[unit, now]])
            return cycle, (0, 1), _LegState(number, to, to_of_other, 0, held)
        if kind in (loops.OTHER_IS_LATER, loops.OTHER_WAITS):
            aged = most_of_other if kind == loops.OTHER_WAITS else min(age + cycle, most_of_other)
            return cycle, (number,), _LegState(number, to, b, aged, int(taken[unit, now]))
        aged = most if kind == loops.MOVER_WAITS else min(cycle, most)
        return cycle, (1 - number,), _LegState(1 - number, to_of_other, a, aged, int(taken[unit_of_other, now]))


def _leg_of(state: _LegState, warp: int) -> int:
    return state.leg if state.mover == warp else state.leg_of_other


def _legs(program: Program) -> list[tuple[int, int]]:
    """Return the legs: source (-1 before the first) and target. Those that leave a place come after those to it."""
    found = [(-1, start) for start in program.starts]
    return found + [(number, to) for number, place in enumerate(program.places) for to in place.successors]


def _entries(instance: Instance, holdings: int) -> int:
    """Return how many entries all tables have."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    legs = [len(_legs(program)) for program in instance.programs()]
    ages = [
        sum(1 + (longest[program.places[source].unit] if source >= 0 else 0) for source, _ in _legs(program))
        for program in instance.programs()
    ]
    return holdings * (legs[0] * ages[1] + (0 if instance.identical else legs[1] * ages[0]))


def _warps(instance: Instance, holdings: int) -> tuple[loops.Warp, loops.Warp]:
    """Return both warps with their tables; one and the same where the programs are."""
    first, second = instance.programs()
    columns = [_columns(instance, program, holdings) for program in (first, second)]
    warps = [
        _warp(instance, program, own, int(others[-1]))
        for program, own, others in zip((first, second), columns, reversed(columns), strict=True)
    ]
    return (warps[0], warps[0]) if instance.identical else (warps[0], warps[1])


def _columns(instance: Instance, program: Program, holdings: int) -> list[int]:
    """Return where the entries of every leg begin in a row of the other warp's table, and where they all end."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    ages = (1 + (longest[program.places[source].unit] if source >= 0 else 0) for source, _ in _legs(program))
    return list(accumulate((holdings * count for count in ages), initial=0))


def _warp(instance: Instance, program: Program, columns: list[int], width: int) -> loops.Warp:
    legs, places = _legs(program), program.places
    units = {unit.name: unit for unit in instance.machine.units}
    number = {name: at for at, name in enumerate(units)}
    leaving = Counter(source for source, _ in legs)
    first = list(accumulate(leaving[place] for place in range(-1, program.end)))
    sources = [units[places[source].unit] if source >= 0 else None for source, _ in legs]
    return loops.Warp(
        least=ints([unit.latency.least if unit else 0 for unit in sources]),
        most=ints([unit.latency.most if unit else 0 for unit in sources]),
        last=ints([number[unit.name] if unit else -1 for unit in sources]),
        next=ints([number[places[target].unit] if target < program.end else -1 for _, target in legs]),
        first=ints([first[target] for _, target in legs]),
        beyond=ints([first[target] + leaving[target] for _, target in legs]),
        column=ints(columns),
        table=np.zeros(len(legs) * width, dtype=np.int32),
        width=width,
    )


def _contended_units(instance: Instance) -> tuple[UnitClass, ...]:
    """The classes whose ports an earlier instruction than the last one of a warp can hold, where that can matter.

    A warp holds at most ceil(interval / latency) ports at once, and one less when it is ready again; with a port for
    each of these there is always a free one.
    """
    used = set().union(*(group.program.units for group in instance.groups))
    return tuple(
        unit
        for unit in instance.machine.units
        if unit.name in used
        and unit.interval > unit.latency.least
        and unit.capacity < 2 * ceil(unit.interval / unit.latency.least)
    )


def _span(instance: Instance) -> int:
    """Return the cycles after which every port is free that a warp can wait for."""
    counted = _contended_units(instance)
    return max((1, *(unit.interval for unit in instance.machine.units if unit.capacity == 1 or unit in counted)))


def _holdings(counted: tuple[UnitClass, ...], span: int) -> dict[Holding, int] | None:
    """Return a number for every way in which ports can be held; 0 if none is. None if they are too many."""
    free: Holding = ((),) * len(counted)
    found, waiting = {free: 0}, [free]
    while waiting:
        after = _after(waiting.pop())
        for classes in (
            (),
            *((n,) for n in range(len(counted))),
            *combinations_with_replacement(range(len(counted)), 2),
        ):
            held: Holding | None = after
            for number in classes:
                held = _with_port(held, number, counted[number]) if held is not None else None
            if held is not None and held not in found:
                found[held] = len(found)
                waiting.append(held)
                if len(found) > MAX_HOLDINGS or len(found) * (span + 1) > MAX_PORT_ENTRIES:
                    return None
    return found


def _after(held: Holding) -> Holding:
    """Return one cycle later."""
    return tuple(tuple(left - 1 for left in ports if left > 1) for ports in held)


def _with_port(held: Holding, number: int, unit: UnitClass) -> Holding | None:
    """Return the holding with one more port of this class; None if none is free."""
    if len(held[number]) == unit.capacity:
        return None
    return (*held[:number], (*held[number], unit.interval), *held[number + 1 :])


def _free(ports: tuple[int, ...], unit: UnitClass, count: int) -> int:
    """Return the cycles until a number of ports of the class are free."""
    if count > unit.capacity:
        return _FAR
    missing = count - (unit.capacity - len(ports))
    return ports[missing - 1] if missing > 0 else 0


def _ports(instance: Instance) -> tuple[loops.Ports, int]:
    """Return the ports, and how many holdings there are."""
    units, counted, span = instance.machine.units, _contended_units(instance), _span(instance)
    holdings = _holdings(counted, span)
    if holdings is None:
        raise BrokenPromiseError("the ports of this machine can be held in too many ways")
    taken = np.tile(np.arange(len(holdings)), (len(units), 1))
    one, two = np.zeros_like(taken), np.zeros_like(taken)
    for number, unit in enumerate(counted):
        at = units.index(unit)
        for held, row in holdings.items():
            more = _with_port(held, number, unit)
            taken[at, row] = -1 if more is None else holdings.get(more, -1)
            one[at, row] = _free(held[number], unit, 1)
            two[at, row] = _free(held[number], unit, 2)
    later = np.array([holdings[_after(held)] for held in holdings], dtype=np.int64)
    after = np.empty((span + 1, len(holdings)), dtype=np.int64)
    after[0] = np.arange(len(holdings))
    for cycle in range(span):
        after[cycle + 1] = later[after[cycle]]
    ports = loops.Ports(
        interval=ints([unit.interval for unit in units]),
        sole=np.array([unit.capacity == 1 for unit in units]),
        counted=np.array([unit in counted for unit in units]),
        taken=taken,
        one=one,
        two=two,
        after=after,
        span=span,
        single=instance.machine.issue_width == 1,
    )
    return ports, len(holdings)
