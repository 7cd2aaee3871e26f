"""The inner loop of the beam search, in arrays and integers so that it compiles.

Words used here:

code       number of a place among those of all groups; -1 is "finished"
state      the other warps as (code, count) pairs in increasing order of code, and the code of the laggard
option     one way in which warps of a pair (or the laggard) may move: to one of the successors of their place
leaf       one complete choice of how many warps use which option; leaves are numbered as they are enumerated
kind, node as in a potential certificate: the score of a state is the largest potential of its nodes
rank       number of the class of the laggard and the kind of the other warps, among all such pairs
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.host.compiled import NIL, Ints, compiled

DEAD = -(1 << 62)
"""Score of a state that is not kept."""


class BeamAutomaton(NamedTuple):
    """The instance: class and successors of every code, and the capacities."""

    unit: Ints
    sigma: Ints
    first: Ints
    successors: Ints


class Potentials(NamedTuple):
    """A certificate: `table` of the nodes of rank k, from `node_first[k]` to `node_first[k + 1]`, and the tables."""

    thresholds: Ints
    node_first: Ints
    table: Ints
    others: Ints
    last: Ints


class Layer(NamedTuple):
    """States of one cycle, and where they came from; the last entry is for the end of all warps."""

    codes: Ints
    counts: Ints
    sizes: Ints
    laggards: Ints
    parent: Ints
    leaf: Ints
    score: Ints
    mark: NDArray[np.uint64]


class BeamChoice(NamedTuple):
    """The options of a state: pair, class and target of each, how many warps of each pair there are, and a leaf."""

    pair: Ints
    unit: Ints
    target: Ints
    available: Ints
    quota: Ints
    take: Ints


@compiled
def open_choice(layer: Layer, state: int, automaton: BeamAutomaton, choice: BeamChoice) -> int:
    """Fill in the options and the quota of every class; return the number of options."""
    size, laggard = layer.sizes[state], layer.laggards[state]
    choice.quota[:] = 0
    number = 0
    for pair in range(size + 1):
        code = layer.codes[state, pair] if pair < size else laggard
        if code < 0:
            continue
        unit = automaton.unit[code]
        choice.available[pair] = layer.counts[state, pair] if pair < size else 1
        choice.quota[unit] += choice.available[pair]
        for edge in range(automaton.first[code], automaton.first[code + 1]):
            choice.pair[number], choice.unit[number] = pair, unit
            choice.target[number] = automaton.successors[edge]
            number += 1
    # work conservation: of each class as many are issued as are ready and there are ports
    for unit in range(len(choice.quota)):
        choice.quota[unit] = min(choice.quota[unit], automaton.sigma[unit])
    return number


@compiled
def next_leaf(choice: BeamChoice, number: int, begin: bool) -> bool:
    """Step `choice.take` to the next leaf, largest first; False when there is none.

    A leaf uses up every quota exactly and no pair beyond its count; `choice.quota` counts what is left of it.
    """
    at = 0 if begin else give_up_one(choice, number - 1)
    while at >= 0:
        if at < number:
            used = 0
            for option in range(at - 1, -1, -1):
                if choice.pair[option] != choice.pair[at]:
                    break
                used += choice.take[option]
            unit = choice.unit[at]
            choice.take[at] = min(choice.available[choice.pair[at]] - used, choice.quota[unit])
            choice.quota[unit] -= choice.take[at]
            at += 1
        elif choice.quota.max() == 0:  # all quotas are used up: a complete leaf
            return True
        else:
            at = give_up_one(choice, number - 1)
    return False


@compiled
def give_up_one(choice: BeamChoice, at: int) -> int:
    """Take one warp less of the last option, from `at` down, that has one; return the option after it, or -1."""
    while at >= 0:
        if choice.take[at] > 0:
            choice.take[at] -= 1
            choice.quota[choice.unit[at]] += 1
            return at + 1
        at -= 1
    return -1


@compiled
def apply(layer: Layer, state: int, choice: BeamChoice, number: int, after: Layer, to: int) -> bool:
    """Write the state after a leaf as state `to` of `after`; False if it has too many pairs."""
    size = layer.sizes[state]
    new_size = 0
    codes, counts = after.codes[to], after.counts[to]
    after.laggards[to] = layer.laggards[state]
    option = 0
    for pair in range(size):
        stay = layer.counts[state, pair]
        while option < number and choice.pair[option] == pair:
            stay -= choice.take[option]
            option += 1
        if stay > 0:
            codes[new_size], counts[new_size] = layer.codes[state, pair], stay
            new_size += 1
    for option in range(number):
        if choice.take[option] > 0:
            if choice.pair[option] == size:
                after.laggards[to] = choice.target[option]
            elif choice.target[option] >= 0:
                new_size = insert(codes, counts, new_size, choice.target[option], choice.take[option])
                if new_size < 0:
                    return False
    after.sizes[to] = new_size
    return True


@compiled
def insert(codes: Ints, counts: Ints, size: int, code: int, count: int) -> int:
    """Add warps to the sorted pairs; return how many pairs there are then, -1 if there is no room."""
    at = 0
    while at < size and codes[at] < code:
        at += 1
    if at < size and codes[at] == code:
        counts[at] += count
        return size
    if size == len(codes):
        return -1
    for behind in range(size, at, -1):
        codes[behind], counts[behind] = codes[behind - 1], counts[behind - 1]
    codes[at], counts[at] = code, count
    return size + 1


@compiled
def score(layer: Layer, state: int, automaton: BeamAutomaton, potentials: Potentials, ready: Ints) -> int:
    """Return the largest potential among the nodes of a state; `DEAD` where laggard cannot finish last."""
    size, laggard = layer.sizes[state], layer.laggards[state]
    if laggard < 0:
        return DEAD
    ready[:] = 0
    for pair in range(size):
        ready[automaton.unit[layer.codes[state, pair]]] += layer.counts[state, pair]
    rank = automaton.unit[laggard]
    for unit in range(len(ready)):
        threshold = potentials.thresholds[unit]
        rank = rank * (threshold + 1) + min(ready[unit], threshold)
    best = DEAD  # the largest over all labels: which of them holds, only the future says
    for node in range(potentials.node_first[rank], potentials.node_first[rank + 1]):
        table = potentials.table[node]
        value = potentials.last[table, laggard]
        for pair in range(size):
            value += layer.counts[state, pair] * potentials.others[table, layer.codes[state, pair]]
        best = max(best, value)
    return best


@compiled
def fingerprint(layer: Layer, state: int) -> np.uint64:
    """Return a hash of a state; equal states have equal hashes."""
    mixed = np.uint64(layer.laggards[state] + 2) * np.uint64(0x9E3779B97F4A7C15)
    for pair in range(layer.sizes[state]):
        mixed ^= np.uint64(layer.codes[state, pair] * 65537 + layer.counts[state, pair])
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@compiled
def advance(
    layer: Layer,
    alive: int,
    width: int,
    per_place: int,
    most_leaves: int,
    automaton: BeamAutomaton,
    potentials: Potentials,
    choice: BeamChoice,
    after: Layer,
) -> tuple[int, bool]:
    """Put the `width` best states that follow the `alive` states of `layer` into `after`.

    Returns their number, and whether some state is followed by the end of all warps (then the last entry says which).
    """
    room = len(after.sizes) - 1
    ready = np.zeros(len(automaton.sigma), dtype=np.int64)
    seen = np.zeros(len(automaton.unit), dtype=np.int64)
    kept = NIL
    finished = False
    for state in range(alive):
        number = open_choice(layer, state, automaton, choice)
        for leaf in range(most_leaves):
            if not next_leaf(choice, number, leaf == 0):
                break
            if not apply(layer, state, choice, number, after, kept):
                continue
            if after.sizes[kept] == 0 and after.laggards[kept] < 0:
                # the last such leaf is as good as any: all states of a layer are equally old
                finished = True
                after.parent[room], after.leaf[room] = state, leaf
                continue
            after.score[kept] = score(after, kept, automaton, potentials, ready)
            if after.score[kept] == DEAD:
                continue  # no schedule from here ends with the laggard
            after.parent[kept], after.leaf[kept] = state, leaf
            after.mark[kept] = fingerprint(after, kept)
            kept += 1
            # the array is a multiple of the width: what is crowded out now could not come back later
            if kept == room:
                kept = select(after, kept, width, per_place, seen)
    return select(after, kept, width, per_place, seen), finished


@compiled
def select(layer: Layer, kept: int, width: int, per_place: int, seen: Ints) -> int:
    """Move the `width` best different states to the front, best first, and return how many there are.

    At most `per_place` have their laggard at the same place: the states that put off their losses all look better
    than those that have paid, and would crowd them out.
    """
    seen[:] = 0
    # a stable sort: runs of the compiled and the plain code choose the same states
    order = np.argsort(-layer.score[:kept], kind="mergesort")
    chosen = np.empty(width, dtype=np.int64)
    number = 0
    for at in order:
        if number == width:
            break
        new = seen[layer.laggards[at]] < per_place
        # equal states have equal scores, so they stand side by side in this order
        for before in chosen[:number][::-1]:
            if layer.score[before] != layer.score[at]:
                break
            if layer.mark[before] == layer.mark[at]:
                new = False
                break
        if new:
            chosen[number] = at
            number += 1
            seen[layer.laggards[at]] += 1
    picked = chosen[:number]
    for pair in range(layer.codes.shape[1]):
        gather(layer.codes[:, pair], picked)
        gather(layer.counts[:, pair], picked)
    gather(layer.sizes, picked)
    gather(layer.laggards, picked)
    gather(layer.parent, picked)
    gather(layer.leaf, picked)
    gather(layer.score, picked)
    gather(layer.mark, picked)
    return number


@compiled
def gather(values: np.ndarray, picked: Ints) -> None:
    """Move the values at `picked` to the front, in this order; a fancy index takes seconds to compile."""
    kept = np.empty(len(picked), dtype=values.dtype)
    for number in range(len(picked)):
        kept[number] = values[picked[number]]
    for number in range(len(picked)):
        values[number] = kept[number]
