"""The paths of a program with the reserves of theorems E and E': what pairs take along them (docs/theory.md, 3).

A warp comes to each place with one of its reserves: so much of the mass there, and of the equal instructions behind it,
is left to the pair before. What is checked at each edge: a pair takes no more than its first instruction has left, and
what it takes of the second class is there in the run that begins behind the first. That weights are the best ones is no
premise.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from makespan.model.program import Program
from makespan.verify.paths import PhaseRegion
from makespan.verify.refusal import ProofSteps, Refused

_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReservePaths:
    """The paths of a program, each with the reserves that it meets.

    Args:
        mass: by counted class, what an instruction has for pairs.
        caps: by counted class, the most that a pair takes of it.
        reserves: for every place what may be reserved there for the pair that ends in its run, increasing.
        apart: places at which no pair begins.
    """

    program: Program
    mass: Mapping[str, int]
    caps: Mapping[str, int]
    reserves: Sequence[Sequence[int]]
    work: ProofSteps
    apart: Set[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.reserves) != self.program.end:
            raise Refused(f"weights: {len(self.reserves)} places of {self.program.end}")
        for place, row in zip(self.program.places, self.reserves, strict=True):
            most = self.caps.get(place.unit, 0)
            if not row or sorted(set(row)) != list(row) or not 0 <= row[0] <= row[-1] <= most:
                raise Refused(f"weights: the reserves of a place are not increasing numbers from 0 to its cap {most}")

    def most(
        self,
        worth: Mapping[str, int],
        factor: int,
        price: Mapping[str, int] = _NOTHING,
        spared: Mapping[str, int] = _NOTHING,
        phase: tuple[int, PhaseRegion] | None = None,
        turns: Sequence[int] = (),
    ) -> tuple[int, int]:
        """Return two largest sums over paths, of paths that end and of paths that go on behind the phase."""
        # A path sums up what its instructions are worth, `factor` times the weights of its pairs, the price of a class
        # whenever it turns to it (and where it begins in a later phase), and `turns` of a place from which it turns to
        # another class. The last instruction of a path that ends is spared what `spared` says of its class.
        program = self.program
        number, (begins, inside) = phase or (0, (program.starts, tuple(range(program.end))))
        known = set(inside)
        come: dict[int, dict[int, int]] = {
            at: {self.reserves[at][0]: price.get(program.places[at].unit, 0) if number else 0}
            for at in known.intersection(begins)
        }
        ended = [0] * (not known.issuperset(begins))  # a path may have nothing to execute in this phase
        passed = ended.copy()
        for at in inside:
            unit, successors = program.places[at]
            met, turn = come.pop(at), turns[at] if turns else 0
            self.work.spend(len(met) * len(successors))
            for (reserve, before), after in product(met.items(), successors):
                here = before + worth.get(unit, 0)
                taken, left = self._step(at, reserve, after)
                if after not in known:
                    ended.append(here - spared.get(unit, 0))
                    passed.append(here)
                    continue
                other = program.places[after].unit
                total = here + factor * taken + (price.get(other, 0) + turn if other != unit else 0)
                # of all paths to a place with a reserve only the largest sum matters
                there = come.setdefault(after, {})
                there[left] = max(there.get(left, total), total)
        return max(ended), max(passed)

    def largest(self) -> int:
        """Return the most that a pair of places takes."""
        rows = enumerate(zip(self.program.places, self.reserves, strict=True))
        return max(self._step(at, row[0], after)[0] for at, (place, row) in rows for after in place.successors)

    def _step(self, at: int, reserve: int, after: int) -> tuple[int, int]:
        """Return what a pair takes that begins here, and the reserve with which its warp comes to the next place.

        What is reserved here beyond the mass of this instruction, equal instructions behind it must have.

        Raises:
            Refused: they lack it, too.
        """
        unit, program = self.program.places[at].unit, self.program
        own = self.mass.get(unit, 0)
        other, row = ("", (0,)) if after == program.end else (program.places[after].unit, self.reserves[after])
        could = max(0, reserve - own) if other == unit else own - reserve
        if could < 0 or (other == unit and could > row[-1]):
            raise Refused("weights: a pair takes more than the instructions behind it have")
        if at in self.apart and other != unit:
            could = 0
        # the next place has few reserves: the least that is enough, or the largest, of which the pair takes no more
        enough = row[min(bisect_left(row, could), len(row) - 1)]
        return (0 if other == unit else min(could, enough)), enough
