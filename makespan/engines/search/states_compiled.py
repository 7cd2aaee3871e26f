"""The inner loops of the packed search, in arrays and integers so that they compile.

Words used here:

code       number of a place among those of all groups; -1 is "finished"
height     of a code: the most instructions on a path from it; a state's *layer* is the sum over its warps
key        a state in a few 64-bit words, made of *fields*: the number of warps at a place, or the place of a warp
value      cycles from the start, `sense` (1 or -1) times: the search keeps the largest
pair       a code and how many warps stand there
option     one way in which warps of a pair may move: to one of the successors of their place
leaf       one complete choice of how many warps use which option
floor      values that are not above it are of no interest

The caller owns and grows all arrays. An inner loop that runs out of room or of its budget returns, and goes on where it
was when it is called again: the cursor and the choice remember.

The module is long because it is one unit of machine code: Numba compiles the functions into each other, and notices a
change only in the file of the function that is called. What `advance` does for every state is copied into it, because a
call hands on every array in seven numbers, which takes as long as the work.
"""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from makespan.compiled import NIL, ONE, inlined, uncounted

Ints = NDArray[np.int64]
Short = NDArray[np.int32]
Words = NDArray[np.uint64]

DEAD = -(1 << 31)
"""Value of a state that cannot lead above the floor."""

UNBOUNDED = cast(int, np.int64(1 << 62))

DONE, PAUSED, FULL = 0, 1, 2
"""Why an inner loop returned: nothing is left to do, its budget is spent, or an array has no room."""

LAYER, STATE, OPTIONS, USED, FILLED, BURIED, LEAVES, EXPANDED = range(8)
"""The cursor: layer, state and number of its options (-1: not opened); then how many states are stored, slots taken,
states dead, leaves made and states expanded."""

CURSOR_SIZE = 8

_ZERO, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MIX, _STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


PAIR_CODE, PAIR_WARPS, PAIR_FIELD = range(3)
"""Columns of a pair: its code, how many warps stand there, and the last field that says so."""

READY, LOAD, USERS, QUOTA, RANK = range(5)
"""Rows over the classes: warps that are ready, what all warps have left to execute, how many have, how many warps must
move, and where the last finisher is one of the ready: the rank of its class and of the kind of the others, or -1."""

PAIR, UNIT, TARGET, FALL, LATER, MORE, TAKE, LEFT, ROOM, FALLEN = range(10)
"""Columns of an option: its pair, class and target; by how much a warp lowers the layer; how many warps of the class
stand at pairs behind; 1 where the next option belongs to the same pair; and of the leaf that is being made, how many
warps take this option, how many of the class and of the pair could, and by how much the layer has fallen before."""

OPTION_SIZE = 10

SUM_FALL, SUM_USED, SUM_HELD = range(3)
"""Columns of the tally of a sum."""

WORD, SHIFT, MASK, BASE, END = range(5)
"""Columns of a field: where it is in a key, and what it says.

A field whose `END` is 0 holds how many warps stand at code `BASE`. Any other is the field of a warp, and holds how
many instructions this warp has executed: it stands at `BASE` plus that, and has finished at `END`; the fields of one
group are in increasing order.
"""


class Automaton(NamedTuple):
    """The instance: class, successors (`-1` is "finished") and height of every code, and the capacities.

    `fields` are those of a key, and `counter` is the field that counts the warps at a code, or -1.
    """

    unit: Ints
    sigma: Ints
    first: Ints
    successors: Ints
    height: Ints
    fields: Ints
    counter: Ints


class Rest(NamedTuple):
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


class Store(NamedTuple):
    """All states; those of a layer form a list that starts at `head[layer]` and ends with -1."""

    keys: Words
    value: Short
    after: Short


class Choice(NamedTuple):
    """Scratch space: the pairs, classes and options of a state; `totals` per class of the last finisher and table.

    `part[o]` is the key before option o of the leaf that is being made, and `delta[o, n]` what n warps add to it.
    Where all leaves are made at once, each is the sum of a choice in row 0 of `sums`, of the last class, and one in row
    1, of all other classes with the key itself; row 2 is for their making. `tally` says of each choice by how much the
    layer falls, and how many warps of the class and of the pair are in it. The leaf itself is put together in `leaf`.
    """

    pairs: Ints
    units: Ints
    totals: Ints
    options: Ints
    delta: Words
    part: Words
    sums: Words
    tally: Ints
    leaf: Words


@inlined
def decode(keys: Words, state: int, automaton: Automaton, choice: Choice) -> int:
    """Fill in the pairs of a state, and per class how many warps are ready and must move; return how many pairs."""
    unit, sigma, fields, pairs, units = automaton.unit, automaton.sigma, automaton.fields, choice.pairs, choice.units
    for number in range(len(sigma)):
        units[READY, number] = 0
    size = 0
    last = -1
    for field in range(len(fields)):
        word = keys[state, fields[field, WORD]]
        held = np.int64((word >> np.uint64(fields[field, SHIFT])) & np.uint64(fields[field, MASK]))
        code, warps = fields[field, BASE], held
        if fields[field, END] > 0:  # the field of one warp: finished ones stand nowhere
            code, warps = code + held, np.int64(held < fields[field, END])
        if warps == 0:
            continue
        units[READY, unit[code]] += warps
        if code == last:  # fields of warps are sorted, so those that stand together are neighbours
            pairs[size - 1, PAIR_WARPS] += warps
        else:
            pairs[size, PAIR_CODE], pairs[size, PAIR_WARPS] = code, warps
            size += 1
            last = code
        pairs[size - 1, PAIR_FIELD] = field
    for number in range(len(sigma)):
        units[QUOTA, number] = min(units[READY, number], sigma[number])
    return size


@inlined
def most_left(size: int, enough: int, automaton: Automaton, rest: Rest, choice: Choice) -> int:
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
    pair = 0
    for group in range(len(rest.step)):
        units[RANK, :] = -1
        while pair < size and pairs[pair, PAIR_CODE] < begin[group + 1] and most <= enough:
            code = pairs[pair, PAIR_CODE]
            # `waits` is cheap and often small enough; the potential is asked only where it could matter
            cycles = waits(code, automaton.sigma, work, rest.length, units)
            if cycles > most and rest.step[group] > 0:
                unit = automaton.unit[code]
                if units[RANK, unit] < 0:
                    units[RANK, unit] = add_up(size, group, unit, rest, choice)
                cycles = min(cycles, falls(code, group, units[RANK, unit], rest, choice.totals[unit]))
            most = max(most, cycles)
            pair += 1
    return most


@inlined
def add_up(size: int, group: int, last: int, rest: Rest, choice: Choice) -> int:
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
def falls(code: int, group: int, rank: int, rest: Rest, totals: Ints) -> int:
    """The cycles left by the potential if a warp at `code` finishes last; 0 if it cannot."""
    # which node the state is in depends on the future, so the largest of them counts; floor, as cycles are whole
    most = 0
    begin = rest.node_first[rank]
    for node in range(begin, rest.node_first[rank + 1]):
        most = max(most, totals[node - begin] + rest.ends[rest.table[node], code])
    return int(most // rest.step[group])


@inlined
def waits(code: int, sigma: Ints, work: Ints, length: Ints, units: Ints) -> int:
    """The cycles left by the pessimistic bound if a warp at `code` finishes last: its path, and its waiting."""
    cycles = length[code]
    for unit in range(len(sigma)):
        own = work[unit, code]
        if own > 0 and units[USERS, unit] - 1 >= sigma[unit]:  # else the others never fill the units
            cycles += (units[LOAD, unit] - own) // sigma[unit]
    return int(cycles)


@inlined
def least_left(size: int, automaton: Automaton, rest: Rest, choice: Choice) -> int:
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
def prospect(value: int, size: int, floor: int, sense: int, automaton: Automaton, rest: Rest, choice: Choice) -> int:
    """No schedule through a state of this value, whose pairs are filled in, ends with a higher one.

    Where schedules may end above `floor`, it is enough to return something above.
    """
    if sense > 0:
        return value + most_left(size, floor - value, automaton, rest, choice)
    return value - least_left(size, automaton, rest, choice)


@inlined
def open_options(size: int, automaton: Automaton, choice: Choice) -> int:
    """Fill in the options of all pairs, class by class; return their number."""
    pairs, units, options, height = choice.pairs, choice.units, choice.options, automaton.height
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
                options[number, FALL] = height[code] - (height[target] if target >= 0 else 0)
                options[number, LATER] = behind
                options[number, MORE] = np.int64(edge + 1 < automaton.first[code + 1])
                fill_delta(number, pairs[pair, PAIR_FIELD], most, target, automaton, choice.delta)
                number += 1
    return number


@inlined
def fill_delta(option: int, field: int, most: int, target: int, automaton: Automaton, delta: Words) -> None:
    """What 1 to `most` warps of an option add to the key; modulo 2^64, so that subtracting is adding."""
    fields = automaton.fields
    counts = fields[field, END] == 0
    for number in range(1, most + 1):
        for word in range(delta.shape[2]):
            delta[option, number, word] = delta[option, number - 1, word]
        if counts:
            # a counter never falls below 0 and never exceeds its mask, so no borrow or carry leaves its field
            delta[option, number, fields[field, WORD]] -= _ONE << np.uint64(fields[field, SHIFT])
            if target >= 0:
                to = automaton.counter[target]
                delta[option, number, fields[to, WORD]] += _ONE << np.uint64(fields[to, SHIFT])
        else:  # the last of the warps that stand together moves first, which keeps their fields sorted
            warp = field - number + 1
            delta[option, number, fields[warp, WORD]] += _ONE << np.uint64(fields[warp, SHIFT])


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
        options[at + 1, FALLEN] = options[at, FALLEN] + take * options[at, FALL]


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
            options[option + 1, FALLEN] = options[option, FALLEN] + take * options[option, FALL]
            descend(option + 1, number, pairs, units, options, delta, part)
            return True
    return False


@inlined
def open_state(keys: Words, state: int, size: int, automaton: Automaton, choice: Choice) -> int:
    """Fill in the options of a state whose pairs are, and the key before the first one; return their number."""
    for word in range(keys.shape[1]):
        choice.part[0, word] = keys[state, word]
    choice.options[0, FALLEN] = 0
    return int(open_options(size, automaton, choice))


@uncounted
def first_leaf(number: int, choice: Choice) -> None:
    """Make the first leaf of a state that is open."""
    descend(NIL, number, choice.pairs, choice.units, choice.options, choice.delta, choice.part)


@inlined
def fingerprint(keys: Words, row: int) -> np.uint64:
    """A hash of a key."""
    mixed = _STIR
    for word in range(keys.shape[1]):
        mixed = (mixed ^ keys[row, word]) * _MIX
        mixed ^= mixed >> _HALF
    mixed *= _STIR
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def insert(
    part: Words,
    row: int,
    value: int,
    layer: int,
    keys: Words,
    values: Short,
    after: Short,
    table: Words,
    head: Short,
    cursor: Ints,
) -> None:
    """Add the state whose key is in a row of `part`, or raise its value; there must be room for one more."""
    hashed = fingerprint(part, row)
    mask = np.uint64(len(table) - 1)
    slot = hashed & mask
    tag = hashed >> _HALF  # stored beside the number of the state, so that most strangers need no look at their keys
    while table[slot] != _ZERO:
        if table[slot] >> _HALF == tag:
            state = np.int64(table[slot] & _LOW) - 1
            same = True
            for word in range(part.shape[1]):
                if keys[state, word] != part[row, word]:
                    same = False
            if same:
                if values[state] < value:  # its layer is below the current one, so it is not expanded yet
                    values[state] = value
                return
        slot = (slot + _ONE) & mask
    state = cursor[USED]
    table[slot] = (tag << _HALF) | np.uint64(state + 1)
    for word in range(part.shape[1]):
        keys[state, word] = part[row, word]
    values[state] = value
    after[state] = head[layer]
    head[layer] = state
    cursor[USED] += 1
    cursor[FILLED] += 1


@uncounted
def make_leaves(
    value: int, budget: int, store: Store, table: Words, head: Short, cursor: Ints, choice: Choice
) -> tuple[int, int]:
    """Insert what follows the current state, from its current leaf on; return the status and how many leaves."""
    keys, values, after = store.keys, store.value, store.after
    pairs, units, options, delta, part = choice.pairs, choice.units, choice.options, choice.delta, choice.part
    number, layer, room, slots = cursor[OPTIONS], cursor[LAYER], len(values), len(table)
    for made in range(budget):
        if cursor[USED] >= room or 2 * cursor[FILLED] >= slots:  # half full: probes stay short
            return FULL, made
        insert(part, number, value, layer - options[number, FALLEN], keys, values, after, table, head, cursor)
        if not next_leaf(number, pairs, units, options, delta, part):
            return DONE, made + 1
    return PAUSED, budget


@inlined
def list_choices(number: int, choice: Choice) -> tuple[int, int]:
    """Fill in `sums`; return how many are in rows 0 and 1, or zeros if there is no room."""
    options, sums, tally = choice.options, choice.sums, choice.tally
    begin_sum(NIL, sums, tally)
    begin_sum(ONE, sums, tally)
    for word in range(sums.shape[2]):
        sums[1, 0, word] = choice.part[0, word]
    own, others, first = ONE, ONE, NIL
    while first < number:
        beyond = first
        while beyond < number and options[beyond, UNIT] == options[first, UNIT]:
            beyond += 1
        count = list_class(int(beyond < number), others, first, beyond, choice)
        if count == 0:
            return 0, 0
        if beyond < number:
            others = count
        else:
            own = count
        first = beyond
    return own, others


@inlined
def begin_sum(row: int, sums: Words, tally: Ints) -> None:
    """Nothing is chosen yet."""
    tally[row, 0, SUM_FALL] = 0
    for word in range(sums.shape[2]):
        sums[row, 0, word] = _ZERO


@inlined
def list_one(row: int, count: int, first: int, beyond: int, choice: Choice) -> int:
    """The same where one warp moves; the first option is added last and in place, when nothing else needs the sums."""
    options, sums, tally, delta = choice.options, choice.sums, choice.tally, choice.delta
    if row == 0:
        count = 1
    every = count * (beyond - first)
    if every > sums.shape[1]:
        return 0
    for option in range(beyond - 1, first - 1, -1):
        to = count * (option - first)
        for at in range(count):
            tally[row, to + at, SUM_FALL] = tally[row, at, SUM_FALL] + options[option, FALL]
            for word in range(sums.shape[2]):
                sums[row, to + at, word] = sums[row, at, word] + delta[option, 1, word]
    return every


@inlined
def list_class(row: int, count: int, first: int, beyond: int, choice: Choice) -> int:
    """Extend the sums of a row by every choice in the options of one class; return how many there are, 0: too many.

    Every partial choice can be completed, so there are never more of them than of complete ones.
    """
    pairs, options, sums, tally = choice.pairs, choice.options, choice.sums, choice.tally
    quota, room = choice.units[QUOTA, options[first, UNIT]], sums.shape[1]
    if quota == 1:
        return list_one(row, count, first, beyond, choice)
    old, new = row, 2
    if row == 0:
        count = 1
    for at in range(count):
        tally[row, at, SUM_USED] = 0
    for option in range(first, beyond):
        warps, later, more = pairs[options[option, PAIR], PAIR_WARPS], options[option, LATER], options[option, MORE]
        again = option > first and options[option, PAIR] == options[option - 1, PAIR]
        made = 0
        for at in range(count):
            held = tally[old, at, SUM_HELD] if again else 0
            left = quota - tally[old, at, SUM_USED]
            least = 0 if more else max(0, left - later)  # what the pairs behind cannot take is taken here
            for take in range(min(left, warps - held), least - 1, -1):
                if made == room:
                    return 0
                for word in range(sums.shape[2]):
                    sums[new, made, word] = sums[old, at, word] + choice.delta[option, take, word]
                tally[new, made, SUM_FALL] = tally[old, at, SUM_FALL] + take * options[option, FALL]
                tally[new, made, SUM_USED] = tally[old, at, SUM_USED] + take
                tally[new, made, SUM_HELD] = held + take
                made += 1
        count = made
        old, new = new, old
    if old != row:
        for at in range(count):
            tally[row, at, SUM_FALL] = tally[old, at, SUM_FALL]
            for word in range(sums.shape[2]):
                sums[row, at, word] = sums[old, at, word]
    return count


@inlined
def make_all_leaves(
    value: int, own: int, others: int, store: Store, table: Words, head: Short, cursor: Ints, choice: Choice
) -> None:
    """Insert every sum of a choice in row 1 and one in row 0; there must be room for all of them."""
    keys, values, after = store.keys, store.value, store.after
    sums, tally, leaf, layer = choice.sums, choice.tally, choice.leaf, cursor[LAYER]
    for other in range(others):
        below = layer - tally[1, other, SUM_FALL]
        for at in range(own):
            for word in range(leaf.shape[1]):
                leaf[0, word] = sums[1, other, word] + sums[0, at, word]
            insert(leaf, NIL, value, below - tally[0, at, SUM_FALL], keys, values, after, table, head, cursor)


@uncounted
def advance(
    floor: int,
    sense: int,
    budget: int,
    store: Store,
    table: Words,
    head: Short,
    cursor: Ints,
    automaton: Automaton,
    rest: Rest,
    choice: Choice,
) -> int:
    """Expand states, layer by layer from the highest, until all is done or `budget` states and leaves are."""
    while cursor[LAYER] > 0:
        while cursor[STATE] >= 0:
            if budget <= 0:
                return PAUSED
            state = cursor[STATE]
            value = int(store.value[state])
            if cursor[OPTIONS] < 0:
                budget -= 1
                size = decode(store.keys, state, automaton, choice)
                if prospect(value, size, floor, sense, automaton, rest, choice) <= floor:
                    # dead for this floor alone: a search with a lower floor begins anew
                    store.value[state] = DEAD
                    cursor[BURIED] += 1
                    cursor[STATE] = store.after[state]
                    continue
                cursor[OPTIONS] = open_state(store.keys, state, size, automaton, choice)
                cursor[EXPANDED] += 1
                own, others = list_choices(cursor[OPTIONS], choice)
                number = own * others
                # all leaves at once is quicker; else one by one, and the cursor says how far
                if (
                    0 < number <= budget
                    and cursor[USED] + number <= len(store.value)
                    and 2 * (cursor[FILLED] + number) <= len(table)
                ):
                    make_all_leaves(value + sense, own, others, store, table, head, cursor, choice)
                    cursor[LEAVES] += number
                    budget -= number
                    cursor[OPTIONS] = -1
                    cursor[STATE] = store.after[state]
                    continue
                first_leaf(cursor[OPTIONS], choice)
            status, made = make_leaves(value + sense, budget, store, table, head, cursor, choice)
            cursor[LEAVES] += made
            budget -= made
            if status != DONE:
                return status
            cursor[OPTIONS] = -1
            cursor[STATE] = store.after[state]
        cursor[LAYER] -= 1
        cursor[STATE] = head[cursor[LAYER]]
    return DONE


@uncounted
def find_leaf(target: Words, budget: int, number: int, choice: Choice) -> tuple[int, int]:
    """Go on to the leaf whose key is `target`: `FULL`; return the status and how many leaves were looked at."""
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
    target: Words, wanted: int, budget: int, store: Store, cursor: Ints, automaton: Automaton, choice: Choice
) -> int:
    """Look in the list from `cursor[STATE]` on for a state of value `wanted` that one cycle leads to `target`.

    `DONE`: there it is, and its leaf is in `choice`; or the list has ended and `cursor[STATE]` is -1.
    """
    while cursor[STATE] >= 0:
        if budget <= 0:
            return PAUSED
        budget -= 1
        state = cursor[STATE]
        if store.value[state] == wanted:
            if cursor[OPTIONS] < 0:
                size = decode(store.keys, state, automaton, choice)
                cursor[OPTIONS] = open_state(store.keys, state, size, automaton, choice)
                first_leaf(cursor[OPTIONS], choice)
            status, seen = find_leaf(target, budget + 1, cursor[OPTIONS], choice)
            if status == FULL:
                return DONE
            if status == PAUSED:
                return PAUSED
            budget -= seen
            cursor[OPTIONS] = -1
        cursor[STATE] = store.after[state]
    return DONE


@uncounted
def highest(
    sense: int,
    budget: int,
    store: Store,
    head: Short,
    cursor: Ints,
    automaton: Automaton,
    rest: Rest,
    choice: Choice,
) -> int:
    """No schedule through the next `budget` open states ends above this; moves the cursor on, to layer -1 at the end.

    It destroys the choice, so that the search cannot go on.
    """
    most = DEAD
    spent = 0
    while cursor[LAYER] >= 0:
        while cursor[STATE] >= 0:
            if spent >= budget:
                return most
            spent += 1
            state = cursor[STATE]
            size = decode(store.keys, state, automaton, choice)
            most = max(most, prospect(int(store.value[state]), size, UNBOUNDED, sense, automaton, rest, choice))
            cursor[STATE] = store.after[state]
        cursor[LAYER] -= 1
        cursor[STATE] = head[cursor[LAYER]] if cursor[LAYER] >= 0 else -1
    return most


@uncounted
def move(store: Store, head: Short, cursor: Ints, closed: bool, fresh: Store) -> None:
    """Copy the states, layer by layer, without the dead ones and, unless `closed`, without those that are expanded."""
    used = 0
    now = cursor[STATE]
    for layer in range(len(head) - 1, -1, -1):
        state = np.int64(head[layer])
        head[layer] = -1
        if not closed and layer >= cursor[LAYER]:
            state = now if layer == cursor[LAYER] else np.int64(-1)
        last = -1
        while state >= 0:
            if store.value[state] != DEAD:
                for word in range(store.keys.shape[1]):
                    fresh.keys[used, word] = store.keys[state, word]
                fresh.value[used], fresh.after[used] = store.value[state], -1
                if last < 0:
                    head[layer] = used
                else:
                    fresh.after[last] = used
                last = used
                if state == now:
                    cursor[STATE] = used
                used += 1
            state = np.int64(store.after[state])
    cursor[USED] = used
    cursor[BURIED] = 0


@uncounted
def count_open(store: Store, head: Short, cursor: Ints) -> int:
    """How many states are not expanded yet, the current one among them."""
    number = 0
    for layer in range(cursor[LAYER], -1, -1):
        state = cursor[STATE] if layer == cursor[LAYER] else np.int64(head[layer])
        while state >= 0:
            number += 1
            state = np.int64(store.after[state])
    return number


@uncounted
def fill_table(store: Store, head: Short, cursor: Ints, table: Words) -> None:
    """Enter the states below the current layer, the only ones that may be reached again, into an empty table."""
    mask = np.uint64(len(table) - 1)
    filled = 0
    for layer in range(min(int(cursor[LAYER]), len(head)) - 1, -1, -1):
        state = int(head[layer])
        while state >= 0:
            hashed = fingerprint(store.keys, state)
            slot = hashed & mask
            while table[slot] != _ZERO:
                slot = (slot + _ONE) & mask
            table[slot] = ((hashed >> _HALF) << _HALF) | np.uint64(state + 1)
            filled += 1
            state = int(store.after[state])
    cursor[FILLED] = filled
