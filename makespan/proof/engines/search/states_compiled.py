"""The inner loops of the packed search, in arrays and integers so that they compile; words as in the store.

The four modules `states_compiled*` are one unit of machine code: Numba compiles the functions into each other. What
`advance` does for every state is copied into it, because a call hands on every array in seven numbers, which takes as
long as the work.
"""

import numpy as np

from makespan.host.compiled import NIL, ONE, Ints, Words, inlined, uncounted
from makespan.proof.engines.search.states_compiled_leaves import (
    common,
    decode,
    find_leaf,
    first_leaf,
    later,
    list_choices,
    make_all_leaves,
    make_leaves,
    open_state,
    sums_of,
)
from makespan.proof.engines.search.states_compiled_store import (
    BEGIN,
    BEYOND,
    BURIED,
    COUNT,
    DONE,
    FULL,
    LAST,
    LAYER,
    LEAVES,
    LOAD,
    LONG,
    LOWEST_BIT,
    NO_BITS,
    OPTIONS,
    PAIR_CODE,
    PAIR_WARPS,
    PAIRS,
    PAUSED,
    RANK,
    READY,
    SCALARS,
    STATE,
    UNBOUNDED,
    USERS,
    LeafChoice,
    PackedInstance,
    RestBounds,
    StateStore,
    begin_layer,
    close,
    flush,
    leave,
    segment_of,
)


@inlined
def most_left(size: int, enough: int, automaton: PackedInstance, rest: RestBounds, choice: LeafChoice) -> int:
    """Return how many cycles remain at most, whichever warp finishes last; above `enough` any such number will do."""
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
                # both hold for this last finisher, so the smaller does
                cycles = min(cycles, falls(code, group, units[RANK, unit], rest, choice.totals[unit]))
            most = max(most, cycles)  # whichever warp finishes last
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
    """Return how many cycles remain at least: the longest path that a warp cannot avoid, or the work of a class."""
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
    """Return a value that no schedule through this state, whose pairs are filled in, exceeds.

    Where schedules may end above `floor`, it is enough to return something above.
    """
    if sense > 0:
        return value + most_left(size, floor - value, automaton, rest, choice)
    return value - least_left(size, automaton, rest, choice)


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
        value = int(np.int64(store.open[at] & ((LOWEST_BIT << automaton.low) - LOWEST_BIT))) - start
        if prospect(value, size, floor, sense, automaton, rest, choice) <= floor:
            # dead for this floor alone: a search with a lower floor begins anew
            cursor[BURIED] += 1
            return DONE, spent
        others = list_choices(store.open, at, sense, size, automaton, choice)
        every = sums_of(choice.tally[SCALARS, LAST], size, choice) if others > 0 else NIL
        # all leaves at once is quicker; else one by one, and the cursor says how far
        if 0 < others * every <= budget:
            if not make_all_leaves(others, every, automaton, store, cursor, choice):
                cursor[PAIRS] = 0  # made once more from the beginning: to insert a leaf twice changes nothing
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
        cursor[LAYER] -= 1  # every cycle lowers the layer, so the values of the next one are final now
        cursor[STATE] = -1
    return DONE if flush(automaton, store, cursor, choice) else FULL


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
    """Look from `cursor[STATE]` back for a state from which one cycle leads to `target`.

    `DONE`: there it is, and its leaf is in `choice`; or there is none and `cursor[STATE]` is -1.
    """
    mask = (LOWEST_BIT << automaton.low) - LOWEST_BIT
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
    """Return what no schedule through the states in the next `budget` slots exceeds; the cursor goes on, to layer -1.

    It destroys the choice, so that the search cannot go on.
    """
    most, mask = -UNBOUNDED, (LOWEST_BIT << automaton.low) - LOWEST_BIT
    while cursor[LAYER] >= 0:
        segment = segment_of(cursor[LAYER], store.segments)
        begin, beyond = np.int64(store.segments[segment, BEGIN]), np.int64(store.segments[segment, BEYOND])
        cursor[STATE] = max(NIL, cursor[STATE])
        while begin + cursor[STATE] * choice.part.shape[1] < beyond:
            if budget <= 0:
                return int(most)
            budget -= 1
            at = begin + cursor[STATE] * choice.part.shape[1]
            if store.open[at] != NO_BITS:
                size = decode(store.open, at, NIL, automaton, choice)
                value = int(np.int64(store.open[at] & mask)) - start
                most = max(most, prospect(value, size, UNBOUNDED, sense, automaton, rest, choice))
            cursor[STATE] += 1
        cursor[LAYER] -= 1
        cursor[STATE] = -1
    return int(most)
