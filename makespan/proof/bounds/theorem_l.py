"""Theorem L: under long latencies warps spread out once, and then delay each other little.

For strings, with one port, an interval of one cycle and one latency for each class, and no issue width that binds. A
*block* is a run of a class of latency 1, or one instruction of another class. Follow the last finisher back: at each of
its blocks, change to the one of its equals that came to this block last. Warps that come through one port come at
different times, so a warp at the same block costs a cycle less than it takes. What warps at other blocks cost depends
on how their string aligns with that of the last finisher when shifted, and how late a warp can be says how far it can
be shifted: one pass over the strings finds both. For W equal strings of which no shift is large enough, the bound is
c + (W-1) (1 + S) with S equal neighbours in runs. Proof: docs/theory.md, 5.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from makespan.model.feature import Feature
from makespan.model.instance import MAX_CYCLES, Instance
from makespan.model.result import Upper, UpperBound

KNOWS = frozenset({Feature.CLASSES, Feature.GROUPS, Feature.LATENCIES, Feature.INTERVALS})

MOST_LETTERS = 2_000
"""Of all different strings together: the work grows with their square."""

MOST_STRINGS = 32


class _StringBlock(NamedTuple):
    """`letters` instructions, which a warp alone issues one after another in the cycles `begin` .. `end`."""

    unit: str
    letters: int
    begin: int
    end: int


class _StringCrew(NamedTuple):
    """Equal warps: the blocks of their string, and by class the most letters of a block."""

    warps: int
    blocks: list[_StringBlock]
    largest: dict[str, int]


def theorem_l(instance: Instance) -> UpperBound | None:
    """The bound of theorem L; None where a premise fails, as a rule where W is not well below the longest latency.

    >>> from makespan import Latency, Machine, UnitClass
    >>> loads = Machine("loads", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(400, 400))))
    >>> theorem_l(Instance.of("CCLCL", warps=8, machine=loads)).upper  # 803 alone, 7 to spread out, 7 for CC
    817
    """
    if instance.beyond(KNOWS):
        return None
    strings = [group.program.letters or "" for group in instance.groups]
    units = [unit for unit in instance.machine.units if any(unit.name in string for string in strings)]
    simple = all(
        unit.capacity == 1 and unit.interval == 1 and unit.latency.least == unit.latency.most for unit in units
    )
    if not simple or len(strings) > MOST_STRINGS or sum(map(len, strings)) > MOST_LETTERS:
        return None
    latency = {unit.name: unit.latency.most for unit in units}
    crews = []
    for group, string in zip(instance.groups, strings, strict=True):
        blocks = _blocks(string, latency)
        largest = {name: max((own.letters for own in blocks if own.unit == name), default=0) for name in latency}
        crews.append(_StringCrew(group.warps, blocks, largest))
    if not _moves_on(crews):
        return None
    alone = [sum(latency[letter] for letter in string) for string in strings]
    return UpperBound(max(own + late[-1] for own, late in zip(alone, _late(crews), strict=True)), Upper.THEOREM_L)


def _blocks(letters: str, latency: dict[str, int]) -> list[_StringBlock]:
    """Return the string, cut where the letter changes and, of a class of latency above 1, behind every letter."""
    found, cycle = list[_StringBlock](), 0
    for unit, run in groupby(letters):
        length, step = len(list(run)), latency[unit]
        if step == 1:
            found.append(_StringBlock(unit, length, cycle, cycle + length - 1))
        else:
            found += (_StringBlock(unit, 1, at, at) for at in range(cycle, cycle + length * step, step))
        cycle += length * step
    return found


def _busy(crews: Sequence[_StringCrew], unit: str) -> int:
    """Return the cycles for which all warps keep a port busy if each has one block."""
    return sum(crew.warps * crew.largest[unit] for crew in crews)


def _moves_on(crews: Sequence[_StringCrew]) -> bool:
    """Return whether the premises (L1) and (L2) hold."""
    idle, onward = dict[str, int](), dict[str, int]()
    for unit in crews[0].largest:  # the cycles that no warp can fill with the others; from a block to the next of any
        idle[unit] = _busy(crews, unit) - min(crew.largest[unit] or MAX_CYCLES for crew in crews) + 1
        steps = (pair for crew in crews for pair in pairwise(crew.blocks))
        onward[unit] = min((two.begin - one.begin for one, two in steps if one.unit == unit), default=MAX_CYCLES)
    for crew in crews:
        end = dict[str, int]()  # of the latest block of a class
        for before, block in pairwise(crew.blocks):
            end[before.unit] = before.end
            cycles = idle[block.unit]
            if block.unit in end and block.begin - end[block.unit] <= cycles:
                return False  # (L1): a warp could meet itself in one busy period of the port
            if block.begin - before.end + onward[block.unit] < cycles:
                return False  # (L2): the blocks of a warp could come in another order than the steps of the chain
    return True


def _late(crews: Sequence[_StringCrew]) -> list[list[int]]:
    """Return, by crew, the most cycles by which a warp can be late at each block, and at the end: Δ of theorem L.

    The pairs of an alignment path are of a block of the chain and of the block of a job that delays it: near if they
    are the same block, else far.
    """
    late = [[0] for _ in crews]
    same = [defaultdict[str, list[int]](list) for _ in crews]
    for crew, jobs in zip(crews, same, strict=True):
        for number, block in enumerate(crew.blocks):
            jobs[block.unit].append(number)
    # By crew of the chain and crew of the job, at [j + 2]: the best path whose last job is at a block up to j, two
    # steps ago and one step ago.
    paths = [[([0] * (len(crew.blocks) + 2),) * 2 for crew in crews] for _ in crews]
    # a claim about a block rests on those that end before it alone, so this order is an induction
    order = sorted(
        (block.end, own, number) for own, crew in enumerate(crews) for number, block in enumerate(crew.blocks)
    )
    for end, own, number in order:
        unit, letters, _, _ = crews[own].blocks[number]
        busy = _busy(crews, unit)
        latest = end + late[own][number] + busy - crews[own].largest[unit]
        total = 0
        for other, crew in enumerate(crews):
            equal = own == other  # one of them is the last finisher itself
            older, newer = paths[own][other]
            found = newer.copy()
            for job in same[other][unit]:
                begin = crew.blocks[job].begin
                if equal and job == number:
                    value = newer[job + 1] + letters - 1
                elif equal and not (job and number):  # all come to their first block at once
                    continue
                elif begin <= latest if begin > end else begin + late[other][job] > end - busy:
                    # a far pair behind a far one of the blocks before, or behind any other
                    value = max(newer[job + 1] - 1, newer[job], older[job + 1]) + crew.blocks[job].letters
                else:
                    continue
                found[job + 2] = max(found[job + 2], value)
            found = list(accumulate(found, max))
            paths[own][other] = newer, found
            total += (crew.warps - equal) * (found[-1] + equal)
        late[own].append(total)
    return late
