"""Warps that wait for an issue slot and never for a port: for how many cycles the others can keep one of them waiting.

There are `slots` in a cycle. The *gap* of a letter is its latency: the cycles from its issue until its warp is ready
again. In every cycle in which z waits, `slots` letters of others are issued; so z waits N / slots cycles at most, where
N counts the letters of all others. Two theorems take letters away from N:

* O1, for equal strings: one of each for a gap so long that everybody is past the letter before it when the first comes
  to the letter behind it. Where all gaps are so long, the bound is attained.
* O2, for any strings: while a gap of z passes that is as long as any, each of the others issues, unless it is through.
  For every cycle that it is shorter, up to `slots` of them need not.

Proofs: docs/theory.md, 6.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from makespan.model.feature import Feature
from makespan.model.instance import Instance
from makespan.model.machine import Latency
from makespan.model.result import Upper, UpperBound

KNOWS = frozenset({Feature.CLASSES, Feature.GROUPS, Feature.LATENCIES, Feature.INTERVALS, Feature.ISSUE_WIDTH})

MOST_WORK = 1_000_000
"""Groups times letters of their strings."""

MOST_ROUNDS = 1000
"""In which theorem O2 makes its bound smaller; each of them is one."""


class String(NamedTuple):
    """The gaps of equal warps."""

    gaps: list[Latency]
    warps: int


def issue_slots(instance: Instance) -> UpperBound | None:
    """Return the sharper of theorems O1 and O2; None unless strings compete for issue slots and for nothing else.

    >>> from makespan.model.machine import Machine, UnitClass
    >>> loads = UnitClass("L", 1, latency=Latency(9, 9))
    >>> issue_slots(Instance.of("LLLL", warps=8, machine=Machine("loads", (loads,)))).upper
    43
    """
    slots = slots_of(instance)
    if slots is None:
        return None
    latencies = {unit.name: unit.latency for unit in instance.machine.units}
    strings = [String([latencies[place.unit] for place in g.program.places], g.warps) for g in instance.groups]
    if len(strings) * sum(len(string.gaps) for string in strings) > MOST_WORK:
        return None
    upper = max(_alone(string) + laps(strings, own, slots) for own, string in enumerate(strings))
    if instance.identical:
        upper = min(upper, _alone(strings[0]) + clusters(strings[0], slots))
    return UpperBound(upper, Upper.ISSUE_SLOTS)


def slots_of(instance: Instance) -> int | None:
    """Return how many warps issue in a cycle that leaves a ready one out; None where a port can be the reason.

    As many as the issue width, where each class has ports enough for all slots during an interval. Ports of a single
    class that are free again in the next cycle are slots themselves.
    """
    if instance.beyond(KNOWS):
        return None
    width = instance.machine.issue_width
    names = set().union(*(group.program.units for group in instance.groups))
    used = [unit for unit in instance.machine.units if unit.name in names]
    if len(used) == 1 and used[0].interval == 1:
        return used[0].capacity if width is None else min(width, used[0].capacity)
    return None if width is None or any(unit.capacity < width * unit.interval for unit in used) else width


def clusters(string: String, slots: int) -> int:
    """Theorem O1: for how many cycles a warp can wait.

    Of the j warps that are latest, each is late by at most (`late` - (j - 1)) / `slots` cycles.
    """
    others, earliest, latest = string.warps - 1, 0, 0
    late = others
    for gap in string.gaps[:-1]:
        earliest += gap.least
        if earliest <= latest + late // slots:  # some are ready for the next letter while others wait for this one
            late += others
        latest += gap.most
    return late // slots


def laps(strings: list[String], own: int, slots: int) -> int:
    """Theorem O2: for how many cycles a warp of the string `own` can wait.

    A warp that is through before z comes to a gap is ahead of it by so much that z must have waited for long.
    """
    others = [String(string.gaps, string.warps - (number == own)) for number, string in enumerate(strings)]
    letters = sum(len(string.gaps) * string.warps for string in others)
    waits = letters // slots
    terms = list(_passing(strings[own].gaps[:-1], others, slots))
    for _ in range(MOST_ROUNDS):
        spared = sum(worth * bisect_right(begins, end - waits) for worth, begins, end in terms)
        if (letters - spared) // slots >= waits:
            break
        waits = (letters - spared) // slots
    return waits


def _passing(gaps: list[Latency], others: list[String], slots: int) -> Iterator[tuple[int, list[int], int]]:
    """Yield how many letters others issue in gaps of z that begin at some times, less the waiting of z.

    One for each of the others that is not through, and as many as fit into the longest gap; less `slots` for each cycle
    by which the gap is shorter. So there are terms (letters, when z alone begins these gaps, when others are through).
    """
    longest = max((gap.most for string in others for gap in string.gaps[:-1]), default=1)
    begins: dict[int, list[int]] = {}
    for begin, gap in zip(accumulate((gap.most for gap in gaps), initial=0), gaps, strict=False):
        begins.setdefault(slots * (longest - gap.most), []).append(begin)
    ends = sorted(((sum(gap.least for gap in string.gaps[:-1]), string.warps) for string in others), reverse=True)
    for short, times in begins.items():
        counted = worth = 0
        for end, warps in ends:
            counted = min(counted + warps, slots * (longest - 1))
            if (more := max(0, counted - short) - worth) > 0:
                worth += more
                yield more, times, end


def _alone(string: String) -> int:
    return sum(gap.most for gap in string.gaps)
