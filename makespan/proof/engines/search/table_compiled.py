"""The inner loop of the dense table, in arrays and integers so that it compiles.

Words used here:

standing   per warp, the place where it stands; the warps of a group are in increasing order of their places
rank       number of a state in the table; it rises with every move
gain       of a warp at a place: by how much its move to the next place raises the rank; that of warp 0 is always 1
run        the warps of a group that stand at one place; those that move are its last ones
sum        of the gains of some warps of a class that move
leap       a sum over all classes: what a complete choice of the warps that move adds to the rank

Neighbours in the table differ in their first warps only. So sums are kept for the last warp, the last two, and so on,
one more being a few more sums at the end; what warps behind a change contribute is not touched. And while warp 0 alone
goes back, through places of one class, all leaps remain.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.host.compiled import NIL, ONE, Ints, Words, inlined, uncounted

TableValues = NDArray[np.int16]

_ONE = np.uint64(1)


class TableLadder(NamedTuple):
    """The instance: per group its first warp (and one past the last group), its first code, and its places.

    `group` is that of every warp, `unit` the class of every code, and `since` says of every code from which place of
    its group on all are of its class. `sigma` are the capacities, and `gain` is the gain of every warp at every place.
    """

    first: Ints
    base: Ints
    end: Ints
    group: Ints
    unit: Ints
    since: Ints
    sigma: Ints
    gain: Ints


class TableScratch(NamedTuple):
    """The sums and leaps of a state.

    From warp w on `ready[w, u]` warps want to execute an instruction of class u. The last of them about whom there are
    sums is r = `row[w, u]`. Sums of n warps begin at `begin[u, n]`; the first `size[r, n]` are of warps from w on, and
    those from `whole[r, n]` on are the ones with all warps of the run that r belongs to.
    """

    begin: Ints
    sums: Words
    row: Ints
    size: Ints
    whole: Ints
    ready: Ints
    leaps: Words


@inlined
def step_back(standing: Ints, ladder: TableLadder) -> int:
    """Go to the state whose rank is one less; return the last warp that stands elsewhere now."""
    last = -ONE
    for group in range(len(ladder.end)):
        first, beyond = ladder.first[group], ladder.first[group + 1]
        for warp in range(first, beyond):
            if standing[warp] > 0:
                lower = standing[warp] - 1
                for at in range(first, warp + 1):
                    standing[at] = lower
                return int(warp)
        for warp in range(first, beyond):
            standing[warp] = ladder.end[group]
        last = beyond - ONE
    return int(last)


@inlined
def goes_on(warp: int, standing: Ints, ladder: TableLadder) -> bool:
    """Return whether the next warp belongs to the run of this one."""
    return bool(warp + 1 < ladder.first[ladder.group[warp] + 1] and standing[warp + 1] == standing[warp])


@inlined
def copy(number: np.uint64, source: Words, first: np.uint64, more: np.uint64, target: Words, to: np.uint64) -> None:
    """Write `number` sums, each with something added; numbers without a sign need no look whether they are negative."""
    for at in range(number):
        target[to + at] = source[first + at] + more


@inlined
def add_warps(last: int, standing: Ints, ladder: TableLadder, scratch: TableScratch) -> None:
    """Make the sums of warps from 1 on; those of warps behind `last` are there."""
    for warp in range(last, 0, -1):  # from the back: sums of the warps behind a change are there
        add_warp(warp, standing, ladder, scratch)


@inlined
def add_warp(warp: int, standing: Ints, ladder: TableLadder, scratch: TableScratch) -> None:
    """Make the sums of warps from this one on; those of warps behind it are there.

    A sum is complete if all ready warps are in it, or `sigma`: those that the warps in front cannot complete are left
    out, so there are never more sums than complete choices in some state.
    """
    begin, sums, row, ready = scratch.begin, scratch.sums, scratch.row, scratch.ready
    size, whole = scratch.size, scratch.whole
    for unit in range(row.shape[1]):
        row[warp, unit], ready[warp, unit] = row[warp + 1, unit], ready[warp + 1, unit]
    group, place = ladder.group[warp], standing[warp]
    if place == ladder.end[group]:
        return
    unit = ladder.unit[ladder.base[group] + place]
    sigma, old = ladder.sigma[unit], row[warp, unit]
    ready[warp, unit] += 1
    if warp + sigma < ladder.first[group + 1] and standing[warp + sigma] == place:
        return  # the run has as many others as may move, and those are its last ones
    row[warp, unit] = warp
    own, again = ladder.gain[warp, place], goes_on(warp, standing, ladder)
    size[warp, 0] = whole[warp, 0] = 1
    for number in range(1, sigma + 1):
        made, before = begin[unit, number] + size[old, number], begin[unit, number - 1]
        whole[warp, number] = size[old, number]
        if number <= ready[warp, unit] and (number >= sigma - warp or number == ready[warp, unit]):
            since = whole[old, number - 1] if again else NIL
            more = size[old, number - 1] - since
            copy(np.uint64(more), sums, np.uint64(before + since), np.uint64(own), sums, np.uint64(made))
            made += more
        size[warp, number] = made - begin[unit, number]


@inlined
def find_leaps(standing: Ints, ladder: TableLadder, scratch: TableScratch) -> int:
    """Fill in the leaps of a state, where the sums of warps from 1 on are there; return how many there are."""
    begin, sums, size, leaps = scratch.begin, scratch.sums, scratch.size, scratch.leaps
    place = standing[0]
    mine = ladder.unit[place] if place < ladder.end[0] else -ONE
    leaps[0] = 0
    count = ONE
    for unit in range(len(ladder.sigma)):
        ready = scratch.ready[1, unit] + np.int64(unit == mine)
        number, row = min(ready, ladder.sigma[unit]), scratch.row[1, unit]
        if number > 0:
            first, some, since, more = begin[unit, number], size[row, number], NIL, NIL
            if unit == mine:  # warp 0 is one of those that move, too
                own = scratch.whole[row, number - 1] if goes_on(NIL, standing, ladder) else NIL
                since, more = begin[unit, number - 1] + own, size[row, number - 1] - own
            every = some + more
            for leap in range(count - 1, -1, -1):
                total, to = leaps[leap], np.uint64(leap * every)
                # from the last leap down, so that no leap is overwritten before it is read
                copy(np.uint64(some), sums, np.uint64(first), total, leaps, to)
                copy(np.uint64(more), sums, np.uint64(since), total + _ONE, leaps, to + np.uint64(some))
            count *= every
    return int(count)


@uncounted
def fill(
    rank: int,
    stop: int,
    budget: int,
    sense: int,
    table: TableValues,
    standing: Ints,
    ladder: TableLadder,
    scratch: TableScratch,
) -> int:
    """Fill in the states from `rank` down to `stop`, until `budget` states and leaps are; return the next rank."""
    leaps = scratch.leaps
    last = len(standing) - 1
    while rank >= stop and budget > 0:
        add_warps(last, standing, ladder, scratch)
        count = find_leaps(standing, ladder, scratch)
        place, alike = standing[0], ONE
        if place < ladder.end[0] and not goes_on(NIL, standing, ladder):
            alike = min(place - ladder.since[place], rank - stop, budget // count) + 1
        for back in range(alike):
            state = np.uint64(rank - back)  # leaps are the same as long as warp 0 goes back within one class
            most = table[state + leaps[0]]
            for leap in range(1, count):
                most = max(most, table[state + leaps[leap]])
            table[state] = most + sense
        rank -= alike
        budget -= alike * (count + 1)
        standing[0] = place - alike + 1
        last = step_back(standing, ladder)
    return rank


@uncounted
def follow(
    rank: int, wanted: int, table: TableValues, standing: Ints, ladder: TableLadder, scratch: TableScratch
) -> int:
    """Return the rank of the first state of value `wanted` to which a cycle leads, or -1."""
    add_warps(len(standing) - 1, standing, ladder, scratch)
    for leap in range(find_leaps(standing, ladder, scratch)):
        after = rank + np.int64(scratch.leaps[leap])
        if table[after] == wanted:
            return int(after)
    return -1
