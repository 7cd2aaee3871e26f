"""Pairs of neighbours, for theorem E: what instructions of different classes take of each other's mass.

Every instruction has a mass, and a *pair* takes the same of one instruction as of those behind it, all of one other
class: of no instruction more than it has, and of those behind no more than the cap of their class. A scan from the left
lets each pair take what it can, which is the most that all of them together can take: for masses and caps of 1,
disjoint pairs.

On an automaton what is left depends on the path. So every place has *reserves*, what may be taken by the pair before,
of it and of equal ones behind it: of those that are enough for the pair the least is taken; less need be used.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from makespan.model.program import Program
from makespan.proof.bounds.phases import PhaseSegment

MOST_RESERVES = 32
"""Of a place; with more, some are rounded up to a larger one, which only leaves less for the pair behind."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_Proof = TypeVar("_Proof")


def pairs(letters: str) -> int:
    """Return the largest number of disjoint pairs of unequal neighbours.

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
    """A program with the mass of its instructions by class, and what its places can give.

    Args:
        limits: for each place what it and the equal ones behind it have on any path, up to the cap; the end has none.
        reserves: for each place, increasing.
        apart: the places at which no pair begins.
    """

    program: Program
    masses: Mapping[str, int]
    limits: tuple[int, ...]
    reserves: tuple[tuple[int, ...], ...]
    apart: Set[int] = frozenset()

    @classmethod
    def scan(
        cls, program: Program, masses: Mapping[str, int], caps: Mapping[str, int], apart: Set[int] = frozenset()
    ) -> "Pairing":
        """Return each pair takes what it can on every path; classes without a mass, and barriers, take no part.

        >>> Pairing.scan(Program.chain("CLLC"), {"C": 2, "L": 3}, {"C": 2, "L": 3}).reserves
        ((0,), (2,), (0,), (2,))
        >>> Pairing.scan(Program.chain("LCCCL"), {"C": 2, "L": 3}, {"C": 3, "L": 3}).reserves
        ((0,), (3,), (1,), (0,), (2,))
        """
        places, limits = program.places, [0] * (program.end + 1)
        units = [*(unit for unit, _ in places), ""]
        for at in reversed(range(program.end)):
            unit, successors = places[at]
            # on any path: the pair before must find what it takes, whichever way the warp goes
            behind = min(limits[after] if units[after] == unit else 0 for after in successors)
            limits[at] = min(masses.get(unit, 0) + behind, caps.get(unit, 0))
        coming: defaultdict[int, set[int]] = defaultdict(set)
        for start in program.starts:
            coming[start].add(0)
        found = []
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        for at, (unit, successors) in enumerate(places):
            kept = _thin_out(sorted(coming.pop(at)))
            found.append(known.setdefault(kept, kept))
            own = masses.get(unit, 0)
            for after in successors:
                if units[after] == unit:
                    # equal neighbours make no pair; what the one before has left to take, it takes of the next
                    coming[after].update(max(0, reserve - own) for reserve in kept)
                else:
                    # theorem E: the scan takes all it can, the least of what is left, the cap, and the run behind
                    room = 0 if at in apart else limits[after]
                    coming[after].update(min(own - reserve, room) for reserve in kept)
        return cls(program, masses, tuple(limits), tuple(found), apart)

    def heaviest(
        self,
        worth: Mapping[str, int],
        taken: int,
        *,
        entering: Mapping[str, int] = _NOTHING,
        leaving: Sequence[int] = (),
        last: Mapping[str, int] = _NOTHING,
        segment: PhaseSegment | None = None,
        first: bool = True,
    ) -> int:
        """Return the largest sum, on a path, of what instructions are worth, and `taken` times what pairs take.

        Args:
            worth: by class.
            taken: 1, or -1 where what is taken is to be left out of the masses.
            entering: by class, what is added where a run of equal instructions begins.
            leaving: by place, what is added if one of another class follows; nothing if empty.
            last: by class, what is added for the last instruction.
            segment: one phase between barriers, where there may be nothing to execute; None: the whole program.
            first: whether `entering` spares the run with which the path begins.
        """
        places, reserves = self.program.places, self.reserves
        begins, inside = (self.program.starts, range(self.program.end)) if segment is None else segment
        ahead: dict[int, list[int]] = {}
        for at in reversed(inside):
            unit, successors = places[at]
            base, own = worth.get(unit, 0), self.masses.get(unit, 0)
            on = [after for after in successors if after in ahead]
            rest = [last.get(unit, 0)] if len(on) < len(successors) else []
            sums = []
            for reserve in reserves[at]:
                found = rest.copy()
                for after in on:
                    other = places[after].unit
                    if other == unit:
                        takes, left, price = 0, reserve - own, 0
                    else:
                        takes = left = 0 if at in self.apart else min(own - reserve, self.limits[after])
                        price = entering.get(other, 0) + (leaving[at] if leaving else 0)
                    # the least reserve that is enough: a larger one only leaves less for the pair behind
                    found.append(taken * takes + price + ahead[after][bisect_left(reserves[after], left)])
                sums.append(base + max(found))
            ahead[at] = sums
        prices = {at: 0 if first else entering.get(places[at].unit, 0) for at in begins if at in ahead}
        return max(prices[at] + ahead[at][0] if at in ahead else 0 for at in begins)


def _thin_out(reserves: list[int]) -> tuple[int, ...]:
    """Return at most `MOST_RESERVES` of them, always with the largest one, to which all others can be rounded up."""
    step = -(-len(reserves) // MOST_RESERVES)
    return tuple(reserves[(len(reserves) - 1) % step :: step])


def try_values(
    free: Mapping[str, int],
    above: Iterable[tuple[str, Sequence[int]]],
    most: int,
    prove: Callable[[Mapping[str, int]], _Proof],
    upper: Callable[[_Proof], int],
) -> Iterator[_Proof]:
    """Yield what is proven with values by class that cost nothing, then with larger ones, one class after another.

    Args:
        free: these values.
        above: by class, the larger ones, in increasing order; at most `most` of them are tried, and always the largest.
        prove: says what values prove.
        upper: says the bound of a proof; a value is kept if its bound is the smallest so far.
    """
    best, kept = prove(free), free
    yield best
    for name, values in above if most else ():
        step = max(1, -(-len(values) // most))
        for chosen in [{**kept, name: value} for value in values[(len(values) - 1) % step :: step]]:
            found = prove(chosen)
            yield found
            if upper(found) < upper(best):
                best, kept = found, chosen
