"""In which cycles a warp can execute a place, in a schedule of at most T cycles: fewer variables for the models.

Equal warps of a string are told apart by their *rank* only: of those that execute a place, rank k is the k-th to do so,
from 0. (Where one would pass another they change names.) So rank k is never behind rank k+1.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from makespan.errors import BrokenPromiseError
from makespan.instance import Group, Instance


class Window(NamedTuple):
    """The first and the last cycle, from 1, in which a place can be executed by those who visit it."""

    earliest: int
    latest: int


def windows(instance: Instance, horizon: int) -> list[list[list[Window]]]:
    """For every group, rank and place its window.

    Raises:
        BrokenPromiseError: the instructions of a warp do not fit into the horizon.
    """
    found = [
        _of_string(instance, group, horizon) if group.program.is_chain else _of_automaton(group, horizon)
        for group in instance.groups
    ]
    if any(one.earliest > one.latest for ranks in found for places in ranks for one in places):
        raise BrokenPromiseError(f"no schedule ends within {horizon} cycles: the horizon is not an upper bound")
    return found


def _of_automaton(group: Group, horizon: int) -> list[list[Window]]:
    """The same for every rank: the shortest ways from a start and to the end must fit."""
    program = group.program
    first = [1 if p in program.starts else program.end + 1 for p in range(program.end)]
    last = [0] * (program.end + 1)
    for p, (_, successors) in enumerate(program.places):
        for q in successors:
            if q < program.end:
                first[q] = min(first[q], first[p] + 1)
    for p in reversed(range(program.end)):
        last[p] = min(0 if q == program.end else 1 + last[q] for q in program.places[p].successors)
    return [[Window(first[p], horizon - last[p]) for p in range(program.end)]] * group.warps


def _of_string(instance: Instance, group: Group, horizon: int) -> list[list[Window]]:
    """What ranks 0..k have executed by then must fit before, what ranks k.. have left must fit behind."""
    letters, sigma = [place.unit for place in group.program.places], instance.machine.capacities
    before, behind = _load(letters, group.warps, sigma), _load(letters[::-1], group.warps, sigma)
    waiting = _waiting(instance, group)
    return [
        [Window(before[k][p], min(horizon + 1 - behind[-1 - k][-1 - p], waiting[k][p])) for p in range(len(letters))]
        for k in range(group.warps)
    ]


def _load(letters: list[str], warps: int, sigma: Mapping[str, int]) -> list[list[int]]:
    """For rank k and place p of class X the earliest cycle.

    Before it, the warp executes the places before p. And by then, ranks 0..k execute the n places of class X up to p,
    at most sigma_X a cycle, none before the first of these places can be reached: first + ceil((k+1) n / sigma_X).
    """
    seen: dict[str, tuple[int, int]] = {}
    terms = []
    for p, unit in enumerate(letters):
        first, count = seen.get(unit, (p, 0))
        seen[unit] = first, count + 1
        terms.append((first, count + 1, sigma[unit]))
    rows = []
    for k in range(warps):
        loads = [first - (-(k + 1) * count // units) for first, count, units in terms]
        rows.append(list(accumulate(loads, lambda earlier, load: max(earlier + 1, load))))
    return rows


def _waiting(instance: Instance, group: Group) -> list[list[int]]:
    """For rank k and place p the latest cycle, from work conservation alone.

    Until it executes p, rank k executes p + 1 places or waits for one of a class X of which the others use all units.
    Of these, ranks above k execute X-places before p only; the ranks below k and other groups, all that they have.
    """
    letters, sigma = [place.unit for place in group.program.places], instance.machine.capacities
    rows = [[p + 1 for p in range(len(letters))] for _ in range(group.warps)]
    for unit in sorted(group.program.units):
        if instance.warps - 1 < sigma[unit]:
            continue
        foreign = sum(other.warps * other.program.most(unit) for other in instance.groups if other is not group)
        own = letters.count(unit)
        done = list(accumulate((letter == unit for letter in letters), initial=0))
        for k, row in enumerate(rows):
            for p in range(len(letters)):
                if done[p + 1]:
                    row[p] += (k * own + (group.warps - 1 - k) * done[p] + foreign) // sigma[unit]
    return rows
