"""The segments of the packed search, in which states of later layers wait (see `states_compiled_layout`)."""

import numpy as np

from makespan.host.compiled import NIL, Ints, Words, inlined, uncounted
from makespan.proof.engines.search.states_compiled_layout import (
    BATCH,
    BEGIN,
    BEYOND,
    CLOSED,
    COUNT,
    DROP,
    EXPANDED,
    FEWEST_SORTED,
    FILLED,
    LOWEST_BIT,
    NEED,
    NO_BITS,
    PAIRS,
    SEGMENT_SIZE,
    STATE,
    TOP,
    WAITING,
    LeafChoice,
    PackedInstance,
    StateStore,
)

_HALF, _MIX = np.uint64(32), np.uint64(0x9E3779B97F4A7C15)
"""What a hash is made with: the words are mixed with a multiple of the golden ratio, whose high bits are good."""


@inlined
def home(states: Words, row: int, segment: np.uint64, low: np.uint64, segments: Words) -> np.uint64:
    """The word at which a state belongs, if the slot is free: a hash without its value, whose high bits are good."""
    mixed = states[0, row] >> low
    mixed = (mixed ^ (mixed >> _HALF)) * _MIX
    for word in range(1, len(states)):
        mixed = (mixed ^ (mixed >> _HALF) ^ states[word, row]) * _MIX
    slot: np.uint64 = segments[segment, BEGIN] + (mixed >> segments[segment, DROP]) * np.uint64(len(states))
    return slot


@inlined
def insert(
    states: Words, row: int, slot: np.uint64, segment: np.uint64, low: np.uint64, table: Words, segments: Words
) -> None:
    """Add a state to a segment that has room, or raise its value; its place is at a slot or behind."""
    new = states[0, row]
    while True:
        old = table[slot]
        if old == NO_BITS:
            table[slot] = new
            for word in range(1, len(states)):
                table[slot + np.uint64(word)] = states[word, row]
            segments[segment, COUNT] += LOWEST_BIT
            break
        if (old ^ new) >> low == NO_BITS:
            same = True
            for word in range(1, len(states)):
                if table[slot + np.uint64(word)] != states[word, row]:
                    same = False
                    break
            if same:
                table[slot] = max(old, new)
                break
        slot += np.uint64(len(states))
        if slot == segments[segment, BEYOND]:
            slot = segments[segment, BEGIN]


@uncounted
def widen(segment: np.uint64, automaton: PackedInstance, store: StateStore, cursor: Ints, spare: Words) -> bool:
    """Make room for a batch in a segment; False if there is none."""
    table, segments, free = store.open, store.segments, store.free
    width, size = len(spare), NIL
    while 1 << size < 2 * (np.int64(segments[segment, COUNT]) + BATCH):
        size += 1
    begin = free[size]
    if begin >= 0:
        free[size] = np.int64(table[begin]) - 1
        table[begin] = NO_BITS
    else:
        begin = cursor[TOP]
        if begin + (width << size) > len(table):
            cursor[NEED] = begin + (width << size)
            return False
        cursor[TOP] += width << size
    old, beyond = int(np.int64(segments[segment, BEGIN])), int(np.int64(segments[segment, BEYOND]))
    segments[segment, BEGIN], segments[segment, BEYOND] = begin, begin + (width << size)
    segments[segment, DROP], segments[segment, COUNT] = 64 - size, 0
    segments[segment, FILLED] = (1 << size) // 2 - BATCH + 1
    for at in range(old, beyond, width):
        if table[at] != NO_BITS:
            for word in range(width):
                spare[word, 0], table[at + word] = table[at + word], NO_BITS
            slot = home(spare, NIL, segment, automaton.low, segments)
            insert(spare, NIL, slot, segment, automaton.low, table, segments)
    release(old, beyond, width, table, free)
    return True


@inlined
def release(begin: int, beyond: int, width: int, table: Words, free: Ints) -> None:
    """Keep a segment, whose words are zero, for another one."""
    if begin < beyond:
        size = NIL
        while begin + (width << size) < beyond:
            size += 1
        table[begin] = np.uint64(free[size] + 1)
        free[size] = begin


@uncounted
def flush(automaton: PackedInstance, store: StateStore, cursor: Ints, choice: LeafChoice) -> bool:
    """Insert the leaves that wait; False if there is no room."""
    table, segments, waiting, slot = store.open, store.segments, choice.waiting, choice.slot
    low, high, number = automaton.low, automaton.high, np.uint64(cursor[WAITING])
    seen = NO_BITS
    for row in range(number):
        segment = waiting[0, row] >> high
        filled = segments[segment, COUNT] >= segments[segment, FILLED]
        if filled and not widen(segment, automaton, store, cursor, choice.spare):
            return False
        slot[row] = home(waiting, row, segment, low, segments)
        seen ^= table[slot[row]]
    slot[number] = seen  # so that the words are really fetched
    for row in range(number):
        insert(waiting, row, slot[row], waiting[0, row] >> high, low, table, segments)
    cursor[WAITING] = 0
    return True


@uncounted
def put(
    states: Words, row: int, automaton: PackedInstance, store: StateStore, cursor: Ints, choice: LeafChoice
) -> bool:
    """Let a state wait to be inserted; False if there is no room."""
    if cursor[WAITING] == BATCH and not flush(automaton, store, cursor, choice):
        return False
    for word in range(states.shape[1]):
        choice.waiting[word, cursor[WAITING]] = states[row, word]
    cursor[WAITING] += 1
    return True


@inlined
def gather(segment: np.uint64, store: StateStore, width: int) -> None:
    """Put the states of a segment at its begin, one after another."""
    table = store.open
    to = np.int64(store.segments[segment, BEGIN])
    for at in range(to, np.int64(store.segments[segment, BEYOND]), width):
        if table[at] != NO_BITS:
            for word in range(width):
                moved, table[at + word] = table[at + word], NO_BITS
                table[to + word] = moved
            to += width


@uncounted
def arrange(begin: int, count: int, spare: int, width: int, digits: Ints, table: Words, counts: Ints) -> None:
    """Sort so many states by an even number of digits, with as much spare room at another word.

    Only so that neighbours have pairs in common: any order will do.
    """
    for digit in range(len(digits)):
        word, shift, mask = digits[digit, 0], np.uint64(digits[digit, 1]), np.uint64(digits[digit, 2])
        for number in range(len(counts)):
            counts[number] = 0
        for at in range(begin + word, begin + word + count * width, width):
            counts[(table[at] >> shift) & mask] += width
        before = spare
        for number in range(len(counts)):
            before, counts[number] = before + counts[number], before
        for at in range(begin, begin + count * width, width):
            number = (table[at + word] >> shift) & mask
            to = counts[number]
            counts[number] += width
            for column in range(width):
                table[to + column] = table[at + column]
        begin, spare = spare, begin
    for at in range(spare, spare + count * width):
        table[at] = NO_BITS


@inlined
def leave(segment: np.uint64, store: StateStore, width: int) -> None:
    """Free the segment of a layer that is done."""
    segments = store.segments
    begin, beyond = int(np.int64(segments[segment, BEGIN])), int(np.int64(segments[segment, BEYOND]))
    for at in range(begin, begin + np.int64(segments[segment, COUNT]) * width):
        store.open[at] = NO_BITS
    release(begin, beyond, width, store.open, store.free)
    for column in range(SEGMENT_SIZE):
        segments[segment, column] = NO_BITS


@inlined
def segment_of(layer: int, segments: Words) -> np.uint64:
    """Return the segment of the states in a layer."""
    return np.uint64(-layer) & np.uint64(len(segments) - 1)


@inlined
def begin_layer(
    segment: np.uint64, store: StateStore, cursor: Ints, automaton: PackedInstance, choice: LeafChoice
) -> bool:
    """Put the states of a layer in order; False if `closed` has no room for them."""
    begin, beyond = int(np.int64(store.segments[segment, BEGIN])), int(np.int64(store.segments[segment, BEYOND]))
    count, width = int(np.int64(store.segments[segment, COUNT])), choice.part.shape[1]
    if cursor[CLOSED] >= 0 and (cursor[CLOSED] + count) * width > len(store.closed):
        cursor[NEED] = (cursor[CLOSED] + count) * width
        return False
    gather(segment, store, width)
    if count >= FEWEST_SORTED:
        arrange(begin, count, begin + (beyond - begin) // 2, width, automaton.digits, store.open, choice.counts)
    cursor[STATE] = cursor[PAIRS] = 0
    return True


@inlined
def close(at: int, store: StateStore, cursor: Ints, choice: LeafChoice) -> None:
    """Keep a state that is expanded."""
    cursor[EXPANDED] += 1
    if cursor[CLOSED] >= 0:
        width = choice.part.shape[1]
        for word in range(width):
            store.closed[cursor[CLOSED] * width + word] = store.open[at + word]
        cursor[CLOSED] += 1
