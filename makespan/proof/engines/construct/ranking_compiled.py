"""The inner loop of climbing, in arrays and integers so that it compiles: runs of a ranking, and better rankings.

Words used here:

entry    an instruction of a row, see `simulate.runner_compiled`, or the end of the row
ranking  an order of all entries, as the entry of every rank and the rank of every entry; smaller ranks issue first
state    as in the runner, but of ranks: its sets hold those at which a warp is ready, `gate` the first warp of each
"""

from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, Words, inlined, uncounted
from makespan.model.simulate.runner_compiled import (
    NONE,
    IssueLog,
    RunState,
    UnitPorts,
    WarpRows,
    draw,
    hold,
    next_in,
    release,
)

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class PlaceRanking(NamedTuple):
    """The entry of every rank, and the rank of every entry."""

    entries: Ints
    ranks: Ints


def new_state(work: WarpRows, units: UnitPorts, longest: int) -> RunState:
    """Return room for runs; `longest` is the largest latency."""
    warps, classes, ranks = len(work.first), len(units.ports), len(work.letters)
    nothing = np.zeros(0, dtype=np.int64)
    return RunState(
        ready=np.zeros((classes, (ranks + 63) // 64), dtype=np.uint64),
        counts=nothing,
        free=units.ports.copy(),
        releases=np.zeros((classes, units.ports.max()), dtype=np.int64),
        oldest=np.zeros(classes, dtype=np.int64),
        at=np.zeros(warps, dtype=np.int64),
        link=np.zeros(warps, dtype=np.int64),
        ring=np.zeros(longest + 1, dtype=np.int64),
        gate=np.zeros(ranks, dtype=np.int64),
        waiting=nothing,
        running=nothing,
    )


@inlined
def restart(work: WarpRows, units: UnitPorts, state: RunState) -> None:
    """Let all warps arrive in cycle 0, and free every port."""
    for unit in range(len(units.ports)):
        state.free[unit], state.oldest[unit] = units.ports[unit], 0
        for word in range(state.ready.shape[1]):
            state.ready[unit, word] = _ZERO
    for rank in range(len(state.gate)):
        state.gate[rank] = NONE
    for now in range(len(state.ring)):
        state.ring[now] = NONE
    for warp in range(len(state.at)):
        state.at[warp], state.link[warp] = work.first[warp], warp - 1
    state.ring[0] = len(state.at) - 1


@uncounted
def run(work: WarpRows, units: UnitPorts, ranking: PlaceRanking, state: RunState, log: IssueLog) -> int:
    """Return the makespan in cycles, of a program without barriers, if in every cycle the smallest ranks go first."""
    restart(work, units, state)
    classes, span, ranks = len(units.ports), len(state.ring), len(work.letters)
    keeps, issued, unfinished, ready, cycle, now = len(log.cycles) > 0, 0, len(state.at), 0, 0, 0
    while True:
        warp = state.ring[now]
        state.ring[now] = NONE
        while warp != NONE:
            after, entry = state.link[warp], state.at[warp]
            letter, rank = work.letters[entry], ranking.ranks[entry]
            if letter == classes + 1:  # the end of a row
                unfinished -= 1
            else:
                state.link[warp], state.gate[rank] = state.gate[rank], warp
                state.ready[letter, rank >> 6] |= _ONE << np.uint64(rank & 63)
                ready += 1
            warp = after
        if unfinished == 0:
            return cycle
        release(units, state, cycle)
        left = units.width
        while ready > 0 and left > 0:
            # the smallest rank that is ready and finds a free port goes first
            rank = next_in(state.ready, state.free, 0, ranks)
            if rank == NONE:
                break
            warp, entry = state.gate[rank], ranking.entries[rank]
            letter = work.letters[entry]
            state.gate[rank] = state.link[warp]
            if state.gate[rank] == NONE:
                state.ready[letter, rank >> 6] ^= _ONE << np.uint64(rank & 63)
            hold(units, state, letter, cycle)
            then = now + work.latencies[entry]
            then -= span if then >= span else 0
            state.at[warp], state.link[warp], state.ring[then] = entry + 1, state.ring[then], warp
            if keeps:
                log.cycles[issued], log.slots[issued] = cycle, warp
                issued += 1
            left -= 1
            ready -= 1
        cycle, now = cycle + 1, now + 1 if now + 1 < span else 0


@inlined
def place(ranking: PlaceRanking, entry: int, to: int) -> None:
    """Give an entry a rank, and those in between the one next to theirs."""
    at = ranking.ranks[entry]
    step = 1 if to > at else -1
    while at != to:
        moved = ranking.entries[at + step]
        ranking.entries[at], ranking.ranks[moved] = moved, at
        at += step
    ranking.entries[to], ranking.ranks[entry] = entry, to


@uncounted
def climb(
    work: WarpRows,
    units: UnitPorts,
    ranking: PlaceRanking,
    movable: int,
    kept: Ints,
    state: RunState,
    nothing: IssueLog,
    draws: Words,
    runs: int,
    best: int,
) -> int:
    """Return the makespan of the longest of several runs, the first of which is known to take `best` cycles.

    Each gives one to four of the first `movable` entries ranks of others, and is what the next one begins with if it is
    no shorter. `kept` has the entries of `ranking`, before and after.
    """
    for _ in range(runs):
        for _ in range(1 << draw(draws, 3)):
            place(ranking, kept[draw(draws, movable)], draw(draws, movable))
        found = run(work, units, ranking, state, nothing)
        # a worse ranking is undone, entry by entry
        for rank in range(movable):
            if found >= best:
                kept[rank] = ranking.entries[rank]
            else:
                ranking.entries[rank], ranking.ranks[kept[rank]] = kept[rank], rank
        best = max(best, found)
    return best
