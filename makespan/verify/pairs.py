"""Theorem E, for the checker: the bound that given weights of pairs prove. docs/theory.md, 9, has the theorem.

Premises: no issue width; of the classes that are counted, each has one port, or holds a port for one cycle only; and no
instruction gives more than its mass to the pair before it and the pair behind it. That the weights are the best ones
is no premise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import lcm

from makespan.certificate import Weights
from makespan.instance import Instance
from makespan.program import BARRIER, Program
from makespan.verify import phases
from makespan.verify.paths import total
from makespan.verify.phases import Phase
from makespan.verify.refusal import Refused, TooMuchWork
from makespan.verify.waiting import Share, most_waiting, shares


def bound(instance: Instance, proofs: Sequence[Weights]) -> int | None:
    """The upper bound, in cycles, that these weights prove; None where barriers make too many phases.

    Raises:
        Refused: a premise does not hold.
    """
    if not proofs:
        raise Refused("theorem E needs weights")
    if instance.machine.issue_width is not None:
        raise Refused("theorem E does not apply: it needs a machine without an issue width")
    judges = [_Judge(instance, proof) for proof in proofs]
    if not instance.has_barriers:
        sharpest: map[int] = map(min, zip(*(judge.by_group() for judge in judges), strict=True))
        return max(sharpest)
    try:
        cut = phases.phases(instance)
    except TooMuchWork:
        return None
    return min(judge.along(cut) for judge in judges)


def disjoint(instance: Instance) -> Weights:
    """Weights 0 and 1 for all classes, as many as fit: theorem A, if each has one port and an interval of one cycle."""
    used = set().union(*(group.program.units for group in instance.groups))
    classes = tuple(unit for unit in instance.machine.capacities if unit in used)
    rows = (tuple((0,) if place.unit == BARRIER else (0, 1) for place in g.program.places) for g in instance.groups)
    return Weights(classes, tuple(rows))


class _Judge:
    """What one set of classes proves; masses are whole numbers, `scale` of them are a port for a cycle."""

    def __init__(self, instance: Instance, proof: Weights) -> None:
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
        # until z is ready again, or its port is free again for others to be counted
        self.cost = {
            name: max(unit.latency.most, unit.interval) if name in mass else unit.latency.most
            for name, unit in units.items()
        }
        self.walks = [
            _Walk(group.program, mass, row) for group, row in zip(instance.groups, proof.reserves, strict=True)
        ]
        self.unpaired = [walk.most(mass, -1) for walk in self.walks]
        crews = (group.warps for group in instance.groups)
        self.everybody = sum(warps * own for warps, own in zip(crews, self.unpaired, strict=True))

    def by_group(self) -> list[int]:
        """The bound for a last finisher of each group."""
        return [
            total(group.program, self.cost) + (self.everybody - own) // self.scale + self._waiting(share)
            for group, own, share in zip(self.instance.groups, self.unpaired, shares(self.instance), strict=True)
        ]

    def along(self, cut: Sequence[Sequence[Phase]]) -> int:
        """The bound where a chain of warps stands for the last finisher: in each phase, a warp of the worst group."""
        instead = {name: cost * self.scale - self.mass.get(name, 0) for name, cost in self.cost.items()}
        rows = [[walk.most(instead, 1, phase) for phase in own] for walk, own in zip(self.walks, cut, strict=True)]
        chain = sum(map(max, zip_longest(*rows, fillvalue=0)))
        return (self.everybody + chain) // self.scale + self._waiting(phases.shares(self.instance, cut))

    def _waiting(self, share: Mapping[str, Share]) -> int:
        """For classes that are not counted."""
        others = {name: one._replace(waits=one.waits and name not in self.mass) for name, one in share.items()}
        return most_waiting(self.instance.machine, self.instance.warps - 1, others)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The paths of a program, each with the reserves that it meets."""

    program: Program
    mass: Mapping[str, int]
    reserves: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        if len(self.reserves) != self.program.end:
            raise Refused(f"weights: {len(self.reserves)} places of {self.program.end}")
        for place, row in zip(self.program.places, self.reserves, strict=True):
            most = self.mass.get(place.unit, 0)
            if not row or sorted(set(row)) != list(row) or not 0 <= row[0] <= row[-1] <= most:
                raise Refused(f"weights: the reserves of a place are not increasing numbers from 0 to its mass {most}")

    def most(self, worth: Mapping[str, int], factor: int, phase: Phase | None = None) -> int:
        """The largest sum on a path, or on its part in a phase, of what it is worth and `factor` times its weights."""
        program = self.program
        begins, inside = phase or (program.starts, range(program.end))
        known = set(inside)
        come: dict[int, dict[int, int]] = {at: {self.reserves[at][0]: 0} for at in begins if at in known}
        found = [0] * any(at not in known for at in begins)  # nothing to execute
        for at in inside:
            unit, successors = program.places[at]
            for reserve, before in come.pop(at).items():
                here = before + worth.get(unit, 0)
                for after in successors:
                    if after not in known:
                        found.append(here)
                        continue
                    taken, left = self._step(unit, reserve, after)
                    there = come.setdefault(after, {})
                    there[left] = max(there.get(left, here + factor * taken), here + factor * taken)
        return max(found)

    def _step(self, unit: str, reserve: int, after: int) -> tuple[int, int]:
        """What a pair takes, and the reserve of its second place."""
        other, row = self.program.places[after].unit, self.reserves[after]
        could = 0 if other == unit else min(self.mass.get(unit, 0) - reserve, self.mass.get(other, 0))
        enough = next((one for one in row if one >= could), row[-1])
        return min(could, enough), enough
