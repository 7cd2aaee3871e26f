"""Theorem E with thresholds: for warps that run ahead of their results, and for one issue slot beside the ports.

A pair counts if its second letter comes soon enough: only where the gap behind the first is never above a threshold of
its class. The last finisher z pays, wherever it turns from one class to another, for what its gap is shorter than the
threshold. With a single issue slot a letter can keep z waiting by the cycle in which it is issued, whatever z needs, so
pairs take nothing of that cycle: of a class of one port and interval i, whose letters count i, they take i - 1 at most.
With partitions or resources each class of pairs has such a port in every partition; all else counts as in theorem 1S.
Proof: docs/theory.md, 3.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from math import lcm
from typing import NamedTuple

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, UnitClass
from makespan.model.program import Program
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds.alone import alone, place_timings
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.pairing import Pairing, try_values
from makespan.proof.bounds.phases import PhaseSegment
from makespan.proof.bounds.theorem_1s import CostKind, Crowd, KindCharges

MOST_VALUES = 8
"""Thresholds of a class that are tried, beside one that costs nothing."""

MOST_VISITS = 500_000
"""Places that are scanned to try them."""


MOST_TOKENS = 2_000_000
"""That are looked at, over all places and successors."""


def with_thresholds(instance: Instance) -> UpperBound | None:
    """Return the bound; None where it does not apply to ports and slots, or no two classes can make a pair.

    Args:
        instance: if it has barriers, there is none.
    """
    question = _ThresholdQuestion.of(instance)
    if question is None or len(question.counted) < 2:
        return None
    best = min(question.proofs(), key=lambda proof: proof.upper)
    return UpperBound(best.upper, Upper.THEOREM_E, weights=(best.weights,))


class IssueGap(NamedTuple):
    """Cycles behind an instruction, on any path and at any latencies."""

    least: int
    most: int


class _ThresholdQuestion:
    """All that does not depend on thresholds. Masses are whole numbers; `scale` of them are a port for a cycle.

    Attributes:
        counted: the classes whose ports pairs take; of every other one an instruction keeps z waiting for a cycle.
        masses: what pairs can take of an instruction, by class.
        costs: for how long an instruction of another warp keeps z waiting, if no pair takes of it, by class.
        free: by class the threshold up to which z pays nothing that it would not pay at a lower one.
        gaps: by group and place.
        alone: by group, how long a warp takes alone; 0 where it blocks and there is but one partition.
        elsewhere: by group, what a warp of another partition adds; `later` what z holds itself, once it may be ready.
        beside: how many others are in the partition of z.
    """

    def __init__(self, instance: Instance, counted: Mapping[str, UnitClass], gaps: list[list[IssueGap]]) -> None:
        self.instance, self.counted, self.gaps = instance, counted, gaps
        self.units = {unit.name: unit for unit in instance.machine.units}
        self.elsewhere, self.later = [0] * len(instance.groups), [0] * len(instance.groups)
        self.beside = instance.warps - 1
        slot = 0 if instance.issue_width is None and not instance.machine.is_divided else 1
        self.scale = 1 if slot else lcm(*(unit.capacity for unit in counted.values()))
        whole = {name: unit.interval * self.scale // unit.capacity for name, unit in counted.items()}
        self.masses = {name: mass - slot for name, mass in whole.items()}
        self.costs = dict.fromkeys(self.units, 1) | whole
        held = {name: counted[name].interval if name in counted else 1 for name in self.units}
        self.free = {name: max(cycles, 1 + slot) for name, cycles in held.items()}
        if instance.machine.is_divided:
            self._divide()

    def _divide(self) -> None:
        """Set costs by prices as those of theorem 1S, of all gates that may be full."""
        ports = PortGates.of(self.instance.machine)
        executed = ports.reservations(*(group.program for group in self.instance.groups))
        gates = [gate for gate in ports.gates(executed) if not self._is_free(gate)]
        self.scale = lcm(*map(ports.capacity, gates))
        prices = {gate: dict.fromkeys(gate, self.scale // ports.capacity(gate)) for gate in gates}
        kinds = [
            [CostKind(ports.reservation(group.program, at), stall) for at, stall in enumerate(stalls)]
            for group, own in zip(self.instance.groups, self.gaps, strict=True)
            for stalls in [[timing.stall for timing in group.program.timings] or [gap.least for gap in own]]
        ]
        charges = KindCharges.at(ports, frozenset(chain.from_iterable(kinds)), prices)
        self.masses = {name: (unit.interval - 1) * self.scale for name, unit in self.counted.items()}
        self.costs = {kind.reservation.unit: cost for kind, cost in charges.here.items()}
        self.beside = -(-self.instance.warps // self.instance.machine.partitions) - 1
        for number, (group, own) in enumerate(zip(self.instance.groups, kinds, strict=True)):
            self.elsewhere[number] = group.program.heaviest([charges.elsewhere[kind] for kind in own])
            self.later[number] = group.program.heaviest([charges.later[kind] for kind in own])

    def _is_free(self, gate: tuple[str, ...]) -> bool:
        """Return whether the slot keeps its ports from being held all at once: those of a class in one partition."""
        unit = self.units.get(gate[0]) if len(gate) == 1 else None
        return unit is not None and not unit.shared and unit.capacity >= unit.interval

    def others(self, here: Sequence[int]) -> list[int]:
        """Return the largest sum over all besides z, for z of each group, from counts `here` and `elsewhere`."""
        warps = tuple(group.warps for group in self.instance.groups)
        return Crowd(warps, None, self.beside).others(here, self.elsewhere)

    @classmethod
    def of(cls, instance: Instance) -> "_ThresholdQuestion | None":
        """Return the question; None where a warp may wait for more than ports of counted classes and the one slot."""
        width = instance.issue_width
        used = set().union(*(group.program.units for group in instance.groups))
        units = [unit for unit in instance.machine.units if unit.name in used]
        if instance.machine.is_divided:
            counted = [unit for unit in units if unit.capacity == 1 < unit.interval and not (unit.shared or unit.uses)]
            fits = instance.machine.issue_width == 1 and DELAY not in used
        elif width is None:
            counted = units
            fits = all(unit.capacity == 1 or unit.interval == 1 for unit in units) and DELAY not in used
        else:
            counted = [unit for unit in units if unit.capacity == 1 < unit.interval]
            fits = width == 1 and all(unit.capacity >= unit.interval for unit in units if unit not in counted)
        if not fits or instance.has_barriers:
            return None
        latencies = {unit.name: unit.latency for unit in units}
        found = [issue_gaps(group.program, latencies) for group in instance.groups]
        known = [own for own in found if own is not None]
        return cls(instance, {unit.name: unit for unit in counted}, known) if len(known) == len(found) else None

    @cached_property
    def alone(self) -> list[int]:
        ports = PortGates.of(self.instance.machine)

        def of(program: Program) -> int:
            every = PhaseSegment(program.starts, tuple(range(program.end)))
            return alone(program, place_timings(program, ports, longest=True), every, lambda _: {})

        is_divided = self.instance.machine.is_divided
        return [of(g.program) if is_divided or g.program.runs_ahead else 0 for g in self.instance.groups]

    def proofs(self) -> Iterator["_ThresholdProof"]:
        """Yield the proof with thresholds that cost nothing, and those with others, tried one class after another."""
        most = min(MOST_VALUES, MOST_VISITS // sum(group.program.end for group in self.instance.groups))
        above = (
            (name, sorted(value for value in self._values(name) if value > self.free[name])) for name in self.counted
        )
        return try_values(self.free, above, most, partial(_ThresholdProof, self), lambda proof: proof.upper)

    def _values(self, name: str) -> set[int]:
        """Return the largest gaps behind instructions of a class before one of another."""
        found = set[int]()
        for group, own in zip(self.instance.groups, self.gaps, strict=True):
            places = group.program.places
            for gap, (unit, successors) in zip(own, places, strict=True):
                if unit == name and any(after < len(places) and places[after].unit != name for after in successors):
                    found.add(gap.most)
        return found


class _ThresholdProof:
    """The bound that thresholds prove."""

    def __init__(self, question: _ThresholdQuestion, thresholds: Mapping[str, int]) -> None:
        self.question, self.thresholds = question, thresholds
        groups = question.instance.groups
        apart = [
            {
                at
                for at, (gap, place) in enumerate(zip(own, group.program.places, strict=True))
                if gap.most > thresholds[place.unit]
            }
            for group, own in zip(groups, question.gaps, strict=True)
        ]
        self.pairings = [
            Pairing.scan(group.program, question.masses, question.masses, places)
            for group, places in zip(groups, apart, strict=True)
        ]
        left = [pairing.heaviest(question.costs, -1) for pairing in self.pairings]
        own = [self._own(number) for number in range(len(groups))]
        found = zip(own, question.others(left), question.later, strict=True)
        self.upper = max(cycles + (others + later) // question.scale for cycles, others, later in found)

    @property
    def weights(self) -> Weights:
        question = self.question
        caps = tuple(question.masses.values())
        thresholds = tuple(self.thresholds[name] for name in question.counted)
        return Weights(tuple(question.counted), caps, tuple(one.reserves for one in self.pairings), thresholds)

    def _own(self, number: int) -> int:
        """Return what z itself takes: alone, and for gaps below the thresholds where it turns to another class.

        A warp that blocks has one gap for each instruction, and waits for a port that it holds itself at most until the
        interval is over; so both are added up along its path.
        """
        question, pairing = self.question, self.pairings[number]
        units = [place.unit for place in pairing.program.places]
        least = {name: max(cycles, self.thresholds[name]) for name, cycles in question.free.items()}
        if pairing.program.runs_ahead or question.instance.machine.is_divided:
            short = [max(0, least[unit] - gap.least) for unit, gap in zip(units, question.gaps[number], strict=True)]
            return question.alone[number] + pairing.heaviest({}, 0, leaving=short)
        latency = {name: unit.latency.most for name, unit in question.units.items()}
        held = {name: question.counted[name].interval if name in question.counted else 1 for name in latency}
        worth = {name: max(cycles, held[name]) for name, cycles in latency.items()}
        short = [max(0, least[unit] - worth[unit]) for unit in units]
        last = {name: latency[name] - cycles for name, cycles in worth.items()}
        return pairing.heaviest(worth, 0, leaving=short, last=last)


def issue_gaps(program: Program, latencies: Mapping[str, Latency]) -> list[IssueGap] | None:
    """Return the gap behind every instruction of a program without barriers; None if it has too many tokens.

    A warp that runs ahead is ready when the stall has passed and no token is pending that it awaits. How long one may
    still be pending is known from place to place: each takes the stall off at least, and what a place awaits is there
    when it is left. Whoever is kept waiting by others has less to wait for afterwards.

    >>> from makespan.model.machine import Machine
    >>> from makespan.model.strings import parse_string
    >>> ahead = parse_string("L()@9L()@9C(1)C(2)C(4)", Machine.of({"C": 1, "L": 1}))
    >>> [tuple(gap) for gap in issue_gaps(ahead, {})]
    [(1, 1), (1, 8), (1, 8), (1, 1), (1, 1)]
    """
    if not program.timings:
        return [IssueGap(latencies[place.unit].least, latencies[place.unit].most) for place in program.places]
    timings = program.timings
    awaited = {token for timing in timings for token in timing.awaits}
    coming: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by token the cycles for which it may be pending
    found, looked = list[IssueGap](), 0
    for at, (place, timing) in enumerate(zip(program.places, timings, strict=True)):
        pending = coming.pop(at, {})
        for token in timing.awaits:
            pending.pop(token, None)
        for token in awaited.intersection(timing.sets):
            pending[token] = max(pending.get(token, 0), timing.latency[1])
        behind = [timings[after].awaits for after in place.successors if after < program.end]
        least = min((timing.latency[0] if set(timing.sets) & set(awaits) else 1 for awaits in behind), default=1)
        most = max((pending.get(token, 0) for awaits in behind for token in awaits), default=0)
        found.append(IssueGap(max(timing.stall, least), max(timing.stall, most)))
        looked += len(pending) * len(place.successors)
        if looked > MOST_TOKENS:
            return None
        for after in place.successors:
            left = coming[after]
            for token, cycles in pending.items():
                if cycles > timing.stall:
                    left[token] = max(left.get(token, 0), cycles - timing.stall)
    return found
