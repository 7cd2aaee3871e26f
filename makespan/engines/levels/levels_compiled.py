"""The inner loops of the levels, see `levels`.

A *key* packs how late each warp is, in cycles, `bits` for each, the least late one in the lowest bits. In cycle t a
warp that is late by d stands where one that never waits stands in cycle t - d: `issues[t - d]` says whether a letter is
to be issued there, and `left[t - d]` how many letters are left, of which there are none from len(issues) on.
"""

import numpy as np
import numpy.typing as npt

from makespan.compiled import NIL, ONE, compiled

Keys = npt.NDArray[np.int64]
Row = npt.NDArray[np.int64]


@compiled
def unpack(key: int, bits: int, late: Row) -> None:
    """How late each warp is, the least late one first."""
    for warp in range(len(late)):
        late[warp] = key & ((ONE << bits) - ONE)
        key >>= bits


@compiled
def passed(chosen: int, ready: Row, late: Row, bits: int) -> int:
    """The key after a cycle in which one of the ready warps issues, and the others become later by one.

    Equally late warps are ready together, and the chosen one is the first of them: the order remains.
    """
    key = NIL
    for warp in range(len(late) - 1, -1, -1):
        key = (key << bits) | (late[warp] + (ready[warp] if warp != chosen else NIL))
    return key


@compiled
def able(cycle: int, late: Row, issues: Row, ready: Row) -> int:
    """Which warps are ready, and how many."""
    count = NIL
    for warp in range(len(late)):
        at = cycle - late[warp]
        ready[warp] = issues[at] if NIL <= at < len(issues) else NIL
        count += ready[warp]
    return count


@compiled
def hope(cycle: int, late: Row, left: Row) -> int:
    """How late a warp that is not through can become at most: each letter of each other one makes it later by one."""
    total, most = NIL, -ONE
    for warp in range(len(late)):
        at = cycle - late[warp]
        total += left[at] if at < len(left) else NIL
    for warp in range(len(late)):
        at = cycle - late[warp]
        if at < len(left):
            most = max(most, late[warp] + total - left[at])
    return most


@compiled
def grow(
    cycle: int, keys: Keys, bits: int, floor: int, issues: Row, left: Row, late: Row, ready: Row, same: Keys, new: Keys
) -> tuple[int, int]:
    """Write the keys of the next cycle: those that do not change, and those that do; return how many.

    Keys from which nobody becomes later than `floor` are left out.
    """
    kept = made = NIL
    for key in keys:
        unpack(key, bits, late)
        if hope(cycle, late, left) <= floor:
            continue
        if able(cycle, late, issues, ready) <= ONE:
            same[kept] = key
            kept += ONE
            continue
        before = -ONE
        for warp in range(len(late)):
            if ready[warp] and late[warp] != before:
                before = late[warp]
                new[made] = passed(warp, ready, late, bits)
                made += ONE
    return kept, made


@compiled
def parent(cycle: int, keys: Keys, bits: int, target: int, issues: Row, late: Row, ready: Row) -> int:
    """The number of a key of this cycle that may become the target in the next one; -1 if there is none."""
    for number in range(len(keys)):
        unpack(keys[number], bits, late)
        if able(cycle, late, issues, ready) <= ONE:
            if keys[number] == target:
                return number
            continue
        for warp in range(len(late)):
            if ready[warp] and passed(warp, ready, late, bits) == target:
                return number
    return -1
