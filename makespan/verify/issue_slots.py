"""Theorems O1 and O2: warps that wait for issue slots, and never for a port (docs/theory.md, 6).

Premises: every program is a string without barriers, and in a cycle in which a ready warp does not issue, exactly omega
others do (lemma S). Then a warp is late by as many cycles as others take slots from it. What they can take is less than
all their letters where gaps between letters keep warps apart (O1), or let others pass (O2).
"""

from itertools import accumulate
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.verify.rule import of_instance

MOST_GAPS = 1_000_000  # to compare: those of all groups as each of them sees them


class _LetterTimes(NamedTuple):
    """Equal warps that never wait.

    Args:
        gaps: the latency of every letter.
        first: s', the earliest cycles in which they are ready for each letter, and have finished.
        last: s, the latest ones.
        warps: how many there are.
    """

    gaps: list[Latency]
    first: list[int]
    last: list[int]
    warps: int


def bound(instance: Instance) -> int | None:
    """Return the sharper bound of both theorems, in cycles; None where a premise fails, or gaps are too many."""
    programs = [group.program for group in instance.groups]
    if len(programs) * sum(program.end for program in programs) > MOST_GAPS:
        return None
    if instance.has_barriers or not all(program.is_chain for program in programs):
        return None
    width = _width(instance.machine, set().union(*(program.units for program in programs)))
    if width is None:
        return None
    times = [_times(group.program, instance.machine, group.warps) for group in instance.groups]
    passing = max(z.last[-1] + _passing(z, times, width) for z in times)
    return min(passing, times[0].last[-1] + _apart(times[0], width)) if len(times) == 1 else passing


def _width(machine: Machine, used: set[str]) -> int | None:
    """Return omega of (S): in a cycle in which a ready warp does not issue, exactly omega others do; never more."""
    # Lemma S: in the `interval - 1` cycles before and in this one, less than `interval` times the width are issued
    # while a slot is left; a class with so many ports has one left, too. The ports of a single class, held for one
    # cycle, limit issue as slots do.
    width, units = machine.issue_width, [unit for unit in machine.units if unit.name in used]
    if len(units) == 1 and units[0].interval == 1:
        return min(units[0].capacity, width or units[0].capacity)
    if width is None or DELAY in used or any(unit.capacity // unit.interval < width for unit in units):
        return None
    return width


def _times(program: Program, machine: Machine, warps: int) -> _LetterTimes:
    latency = {unit.name: unit.latency for unit in machine.units}
    gaps = [latency[place.unit] for place in program.places]
    first, last = (list(accumulate(sums, initial=0)) for sums in zip(*((g.least, g.most) for g in gaps), strict=True))
    return _LetterTimes(gaps, first, last, warps)


def _apart(z: _LetterTimes, width: int) -> int:
    """Return the delay of O1: `rest` for each letter but those behind a cut, divided among the slots."""
    # A cut is a letter behind which no warp is ready for the next one before all have left it.
    rest, cuts, letters = z.warps - 1, 0, len(z.gaps)
    for letter in range(1, letters):
        cuts += z.first[letter] - z.last[letter - 1] > rest * (letter - cuts) // width
    return rest * (letters - cuts) // width


def _passing(z: _LetterTimes, times: list[_LetterTimes], width: int) -> int:
    """Return the largest D that satisfies (O2)."""
    # A gap of z that begins at t alone begins at t + D at the latest, and counts those who cannot be through before. So
    # the right side changes at certain D only, which are tried from the largest on.
    others = sorted(((w.first[-2], w.warps - (w is z)) for w in times), reverse=True)
    longest = max((gap.most for w in times for gap in w.gaps[:-1]), default=1)
    seen = list[tuple[int, int]]()
    # for every gap, and every group that may be through: from which D on it counts how many letters less
    for begin, gap in zip(z.last, z.gaps[:-1], strict=False):
        warps = issued = 0
        for through, more in others:
            warps += more
            before, issued = issued, max(0, min(warps, width * (longest - 1)) - width * (longest - gap.most))
            seen.append((through - begin, issued - before))
    remains = sum(len(w.gaps) * (w.warps - (w is z)) for w in times)
    for most, counted in sorted(seen, reverse=True):
        if remains // width > most:  # D is above `most`, where no gap more counts
            break
        remains -= counted
    return remains // width


RULE = of_instance(Upper.ISSUE_SLOTS, "theorem O1 or O2", lambda instance, _: bound(instance))
