"""The inner loops of the packed search, in arrays and integers so that they compile.

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

The module is long because it is one unit of machine code: Numba compiles the functions into each other, and notices a
change only in the file of the function that is called. What `advance` does for every state is copied into it, because a
call hands on every array in seven numbers, which takes as long as the work.
"""

from typing import NamedTuple, cast

import numpy as np

from makespan.host.compiled import NIL, ONE, Ints, Words, inlined, uncounted

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
"""States are sorted by digits of at most so many bits."""

FEWEST_SORTED = 128
"""As many states are worth counting their digits."""

BATCH = 64
"""Leaves that are inserted together, so that the memory fetches what it takes for all of them at the same time."""

SEGMENT_SIZES = 64

_ZERO, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)
_MIX = np.uint64(0x9E3779B97F4A7C15)


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
    """What bounds the cycles that remain.

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


@inlined
def common(words: Words, at: int, before: int, size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Return how many of the `size` pairs of the state that begins at one word are those of the state at another."""
    pairs, fields, word = choice.pairs, automaton.fields, choice.part.shape[1] - 1
    while word > 0 and words[at + word] == words[before + word]:
        word -= 1
    differ = words[at + word] ^ words[before + word]
    if word == 0:
        differ = (differ >> automaton.low) << automaton.low
    while size > 0:
        field = pairs[size - 1, PAIR_FIRST]
        if fields[field, WORD] > word:
            break
        if fields[field, WORD] == word and differ >> np.uint64(fields[field, SHIFT]) == _ZERO:
            break
        size -= 1
    return size


@inlined
def decode(words: Words, at: int, size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Fill in the pairs of the state that begins at a word, from the last field on; the first `size` of them are there.

    And per class how many warps are ready and must move. Return how many pairs there are.
    """
    unit, sigma, fields = automaton.unit, automaton.sigma, automaton.fields
    pairs, units, ready = choice.pairs, choice.units, choice.ready
    last, field = -ONE, np.int64(len(fields))
    if size > 0:
        last, field = pairs[size - 1, PAIR_CODE], pairs[size - 1, PAIR_FIRST]
    choice.tally[SCALARS, BUILT] = min(choice.tally[SCALARS, BUILT], size)
    while field > 0:
        field -= 1
        held = np.int64(
            (words[at + fields[field, WORD]] >> np.uint64(fields[field, SHIFT])) & np.uint64(fields[field, MASK])
        )
        code, warps = fields[field, BASE], held
        if fields[field, END] > 0:  # the field of one warp: finished ones stand nowhere
            code, warps = code + held, np.int64(held < fields[field, END])
        if warps == 0:
            continue
        if code == last:  # fields of warps are sorted, so those that stand together are neighbours
            pairs[size - 1, PAIR_WARPS] += warps
            choice.tally[SCALARS, BUILT] = min(choice.tally[SCALARS, BUILT], size - 1)
        else:
            pairs[size, PAIR_CODE], pairs[size, PAIR_WARPS], pairs[size, PAIR_FIELD] = code, warps, field
            for number in range(len(sigma)):
                ready[size + 1, number] = ready[size, number]
            size += 1
            last = code
        pairs[size - 1, PAIR_FIRST] = field
        ready[size, unit[code]] += warps
    for number in range(len(sigma)):
        units[READY, number] = ready[size, number]
        units[QUOTA, number] = min(units[READY, number], sigma[number])
    return int(size)


@inlined
def most_left(size: int, enough: int, automaton: PackedInstance, rest: RestBounds, choice: LeafChoice) -> int:
    """At most so many cycles remain, whichever warp finishes last; or, as soon as it is clear, more than `enough`."""
    pairs, units, work, begin = choice.pairs, choice.units, rest.work, rest.begin
    if enough < 0:
        return 0
    for unit in range(len(work)):
        units[LOAD, unit] = 0
        units[USERS, unit] = 0
        for pair in range(size):
            own = work[unit, pairs[pair, PAIR_CODE]]
            units[LOAD, unit] += pairs[pair, PAIR_WARPS] * own
            units[USERS, unit] += pairs[pair, PAIR_WARPS] * np.int64(own > 0)
    most = 0
    pair = size - 1
    for group in range(len(rest.step)):
        units[RANK, :] = -1
        while pair >= 0 and pairs[pair, PAIR_CODE] < begin[group + 1] and most <= enough:
            code = pairs[pair, PAIR_CODE]
            # `waits` is cheap and often small enough; the potential is asked only where it could matter
            cycles = waits(code, automaton.sigma, work, rest.length, units)
            if cycles > most and rest.step[group] > 0:
                unit = automaton.unit[code]
                if units[RANK, unit] < 0:
                    units[RANK, unit] = add_up(size, group, unit, rest, choice)
                cycles = min(cycles, falls(code, group, units[RANK, unit], rest, choice.totals[unit]))
            most = max(most, cycles)
            pair -= 1
    return most


@inlined
def add_up(size: int, group: int, last: int, rest: RestBounds, choice: LeafChoice) -> int:
    """Fill in the potential of all warps where one of group `group` and class `last` finishes last; return the rank."""
    pairs, units, totals, others = choice.pairs, choice.units, choice.totals, rest.others
    rank = last
    for unit in range(units.shape[1]):
        threshold = rest.thresholds[group, unit]  # of delays, which come last, it is 0: potentials count none
        rank = rank * (threshold + 1) + min(units[READY, unit] - np.int64(unit == last), threshold)
    rank += rest.rank_first[group]
    begin = rest.node_first[rank]
    for node in range(begin, rest.node_first[rank + 1]):
        total = 0
        for pair in range(size):
            total += pairs[pair, PAIR_WARPS] * others[rest.table[node], pairs[pair, PAIR_CODE]]
        totals[last, node - begin] = total
    return int(rank)


@inlined
def falls(code: int, group: int, rank: int, rest: RestBounds, totals: Ints) -> int:
    """Return the cycles left by the potential if a warp at `code` finishes last; 0 if it cannot."""
    # which node the state is in depends on the future, so the largest of them counts; floor, as cycles are whole
    most = 0
    begin = rest.node_first[rank]
    for node in range(begin, rest.node_first[rank + 1]):
        most = max(most, totals[node - begin] + rest.ends[rest.table[node], code])
    return int(most // rest.step[group])


@inlined
def waits(code: int, sigma: Ints, work: Ints, length: Ints, units: Ints) -> int:
    """Return the cycles left by the pessimistic bound if a warp at `code` finishes last: its path, and its waiting."""
    cycles = length[code]
    for unit in range(len(sigma)):
        own = work[unit, code]
        if own > 0 and units[USERS, unit] - 1 >= sigma[unit]:  # else the others never fill the units
            cycles += (units[LOAD, unit] - own) // sigma[unit]
    return int(cycles)


@inlined
def least_left(size: int, automaton: PackedInstance, rest: RestBounds, choice: LeafChoice) -> int:
    """At least so many cycles remain: the longest path that some warp cannot avoid, or the work of a class."""
    pairs = choice.pairs
    least = 0
    for pair in range(size):
        least = max(least, rest.length[pairs[pair, PAIR_CODE]])
    for unit in range(len(rest.work)):
        load = 0
        for pair in range(size):
            load += pairs[pair, PAIR_WARPS] * rest.work[unit, pairs[pair, PAIR_CODE]]
        least = max(least, -(-load // automaton.sigma[unit]))
    return int(least)


@inlined
def prospect(
    value: int,
    size: int,
    floor: int,
    sense: int,
    automaton: PackedInstance,
    rest: RestBounds,
    choice: LeafChoice,
) -> int:
    """Return no schedule through a state of this value, whose pairs are filled in, ends with a higher one.

    Where schedules may end above `floor`, it is enough to return something above.
    """
    if sense > 0:
        return value + most_left(size, floor - value, automaton, rest, choice)
    return value - least_left(size, automaton, rest, choice)


@inlined
def open_options(size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Fill in the options of all pairs, class by class; return their number."""
    pairs, units, options = choice.pairs, choice.units, choice.options
    number = NIL
    for unit in range(len(automaton.sigma)):
        behind = units[READY, unit]
        for pair in range(size):
            code = pairs[pair, PAIR_CODE]
            if automaton.unit[code] != unit:
                continue
            behind -= pairs[pair, PAIR_WARPS]
            most = min(units[QUOTA, unit], pairs[pair, PAIR_WARPS])
            for edge in range(automaton.first[code], automaton.first[code + 1]):
                target = automaton.successors[edge]
                options[number, PAIR], options[number, UNIT], options[number, TARGET] = pair, unit, target
                options[number, LATER] = behind
                options[number, MORE] = np.int64(edge + 1 < automaton.first[code + 1])
                fill_delta(number, pairs[pair, PAIR_FIELD], most, edge, automaton, choice.delta)
                number += 1
    return number


@inlined
def step_of(field: int, warp: int, edge: int, automaton: PackedInstance) -> int:
    """Return the vector of one warp of a pair that moves along an edge after `warp` others; the last one moves first.

    That keeps the fields of warps sorted. A counter never falls below 0 and never exceeds its mask, and a warp never
    goes beyond its end, so no borrow or carry leaves its field.
    """
    if automaton.fields[field, END] == 0:
        return edge
    return int(len(automaton.successors) + field - warp)


@inlined
def fill_delta(option: int, field: int, most: int, edge: int, automaton: PackedInstance, delta: Words) -> None:
    """What 1 to `most` warps of an option add to the state."""
    for number in range(1, most + 1):
        step = step_of(field, number - 1, edge, automaton)
        for word in range(delta.shape[2]):
            delta[option, number, word] = delta[option, number - 1, word] + automaton.steps[word, step]


@uncounted
def descend(option: int, number: int, pairs: Ints, units: Ints, options: Ints, delta: Words, part: Words) -> None:
    """Complete a leaf from `option` on, with as many warps as possible in each."""
    for at in range(option, number):
        if at == 0 or options[at, UNIT] != options[at - 1, UNIT]:
            left = units[QUOTA, options[at, UNIT]]
        else:
            left = options[at - 1, LEFT] - options[at - 1, TAKE]
        if at == 0 or options[at, PAIR] != options[at - 1, PAIR]:
            room = pairs[options[at, PAIR], PAIR_WARPS]
        else:
            room = options[at - 1, ROOM] - options[at - 1, TAKE]
        take = min(left, room)
        options[at, LEFT], options[at, ROOM], options[at, TAKE] = left, room, take
        for word in range(part.shape[1]):
            part[at + 1, word] = part[at, word] + delta[at, take, word]


@uncounted
def next_leaf(number: int, pairs: Ints, units: Ints, options: Ints, delta: Words, part: Words) -> bool:
    """Go on to the next leaf; False when there is none. Every one uses up the quota of each class."""
    for option in range(number - 1, -1, -1):
        take = options[option, TAKE]
        # one warp less here is possible if another option of the pair, or the pairs behind, can take it over
        if take > 0 and (options[option, MORE] or take > options[option, LEFT] - options[option, LATER]):
            take -= 1
            options[option, TAKE] = take
            for word in range(part.shape[1]):
                part[option + 1, word] = part[option, word] + delta[option, take, word]
            descend(option + 1, number, pairs, units, options, delta, part)
            return True
    return False


@uncounted
def open_state(words: Words, at: int, sense: int, size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Fill in the options of a state whose pairs are, and the state after a cycle of no moves; return their number."""
    for word in range(choice.part.shape[1]):
        choice.part[0, word] = words[at + word]
    choice.part[0, 0] = later(words[at], sense)
    return int(open_options(size, automaton, choice))


@inlined
def later(word: np.uint64, sense: int) -> np.uint64:
    """Return the first word of a state one cycle later."""
    return word + _ONE if sense > 0 else word - _ONE


@uncounted
def first_leaf(number: int, choice: LeafChoice) -> None:
    """Make the first leaf of a state that is open."""
    descend(NIL, number, choice.pairs, choice.units, choice.options, choice.delta, choice.part)


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
        if old == _ZERO:
            table[slot] = new
            for word in range(1, len(states)):
                table[slot + np.uint64(word)] = states[word, row]
            segments[segment, COUNT] += _ONE
            break
        if (old ^ new) >> low == _ZERO:
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
        table[begin] = _ZERO
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
        if table[at] != _ZERO:
            for word in range(width):
                spare[word, 0], table[at + word] = table[at + word], _ZERO
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
    seen = _ZERO
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


@uncounted
def make_leaves(
    budget: int, automaton: PackedInstance, store: StateStore, cursor: Ints, choice: LeafChoice
) -> tuple[int, int]:
    """Make what follows the current state, from its current leaf on; return the status and how many leaves."""
    pairs, units, options, delta, part = choice.pairs, choice.units, choice.options, choice.delta, choice.part
    number = cursor[OPTIONS]
    for made in range(budget):
        if not put(part, number, automaton, store, cursor, choice):
            return FULL, made
        if not next_leaf(number, pairs, units, options, delta, part):
            return DONE, made + 1
    return PAUSED, budget


@inlined
def copy(number: int, source: Words, first: int, more: Words, which: int, target: Words, to: int) -> None:
    """Write so many sums, each with something added; numbers without a sign need no look whether they are negative."""
    for word in range(len(target)):
        added = more[word, which]
        for at in range(np.uint64(number)):
            target[word, np.uint64(to) + at] = source[word, np.uint64(first) + at] + added


@inlined
def list_ways(code: int, field: int, most: int, automaton: PackedInstance, choice: LeafChoice) -> bool:
    """Fill in the ways in which up to `most` warps of a pair may move; False if there is no room for them."""
    ways, many, apart = choice.ways, choice.tally, choice.tally[SCALARS, APART]
    for take in range(1, most + 1):
        many[WAYS, take] = 0
    many[WAYS, 0] = 1
    for edge in range(automaton.first[code], automaton.first[code + 1]):
        for take in range(1, most + 1):  # one more along this edge, besides any that are there
            step = step_of(field, take - 1, edge, automaton)
            made, before = many[WAYS, take], many[WAYS, take - 1]
            if made + before > apart:
                return False
            copy(before, ways, (take - 1) * apart, automaton.steps, step, ways, take * apart + made)
            many[WAYS, take] = made + before
    return True


@inlined
def extend(pair: int, automaton: PackedInstance, choice: LeafChoice) -> bool:
    """Make the sums with one more pair; False if there are too many.

    A sum is complete if all ready warps are in it, or `sigma`. Those that warps of later pairs cannot complete are left
    out, so there are never more sums than complete choices in some state.
    """
    ways, sums, many, apart = choice.ways, choice.sums, choice.tally, choice.tally[SCALARS, APART]
    row, size, ready = choice.row, choice.size, choice.ready
    code, warps = choice.pairs[pair - 1, PAIR_CODE], choice.pairs[pair - 1, PAIR_WARPS]
    unit, later = automaton.unit[code], automaton.warps
    for number in range(row.shape[1]):
        row[pair, number] = row[pair - 1, number]
        later -= ready[pair, number]
    old, sigma, now = row[pair, unit], automaton.sigma[unit], ready[pair, unit]
    row[pair, unit] = pair
    size[pair, 0] = 1
    if not list_ways(code, choice.pairs[pair - 1, PAIR_FIELD], min(sigma, warps), automaton, choice):
        return False
    for used in range(max(ONE, min(now, sigma - later)), min(now, sigma) + 1):
        begin = (unit * many.shape[1] + used) * apart
        made = size[old, used] if used <= now - warps else NIL
        for take in range(max(ONE, used - now + warps), min(used, warps) + 1):
            before = size[old, used - take]
            if made + before * many[WAYS, take] > apart:
                return False
            for way in range(take * apart, take * apart + many[WAYS, take]):
                copy(before, sums, begin - take * apart, ways, way, sums, begin + made)
                made += before
        size[pair, used] = made
    return True


@inlined
def list_choices(words: Words, at: int, sense: int, size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Fill in sums, the number of the last class, and `others`; return how many others there are, or 0: too many."""
    others, many, apart = choice.others, choice.tally, choice.tally[SCALARS, APART]
    for pair in range(many[SCALARS, BUILT] + 1, size + 1):
        if not extend(pair, automaton, choice):
            return 0
        many[SCALARS, BUILT] = pair
    for word in range(len(others)):
        others[word, 0] = words[at + word]
    others[0, 0] = later(words[at], sense)
    last, count = -ONE, ONE
    for unit in range(len(automaton.sigma)):
        if choice.units[QUOTA, unit] == 0:
            continue
        if last >= 0:
            begin, every = (last * many.shape[1] + choice.units[QUOTA, last]) * apart, sums_of(last, size, choice)
            if count * every > others.shape[1]:
                return 0
            for other in range(count - 1, -1, -1):
                copy(every, choice.sums, begin, others, other, others, other * every)
            count *= every
        last = unit
    many[SCALARS, LAST] = last
    return int(count)


@inlined
def sums_of(unit: int, size: int, choice: LeafChoice) -> int:
    """Return how many choices there are in a class."""
    return int(choice.size[choice.row[size, unit], choice.units[QUOTA, unit]])


@inlined
def make_all_leaves(
    number: int, every: int, automaton: PackedInstance, store: StateStore, cursor: Ints, choice: LeafChoice
) -> bool:
    """Make every sum of a choice in the last class and one of the others; False if there is no room for all.

    To make a leaf again changes nothing.
    """
    last = choice.tally[SCALARS, LAST]
    begin = (last * choice.tally.shape[1] + choice.units[QUOTA, last]) * choice.tally[SCALARS, APART]
    for other in range(number):
        own = NIL
        while own < every:
            if cursor[WAITING] == BATCH and not flush(automaton, store, cursor, choice):
                return False
            some = min(every - own, BATCH - cursor[WAITING])
            copy(some, choice.sums, begin + own, choice.others, other, choice.waiting, cursor[WAITING])
            own += some
            cursor[WAITING] += some
    return True


@inlined
def gather(segment: np.uint64, store: StateStore, width: int) -> None:
    """Put the states of a segment at its begin, one after another."""
    table = store.open
    to = np.int64(store.segments[segment, BEGIN])
    for at in range(to, np.int64(store.segments[segment, BEYOND]), width):
        if table[at] != _ZERO:
            for word in range(width):
                moved, table[at + word] = table[at + word], _ZERO
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
        table[at] = _ZERO


@inlined
def leave(segment: np.uint64, store: StateStore, width: int) -> None:
    """Free the segment of a layer that is done."""
    segments = store.segments
    begin, beyond = int(np.int64(segments[segment, BEGIN])), int(np.int64(segments[segment, BEYOND]))
    for at in range(begin, begin + np.int64(segments[segment, COUNT]) * width):
        store.open[at] = _ZERO
    release(begin, beyond, width, store.open, store.free)
    for column in range(SEGMENT_SIZE):
        segments[segment, column] = _ZERO


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


@inlined
def visit(
    at: int,
    floor: int,
    sense: int,
    start: int,
    budget: int,
    store: StateStore,
    cursor: Ints,
    automaton: PackedInstance,
    rest: RestBounds,
    choice: LeafChoice,
) -> tuple[int, int]:
    """Expand the current state, or go on to; return the status and how much of the budget is spent."""
    spent = NIL
    if cursor[OPTIONS] < 0:
        spent, size = ONE, NIL
        if cursor[PAIRS] > 0:
            size = common(store.open, at, at - choice.part.shape[1], cursor[PAIRS], automaton, choice)
        size = decode(store.open, at, size, automaton, choice)
        cursor[PAIRS] = size
        value = int(np.int64(store.open[at] & ((_ONE << automaton.low) - _ONE))) - start
        if prospect(value, size, floor, sense, automaton, rest, choice) <= floor:
            # dead for this floor alone: a search with a lower floor begins anew
            cursor[BURIED] += 1
            return DONE, spent
        others = list_choices(store.open, at, sense, size, automaton, choice)
        every = sums_of(choice.tally[SCALARS, LAST], size, choice) if others > 0 else NIL
        # all leaves at once is quicker; else one by one, and the cursor says how far
        if 0 < others * every <= budget:
            if not make_all_leaves(others, every, automaton, store, cursor, choice):
                cursor[PAIRS] = 0
                return FULL, spent
            cursor[LEAVES] += others * every
            close(at, store, cursor, choice)
            return DONE, spent + others * every
        cursor[OPTIONS] = open_state(store.open, at, sense, size, automaton, choice)
        first_leaf(cursor[OPTIONS], choice)
    status, made = make_leaves(budget, automaton, store, cursor, choice)
    cursor[LEAVES] += made
    if status == DONE:
        cursor[OPTIONS] = -1
        close(at, store, cursor, choice)
    return status, spent + made


@uncounted
def advance(
    floor: int,
    sense: int,
    start: int,
    budget: int,
    store: StateStore,
    cursor: Ints,
    automaton: PackedInstance,
    rest: RestBounds,
    choice: LeafChoice,
) -> int:
    """Expand states, layer by layer from the highest, until all is done or `budget` states and leaves are."""
    while cursor[LAYER] > 0:
        if cursor[STATE] < 0 and not flush(automaton, store, cursor, choice):
            return FULL
        segment = segment_of(cursor[LAYER], store.segments)
        if cursor[STATE] < 0 and not begin_layer(segment, store, cursor, automaton, choice):
            return LONG
        while cursor[STATE] < np.int64(store.segments[segment, COUNT]):
            if budget <= 0:
                return PAUSED
            at = np.int64(store.segments[segment, BEGIN]) + cursor[STATE] * choice.part.shape[1]
            status, spent = visit(at, floor, sense, start, budget, store, cursor, automaton, rest, choice)
            budget -= spent
            if status != DONE:
                return status
            cursor[STATE] += 1
        leave(segment, store, choice.part.shape[1])
        cursor[LAYER] -= 1
        cursor[STATE] = -1
    return DONE if flush(automaton, store, cursor, choice) else FULL


@uncounted
def find_leaf(target: Words, budget: int, number: int, choice: LeafChoice) -> tuple[int, int]:
    """Go on to the leaf that is `target`: `FULL`; return the status and how many leaves were looked at."""
    pairs, units, options, delta, part = choice.pairs, choice.units, choice.options, choice.delta, choice.part
    for seen in range(budget):
        same = True
        for word in range(len(target)):
            if part[number, word] != target[word]:
                same = False
        if same:
            return FULL, seen + 1
        if not next_leaf(number, pairs, units, options, delta, part):
            return DONE, seen + 1
    return PAUSED, budget


@uncounted
def find_step(
    target: Words,
    sense: int,
    budget: int,
    closed: Words,
    cursor: Ints,
    automaton: PackedInstance,
    choice: LeafChoice,
) -> int:
    """Look from `cursor[STATE]` back for a state that one cycle leads to `target`.

    `DONE`: there it is, and its leaf is in `choice`; or there is none and `cursor[STATE]` is -1.
    """
    mask = (_ONE << automaton.low) - _ONE
    while cursor[STATE] >= 0:
        if budget <= 0:
            return PAUSED
        budget -= 1
        at = cursor[STATE] * len(target)
        if later(closed[at], sense) & mask == target[0] & mask:
            if cursor[OPTIONS] < 0:
                size = decode(closed, at, NIL, automaton, choice)
                cursor[OPTIONS] = open_state(closed, at, sense, size, automaton, choice)
                first_leaf(cursor[OPTIONS], choice)
            status, seen = find_leaf(target, budget + 1, cursor[OPTIONS], choice)
            if status == FULL:
                return DONE
            if status == PAUSED:
                return PAUSED
            budget -= seen
            cursor[OPTIONS] = -1
        cursor[STATE] -= 1
    return DONE


@uncounted
def highest(
    sense: int,
    start: int,
    budget: int,
    store: StateStore,
    cursor: Ints,
    automaton: PackedInstance,
    rest: RestBounds,
    choice: LeafChoice,
) -> int:
    """No schedule through the states in the next `budget` slots ends above this; the cursor goes on, to layer -1.

    It destroys the choice, so that the search cannot go on.
    """
    most, mask = -UNBOUNDED, (_ONE << automaton.low) - _ONE
    while cursor[LAYER] >= 0:
        segment = segment_of(cursor[LAYER], store.segments)
        begin, beyond = np.int64(store.segments[segment, BEGIN]), np.int64(store.segments[segment, BEYOND])
        cursor[STATE] = max(NIL, cursor[STATE])
        while begin + cursor[STATE] * choice.part.shape[1] < beyond:
            if budget <= 0:
                return int(most)
            budget -= 1
            at = begin + cursor[STATE] * choice.part.shape[1]
            if store.open[at] != _ZERO:
                size = decode(store.open, at, NIL, automaton, choice)
                value = int(np.int64(store.open[at] & mask)) - start
                most = max(most, prospect(value, size, UNBOUNDED, sense, automaton, rest, choice))
            cursor[STATE] += 1
        cursor[LAYER] -= 1
        cursor[STATE] = -1
    return int(most)
