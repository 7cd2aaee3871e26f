"""Theorem L: under long latencies warps spread out once, and then delay each other little.

For W equal strings, with one port, an interval of one cycle and one latency for each class, and no issue width. A
*block* is a run of a class of latency 1, or one instruction of another class. Follow the last finisher back: at each of
its blocks, change to the warp that came to this block last. Warps that come through one port come at different times,
so a warp at the same block costs a cycle less than it takes. What warps at other blocks cost depends on how the string
aligns with itself when shifted, and how late a warp can be says how far it can be shifted: one pass over the string
finds both. Where no shift is large enough, the bound is c + (W-1) (1 + S) with S equal neighbours in runs. Proof:
docs/theory.md.
"""

from collections import defaultdict
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from makespan.feature import Feature
from makespan.instance import MAX_CYCLES, Instance
from makespan.result import Upper, UpperBound

KNOWS = frozenset({Feature.CLASSES, Feature.LATENCIES, Feature.INTERVALS})

MOST_LETTERS = 2_000
"""Of a string: the work grows with their square."""


class _Block(NamedTuple):
    """`letters` instructions, which a warp alone issues one after another in the cycles `begin` .. `end`."""

    unit: str
    letters: int
    begin: int
    end: int


def theorem_l(instance: Instance) -> UpperBound | None:
    """The bound of theorem L; None where a premise fails, so always where W - 1 is not less than the longest latency.

    >>> from makespan import Latency, Machine, UnitClass
    >>> loads = Machine("loads", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(400, 400))))
    >>> theorem_l(Instance.of("CCLCL", warps=8, machine=loads)).upper  # 803 alone, 7 to spread out, 7 for CC
    817
    """
    if instance.beyond(KNOWS):
        return None
    (group,) = instance.groups
    letters = group.program.letters or ""
    units = [unit for unit in instance.machine.units if unit.name in group.program.units]
    simple = all(
        unit.capacity == 1 and unit.interval == 1 and unit.latency.least == unit.latency.most for unit in units
    )
    if not simple or len(letters) > MOST_LETTERS:
        return None
    others, latency = group.warps - 1, {unit.name: unit.latency.most for unit in units}
    blocks = _blocks(letters, latency)
    largest = {name: max(block.letters for block in blocks if block.unit == name) for name in latency}
    if not _moves_on(blocks, {name: others * size + 1 for name, size in largest.items()}):
        return None
    alone = sum(latency[letter] for letter in letters)
    return UpperBound(alone + _late(blocks, largest, others)[-1], Upper.THEOREM_L)


def _blocks(letters: str, latency: dict[str, int]) -> list[_Block]:
    """The string, cut where the letter changes and, of a class of latency above 1, behind every letter."""
    found, cycle = list[_Block](), 0
    for unit, run in groupby(letters):
        length, step = len(list(run)), latency[unit]
        if step == 1:
            found.append(_Block(unit, length, cycle, cycle + length - 1))
        else:
            found += (_Block(unit, 1, at, at) for at in range(cycle, cycle + length * step, step))
        cycle += length * step
    return found


def _moves_on(blocks: list[_Block], idle: dict[str, int]) -> bool:
    """The premises (L1) and (L2); `idle` cycles are more than the other warps can fill with a block each."""
    onward = dict.fromkeys(idle, MAX_CYCLES)  # from a block of a class to the next block, at least
    for block, after in pairwise(blocks):
        onward[block.unit] = min(onward[block.unit], after.begin - block.begin)
    end: dict[str, int] = {}  # of the latest block of a class
    for before, block in pairwise(blocks):
        end[before.unit] = before.end
        cycles = idle[block.unit]
        if block.unit in end and block.begin - end[block.unit] <= cycles:
            return False
        if block.begin - before.end + onward[block.unit] < cycles:
            return False
    return True


def _late(blocks: list[_Block], largest: dict[str, int], others: int) -> list[int]:
    """The most cycles by which a warp can be late when it comes to each block, and at the end.

    The pairs of an alignment path are of a block of the chain and of the block of a job that delays it: near if they
    are the same block, else far.
    """
    late = [0]
    same: defaultdict[str, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        same[block.unit].append(number)
    # At [j + 2] the best path whose last job is at a block up to j, one step ago and two steps ago. Where there is
    # none, -1 does no harm: a path from (0, 0) is worth as much.
    older = [-1] * (len(blocks) + 2)
    newer = [-1, -1] + [blocks[0].letters - 1] * len(blocks)
    late.append(others * (1 + newer[-1]))
    for number, (unit, letters, _, end) in enumerate(blocks[1:], start=1):
        earliest = end - (others + 1) * largest[unit] + 1
        latest = end + late[number] + others * largest[unit]
        found = newer.copy()
        for job in same[unit]:
            begin = blocks[job].begin
            if job == number:
                value = newer[job + 1] + letters - 1
            elif begin + late[job] >= earliest if job < number else begin <= latest:
                # a far pair behind a far one of the blocks before, or behind any other
                value = max(newer[job + 1] - 1, newer[job], older[job + 1]) + blocks[job].letters
            else:
                continue
            found[job + 2] = max(found[job + 2], value)
        older, newer = newer, list(accumulate(found, max))
        late.append(others * (1 + newer[-1]))
    return late
