"""Theorem G: grids of any number of blocks on a whole GPU, in time that does not depend on how many there are.

Before the last block is dispatched every SM is full, so each slot is a chain of blocks without a gap. A chain is under
way, or is kept out by what its SM executes. Summed up over all slots, an instruction counts once for each chain of its
SM, R of them, and there are S R slots: with A for all that one block adds to the sum, the last block is dispatched by

    t1 <= floor((B - 1) A / (S R)),        and then all ends within what one SM takes for R blocks, and a little more.

What an instruction counts is that of theorem 1S (prices of ports), or of theorem E (pairs). Several grids: a block
weighs in a chain what it takes of an SM. Proof: docs/theory.md, 15.

Cycles in which DRAM is busy, and latencies stand still, come on top of all that, once (theorem V, docs/theory.md, 16).

A lapse keeps out all chains of its SM at most, so an instruction counts its lapses as it counts its ports. Lines that
stay are late once on each SM, before the last dispatch and after it (theorem G-lambda, docs/theory.md, 17).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from math import gcd
from typing import NamedTuple, Self

from makespan.host.errors import UnsupportedError
from makespan.model.certificate import Weights
from makespan.model.feature import LAPSES
from makespan.model.gpu import GpuInstance, Grid, LastDispatch
from makespan.model.instance import Instance
from makespan.model.lapses import PlaceLapses, longest_windows
from makespan.model.lowered import Reservation
from makespan.model.machine import WarpAssignment
from makespan.proof.bounds.gates import Gate, PortGates
from makespan.proof.bounds.lapses import LapseCosts, heaviest_lapses
from makespan.proof.bounds.pairing import Pairing
from makespan.proof.bounds.theorem_1s import (
    KNOWS,
    CostKind,
    KindCharges,
    PortPrices,
    ProgramPhases,
    bound,
    families_of,
    one_after_another,
    paths_of,
    scale_of,
    ways_to_price,
)
from makespan.proof.bounds.theorem_e import WeightedPairs, try_caps

ALL, PARTITIONS, PAIRS, ONE_BY_ONE = "all", "partitions", "pairs", "one-by-one"
"""The ways to count: every instruction for each chain of its SM; those of another partition for shared ports only;
theorem E; and every cycle in which something of an SM passes, whatever waits for it."""


def theorem_g(gpu: GpuInstance) -> LastDispatch:
    """Return when the last block is dispatched at the latest, and the end of all, by the best way to count.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CCLL"), 2),)
    >>> proven = theorem_g(GpuInstance.of(block, 10**9, Machine.of({"C": 1, "L": 1}), sms=10, resident=4))
    >>> proven.counting, proven.dispatched, proven.tail, proven.upper  # alone 4 cycles, and 3 a warp that others wait
    ('pairs', 774999998, 32, 775000030)

    Raises:
        UnsupportedError: there are delays as places, or lapses on a machine that does not say when their credit
            expires.
    """
    proofs = _of_one_grid(gpu) if len(gpu.grids) == 1 else _of_several_grids(gpu)
    return min(proofs, key=lambda proof: proof.upper)._replace(dram=gpu.dram)


class _BlockLapses(NamedTuple):
    """The cycles that lapses and late lines of a block cost.

    Args:
        credits: the lapses of all its warps, those of the whole SM among them.
        fences: the lapses of the whole SM.
        misses: the cycles in which a chain of the block is withheld for lines that do not stay.
        all_misses: the cycles in which some warp of the block is.
        expiry: the cycles behind its end in which lapses of a warp may still come.
        windows: the sum of the windows of all lines.
    """

    credits: int
    fences: int
    misses: int
    all_misses: int
    expiry: int
    windows: int

    @classmethod
    def of(cls, block: Instance) -> Self:
        """Return the costs of a block of these warps.

        Raises:
            UnsupportedError: there are lapses, and the machine does not say when they expire.
        """
        block.require(KNOWS | LAPSES, "theorem G")  # queues are left out, which is an assumption of the GPU

        def of_all(weigh: Callable[[PlaceLapses], int]) -> int:
            return sum(group.warps * heaviest_lapses(group.program, weigh) for group in block.groups)

        credits_ = of_all(lambda place: place.credit + place.fence)
        known, costs = block.machine.lapses, LapseCosts.of(block)
        if credits_ and known is None:
            # with the credit of all blocks saved up for the last one theorem G would be false
            raise UnsupportedError(
                "theorem G does not know lapses that may come long after the end of their warps; say in the table"
                " [lapses] of the machine file how many cycles at most (expiry)"
            )
        expiry = known.expiry if known is not None and credits_ else 0
        fences, misses = of_all(lambda place: place.fence), of_all(lambda place: place.misses)
        return cls(credits_, fences, costs.misses, misses, expiry, costs.all_windows)


class _BlockCharge(NamedTuple):
    """The amount that a block of the only grid adds to the sum over all slots, in units of 1 / `scale` cycles.

    Args:
        counting: how it is counted.
        block: all of it.
        scale: of all numbers here.
        executed: the part that is due to what the block executes, and not to its own time.
        tail: the end, counted in the same way; None where there is no such proof.
        slots: over which the sum goes, by SM.
        weights: of theorem E.
        windows: the cycles in which a slot may wait for lines that stay, before the last block gets its room.
    """

    counting: str
    block: int
    scale: int
    executed: int
    tail: int | None
    slots: int
    weights: tuple[Weights, ...] = ()
    windows: int = 0

    def proofs(self, gpu: GpuInstance, tail: int) -> Iterator[LastDispatch]:
        """Yield the bound with the tail of theorem 1S, and with its own, which counts nothing that came before it."""
        # the last block is not among those that keep it waiting; in one wave there is room for all at once
        charged, scale = 0 if gpu.is_one_wave else gpu.blocks - 1, self.scale * gpu.sms * self.slots
        total, windows = self.block * charged, self.windows if charged else 0
        first = total // scale
        yield LastDispatch(self.counting, self.block, charged, scale, 0, first, tail, self.weights, windows=windows)
        if self.tail is not None:
            # max(0, R - 2) Q: what the blocks at the end execute then, they have not executed before t1
            spared = max(0, self.slots - 2) * self.executed if charged else 0
            last, rest = divmod(self.tail, self.scale)  # what is spared may be after t1: both are rounded together
            first = (total - spared + rest * (scale // self.scale)) // scale
            yield LastDispatch(
                self.counting, self.block, charged, scale, spared, first, last, self.weights, windows=windows
            )


def _of_one_grid(gpu: GpuInstance) -> Iterator[LastDispatch]:
    sm, block = gpu.sm(gpu.resident), _GridBlock.of(gpu, gpu.grid)
    plain, costs = sm.without_lapses, LapseCosts.of(sm)
    # δ + (h - 1): until its warps begin, and until nothing of before is held any more, a link may wait
    late = gpu.dispatch + block.held
    # at the end lapses of warps that have finished come on top; before it they count like those of all others
    end = gpu.dispatch + block.left_over + costs.windows
    tail = end + bound(plain) + costs.credits + costs.misses
    for count in (*_by_prices(gpu, plain, block, late, end), *_by_pairs(gpu, plain, block.lapses)):
        yield from count._replace(windows=_windows_of_slot(gpu, block)).proofs(gpu, tail)


def _windows_of_slot(gpu: GpuInstance, block: "_GridBlock") -> int:
    """Return the cycles in which the chain of a slot is withheld for lines that stay, in all its links together."""
    # the warps of a slot, one of which is its chain, are always in the same partitions
    return min(gpu.machine.partitions, gpu.grid.warps) * block.lapses.windows


@dataclass(frozen=True, slots=True)
class _GridBlock:
    """The warps of a block, and what they may execute, phase by phase.

    Args:
        instance: the block alone.
        ports: of the machine.
        paths: of every group; None if there are more phases than can be told apart.
        tries: how many prices may be tried.
        held: for how many cycles a port may still be held when the warp that took it has finished.
        lapses: what lapses and late lines cost, which `instance` leaves out.
    """

    instance: Instance
    ports: PortGates
    paths: Sequence[ProgramPhases] | None
    tries: int
    held: int
    lapses: _BlockLapses

    @classmethod
    def of(cls, gpu: GpuInstance, grid: Grid) -> "_GridBlock":
        block, ports = Instance.merged(grid.block, gpu.machine), PortGates.of(gpu.machine)
        lapses, instance = _BlockLapses.of(block), block.without_lapses
        paths, tries = paths_of(instance, ports, 1) or (None, 0)
        longest = max(each.longest for each in _reservations(instance, ports))
        return cls(instance, ports, paths, tries, longest - 1, lapses)

    @property
    def left_over(self) -> int:
        """Return for how many cycles warps that have finished may still hold ports or make schedulers lapse."""
        return max(self.held, self.lapses.expiry)

    @property
    def passing(self) -> int:
        """Cycles in which something of the block passes: a stall, a latency, a hold, a lapse, or the wait for a line.

        The windows of lines that stay come on top.
        """
        return one_after_another(self.instance, self.ports) + self.lapses.credits + self.lapses.all_misses


def _reservations(instance: Instance, ports: PortGates) -> tuple[Reservation, ...]:
    return ports.reservations(*(group.program for group in instance.groups))


class _Rates(NamedTuple):
    """The costs of the instructions of a block at some prices, in units of 1 / `scale` cycles.

    Args:
        block: which executes them.
        paths: of its groups.
        scale: of the prices.
        charges: of each kind for any chain.
        outside: for one in another partition.
        later: for its own chain, as long as this is its warp.
    """

    block: _GridBlock
    paths: Sequence[ProgramPhases]
    scale: int
    charges: Mapping[CostKind, int]
    outside: Mapping[CostKind, int]
    later: Mapping[CostKind, int]

    @classmethod
    def at(cls, block: _GridBlock, paths: Sequence[ProgramPhases], prices: PortPrices, scale: int) -> "_Rates":
        kinds = frozenset[CostKind]().union(*(path.kinds for path in paths))
        return cls(block, paths, scale, *KindCharges.at(block.ports, kinds, prices))

    def work(self, weights: Mapping[CostKind, int]) -> int:
        """Return the sum of the weights of all that the warps of the block execute, at most."""
        return sum(
            group.warps * sum(path.heaviest(number, weights) for number in range(len(path.phases)))
            for group, path in zip(self.block.instance.groups, self.paths, strict=True)
        )

    def chain(self, counted: Mapping[CostKind, int] | None) -> int:
        """Return the time of a chain alone, and what it counts for itself instead of what it is `counted` otherwise."""
        weights = {kind: 0 if counted is None else self.later[kind] - counted[kind] for kind in self.charges}
        return sum(
            max(
                self.scale * path.phases[number].alone + path.heaviest(number, weights)
                for path in self.paths
                if number < len(path.phases)
            )
            for number in range(max(len(path.phases) for path in self.paths))
        )


def _by_prices(gpu: GpuInstance, sm: Instance, block: _GridBlock, late: int, end: int) -> Iterator[_BlockCharge]:
    yield _BlockCharge(ONE_BY_ONE, gpu.dispatch + block.passing, 1, 0, None, 1)
    if block.paths is None:
        return
    resident, ports, lapses = gpu.resident, block.ports, block.lapses
    gates = _gates(sm, ports)
    scale = scale_of(ports, gates)
    for prices in islice(ways_to_price(ports, gates, scale), block.tries):
        rates = _Rates.at(block, block.paths, prices, scale)
        # A of theory.md, 15: each instruction counts for every chain of its SM, and for its own only what o says; but
        # its lapses count for its own chain, too
        executed = resident * (rates.work(rates.charges) + scale * lapses.credits) + rates.chain(rates.charges)
        every, last = (scale * (cycles + lapses.misses) + executed for cycles in (late, end))
        yield _BlockCharge(ALL, every, scale, executed - rates.chain(None), last, resident)
        if gpu.machine.partitions > 1 and not sm.has_barriers:  # a chain stays in one partition during a link
            more = {kind: charge - rates.outside[kind] for kind, charge in rates.charges.items()}
            heaviest = [path.heaviest(0, more) for path in block.paths]
            beside = resident * rates.work(rates.outside) + rates.chain(rates.outside) + _crowding(gpu, block, heaviest)
            beside += scale * (lapses.misses + min(late + resident * lapses.credits, _lapses_of_partition(gpu, block)))
            yield _BlockCharge(PARTITIONS, beside, scale, 0, None, resident)


def _lapses_of_partition(gpu: GpuInstance, block: _GridBlock) -> int:
    """Return the cycles of a link before it begins, and those in which the partition of its chain lapses."""
    launched = (group.program for group in Instance.merged(gpu.grid.block, gpu.machine).groups)
    heaviest = [heaviest_lapses(program, lambda place: place.credit) for program in launched]
    crowding = _crowding(gpu, block, heaviest, is_own=True)  # its own credit keeps a warp out, too
    return gpu.dispatch + block.left_over + crowding + gpu.resident * block.lapses.fences


def _gates(sm: Instance, ports: PortGates) -> list[Gate]:
    """Return the gates that the warps of an SM can fill, or that finished warps may still hold."""
    full = frozenset(chain.from_iterable(families_of(sm, ports)))
    executed = _reservations(sm, ports)
    kept = {name for each in executed for hold in each.holds if hold.most > 1 for name in hold.pools}
    return [gate for gate in ports.gates(executed) if gate in full or kept.intersection(gate)]


def _crowding(gpu: GpuInstance, block: _GridBlock, more: Sequence[int], *, is_own: bool = False) -> int:
    """Return what warps of the same partition count more: those there when a block comes, and those that come.

    Args:
        gpu: the GPU.
        block: the block that comes.
        more: what a warp of each group counts more.
        is_own: whether the warp of the chain counts for itself.
    """
    heaviest = [(own, group.warps) for group, own in zip(block.instance.groups, more, strict=True)]
    if gpu.machine.assignment is WarpAssignment.MODULO:
        return _crowding_as_numbered(gpu, heaviest, is_own=is_own)
    resident, warps = gpu.resident, gpu.grid.warps
    most = -(-resident * warps // gpu.machine.partitions)
    there = _largest([(own, resident * count) for own, count in heaviest], most if is_own else most - 1)
    coming = (resident - 1) * _largest(heaviest, min(warps, most))
    return there + min(coming, _meetings(gpu, most) * max(more))


def _meetings(gpu: GpuInstance, most: int) -> int:
    """Return how many chains of other slots the warps of a block can meet, with at most `most` in a partition.

    In the partition with most of these chains, m of them, are `most - m` of its warps at most; each other one meets
    no more than m, nor than all the others.
    """
    warps, others = gpu.grid.warps, gpu.resident - 1

    def met(chains: int) -> int:
        here = min(warps, most - chains)
        return here * chains + (warps - here) * min(chains, others - chains)

    return max((met(chains) for chains in range(1, min(others, most) + 1)), default=0)


def _crowding_as_numbered(gpu: GpuInstance, heaviest: Sequence[tuple[int, int]], *, is_own: bool = False) -> int:
    parts, sm = range(gpu.machine.partitions), gpu.sm(gpu.resident)
    values = [own for own, warps in heaviest for _ in range(gpu.resident * warps)]
    crews: list[dict[int, list[int]]] = [{} for _ in range(gpu.resident)]
    for number, value in zip(sm.number_of_warp(), values, strict=True):
        crews[number // gpu.grid.warps].setdefault(number % len(parts), []).append(value)
    together = [[value for crew in crews for value in crew.get(part, ())] for part in parts]
    there = max(sum(values) - (0 if is_own else min(values)) for values in together if values)
    loads = Counter(tuple(sum(crew.get(part, (-1,))) for part in parts) for crew in crews)

    def met(coming: tuple[int, ...], other: tuple[int, ...]) -> int:
        return max(max(0, here) for here, chain in zip(coming, other, strict=True) if chain >= 0)

    return there + max(
        sum((count - (one == other)) * met(one, other) for other, count in loads.items()) for one in loads
    )


def _largest(values: Sequence[tuple[int, int]], count: int) -> int:
    """Return the sum of the `count` largest, each of which is there a number of times."""
    total = 0
    for value, times in sorted(values, reverse=True):
        taken = min(times, count)
        total, count = total + taken * value, count - taken
    return total


def _by_pairs(gpu: GpuInstance, sm: Instance, lapses: _BlockLapses) -> Iterator[_BlockCharge]:
    """Theorem E, for each link from when its block begins, with all that other warps have open then."""
    used = frozenset[str]().union(*(group.program.units for group in sm.groups))
    units = {unit.name: unit for unit in gpu.machine.units if unit.name in used}
    if sm.is_multiprocessor or sm.has_barriers or sm.issue_width is not None or gpu.dram:
        return
    if any(unit.interval > 1 for unit in units.values()) or lapses.windows or lapses.all_misses:
        return
    users = {name: sum(group.warps for group in sm.groups if name in group.program.units) for name in units}
    classes = tuple(name for name, unit in units.items() if users[name] > unit.capacity)  # the others are never full
    resident = gpu.resident

    def proven(pairs: WeightedPairs) -> _BlockCharge:
        more, entering = pairs.more, pairs.entering
        left = sum(group.warps * own for group, own in zip(sm.groups, pairs.left, strict=True))
        opened = [_most_open(pairing) for pairing in pairs.pairings]
        every = sum(group.warps * own for group, own in zip(sm.groups, opened, strict=True))
        # β of theory.md, 15: what other warps may have open when the link begins;
        before = every // resident * (resident - 1)  # those of the own block have nothing open when it begins
        alone = max(pairing.heaviest(pairs.costs, 0, entering=entering) for pairing in pairs.pairings)
        chain = max(pairing.heaviest(more, 1, entering=entering) for pairing in pairs.pairings)
        late, lapsed = pairs.scale * gpu.dispatch, pairs.scale * resident * lapses.credits
        tail = late + pairs.scale * lapses.expiry + chain + left + lapsed + every - min(opened)
        block = late + chain + left + lapsed + before
        return _BlockCharge(PAIRS, block, pairs.scale, chain + left + lapsed - alone, tail, resident, (pairs.weights,))

    yield from try_caps(sm, classes, proven, lambda count: count.block)


def _most_open(pairing: Pairing) -> int:
    """Return the most that a warp can have open at a time: the largest weight of a pair."""
    places = pairing.program.places
    return max(
        (
            min(pairing.masses.get(unit, 0) - pairing.reserves[at][0], pairing.limits[after])
            for at, (unit, successors) in enumerate(places)
            for after in successors
            if after < pairing.program.end and places[after].unit != unit
        ),
        default=0,
    )


def _of_several_grids(gpu: GpuInstance) -> Iterator[LastDispatch]:
    """Yield the bounds of several grids: all gates count, and nothing is supposed of partitions."""
    blocks = [_GridBlock.of(gpu, grid) for grid in gpu.grids]
    late, end = (
        gpu.dispatch + max(cycles) for cycles in zip(*((block.held, block.left_over) for block in blocks), strict=True)
    )
    ports = blocks[0].ports
    paths = [block.paths for block in blocks if block.paths is not None]
    passing = [Fraction(block.passing) for block in blocks]
    yield _weighted_dispatch(
        gpu, ONE_BY_ONE, [gpu.dispatch + own for own in passing], [end + own for own in passing], passing
    )
    if len(paths) < len(blocks):
        return
    programs = (group.program for block in blocks for group in block.instance.groups)
    gates = ports.gates(ports.reservations(*programs))
    scale = scale_of(ports, gates)
    shares = _shares(gpu)
    together = _most_together(gpu, shares, gpu.room)
    credits_ = [block.lapses.credits for block in blocks]
    for prices in islice(ways_to_price(ports, gates, scale), min(block.tries for block in blocks)):
        rates = [_Rates.at(block, own, prices, scale) for block, own in zip(blocks, paths, strict=True)]
        works = [Fraction(rate.work(rate.charges), scale) for rate in rates]
        chains = [rate.block.lapses.misses + Fraction(rate.chain(rate.charges), scale) for rate in rates]
        rows = zip(shares, chains, works, credits_, strict=True)
        # a lapse costs its SM a cycle, whatever the blocks weigh that it keeps out
        costs = [share * (late + own) + together * work + lapsed for share, own, work, lapsed in rows]
        counted = [work + lapsed for work, lapsed in zip(works, credits_, strict=True)]
        ends = [end + own + work for own, work in zip(chains, counted, strict=True)]
        yield _weighted_dispatch(gpu, ALL, costs, ends, counted)


def _weighted_dispatch(
    gpu: GpuInstance, counting: str, costs: Sequence[Fraction], ends: Sequence[Fraction], works: Sequence[Fraction]
) -> LastDispatch:
    """Return the bound from what a block of each grid adds to the sum, takes at the end, and adds for another."""
    # all blocks are charged but one of the least: the last one, whose grid is not known
    total = sum((grid.blocks * cost for grid, cost in zip(gpu.grids, costs, strict=True)), -min(costs)) / gpu.sms
    shares = _shares(gpu)
    weight = sum((grid.blocks * share for grid, share in zip(gpu.grids, shares, strict=True)), -min(shares))
    tails = []
    for grid, end in zip(gpu.grids, ends, strict=True):
        left = tuple(room - takes for room, takes in zip(gpu.room, grid.takes, strict=True))
        tails.append(end + _most_together(gpu, works, left))
    charged = int(weight >= gpu.sms)  # else there is room for all from the beginning
    first = total.numerator * charged // total.denominator
    # warps may be in any partitions, so those of all partitions may be waited for, before the last dispatch and after
    windows = gpu.machine.partitions * _windows(gpu)
    last = int(max(tails)) + windows
    return LastDispatch(
        counting, total.numerator, charged, total.denominator, 0, first, last, windows=windows * charged
    )


def _windows(gpu: GpuInstance) -> int:
    """Return the sum of the windows of all lines that warps of some grid need."""
    lines = longest_windows(line for grid in gpu.grids for program, _ in grid.block for line in program.lines)
    return sum(line.window for line in lines)


def _shares(gpu: GpuInstance) -> list[Fraction]:
    """Return the weight of a block of each grid; on an SM on which some block does not fit they add up to 1 or more."""
    rows = zip(gpu.room, *(grid.takes for grid in gpu.grids), strict=True)
    full = [_least_taken(room - max(takes), gcd(*takes) or 1) for room, *takes in rows]
    return [max(map(Fraction, grid.takes, full)) for grid in gpu.grids]


def _least_taken(more_than: int, unit: int) -> int:
    return (more_than // unit + 1) * unit


def _most_together(gpu: GpuInstance, values: Sequence[Fraction], room: Sequence[int]) -> Fraction:
    """Return the most that the values of blocks add up to which fit together in this room."""
    limits = [Fraction(0)]
    for grid, value in zip(gpu.grids, values, strict=True):
        fit = min(left // takes for left, takes in zip(room, grid.takes, strict=True) if takes)
        limits[0] += min(fit, grid.blocks) * value
    for number, left in enumerate(room):
        takes = [grid.takes[number] for grid in gpu.grids]
        if all(takes):
            limits.append(left * max(value / one for value, one in zip(values, takes, strict=True)))
    return min(limits)
