"""The floor in arrays of records so that it compiles: the lowered machine, cycle by cycle, and who goes first as data.

It knows all that `floor` and `policies` know together, but for promises of schedulers, and makes the same runs.

Words used here:

slot     a warp
entry    an instruction of a row, which is what a warp executes: instructions and barriers, then the end
kind     a class in a partition, which says of which pools an instruction holds ports; the kinds of a partition follow
         one another
rank     smaller ranks go first. A slot is its own rank, or the entry at which it stands has one; the slots that are
         ready at one rank form a list in increasing order
able     ready, with a free port for everything that the instruction holds
ring     for every cycle to come, modulo the longest wait, the list of the slots that arrive in it; a list is linked
         through "link", for a slot is in one list at most: of the ring, of a barrier, or of a rank
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from makespan.host.compiled import NIL, Ints, Words, inlined, uncounted

FIRST, LATEST, ROUND_ROBIN, GREEDY, TWO_LEVEL, RANDOM = range(6)
NONE, BARRIER, END = -1, -1, -2

Records: TypeAlias = NDArray[np.void]
"""An array of records: what is used together lies together, and a loop has few arrays to point to."""


def whole_numbers(*names: str) -> np.dtype[np.void]:
    """Return the type of a record of whole numbers with these names, so large that finding one is a shift."""
    size = 8 << (len(names) - 1).bit_length()
    return np.dtype({"names": names, "formats": [np.int64] * len(names), "itemsize": size})


ENTRY = whole_numbers("kind", "latency", "stall", "hold", "end", "sets", "awaits", "behind")
"""An entry: its kind, `BARRIER` or `END`; the cycles until its result is there, and until its warp may come to the next
entry; its first hold and the one behind its last; and the first token that it sets, the first that it awaits, and the
one behind the last."""

HOLD = whole_numbers("pool", "option", "begin", "width", "cycles")
"""A port that an instruction holds for some cycles: of a pool, or of one of `width` pools, the options from a number
on, of which it takes the first with a free port in a circle that begins at the one of number `begin`."""

KIND = whole_numbers("hold", "end", "pool", "cycles", "has_options", "ready", "free")
"""A kind: its first hold and the one behind its last; where the only hold is of a pool that no other kind needs, this
pool and the cycles, else `NONE`; whether a hold has several options; how many slots are ready to issue it; and the
cycle from which on all ports are free that it needs."""

POOL = whole_numbers("port", "size", "is_shared", "user", "end", "oldest", "free")
"""A pool: its first port, the number of them, and whether it serves several partitions; its first user and the one
behind its last; the port that is free first, by its number in the pool, and from which cycle on it is. The others
follow it in a circle, earlier ones first."""

SLOT = whole_numbers("row", "block", "entry", "kind", "link", "done")
"""A slot: the first entry of its row; its block; the entry at which it stands and, where it is ready, the kind of that;
the slot after it in its list; and the cycle from which on no token of it is pending."""

BLOCK = whole_numbers("gate", "waiting", "running")
"""A block: the first of the slots that wait at its barrier, how many there are, and how many slots are unfinished."""

TURN = whole_numbers("low", "high", "turn", "cycle", "line", "queue")
"""The turn of a partition: its smallest rank and the one behind its largest, and what its policy remembers, see `pick`.
"line" has the partitions in the order in which they pick, and "queue" the same for this cycle."""

_NO_TIME = 1 << 62
_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_PAIRS, _FOURS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES, _S1, _S2, _S4, _S56 = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


class LoweredWork(NamedTuple):
    """The entries of all rows, their tokens and holds, the pools of all options, and the kinds that use each pool."""

    entries: Records
    tokens: Ints
    holds: Records
    options: Ints
    users: Ints


class RunState(NamedTuple):
    """The state of a run between two steps of its loop.

    Args:
        slots, kinds, pools, blocks: what there is, see the types of records.
        ready: for every kind the set of the ranks at which slots are ready.
        free: the cycle from which on each port is free.
        ring: the first slot of the list of each coming cycle.
        stand: the first of the slots that are ready at each rank, where a slot is not its own rank.
        until: for each slot and token the cycle from which on it is not pending.
    """

    slots: Records
    kinds: Records
    pools: Records
    blocks: Records
    ready: Words
    free: Ints
    ring: Ints
    stand: Ints
    until: Ints


class PolicyState(NamedTuple):
    """A policy, and what it remembers.

    Args:
        kind: `FIRST` or `LATEST` for the smallest rank and, of several slots at it, the smallest or the one that came
            last; the others know slots that are their own ranks.
        size: the number of slots in a fetch group.
        ranks: the rank of each entry; nothing where a slot is its own rank.
        turns: the turn of each partition.
        last: the last slot of each fetch group, in the place of its first slot.
        draws: the random state of each partition.
    """

    kind: int
    size: int
    ranks: Ints
    turns: Records
    last: Ints
    draws: Words


class IssueLog(NamedTuple):
    """The log of every issue, in order, and of the options that all holds have taken. Arrays of length 0 keep nothing.

    `size` counts the issues and the holds so far.
    """

    cycles: Ints
    slots: Ints
    options: Ints
    size: Ints


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
def able_word(cycle: int, state: RunState, kind: int, end: int, word: int) -> np.uint64:
    """Return a word of the set of the ranks at which slots are ready for a kind in `kind` .. `end` - 1 that fits."""
    found = _ZERO
    for number in range(kind, end):
        if state.kinds[number]["free"] <= cycle:
            found |= state.ready[number, word]
        if found == _ALL:  # a loop that may end here is not vectorised, which costs more than a few kinds
            break
    return found


@inlined
def next_in(cycle: int, state: RunState, kind: int, end: int, low: int, high: int) -> int:
    """Return the smallest rank in low .. high - 1 in that set, or NONE."""
    # the first word may begin in its middle
    mask = _ALL << np.uint64(low & 63)
    for word in range(low >> 6, ((high - 1) >> 6) + 1):
        found = able_word(cycle, state, kind, end, word) & mask
        if found != _ZERO:
            rank = word * 64 + lowest(found)
            return rank if rank < high else NONE  # bits of the last word may lie beyond `high`
        mask = _ALL
    return NONE


@inlined
def first_able(cycle: int, state: RunState, kind: int, end: int) -> int:
    """Return the smallest rank in that set, or NONE; quicker than `next_in` where there are many words."""
    best = state.ready.shape[1] * 64
    for number in range(kind, end):
        if state.kinds[number]["free"] <= cycle and state.kinds[number]["ready"] > 0:
            for word in range(((best - 1) >> 6) + 1):
                found = state.ready[number, word]
                if found != _ZERO:
                    best = min(best, word * 64 + lowest(found))
                    break
    return best if best < state.ready.shape[1] * 64 else NONE


@inlined
def nth(cycle: int, state: RunState, kind: int, end: int, low: int, number: int) -> int:
    """Return the rank from `low` on that has `number` smaller ones in that set."""
    for word in range(low >> 6, state.ready.shape[1]):
        found = able_word(cycle, state, kind, end, word)
        size = population(found)
        if number < size:
            for _ in range(number):
                # clears the lowest set bit
                found &= found - _ONE
            return word * 64 + lowest(found)
        number -= size
    return NONE


@inlined
def draw(draws: Words, part: int, n: int) -> int:
    """Return the next number of SplitMix64, modulo n."""
    draws[part] += _STEP
    bits = draws[part]
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return int(np.int64((bits ^ (bits >> _S31)) % np.uint64(n)))


@inlined
def next_after(cycle: int, state: RunState, kind: int, end: int, last: int, low: int, high: int) -> int:
    """Return the smallest rank in low .. high - 1 in that set, in a circle that begins behind `last`, or NONE."""
    rank = next_in(cycle, state, kind, end, last + 1, high)
    return rank if rank != NONE else next_in(cycle, state, kind, end, low, last + 1)


@inlined
def pass_on(policy: PolicyState, state: RunState) -> None:
    """Let the next group in a circle with a ready slot take over, whether or not that finds a port (TWO_LEVEL)."""
    kinds = len(state.kinds) // len(policy.turns)
    for part in range(len(policy.turns) if policy.kind == TWO_LEVEL else 0):
        turn = policy.turns[part]
        low, high = turn["low"], turn["high"]
        slot = next_after(_NO_TIME, state, kinds * part, kinds * (part + 1), turn["turn"], low, high)
        if slot != NONE:
            turn["turn"] = slot - (slot - low) % policy.size - 1


@inlined
def pick(cycle: int, policy: PolicyState, state: RunState, part: int, kind: int, end: int) -> int:
    """Return the rank that issues next in a partition, whose kinds are `kind` .. `end` - 1, or NONE if none is able.

    The turn is the last slot (ROUND_ROBIN), the greedy slot (GREEDY, with the cycle of the last first pick of a cycle),
    or the slot before the current group (TWO_LEVEL).
    """
    turn = policy.turns[part]
    low, high, now, slot = turn["low"], turn["high"], turn["turn"], NONE
    if policy.kind <= LATEST:
        return first_able(cycle, state, kind, end)
    if policy.kind == GREEDY:
        is_first = turn["cycle"] != cycle
        if is_first and now != NONE:
            slot = next_in(cycle, state, kind, end, now, now + 1)
        if slot == NONE:
            slot = next_in(cycle, state, kind, end, low, high)
        if is_first and slot != NONE:
            turn["turn"], turn["cycle"] = slot, cycle
        return slot
    if policy.kind == RANDOM:
        able = 0
        for number in range(kind, end):
            if state.kinds[number]["free"] <= cycle:
                able += state.kinds[number]["ready"]
        return nth(cycle, state, kind, end, low, draw(policy.draws, part, able)) if able > 0 else NONE
    slot = next_after(cycle, state, kind, end, now, low, high)
    if slot != NONE and policy.kind == ROUND_ROBIN:
        turn["turn"] = slot
    elif slot != NONE:
        group = slot - (slot - low) % policy.size
        slot = next_after(cycle, state, kind, end, policy.last[group], group, min(group + policy.size, high))
        policy.last[group] = slot
    return slot


@inlined
def arrive_after(slot: int, wait: int, now: int, state: RunState) -> None:
    """Let a slot arrive after so many cycles from `now` on the ring."""
    then = now + wait
    # no wait is longer than the ring, so one wrap is enough
    then -= len(state.ring) if then >= len(state.ring) else 0
    state.slots[slot]["link"] = state.ring[then]
    state.ring[then] = slot


@inlined
def wait_for_tokens(slot: int, wait: int, cycle: int, work: LoweredWork, state: RunState) -> int:
    """Return after how many cycles, no fewer than `wait`, a slot has all results that it needs where it stands."""
    entry = work.entries[state.slots[slot]["entry"]]
    if entry["kind"] == END:
        return int(max(wait, state.slots[slot]["done"] - cycle))
    for number in range(entry["awaits"], entry["behind"]):
        wait = max(wait, state.until[slot, work.tokens[number]] - cycle)
    return wait


@inlined
def insert(slot: int, rank: int, kind: int, state: RunState) -> None:
    """Put a slot into the list of those that are ready at a rank, for a kind of policies."""
    other = state.stand[rank]
    if kind == LATEST or other == NONE or slot < other:
        state.slots[slot]["link"], state.stand[rank] = other, slot
        return
    after = state.slots[other]["link"]
    while after != NONE and after < slot:
        other, after = after, state.slots[after]["link"]
    state.slots[slot]["link"], state.slots[other]["link"] = after, slot


@inlined
def arrive(slot: int, cycle: int, now: int, policy: PolicyState, work: LoweredWork, state: RunState) -> int:
    """Move a list of slots to the entries at which they stand, and return how many have finished."""
    ended = 0
    while slot != NONE:
        here = state.slots[slot]
        after, entry = here["link"], here["entry"]
        kind = work.entries[entry]["kind"]
        if kind >= 0:
            rank = slot
            if len(policy.ranks) > 0:
                rank = policy.ranks[entry]
                insert(slot, rank, policy.kind, state)
            state.ready[kind, rank >> 6] |= _ONE << np.uint64(rank & 63)
            state.kinds[kind]["ready"] += 1
            here["kind"] = kind
            slot = after
            continue
        block = state.blocks[here["block"]]
        if kind == BARRIER:
            # the slot joins the list of those that wait at the barrier of its block
            block["waiting"] += 1
            here["link"] = block["gate"]
            block["gate"] = slot
        else:
            block["running"] -= 1
            ended += 1
        if block["waiting"] == block["running"]:  # all unfinished slots of the block are at the barrier
            passing = block["gate"]
            block["gate"], block["waiting"] = NONE, 0
            while passing != NONE:
                state.slots[passing]["entry"] += 1
                behind = state.slots[passing]["link"]
                wait = wait_for_tokens(passing, 0, cycle, work, state)
                if wait == 0:
                    # it goes in front of the list that is being read, so it arrives in this same call
                    state.slots[passing]["link"] = after
                    after = passing
                else:
                    arrive_after(passing, wait, now, state)
                passing = behind
        slot = after
    return ended


@inlined
def take(number: int, until: int, state: RunState) -> int:
    """Hold the port of a pool that is free first until a cycle; return the cycle from which on another one is."""
    pool = state.pools[number]
    if pool["size"] > 1:
        first, size, port = pool["port"], pool["size"], pool["oldest"]
        oldest = port + 1 if port + 1 < size else 0
        # its place in the circle is behind the ports that are free earlier, which mostly are all others
        while port != oldest:
            before = port - 1 if port > 0 else size - 1
            if state.free[first + before] <= until:
                break
            state.free[first + port] = state.free[first + before]
            port = before
        state.free[first + port] = until
        pool["oldest"], until = oldest, state.free[first + oldest]
    pool["free"] = until
    return until


@inlined
def fits_from(kind: int, work: LoweredWork, state: RunState) -> int:
    """Return the cycle from which on all ports are free that an instruction needs, if no other one takes them."""
    then = 0
    for number in range(state.kinds[kind]["hold"], state.kinds[kind]["end"]):
        hold = work.holds[number]
        free = state.pools[hold["pool"]]["free"]
        for option in range(hold["option"] + 1, hold["option"] + hold["width"]):
            free = min(free, state.pools[work.options[option]]["free"])
        then = max(then, free)
    return then


@inlined
def choose_option(cycle: int, hold: np.void, work: LoweredWork, state: RunState) -> int:
    """Return the first option of a hold with a free port; there is one, because the instruction fits."""
    option = int(hold["begin"])
    while state.pools[work.options[hold["option"] + option]]["free"] > cycle:
        option = option + 1 if option + 1 < hold["width"] else 0
    return option


@inlined
def take_all(
    entry: np.void, part: int, cycle: int, policy: PolicyState, work: LoweredWork, state: RunState, log: IssueLog
) -> None:
    """Take all ports that an entry holds, and note for all kinds that need one of these pools when they fit."""
    for number in range(entry["hold"], entry["end"]):
        hold = work.holds[number]
        option = choose_option(cycle, hold, work, state) if hold["width"] > 1 else NIL
        pool = work.options[hold["option"] + option]
        free = take(pool, cycle + hold["cycles"], state)
        for user in range(state.pools[pool]["user"], state.pools[pool]["end"]):
            kind = state.kinds[work.users[user]]
            if kind["has_options"] > 0:
                kind["free"] = fits_from(work.users[user], work, state)
            else:  # a pool is never free earlier than it was
                kind["free"] = max(kind["free"], free)
        if state.pools[pool]["is_shared"] > 0:
            go_to_the_end(policy.turns, part)
        if len(log.options) > 0:
            log.options[log.size[1]] = option
        log.size[1] += 1


@inlined
def go_to_the_end(turns: Records, part: int) -> None:
    """Move a partition to the end of the line, from the next cycle on: it has had a port that all partitions share."""
    at = 0
    while turns[at]["line"] != part:
        at += 1
    for behind in range(at + 1, len(turns)):
        turns[behind - 1]["line"] = turns[behind]["line"]
    turns[len(turns) - 1]["line"] = part


@inlined
def issue(
    rank: int, part: int, cycle: int, now: int, policy: PolicyState, work: LoweredWork, state: RunState, log: IssueLog
) -> None:
    """Let the first slot of a rank issue."""
    slot = state.stand[rank] if len(policy.ranks) > 0 else rank
    here = state.slots[slot]
    # what the next pick depends on comes first: it has to wait for that
    kind = state.kinds[here["kind"]]
    if len(policy.ranks) > 0:
        state.stand[rank] = here["link"]
    if len(policy.ranks) == 0 or here["link"] == NONE:
        state.ready[here["kind"], rank >> 6] ^= _ONE << np.uint64(rank & 63)
    kind["ready"] -= 1
    entry = work.entries[here["entry"]]
    if kind["pool"] != NONE:
        kind["free"] = take(kind["pool"], cycle + kind["cycles"], state)
        log.size[1] += 1  # of one option, it is the first
    else:
        take_all(entry, part, cycle, policy, work, state, log)
    here["entry"] += 1
    wait = entry["stall"]
    if len(work.tokens) > 0:
        then = cycle + entry["latency"]
        for number in range(entry["sets"], entry["awaits"]):
            token = work.tokens[number]
            # an earlier instruction may have set the same token for longer, which then stays pending
            state.until[slot, token] = max(state.until[slot, token], then)
            here["done"] = max(here["done"], then)
        wait = wait_for_tokens(slot, wait, cycle, work, state)
    arrive_after(slot, wait, now, state)
    if len(log.cycles) > 0:
        log.cycles[log.size[0]], log.slots[log.size[0]] = cycle, slot
        log.size[0] += 1


@inlined
def restart(policy: PolicyState, state: RunState) -> None:
    """Let all slots arrive in cycle 0 with no token pending, and free every port."""
    for at in range(len(policy.turns)):
        policy.turns[at]["line"] = at
    for number in range(len(state.pools)):
        state.pools[number]["oldest"], state.pools[number]["free"] = 0, 0
    for port in range(len(state.free)):
        state.free[port] = 0
    for kind in range(len(state.kinds)):
        state.kinds[kind]["ready"], state.kinds[kind]["free"] = 0, 0
        for word in range(state.ready.shape[1]):
            state.ready[kind, word] = _ZERO
    for rank in range(len(state.stand)):
        state.stand[rank] = NONE
    for now in range(len(state.ring)):
        state.ring[now] = NONE
    for number in range(len(state.blocks)):
        block = state.blocks[number]
        block["gate"], block["waiting"], block["running"] = NONE, 0, 0
    for number in range(len(state.slots)):
        slot = state.slots[number]
        slot["entry"], slot["link"], slot["done"] = slot["row"], number - 1, 0
        state.blocks[slot["block"]]["running"] += 1
        for token in range(state.until.shape[1]):
            state.until[number, token] = 0
    state.ring[0] = len(state.slots) - 1


@inlined
def next_fit(cycle: int, state: RunState) -> int:
    """Return the first cycle in which a ready slot is able, or one up to `cycle` if a slot is able by then."""
    until = _NO_TIME
    for kind in range(len(state.kinds)):
        if state.kinds[kind]["ready"] > 0:
            until = min(until, state.kinds[kind]["free"])
        if until <= cycle:
            break
    return until


@uncounted
def run(policy: PolicyState, work: LoweredWork, state: RunState, log: IssueLog) -> int:
    """Return the makespan in cycles."""
    restart(policy, state)
    parts, kinds = len(policy.turns), len(state.kinds) // len(policy.turns)
    unfinished, cycle, now = len(state.slots), 0, 0
    while True:
        coming = state.ring[now]
        if coming != NONE:
            state.ring[now] = NONE
            unfinished -= arrive(coming, cycle, now, policy, work, state)
            if unfinished == 0:
                return cycle
        pass_on(policy, state)
        for at in range(parts if parts > 1 else 0):
            policy.turns[at]["queue"] = policy.turns[at]["line"]
        at, vain = 0, 0
        # a vain pick in a circle looks at everything twice, so it is worth to see before that there is nothing
        looks = parts == 1 and (policy.kind == ROUND_ROBIN or policy.kind == TWO_LEVEL)
        while vain < parts and not (looks and next_fit(cycle, state) > cycle):
            # the partitions pick in turns until none of them is able to; once one is not it stays so in this cycle
            part = policy.turns[at]["queue"] if parts > 1 else 0
            rank = pick(cycle, policy, state, part, kinds * part, kinds * (part + 1))
            vain += 1
            if rank != NONE:
                issue(rank, part, cycle, now, policy, work, state, log)
                vain = 0
            at = at + 1 if at + 1 < parts else 0
        # cycles in which nothing can change are skipped, which the makespan does not show
        until = next_fit(cycle + 1, state)
        cycle, now = cycle + 1, now + 1 if now + 1 < len(state.ring) else 0
        if cycle < until and state.ring[now] == NONE:
            pass_on(policy, state)  # once for all cycles without an arrival and an issue: it would repeat
        while cycle < until and state.ring[now] == NONE:
            cycle, now = cycle + 1, now + 1 if now + 1 < len(state.ring) else 0
