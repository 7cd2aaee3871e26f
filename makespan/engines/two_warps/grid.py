"""Two warps: the exact worst case, on basic machines by a grid of pairs of places, on others by a table of events."""

import numpy as np

from makespan.engines.finding import Finding
from makespan.engines.limits import Limits
from makespan.engines.two_warps import events
from makespan.errors import UnsupportedError
from makespan.instance import Instance
from makespan.result import Bounds, Upper
from makespan.schedule import Schedule

MAX_CELLS = 50_000_000


def applies(instance: Instance) -> bool:
    """Whether there are two warps, on a basic machine with strings, and the table fits (four bytes an entry)."""
    if instance.warps != 2 or instance.has_barriers:
        return False
    if not instance.machine.is_basic:
        return events.applies(instance)
    first, second = instance.programs()
    return first.is_chain and second.is_chain and (first.end + 1) * (second.end + 1) <= MAX_CELLS


def solve(instance: Instance, limits: Limits) -> Finding:
    """The exact worst case; nothing where limits do not suffice.

    Raises:
        UnsupportedError: see `applies`.
    """
    if not applies(instance):
        raise UnsupportedError("two-warp-dp is for two warps without barriers, on a basic machine with strings")
    if instance.machine.is_basic:
        return _by_grid(instance)
    return events.solve(instance, limits)


def best_case(instance: Instance, limits: Limits) -> Bounds | None:
    """The exact best case of an instance of which this `knows_best_case`; None where limits do not suffice."""
    return events.best_case(instance, limits)


def knows_best_case(instance: Instance) -> bool:
    """Whether there are two warps on a machine that is not basic, and the table fits."""
    return not instance.machine.is_basic and events.applies(instance)


def _by_grid(instance: Instance) -> Finding:
    """Two strings, any capacities; the largest grid takes about a second."""
    first, second = (program.letters or "" for program in instance.programs())
    capacities = instance.machine.capacities
    contested = np.array([[a == b and capacities[a] == 1 for b in sorted(capacities)] for a in sorted(capacities)])
    code = {unit: number for number, unit in enumerate(sorted(capacities))}
    rows = np.array([code[letter] for letter in first])
    columns = np.array([code[letter] for letter in second])
    left = _cycles_left(contested, rows, columns)
    cycles, at, to = [], 0, 0
    while at < len(first) or to < len(second):
        if at == len(first) or to == len(second):
            moves = (at < len(first), to < len(second))
        elif contested[rows[at], columns[to]]:
            moves = (left[at + 1, to] >= left[at, to + 1], left[at + 1, to] < left[at, to + 1])
        else:
            moves = (True, True)
        cycles.append([warp for warp, moved in enumerate(moves) if moved])
        at, to = at + moves[0], to + moves[1]
    return Finding(Schedule.of_chains(instance, cycles), int(left[0, 0]), Upper.TWO_WARP_DP)


def _cycles_left(contested: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Table [p, q]: the most cycles still to come when the warps stand at p and q, filled by diagonals.

    On a diagonal p + q is constant, and a cell needs only the two diagonals after it.
    """
    height, width = len(rows), len(columns)
    left = np.zeros((height + 1, width + 1), dtype=np.int32)
    left[:, width] = np.arange(height, -1, -1)
    left[height, :] = np.arange(width, -1, -1)
    for diagonal in range(height + width - 2, -1, -1):
        p = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        q = diagonal - p
        one = np.maximum(left[p + 1, q], left[p, q + 1])
        left[p, q] = 1 + np.where(contested[rows[p], columns[q]], one, left[p + 1, q + 1])
    return left
