"""Two warps with strings on a basic machine: the exact worst case by a grid of pairs of places."""

import numpy as np

from makespan.model.feature import Feature
from makespan.model.instance import Instance
from makespan.model.result import Upper
from makespan.model.schedule import Schedule
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits

KNOWS = frozenset({Feature.CLASSES, Feature.GROUPS})

MAX_CELLS = 50_000_000


def applies(instance: Instance) -> bool:
    """Return whether there are two warps with strings on a basic machine, and the table fits (four bytes an entry)."""
    if instance.warps != 2 or instance.beyond(KNOWS):
        return False
    first, second = instance.programs()
    return (first.end + 1) * (second.end + 1) <= MAX_CELLS


def solve(instance: Instance, _: Limits) -> Finding:
    """Return the exact worst case of an instance to which this `applies`; the largest table takes about a second."""
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


def best_case(_: Instance, __: Limits) -> None:
    """Return None: the grid is about the worst case alone."""


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
