"""Theorem E: neighbours of different classes force ports to work while the last finisher does not wait for them.

Let z finish last, and S be classes of one port each, or of an interval of one cycle. An instruction of such a class X
has the mass interval / capacity; whoever waits for X sees others hold port-cycles of mass 1. A pair of neighbours of
different classes of S takes a weight x >= 0 of the mass of both, so that no instruction gives more than it has. Then

    M <= c(z) + floor(sum over the others of (their mass in S - their x)) + what z waits for the classes outside of S,

where c(z) counts max(latency, interval) for an instruction of S and the latency for any other, and the rest is that of
the pessimistic bound. With S empty this is the pessimistic bound; with one port each and intervals of one cycle it is
c + (W-1)(n-k) for W equal strings of n letters with k disjoint pairs: whatever the latencies and their ranges, and
however many classes. It needs a machine without an issue width. Proof, and the chain that stands for z where there
are barriers: docs/theory.md, 9.
"""

from collections.abc import Mapping
from itertools import zip_longest
from math import lcm

from makespan.bounds.pairing import Pairing
from makespan.bounds.pessimistic import Chain, Rivals, can_hold_all, rivals_by_group, waiting
from makespan.certificate import Weights
from makespan.feature import BARRIERS, PROGRAMS, Feature
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.result import Upper, UpperBound

KNOWS = PROGRAMS | BARRIERS | {Feature.LATENCIES, Feature.INTERVALS}

MOST_SETS = 8
"""Sets of classes that are tried; each has weights of its own."""

_Rivals = Mapping[str, Rivals]


def theorem_e(instance: Instance) -> UpperBound | None:
    """The bound of theorem E; None where it does not apply, or where barriers make too many phases.

    S are the classes that z can wait for, so they depend on the group of z; every set proves a bound for every group.
    """
    if instance.beyond(KNOWS):
        return None
    chain = Chain.of(instance) if instance.has_barriers else None
    if chain is None and instance.has_barriers:
        return None
    every = rivals_by_group(instance) if chain is None else [chain.rivals(instance)]
    sets = list(dict.fromkeys(_counted(instance.machine, rivals) for rivals in every))
    if len(sets) > MOST_SETS:
        sets = [tuple(name for name in instance.machine.capacities if any(name in classes for classes in sets))]
    proofs = [_Proof(instance, classes) for classes in sets]
    uppers = [proof.by_group(every) if chain is None else [proof.along(chain, every[0])] for proof in proofs]
    upper, weights = max(map(min, zip(*uppers, strict=True))), tuple(proof.weights for proof in proofs)
    return UpperBound(upper, Upper.THEOREM_E, weights=weights)


def _counted(machine: Machine, rivals: _Rivals) -> tuple[str, ...]:
    """The classes that z can wait for, without those of several ports and a longer interval: the proof has none."""
    return tuple(
        unit.name
        for unit in machine.units
        if rivals[unit.name].matters
        and can_hold_all(unit, rivals[unit.name].users)
        and (unit.capacity == 1 or unit.interval == 1)
    )


class _Proof:
    """What a set of classes proves; masses are integers, in units of 1 / `scale`."""

    def __init__(self, instance: Instance, classes: tuple[str, ...]) -> None:
        self._instance, self._classes = instance, classes
        units = [unit for unit in instance.machine.units if unit.name in classes]
        self._scale = lcm(*(unit.capacity for unit in units))
        self._masses = {unit.name: unit.interval * self._scale // unit.capacity for unit in units}
        self._pairings = [Pairing.scan(group.program, self._masses) for group in instance.groups]
        self._costs = {
            unit.name: max(unit.latency.most, unit.interval) if unit.name in classes else unit.latency.most
            for unit in instance.machine.units
        }
        # the most mass, less weights, on a path
        self._left = [pairing.heaviest(self._masses, -1) for pairing in self._pairings]
        self._total = sum(group.warps * left for group, left in zip(instance.groups, self._left, strict=True))

    @property
    def weights(self) -> Weights:
        return Weights(self._classes, tuple(pairing.reserves for pairing in self._pairings))

    def by_group(self, every: list[dict[str, Rivals]]) -> list[int]:
        """The bound for z in each group."""
        return [
            group.program.heaviest(self._costs) + self._outside(rivals) + (self._total - left) // self._scale
            for group, left, rivals in zip(self._instance.groups, self._left, every, strict=True)
        ]

    def along(self, chain: Chain, rivals: _Rivals) -> int:
        """The bound with barriers: what every warp has left, and what the chain's share of it costs more, by phase."""
        more = {name: cost * self._scale - self._masses.get(name, 0) for name, cost in self._costs.items()}
        rows = [
            [pairing.heaviest(more, 1, segment.places, segment.entries) for segment in segments]
            for pairing, (_, segments) in zip(self._pairings, chain.cut, strict=True)
        ]
        shares = map(max, zip_longest(*rows, fillvalue=0))
        return (self._total + sum(shares)) // self._scale + self._outside(rivals)

    def _outside(self, rivals: _Rivals) -> int:
        """The most cycles in which z waits for a class that is not counted."""
        rest = {name: one._replace(matters=one.matters and name not in self._classes) for name, one in rivals.items()}
        return waiting(self._instance.machine, rest, self._instance.warps - 1)
