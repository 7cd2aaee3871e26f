"""Theorem E, for the checker: the bound that given weights of pairs prove. docs/theory.md, 3, has the theorem.

Premises: no issue width that could bind; of the classes that are counted, each has one port, or holds a port for one
cycle only; no instruction gives more than its mass to pairs; and what a pair takes of the second class is no more than
its cap, and is there in the run that begins behind the first. That weights or caps are the best ones is no premise.

With thresholds: no barriers, and one issue slot at most. Each class is counted, or has
a port free whenever the slot is. No pair begins where the gap may be above the threshold, and with a slot none takes of
the cycle of issue. Where the last finisher turns to another class, its gap counts as the threshold or the interval if
it is shorter, and as two cycles where there is a slot.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import lcm
from types import MappingProxyType

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, UnitClass
from makespan.model.program import BARRIER, Program
from makespan.verify import paths, phases
from makespan.verify.paths import PhasePlaces, along, total
from makespan.verify.refusal import ProofBudget, Refused, StepBudget, TooMuchWork
from makespan.verify.waiting import ClassShare, binding_width, most_waiting, shares

MOST_STEPS = 50_000_000
"""On all paths, for all sets of classes: from a place with one of its reserves to the next."""

MOST_THRESHOLD = 1_000_000

_NOTHING: Mapping[str, int] = MappingProxyType({})


def bound(instance: Instance, proofs: Sequence[Weights], effort: ProofBudget | None = None) -> int | None:
    """The upper bound, in cycles, that these weights prove; None where paths or phases between barriers are too many.

    Raises:
        Refused: a premise does not hold.
    """
    if not proofs:
        raise Refused("theorem E needs weights")
    ahead = instance.runs_ahead or _is_divided(instance) or binding_width(instance) is not None
    if any(bool(proof.thresholds) != ahead for proof in proofs):
        raise Refused(
            "theorem E needs thresholds for an issue width that could bind and warps that run ahead, else none"
        )
    try:
        with (effort or ProofBudget(1)).part(MOST_STEPS) as work:
            if ahead:
                return min(_bound_with_thresholds(instance, proof, work) for proof in proofs)
            judges = [PairCharges(instance, proof, work) for proof in proofs]
            if not instance.has_barriers:
                sharpest: map[int] = map(min, zip(*(judge.by_group() for judge in judges), strict=True))
                return max(sharpest)
            cut = phases.phases(instance)
            return min(judge.along(cut) for judge in judges)
    except TooMuchWork:
        return None


def disjoint(instance: Instance) -> Weights:
    """Weights 0 and 1 for all classes, as many as fit: theorem A, if each has one port and an interval of one cycle."""
    used = set().union(*(group.program.units for group in instance.groups))
    classes = tuple(unit for unit in instance.machine.capacities if unit in used)
    rows = (tuple((0,) if place.unit == BARRIER else (0, 1) for place in g.program.places) for g in instance.groups)
    return Weights(classes, (1,) * len(classes), tuple(rows))


class PairCharges:
    """What one set of classes proves; masses are whole numbers, `scale` of them are a port for a cycle."""

    def __init__(self, instance: Instance, proof: Weights, work: StepBudget) -> None:
        self.instance = instance
        units = {unit.name: unit for unit in instance.machine.units}
        if len(set(proof.classes)) != len(proof.classes) or not units.keys() >= set(proof.classes):
            raise Refused("weights: the classes are not different ones of the machine")
        counted = [units[name] for name in proof.classes]
        if any(unit.capacity > 1 and unit.interval > 1 for unit in counted):
            raise Refused("theorem E does not apply to classes of several ports that are held for several cycles")
        self.scale = lcm(*(unit.capacity for unit in counted))
        mass = {unit.name: self.scale // unit.capacity * unit.interval for unit in counted}
        self.mass = mass
        if any(not own <= cap <= max(mass.values()) for own, cap in zip(mass.values(), proof.caps, strict=True)):
            raise Refused("weights: a cap is less than the mass of its class, or more than any mass")
        caps = dict(zip(mass, proof.caps, strict=True))
        # until z is ready again, or its port is free again for others to be counted; at the end nobody needs the port
        latency = {name: unit.latency.most for name, unit in units.items()}
        held = {name: max(0, unit.interval - unit.latency.most) * (name in mass) for name, unit in units.items()}
        self.cost = {name: (latency[name] + held[name]) * self.scale for name in units}
        self.spared = {name: cycles * self.scale for name, cycles in held.items()}
        self.price = {
            unit.name: (caps[unit.name] - mass[unit.name]) * min(instance.warps - 1, _unready(unit)) for unit in counted
        }
        self.walks = [
            _ReservePaths(group.program, mass, caps, row, work)
            for group, row in zip(instance.groups, proof.reserves, strict=True)
        ]
        self.unpaired = [walk.most(mass, -1)[0] for walk in self.walks]
        crews = (group.warps for group in instance.groups)
        self.everybody = sum(warps * own for warps, own in zip(crews, self.unpaired, strict=True))

    def by_group(self) -> list[int]:
        """Return the bound for a last finisher of each group."""
        alone = [walk.most(self.cost, 0, self.price, self.spared)[0] for walk in self.walks]
        return [
            (cost + self.everybody - own) // self.scale + self._waiting(share)
            for cost, own, share in zip(alone, self.unpaired, shares(self.instance), strict=True)
        ]

    def along(self, cut: Sequence[Sequence[PhasePlaces]]) -> int:
        """The bound where a chain of warps stands for the last finisher: in each phase, a warp of the worst group."""
        instead = {name: cost - self.mass.get(name, 0) for name, cost in self.cost.items()}
        rows = [
            [walk.most(instead, 1, self.price, self.spared, at) for at in enumerate(own)]
            for walk, own in zip(self.walks, cut, strict=True)
        ]
        chain, longest = 0, 0  # of those that go on, of those that have ended
        for phase in zip_longest(*rows, fillvalue=(0, 0)):
            longest = max(longest, chain + max(ending for ending, _ in phase))
            chain += max(passing for _, passing in phase)
        return (self.everybody + longest) // self.scale + self._waiting(phases.shares(self.instance, cut))

    def _waiting(self, share: Mapping[str, ClassShare]) -> int:
        """For classes that are not counted."""
        others = {name: one._replace(waits=one.waits and name not in self.mass) for name, one in share.items()}
        return most_waiting(replace(self.instance.machine, issue_width=None), self.instance.warps - 1, others)


def _unready(unit: UnitClass) -> int:
    """The most warps that are ready for a class, or will be once a latency has passed, while a port of it is free.

    Each but as many as it has ports less one issued its last instruction before, and no port is held by one of these.
    """
    if unit.capacity > 1:
        return unit.capacity - 1 + unit.capacity * (unit.latency.most - 1)
    return (unit.latency.most - 1) // unit.interval


def _bound_with_thresholds(instance: Instance, proof: Weights, work: StepBudget) -> int:
    """What one set of thresholds proves; there is one set of classes that may be counted."""
    if _is_divided(instance):
        return _bound_with_partitions(instance, proof, work)
    machine, width = instance.machine, binding_width(instance)
    used = {unit.name: unit for unit in machine.units if any(unit.name in g.program.units for g in instance.groups)}
    slot = 0 if width is None else 1
    counted = {
        name: unit
        for name, unit in used.items()
        if (unit.capacity == 1 and unit.interval > 1 if slot else unit.capacity == 1 or unit.interval == 1)
    }
    free = all(slot and unit.capacity >= unit.interval for name, unit in used.items() if name not in counted)
    if width not in (None, 1) or not free or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it knows no barriers here, one issue slot at most, and simple classes")
    if tuple(counted) != proof.classes or len(counted) != len(proof.thresholds):
        raise Refused("weights: with thresholds they are of all classes that bind, in the order of the machine")
    scale = 1 if slot else lcm(*(unit.capacity for unit in counted.values()))
    held = {name: unit.interval * scale // unit.capacity for name, unit in counted.items()}
    caps = {name: mass - slot for name, mass in held.items()}
    if tuple(caps.values()) != proof.caps or any(not 1 <= limit <= MOST_THRESHOLD for limit in proof.thresholds):
        raise Refused("weights: a cap is not the mass that pairs may take, or a threshold is out of range")
    threshold = dict(zip(counted, proof.thresholds, strict=True))
    short = {  # gaps that are shorter count as this where z turns to another class
        name: max(threshold[name], unit.interval) if name in counted else 1 + slot for name, unit in used.items()
    }
    theirs = {name: held.get(name, scale) for name in used}
    alone, unpaired = list[int](), list[int]()
    for group, row in zip(instance.groups, proof.reserves, strict=True):
        program = group.program
        longest, units = paths.longest_gaps(program, used, work), [place.unit for place in program.places]
        apart = {at for at, gap in enumerate(longest) if gap > threshold.get(units[at], 0)}
        walk = _ReservePaths(program, caps, caps, row, work, apart)
        unpaired.append(walk.most(theirs, -1)[0])
        if program.timings:
            turns = [
                max(0, short[unit] - gap) for unit, gap in zip(units, paths.shortest_gaps(program, used), strict=True)
            ]
            alone.append(paths.longest_alone(program, machine, work) + walk.most({}, 0, turns=turns)[0])
            continue
        # until z is ready again or, of a counted class, its own port is free again; nobody needs it at the end
        cost = {name: max(unit.latency.most, unit.interval * (name in counted)) for name, unit in used.items()}
        spared = {name: cycles - used[name].latency.most for name, cycles in cost.items()}
        alone.append(walk.most(cost, 0, spared=spared, turns=[max(0, short[unit] - cost[unit]) for unit in units])[0])
    everybody = sum(group.warps * own for group, own in zip(instance.groups, unpaired, strict=True))
    return max(cycles + (everybody - own) // scale for cycles, own in zip(alone, unpaired, strict=True))


def _is_divided(instance: Instance) -> bool:
    """Return whether some ports are those of a partition, or of no class."""
    return instance.machine.partitions > 1 or any(unit.uses for unit in instance.machine.units)


def _bound_with_partitions(instance: Instance, proof: Weights, work: StepBudget) -> int:
    """With thresholds on a machine of partitions or resources: pairs of classes with a port of their own in each.

    Whatever is full where z is left out costs `scale` of what instructions hold: each at most what it holds at the gate
    where that is dearest, in each cycle. In the first one it takes the slot of its partition, which is a whole one.
    """
    machine = instance.machine
    used = {unit.name: unit for unit in machine.units if any(unit.name in g.program.units for g in instance.groups)}
    if machine.issue_width != 1 or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it needs one issue slot in each partition, and no barriers")
    counted = [unit for unit in used.values() if unit.capacity == 1 and unit.interval > 1]
    counted = [unit for unit in counted if not unit.shared and not unit.uses]
    if tuple(unit.name for unit in counted) != proof.classes or len(counted) != len(proof.thresholds):
        raise Refused("weights: with thresholds they are of all classes that bind, in the order of the machine")
    size = {pool.name: pool.capacity for pool in machine.pools} | {"": 1}
    shared = {ports.name for ports in machine.ports if ports.shared}
    holds = {  # names of ports, one of which is held for so many cycles
        unit.name: [({unit.name}, unit.interval), ({""}, 1), *((set(use.resources), use.most) for use in unit.uses)]
        for unit in used.values()
    }
    gates = {frozenset(names) for held in holds.values() for names, _ in held}
    # with one slot, a partition's own class of as many ports as it holds each for cycles always has one left
    gates -= {frozenset({u.name}) for u in used.values() if not u.shared and u.capacity >= u.interval}
    ports = {gate: sum(size[name] for name in gate) for gate in gates}
    scale = lcm(*ports.values())
    work.spend(sum(cycles for held in holds.values() for _, cycles in held) * len(gates))

    def charge(unit: str, among: Set[str] | None, since: int, least: int) -> int:
        """Of gates of `least` ports or more, from a cycle after the issue on."""
        total = 0
        for cycle in range(since, max(cycles for _, cycles in holds[unit])):
            held = [names for names, cycles in holds[unit] if cycles > cycle]
            paid = (
                sum(scale // count for names in held if names & (gate if among is None else gate & among))
                for gate, count in ports.items()
                if count >= least
            )
            total += max(paid, default=0)
        return total

    mass = {unit.name: (unit.interval - 1) * scale for unit in counted}
    if tuple(mass.values()) != proof.caps or any(not 1 <= limit <= MOST_THRESHOLD for limit in proof.thresholds):
        raise Refused("weights: a cap is not the mass that pairs may take, or a threshold is out of range")
    threshold = dict(zip(mass, proof.thresholds, strict=True))
    here, there = ({name: charge(name, among, 0, 1) for name in used} for among in (None, shared))
    beside, elsewhere, alone, own = list[int](), list[int](), list[int](), list[int]()
    for group, row in zip(instance.groups, proof.reserves, strict=True):
        program, longest = group.program, paths.longest_gaps(group.program, used, work)
        units, fewest = [place.unit for place in program.places], paths.shortest_gaps(program, used)
        apart = {at for at, gap in enumerate(longest) if gap > threshold.get(units[at], 0)}
        walk = _ReservePaths(program, mass, mass, row, work, apart)
        beside.append(walk.most(here, -1)[0])
        elsewhere.append(total(program, there))
        short = [
            max(0, (max(threshold[unit], used[unit].interval) if unit in mass else 2) - gap)
            for unit, gap in zip(units, fewest, strict=True)
        ]
        alone.append(paths.longest_alone(program, machine, work) + walk.most({}, 0, turns=short)[0])
        since = [timing.stall for timing in program.timings] or fewest
        later = [charge(unit, None, stall, 2) for unit, stall in zip(units, since, strict=True)]
        own.append(along(program, later))
    seats = (instance.warps - 1) // machine.partitions  # whoever shares the partition of z, at most
    found = []
    for z, cycles in enumerate(alone):
        rest = sorted(
            (
                near - far
                for n, (g, near, far) in enumerate(zip(instance.groups, beside, elsewhere, strict=True))
                for _ in range(min(seats, g.warps - (n == z)))
            ),
            reverse=True,
        )
        everywhere = sum(
            (g.warps - (n == z)) * far for n, (g, far) in enumerate(zip(instance.groups, elsewhere, strict=True))
        )
        found.append(cycles + (everywhere + sum(rest[:seats]) + own[z]) // scale)
    return max(found)


@dataclass(frozen=True, slots=True)
class _ReservePaths:
    """The paths of a program, each with the reserves that it meets; no pair begins at a place `apart`."""

    program: Program
    mass: Mapping[str, int]
    caps: Mapping[str, int]
    reserves: Sequence[Sequence[int]]
    work: StepBudget
    apart: Set[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.reserves) != self.program.end:
            raise Refused(f"weights: {len(self.reserves)} places of {self.program.end}")
        for place, row in zip(self.program.places, self.reserves, strict=True):
            most = self.caps.get(place.unit, 0)
            if not row or sorted(set(row)) != list(row) or not 0 <= row[0] <= row[-1] <= most:
                raise Refused(f"weights: the reserves of a place are not increasing numbers from 0 to its cap {most}")

    def most(
        self,
        worth: Mapping[str, int],
        factor: int,
        price: Mapping[str, int] = _NOTHING,
        spared: Mapping[str, int] = _NOTHING,
        phase: tuple[int, PhasePlaces] | None = None,
        turns: Sequence[int] = (),
    ) -> tuple[int, int]:
        """The largest sum on a path, or on its part in a phase, of what it is worth and `factor` times its weights.

        A path pays the price of a class whenever it turns to it, and where it begins in a phase that is not the first;
        and what `turns` says of a place, if it turns from there to another class.
        The first number is for a path that ends: of its last instruction it is spared so much. The second goes on.
        """
        program = self.program
        number, (begins, inside) = phase or (0, (program.starts, tuple(range(program.end))))
        known = set(inside)
        come: dict[int, dict[int, int]] = {
            at: {self.reserves[at][0]: price.get(program.places[at].unit, 0) if number else 0}
            for at in begins
            if at in known
        }
        ended = [0] * any(at not in known for at in begins)  # nothing to execute
        passed = ended.copy()
        for at in inside:
            unit, successors = program.places[at]
            met = come.pop(at)
            self.work.spend(len(met) * len(successors))
            for reserve, before in met.items():
                here = before + worth.get(unit, 0)
                for after in successors:
                    taken, left = self._step(unit, reserve, after, at in self.apart)
                    if after not in known:
                        ended.append(here - spared.get(unit, 0))
                        passed.append(here)
                        continue
                    there, other = come.setdefault(after, {}), program.places[after].unit
                    turn = price.get(other, 0) + (turns[at] if turns else 0) if other != unit else 0
                    total = here + factor * taken + turn
                    there[left] = max(there.get(left, total), total)
        return max(ended), max(passed)

    def largest(self) -> int:
        """Return the most that a pair of places takes."""
        rows = zip(self.program.places, self.reserves, strict=True)
        return max(
            self._step(unit, row[0], after, at in self.apart)[0]
            for at, ((unit, successors), row) in enumerate(rows)
            for after in successors
        )

    def _step(self, unit: str, reserve: int, after: int, apart: bool) -> tuple[int, int]:
        """What a pair takes, and the reserve of the place behind; what this one lacks, equal ones behind it must have.

        Raises:
            Refused: they lack it, too.
        """
        own, program = self.mass.get(unit, 0), self.program
        other, row = ("", (0,)) if after == program.end else (program.places[after].unit, self.reserves[after])
        could = max(0, reserve - own) if other == unit else own - reserve
        if could < 0 or (other == unit and could > row[-1]):
            raise Refused("weights: a pair takes more than the instructions behind it have")
        if apart and other != unit:
            could = 0
        enough = row[min(bisect_left(row, could), len(row) - 1)]
        return (0 if other == unit else min(could, enough)), enough
