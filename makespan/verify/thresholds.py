"""Theorem E': weights of pairs beside an issue slot, and of warps that run ahead (docs/theory.md, 3).

The evidence has a threshold for each counted class besides the weights. Premises: no barriers, and one issue slot at
most in each partition. Each class is counted, or has a port free whenever the slot is. No pair begins where the gap may
be above the threshold, and with a slot none takes of the cycle of issue. Where the last finisher turns to another
class, its gap counts as the threshold or the interval if it is shorter, and as two cycles where there is a slot.
"""

from collections.abc import Mapping, Sequence
from math import lcm

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, UnitClass
from makespan.model.program import Program
from makespan.verify import paths
from makespan.verify.alone import longest_alone
from makespan.verify.gates import Gates
from makespan.verify.interference import Company
from makespan.verify.machine_form import PoolGate, binding_width, place_timings, used_units
from makespan.verify.paths import along, total
from makespan.verify.refusal import ProofSteps, Refused
from makespan.verify.reserves import ReservePaths

MOST_THRESHOLD = 1_000_000


class ThresholdPairs:
    """The pairs of all programs under thresholds.

    Args:
        instance: the question.
        proof: the weights and thresholds.
        mass: by counted class the mass of an instruction.
        slot: the part of it that no pair takes, which is that of the cycle of issue: delta, in the same units.
        work: the steps that are left.

    Attributes:
        walks: of every group the paths of its program with the reserves.
    """

    def __init__(
        self, instance: Instance, proof: Weights, mass: Mapping[str, int], slot: int, work: ProofSteps
    ) -> None:
        caps = {name: own - slot for name, own in mass.items()}  # all that an instruction has for pairs
        if tuple(caps) != proof.classes or len(caps) != len(proof.thresholds):
            raise Refused("weights: with thresholds they are of all classes that bind, in the order of the machine")
        if tuple(caps.values()) != proof.caps or any(not 1 <= limit <= MOST_THRESHOLD for limit in proof.thresholds):
            raise Refused("weights: a cap is not the mass that pairs may take, or a threshold is out of range")
        self._instance, self._work, self._slot = instance, work, slot
        self._used = used_units(instance)
        self._threshold = dict(zip(caps, proof.thresholds, strict=True))
        self.walks = [
            ReservePaths(group.program, caps, caps, row, work, self._late(group.program))
            for group, row in zip(instance.groups, proof.reserves, strict=True)
        ]

    def _late(self, program: Program) -> set[int]:
        """Return the places where no pair may begin, as the gap G behind them may be above the threshold."""
        # So what is opened elsewhere has matured by then, which is all that the proof asks of a latency.
        longest = paths.longest_gaps(program, self._used, self._work)
        return {at for at, gap in enumerate(longest) if gap > self._threshold.get(program.places[at].unit, 0)}

    def _turns(self, program: Program, gaps: Sequence[int]) -> list[int]:
        """Return s for every place: what z pays if it turns to another class there, as its gap is too short."""
        # The gap then counts as the threshold and the interval in S, and as 1 + delta everywhere.
        short = dict.fromkeys(self._used, 1 + bool(self._slot))
        short |= {name: max(limit, self._used[name].interval) for name, limit in self._threshold.items()}
        return [max(0, short[place.unit] - gap) for place, gap in zip(program.places, gaps, strict=True)]

    def alone(self, group: int) -> int:
        """Return the time of a warp of a group alone, T(z), with what it pays for its turns."""
        walk, machine = self.walks[group], self._instance.machine
        turns = self._turns(walk.program, paths.shortest_gaps(walk.program, self._used))
        return longest_alone(walk.program, machine, self._work) + walk.most({}, 0, turns=turns)[0]

    def _blocking(self, group: int) -> int:
        """Return the time alone of a warp that blocks, with what it pays for its turns."""
        # until it is ready again or, of a counted class, its own port is free again; no warp needs the port of its last
        # instruction any more
        walk, latency = self.walks[group], {name: unit.latency.most for name, unit in self._used.items()}
        cost = latency | {name: max(latency[name], self._used[name].interval) for name in self._threshold}
        spared = {name: cycles - latency[name] for name, cycles in cost.items()}
        turns = self._turns(walk.program, [cost[place.unit] for place in walk.program.places])
        return walk.most(cost, 0, spared=spared, turns=turns)[0]

    def own(self, group: int, gates: Gates, counting: Sequence[PoolGate]) -> int:
        """Return what a warp of a group pays itself, at even prices of the gates that can be full."""
        # of gates of several ports it can be kept out by what it holds itself, once it may issue again
        program, prices = self.walks[group].program, gates.even(counting)
        several = [gate for gate in counting if not gates.is_single(gate)]
        again = zip(program.places, place_timings(program, self._used, longest=False), strict=True)
        return along(program, [gates.paid(at.unit, several, prices, since=timing.stall) for at, timing in again])

    def sum_up(self, theirs: Mapping[str, int], scale: int) -> int:
        """Return the bound on one partition, where instructions of others count `theirs`, in units of 1 / scale."""
        groups = self._instance.groups
        unpaired = [walk.most(theirs, -1)[0] for walk in self.walks]
        everybody = sum(group.warps * own for group, own in zip(groups, unpaired, strict=True))
        alone = [self.alone(z) if group.program.timings else self._blocking(z) for z, group in enumerate(groups)]
        return max(cycles + (everybody - own) // scale for cycles, own in zip(alone, unpaired, strict=True))


def bound_of_one_partition(instance: Instance, proof: Weights, work: ProofSteps) -> int:
    """Return the bound of theorem E' on a machine of one partition without resources."""
    # S has no choice here: all classes that bind. With a slot that can bind delta is 1, and the counts of all classes
    # are whole; without one delta is 0.
    width, used = binding_width(instance), used_units(instance)
    slot = int(width is not None)
    counted = {name: unit for name, unit in used.items() if _is_counted(unit, slot)}
    fits = all(name in counted or (slot and _has_free_port(unit)) for name, unit in used.items())
    if not fits or width not in (None, 1) or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it knows no barriers here, one issue slot at most, and simple classes")
    scale = lcm(*(unit.capacity for unit in counted.values()))  # 1 with a slot
    mass = {name: unit.interval * scale // unit.capacity for name, unit in counted.items()}
    pairs = ThresholdPairs(instance, proof, mass, slot, work)
    return pairs.sum_up(dict.fromkeys(used, scale) | mass, scale)  # count_w: i / sigma in S, else the slot


def _is_counted(unit: UnitClass, slot: int) -> bool:
    return unit.capacity == 1 and unit.interval > 1 if slot else unit.capacity == 1 or unit.interval == 1


def _has_free_port(unit: UnitClass) -> bool:
    """Return whether a class has a port free whenever the slot is: as many ports as cycles in its interval."""
    return unit.capacity >= unit.interval


def bound_of_partitions(instance: Instance, proof: Weights, work: ProofSteps) -> int:
    """Return the bound of theorem E' with one slot in each partition, or with resources besides class ports."""
    # Pairs are of classes with a port of their own in each partition. Whatever is full where z is left out costs
    # `scale` of what instructions hold: each at most what it holds at the gate where that is dearest, in each cycle. In
    # the first one it takes the slot of its partition, which is a whole one.
    machine, used = instance.machine, used_units(instance)
    if machine.issue_width != 1 or instance.has_barriers or DELAY in used:
        raise Refused("theorem E does not apply: it needs one issue slot in each partition, and no barriers")
    gates = Gates(machine, used, work)
    counting = _counting(gates, used)
    prices = gates.even(counting)
    mass = {name: unit.interval * prices.scale for name, unit in used.items() if _has_own_port(unit)}
    pairs = ThresholdPairs(instance, proof, mass, prices.scale, work)
    here = {name: gates.paid(name, counting, prices) for name in used}
    there = {name: gates.paid(name, counting, prices, among=gates.shared) for name in used}
    beside = [walk.most(here, -1)[0] for walk in pairs.walks]
    elsewhere = [total(walk.program, there) for walk in pairs.walks]  # only pairs beside z are proven to save anything
    return max(
        pairs.alone(last)
        + (Company.but_one(instance, last).most(beside, elsewhere) + pairs.own(last, gates, counting)) // prices.scale
        for last in range(len(instance.groups))
    )


def _has_own_port(unit: UnitClass) -> bool:
    return unit.capacity == 1 < unit.interval and not unit.shared and not unit.uses


def _counting(gates: Gates, used: Mapping[str, UnitClass]) -> list[PoolGate]:
    """Return the gates that can be full."""
    spare = {frozenset({name}) for name, unit in used.items() if not unit.shared and _has_free_port(unit)}
    return [gate for gate in gates.every if gate not in spare]
