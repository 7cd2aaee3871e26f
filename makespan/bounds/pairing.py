"""Theorem A: with one unit of each of two classes, unequal neighbours force mixed cycles.

A *pair* is two neighbouring instructions of different classes; `k` is the largest number of disjoint
pairs of a path, which a greedy scan from the left finds. Every work-conserving schedule has at least
sum(k_w) - max(k_w) cycles that execute in both classes. The proof stands in docs/theory.md, 3; with barriers in 8.
"""

from itertools import zip_longest

from makespan.bounds.phases import Segment, segments_of
from makespan.feature import BARRIERS, PROGRAMS
from makespan.instance import Instance
from makespan.program import BARRIER, Program

KNOWS = BARRIERS | PROGRAMS


def theorem_a(instance: Instance) -> int | None:
    """Upper bound sum|s_w| - sum k_w + max k_w, in cycles; None where the theorem does not apply.

    It applies where the warps use at most two classes, each with one unit. For automata every warp takes the path
    that makes its own term largest, which covers all combinations of paths. With barriers no pair spans one, and the
    last finisher is replaced by a chain: in each phase, a warp of the group that can execute the most pairs there.
    """
    units = set().union(*(group.program.units for group in instance.groups))
    if instance.beyond(KNOWS) or len(units) > 2 or any(instance.machine.capacities[unit] != 1 for unit in units):
        return None
    unpaired = [_most_unpaired(group.program) for group in instance.groups]
    total = sum(group.warps * count for group, count in zip(instance.groups, unpaired, strict=True))
    if instance.has_barriers:
        cut = [(group.program, segments_of(group.program)) for group in instance.groups]
        phases = [[_most_pairs(program, segment) for segment in own] for program, own in cut if own is not None]
        return total + sum(map(max, zip_longest(*phases, fillvalue=0))) if len(phases) == len(cut) else None
    return max(total - count + group.program.most() for group, count in zip(instance.groups, unpaired, strict=True))


def pairs(letters: str) -> int:
    """The largest number of disjoint pairs of unequal neighbours.

    >>> pairs("CLLCLL")
    2
    """
    count, at = 0, 0
    while at + 1 < len(letters):
        paired = letters[at] != letters[at + 1]
        count += paired
        at += 1 + paired
    return count


def _most_unpaired(program: Program) -> int:
    """Largest |s| - k(s) over the paths s, by the greedy scan run backwards over the automaton.

    `closed[p]`: instructions less pairs from place p on when p begins afresh; `opened[p]`: the same when
    p is the second half of a pair that the place before it began and counted.
    """
    closed = [0] * (program.end + 1)
    opened = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        unit, successors = program.places[number]
        opened[number] = max(closed[after] for after in successors)
        if unit == BARRIER:
            closed[number] = opened[number]
        else:
            closed[number] = 1 + max(
                opened[after] if _is_pair(program, unit, after) else closed[after] for after in successors
            )
    return max(closed[start] for start in program.starts)


def _most_pairs(program: Program, segment: Segment) -> int:
    """The largest number of pairs that the greedy scan finds on a path through one phase; the same scan backwards."""
    closed: dict[int, int] = {}
    opened: dict[int, int] = {}
    for number in reversed(segment.places):
        unit, successors = program.places[number]
        opened[number] = max(closed.get(after, 0) for after in successors)
        closed[number] = max(
            1 + opened[after] if _is_pair(program, unit, after) else closed.get(after, 0) for after in successors
        )
    return max(closed.get(entry, 0) for entry in segment.entries)


def _is_pair(program: Program, unit: str, after: int) -> bool:
    """Whether an instruction of class `unit` and the place after it may be a pair."""
    return after != program.end and program.places[after].unit not in (unit, BARRIER)
