"""Theorem L, for the checker: how late equal strings can make each other. docs/theory.md has the theorem.

Premises: one string for all warps, no barriers, no issue width; every class in it has one port, an interval of one
cycle and one latency; and both premises on distances hold, (L1) and (L2).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from makespan.instance import Instance
from makespan.verify.refusal import Effort, Work

MOST_STEPS = 50_000_000
"""Looks at pairs of blocks, and at nodes of a tree."""


class _Block(NamedTuple):
    """Letters of a class that a warp alone issues in the cycles from `first` to `last`."""

    unit: str
    letters: int
    first: int
    last: int


def bound(instance: Instance, effort: Effort) -> int | None:
    """The upper bound, in cycles; None where a premise fails.

    Raises:
        TooMuchWork: too many pairs of blocks.
    """
    units = {unit.name: unit for unit in instance.machine.units}
    program = instance.groups[0].program
    if not instance.identical or not program.is_chain or instance.has_barriers:
        return None
    if instance.machine.issue_width is not None or any(
        units[name].capacity != 1 or units[name].interval != 1 or units[name].latency.least != units[name].latency.most
        for name in program.units
    ):
        return None
    string = [(place.unit, units[place.unit].latency.most) for place in program.places]
    blocks = list[_Block]()
    cycle = 0
    for unit, latency in string:
        if blocks and latency == 1 and unit == blocks[-1].unit:
            blocks[-1] = blocks[-1]._replace(letters=blocks[-1].letters + 1, last=cycle)
        else:
            blocks.append(_Block(unit, 1, cycle, cycle))
        cycle += latency
    largest = {name: max(block.letters for block in blocks if block.unit == name) for name in program.units}
    if any(not _apart(blocks, name, (instance.warps - 1) * size + 1) for name, size in largest.items()):
        return None
    with effort.part(MOST_STEPS) as work:
        return cycle + _delay(blocks, largest, instance.warps, work)


def _apart(blocks: Sequence[_Block], name: str, idle: int) -> bool:
    """Both premises for a class; `idle` cycles are more than all warps but one can fill, each with one block."""
    own = [number for number, block in enumerate(blocks) if block.unit == name]
    if any(blocks[after].first - blocks[before].last - 1 < idle for before, after in pairwise(own)):
        return False
    on = min((blocks[at + 1].first - blocks[at].first for at in own if at + 1 < len(blocks)), default=idle)
    return all(blocks[at].first - blocks[at - 1].last + on >= idle for at in own if at)


class _Tree:
    """Largest values by job, and the largest of all jobs up to one (a Fenwick tree)."""

    def __init__(self, size: int) -> None:
        self._most: list[int | None] = [None] * (size + 1)

    def put(self, job: int, value: int) -> None:
        at = job + 1
        while at < len(self._most):
            old = self._most[at]
            self._most[at] = value if old is None else max(old, value)
            at += at & -at

    def up_to(self, job: int) -> int | None:
        best, at = None, job + 1
        while at > 0:
            one = self._most[at]
            best = one if best is None else best if one is None else max(best, one)
            at -= at & -at
        return best


def _delay(blocks: Sequence[_Block], largest: dict[str, int], warps: int, work: Work) -> int:
    """The most cycles by which a warp can be late at the end: the values of alignment paths, pair by pair."""
    height = len(blocks).bit_length()
    same = {name: [job for job, block in enumerate(blocks) if block.unit == name] for name in largest}
    before, row = _Tree(len(blocks)), [(0, blocks[0].letters - 1)]  # up to two blocks ago, and of the block before
    best = blocks[0].letters - 1
    late = [(warps - 1) * (1 + best)]  # at the end of each block
    for step, block in enumerate(blocks[1:], start=1):
        own = same[block.unit]
        work.spend(len(own))
        ahead = late[-1] + (warps - 1) * largest[block.unit]
        behind = warps * largest[block.unit] - 1
        shift = {job: blocks[job].first - block.last for job in own}
        reached = [
            job
            for job, x in shift.items()
            if (job == step)
            or (job > step and x <= ahead)
            or (job < step and -x <= behind + (late[job - 1] if job else 0))
        ]
        work.spend(len(row) + height * (len(row) + len(reached)))
        found, passed, longest = list[tuple[int, int]](), 0, None
        for job in reached:
            while passed < len(row) and row[passed][0] < job - 1:
                longest = row[passed][1] if longest is None else max(longest, row[passed][1])
                passed += 1
            ways = [way for way in (before.up_to(job - 1), longest) if way is not None]
            if passed < len(row) and row[passed][0] == job - 1:
                ways.append(row[passed][1] - (job != step))
            if ways:
                found.append((job, max(ways) + blocks[job].letters - (job == step)))
        for job, value in row:
            before.put(job, value)
        row, best = found, max(best, *(value for _, value in found))
        late.append((warps - 1) * (1 + best))
    return late[-1]
