"""What follows a state in the packed search: its pairs, its options, and all ways to choose the warps that move."""

import numpy as np

from makespan.host.compiled import NIL, ONE, Ints, Words, inlined, uncounted
from makespan.proof.engines.search.states_compiled_store import (
    APART,
    BASE,
    BATCH,
    BUILT,
    DONE,
    END,
    FULL,
    LAST,
    LATER,
    LEFT,
    LOWEST_BIT,
    MASK,
    MORE,
    NO_BITS,
    OPTIONS,
    PAIR,
    PAIR_CODE,
    PAIR_FIELD,
    PAIR_FIRST,
    PAIR_WARPS,
    PAUSED,
    QUOTA,
    READY,
    ROOM,
    SCALARS,
    SHIFT,
    TAKE,
    TARGET,
    UNIT,
    WAITING,
    WAYS,
    WORD,
    LeafChoice,
    PackedInstance,
    StateStore,
    flush,
    put,
)


@inlined
def common(words: Words, at: int, before: int, size: int, automaton: PackedInstance, choice: LeafChoice) -> int:
    """Return how many of the `size` pairs of the state that begins at one word are those of the state at another."""
    pairs, fields, word = choice.pairs, automaton.fields, choice.part.shape[1] - 1
    while word > 0 and words[at + word] == words[before + word]:
        word -= 1
    differ = words[at + word] ^ words[before + word]
    if word == 0:  # the value says nothing of the pairs
        differ = (differ >> automaton.low) << automaton.low
    while size > 0:
        field = pairs[size - 1, PAIR_FIRST]
        if fields[field, WORD] > word:
            break
        if fields[field, WORD] == word and differ >> np.uint64(fields[field, SHIFT]) == NO_BITS:
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
            behind -= pairs[pair, PAIR_WARPS]  # those that can still take over when this pair gives up
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
    """Fill in what 1 to `most` warps of an option add to the state."""
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
        take = min(left, room)  # as many as possible: the first leaf, from which each next one gives up one warp
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
    return word + LOWEST_BIT if sense > 0 else word - LOWEST_BIT


@uncounted
def first_leaf(number: int, choice: LeafChoice) -> None:
    """Make the first leaf of a state that is open."""
    descend(NIL, number, choice.pairs, choice.units, choice.options, choice.delta, choice.part)


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
    """Write `number` sums, each with something added; numbers without a sign need no look whether they are negative."""
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
                return False  # no room: the leaves are made one after another
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
    # a sum of fewer could not be completed by the warps of later pairs
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
            for other in range(count - 1, -1, -1):  # from the last one down: none is overwritten unread
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
