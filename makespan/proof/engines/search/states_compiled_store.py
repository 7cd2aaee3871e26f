"""The arrays of the packed search, and the segments in which states of later layers wait.

Words used here:

code       number of a place among those of all groups; -1 is "finished"
height     of a code: the most instructions on a path from it; a state's *layer* is the sum over its warps
state      a few 64-bit words, made of *fields*: its value, and the number of warps at a place or the place of a warp
value      cycles from the start, `sense` (1 or -1) times, and something that makes it positive: the search keeps the
           largest. It is the lowest field of word 0, so of two states that differ in nothing else the larger one counts
segment    an open addressing table for the states of a layer that is still to come; its number, the layer's with the
           sign changed and modulo the number of segments, is the highest field of word 0, where carries get lost
pair       a code and how many warps stand there
option     one way in which warps of a pair may move: to one of the successors of their place
leaf       one complete choice of how many warps use which option
vector     the words that moves add to a state, modulo 2^64
floor      values that are not above it are of no interest

All segments are parts of one array of words; states that are expanded stand one after another in another. The caller
owns and grows both. An inner loop that runs out of room or of its budget returns, and goes on when it is called again:
the cursor and the choice remember.
"""

from typing import NamedTuple, cast

import numpy as np

from makespan.host.compiled import NIL, Ints, Words, inlined, uncounted

NO_BITS, LOWEST_BIT = np.uint64(0), np.uint64(1)

UNBOUNDED = cast(int, np.int64(1 << 62))

DONE, PAUSED, FULL, LONG = 0, 1, 2, 3
"""Why an inner loop returned: nothing is left to do, its budget is spent, or there is no room in `open` or `closed`."""

LAYER, STATE, OPTIONS, PAIRS, WAITING, TOP, CLOSED, NEED, BURIED, LEAVES, EXPANDED = range(11)
"""The cursor: layer, number of the state in it (-1: not begun) and of its options (-1: not opened); then how many pairs
the state before has (0: unknown), how many leaves wait to be inserted, how many words of `open` have ever been used,
how many states are in `closed` (-1: they are forgotten) and how many words would do where there is no room; and how
many states are dead, leaves made and states expanded."""

CURSOR_SIZE = 11

DIGIT_BITS = 11
"""The most bits of the digits by which states are sorted."""

FEWEST_SORTED = 128
"""As many states are worth counting their digits."""

BATCH = 64
"""Leaves that are inserted together, so that the memory fetches what it takes for all of them at the same time."""

SEGMENT_SIZES = 64

PAIR_CODE, PAIR_WARPS, PAIR_FIELD, PAIR_FIRST = range(4)
"""Columns of a pair: its code, how many warps stand there, and the last and the first of the fields that say so."""

PAIR_SIZE = 4

READY, LOAD, USERS, QUOTA, RANK = range(5)
"""Rows over the classes: warps that are ready, what all warps have left to execute, how many have, how many warps must
move, and where the last finisher is one of the ready: the rank of its class and of the kind of the others, or -1."""

PAIR, UNIT, TARGET, LATER, MORE, TAKE, LEFT, ROOM = range(8)
"""Columns of an option: its pair, class and target; how many warps of the class stand at pairs behind; 1 where the next
option belongs to the same pair; and of the leaf that is being made, how many warps take this option, and how many of
the class and of the pair could."""

OPTION_SIZE = 8

WORD, SHIFT, MASK, BASE, END = range(5)
"""Columns of a field: where it is in a state, and what it says.

A field whose `END` is 0 holds how many warps stand at code `BASE`. Any other is the field of a warp, and holds how
many instructions this warp has executed: it stands at `BASE` plus that, and has finished at `END`; the fields of one
group are in increasing order.
"""

BEGIN, BEYOND, DROP, COUNT, FILLED = range(5)
"""Columns of a segment: its first word and one past its last, by how much a hash is shifted to the number of its slot,
how many states it holds, and with how many a batch more could fill half of it. All are 0 where there is none."""

SEGMENT_SIZE = 5


class PackedInstance(NamedTuple):
    """The instance: class, successors (`-1` is "finished") and height of every code, and the capacities.

    `fields` are those of a state but its value, in the `low` lowest bits, and its segment, above the `high` lowest.
    `steps` are the vectors of one warp, a row for every word: along each edge where warps are counted, then for every
    field of a warp. `digits` are word, shift and mask of those by which states of a layer are sorted, the least
    significant first.
    """

    unit: Ints
    sigma: Ints
    first: Ints
    successors: Ints
    height: Ints
    fields: Ints
    steps: Words
    digits: Ints
    low: np.uint64
    high: np.uint64
    warps: int


class RestBounds(NamedTuple):
    """The numbers that bound the cycles that remain.

    `work` (per class and code) and `length` (per code) count instructions on a path: the most for a worst case, the
    fewest for a best case. The other arrays are potentials: those of group g give at most `potential / step[g]`
    cycles when the last finisher is in g, or nothing if that is 0. A rank is the class of the last finisher and a kind
    of the others; that of rank k has the tables `table[i]` for i from `node_first[k]` to `node_first[k + 1]`, and
    `rank_first[g]` is the first rank of g. `ends` is the table of the last finisher less that of the others.
    """

    work: Ints
    length: Ints
    begin: Ints
    thresholds: Ints
    rank_first: Ints
    node_first: Ints
    table: Ints
    others: Ints
    ends: Ints
    step: Ints


class StateStore(NamedTuple):
    """All states: in their segments, or in `closed` once they are expanded.

    `free[b]` is the first of the segments of 2^b slots that are free, which form a list, or -1; they are zero but for
    their first word, which is one more than where the next one begins.
    """

    open: Words
    segments: Words
    free: Ints
    closed: Words


class LeafChoice(NamedTuple):
    """Scratch space: the pairs, classes and options of a state; `totals` per class of the last finisher and table.

    `part[o]` is the state before option o of the leaf that is being made, and `delta[o, n]` what n warps add to it.

    Where all leaves are made at once, sums of the first pairs are kept, for the next state often has these pairs, too.
    After p pairs `ready[p, u]` warps of class u stand at them, and the last pair of that class, if any, is number
    `row[p, u]`, from 1 on. The sums of n of these warps stand in `sums` from (u * m + n) * `APART` on, where m is the
    width of `tally`; up to pair r there are `size[r, n]`. `ways` has those of the warps of one pair in the same way,
    and `others` all choices in all classes but the last, with the state itself. All of these have a row for every word.
    `waiting` are leaves that are not yet inserted, `slot` is where they belong, and `spare` a state that is moved.
    """

    pairs: Ints
    units: Ints
    totals: Ints
    options: Ints
    delta: Words
    part: Words
    ready: Ints
    row: Ints
    size: Ints
    ways: Words
    sums: Words
    tally: Ints
    others: Words
    waiting: Words
    slot: Words
    spare: Words
    counts: Ints


WAYS, SCALARS = range(2)
"""Rows of the tally: how many ways there are for so many warps; and other numbers, which are"""

BUILT, APART, LAST = range(3)
"""for how many pairs the sums are there, how many of as many warps there may be, and the number of the last class."""

_HALF, _MIX = np.uint64(32), np.uint64(0x9E3779B97F4A7C15)
"""What a hash is made with: the words are mixed with a multiple of the golden ratio, whose high bits are good."""


@inlined
def home(states: Words, row: int, segment: np.uint64, low: np.uint64, segments: Words) -> np.uint64:
    """Return the word at which a state belongs if the slot is free: a hash of it without its value."""
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
        if old == NO_BITS:  # a state has a value from 1 on, so 0 is an empty slot
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
                table[slot] = max(old, new)  # equal but for the value, which is the lowest field
                break
        slot += np.uint64(len(states))
        if slot == segments[segment, BEYOND]:
            slot = segments[segment, BEGIN]


@uncounted
def widen(segment: np.uint64, automaton: PackedInstance, store: StateStore, cursor: Ints, spare: Words) -> bool:
    """Make room for a batch in a segment; False if there is none."""
    table, segments, free = store.open, store.segments, store.free
    width, size = len(spare), NIL
    # at most half full, so that a free slot is never far
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
        # all slots are asked for before any is used: the memory fetches them at the same time
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
    """Sort `count` states by an even number of digits, with as much spare room at another word.

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
    for at in range(spare, spare + count * width):  # an even number of digits, so the states are where they were
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
    # layers that are open together are fewer than segments, so no two of them share one
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
