"""Theorem E: the bound that given weights of pairs prove (docs/theory.md, 3).

The evidence says of each place what is reserved there for the pair that ends in its run, for a set of classes, and what
a pair takes of a class at most, its cap. Premises: no issue width that could bind; of the classes that are counted,
each has one port, or holds a port for one cycle only. Then what a pair takes costs the last finisher nothing, and the
bound is a sum over paths (`reserves`). That weights or caps are the best ones is no premise. `thresholds` has the case
of an issue slot and of warps that run ahead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import lcm

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import UnitClass
from makespan.model.program import BARRIER
from makespan.model.result import Upper
from makespan.verify import phases
from makespan.verify.machine_form import binding_width, used_units
from makespan.verify.paths import PhaseRegion
from makespan.verify.pessimistic import ClassShare, chain_shares, most_waiting, shares
from makespan.verify.refusal import ProofBudget, ProofSteps, Refused
from makespan.verify.reserves import ReservePaths
from makespan.verify.rule import ProofRule, of_instance
from makespan.verify.thresholds import bound_of_one_partition, bound_of_partitions

MOST_STEPS = 50_000_000  # on all paths, for all sets of classes: from a place with one of its reserves to the next


def theorem_a(instance: Instance, effort: ProofBudget | None = None) -> int | None:
    """Return sum |s_w| - sum k_w + max k_w cycles; None unless at most two classes of capacity 1 are used."""
    # This is theorem E with weights 0 and 1, and bundles from before theorem E name it. `k_w` counts disjoint adjacent
    # unequal pairs on the path of warp w.
    used = used_units(instance).values()
    if not instance.machine.is_basic or len(used) > 2 or any(unit.capacity > 1 for unit in used):
        return None
    return bound(instance, [disjoint(instance)], effort)


def bound(instance: Instance, proofs: Sequence[Weights], effort: ProofBudget | None = None) -> int:
    """Return the upper bound that these weights prove, in cycles.

    Raises:
        Refused: a premise does not hold.
        TooMuchWork: there are too many paths or phases.
    """
    if not proofs:
        raise Refused("theorem E needs weights")
    ahead = instance.runs_ahead or _is_divided(instance) or binding_width(instance) is not None
    if any(bool(proof.thresholds) != ahead for proof in proofs):
        raise Refused(
            "theorem E needs thresholds for an issue width that could bind and warps that run ahead, else none"
        )
    with (effort or ProofBudget(1)).part(MOST_STEPS) as work:
        if not ahead:
            return _sharpest(instance, [PairCharges(instance, proof, work) for proof in proofs])
        prove = bound_of_partitions if _is_divided(instance) else bound_of_one_partition
        return min(prove(instance, proof, work) for proof in proofs)


def _sharpest(instance: Instance, judges: Sequence["PairCharges"]) -> int:
    if instance.has_barriers:
        cut = phases.phases(instance)
        return min(judge.along(cut) for judge in judges)
    # for each group of z other weights may be best, so the least bound of each group counts
    sharpest: map[int] = map(min, zip(*(judge.by_group() for judge in judges), strict=True))
    return max(sharpest)


def disjoint(instance: Instance) -> Weights:
    """Return weights 0 and 1 of disjoint pairs; with one port and an interval of one cycle they are theorem A."""
    classes = tuple(used_units(instance))
    rows = (tuple((0,) if place.unit == BARRIER else (0, 1) for place in g.program.places) for g in instance.groups)
    return Weights(classes, (1,) * len(classes), tuple(rows))


class PairCharges:
    """Theorem E for one set S of classes and their weights. Masses are whole: `scale` of them are 1.

    Attributes:
        cost: c_S by class, what an instruction of z costs.
        spared: by class what the last instruction of z does not cost, as no warp needs its port any more.
        price: p by class, what z pays when it turns to a class with a cap above its mass.
        unpaired: for every group the most of mass less weights on a path.
    """

    def __init__(self, instance: Instance, proof: Weights, work: ProofSteps) -> None:
        self.instance = instance
        units = {unit.name: unit for unit in instance.machine.units}
        counted = _counted_classes(proof, units)
        self.scale = lcm(*(unit.capacity for unit in counted.values()))
        self.mass = mass = {name: self.scale // unit.capacity * unit.interval for name, unit in counted.items()}
        caps = dict(zip(mass, proof.caps, strict=True))
        if any(not mass[name] <= cap <= max(mass.values()) for name, cap in caps.items()):
            raise Refused("weights: a cap is less than the mass of its class, or more than any mass")
        # max(h, i): until z is ready again, and its port is free, so that in a hit it is others who hold it
        held = dict.fromkeys(units, 0) | {n: max(0, unit.interval - unit.latency.most) for n, unit in counted.items()}
        self.cost = {name: (unit.latency.most + held[name]) * self.scale for name, unit in units.items()}
        self.spared = {name: cycles * self.scale for name, cycles in held.items()}
        self.price = {
            name: (caps[name] - mass[name]) * min(instance.warps - 1, _unready(unit)) for name, unit in counted.items()
        }
        self.walks = [
            ReservePaths(group.program, mass, caps, row, work)
            for group, row in zip(instance.groups, proof.reserves, strict=True)
        ]
        self.unpaired = [walk.most(mass, -1)[0] for walk in self.walks]

    @property
    def everybody(self) -> int:
        """Return the sum of `unpaired` over all warps."""
        return sum(group.warps * own for group, own in zip(self.instance.groups, self.unpaired, strict=True))

    def by_group(self) -> list[int]:
        """Return the bound for a last finisher of each group."""
        alone = [walk.most(self.cost, 0, self.price, self.spared)[0] for walk in self.walks]
        return [
            (cost + self.everybody - own) // self.scale + self._waiting(share)
            for cost, own, share in zip(alone, self.unpaired, shares(self.instance), strict=True)
        ]

    def along(self, cut: Sequence[Sequence[PhaseRegion]]) -> int:
        """Return the bound with barriers: a chain of warps stands for z, in each phase a warp of the worst group."""
        # The chain executes at most one segment in each phase, and pays for it instead of what everybody pays: c + p -
        # f.
        instead = {name: cost - self.mass.get(name, 0) for name, cost in self.cost.items()}
        rows = [
            [walk.most(instead, 1, self.price, self.spared, at) for at in enumerate(own)]
            for walk, own in zip(self.walks, cut, strict=True)
        ]
        chain, longest = 0, 0  # of those that go on, of those that have ended
        for phase in zip_longest(*rows, fillvalue=(0, 0)):
            longest = max(longest, chain + max(ending for ending, _ in phase))
            chain += max(passing for _, passing in phase)
        return (self.everybody + longest) // self.scale + self._waiting(chain_shares(self.instance, cut))

    def _waiting(self, share: Mapping[str, ClassShare]) -> int:
        """Return E_Z: the cycles of waiting for classes that are not counted, as in theorem 1' without a width."""
        others = {name: one._replace(waits=one.waits and name not in self.mass) for name, one in share.items()}
        return most_waiting(replace(self.instance.machine, issue_width=None), self.instance.warps - 1, others)


def _counted_classes(proof: Weights, units: Mapping[str, UnitClass]) -> dict[str, UnitClass]:
    """Return the classes of S."""
    if len(set(proof.classes)) != len(proof.classes) or not units.keys() >= set(proof.classes):
        raise Refused("weights: the classes are not different ones of the machine")
    counted = {name: units[name] for name in proof.classes}
    # a class that is not simple breaks (2) of the proof: ports held from before could keep open warps waiting
    if any(unit.capacity > 1 and unit.interval > 1 for unit in counted.values()):
        raise Refused("theorem E does not apply to classes of several ports that are held for several cycles")
    return counted


def _unready(unit: UnitClass) -> int:
    """Return how many warps can be open toward a class, matured or late, though a port of it is free and unused."""
    # That is sigma ceil(h / i) - 1 for a simple class: of several ports all but one may have a ready warp, which
    # issues.
    if unit.capacity > 1:
        return unit.capacity - 1 + unit.capacity * (unit.latency.most - 1)
    return (unit.latency.most - 1) // unit.interval


def _is_divided(instance: Instance) -> bool:
    """Return whether some ports are those of a partition, or of no class."""
    return instance.machine.partitions > 1 or any(unit.uses for unit in instance.machine.units)


RULE = ProofRule(
    Upper.THEOREM_E,
    "theorem E",
    lambda claim, _: bound(claim.instance, claim.weights, claim.effort) if claim.weights else None,
    is_given=lambda claim: claim.weights,
    absence="theorem E needs weights",
)
RULE_OF_DISJOINT_PAIRS = of_instance(Upper.THEOREM_A, "theorem A", theorem_a)
