"""Theorem E: neighbours of different classes force ports to work while the last finisher does not wait for them.

Let z finish last, and S be classes of one port each, or of an interval of one cycle. An instruction of such a class X
has the mass interval / capacity; whoever waits for X sees others hold port-cycles of mass 1. A pair takes a weight
x >= 0 of the mass of one instruction of S, and as much of the next ones, of one other class of S, so that no
instruction gives more than it has. Then

    M <= floor(c(z) + sum over the others of (their mass in S - their x)) + what z waits for the classes outside of S,

where c(z) counts max(latency, interval) for an instruction of S, the latency alone for any other and for the last one,
and the rest is that of the pessimistic bound. With S empty this is the pessimistic bound; with one port each and
intervals of one cycle it is c + (W-1)(n-k) for W equal strings of n letters with k disjoint pairs: whatever the
latencies and their ranges, and however many classes. A weight may exceed the mass of the second class, up to a cap:
then z pays a price whenever it turns to that class. It needs a machine without an issue width that could bind. Proof,
and the chain that stands for z where there are barriers: docs/theory.md, 3 and 7.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import lcm
from typing import TypeVar

from makespan.model.certificate import Weights
from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, TIMES
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Machine, UnitClass
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds.pairing import Pairing, try_values
from makespan.proof.bounds.pessimistic import Chain, Rivals, can_hold_all, rivals_by_group, waiting
from makespan.proof.bounds.thresholds import with_thresholds

KNOWS = PROGRAMS | BARRIERS | TIMES | MULTIPROCESSOR

MOST_SETS = 8
"""Sets of classes that are tried; each has weights of its own."""

MOST_CAPS = 8
"""Of a class, that are tried beside its mass."""

MOST_VISITS = 100_000
"""Places that are scanned to try caps; a program in which more would be has those that are free."""

_RivalsByClass = Mapping[str, Rivals]
T = TypeVar("T")


def theorem_e(instance: Instance) -> UpperBound | None:
    """Return the bound of theorem E; None where it does not apply, or where barriers make too many phases.

    S are the classes that z can wait for, so they depend on the group of z; every set proves a bound for every group,
    and so do all caps. With barriers S may be all classes: what the chain executes need not be what others have left.
    """
    if instance.beyond(KNOWS):
        return None
    if instance.is_multiprocessor or instance.issue_width is not None:
        return with_thresholds(instance)
    chain = Chain.of(instance) if instance.has_barriers else None
    if chain is None and instance.has_barriers:
        return None
    every = rivals_by_group(instance) if chain is None else [chain.rivals(instance)]
    sets = list(dict.fromkeys(_classes_to_wait_for(instance.machine, rivals) for rivals in every))
    if len(sets) > MOST_SETS:  # any set proves a bound: the union of all stands for them
        sets = [tuple(name for name in instance.machine.capacities if any(name in classes for classes in sets))]
    if chain is not None:
        sets = list(dict.fromkeys((*sets, _used_classes(instance))))

    def proven(pairs: WeightedPairs) -> _PairsProof:
        return _PairsProof(instance, pairs, chain, every)

    proofs = [proof for classes in sets for proof in try_caps(instance, classes, proven, lambda proof: proof.upper)]
    # the last finisher is in some group, and for each group every proof counts
    upper = max(map(min, zip(*(proof.uppers for proof in proofs), strict=True)))
    ranked = sorted(proofs, key=lambda proof: proof.upper)
    needed = dict.fromkeys(next(one for one in ranked if one.uppers[at] <= upper) for at in range(len(every)))
    return UpperBound(upper, Upper.THEOREM_E, weights=tuple(proof.weights for proof in needed))


def _classes_to_wait_for(machine: Machine, rivals: _RivalsByClass) -> tuple[str, ...]:
    """Return the simple classes that z can wait for; the proof counts no class of several ports that are held long."""
    return tuple(
        unit.name
        for unit in machine.units
        if rivals[unit.name].matters and can_hold_all(unit, rivals[unit.name].users) and _is_simple(unit)
    )


def _used_classes(instance: Instance) -> tuple[str, ...]:
    """Return all classes that some warp uses, as far as the proof has them."""
    used = set().union(*(group.program.units for group in instance.groups))
    return tuple(unit.name for unit in instance.machine.units if unit.name in used and _is_simple(unit))


def _is_simple(unit: UnitClass) -> bool:
    return unit.name != DELAY and (unit.capacity == 1 or unit.interval == 1)


def try_caps(
    instance: Instance, classes: tuple[str, ...], proven: Callable[["WeightedPairs"], T], upper: Callable[[T], int]
) -> Iterator[T]:
    """Return what is proven with the caps that cost nothing, and with others, one class after another.

    Args:
        instance: whose programs have the pairs.
        classes: those that are counted.
        proven: says what pairs prove.
        upper: says the bound of what is proven; the smallest is looked for.
    """
    free = WeightedPairs(instance, classes)
    most = min(MOST_CAPS, MOST_VISITS // sum(group.program.end for group in instance.groups))
    # a cap above the largest mass closes no more than that
    above = ((name, range(free.masses[name] + 1, free.largest + 1)) for name in free.priced)
    return try_values(free.caps, above, most, lambda caps: proven(WeightedPairs(instance, classes, caps)), upper)


class WeightedPairs:
    """The pairs of all programs for a set of classes and their caps; masses are integers, in units of 1 / `scale`.

    Attributes:
        priced: the classes with a price for a cap above their mass, where some other class has a larger mass.
        entering: by class, what z pays when it turns to it.
        costs: by class, what an instruction of z counts.
        last: by class, what its last one counts more.
        left: for every group the most mass, less weights, on a path.
    """

    def __init__(self, instance: Instance, classes: tuple[str, ...], caps: Mapping[str, int] | None = None) -> None:
        self.classes = classes
        units = {unit.name: unit for unit in instance.machine.units if unit.name in classes}
        self.scale = lcm(*(unit.capacity for unit in units.values()))
        self.masses = {name: unit.interval * self.scale // unit.capacity for name, unit in units.items()}
        self.largest = max(self.masses.values(), default=0)
        late = {name: _late(unit, instance.warps - 1) for name, unit in units.items()}
        self.priced = [name for name, mass in self.masses.items() if late[name] and mass < self.largest]
        # where a class has no price, or the largest mass, its cap may be as large as is of use
        free = {name: mass if name in self.priced else self.largest for name, mass in self.masses.items()}
        self.caps = caps or free
        self.entering = {name: late[name] * (self.caps[name] - mass) for name, mass in self.masses.items()}
        self.costs, self.last = {}, {}
        for unit in instance.machine.units:
            # c_S(z): a letter of S keeps z for max(h, i), for z may wait for its own port; the last one for h
            cycles = max(unit.latency.most, unit.interval) if unit.name in classes else unit.latency.most
            self.costs[unit.name] = cycles * self.scale
            self.last[unit.name] = (unit.latency.most - cycles) * self.scale
        self.pairings = [Pairing.scan(group.program, self.masses, self.caps) for group in instance.groups]
        self.left = [pairing.heaviest(self.masses, -1) for pairing in self.pairings]

    @property
    def more(self) -> dict[str, int]:
        """Return, by class, what an instruction of z counts more than its mass."""
        return {name: cost - self.masses.get(name, 0) for name, cost in self.costs.items()}

    @property
    def weights(self) -> Weights:
        """Return the weights as evidence, which a checker can add up again."""
        caps = tuple(self.caps[name] for name in self.classes)
        return Weights(self.classes, caps, tuple(pairing.reserves for pairing in self.pairings))


class _PairsProof:
    """The bounds that pairs prove: `uppers` for z in each group or, with barriers, for the chain."""

    def __init__(
        self, instance: Instance, pairs: WeightedPairs, chain: Chain | None, every: Sequence[_RivalsByClass]
    ) -> None:
        self._instance, self._pairs = instance, pairs
        self._total = sum(group.warps * left for group, left in zip(instance.groups, pairs.left, strict=True))
        self.uppers = self._by_group(every) if chain is None else [self._along(chain, every[0])]

    @property
    def upper(self) -> int:
        return max(self.uppers)

    @property
    def weights(self) -> Weights:
        return self._pairs.weights

    def _by_group(self, every: Sequence[_RivalsByClass]) -> list[int]:
        own = self._pairs
        return [
            (pairing.heaviest(own.costs, 0, entering=own.entering, last=own.last) + self._total - left) // own.scale
            + self._outside(rivals)
            for pairing, left, rivals in zip(own.pairings, own.left, every, strict=True)
        ]

    def _along(self, chain: Chain, rivals: _RivalsByClass) -> int:
        """Return the bound with barriers: what all warps have left, and what the chain's share costs more, by phase.

        The last instruction of the chain may be in any phase; what comes before counts in full.
        """
        own, more = self._pairs, self._pairs.more
        before = most = 0
        rows = [
            [
                [
                    pairing.heaviest(more, 1, entering=own.entering, last=last, segment=segment, first=not number)
                    for last in (own.last, {})
                ]
                for number, segment in enumerate(segments)
            ]
            for pairing, (_, segments) in zip(own.pairings, chain.cut, strict=True)
        ]
        # the chain executes one segment of some warp in each phase (theory.md, 7, theorem E with barriers)
        for shares in zip_longest(*rows, fillvalue=(0, 0)):
            ending, passing = map(max, zip(*shares, strict=True))
            most = max(most, before + ending)
            before += passing
        return (self._total + most) // own.scale + self._outside(rivals)

    def _outside(self, rivals: _RivalsByClass) -> int:
        """Return the most cycles in which z waits for a class that is not counted; no issue width can bind here."""
        # classes outside of S cost what they cost in theorem 1'
        rest = {
            name: one._replace(matters=one.matters and name not in self._pairs.classes) for name, one in rivals.items()
        }
        return waiting(replace(self._instance.machine, issue_width=None), rest, self._instance.warps - 1)


def _late(unit: UnitClass, others: int) -> int:
    """Return how many warps can have closed a part of what they have open while too few are ready, (2) in the proof.

    Less than its ports are ready, and the others wait for the latency of what they issued last; if it has one port, its
    interval has passed since.
    """
    return min(others, unit.capacity * -(-unit.latency.most // unit.interval) - 1)
