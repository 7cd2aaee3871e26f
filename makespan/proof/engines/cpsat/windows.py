"""The cycles in which a warp can issue a place, in a schedule of at most T cycles: fewer variables for the models.

Equal warps of a string are told apart by their *rank* only: of those that issue a place, rank k is the k-th to do so,
from 0, and also the k-th that may go on from it. (Where one would pass another they change names.) So rank k is never
behind rank k+1. With latencies, too, the ranks are warps that obey the machine: if every warp w is issued at s_w and
goes on at r_w, a latency in l .. h later, then the k-th smallest r is l .. h later than the k-th smallest s; as many
ranks as warps are ready for a place, wait for it and hold a port; and no constraint tells whose port it is.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Group, Instance
from makespan.model.machine import UnitClass
from makespan.proof.bounds.pessimistic import cycles_without_port


class IssueWindow(NamedTuple):
    """The first and the last cycle, from 1, in which a place can be issued by those who visit it."""

    earliest: int
    latest: int


def windows(instance: Instance, horizon: int) -> list[list[list[IssueWindow]]]:
    """Return the window of every group, rank and place.

    Raises:
        BrokenPromiseError: the instructions of a warp do not fit into the horizon.
    """
    found = [
        _of_string(instance, group, horizon) if group.program.is_chain else _of_automaton(instance, group, horizon)
        for group in instance.groups
    ]
    if any(one.earliest > one.latest for ranks in found for places in ranks for one in places):
        raise BrokenPromiseError(f"no schedule ends within {horizon} cycles: the horizon is not an upper bound")
    return found


def _of_automaton(instance: Instance, group: Group, horizon: int) -> list[list[IssueWindow]]:
    """Return the same for every rank: the shortest ways from a start and to the end must fit."""
    program, least = group.program, {unit.name: unit.latency.least for unit in instance.machine.units}
    first = [1 if p in program.starts else horizon + 1 for p in range(program.end)]
    for p, (unit, successors) in enumerate(program.places):
        for q in successors:
            if q < program.end:
                first[q] = min(first[q], first[p] + least[unit])
    behind = program.sums(least, min)
    return [[IssueWindow(first[p], horizon + 1 - behind[p]) for p in range(program.end)]] * group.warps


def _of_string(instance: Instance, group: Group, horizon: int) -> list[list[IssueWindow]]:
    """Return windows by rank: what ranks 0..k have issued must fit before, what ranks k.. have left, behind."""
    units, width = _units(instance), instance.machine.issue_width
    letters = [place.unit for place in group.program.places]
    least = [units[letter].latency.least for letter in letters]
    before = _load(letters, [1, *least[:-1]], group.warps, units, width)
    # the same from the end: the string and its gaps read backwards
    behind = _load(letters[::-1], least[::-1], group.warps, units, width)
    waiting = _waiting(instance, group)
    return [
        [
            IssueWindow(before[k][p], min(horizon + 1 - behind[-1 - k][-1 - p], waiting[k][p]))
            for p in range(len(letters))
        ]
        for k in range(group.warps)
    ]


def _units(instance: Instance) -> dict[str, UnitClass]:
    return {unit.name: unit for unit in instance.machine.units}


def _load(
    letters: Sequence[str], gaps: Sequence[int], warps: int, units: Mapping[str, UnitClass], width: int | None
) -> list[list[int]]:
    """Return the earliest cycle of rank k and place p of class X; a place comes `gaps` cycles after the one before.

    By then, ranks 0..k issue the n places of class X up to p, at most sigma_X in any i_X cycles, none before the first
    of these can be reached: first + (ceil((k+1) n / sigma_X) - 1) i_X. And of all places, at most `width` a cycle.
    """
    seen: dict[str, tuple[int, int]] = {}
    terms = []
    for p, (letter, reached) in enumerate(zip(letters, accumulate(gaps), strict=True)):
        first, count = seen.get(letter, (reached, 0))
        seen[letter] = first, count + 1
        terms.append((first, count + 1, units[letter], p + 1))
    rows = []
    for k in range(warps):
        row: list[int] = []
        for gap, (first, count, unit, places) in zip(gaps, terms, strict=True):
            cycle = first + (-(-(k + 1) * count // unit.capacity) - 1) * unit.interval
            if width is not None:
                cycle = max(cycle, gaps[0] - (-(k + 1) * places // width) - 1)
            row.append(max(row[-1] + gap, cycle) if row else cycle)
        rows.append(row)
    return rows


def _waiting(instance: Instance, group: Group) -> list[list[int]]:
    """Return the latest cycle of rank k and place p, from work conservation alone.

    Until it issues p, in each cycle a latency of rank k passes, or it waits for one of a class X of which all ports are
    held, or for an issue slot. Of what takes these from it, ranks above k have issued places before p only; the ranks
    below k and other groups, all that they have.
    """
    units, width = _units(instance), instance.machine.issue_width
    letters = [place.unit for place in group.program.places]
    passing = list(accumulate((units[letter].latency.most for letter in letters[:-1]), initial=1))
    rows = [passing.copy() for _ in range(group.warps)]
    others = [other for other in instance.groups if other is not group]
    for name in sorted(group.program.units):
        foreign = sum(other.warps * other.program.most(name) for other in others)
        own = letters.count(name)
        done = list(accumulate((letter == name for letter in letters), initial=0))
        for k, row in enumerate(rows):
            for p in range(len(letters)):
                if done[p + 1]:
                    # ranks below k have passed, and may have issued all; ranks above, what lies before p only
                    work = k * own + (group.warps - 1 - k) * done[p] + foreign
                    row[p] += cycles_without_port(units[name], instance.warps - 1, work, done[p])
    if width is not None and instance.warps > width:
        foreign = sum(other.warps * other.program.most() for other in others)
        for k, row in enumerate(rows):
            for p in range(len(letters)):
                row[p] += (k * len(letters) + (group.warps - 1 - k) * p + foreign) // width
    return rows
