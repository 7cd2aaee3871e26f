"""Pairs of neighbours, for theorem E: what two instructions of different classes take of each other's mass.

Every instruction has a mass, and a *pair* of neighbours of different classes takes the same of both, but of no
instruction more than it has. A scan from the left lets each pair take what it can, min(what the pair before has left of
the first, mass of the second), which is the most that all of them together can take: for masses of 1, disjoint pairs.

On an automaton what is left depends on the path. So every place has *reserves*, what may be taken of it by the pair
before: of those that are enough for the pair the least is taken, of which less need be used.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from makespan.program import Program

MOST_RESERVES = 32
"""Of a place; with more, some are rounded up to a larger one, which only leaves less for the pair behind."""


def pairs(letters: str) -> int:
    """The largest number of disjoint pairs of unequal neighbours.

    >>> pairs("CLLCLL")
    2
    """
    count, at = 0, 0
    while at + 1 < len(letters):
        paired = letters[at] != letters[at + 1]
        count += paired
        at += 1 + paired
    return count


@dataclass(frozen=True, slots=True)
class Pairing:
    """A program with the mass of its instructions by class, and the reserves of each of its places, increasing."""

    program: Program
    masses: Mapping[str, int]
    reserves: tuple[tuple[int, ...], ...]

    @classmethod
    def scan(cls, program: Program, masses: Mapping[str, int]) -> "Pairing":
        """Each pair takes what it can on every path; classes without a mass, and barriers, take no part.

        >>> Pairing.scan(Program.chain("CLLC"), {"C": 2, "L": 3}).reserves
        ((0,), (2,), (0,), (2,))
        """
        coming: defaultdict[int, set[int]] = defaultdict(set)
        for start in program.starts:
            coming[start].add(0)
        found = []
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        for at, (unit, successors) in enumerate(program.places):
            kept = _thinned(sorted(coming.pop(at)))
            found.append(known.setdefault(kept, kept))
            own = masses.get(unit, 0)
            for after in successors:
                most = cls._partner(program, masses, unit, after)
                coming[after].update(min(own - reserve, most) for reserve in kept)
        return cls(program, masses, tuple(found))

    def heaviest(
        self, worth: Mapping[str, int], taken: int, places: Iterable[int] | None = None, entries: Iterable[int] = ()
    ) -> int:
        """The largest sum, on a path, of what instructions are worth by class, and `taken` times what pairs take.

        Args:
            worth: by class.
            taken: 1, or -1 where what is taken is to be left out of the masses.
            places: those of one phase between barriers, increasing, which may begin at `entries`; None: all.
            entries: a barrier or the end means that there may be nothing to execute.
        """
        program, reserves = self.program, self.reserves
        inside, begins = (range(program.end), program.starts) if places is None else (tuple(places), tuple(entries))
        ahead: dict[int, list[int]] = {}
        for at in reversed(inside):
            unit, successors = program.places[at]
            base, own = worth.get(unit, 0), self.masses.get(unit, 0)
            on = [after for after in successors if after in ahead]
            rest = [0] if len(on) < len(successors) else []
            ways = [(self._partner(program, self.masses, unit, after), reserves[after], ahead[after]) for after in on]
            sums = []
            for reserve in reserves[at]:
                found = rest.copy()
                for most, theirs, values in ways:
                    takes = min(own - reserve, most)
                    found.append(taken * takes + values[bisect_left(theirs, takes)])
                sums.append(base + max(found))
            ahead[at] = sums
        return max(ahead[begin][0] if begin in ahead else 0 for begin in begins)

    @staticmethod
    def _partner(program: Program, masses: Mapping[str, int], unit: str, after: int) -> int:
        """The mass of the place `after`, if it may make a pair with an instruction of class `unit` before it."""
        other = unit if after == program.end else program.places[after].unit
        return 0 if other == unit else masses.get(other, 0)


def _thinned(reserves: list[int]) -> tuple[int, ...]:
    """At most `MOST_RESERVES` of them, the largest one always."""
    step = -(-len(reserves) // MOST_RESERVES)
    return tuple(reserves[(len(reserves) - 1) % step :: step])
