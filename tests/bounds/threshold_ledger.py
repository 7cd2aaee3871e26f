"""The proof of theorem E with thresholds as a program: its inequalities, before every cycle of a random schedule.

The names are those of docs/theory.md, 3; see `ledger` for the theorem without thresholds. Strings only; nothing is
shared with the bound.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import lcm

from makespan.model.instance import Instance
from makespan.model.program import InstructionTiming, Program
from tests.bounds.ledger import Issue, Mode, Unit, UnitLedger, scan


def timings(instance: Instance, program: Program) -> tuple[InstructionTiming, ...]:
    """Those of a program; one that blocks needs each instruction for the next one."""
    if program.timings:
        return program.timings
    latency = {unit.name: unit.latency for unit in instance.machine.units}
    spans = [latency[place.unit] for place in program.places]
    return tuple(InstructionTiming(1, (own.least, own.most), (0,), (0,)) for own in spans)


def random_run(draw: random.Random, instance: Instance) -> list[list[Issue]]:
    """What each warp issues in some work-conserving schedule; the latency of an `Issue` is here the gap behind it."""
    units = {unit.name: unit for unit in instance.machine.units}
    programs = list(instance.programs())
    rules = [timings(instance, program) for program in programs]
    crew = range(len(programs))
    ready, at, ends = [0 for _ in crew], [0 for _ in crew], [0 for _ in crew]
    pending: list[dict[int, int]] = [{} for _ in crew]
    held: dict[str, list[int]] = {name: [] for name in units}
    found: list[list[Issue]] = [[] for _ in crew]
    rank, style, now = [draw.random() for _ in crew], draw.random(), 0
    while any(at[w] < programs[w].end for w in crew):
        held = {name: [until for until in own if until > now] for name, own in held.items()}
        able = [w for w in crew if at[w] < programs[w].end and ready[w] <= now]
        able.sort(key=lambda w: draw.random() if style < 0.4 else rank[w] - at[w] * (style > 0.7) + 9 * (w == 0))
        slots = instance.machine.issue_width or len(able)
        for w in able:
            place, timing = programs[w].places[at[w]], rules[w][at[w]]
            unit = units[place.unit]
            if not slots or len(held[unit.name]) == unit.capacity:
                continue
            slots -= 1
            held[unit.name].append(now + unit.interval)
            latency = draw.choice((*timing.latency, draw.randint(*timing.latency)))
            for token in timing.sets:
                pending[w][token] = max(pending[w].get(token, 0), now + latency)
            at[w] += 1
            ends[w] = max(ends[w], now + timing.stall, now + latency)
            needed = rules[w][at[w]].awaits if at[w] < programs[w].end else ()
            ready[w] = max([now + timing.stall, *(pending[w].get(token, 0) for token in needed)])
            found[w].append(Issue(place.unit, now, (ready[w] if at[w] < programs[w].end else ends[w]) - now))
        if draw.random() < 0.05:
            rank = [draw.random() for _ in crew]
        now += 1
    return found


def longest_gaps(rules: tuple[InstructionTiming, ...]) -> list[int]:
    """Behind every instruction but the last: by looking back at all that may be pending."""
    found = []
    for at in range(len(rules) - 1):
        gap, passed = rules[at].stall, 0
        needed = set(rules[at + 1].awaits)
        for before in range(at, -1, -1):  # issued `passed` cycles before this one, or more
            gap = max([gap, *(rules[before].latency[1] - passed for token in rules[before].sets if token in needed)])
            needed -= set(rules[before].awaits)  # there when that one was issued, and whatever was set before it
            passed += rules[before - 1].stall if before else 0
        found.append(gap)
    return found


@dataclass
class Ledger(UnitLedger):
    """B, and everything it is compared with.

    Args:
        instance: of strings.
        run: what each warp issues.
        thresholds: H, by class.
        without: what is left out of the proof on purpose, to see that the inequalities notice.
    """

    instance: Instance
    run: list[list[Issue]]
    thresholds: dict[str, int]
    without: str = ""
    units: list[Unit] = field(default_factory=list)

    def __post_init__(self) -> None:
        machine = self.instance.machine
        self.of = {unit.name: unit for unit in machine.units}
        self.slot = int(machine.issue_width is not None)
        self.counted = {n for n, unit in self.of.items() if not self.slot or (unit.capacity == 1 and unit.interval > 1)}
        self.scale = 1 if self.slot else lcm(*(unit.capacity for unit in machine.units))
        self.last = max(range(len(self.run)), key=lambda w: self.run[w][-1].ready)
        self.mine, self.end = self.run[self.last], self.run[self.last][-1].ready
        self.horizon = {
            name: max(1, self.thresholds[name] - self.slot) if name in self.counted else 1 for name in self.of
        }
        if self.without == "horizon":
            self.horizon = {name: max(1, cycles - 1) for name, cycles in self.horizon.items()}
        self.own = self.own_ports()
        self.blocks = not list(self.instance.programs())[self.last].timings
        self._modes()
        self._masses()

    def _held(self, name: str) -> int:
        return self.of[name].interval if name in self.counted else 1

    def _modes(self) -> None:
        self.modes: list[Mode] = []
        self.hits: dict[int, str] = {}
        self.crossings: set[int] = set()
        self.slack: dict[int, int] = {}
        before = 0
        for number, one in enumerate(self.mine):
            if not self.modes or self.modes[-1].unit != one.unit:
                self.modes.append(Mode(one.unit, before, one.cycle, one.ready))
            mode = self.modes[-1]
            mode.last, mode.end = one.cycle, one.ready
            for t in range(before, one.cycle):
                if (one.unit, t) not in self.own or one.unit not in self.counted:
                    self.hits[t] = one.unit
                elif self.blocks and mode.begin == before and number:
                    mode.waits += 1
                    self.crossings.add(t)
            before = one.ready
            if number + 1 < len(self.mine) and self.mine[number + 1].unit != one.unit and self.without != "slack":
                least = self.thresholds[one.unit] if one.unit in self.counted else 1
                least = max(least, self._held(one.unit), 1 + self.slot)
                self.slack[one.ready] = max(0, least - one.latency)

    def _masses(self) -> None:
        """What others' port-cycles do to B, and the units that pairs open; with a slot, from the second cycle on."""
        skipped = 0 if self.without == "first cycle" else self.slot
        self.change = [0] * self.end
        self.blocking_closing = [0] * self.end
        self.total = self.weights = 0
        blocked = [0] * self.end
        programs = list(self.instance.programs())
        issued = {(one.unit, one.cycle) for warp in self.run for one in warp}
        mass = {
            name: (self.of[name].interval - skipped) * self.scale // self.of[name].capacity for name in self.counted
        }
        held = {
            (one.unit, one.cycle + q)
            for w, warp in enumerate(self.run)
            for one in warp
            for q in range(self.of[one.unit].interval)
            if w != self.last and one.unit in self.counted
        }
        hits = {t: x if x in self.counted and (x, t) in held else "slot" for t, x in self.hits.items()}
        self.taken = {(x, t) for x, t in issued} | {(x, t) for t, x in self.hits.items() if hits[t] == "slot"}
        for w, warp in enumerate(self.run):
            if w == self.last:
                continue
            letters = [one.unit for one in warp]
            gaps = longest_gaps(timings(self.instance, programs[w]))
            apart = {
                j for j, gap in enumerate(gaps) if gap > self.thresholds[letters[j]] and self.without != "thresholds"
            }
            opening, closing = self._scan(letters, mass, apart)
            self.weights += sum(opening)
            for j, one in enumerate(warp):
                per_cycle = self.scale // (self.of[one.unit].capacity if one.unit in self.counted else 1)
                for q in range(self._held(one.unit)):
                    self.total += per_cycle
                    t = one.cycle + q
                    if t >= self.end:
                        continue
                    if hits.get(t) == one.unit or (hits.get(t) == "slot" and q == 0):
                        blocked[t] += per_cycle
                    else:
                        self.change[t] += per_cycle
                closes = self._parts(one, closing[j], at_end=True)
                for t, part in closes:
                    if t < self.end:
                        self.change[t] -= part
                        if hits.get(t) == one.unit:
                            self.blocking_closing[t] += part
                if opening[j]:
                    opens = self._parts(one, opening[j], at_end=False, skipped=skipped)
                    self.match(one.unit, warp[j + 1].unit, opens, self._parts(warp[j + 1], closing[j + 1], at_end=True))
        for t in hits:
            assert blocked[t] == self.scale, "a hit blocks a mass of one"

    def _scan(self, letters: list[str], mass: dict[str, int], apart: set[int]) -> tuple[list[int], list[int]]:
        """Pairs within the pieces between the places at which none begins."""
        opening, closing, first = list[int](), list[int](), 0
        for at in range(len(letters)):
            if at in apart or at == len(letters) - 1:
                opens, closes = scan(letters[first : at + 1], mass, mass)
                opening, closing, first = opening + opens, closing + closes, at + 1
        return opening, closing

    def _parts(self, one: Issue, mass: int, *, at_end: bool, skipped: int = 0) -> list[tuple[int, int]]:
        """Cycles and mass: the first of an instruction, but for those skipped, or the last."""
        if not mass:
            return []
        per_cycle = self.scale // self.of[one.unit].capacity
        count = -(-mass // per_cycle)
        first = self.of[one.unit].interval - count if at_end else skipped
        return [(one.cycle + first + q, min(per_cycle, mass - q * per_cycle)) for q in range(count)]

    def inequalities(self) -> Iterator[tuple[str, int]]:
        """Every inequality of the proof, as its name and the left side less the right; B after the last cycle."""
        b, modes = 0, iter(self.modes)
        mode = next(modes)
        for t in range(self.end):
            while t >= mode.end:
                mode = next(modes)
            b += self.slack.get(t, 0) * self.scale
            yield from self._at(t, mode, b)
            b += self.change[t] - (t in self.crossings) * self.scale
        yield "end", b

    def _at(self, t: int, mode: Mode, b: int) -> Iterator[tuple[str, int]]:
        x, horizon, counts = mode.unit, self.horizon[mode.unit], mode.unit in self.counted
        matured, v_of, e, q, chi = self.tally(t, mode)
        v = sum(v_of.values())
        yield "I", b - matured.get(x, 0) - v - chi * self.scale
        begin = max(mode.begin, t - horizon + 1, 0)
        r = sum(self.blocking_closing[begin:t]) if counts else 0
        a = sum((x, s) in self.taken for s in range(begin, min(t, mode.last + 1))) if counts and self.slot else 0
        a *= self.without != "taken slots"
        for y in self.counted - {x}:
            own = sum(self.own.get((y, t + n), t) < t for n in range(self.of[y].interval))
            g = b + r + e.get(y, 0) - matured[y] - (v - v_of[y]) + (1 + a - own) * self.scale
            yield "J", g - q.get(y, 0)
