"""Theorem E: the bound that given weights of pairs prove (docs/theory.md, 3).

Premises: no issue width that could bind; of the classes that are counted, each has one port, or holds a port for one
cycle only; no instruction gives more than its mass to pairs; and what a pair takes of the second class is no more than
its cap, and is there in the run that begins behind the first. That weights or caps are the best ones is no premise.

With thresholds (theorem E'): no barriers, and one issue slot at most. Each class is counted, or has a port free
whenever the slot is. No pair begins where the gap may be above the threshold, and with a slot none takes of the cycle
of issue. Where the last finisher turns to another class, its gap counts as the threshold or the interval if it is
shorter, and as two cycles where there is a slot.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import lcm
from types import MappingProxyType

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, UnitClass
from makespan.model.program import BARRIER, Program
from makespan.model.result import Upper
from makespan.verify import paths, phases
from makespan.verify.alone import longest_alone
from makespan.verify.gates import Gates
from makespan.verify.interference import Company
from makespan.verify.machine_form import binding_width, place_timings, used_units
from makespan.verify.paths import PhaseRegion, along, total
from makespan.verify.pessimistic import ClassShare, chain_shares, most_waiting, shares
from makespan.verify.refusal import ProofBudget, ProofSteps, Refused
from makespan.verify.rule import ProofRule, of_instance

MOST_STEPS = 50_000_000  # on all paths, for all sets of classes: from a place with one of its reserves to the next
MOST_THRESHOLD = 1_000_000

_NOTHING: Mapping[str, int] = MappingProxyType({})


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
        if ahead:
            prove = _bound_with_partitions if _is_divided(instance) else _bound_with_thresholds
            return min(prove(instance, proof, work) for proof in proofs)
        judges = [PairCharges(instance, proof, work) for proof in proofs]
        if not instance.has_barriers:
            # for each group of z other weights may be best, so the least bound of each group counts
            sharpest: map[int] = map(min, zip(*(judge.by_group() for judge in judges), strict=True))
            return max(sharpest)
        cut = phases.phases(instance)
        return min(judge.along(cut) for judge in judges)


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
        unpaired: for every group the most of mass less weights on a path; `everybody` is the sum over all warps.
    """

    def __init__(self, instance: Instance, proof: Weights, work: ProofSteps) -> None:
        self.instance = instance
        units = {unit.name: unit for unit in instance.machine.units}
        if len(set(proof.classes)) != len(proof.classes) or not units.keys() >= set(proof.classes):
            raise Refused("weights: the classes are not different ones of the machine")
        counted = [units[name] for name in proof.classes]
        # a class that is not simple breaks (2) of the proof: ports held from before could keep open warps waiting
        if any(unit.capacity > 1 and unit.interval > 1 for unit in counted):
            raise Refused("theorem E does not apply to classes of several ports that are held for several cycles")
        self.scale = lcm(*(unit.capacity for unit in counted))
        self.mass = mass = {unit.name: self.scale // unit.capacity * unit.interval for unit in counted}
        if any(not own <= cap <= max(mass.values()) for own, cap in zip(mass.values(), proof.caps, strict=True)):
            raise Refused("weights: a cap is less than the mass of its class, or more than any mass")
        caps = dict(zip(mass, proof.caps, strict=True))
        # max(h, i): until z is ready again, and its port is free, so that in a hit it is others who hold it
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


def _unready(unit: UnitClass) -> int:
    """Return how many warps can be open toward a class, matured or late, though a port of it is free and unused."""
    # That is sigma ceil(h / i) - 1 for a simple class: of several ports all but one may have a ready warp, which
    # issues.
    if unit.capacity > 1:
        return unit.capacity - 1 + unit.capacity * (unit.latency.most - 1)
    return (unit.latency.most - 1) // unit.interval


def _bound_with_thresholds(instance: Instance, proof: Weights, work: ProofSteps) -> int:
    """Return the bound of theorem E' on a machine of one partition without resources."""
    # S has no choice here: all classes that bind. With a slot that can bind delta is 1, and the counts of all classes
    # are whole; without one delta is 0.
    machine, width = instance.machine, binding_width(instance)
    used, slot = used_units(instance), int(width is not None)
    counted = {
        name: unit
        for name, unit in used.items()
        if (unit.capacity == 1 and unit.interval > 1 if slot else unit.capacity == 1 or unit.interval == 1)
    }
    # every other class has as many ports as cycles in its interval, so that one is free whenever the slot is
    free = all(slot and unit.capacity >= unit.interval for name, unit in used.items() if name not in counted)
    if width not in (None, 1) or not free or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it knows no barriers here, one issue slot at most, and simple classes")
    _check_classes(proof, counted)
    scale = 1 if slot else lcm(*(unit.capacity for unit in counted.values()))
    held = {name: unit.interval * scale // unit.capacity for name, unit in counted.items()}
    caps = {name: mass - slot for name, mass in held.items()}  # no pair takes of the cycle in which the slot is taken
    threshold = _thresholds(proof, caps)
    theirs = {name: held.get(name, scale) for name in used}  # count_w: i / sigma in S, else the slot
    alone, unpaired = list[int](), list[int]()
    for group, row in zip(instance.groups, proof.reserves, strict=True):
        program = group.program
        walk = _ReservePaths(program, caps, caps, row, work, _late(program, threshold, used, work))
        unpaired.append(walk.most(theirs, -1)[0])
        if program.timings:
            turns = _turns(program, threshold, used, paths.shortest_gaps(program, used), 1 + slot)
            alone.append(longest_alone(program, machine, work) + walk.most({}, 0, turns=turns)[0])
            continue
        # z blocks: until it is ready again or, of a counted class, its own port is free again; nobody needs the port
        # of its last instruction any more
        cost = {name: max(unit.latency.most, unit.interval * (name in counted)) for name, unit in used.items()}
        spared = {name: cycles - used[name].latency.most for name, cycles in cost.items()}
        turns = _turns(program, threshold, used, [cost[at.unit] for at in program.places], 1 + slot)
        alone.append(walk.most(cost, 0, spared=spared, turns=turns)[0])
    everybody = sum(group.warps * own for group, own in zip(instance.groups, unpaired, strict=True))
    return max(cycles + (everybody - own) // scale for cycles, own in zip(alone, unpaired, strict=True))


def _check_classes(proof: Weights, counted: Iterable[str]) -> None:
    classes = tuple(counted)
    if classes != proof.classes or len(classes) != len(proof.thresholds):
        raise Refused("weights: with thresholds they are of all classes that bind, in the order of the machine")


def _thresholds(proof: Weights, caps: Mapping[str, int]) -> dict[str, int]:
    """Return the threshold H of every counted class; no cap may be above what its instructions have for pairs."""
    if tuple(caps.values()) != proof.caps or any(not 1 <= limit <= MOST_THRESHOLD for limit in proof.thresholds):
        raise Refused("weights: a cap is not the mass that pairs may take, or a threshold is out of range")
    return dict(zip(caps, proof.thresholds, strict=True))


def _late(program: Program, threshold: Mapping[str, int], used: Mapping[str, UnitClass], work: ProofSteps) -> set[int]:
    """Return the places where no pair may begin, as the gap G behind them may be above the threshold."""
    # So what is opened elsewhere has matured by then, which is all that the proof asks of a latency.
    longest = paths.longest_gaps(program, used, work)
    return {at for at, gap in enumerate(longest) if gap > threshold.get(program.places[at].unit, 0)}


def _turns(
    program: Program, threshold: Mapping[str, int], used: Mapping[str, UnitClass], gaps: Sequence[int], least: int
) -> list[int]:
    """Return s for every place: what z pays if it turns to another class there, as its gap is too short."""
    # The gap then counts as the threshold and the interval in S, and as `least`, which is 1 + delta, everywhere.
    short = {name: max(threshold[name], unit.interval) if name in threshold else least for name, unit in used.items()}
    return [max(0, short[place.unit] - gap) for place, gap in zip(program.places, gaps, strict=True)]


def _is_divided(instance: Instance) -> bool:
    """Return whether some ports are those of a partition, or of no class."""
    return instance.machine.partitions > 1 or any(unit.uses for unit in instance.machine.units)


def _bound_with_partitions(instance: Instance, proof: Weights, work: ProofSteps) -> int:
    """Return the bound of theorem E' with one slot in each partition, or with resources besides class ports."""
    # Pairs are of classes with a port of their own in each partition. Whatever is full where z is left out costs
    # `scale` of what instructions hold: each at most what it holds at the gate where that is dearest, in each cycle. In
    # the first one it takes the slot of its partition, which is a whole one.
    machine, used = instance.machine, used_units(instance)
    if machine.issue_width != 1 or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it needs one issue slot in each partition, and no barriers")
    own_port = (unit for unit in used.values() if unit.capacity == 1 and unit.interval > 1)
    counted = {unit.name: unit for unit in own_port if not unit.shared and not unit.uses}
    _check_classes(proof, counted)
    gates = Gates(machine, used, work)
    # with one slot, a partition's own class of as many ports as it holds each for cycles always has one left
    spare = {frozenset({u.name}) for u in used.values() if not u.shared and u.capacity >= u.interval}
    counting = [gate for gate in gates.every if gate not in spare]
    prices = gates.even(counting)
    mass = {name: (unit.interval - 1) * prices.scale for name, unit in counted.items()}
    threshold = _thresholds(proof, mass)
    here, there = (
        {name: gates.paid(name, counting, prices, among=among) for name in used} for among in (None, gates.shared)
    )
    # of gates of several ports z can be kept out by what it holds itself, once it may issue again
    several = [gate for gate in counting if not gates.is_single(gate)]
    beside, elsewhere, alone, own = list[int](), list[int](), list[int](), list[int]()
    for group, row in zip(instance.groups, proof.reserves, strict=True):
        program = group.program
        walk = _ReservePaths(program, mass, mass, row, work, _late(program, threshold, used, work))
        beside.append(walk.most(here, -1)[0])
        elsewhere.append(total(program, there))  # only pairs beside z are proven to save anything
        turns = _turns(program, threshold, used, paths.shortest_gaps(program, used), 2)
        alone.append(longest_alone(program, machine, work) + walk.most({}, 0, turns=turns)[0])
        again = zip(program.places, place_timings(program, used, longest=False), strict=True)
        own.append(along(program, [gates.paid(at.unit, several, prices, since=timing.stall) for at, timing in again]))
    seats = (instance.warps - 1) // machine.partitions
    found = []
    for last, (cycles, mine) in enumerate(zip(alone, own, strict=True)):
        numbers = [group.warps - (number == last) for number, group in enumerate(instance.groups)]
        others = Company.spread(numbers, seats).most(beside, elsewhere)
        found.append(cycles + (others + mine) // prices.scale)
    return max(found)


@dataclass(frozen=True, slots=True)
class _ReservePaths:
    """The paths of a program, each with the reserves that it meets.

    Args:
        mass: by counted class, what an instruction has for pairs.
        caps: by counted class, the most that a pair takes of it.
        reserves: for every place what may be reserved there for the pair that ends in its run, increasing.
        apart: places at which no pair begins.
    """

    program: Program
    mass: Mapping[str, int]
    caps: Mapping[str, int]
    reserves: Sequence[Sequence[int]]
    work: ProofSteps
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
        phase: tuple[int, PhaseRegion] | None = None,
        turns: Sequence[int] = (),
    ) -> tuple[int, int]:
        """Return two largest sums over paths, of paths that end and of paths that go on behind the phase."""
        # A path sums up what its instructions are worth, `factor` times the weights of its pairs, the price of a class
        # whenever it turns to it (and where it begins in a later phase), and `turns` of a place from which it turns to
        # another class. The last instruction of a path that ends is spared what `spared` says of its class.
        program = self.program
        number, (begins, inside) = phase or (0, (program.starts, tuple(range(program.end))))
        known = set(inside)
        come: dict[int, dict[int, int]] = {
            at: {self.reserves[at][0]: price.get(program.places[at].unit, 0) if number else 0}
            for at in begins
            if at in known
        }
        ended = [0] * any(at not in known for at in begins)  # a path may have nothing to execute in this phase
        passed = ended.copy()
        for at in inside:
            unit, successors = program.places[at]
            met = come.pop(at)
            self.work.spend(len(met) * len(successors))
            for reserve, before in met.items():
                here = before + worth.get(unit, 0)
                for after in successors:  # of all paths to a place with a reserve only the largest sum matters
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
        """Return what a pair takes that begins here, and the reserve with which its warp comes to the next place.

        What is reserved here beyond the mass of this instruction, equal instructions behind it must have.

        Raises:
            Refused: they lack it, too.
        """
        own, program = self.mass.get(unit, 0), self.program
        other, row = ("", (0,)) if after == program.end else (program.places[after].unit, self.reserves[after])
        could = max(0, reserve - own) if other == unit else own - reserve
        if could < 0 or (other == unit and could > row[-1]):
            raise Refused("weights: a pair takes more than the instructions behind it have")
        # the next place has few reserves: the least that is enough, or the largest, of which the pair takes no more
        if apart and other != unit:
            could = 0
        enough = row[min(bisect_left(row, could), len(row) - 1)]
        return (0 if other == unit else min(could, enough)), enough


RULE = ProofRule(
    Upper.THEOREM_E,
    "theorem E",
    lambda claim, _: bound(claim.instance, claim.weights, claim.effort) if claim.weights else None,
    is_given=lambda claim: claim.weights,
    absence="theorem E needs weights",
)
RULE_OF_DISJOINT_PAIRS = of_instance(Upper.THEOREM_A, "theorem A", theorem_a)
