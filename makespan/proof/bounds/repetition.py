"""Long strings that repeat themselves, and long delays: which places need variables of their own in a linear programme.

In a stretch with period P a potential is made affine from one repetition to the next, but for the first and the last
ones. That is a restriction, so the bound stays sound; and an inequality that holds at both ends of an affine stretch
holds between them. A loop of a thousand iterations then costs no more than a loop of six. Along the delay places of
an instruction it is made affine but for the last ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from makespan.model.machine import DELAY
from makespan.model.program import Program

MERGED_FROM = 200
"""Shorter programs keep a variable for every place."""

FREE = 2
"""Repetitions at each end of a stretch whose places keep variables of their own."""

FREE_DELAYS = 2
"""The last delay places of an instruction, which keep variables of their own."""

MOST_PERIOD = 4_096

PlaceIndices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The table at place p is (1 - weight[p]) * table at left[p] + weight[p] * table at right[p].

    Places of one `family` lie on one affine stretch, at `step` 0, 1, 2, ...; a place on its own is its own family.
    """

    left: PlaceIndices
    right: PlaceIndices
    weight: NDArray[np.float64]
    family: PlaceIndices
    step: PlaceIndices

    @property
    def is_anchor(self) -> NDArray[np.bool_]:
        """Return which places have variables of their own; "finished" has none."""
        found = np.zeros(len(self.left), dtype=bool)
        found[self.left] = found[self.right] = True
        found[-1] = False
        return found

    def ends(self, before: PlaceIndices, after: PlaceIndices) -> NDArray[np.bool_]:
        """Return which pairs of places (before, after) are enough: the ends of those that move in parallel."""
        # an affine function lies between its values at the ends, so rows in between say nothing new (theory.md, 4.8)
        if not self.weight.any():
            return np.ones(len(before), dtype=bool)
        same = self.family[before], self.family[after]
        fan = _extremes(np.stack([*same, self.step[before]]), self.step[after])  # from one place into a stretch
        kept = np.zeros(len(before), dtype=bool)
        left = np.flatnonzero(fan)
        offset = self.step[after] - self.step[before]
        kept[left] = _extremes(np.stack([*same, offset])[:, left], self.step[before][left])
        return kept


def _extremes(keys: PlaceIndices, values: PlaceIndices) -> NDArray[np.bool_]:
    """Return which entries have the least or the largest value among those with the same column of keys."""
    _, which = np.unique(keys, axis=1, return_inverse=True)
    order = np.lexsort((values, which))
    group = which[order]
    edge = np.ones(len(order) + 1, dtype=bool)
    edge[1:-1] = group[1:] != group[:-1]
    kept = np.zeros(len(order), dtype=bool)
    kept[order[edge[:-1] | edge[1:]]] = True
    return kept


def interpolation(program: Program) -> Interpolation:
    """Return the affine stretches of a long string or of long delays; every other place stands for itself.

    The entry after the last place is for "finished".
    """
    own = np.arange(program.end + 1)
    left, right, family, step = own.copy(), own.copy(), own.copy(), np.zeros_like(own)
    weight = np.zeros(program.end + 1)
    for first, period, inner in _affine(program) if program.end >= MERGED_FROM else ():
        for residue in range(period):
            places = first + residue + period * np.arange(inner)
            left[places], right[places] = places[0], places[-1]
            weight[places] = np.arange(inner) / (inner - 1)
            family[places], step[places] = places[0], np.arange(inner)
    return Interpolation(left, right, weight, family, step)


def _affine(program: Program) -> list[tuple[int, int, int]]:
    """Return where a table is affine, as (first place, period, repetitions): at delays, else in loops of a string."""
    if DELAY in program.units:
        runs = _runs(np.array([place.unit == DELAY for place in program.places]))
        return [(begin, 1, end - begin - FREE_DELAYS) for begin, end in runs if end - begin >= FREE_DELAYS + 3]
    letters = program.letters
    found = _stretches(letters) if letters is not None else []
    return [(begin + FREE * period, period, count - 2 * FREE) for begin, period, count in found]


def _runs(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    changes = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return list(zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True))


def _stretches(letters: str) -> list[tuple[int, int, int]]:
    """Return disjoint stretches (first place, period, repetitions), those that save most first."""
    text = np.frombuffer(letters.encode(), dtype=np.uint8)
    least = 2 * FREE + 3
    found = []
    for period in range(1, min(MOST_PERIOD, len(text) // least) + 1):
        for begin, end in _runs(text[:-period] == text[period:]):  # a run of equal letters a period apart
            count = (end - begin) // period + 1
            if count >= least:
                found.append(((count - 2 * FREE - 2) * period, -period, begin, count))
    taken = np.zeros(len(text), dtype=bool)
    chosen = []
    for _, negative, begin, count in sorted(found, reverse=True):
        stretch = slice(begin, begin - negative * count)
        if not taken[stretch].any():
            taken[stretch] = True
            chosen.append((begin, -negative, count))
    return chosen
