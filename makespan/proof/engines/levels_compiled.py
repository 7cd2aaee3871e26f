"""The inner loops of the levels, see `levels`.

A *key* packs how late each warp is, in cycles, `bits` for each, the least late one in the lowest bits. In cycle t a
warp that is late by d stands where one that never waits stands in cycle t - d: `issues[t - d]` says whether a letter is
to be issued there, and `left[t - d]` how many letters are left, of which there are none from len(issues) on. Before
cycle s such a warp has begun long[s] of the longest gaps.
"""

from typing import NamedTuple

from makespan.host.compiled import NIL, ONE, Ints, compiled


class LevelsScene(NamedTuple):
    """The string, which stays the same, and room for how late each warp is and whether it is ready."""

    issues: Ints
    left: Ints
    long: Ints
    late: Ints
    ready: Ints


@compiled
def unpack(key: int, bits: int, late: Ints) -> None:
    """Write how late each warp is, the least late one first."""
    for warp in range(len(late)):
        late[warp] = key & ((ONE << bits) - ONE)
        key >>= bits


@compiled
def key_after(chosen: int, ready: Ints, late: Ints, bits: int) -> int:
    """Return the key after a cycle in which one of the ready warps issues, and the others become later by one.

    Equally late warps are ready together, and the chosen one is the first of them: the order remains.
    """
    key = NIL
    for warp in range(len(late) - 1, -1, -1):
        key = (key << bits) | (late[warp] + (ready[warp] if warp != chosen else NIL))
    return key


@compiled
def find_ready(cycle: int, late: Ints, issues: Ints, ready: Ints) -> int:
    """Write which warps are ready; return how many."""
    count = NIL
    for warp in range(len(late)):
        at = cycle - late[warp]
        ready[warp] = issues[at] if NIL <= at < len(issues) else NIL
        count += ready[warp]
    return count


@compiled
def most_lateness(cycle: int, late: Ints, most: int, left: Ints, long: Ints) -> int:
    """Return how late a warp that is not through can become: by one for each letter of others that theorem O2 leaves.

    In each long gap of the warp all others issue that are not through; `most` says by when it has come there.
    """
    found, end = -ONE, len(left)
    for last in range(len(late)):
        here = cycle - late[last]
        if here >= end:
            continue
        able = late[last]
        for warp in range(len(late)):
            there = cycle - late[warp]
            if warp != last and there < end:
                before = min(end, max(here, here + end - there - (most - late[last])))
                # letters that others issue inside the long gaps of this warp do not delay it (theorem O2)
                able += left[there] - (long[before] - long[here])
        found = max(found, able)
    return found


@compiled
def grow(
    cycle: int, keys: Ints, bits: int, least: int, most: int, scene: LevelsScene, same: Ints, new: Ints
) -> tuple[int, int]:
    """Write the keys of the next cycle: those that do not change, and those that do; return how many.

    Ints from which no warp becomes later than `least` are left out; no warp becomes later than `most`.
    """
    issues, left, long, late, ready = scene.issues, scene.left, scene.long, scene.late, scene.ready
    kept = made = NIL
    for key in keys:
        unpack(key, bits, late)
        if most_lateness(cycle, late, most, left, long) <= least:
            continue
        if find_ready(cycle, late, issues, ready) <= ONE:
            same[kept] = key
            kept += ONE
            continue
        before = -ONE
        for warp in range(len(late)):
            if ready[warp] and late[warp] != before:  # of equally late warps one stands for all
                before = late[warp]
                new[made] = key_after(warp, ready, late, bits)
                made += ONE
    return kept, made


@compiled
def parent(cycle: int, keys: Ints, bits: int, target: int, scene: LevelsScene) -> int:
    """Return the number of a key of this cycle that may become the target in the next one; -1 if there is none."""
    issues, late, ready = scene.issues, scene.late, scene.ready
    for number in range(len(keys)):
        unpack(keys[number], bits, late)
        if find_ready(cycle, late, issues, ready) <= ONE:
            if keys[number] == target:
                return number
            continue
        for warp in range(len(late)):
            if ready[warp] and key_after(warp, ready, late, bits) == target:
                return number
    return -1
