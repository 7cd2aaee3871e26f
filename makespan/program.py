"""What one warp may execute: a string of instructions, or an automaton that the adversary walks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from makespan.errors import InputError

MAX_PLACES = 1_000_000

BARRIER = "|"
"""The unit of a place that is a barrier: it needs no unit and takes no cycle, the warps of a block wait there."""


class Origin(NamedTuple):
    """Where an instruction comes from: a text line of a file and, if known, FILE:LINE of what it was compiled from."""

    file: str
    line: int
    text: str = ""
    source: str = ""


class Place(NamedTuple):
    """One instruction instance, or a barrier: the unit class it needs, and which places may follow it."""

    unit: str
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """An acyclic automaton over unit classes; a string is the special case of a chain.

    Places are numbered in topological order, so every successor is larger than its place, and
    `program.end` (the number of places) stands for "finished". A warp begins at one of `starts`; who
    schedules also picks every start and successor, so a worst case covers all paths.

    Args:
        places: the instruction instances.
        starts: places at which a warp may begin.
        origins: one source line per place, or empty when there is no source.
        assumptions: what must hold for this program to stand for its source; goes into every result.

    Raises:
        InputError: no place, a successor out of order, a place that no path reaches, or a path that is all barriers.
    """

    places: tuple[Place, ...]
    starts: tuple[int, ...] = (0,)
    origins: tuple[Origin, ...] = field(default=(), compare=False, repr=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.places:
            raise InputError("a program needs at least one instruction")
        if len(self.places) > MAX_PLACES:
            raise InputError(f"a program of {len(self.places)} instructions exceeds the limit of {MAX_PLACES}")
        if self.origins and len(self.origins) != len(self.places):
            raise InputError(f"{len(self.places)} places but {len(self.origins)} origins")
        reached = set(self.starts)
        if not reached or not reached <= set(range(self.end)):
            raise InputError(f"starts {self.starts} must be places 0..{self.end - 1}")
        for number, place in enumerate(self.places):
            after = place.successors
            if not after or len(set(after)) != len(after) or min(after) <= number or max(after) > self.end:
                raise InputError(f"place {number} has successors {after}; they must lie in {number + 1}..{self.end}")
            if number not in reached:
                raise InputError(f"place {number} is reached by no path")
            reached.update(after)
        if self.has_barriers and self.least() == 0:
            raise InputError("a program needs at least one instruction on every path, not only barriers")

    @classmethod
    def chain(cls, letters: str, *, origins: Sequence[Origin] = (), assumptions: Sequence[str] = ()) -> "Program":
        """The program of one instruction string.

        >>> Program.chain("CLL").letters
        'CLL'
        """
        places = tuple(Place(letter, (i + 1,)) for i, letter in enumerate(letters))
        return cls(places, (0,), tuple(origins), tuple(assumptions))

    def assuming(self, assumptions: Iterable[str]) -> "Program":
        """The same places under these assumptions."""
        said = tuple(assumptions)
        return self if said == self.assumptions else replace(self, assumptions=said)

    @property
    def end(self) -> int:
        """The number that stands for "finished"."""
        return len(self.places)

    @property
    def is_chain(self) -> bool:
        """Whether there is only one path."""
        return self.starts == (0,) and all(p.successors == (i + 1,) for i, p in enumerate(self.places))

    @property
    def letters(self) -> str | None:
        """The instruction string of a chain; None for an automaton with choices."""
        return "".join(place.unit for place in self.places) if self.is_chain else None

    @property
    def units(self) -> frozenset[str]:
        """The unit classes that some place needs."""
        return frozenset(place.unit for place in self.places) - {BARRIER}

    @property
    def has_barriers(self) -> bool:
        """Whether some place is a barrier."""
        return any(place.unit == BARRIER for place in self.places)

    def most(self, unit: str | None = None) -> int:
        """The largest number of instructions (of `unit`, or of any class) on a path; barriers do not count."""
        counts = self.counts(unit, max)
        return max(counts[start] for start in self.starts)

    def least(self, unit: str | None = None) -> int:
        """The smallest number of instructions (of `unit`, or of any class) on a path; barriers do not count."""
        counts = self.counts(unit, min)
        return min(counts[start] for start in self.starts)

    def counts(self, unit: str | None, choose: Callable[[Iterable[int]], int]) -> list[int]:
        """For every place, and the end, the most (`max`) or fewest (`min`) instructions on a path from there on."""
        return self.sums(dict.fromkeys(self.units if unit is None else (unit,), 1), choose)

    def sums(self, weights: Mapping[str, int], choose: Callable[[Iterable[int]], int]) -> list[int]:
        """For every place, and the end, the largest (`max`) or smallest sum of the weights of classes from there on."""
        found = [0] * (self.end + 1)
        for number in range(self.end - 1, -1, -1):
            place = self.places[number]
            found[number] = weights.get(place.unit, 0) + choose(found[after] for after in place.successors)
        return found

    def heaviest(self, weights: Mapping[str, int]) -> int:
        """The largest sum of the weights of classes on a path."""
        sums = self.sums(weights, max)
        return max(sums[start] for start in self.starts)

    def lightest(self, weights: Mapping[str, int]) -> int:
        """The smallest sum of the weights of classes on a path."""
        sums = self.sums(weights, min)
        return min(sums[start] for start in self.starts)

    def __repr__(self) -> str:
        return f"Program({self})"

    def __str__(self) -> str:
        letters = self.letters
        if letters is None:
            return f"automaton of {self.end} places"
        return letters if len(letters) <= 60 else f"{letters[:40]}...{letters[-10:]} ({len(letters)} letters)"


def merged(groups: Iterable[tuple[Program, int]]) -> tuple[tuple[Program, int], ...]:
    """Programs with numbers of warps, in order of appearance, equal ones put together under all that they assume."""
    found: dict[Program, tuple[int, dict[str, None]]] = {}
    for program, warps in groups:
        count, notes = found.get(program, (0, {}))
        found[program] = count + warps, notes | dict.fromkeys(program.assumptions)
    return tuple((program.assuming(notes), count) for program, (count, notes) in found.items())
