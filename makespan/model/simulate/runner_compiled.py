"""The inner loop of the runner, in arrays and integers so that it compiles.

Words used here:

slot     a warp, numbered so that policies which prefer one warp to another prefer the smaller number
row      what a warp executes, as numbers of classes, then BARRIER as the number of classes, END as one more
able     ready, with a free port of its class, and in a cycle with an issue slot left
ring     for every cycle to come, modulo the longest latency, the list of the slots that arrive in it; a list is linked
         through `link`, for a slot is in one list at most: of the ring, of a barrier, or of those that are looked at
turn     what a policy remembers: see `pick`
"""

from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, Words, inlined, uncounted

OLDEST, ROUND_ROBIN, GREEDY, TWO_LEVEL, RANDOM = range(5)
NONE = -1
_NO_TIME = 1 << 62
_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_PAIRS, _FOURS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES, _S1, _S2, _S4, _S56 = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


class WarpRows(NamedTuple):
    """The rows of all warps, one after another, with a latency per entry; the begin of each slot's row; its block."""

    letters: Ints
    latencies: Ints
    first: Ints
    block: Ints


class UnitPorts(NamedTuple):
    """The ports and intervals of the classes, and the issue width (the number of slots if there is no limit)."""

    ports: Ints
    intervals: Ints
    width: int


class RunState(NamedTuple):
    """The state of a run between two steps of its loop.

    Args:
        ready: for every class a set of slots.
        counts: the number of slots that each class has in `ready`.
        free: the number of ports of each class that are free in this cycle.
        releases: for classes with an interval above 1, a ring buffer of the cycles in which held ports become free.
        oldest: the begin of the ring buffer of each class.
        at: the entry of its row at which each slot stands.
        link: the slot after each slot in its list.
        ring: the first slot of the list of each coming cycle.
        gate: the first of the slots that wait at the barrier of each block.
        waiting: the number of slots that wait there.
        running: the number of unfinished slots of each block.
    """

    ready: Words
    counts: Ints
    free: Ints
    releases: Ints
    oldest: Ints
    at: Ints
    link: Ints
    ring: Ints
    gate: Ints
    waiting: Ints
    running: Ints


class PolicyState(NamedTuple):
    """A policy: its kind, the size of a fetch group, its memory, the last slot of each group, and its random state."""

    kind: int
    size: int
    turn: Ints
    last: Ints
    draws: Words


class IssueLog(NamedTuple):
    """The log of every issue, in order. Arrays of length 0 keep nothing."""

    cycles: Ints
    slots: Ints


@inlined
def population(bits: np.uint64) -> int:
    """Return the number of bits that are set."""
    bits = bits - ((bits >> _S1) & _PAIRS)
    bits = (bits & _FOURS) + ((bits >> _S2) & _FOURS)
    bits = (bits + (bits >> _S4)) & _NIBBLES
    return int(np.int64((bits * _BYTES) >> _S56))


@inlined
def lowest(bits: np.uint64) -> int:
    """Return the number of the lowest bit that is set. At least one must be."""
    # exactly the bits below the lowest set one remain
    return population(~bits & (bits - _ONE))


@inlined
def next_in(ready: Words, free: Ints, low: int, high: int) -> int:
    """Return the smallest slot in low .. high - 1 that is ready for a class with a free port, or NONE."""
    # the first word may begin in its middle
    mask = _ALL << np.uint64(low & 63)
    for word in range(low >> 6, ((high - 1) >> 6) + 1):
        found = _ZERO
        for unit in range(len(free)):
            if free[unit] > 0:
                found |= ready[unit, word]
        found &= mask
        if found != _ZERO:
            slot = word * 64 + lowest(found)
            return slot if slot < high else NONE  # bits of the last word may lie beyond `high`
        mask = _ALL
    return NONE


@inlined
def next_after(ready: Words, free: Ints, last: int, low: int, high: int) -> int:
    """Return the same in a circle that begins behind `last`."""
    slot = next_in(ready, free, last + 1, high)
    return slot if slot != NONE else next_in(ready, free, low, last + 1)


@inlined
def nth(ready: Words, free: Ints, number: int) -> int:
    """Return the slot that has `number` smaller slots which are ready for a class with a free port."""
    for word in range(ready.shape[1]):
        found = _ZERO
        for unit in range(len(free)):
            if free[unit] > 0:
                found |= ready[unit, word]
        size = population(found)
        if number < size:
            for _ in range(number):
                # clears the lowest set bit
                found &= found - _ONE
            return word * 64 + lowest(found)
        number -= size
    return NONE


@inlined
def draw(draws: Words, n: int) -> int:
    """Return the next number of SplitMix64, modulo n."""
    draws[0] += _STEP
    bits = draws[0]
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return int(np.int64((bits ^ (bits >> _S31)) % np.uint64(n)))


@inlined
def next_group(policy: PolicyState, ready: Words, free: Ints) -> int:
    """Return the first group, in a circle from the current one, with a slot that finds a free port, or NONE."""
    begin = policy.turn[0] * policy.size
    slot = next_after(ready, free, begin - 1, 0, ready.shape[1] * 64)
    return slot // policy.size if slot != NONE else NONE


@inlined
def begin(policy: PolicyState, state: RunState, everything: Ints) -> None:
    """Begin a cycle for the policy; `everything` counts all ports as free."""
    if policy.kind == OLDEST:
        policy.turn[0] = 0
    elif policy.kind == GREEDY:
        policy.turn[1] = 1
    elif policy.kind == TWO_LEVEL:
        group = next_group(policy, state.ready, everything)
        if group != NONE:
            policy.turn[0] = group


@inlined
def pick(policy: PolicyState, state: RunState, slots: int, able: int) -> int:
    """Return the slot that issues next, one of `able` slots; there is at least one.

    `turn[0]` is the slot at which the search goes on in this cycle (OLDEST), the last slot (ROUND_ROBIN), the greedy
    slot (GREEDY, where `turn[1]` says whether this is the first pick of the cycle), or the current group (TWO_LEVEL).
    """
    ready, free, turn = state.ready, state.free, policy.turn
    if policy.kind == ROUND_ROBIN:
        slot = next_after(ready, free, turn[0], 0, slots)
        turn[0] = slot
        return slot
    if policy.kind == GREEDY:
        slot = NONE
        if turn[1] and turn[0] != NONE:
            slot = next_in(ready, free, turn[0], turn[0] + 1)
        if slot == NONE:
            slot = next_in(ready, free, 0, slots)
        if turn[1]:
            turn[0], turn[1] = slot, 0
        return slot
    if policy.kind == TWO_LEVEL:
        group = next_group(policy, ready, free)
        low = group * policy.size
        slot = next_after(ready, free, policy.last[group], low, min(low + policy.size, slots))
        policy.last[group] = slot
        return slot
    if policy.kind == RANDOM:
        return nth(ready, free, draw(policy.draws, able))
    slot = next_in(ready, free, turn[0], slots)
    turn[0] = slot + 1
    return slot


@inlined
def arrive(slot: int, work: WarpRows, state: RunState) -> int:
    """Move a list of slots to the next entries of their rows, and return how many have finished."""
    classes = len(state.free)
    ended = 0
    while slot != NONE:
        after = state.link[slot]
        letter = work.letters[state.at[slot]]
        if letter < classes:
            state.ready[letter, slot >> 6] |= _ONE << np.uint64(slot & 63)
            state.counts[letter] += 1
            slot = after
            continue
        block = work.block[slot]
        if letter == classes:
            # the slot joins the list of those that wait at the barrier of its block
            state.waiting[block] += 1
            state.link[slot] = state.gate[block]
            state.gate[block] = slot
        else:
            state.running[block] -= 1
            ended += 1
        if state.waiting[block] == state.running[block]:  # all unfinished slots of the block are at the barrier
            passing = state.gate[block]
            state.gate[block], state.waiting[block] = NONE, 0
            while passing != NONE:
                state.at[passing] += 1
                behind = state.link[passing]
                # those that pass go in front of the list that is being read, so they arrive in this same call
                state.link[passing] = after
                after, passing = passing, behind
        slot = after
    return ended


@inlined
def release(units: UnitPorts, state: RunState, cycle: int) -> None:
    """Free the ports whose interval ends with this cycle."""
    for unit in range(len(units.ports)):
        ports = units.ports[unit]
        # a port held for one cycle is always free in the next one, so no release is kept
        if units.intervals[unit] == 1:
            state.free[unit] = ports
            continue
        while state.free[unit] < ports and state.releases[unit, state.oldest[unit]] <= cycle:
            state.free[unit] += 1
            state.oldest[unit] = (state.oldest[unit] + 1) % ports


@inlined
def hold(units: UnitPorts, state: RunState, unit: int, cycle: int) -> None:
    """Take a free port of a class in this cycle."""
    if units.intervals[unit] > 1:
        ports = units.ports[unit]
        # ports are released in the order in which they were taken: the interval of a class is the same for all
        held = ports - state.free[unit]
        state.releases[unit, (state.oldest[unit] + held) % ports] = cycle + units.intervals[unit]
    state.free[unit] -= 1


@inlined
def count_able(state: RunState) -> int:
    """Return the number of slots that are ready for a class with a free port."""
    able = 0
    for unit in range(len(state.free)):
        if state.free[unit] > 0:
            able += state.counts[unit]
    return able


@inlined
def soonest_release(state: RunState) -> int:
    """Return the first cycle in which a class with ready slots has a free port again, if none has one now.

    Ports with an interval of 1 keep no release, so that the result is cycle 0 for them: they are free in the next
    cycle.
    """
    soonest = _NO_TIME
    for unit in range(len(state.free)):
        if state.counts[unit] > 0:
            soonest = min(soonest, state.releases[unit, state.oldest[unit]])
    return soonest


def prepare_state(work: WarpRows, units: UnitPorts, blocks: int, longest: int) -> RunState:
    """Return the state in which all slots arrive in cycle 0 and every port is free.

    `longest` is the largest latency.
    """
    slots, classes = len(work.first), len(units.ports)
    state = RunState(
        np.zeros((classes, (slots + 63) // 64), dtype=np.uint64),
        np.zeros(classes, dtype=np.int64),
        units.ports.copy(),
        np.zeros((classes, units.ports.max()), dtype=np.int64),
        np.zeros(classes, dtype=np.int64),
        work.first.copy(),
        np.arange(1, slots + 1, dtype=np.int64),
        np.full(longest + 1, NONE, dtype=np.int64),
        np.full(blocks, NONE, dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.bincount(work.block, minlength=blocks),
    )
    state.link[slots - 1] = NONE  # all slots form one list, which arrives in cycle 0
    state.ring[0] = 0
    return state


@uncounted
def run(policy: PolicyState, work: WarpRows, units: UnitPorts, state: RunState, log: IssueLog) -> int:
    """Return the makespan in cycles, from a state that `prepare_state` made."""
    slots, span = len(work.first), len(state.ring)
    keeps, issued, unfinished, cycle, now = len(log.cycles) > 0, 0, slots, 0, 0
    while True:
        if state.ring[now] != NONE:
            coming = state.ring[now]
            state.ring[now] = NONE
            unfinished -= arrive(coming, work, state)
            if unfinished == 0:
                return cycle
        release(units, state, cycle)
        able, left = count_able(state), units.width
        begin(policy, state, units.ports)
        while able > 0 and left > 0:
            slot = pick(policy, state, slots, able)
            entry = state.at[slot]
            unit = work.letters[entry]
            state.ready[unit, slot >> 6] ^= _ONE << np.uint64(slot & 63)
            state.counts[unit] -= 1
            hold(units, state, unit, cycle)
            state.at[slot] = entry + 1
            then = now + work.latencies[entry]
            # no latency is longer than the ring, so one wrap is enough
            then -= span if then >= span else 0
            state.link[slot] = state.ring[then]
            state.ring[then] = slot
            if keeps:
                log.cycles[issued], log.slots[issued] = cycle, slot
                issued += 1
            left -= 1
            able = count_able(state)  # the pick may have taken the last port of a class
        # cycles in which nothing can change are skipped, which the makespan does not show
        until = cycle + 1 if able > 0 else soonest_release(state)
        cycle, now = cycle + 1, now + 1 if now + 1 < span else 0
        if cycle < until and state.ring[now] == NONE:
            begin(policy, state, units.ports)  # once for all cycles without an arrival and an issue: it would repeat
        while cycle < until and state.ring[now] == NONE:
            cycle, now = cycle + 1, now + 1 if now + 1 < span else 0
