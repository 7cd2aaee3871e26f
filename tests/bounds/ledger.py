"""The proof of theorem E as a program: its inequalities, evaluated before every cycle of a random schedule.

The names are those of docs/theory.md, 3. Nothing is shared with the bound: the schedule, the weights and the chain that
stands for z where there are barriers are made here, for strings. Masses are whole numbers, `scale` to a port-cycle.
"""

import random
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from itertools import takewhile
from math import lcm
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import BARRIER


@dataclass
class Issue:
    """One instruction."""

    unit: str
    cycle: int
    latency: int

    @property
    def ready(self) -> int:
        return self.cycle + self.latency


@dataclass
class Run:
    """A schedule: for every warp its segments between barriers, and its block."""

    segments: list[list[list[Issue]]]
    block: tuple[int, ...]

    @property
    def end(self) -> int:
        return max(one.ready for warp in self.segments for segment in warp for one in segment)


def random_run(draw: random.Random, instance: Instance) -> Run:
    """Any work-conserving schedule of strings; some prefer one warp, some hold one back."""
    units = {unit.name: unit for unit in instance.machine.units}
    letters = [program.letters or "" for program in instance.programs()]
    block = instance.block_of_warp() if instance.has_barriers else (0,) * len(letters)
    at, ready = [0] * len(letters), [0] * len(letters)
    run = Run([[[]] for _ in letters], block)
    held: dict[str, list[int]] = {name: [] for name in units}  # until when
    rank, style, now = [draw.random() for _ in letters], draw.random(), 0

    def pass_barriers() -> None:
        moved = True
        while moved:
            moved = False
            for own in set(block):
                crew = [w for w in range(len(letters)) if block[w] == own]
                there = [w for w in crew if at[w] < len(letters[w]) or ready[w] > now]
                if there and all(ready[w] <= now and letters[w][at[w] : at[w] + 1] == BARRIER for w in there):
                    moved = True
                    for warp in there:
                        at[warp] += 1
                        run.segments[warp].append([])

    while True:
        pass_barriers()
        if all(place == len(string) and wait <= now for place, string, wait in zip(at, letters, ready, strict=True)):
            return run
        for name, unit in units.items():
            held[name] = [until for until in held[name] if until > now]
            able = [w for w in range(len(letters)) if ready[w] <= now and letters[w][at[w] : at[w] + 1] == name]
            able.sort(key=lambda w: draw.random() if style < 0.4 else rank[w] - at[w] * (style > 0.7) + 9 * (w == 0))
            for warp in able[: unit.capacity - len(held[name])]:
                latency = draw.choice((unit.latency.least, unit.latency.most, draw.randint(*_range(unit))))
                run.segments[warp][-1].append(Issue(name, now, latency))
                held[name].append(now + unit.interval)
                at[warp], ready[warp] = at[warp] + 1, now + latency
        if draw.random() < 0.05:
            rank = [draw.random() for _ in letters]
        now += 1


def _range(unit: UnitClass) -> tuple[int, int]:
    return unit.latency.least, unit.latency.most


def chain(run: Run) -> tuple[list[Issue], list[list[Issue]]]:
    """The instructions of the chain that keeps everybody waiting, and the segments of all others."""
    last = max(range(len(run.segments)), key=lambda w: max(one.ready for segment in run.segments[w] for one in segment))
    mine, others = list[Issue](), list[list[Issue]]()
    members, opened = dict[int, int](), 0
    for phase in range(len(run.segments[last])):
        crew = [w for w in range(len(run.segments)) if run.block[w] == run.block[last] and len(run.segments[w]) > phase]
        if phase == len(run.segments[last]) - 1:
            crew = [last]
        come = [(run.segments[w][phase][-1].ready if run.segments[w][phase] else opened, w) for w in crew]
        opened, members[phase] = max(come)
        mine += run.segments[members[phase]][phase]
    for warp, segments in enumerate(run.segments):
        others += [segment for phase, segment in enumerate(segments) if segment and members.get(phase) != warp]
    return mine, others


def scan(letters: list[str], mass: dict[str, int], caps: dict[str, int]) -> tuple[list[int], list[int]]:
    """What every instruction gives to the pair that it begins, and to the one that ended with its run."""
    opening, closing, owed = list[int](), list[int](), 0
    for at, letter in enumerate(letters):
        own = mass.get(letter, 0)
        closing.append(min(owed, own))
        owed -= closing[-1]
        after = letters[at + 1] if at + 1 < len(letters) else letter
        run = sum(1 for _ in takewhile(after.__eq__, letters[at + 1 :]))
        could = 0 if after == letter else min(own - closing[-1], caps.get(after, 0), run * mass.get(after, 0))
        assert after == letter or not owed
        owed += could
        opening.append(could)
    return opening, closing


def scale(machine: Machine, counted: frozenset[str]) -> int:
    """In how many units a port-cycle of one port is counted."""
    return lcm(*(unit.capacity for unit in machine.units if unit.name in counted))


def masses(machine: Machine, counted: frozenset[str]) -> dict[str, int]:
    """Of an instruction, by class."""
    whole = scale(machine, counted)
    return {unit.name: unit.interval * whole // unit.capacity for unit in machine.units if unit.name in counted}


@dataclass
class Unit:
    """So much mass that a pair opens in one cycle and closes in a later one."""

    slot: str
    opened: int
    toward: str
    closed: int
    mass: int


@dataclass
class Mode:
    """From the cycle in which z is ready for a run of equal letters on; `last` is the issue of its last one."""

    unit: str
    begin: int
    last: int
    end: int
    waits: int = 0  # cross waits, all at the beginning


class UnitLedger:
    """The units that pairs open and close, and what of them counts before a cycle."""

    of: dict[str, UnitClass]
    counted: Set[str]
    mine: list[Issue]
    units: list[Unit]
    horizon: dict[str, int]

    def own_ports(self) -> dict[tuple[str, int], int]:
        """The cycles in which z holds its port, of classes with one, with the cycle of its issue."""
        return {
            (one.unit, one.cycle + q): one.cycle
            for one in self.mine
            for q in range(self.of[one.unit].interval)
            if self.of[one.unit].capacity == 1
        }

    def match(self, slot: str, toward: str, opening: list[tuple[int, int]], closing: list[tuple[int, int]]) -> None:
        opens, closes = [list(part) for part in opening], [list(part) for part in closing]
        while opens:
            mass = min(opens[0][1], closes[0][1])
            assert opens[0][0] < closes[0][0], "a unit is closed later than it is opened"
            self.units.append(Unit(slot, opens[0][0], toward, closes[0][0], mass))
            for side in (opens, closes):
                side[0][1] -= mass
                if not side[0][1]:
                    side.pop(0)

    def tally(self, t: int, mode: Mode) -> "Tally":
        """What counts in cycle t; the names are those of the proof."""
        x, horizon = mode.unit, self.horizon[mode.unit]
        matured, v_of = dict.fromkeys(self.counted, 0), dict.fromkeys(self.counted, 0)
        e, q = dict[str, int](), dict[str, int]()
        chi = max(0, mode.begin + mode.waits - t) if x in self.counted else 0
        for unit in self.units:
            if unit.opened >= t:
                continue
            ripe = unit.opened + self.horizon[unit.slot] <= t
            watched = unit.slot == x and unit.opened < mode.last and not ripe
            if unit.closed >= t:
                if ripe:
                    matured[unit.toward] += unit.mass
                elif not watched:
                    v_of[unit.slot] += unit.mass
            elif watched and unit.closed >= mode.begin:
                e[unit.toward] = e.get(unit.toward, 0) + unit.mass
            old = unit.slot == x and unit.opened < mode.begin <= unit.closed
            if old and t <= unit.opened + horizon - 1 < t + chi:
                q[unit.toward] = q.get(unit.toward, 0) + unit.mass
        return Tally(matured, v_of, e, q, chi)


class Tally(NamedTuple):
    """Mass by class: of ripe units, of open ones by slot, of watched ones that are closed, of old ones; and chi."""

    matured: dict[str, int]
    v_of: dict[str, int]
    e: dict[str, int]
    q: dict[str, int]
    chi: int


@dataclass
class Ledger(UnitLedger):
    """B, and everything it is compared with.

    Args:
        counted: the set S.
        caps: the most that a pair takes of its second class; at least the mass.
        crew: how many warps there are besides z.
        without: what is left out of the proof on purpose, to see that the inequalities notice.
        late: the cycles in which some warp is withheld because of a line (docs/theory.md, 17).
        kept: those in which z is.
    """

    machine: Machine
    counted: frozenset[str]
    mine: list[Issue]
    others: list[list[Issue]]
    caps: dict[str, int]
    crew: int
    without: str = ""
    late: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    units: list[Unit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.of = {unit.name: unit for unit in self.machine.units}
        self.scale = scale(self.machine, self.counted)
        self.mass = masses(self.machine, self.counted)
        self.price = {name: (cap - self.mass[name]) * self._late(name) for name, cap in self.caps.items()}
        self.end = self.mine[-1].ready
        self.horizon = {name: unit.latency.most - (self.without == "latency") for name, unit in self.of.items()}
        self.own = self.own_ports()
        self._modes()
        self._masses()

    def _late(self, name: str) -> int:
        """How many warps can be amid closing what is open toward a class, or ready for it, while a port is free."""
        unit = self.of[name]
        latency = 1 if self.without == "delays" else unit.latency.most
        late = unit.capacity * -(-latency // unit.interval) - 1
        return 0 if self.without == "price" else min(self.crew, late)

    def _modes(self) -> None:
        self.modes: list[Mode] = []
        self.hits: dict[int, str] = {}
        self.crossings: set[int] = set()
        self.slack: dict[int, int] = {}
        self.waits_for_lines = 0
        before = 0
        for number, one in enumerate(self.mine):
            if not self.modes or self.modes[-1].unit != one.unit:
                self.modes.append(Mode(one.unit, before, one.cycle, one.ready))
            mode = self.modes[-1]
            mode.last, mode.end = one.cycle, one.ready
            for t in range(before, one.cycle):
                if (one.unit, t) not in self.own:
                    if t in self.kept:
                        self.waits_for_lines += 1
                    else:
                        self.hits[t] = one.unit
                elif mode.begin == before and number:
                    mode.waits += 1
                    if one.unit in self.counted:
                        self.crossings.add(t)
            before = one.ready
            turns = number + 1 < len(self.mine) and self.mine[number + 1].unit != one.unit
            if turns and one.unit in self.counted and self.without != "slack":
                unit = self.of[one.unit]
                self.slack[one.ready] = max(0, max(unit.latency.most, unit.interval) - one.latency)

    def _masses(self) -> None:
        """What others' port-cycles do to B, and the units that pairs open."""
        self.change = [0] * self.end
        self.blocking_closing = [0] * self.end
        self.total = self.weights = 0
        blocked = [0] * self.end
        for segment in self.others:
            letters = [one.unit for one in segment]
            opening, closing = scan(letters, self.mass, self.caps)
            if self.without == "disjoint":
                opening = [
                    min(self.mass.get(a, 0), self.mass.get(b, 0)) * (a != b)
                    for a, b in zip(letters, [*letters[1:], ""], strict=True)
                ]
                closing = [0, *opening[:-1]]
            self.weights += sum(opening)
            for j, one in enumerate(segment):
                if one.unit not in self.counted:
                    continue
                self.total += self.mass[one.unit]
                for cycle, mass in self._parts(one, 0, self.mass[one.unit]):
                    if cycle < self.end:
                        if self.hits.get(cycle) == one.unit:
                            blocked[cycle] += mass
                        else:
                            self.change[cycle] += mass
                for cycle, mass in self._closing(one, closing[j]):
                    if cycle < self.end:
                        self.change[cycle] -= mass
                        if self.hits.get(cycle) == one.unit:
                            self.blocking_closing[cycle] += mass
                if opening[j]:
                    toward = segment[j + 1].unit
                    run = takewhile(lambda k: letters[k] == toward, range(j + 1, len(letters)))  # noqa: B023 - used at once
                    closes = [part for k in run for part in self._closing(segment[k], closing[k])]
                    self.match(one.unit, toward, self._parts(one, 0, opening[j]), closes)
        for cycle, unit in self.hits.items():
            assert unit not in self.counted or blocked[cycle] == self.scale, "a hit blocks a mass of one"

    def _parts(self, one: Issue, first: int, end: int) -> list[tuple[int, int]]:
        """The port-cycles in which the mass from `first` to `end` of an instruction lies."""
        per_cycle = self.scale // self.of[one.unit].capacity
        found = []
        while first < end:
            cycle = first // per_cycle
            mass = min(end, (cycle + 1) * per_cycle) - first
            found.append((one.cycle + cycle, mass))
            first += mass
        return found

    def _closing(self, one: Issue, mass: int) -> list[tuple[int, int]]:
        return self._parts(one, self.mass[one.unit] - mass, self.mass[one.unit])

    def inequalities(self) -> Iterator[tuple[str, int]]:
        """Every inequality of the proof, as its name and the left side less the right; then the theorem itself."""
        b, paid, modes = 0, 0, iter(self.modes)
        mode = next(modes)
        for t in range(self.end):
            while t >= mode.end:
                mode = next(modes)
                paid += self.price.get(mode.unit, 0)
                b += self.price.get(mode.unit, 0)
            b += self.slack.get(t, 0) * self.scale
            yield from self._at(t, mode, b + self._late_before(t) * self.scale)
            b += self.change[t] - (t in self.crossings) * self.scale
        late = self._late_before(self.end)
        yield "end", b + late * self.scale
        cost = sum(max(self.of[one.unit].latency.most, self.of[one.unit].interval) for one in self.mine[:-1])
        cost += self.of[self.mine[-1].unit].latency.most - (self.without == "last")
        elsewhere = sum(unit not in self.counted for unit in self.hits.values())
        cost += elsewhere + self.waits_for_lines * (self.without != "kept") + late
        yield "theorem", (cost - self.end) * self.scale + paid + self.total - self.weights

    def _late_before(self, t: int) -> int:
        return 0 if self.without == "late" else sum(cycle < t for cycle in self.late)

    def _at(self, t: int, mode: Mode, b: int) -> Iterator[tuple[str, int]]:
        x, (matured, v_of, e, q, chi) = mode.unit, self.tally(t, mode)
        v = sum(v_of.values())
        yield "I", b - matured.get(x, 0) - v - chi * self.scale
        r = sum(self.blocking_closing[max(mode.begin, t - self.horizon[x] + 1, 0) : t]) if x in self.counted else 0
        for y in self.counted - {x}:
            held = sum(self.own.get((y, t + n), t) < t for n in range(self.of[y].interval))
            g = b + r + e.get(y, 0) - matured[y] - (v - v_of[y]) + (1 - held) * self.scale + self.price[y]
            yield "J", g - q.get(y, 0)
