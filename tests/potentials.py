"""Potentials by hand, and the nodes of a schedule by the definition: with all of it before one's eyes."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise, product

from makespan.model.certificate import (
    DELAYED_LABEL,
    FINISHED_LABEL,
    Certificate,
    Potential,
    PotentialNode,
    PotentialTable,
)
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.schedule import Schedule
from makespan.model.simulate.semantics import SmState, WarpIssue, next_state
from makespan.verify import delays
from tests.oracle import standing

END = PotentialNode(None, ())
Looking = Callable[[PotentialNode], bool]
"""Whether a situation, a node without a label, is no stop."""


class Shape:
    """The kinds of a certificate.

    Args:
        instance: as it is, without delays as places.
        extra: thresholds above the capacities.
    """

    def __init__(self, instance: Instance, extra: tuple[int, ...] | int = 0) -> None:
        self.instance, self.whole = instance, delays.with_delay_places(instance)
        used = set().union(*(group.program.units for group in instance.groups))
        self.units = [unit for unit in instance.machine.units if unit.name in used]
        self.classes = tuple(unit.name for unit in self.units)
        self.capacities = tuple(unit.capacity for unit in self.units)
        above = (extra,) * len(self.units) if isinstance(extra, int) else extra
        self.thresholds = tuple(capacity + more for capacity, more in zip(self.capacities, above, strict=True))
        self.slow = [unit for unit in self.units if unit.interval > 1]

    def situations(self) -> Iterator[PotentialNode]:
        """All there can be."""
        lasts = (*range(len(self.units)), *([] if self.whole is self.instance else [None]))
        ready = (range(most + 1) for most in self.thresholds)
        free = (range(unit.capacity + 1) for unit in self.slow)
        for last, *kind in product(lasts, *ready, *free):
            yield PotentialNode(last, tuple(kind))

    def nodes(self, looking: Looking) -> Iterator[PotentialNode]:
        """All there can be."""
        labels = (FINISHED_LABEL, DELAYED_LABEL, *range(len(self.units)))
        for situation in self.situations():
            yield from (replace(situation, label=label) for label in labels) if looking(situation) else (situation,)

    def short(self, situation: PotentialNode) -> bool:
        """Whether not all ports of every class other than z's would be used."""
        return situation.last is None or any(
            count < capacity
            for x, (count, capacity) in enumerate(zip(situation.kind, self.capacities, strict=False))
            if x != situation.last
        )

    def potential(self, last_group: int, tables: Mapping[PotentialNode, PotentialTable], front: int = 0) -> Potential:
        numbers = {table: number for number, table in enumerate(dict.fromkeys(tables.values()))}
        nodes = tuple((node, numbers[table]) for node, table in tables.items())
        return Potential(last_group, self.classes, self.thresholds, front, tuple(numbers), nodes)

    def situation(self, state: SmState, on: list[int], last_warp: int) -> PotentialNode:
        """Of a state in which `last_warp` has not finished; the warps stand `on` places of the expansion."""
        ready = dict.fromkeys(self.classes, 0)
        last = None
        for warp, (program, place) in enumerate(zip(self.whole.programs(), on, strict=True)):
            unit = program.places[place].unit if place < program.end else DELAY
            if warp == last_warp:
                last = None if unit == DELAY else self.classes.index(unit)
            elif unit != DELAY:
                ready[unit] += 1
        held = {unit.name: len(ports) for unit, ports in zip(self.instance.machine.units, state.held, strict=True)}
        return PotentialNode(
            last,
            (*map(min, ready.values(), self.thresholds), *(unit.capacity - held[unit.name] for unit in self.slow)),
        )

    def passed(
        self, states: Iterable[tuple[SmState, list[int]]], last_warp: int, looking: Looking
    ) -> list[PotentialNode]:
        """The node of every state of a schedule, and the end."""
        *before, _ = states
        found, label = [END], FINISHED_LABEL
        for state, on in reversed(before):
            situation = self.situation(state, on, last_warp)
            if looking(situation):
                found.append(replace(situation, label=label))
            else:
                found.append(situation)
                label = DELAYED_LABEL if situation.last is None else situation.last
        return found[::-1]

    def value(self, table: PotentialTable, state: SmState, on: list[int], last_warp: int) -> int:
        """What a table says of a state."""
        total = table.constant
        for warp, (group, place) in enumerate(zip(self.instance.group_of_warp(), on, strict=True)):
            if place < len(table.others[group]):
                total += table.last[place] if warp == last_warp else table.others[group][place]
        held = {unit.name: ports for unit, ports in zip(self.instance.machine.units, state.held, strict=True)}
        for unit, row in zip(self.slow, table.ports, strict=True):
            total += sum(row[left - 1] for left in held[unit.name])
        return total


def trace(instance: Instance, schedule: Schedule) -> Iterator[tuple[SmState, list[int]]]:
    """By the definition: every state of a schedule, and where each warp stands once latencies are places."""
    latencies = {unit.name: unit.latency for unit in instance.machine.units}
    programs = tuple(instance.programs())
    first = [list(accumulate((latencies[place.unit].most for place in p.places), initial=0)) for p in programs]
    paths = [[*path, program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    chosen = [list(row) for row in schedule.latencies] or [
        [latencies[program.places[place].unit].most for place in path]
        for path, program in zip(schedule.paths, programs, strict=True)
    ]
    state, done = standing(instance, *(path[0] for path in paths)), [0] * len(paths)
    for cycle in (None, *schedule.cycles):
        moves = []
        for warp in cycle or ():
            done[warp] += 1
            moves.append(WarpIssue(warp, paths[warp][done[warp]], chosen[warp][done[warp] - 1]))
        state = state if cycle is None else next_state(instance, state, moves)
        on = []
        for warp, (place, wait) in enumerate(zip(state.places, state.waits, strict=True)):
            on.append(first[warp][place] if not wait else first[warp][paths[warp][done[warp] - 1] + 1] - wait)
        yield state, on


def random_tables(
    draw: random.Random, shape: Shape, last_group: int, nodes: Iterable[PotentialNode]
) -> dict[PotentialNode, PotentialTable]:
    """Tables that differ from node to node; those of the others fall on delays, and little where warps stay."""
    equal = draw.random() < 0.5
    shared = [
        [
            draw.randint(-50, 50) + (1000 * (group.program.end - number) if place.unit == DELAY else 0)
            for number, place in enumerate(group.program.places)
        ]
        for group in shape.whole.groups
    ]
    tables = {}
    for node in nodes:
        noise = 0 if equal else draw.randint(-3, 3)
        others = tuple(tuple(number + noise for number in row) for row in shared)
        last = tuple(draw.randint(-50, 50) for _ in shared[last_group])
        ports = tuple(tuple(draw.randint(-50, 50) for _ in range(unit.interval - 1)) for unit in shape.slow)
        tables[node] = PotentialTable(others, last, draw.randint(-50, 50), ports)
    return tables


def by_hand(instance: Instance, extra: int = 0, looking: Looking = lambda situation: False) -> Certificate:
    """For any machine: what is left to issue, weighed with its interval, the delays that are left, and held ports.

    In every cycle somebody issues (interval down, interval - 1 up for the port) or z is on a delay, or z waits for
    ports that are held for one cycle less afterwards.
    """
    shape = Shape(instance, extra)
    weights = {unit.name: unit.interval for unit in shape.whole.machine.units}
    left = []
    for group in shape.whole.groups:
        row = [0] * (group.program.end + 1)
        for place in range(group.program.end - 1, -1, -1):
            unit, after = group.program.places[place]
            row[place] = weights[unit] + max(row[then] for then in after)
        left.append(tuple(row[:-1]))
    ports = tuple(tuple(range(1, unit.interval)) for unit in shape.slow)
    potentials = [
        shape.potential(last, dict.fromkeys(shape.nodes(looking), PotentialTable(tuple(left), left[last], 0, ports)))
        for last in range(len(shape.whole.groups))
    ]
    begun = zip(shape.whole.groups, left, strict=True)
    upper = sum(group.warps * max(row[start] for start in group.program.starts) for group, row in begun)
    return Certificate(upper, tuple(potentials))


def closed_by_hand(instance: Instance, step: int = 0, extra: int = 0, halves: int = 2) -> Certificate:
    """For strings over two classes on a basic machine: pairs of neighbours of different classes, as in theorem S+.

    A letter does 1 / capacity of a cycle's work and shares up to as much with the letters around it. All numbers here
    are in units of 1 / (2 * the product of the capacities); A is the class with more ports.

    Args:
        instance: the question.
        step: how much more than 1 / (ports of A) an A letter may be owed by those before it; in units of 1 / product.
        extra: thresholds above the capacities.
        halves: of the fee that z pays for this at each change from B to A.
    """
    shape = Shape(instance, extra)
    a, b = sorted(range(2), key=lambda x: -shape.capacities[x])
    one = shape.capacities[a] * shape.capacities[b]
    mass = {name: one // capacity for name, capacity in zip(shape.classes, shape.capacities, strict=True)}
    first, second = shape.classes[a], shape.classes[b]
    fee = halves * (shape.capacities[a] - 1) * step
    strings = [group.program.letters or "" for group in instance.groups]
    rows: dict[int, list[tuple[int, ...]]] = {a: [], b: []}  # of the others, by label
    for string in strings:
        values, owed = _owed(string, mass, first, mass[first] + step)
        left = [2 * mass[letter] - value for letter, value in zip(string, values, strict=True)]
        for label, sign in ((a, 1), (b, -1)):
            rows[label].append(tuple(sum(left[p:]) + sign * debt for p, debt in enumerate(owed)))
    upper, potentials = 0, []
    for last, string in enumerate(strings):
        fees = [fee * sum(pair == (second, first) for pair in pairwise(string[p:])) for p in range(len(string))]
        common = [2 * one * (len(string) - p) + paid for p, paid in enumerate(fees)]
        away = {a: 2 * one + fee, b: 2 * one}  # where z is not in the class of the label
        tables = {
            x: PotentialTable(
                tuple(rows[x]),
                tuple(v - away[x] * (letter != shape.classes[x]) for v, letter in zip(common, string, strict=True)),
                0,
            )
            for x in (a, b)
        }
        ends = {FINISHED_LABEL: shape.classes.index(string[-1]), DELAYED_LABEL: a, a: a, b: b}
        nodes = shape.nodes(lambda situation: not shape.short(situation))
        chosen = {node: tables[node.last or 0 if node.label is None else ends[node.label]] for node in nodes}
        potentials.append(shape.potential(last, chosen))
        everybody = sum(group.warps * row[0] for group, row in zip(instance.groups, rows[a], strict=True))
        upper = max(upper, (common[0] + everybody - rows[a][last][0]) // (2 * one))
    return Certificate(upper, tuple(potentials))


def _owed(string: str, mass: dict[str, int], first: str, cap: int) -> tuple[list[int], list[int]]:
    """What each letter shares, as much as possible in all, and what is owed before it, positive towards `first`."""
    best: dict[int, tuple[int, list[int], list[int]]] = {0: (0, [], [])}
    for at, letter in enumerate(string):
        after: dict[int, tuple[int, list[int], list[int]]] = {}
        following = string[at + 1 : at + 2]
        for debt, (total, values, owed) in best.items():
            for value in range(mass[letter] + 1):
                then = debt - value if letter == first else debt + value
                fits = (
                    then == 0
                    or (then > 0 and following == first and then <= cap)
                    or (then < 0 and following not in ("", first))
                )
                if fits and total + value > after.get(then, (-1, [], []))[0]:
                    after[then] = total + value, [*values, value], [*owed, debt]
        best = after
    _, values, owed = best[0]
    return values, owed


def scaled(made: Certificate, factor: int) -> Certificate:
    """The same proof in finer units."""

    def rows(values: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(factor * value for value in row) for row in values)

    def finer(table: PotentialTable) -> PotentialTable:
        (last,) = rows((table.last,))
        return PotentialTable(rows(table.others), last, factor * table.constant, rows(table.ports))

    potentials = (replace(item, tables=tuple(map(finer, item.tables))) for item in made.potentials)
    return replace(made, potentials=tuple(potentials))
