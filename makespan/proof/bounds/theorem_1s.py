"""Theorem 1S: a bound for the multiprocessor as it is, with partitions, resources, and warps that run ahead.

Alone, a warp is a max-plus system, whose longest time T is known (`bounds.alone`). With others it is later by its
*hits* at most: cycles in which it could issue in that sense and is kept out. Then a gate of its instruction is full
(`bounds.gates`), by what others hold, or by its own earlier instructions where a gate has several ports. So give each
port of a gate a price, such that a full gate costs 1 at least. What an instruction holds in a cycle counts once, for
the gate at which it is dearest, and

    M <= max over the warps z that may finish last of  T(z) + floor(what all others hold, at these prices).

Proof, and how barriers change it: docs/theory.md, 14.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import lcm
from typing import NamedTuple, Self, TypeAlias

from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Group, Instance, requires
from makespan.model.lowered import Reservation
from makespan.model.program import BARRIER, Program
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds.alone import Due, alone, place_timings, residues
from makespan.proof.bounds.gates import Gate, PortGates
from makespan.proof.bounds.phases import PhaseSegment, segments_of

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR

MOST_PRICES = 16
"""Ways to price gates of several pools that are tried."""

MOST_FAMILIES = 16
"""Different sets of gates that may keep warps out; if there are more, each warp gets all of them, which is safe."""

MOST_WORK = 10_000_000
"""Phases times groups, and places of automata, for every way to place z and to price; if there is more, fewer prices
are tried, or none."""

PortPrices: TypeAlias = Mapping[Gate, Mapping[str, int]]
"""What a port of each name costs at each gate, in units of 1 / scale."""


def theorem_1s(instance: Instance) -> UpperBound | None:
    """Return the bound of theorem 1S; None for a machine of today's theorem 1', with warps that block.

    >>> from makespan.model.machine import Machine, UnitClass
    >>> from makespan.model.strings import parse_string
    >>> units = UnitClass("C", 1, interval=2), UnitClass("L", 1, shared=True)
    >>> machine = Machine("two schedulers", units, issue_width=1, partitions=2)
    >>> loads_ahead = parse_string("L()@30L()@30C(1,2)@4", machine)
    >>> theorem_1s(Instance.of(loads_ahead, 4, machine)).upper  # 35 alone; 4 for the warp beside it, 4 for others' L
    43
    """
    if instance.beyond(KNOWS) or not instance.is_multiprocessor:
        return None
    return UpperBound(bound(instance), Upper.THEOREM_1S)


@requires(KNOWS, "theorem 1S")
def bound(instance: Instance) -> int:
    """Theorem 1S, in cycles.

    Raises:
        UnsupportedError: there are delays as places.
    """
    ports = PortGates.of(instance.machine)
    found = least_of_prices(instance, ports, families_of(instance, ports), KindCharges.at)
    return one_after_another(instance, ports) if found is None else found


def least_of_prices(instance: Instance, ports: PortGates, families: "Families", charge: "ChargeKinds") -> int | None:
    """Return the smallest bound of all prices that are tried; None if there are more phases than can be told apart."""
    found = paths_of(instance, ports, sum(map(len, families.values())))
    if found is None:
        return None
    paths, tries = found
    gates = list(dict.fromkeys(chain.from_iterable(families)))
    scale = scale_of(ports, gates)
    return min(
        _bound(instance, ports, paths, families, charge, prices, scale)
        for prices in islice(ways_to_price(ports, gates, scale), tries)
    )


def paths_of(instance: Instance, ports: PortGates, views: int) -> "tuple[list[ProgramPhases], int] | None":
    """Return the phases of every group, and how many prices may be tried if each is looked at in `views` views.

    None if there are more phases than can be told apart.
    """
    segments = [segments_of(group.program) for group in instance.groups]
    cut = [found for found in segments if found is not None]
    if len(cut) < len(segments):
        return None
    automata = (own for group, own in zip(instance.groups, cut, strict=True) if not group.program.is_chain)
    work = max(map(len, cut)) * len(cut) + sum(len(segment.places) for own in automata for segment in own)
    tries = min(MOST_WORK // (work * views), MOST_PRICES)
    if not tries:
        return None
    held = _occupations(instance, ports, cut)
    found = [ProgramPhases.of(ports, group, own, held) for group, own in zip(instance.groups, cut, strict=True)]
    return found, tries


def one_after_another(instance: Instance, ports: PortGates) -> int:
    """Return a bound for any number of phases: in each cycle a stall, a latency or a hold of an instruction passes."""

    def passing(program: Program, at: int) -> int:
        of_class = ports.latencies[program.places[at].unit]
        cycles = ports.stall(program, at), ports.latency(program, at), of_class
        return max(ports.reservation(program, at).longest, *(most for _, most in cycles))

    return sum(
        group.warps * group.program.heaviest([passing(group.program, at) for at in range(group.program.end)])
        for group in instance.groups
    )


class CostKind(NamedTuple):
    """Instructions that cost the same."""

    reservation: Reservation
    stall: int


class PhaseCost(NamedTuple):
    """The most cycles that a warp takes alone in a phase, and the kinds of instructions along its paths.

    Args:
        alone: cycles.
        kinds: of the places of the segment; of a string how many there are of each.
    """

    alone: int
    segment: PhaseSegment
    kinds: Mapping[int, CostKind]
    counts: Counter[CostKind] | None


@dataclass(frozen=True, slots=True)
class ProgramPhases:
    """The phases of a program."""

    program: Program
    phases: tuple[PhaseCost, ...]
    kinds: frozenset[CostKind]

    @classmethod
    def of(
        cls, ports: PortGates, group: Group, segments: tuple[PhaseSegment, ...], occupied: Sequence[Due]
    ) -> "ProgramPhases":
        """Return the phases of a group, cut into segments; `occupied` is what older instructions hold in each."""
        program = group.program
        todo = place_timings(program, ports, longest=True)
        kinds = {
            at: CostKind(ports.reservation(program, at), todo[at].stall)
            for at, place in enumerate(program.places)
            if place.unit != BARRIER
        }
        left = residues(program, todo) if program.has_barriers else {}
        found, is_chain = [], program.is_chain
        if program.end in left:  # what is on its way at the last barrier
            segments = (*segments, PhaseSegment((program.end,), ()))
        for number, segment in enumerate(segments):

            def begin(entry: int, *, is_first: bool = number == 0, held: Due = occupied[number]) -> Due:
                return {} if is_first else left.get(entry, {}) | held

            longest = alone(program, todo, segment, begin)
            counts = Counter(kinds[at] for at in segment.places) if is_chain else None
            found.append(PhaseCost(longest, segment, kinds, counts))
        return cls(program, tuple(found), frozenset(kinds.values()))

    def heaviest(self, number: int, weights: Mapping[CostKind, int]) -> int:
        """Return the largest sum of weights along a path through a phase; 0 if there is no such phase."""
        if number >= len(self.phases):
            return 0
        phase = self.phases[number]
        if phase.counts is not None:
            return sum(count * weights[kind] for kind, count in phase.counts.items())
        return phase.segment.extreme(self.program, lambda at: weights[phase.kinds[at]], max)


def _occupations(instance: Instance, ports: PortGates, segments: Sequence[tuple[PhaseSegment, ...]]) -> list[Due]:
    """Return, for every phase, how long after its beginning older instructions of the block may hold each gate.

    Who issued one has come to the barrier, or ended: its stall has passed. (A latency may be shorter than its range.)
    """
    gates = ports.gates(ports.reservations(*(group.program for group in instance.groups)))
    found: list[Due] = [{}]
    held: dict[str, int] = {}
    for row in zip_longest(*segments, fillvalue=PhaseSegment((), ())):
        for group, segment in zip(instance.groups, row, strict=True):
            program = group.program
            executed = {
                (ports.reservation(program, at), program.timings[at].stall if program.timings else 1)
                for at in segment.places
            }
            for reservation, stall in executed:
                for hold in reservation.holds:
                    held |= {name: max(hold.most - stall, held.get(name, 0)) for name in hold.pools}
        longest = {gate: max(held.get(name, 0) for name in gate) for gate in gates}
        found.append({gate: cycles for gate, cycles in longest.items() if cycles > 0})
    return found


class Crowd(NamedTuple):
    """Warps by group, and which of them are in the partition of z.

    Args:
        warps: by group.
        here: of these in the partition of z, by group; None: `beside` warps besides it, whichever are worst.
        beside: how many, where `here` does not say.
    """

    warps: tuple[int, ...]
    here: tuple[int, ...] | None
    beside: int = 0

    def others(self, here: Sequence[int], elsewhere: Sequence[int]) -> list[int]:
        """Return what all besides z add up to, for z of each group, from the counts of a warp here and elsewhere."""
        if self.here is not None:
            total = sum(
                n * one + (every - n) * other
                for n, every, one, other in zip(self.here, self.warps, here, elsewhere, strict=True)
            )
            return [total - own for own in here]
        more = [one - other for one, other in zip(here, elsewhere, strict=True)]
        ranked = sorted(zip(more, self.warps, strict=True), reverse=True)
        first = list(islice(chain.from_iterable([extra] * n for extra, n in ranked), self.beside + 1))
        least = first[self.beside - 1] if self.beside else max(first) + 1
        every = sum(n * other for n, other in zip(self.warps, elsewhere, strict=True))
        among, besides = sum(first), sum(first[: self.beside])
        return [
            every - other + (among - extra if extra >= least else besides)
            for extra, other in zip(more, elsewhere, strict=True)
        ]


def _crowds(instance: Instance) -> Iterator[tuple[Crowd, Crowd]]:
    """Yield, for each way to look at the partition of z, all warps, and those of its block."""
    everybody = tuple(group.warps for group in instance.groups)
    partitions = instance.partition_of_warp
    if partitions is not None and instance.blocks == 1:
        found = Counter(zip(partitions, instance.group_of_warp(), strict=True))
        every = range(instance.machine.partitions)
        for here in dict.fromkeys(tuple(found[part, group] for group in range(len(everybody))) for part in every):
            yield (Crowd(everybody, here),) * 2
        return
    block = tuple(warps // instance.blocks for warps in everybody)
    beside = -(-instance.warps // instance.machine.partitions) - 1
    yield Crowd(everybody, None, beside), Crowd(block, None, min(beside, sum(block) - 1))


Families: TypeAlias = dict[tuple[Gate, ...], list[tuple[Crowd, list[int]]]]
"""By the gates that can keep z out: where z may be, and of which groups."""


def families_of(instance: Instance, ports: PortGates) -> Families:
    """Return the gates that others, and z itself, can fill; the other ones keep no warp out."""
    programs = [group.program for group in instance.groups]
    executed, gates = [ports.reservations(program) for program in programs], ports.gates(ports.reservations(*programs))
    different = list(dict.fromkeys(executed))
    families: Families = {}
    for everybody, block in _crowds(instance):
        full: list[set[Gate]] = [set() for _ in programs]
        for gate in gates:
            shared = [name for name in gate if name in ports.shared]
            here = {each: ports.most_held(each, gate) for each in different}
            elsewhere = {each: ports.most_held(each, shared) for each in different}
            own = {each: 0 if ports.is_own(gate) else ports.most_held(each, gate, since=1) for each in different}
            others = everybody.others([here[each] for each in executed], [elsewhere[each] for each in executed])
            for number, (each, held) in enumerate(zip(executed, others, strict=True)):
                if held + own[each] >= ports.capacity(gate):
                    full[number].add(gate)
        found: dict[tuple[Gate, ...], list[int]] = {}
        for number, each in enumerate(executed):
            if block.here is None or block.here[number]:
                found.setdefault(tuple(gate for gate in ports.gates(each) if gate in full[number]), []).append(number)
        if len(found) > MOST_FAMILIES:  # more gates only add cost, so all of them are safe for everyone
            found = {tuple(dict.fromkeys(chain.from_iterable(found))): sorted(chain.from_iterable(found.values()))}
        for family, members in found.items():
            families.setdefault(family, []).append((block, members))
    return families


def scale_of(ports: PortGates, gates: Iterable[Gate]) -> int:
    """PortPrices are in units of 1 / this."""
    return lcm(*(count for gate in gates for count in (ports.capacity(gate), *(ports.capacities[r] for r in gate))))


def ways_to_price(ports: PortGates, gates: Iterable[Gate], scale: int) -> Iterator[PortPrices]:
    """Yield all pools of each gate alike; then, for one gate after another, one pool alone."""
    alike = {gate: dict.fromkeys(gate, scale // ports.capacity(gate)) for gate in gates}
    yield alike
    for gate in alike:
        if len(gate) > 1:
            for name in gate:
                yield {**alike, gate: {name: scale // ports.capacities[name]}}


class KindCharges(NamedTuple):
    """The costs of an instruction of each kind at some prices.

    Args:
        here: one of another warp of the partition.
        elsewhere: one of a warp of another partition, which holds only shared ports that matter.
        later: one of the warp itself, in the cycles after its stall.
    """

    here: Mapping[CostKind, int]
    elsewhere: Mapping[CostKind, int]
    later: Mapping[CostKind, int]

    @classmethod
    def at(cls, ports: PortGates, kinds: Iterable[CostKind], prices: PortPrices) -> Self:
        """Return what these kinds cost at these prices."""
        kinds = tuple(kinds)
        shared = prices_elsewhere(ports, prices)
        # a gate of one port is part of the time of a warp alone already
        several = {gate: price for gate, price in prices.items() if not ports.is_own(gate)}
        return cls(
            {kind: ports.charge(kind.reservation, prices) for kind in kinds},
            {kind: ports.charge(kind.reservation, shared) for kind in kinds},
            {kind: ports.charge(kind.reservation, several, since=kind.stall) for kind in kinds},
        )


def prices_elsewhere(ports: PortGates, prices: PortPrices) -> PortPrices:
    """Return the prices for warps of other partitions, which hold only shared ports that matter."""
    return {gate: {r: p for r, p in price.items() if r in ports.shared} for gate, price in prices.items()}


ChargeKinds: TypeAlias = Callable[[PortGates, Iterable[CostKind], PortPrices], KindCharges]
"""How kinds of instructions are charged at prices: `KindCharges.at`, or what takes its place where there are queues."""


def _bound(
    instance: Instance,
    ports: PortGates,
    paths: Sequence[ProgramPhases],
    families: Families,
    charge: ChargeKinds,
    prices: PortPrices,
    scale: int,
) -> int:
    """Return T and the floor, phase by phase; with several blocks one floor, and all that other blocks execute."""
    worst = [0] * max(len(path.phases) for path in paths)
    kinds = frozenset[CostKind]().union(*(path.kinds for path in paths))
    for family, places in families.items():
        counting = {gate: prices[gate] for gate in family}
        charges = charge(ports, kinds, counting)
        for number in range(len(worst)):
            here, elsewhere, own = ([path.heaviest(number, each) for path in paths] for each in charges)
            for crowd, members in places:
                others = crowd.others(here, elsewhere)
                for z in members:
                    if number < len(paths[z].phases):
                        cycles = scale * paths[z].phases[number].alone + others[z] + own[z]
                        worst[number] = max(worst[number], cycles)
    if instance.blocks == 1:
        # a phase ends for all warps at once, so each of them takes a whole number of cycles by itself
        return sum(cycles // scale for cycles in worst)
    counted = charge(ports, kinds, prices).here
    total = sum(worst)
    for group, path in zip(instance.groups, paths, strict=True):
        heaviest = sum(path.heaviest(number, counted) for number in range(len(path.phases)))
        total += (group.warps - group.warps // instance.blocks) * heaviest
    return total // scale
