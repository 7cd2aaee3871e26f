"""Theorem G for the checker: how long a whole GPU takes at most, by what a block adds to the sum over all slots.

Before the last block gets its room, in cycle t1, each of the S SMs has all of its R slots taken. In each slot blocks
follow one another; of each one a chain of warps is under way, or kept out by instructions on its SM, each of which is
paid for once by each of the R chains there. If a block adds A to the sum over all slots, t1 <= (B - 1) A / (S R). What
an instruction pays is what it pays in theorem 1S, or in theorem E, which is proven for weights that are given.

Ports may be held by a warp that has finished, for one cycle less than the longest hold (h - 1). These first cycles of
each block, and those from t1 on, are paid for whether or not they are hits. (docs/theory.md, 15.)

In a cycle in which DRAM is busy latencies stand still, and nothing else: at most that one cycle is lost to every chain,
so all of these cycles are added at the end (theorem V). Of pairs it is not proven. (docs/theory.md, 16.)

A lapse keeps out no more than the R chains of its SM, so the instruction on whose credit it is pays it once for each of
them, its own one included. A chain that is withheld waits for lines: of those that do not stay at each visit, of those
that stay once for each partition in which its slot has warps. Before t1 it does not matter when a lapse comes; after t1
credit of warps that have finished is left for the first D cycles. (Theorem G-lambda, docs/theory.md, 17.)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, zip_longest
from math import gcd, lcm
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.model.certificate import Weights
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import WarpAssignment
from makespan.model.result import Upper
from makespan.verify import interference, lapses, pairs
from makespan.verify.gates import GatePrices
from makespan.verify.gpu_reading import of_block
from makespan.verify.interference import HitBound
from makespan.verify.machine_form import PoolGate, binding_width, class_holds, used_units
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork

MOST_STEPS = 20_000_000
MOST_PRICES = 16


def bound(gpu: GpuInstance, weights: Sequence[Weights]) -> int:
    """Return an upper bound on every schedule, in cycles: the least of all ways to count.

    Raises:
        Refused: weights of pairs are given, and theorem E does not apply, or to others; or there are lapses that may
            come at any time.
    """
    if len(gpu.grids) > 1:
        return gpu.dram + min(_several_grids(gpu))
    sm = gpu.sm(gpu.resident)
    cost = _LapseCharge.of(gpu, of_block(gpu, gpu.grid))
    # theorem E would count cycles in which other warps are withheld, too
    pairs_of = () if cost.windows or cost.all_misses else weights
    bounds = [*_bounds_by_prices(gpu, sm, cost)]
    bounds += [proven for proof in pairs_of for proven in _bounds_by_pairs(gpu, sm, cost, proof)]
    return gpu.dram + min(bounds)


class _LapseCharge(NamedTuple):
    """The cycles that lapses and late lines of a block cost.

    Args:
        credits: Lambda_b, all lapses on credit of its warps, those of the whole SM among them.
        fences: those of the whole SM.
        misses: the cycles in which its chain is withheld for lines that do not stay.
        all_misses: those in which any of its warps is.
        expiry: D, the cycles behind the end of a warp in which its credit may still be spent.
        windows: C, the windows of all lines that stay.
    """

    credits: int
    fences: int
    misses: int
    all_misses: int
    expiry: int
    windows: int

    @classmethod
    def of(cls, gpu: GpuInstance, block: Instance) -> "_LapseCharge":
        """Return what the warps of a block cost."""
        spent = lapses.of_everybody(block, lambda place: place.credit + place.fence)
        known = gpu.machine.lapses
        if spent and known is None:
            raise Refused("theorem G knows no lapses that may come at any time after the end of their warps")
        fences, every = (lapses.of_everybody(block, weigh) for weigh in (lambda at: at.fence, lambda at: at.misses))
        _, _, misses = lapses.additions(block, Upper.THEOREM_1S)
        windows = sum(lapses.longest_windows(block).values())
        return cls(spent, fences, misses, every, known.expiry if known is not None and spent else 0, windows)


# One grid


def _upper(
    gpu: GpuInstance, cost: _LapseCharge, block: Fraction, tail: Fraction, spared: Fraction = Fraction(0)
) -> int:
    """Return the bound from A, what a block adds to the sum over all slots, and from the tail, the cycles after t1."""
    # Q is `spared`, charged less for each of R - 2 blocks: what is executed before t1 is not executed after it. Parts
    # of a cycle may move from t1 to the tail then, so that only the sum of both is rounded.
    if gpu.is_one_wave:
        return int(tail)
    # the warps of a slot keep their partitions, and each of these has one window for a line
    slots, late = gpu.slots, min(gpu.machine.partitions, gpu.grid.warps) * cost.windows
    apart = int(block * (gpu.blocks - 1) / slots) + int(tail)
    together = int((block * (gpu.blocks - 1) - max(0, gpu.resident - 2) * spared) / slots + tail)
    return late + min(apart, together)


def _bounds_by_prices(gpu: GpuInstance, sm: Instance, cost: _LapseCharge) -> Iterator[int]:
    """Yield bounds that count hits by prices of pools: one by one, all, and partitions."""
    held = _longest_hold(sm) - 1
    after = max(held, cost.expiry) - held  # behind t1 lapses may still come when nothing is held any more
    late = gpu.dispatch + held
    of_last = lapses.additions(sm, Upper.THEOREM_1S)
    _, windows, _ = of_last
    tail = late + after + sum(of_last) + Fraction(interference.bound(sm))
    # in each cycle something of each SM passes: a stall, a latency, a hold, or the cycles of dispatch
    passing = gpu.dispatch + interference.one_after_another(of_block(gpu, gpu.grid)) + cost.credits + cost.all_misses
    yield _upper(gpu, cost, Fraction(passing * gpu.resident), tail)
    lapsing = gpu.resident * cost.credits
    try:
        work = ProofSteps(MOST_STEPS)
        question = HitBound(sm, work)
        crew = [group.warps // gpu.resident for group in sm.groups]
        gates = _gates(question)
        alone = [question.alone(group) for group in range(len(crew))]
        for prices in islice(question.gates.prices(), MOST_PRICES):
            # all: an instruction counts for each of the R chains of its SM, whatever partition they are in
            everywhere = _ChainCharge.of(question, crew, alone, gates, prices, None)
            executed = everywhere.chain + gpu.resident * everywhere.work + lapsing
            block = late + cost.misses + executed
            spared = executed - sum(map(max, zip_longest(*alone, fillvalue=0)))
            yield _upper(gpu, cost, block, tail)
            yield _upper(gpu, cost, block, block + after + windows, spared)
            if gpu.machine.partitions > 1 and not sm.has_barriers:  # a chain stays in one partition for a whole link
                elsewhere = _ChainCharge.of(question, crew, alone, gates, prices, question.gates.shared)
                more = [one - other for one, other in zip(everywhere.heavy, elsewhere.heavy, strict=True)]
                # a chain waits for lapses on its own credit, too, and for those of warps that have just finished
                own = [Fraction(lapses.heaviest(program, lambda at: at.credit)) for program in question.programs]
                lapsing_here = after + gpu.resident * cost.fences + _beside(gpu, own, crew, apart=0)
                least: Fraction = min(Fraction(lapsing), lapsing_here)
                block = late + cost.misses + elsewhere.chain + gpu.resident * elsewhere.work
                yield _upper(gpu, cost, block + _beside(gpu, more, crew, apart=1) + least, tail)
    except TooMuchWork:
        return


def _longest_hold(instance: Instance) -> int:
    """Return h, the most cycles for which an instruction can hold a port."""
    return max(hold.most for unit in used_units(instance).values() for hold in class_holds(unit))


def _gates(question: HitBound) -> list[PoolGate]:
    """Return the gates that count: those that the warps of an SM can fill, or that finished warps may still hold."""
    full = {gate for group, everybody, _ in question.companies() for gate in question.full(group, everybody)}
    units = sorted(set().union(*question.classes))
    kept = {name for unit in units for hold in question.gates.holds[unit] if hold.most > 1 for name in hold.gate}
    return [gate for gate in question.gates.every if gate in full or kept & gate]


class _ChainCharge(NamedTuple):
    """The cycles that a block counts at some prices.

    Args:
        chain: the sum over phases of the largest T_k + o_k - U_k: a chain's own instructions count o for it, not U.
        work: I, what all warps of a block count for any chain.
        heavy: what a warp of each group counts at most, over all phases.
    """

    chain: Fraction
    work: Fraction
    heavy: list[Fraction]

    @classmethod
    def of(
        cls,
        question: HitBound,
        crew: Sequence[int],
        alone: Sequence[Sequence[int]],
        gates: Sequence[PoolGate],
        prices: GatePrices,
        among: PoolGate | None,
    ) -> "_ChainCharge":
        """Return the counts of a block with `crew` warps of each group, which take T_k `alone` in each phase."""
        # Only pools `among` these take part; None means that all do.
        scale, paid = prices.scale, question.price(gates, prices, among)
        rows = []
        for group, (program, cycles) in enumerate(zip(question.programs, alone, strict=True)):
            own = question.own(group, gates, prices)
            less = [cost - paid.get(place.unit, 0) for cost, place in zip(own, program.places, strict=True)]
            rows.append(
                [time * scale + more for time, more in zip(cycles, question.along(group, less), strict=False)]
                if crew[group]
                else []
            )
        chain = sum(max(one for one in phase if one is not None) for phase in zip_longest(*rows))
        heavy = [Fraction(sum(row), scale) for row in question.heavy(gates, prices, among)]
        work = sum((own * warps for own, warps in zip(heavy, crew, strict=True)), Fraction(0))
        return cls(Fraction(chain, scale), work, heavy)


def _beside(gpu: GpuInstance, more: Sequence[Fraction], crew: Sequence[int], *, apart: int) -> Fraction:
    """Return there + coming: what warps in the partition of a chain count more than elsewhere, all but `apart` one."""
    # They are there when its block begins, or come later. Each block comes during one link of each of the other slots,
    # and counts for those in whose partition it has warps.
    if gpu.machine.assignment is WarpAssignment.MODULO:
        return _beside_by_number(gpu, more, apart=apart)
    rows, block, others = list(zip(more, crew, strict=True)), sum(crew), gpu.resident - 1
    seats = -(-gpu.resident * block // gpu.machine.partitions)
    present = _most([(own, gpu.resident * warps) for own, warps in rows], seats - apart)
    # of the chains m are in one partition, none has more: so many of the block's warps are there at most, and others
    # are where so many chains are that remain, and no more than m
    meetings = [0]
    for m in range(1, min(others, seats) + 1):
        beside = min(block, seats - m)
        meetings.append(beside * m + (block - beside) * min(m, others - m))
    return present + min(others * _most(rows, min(block, seats)), max(meetings) * max(more))


def _beside_by_number(gpu: GpuInstance, more: Sequence[Fraction], *, apart: int) -> Fraction:
    """Return there + coming where each slot has the same warps in a partition all the time."""
    # `more` is by program, in order of appearance.
    parts, programs = gpu.machine.partitions, dict.fromkeys(program for program, _ in gpu.grid.block)
    value = dict(zip(programs, more, strict=True))
    launched = [value[program] for program, warps in gpu.grid.block for _ in range(warps)] * gpu.resident
    every: list[list[Fraction]] = [[] for _ in range(parts)]
    slots: list[list[Fraction | None]] = [[None] * parts for _ in range(gpu.resident)]  # None: it has no warp there
    for number, own in enumerate(launched):
        part, slot = number % parts, slots[number * gpu.resident // len(launched)]
        every[part].append(own)
        slot[part] = own + (slot[part] or 0)
    present = max(sum(own, Fraction(0)) - apart * min(own) for own in every if own)
    kinds = Counter(map(tuple, slots))
    coming = (sum((times - (a == b)) * _most_met(a, b) for b, times in kinds.items()) for a in kinds)
    return present + max(coming)


def _most_met(comes: Sequence[Fraction | None], chain: Sequence[Fraction | None]) -> Fraction:
    """Return what a slot whose block comes makes more for a chain, which may be where its own slot has a warp."""
    return max(own or Fraction(0) for own, may_be in zip(comes, chain, strict=True) if may_be is not None)


def _most(values: Sequence[tuple[Fraction, int]], count: int) -> Fraction:
    total = Fraction(0)
    for value, times in sorted(values, reverse=True):
        total += value * min(times, count)
        count -= min(times, count)
    return total


def _bounds_by_pairs(gpu: GpuInstance, sm: Instance, cost: _LapseCharge, proof: Weights) -> Iterator[int]:
    """Yield bounds by weights of pairs: theorem E from the begin of each block on, when others have open pairs."""
    _check_pairs(gpu, sm, proof)
    try:
        counts = _PairCounts.of(sm, pairs.PairCharges(sm, proof, ProofSteps(pairs.MOST_STEPS)))
    except TooMuchWork:
        return
    every, lapsing = _of_all(sm, counts.opened), gpu.resident * cost.credits
    own = gpu.dispatch + counts.chain + counts.work + lapsing
    # no warp of its own block has opened a pair when it begins
    block, tail = own + every * (gpu.resident - 1) / gpu.resident, own + every - min(counts.opened)
    rest = gpu.dispatch + cost.expiry + interference.bound(sm) + sum(lapses.additions(sm, Upper.THEOREM_1S))
    yield _upper(gpu, cost, block, Fraction(rest))
    yield _upper(gpu, cost, block, tail + cost.expiry, counts.chain + counts.work + lapsing - counts.alone)


class _PairCounts(NamedTuple):
    """The cycles that count by weights of pairs.

    Args:
        alone: c + p of a chain.
        chain: c + p - m of a chain, as its own instructions do not count m for it.
        work: what all warps of an SM execute of plain and opening mass.
        opened: beta by group, the largest weight of a letter, as its pair may be open when a block begins.
    """

    alone: Fraction
    chain: Fraction
    work: Fraction
    opened: list[Fraction]

    @classmethod
    def of(cls, sm: Instance, judge: pairs.PairCharges) -> "_PairCounts":
        """Return what counts on an SM."""
        users = Counter(name for group in sm.groups for name in group.program.units for _ in range(group.warps))
        ports = {unit.name: unit.capacity for unit in used_units(sm).values()}
        full = {name: count for name, count in ports.items() if name in judge.mass or users[name] > count}
        factor = lcm(*full.values())
        scale = judge.scale * factor
        counts = {name: scale // count for name, count in full.items()}  # an instruction that holds a port for a cycle
        costs, price = _times(judge.cost, factor), _times(judge.price, factor)
        instead = Counter(costs)
        instead.subtract(counts)

        def most(worth: Mapping[str, int], times: int) -> Fraction:
            return Fraction(max(walk.most(worth, times, price)[0] for walk in judge.walks), scale)

        left = [Fraction(walk.most(counts, -factor)[0], scale) for walk in judge.walks]
        opened = [Fraction(walk.largest(), judge.scale) for walk in judge.walks]
        return cls(most(costs, 0), most(instead, factor), _of_all(sm, left), opened)


def _times(cycles: Mapping[str, int], factor: int) -> dict[str, int]:
    return {name: count * factor for name, count in cycles.items()}


def _of_all(sm: Instance, values: Sequence[Fraction]) -> Fraction:
    return sum((group.warps * own for group, own in zip(sm.groups, values, strict=True)), Fraction(0))


def _check_pairs(gpu: GpuInstance, sm: Instance, proof: Weights) -> None:
    what = "theorem E does not apply to this GPU"
    if sm.is_multiprocessor or sm.has_barriers or binding_width(sm) is not None or proof.thresholds:
        raise Refused(f"{what}: it knows warps that block, without barriers or issue width")
    if any(unit.interval > 1 for unit in used_units(sm).values()):
        raise Refused(f"{what}: an instruction holds its port for more than a cycle")
    if gpu.dram:
        raise Refused(f"{what}: latencies stand still while DRAM is busy")


# Several grids


def _several_grids(gpu: GpuInstance) -> Iterator[int]:
    """Yield bounds for several grids, with a weight omega for each block by what it takes of an SM."""
    shares = _shares(gpu)
    alone = [of_block(gpu, grid) for grid in gpu.grids]
    lapsing = [_LapseCharge.of(gpu, block) for block in alone]
    held = max(map(_longest_hold, alone)) - 1
    late, end = gpu.dispatch + held, gpu.dispatch + max(held, *(cost.expiry for cost in lapsing))
    yield _bound_one_by_one(gpu, shares, alone, lapsing, end)
    try:
        work = ProofSteps(MOST_STEPS)
        whole = HitBound(Instance.merged([own for grid in gpu.grids for own in grid.block], gpu.machine), work)
        times = [_times_in(whole, block, work) for block in alone]
        for prices in islice(whole.gates.prices(), MOST_PRICES):
            counts = [_ChainCharge.of(whole, crew, rows, whole.gates.every, prices, None) for crew, rows in times]
            yield _bound_all(gpu, shares, counts, lapsing, late, end)
    except (TooMuchWork, InputError):  # the latter if all grids together are no instance
        return


def _bound_all(
    gpu: GpuInstance,
    shares: Sequence[Fraction],
    counts: Sequence[_ChainCharge],
    lapsing: Sequence[_LapseCharge],
    late: int,
    end: int,
) -> int:
    """Return the bound that counts whatever an SM executes for each chain; `late` and `end` come on top."""
    together, costs, ends, works = _together(gpu, shares, gpu.room), [], [], []
    for share, count, cost in zip(shares, counts, lapsing, strict=True):
        chain, work = count.chain + cost.misses, count.work + cost.credits
        # each lapse takes one cycle from its SM, whatever the blocks weigh that it keeps out
        costs.append(share * (late + chain) + together * count.work + cost.credits)
        ends.append(end + chain + work)
        works.append(work)
    return _bound_by_shares(gpu, shares, costs, ends, works)


def _all_windows(gpu: GpuInstance) -> int:
    """Return the cycles of the windows of lines that stay in all partitions of an SM."""
    longest: dict[str, int] = {}
    for grid in gpu.grids:  # several may need the same line, with windows of different lengths
        for name, cycles in lapses.longest_windows(of_block(gpu, grid)).items():
            longest[name] = max(cycles, longest.get(name, 0))
    return gpu.machine.partitions * sum(longest.values())


def _bound_one_by_one(
    gpu: GpuInstance,
    shares: Sequence[Fraction],
    alone: Sequence[Instance],
    lapsing: Sequence[_LapseCharge],
    end: int,
) -> int:
    passing = [
        Fraction(interference.one_after_another(block) + cost.credits + cost.all_misses)
        for block, cost in zip(alone, lapsing, strict=True)
    ]
    return _bound_by_shares(
        gpu, shares, [gpu.dispatch + own for own in passing], [end + own for own in passing], passing
    )


def _shares(gpu: GpuInstance) -> list[Fraction]:
    """Return omega of a block of each grid."""
    # The blocks on an SM on which one does not fit weigh 1 at least: more than C - max v is taken of some resource, and
    # all that is taken of it is a multiple of what divides whatever blocks take of it.
    room = list(zip(gpu.room, *(grid.takes for grid in gpu.grids), strict=True))
    full = [there - there % (step := gcd(*takes) or 1) + step - max(takes) for there, *takes in room]
    return [max(map(Fraction, grid.takes, full)) for grid in gpu.grids]


def _times_in(whole: HitBound, block: Instance, work: ProofSteps) -> tuple[list[int], list[list[int]]]:
    """Return by program of all grids the warps that a block has of it, and their times alone in each phase."""
    question = HitBound(block, work)
    numbers = {group.program: number for number, group in enumerate(block.groups)}
    own = [numbers.get(program) for program in whole.programs]
    crew = [0 if number is None else block.groups[number].warps for number in own]
    return crew, [[] if number is None else question.alone(number) for number in own]


def _bound_by_shares(
    gpu: GpuInstance,
    shares: Sequence[Fraction],
    costs: Sequence[Fraction],
    ends: Sequence[Fraction],
    works: Sequence[Fraction],
) -> int:
    """Return the bound from omega of a block of each grid (`shares`), and from what it adds to the sum over all SMs."""
    # If it is the last one it takes `ends`, and it adds `works` to the end of another one.

    def but_one(values: Sequence[Fraction]) -> Fraction:
        # all blocks are charged but the last one, which may be of any grid
        return sum((grid.blocks * value for grid, value in zip(gpu.grids, values, strict=True)), -min(values))

    windows = _all_windows(gpu)
    # if the weights are less, all have room in cycle 0
    first = windows + int(but_one(costs) / gpu.sms) if but_one(shares) >= gpu.sms else 0
    tails = []
    for grid, end in zip(gpu.grids, ends, strict=True):
        # J: all that can be on an SM together with the last block
        left = [room - takes for room, takes in zip(gpu.room, grid.takes, strict=True)]
        tails.append(end + _together(gpu, works, left))
    return first + windows + int(max(tails))


def _together(gpu: GpuInstance, values: Sequence[Fraction], room: Sequence[int]) -> Fraction:
    """Return a bound of the sum of `values` over all blocks that fit in so much room together."""
    rows = list(zip(gpu.grids, values, strict=True))
    found = [sum((_fit(grid, room) * value for grid, value in rows), Fraction(0))]
    for number, left in enumerate(room):
        if all(grid.takes[number] for grid in gpu.grids):
            found.append(left * max(value / grid.takes[number] for grid, value in rows))
    return min(found)


def _fit(grid: Grid, room: Sequence[int]) -> int:
    return min(grid.blocks, *(left // one for left, one in zip(room, grid.takes, strict=True) if one))
