"""The inner loop of the dense table, in arrays and integers so that it compiles.

Words used here:

standing   per warp, the place where it stands; the warps of a group are in increasing order of their places
rank       number of a state in the table; it rises with every move
gain       of a warp at a place: by how much its move to the next place raises the rank
run        the warps of a group that stand at one place; those that move are its last ones
leaf       one complete choice of the warps that move in a cycle; its sum of gains leads to the next state
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.compiled import NIL, ONE, uncounted

Ints = NDArray[np.int64]
Values = NDArray[np.int16]

RUN_LAST, RUN_WARPS, RUN_PLACE = range(3)
"""Columns of a run: the last of its warps, how many they are, and the place in their group."""


class Ladder(NamedTuple):
    """The instance: per group its first warp (and one past the last group), its first code, and its places.

    `unit` is the class of every code, `sigma` the capacities, and `gain` the gain of every warp at every place.
    """

    first: Ints
    base: Ints
    end: Ints
    unit: Ints
    sigma: Ints
    gain: Ints


class Scratch(NamedTuple):
    """Space for one state: the runs of every class and their number, the warps that are ready, and sums of gains.

    Row 0 of `sums` holds those of the last class, row 1 those of all others together, row 2 is for their making;
    `taken` says of each how many warps of the class have been added to it.
    """

    runs: Ints
    size: Ints
    ready: Ints
    sums: Ints
    taken: Ints


@uncounted
def step_back(standing: Ints, ladder: Ladder) -> None:
    """Go to the state whose rank is one less."""
    for group in range(len(ladder.end)):
        first, beyond = ladder.first[group], ladder.first[group + 1]
        for warp in range(first, beyond):
            if standing[warp] > 0:
                lower = standing[warp] - 1
                for at in range(first, warp + 1):
                    standing[at] = lower
                return
        for warp in range(first, beyond):
            standing[warp] = ladder.end[group]


@uncounted
def find_runs(standing: Ints, ladder: Ladder, scratch: Scratch) -> None:
    """Fill in the runs of a state, class by class, and how many warps are ready."""
    runs, size, ready = scratch.runs, scratch.size, scratch.ready
    for unit in range(len(ladder.sigma)):
        size[unit] = 0
        ready[unit] = 0
    for group in range(len(ladder.end)):
        warp, beyond = ladder.first[group], ladder.first[group + 1]
        while warp < beyond and standing[warp] < ladder.end[group]:
            place, begin = standing[warp], warp
            while warp < beyond and standing[warp] == place:
                warp += 1
            unit = ladder.unit[ladder.base[group] + place]
            number = size[unit]
            runs[unit, number, RUN_LAST] = warp - 1
            runs[unit, number, RUN_WARPS] = warp - begin
            runs[unit, number, RUN_PLACE] = place
            size[unit] = number + 1
            ready[unit] += warp - begin


@uncounted
def extend(row: int, count: int, unit: int, ladder: Ladder, scratch: Scratch) -> int:
    """Add to each of `count` sums every choice of the warps of a class that move; return how many sums there are."""
    ready, size = scratch.ready[unit], scratch.size[unit]
    quota = min(ready, ladder.sigma[unit])
    if quota == 0:
        return count
    if quota == ready:
        extend_by_all(row, count, unit, size, ladder.gain, scratch.runs, scratch.sums)
        return count
    if quota == 1:
        return extend_by_one(row, count, unit, size, ladder.gain, scratch.runs, scratch.sums)
    if quota == 2 and count == 1:
        return extend_by_two(row, unit, size, ladder.gain, scratch.runs, scratch.sums)
    return extend_by_some(row, count, unit, size, quota, ready, ladder.gain, scratch.runs, scratch.sums, scratch.taken)


@uncounted
def extend_by_all(row: int, count: int, unit: int, size: int, gain: Ints, runs: Ints, sums: Ints) -> None:
    """Everybody moves."""
    total = np.int64(0)
    for run in range(size):
        last, place = runs[unit, run, RUN_LAST], runs[unit, run, RUN_PLACE]
        for warp in range(last - runs[unit, run, RUN_WARPS] + 1, last + 1):
            total += gain[warp, place]
    for at in range(count):
        sums[row, at] += total


@uncounted
def extend_by_one(row: int, count: int, unit: int, size: int, gain: Ints, runs: Ints, sums: Ints) -> int:
    """One warp moves; the first run is added last and in place, once the sums are not needed any more."""
    made = count
    for run in range(size - 1, -1, -1):
        own = gain[runs[unit, run, RUN_LAST], runs[unit, run, RUN_PLACE]]
        to = made if run else 0
        for at in range(count):
            sums[row, to + at] = sums[row, at] + own
        made += count if run else 0
    return made


@uncounted
def extend_by_two(row: int, unit: int, size: int, gain: Ints, runs: Ints, sums: Ints) -> int:
    """Two warps move, and there is one sum so far."""
    begun = sums[row, 0]
    made = 0
    for run in range(size):
        last, place = runs[unit, run, RUN_LAST], runs[unit, run, RUN_PLACE]
        total = begun + gain[last, place]
        if runs[unit, run, RUN_WARPS] > 1:
            sums[row, made] = total + gain[last - 1, place]
            made += 1
        for other in range(run + 1, size):
            sums[row, made] = total + gain[runs[unit, other, RUN_LAST], runs[unit, other, RUN_PLACE]]
            made += 1
    return made


@uncounted
def extend_by_some(
    row: int, count: int, unit: int, size: int, quota: int, ready: int, gain: Ints, runs: Ints, sums: Ints, taken: Ints
) -> int:
    """`quota` warps of those that are ready move.

    Every partial choice can be completed, so there are never more of them than of complete ones. They change between
    `row` and row 2 with every run.
    """
    left = ready
    old, new = row, 2
    for at in range(count):
        taken[row, at] = 0
    for run in range(size):
        last, warps, place = runs[unit, run, RUN_LAST], runs[unit, run, RUN_WARPS], runs[unit, run, RUN_PLACE]
        left -= warps
        made = 0
        for at in range(count):
            total, had = sums[old, at], taken[old, at]
            least = quota - had - left  # what the runs behind could not take any more
            if least <= 0:
                sums[new, made] = total
                taken[new, made] = had
                made += 1
            for take in range(1, min(warps, quota - had) + 1):
                total += gain[last - take + 1, place]  # the last warp of the run moves first, so ranks stay sorted
                if take >= least:
                    sums[new, made] = total
                    taken[new, made] = had + take
                    made += 1
        count = made
        old, new = new, old
    if old != row:
        for at in range(count):
            sums[row, at] = sums[old, at]
    return count


@uncounted
def expand(rank: int, standing: Ints, ladder: Ladder, scratch: Scratch) -> tuple[int, int]:
    """Fill in the sums of a state, the rank included; return how many there are in rows 0 and 1."""
    find_runs(standing, ladder, scratch)
    last = len(ladder.sigma) - 1
    scratch.sums[0, 0] = 0
    scratch.sums[1, 0] = rank
    others = ONE
    for unit in range(last):
        others = extend(ONE, others, unit, ladder, scratch)
    return extend(NIL, ONE, last, ladder, scratch), others


@uncounted
def fill(
    rank: int, stop: int, budget: int, sense: int, table: Values, standing: Ints, ladder: Ladder, scratch: Scratch
) -> int:
    """Fill in the states from `rank` down to `stop`, until `budget` states and leaves are; return the next rank."""
    sums = scratch.sums
    while rank >= stop and budget > 0:
        own, others = expand(rank, standing, ladder, scratch)
        most = table[sums[1, 0] + sums[0, 0]]
        for other in range(others):
            base = sums[1, other]
            for at in range(own):
                most = max(most, table[base + sums[0, at]])
        table[rank] = most + sense
        budget -= own * others + 1
        rank -= 1
        step_back(standing, ladder)
    return rank


@uncounted
def follow(rank: int, wanted: int, table: Values, standing: Ints, ladder: Ladder, scratch: Scratch) -> int:
    """The rank of the first state of value `wanted` to which a cycle leads, or -1."""
    own, others = expand(rank, standing, ladder, scratch)
    for other in range(others):
        for at in range(own):
            after = scratch.sums[1, other] + scratch.sums[0, at]
            if table[after] == wanted:
                return int(after)
    return -1
