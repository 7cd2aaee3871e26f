"""Two warps on any machine: the exact longest or shortest schedule, from the cycles in which a warp becomes ready.

A state is a moment in which one warp is ready at its place, the other one will be at its own in `wait` cycles, and of
each class some ports are still held. Latencies are chosen at issue: this is the definition, read backwards, where the
engine goes from event to event (docs/theory.md, 8).
"""

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import UnitClass
from makespan.model.program import Program
from makespan.verify.machine_form import used_units
from makespan.verify.paths import Choose
from makespan.verify.refusal import ProofBudget, ProofSteps, TooMuchWork

MOST_WORK = 60_000_000  # steps, which take about a minute
MOST_CYCLES = 20_000_000  # numbers that are kept at one time
MOST_HELD = 1_000
_SLICED = 50  # values of a slice are compared in the time of one step


_PortHolds = tuple[tuple[int, ...], ...]


def by_waits(instance: Instance, choose: Choose = max, effort: ProofBudget | None = None) -> int | None:
    """Return the longest (`max`) or shortest (`min`) schedule of two warps without barriers, on any machine."""
    # None means that it takes too much work.
    ports = _PortStates.of(instance)
    try:
        with (effort or ProofBudget(1)).part(MOST_WORK) as work:
            if ports is None or _least_work(instance) > work.left:
                return None
            return _PairRecursion(instance, ports, choose, work).value()
    except TooMuchWork:
        return None


class _PortStates(NamedTuple):
    """All ways in which ports can be held, each with a number; it is 0 if all ports are free.

    Args:
        span: the cycles after which all ports are free in any case.
        later: `later[cycles][held]` is the number after these cycles, at most `span`.
        taken: by class the number once a port is taken, or -1.
        free: by class the cycles until a port can be taken.
        lasting: by class the cycles until all ports are free.
        before: the numbers with which a cycle can begin, ordered by all cycles that are left of holds.
    """

    span: int
    later: list[list[int]]
    taken: dict[str, list[int]]
    free: dict[str, list[int]]
    lasting: dict[str, list[int]]
    before: list[int]

    @classmethod
    def of(cls, instance: Instance) -> "_PortStates | None":
        used = used_units(instance)
        units = list(filter(_can_block, used.values()))
        states = _all_port_states(units)
        if states is None:
            return None
        number = dict(zip(states, count()))
        one_later = [number[_one_cycle_later(held)] for held in states]
        later = [list(range(len(states)))]
        span = max((unit.interval for unit in units), default=1)
        for _ in range(span):
            later.append([one_later[held] for held in later[-1]])
        taken = dict.fromkeys(used, later[0])
        free = dict.fromkeys(used, [0] * len(states))
        lasting = {}
        for at, unit in enumerate(units):
            taken[unit.name] = [number.get(_with(held, at, unit), -1) for held in states]
            free[unit.name] = [_until_free(held[at], unit) for held in states]
            lasting[unit.name] = [max(held[at], default=0) for held in states]
        before = sorted(set(one_later), key=lambda n: sum(map(sum, states[n])))
        return cls(span, later, taken, free, lasting, before)

    def after(self, held: int, cycles: int) -> int:
        """Return how ports are held `cycles` later."""
        return self.later[min(cycles, self.span)][held]


def _until_free(held: Sequence[int], unit: UnitClass) -> int:
    return held[0] if len(held) == unit.capacity else 0


def _can_block(unit: UnitClass) -> bool:
    """Return whether two warps, of which one is ready, can hold all ports, or both need the last one."""
    # Of one warp's instructions, issued at least the least latency apart, ceil(interval / latency) overlap. Ports of
    # all other classes need not be kept.
    return unit.capacity < 2 * -(-unit.interval // unit.latency.least)


def _all_port_states(units: list[UnitClass]) -> list[_PortHolds] | None:
    """Return all ways to hold ports in a cycle in which up to two are taken; None if they are too many."""
    found: dict[_PortHolds, None] = {((),) * len(units): None}
    waiting = list(found)
    while waiting:
        before = _one_cycle_later(waiting.pop())
        once = [_with(before, at, unit) for at, unit in enumerate(units)]
        twice = [_with(held, at, unit) for held in once if held for at, unit in enumerate(units)]
        for held in (before, *once, *twice):
            if held and held not in found:
                found[held] = None
                waiting.append(held)
        if len(found) > MOST_HELD:
            return None
    return list(found)


def _one_cycle_later(held: _PortHolds) -> _PortHolds:
    return tuple(tuple(cycles - 1 for cycles in ports if cycles > 1) for ports in held)


def _with(held: _PortHolds, at: int, unit: UnitClass) -> _PortHolds:
    """Return the ports that are held once one more is taken; no ports at all if none is free."""
    if len(held[at]) == unit.capacity:
        return ()
    return (*held[:at], (*held[at], unit.interval), *held[at + 1 :])


def _longest_waits(instance: Instance, program: Program) -> list[int]:
    """Return for every place and the end the most cycles after which a warp can become ready there, at least 1."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    waits = [1] * (program.end + 1)
    for unit, successors in program.places:
        for after in successors:
            waits[after] = max(waits[after], longest[unit])
    return waits


def _soonest(instance: Instance, program: Program) -> list[dict[str, int]]:
    """Return for every place the fewest cycles after which a warp that is ready there can be ready for each class."""
    soonest: list[dict[str, int]] = [{} for _ in range(program.end + 1)]
    least = {unit.name: unit.latency.least for unit in instance.machine.units}
    for number in range(program.end - 1, -1, -1):
        unit, successors = program.places[number]
        for after in successors:
            for wanted, cycles in soonest[after].items():
                later = least[unit] + cycles
                soonest[number][wanted] = min(later, soonest[number].get(wanted, later))
        soonest[number][unit] = 0
    return soonest


def _least_work(instance: Instance) -> int:
    first, second = instance.programs()
    return sum(_longest_waits(instance, first)) * second.end + sum(_longest_waits(instance, second)) * first.end


class _PlacePair(NamedTuple):
    """Both warps at places of theirs: for `ready` warp 0 or 1 and the ports held, the cycles left by `wait`.

    `falling` is the same less `wait`, with all ports free.
    """

    rows: tuple[dict[int, list[int]], dict[int, list[int]]]
    falling: tuple[list[int], list[int]]


class _PairRecursion:
    """The recursion, from the ends of both programs back to their beginnings."""

    def __init__(self, instance: Instance, ports: _PortStates, choose: Choose, work: ProofSteps) -> None:
        self._ports, self._choose, self._work = ports, choose, work
        self._wide = instance.machine.issue_width != 1
        self._latency = {unit.name: unit.latency for unit in instance.machine.units}
        self._programs = tuple(instance.programs())
        self._waits = [_longest_waits(instance, program) for program in self._programs]
        self._soonest = [_soonest(instance, program) for program in self._programs]
        self._alone = [self._left_alone(program) for program in self._programs]
        self._pairs: list[list[_PlacePair]] = []
        self._room = ProofSteps(MOST_CYCLES)

    def value(self) -> int:
        """Return the cycles that all take, with the best choice of where to start."""
        first, second = self._programs
        lowest = {after: p for p in range(first.end - 1, -1, -1) for after in first.places[p].successors}
        self._pairs = [[] for _ in range(first.end + 1)]
        found, kept = [], dict[int, int]()
        for p in range(first.end, -1, -1):
            room = self._room.left
            self._pairs[p] = [_PlacePair(({}, {}), ([], []))] * (second.end + 1)
            for q in range(second.end, -1, -1):
                self._fill(p, q)
                if p in first.starts and q in second.starts:
                    found.append(self._pairs[p][q].rows[0][0][0])
            kept[p] = room - self._room.left
            for after in first.places[p].successors if p < first.end else ():
                if lowest[after] == p:
                    self._pairs[after] = []  # nothing that comes needs it
                    self._room.left += kept[after]
        return self._choose(found)

    def _left_alone(self, program: Program) -> list[dict[int, int]]:
        """Return by place and ports held the cycles that a warp that is ready there takes without the other."""
        ports = self._ports
        left: list[dict[int, int]] = [{} for _ in range(program.end)] + [dict.fromkeys(ports.before, 0)]
        for place in range(program.end - 1, -1, -1):
            unit, successors = program.places[place]
            latency = self._latency[unit]
            cycles = self._choose((latency.least, latency.most))  # alone, who goes on later does not end sooner
            for held in ports.before:
                wait = ports.free[unit][held]
                issued = ports.taken[unit][ports.after(held, wait)]
                left[place][held] = (
                    wait + cycles + self._choose(left[after][ports.after(issued, cycles)] for after in successors)
                )
        return left

    def _fill(self, p: int, q: int) -> None:
        places = (p, q)
        both: dict[int, int] = {}
        for held in self._ports.before:  # those that are free sooner come first
            both[held] = self._both_ready(places, held, both)
        rows: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
        for ready, own in enumerate(rows):
            for held in self._ports.before:
                own[held] = self._row(ready, places, held, both, own)
        falling = tuple([left - wait for wait, left in enumerate(own[0])] for own in rows)
        self._pairs[p][q] = _PlacePair(rows, (falling[0], falling[1]))

    def _both_ready(self, places: tuple[int, int], held: int, both: dict[int, int]) -> int:
        ports, programs = self._ports, self._programs
        for warp in (0, 1):
            if places[warp] == programs[warp].end:  # the other one is alone; at its end that takes no cycles
                return self._alone[1 - warp][places[1 - warp]][held]
        units = [programs[warp].places[places[warp]].unit for warp in (0, 1)]
        free = [ports.free[unit][held] for unit in units]
        if wait := min(free):
            return wait + both[ports.after(held, wait)]
        first = ports.taken[units[0]][held]
        if self._wide and not any(free) and ports.free[units[1]][first] == 0:
            return self._choose(self._both_issue(places, ports.taken[units[1]][first]))
        ways = (self._issue(warp, places, 1, ports.taken[units[warp]][held]) for warp in (0, 1) if not free[warp])
        return self._choose(chain.from_iterable(ways))

    def _both_issue(self, places: tuple[int, int], held: int) -> Iterator[int]:
        unit, successors = self._programs[1].places[places[1]]
        latency = self._latency[unit]
        for after in successors:
            for wait in range(latency.least, latency.most + 1):
                yield from self._issue(0, (places[0], after), wait, held)

    def _row(
        self, ready: int, places: tuple[int, int], held: int, both: dict[int, int], sooner: dict[int, list[int]]
    ) -> list[int]:
        """Return the cycles left, by the cycles until the other warp is ready, too."""
        # `sooner` has the rows for all ways in which ports are free sooner.
        ports, own, other = self._ports, places[ready], places[1 - ready]
        waits = range(1, self._waits[1 - ready][other] + 1)
        self._work.spend(len(waits))
        self._room.spend(len(waits))
        if own == self._programs[ready].end:
            alone = self._alone[1 - ready][other]
            return [both[held], *(wait + alone[ports.after(held, wait)] for wait in waits)]
        if other == self._programs[1 - ready].end:
            left = self._alone[ready][own][held]
            return [both[held], *(max(left, wait) for wait in waits)]
        unit = self._programs[ready].places[own].unit
        if free := ports.free[unit][held]:  # time passes until a port is free, or the other warp is ready
            rest = sooner[ports.after(held, free)]
            row = [both[held], *(wait + both[ports.after(held, wait)] for wait in waits[:free])]
            return row + [free + left for left in rest[1 : max(1, len(waits) - free + 1)]]
        matters = min(len(waits), self._matters(ready, own, held))
        issued = ports.taken[unit][held]
        row = [both[held], *(self._choose(self._issue(ready, places, wait, issued)) for wait in waits[:matters])]
        return row if matters == len(waits) else row + sooner[0][len(row) :]

    def _matters(self, ready: int, own: int, held: int) -> int:
        """Return a wait of the other warp from which on no warp finds a port held any more."""
        soonest = self._soonest[ready][own]
        lasting = {name: cycles[held] for name, cycles in self._ports.lasting.items()}
        if held and all(soonest.get(name, cycles) >= cycles for name, cycles in lasting.items()):
            return max(lasting.values())
        return MOST_CYCLES

    def _issue(self, ready: int, places: tuple[int, int], wait: int, held: int) -> Iterator[int]:
        """Yield the cycles left for each choice, where one warp issues and the other is ready in `wait` >= 1 cycles."""
        # `held` has the port of the instruction already. The shorter of the latency and `wait` passes.
        ports, choose = self._ports, self._choose
        unit, successors = self._programs[ready].places[places[ready]]
        least, most = self._latency[unit].least, self._latency[unit].most
        then = ports.after(held, wait)
        self._work.spend(len(successors) * (2 + (most - least) // _SLICED))
        for after in successors:
            pair = self._pairs[after][places[1]] if ready == 0 else self._pairs[places[0]][after]
            if most >= wait:  # the other warp is ready before it, or in the same cycle
                yield wait + choose(pair.rows[1 - ready][then][max(least - wait, 0) : most - wait + 1])
            for latency in range(least, min(most + 1, wait, ports.span)):
                yield latency + pair.rows[ready][ports.after(held, latency)][wait - latency]
            # if all ports are free by then, the row depends on the latency through the rest of the wait alone
            soonest, latest = max(least, ports.span), min(most, wait - 1)
            if soonest <= latest:
                yield wait + choose(pair.falling[ready][wait - latest : wait - soonest + 1])
