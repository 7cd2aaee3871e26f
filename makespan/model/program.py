"""The program of a warp: a string of instructions, or an automaton whose path the adversary chooses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import groupby, zip_longest
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.model.assumptions import Assumption
from makespan.model.lapses import NO_LAPSES, CacheLine, PlaceLapses, longest_windows

MAX_PLACES = 1_000_000
MAX_CYCLES_OF_PLACE = 100_000
MAX_TOKENS_OF_PLACE = 64
MAX_LINES_OF_PLACE = 1 << 16

BARRIER = "|"
"""The unit of a place that is a barrier. It needs no port and takes no cycle; the warps of a block wait there."""


class InstructionOrigin(NamedTuple):
    """The source of an instruction: a line of a file and, if it is known, FILE:LINE of the code that was compiled."""

    file: str
    line: int
    text: str = ""
    source: str = ""


class InstructionTiming(NamedTuple):
    """The timing of an instruction in a warp that runs ahead (*stall on use*: it waits only where it needs a result).

    A *token* (a register, a scoreboard counter) that an instruction sets is pending until its latency has passed, and
    as long as any earlier instruction of the warp that set it is not done.

    Args:
        stall: the cycles after which the warp may issue again, at least 1. A barrier has 0.
        latency: the least and the most cycles until the result is there; the adversary chooses. A barrier has (0, 0).
        sets: the tokens that are pending until then, in increasing order. A barrier sets none.
        awaits: the tokens that must not be pending when the instruction is issued, or when the warp reaches the
            barrier.
    """

    stall: int = 1
    latency: tuple[int, int] = (1, 1)
    sets: tuple[int, ...] = ()
    awaits: tuple[int, ...] = ()


class Access(NamedTuple):
    """An access to memory that DRAM may have to serve.

    Args:
        operation: one of `machine.OPERATIONS`.
        moved: the bytes that DRAM moves for it, at most. None means that they are not known.
        is_awaited: whether the warp can wait for it. No warp waits for a store.
    """

    operation: str
    moved: int | None
    is_awaited: bool

    @staticmethod
    def worst(several: "Iterable[Access | None]") -> "Access | None":
        """Return an access that covers each of several accesses. None in the list is an instruction without an access.

        >>> Access.worst([None, Access("global", 1024, True), Access("global", 2048, False)])
        Access(operation='global', moved=2048, is_awaited=True)
        """
        found = [one for one in several if one is not None]
        if not found:
            return None
        # one unknown size makes the largest size unknown: a maximum over the rest would be no bound
        known = [one.moved for one in found if one.moved is not None]
        moved = max(known) if len(known) == len(found) else None
        return Access(found[0].operation, moved, any(one.is_awaited for one in found))


class ProgramPlace(NamedTuple):
    """One instruction instance, or a barrier: the unit class that it needs, and the places that may follow it."""

    unit: str
    successors: tuple[int, ...]


PlaceWeights = Mapping[str, int] | Sequence[int]
"""What the places of a program weigh: by class, 0 for one that is left out, or by place."""


@dataclass(frozen=True, slots=True)
class Program:
    """An acyclic automaton over unit classes; a string is the special case of a chain.

    Places are numbered in topological order: every successor is larger than its place. `program.end`, the number of
    places, stands for "finished". A warp begins at one of `starts`. The adversary picks every start and every
    successor, so a worst case covers all paths.

    Args:
        places: the instruction instances.
        starts: places at which a warp may begin.
        origins: one source line per place, or empty when there is no source.
        assumptions: what must hold for this program to stand for its source. Every result lists them.
        timings: one per place of a warp that runs ahead. Empty means that the warp *blocks*: after every instruction it
            waits for the latency of its class.
        accesses: the access to DRAM of each place; None means that the place has none. Empty means that no place has
            one or that they are not known, as for a string.
        lapses: the lapses of each place, and the lines that it needs. Empty means that nothing is known of them, and
            that none are counted.

    Raises:
        InputError: no place, a successor out of order, a place that no path reaches, or a path that is all barriers.
    """

    places: tuple[ProgramPlace, ...]
    starts: tuple[int, ...] = (0,)
    origins: tuple[InstructionOrigin, ...] = field(default=(), compare=False, repr=False)
    assumptions: tuple[Assumption, ...] = field(default=(), compare=False)
    timings: tuple[InstructionTiming, ...] = ()
    accesses: tuple[Access | None, ...] = field(default=(), compare=False, repr=False)
    # equal programs become one, so lapses are not compared: the one program has those that cover all of them
    lapses: tuple[PlaceLapses, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.places:
            raise InputError("a program needs at least one instruction")
        if len(self.places) > MAX_PLACES:
            raise InputError(f"a program of {len(self.places)} instructions exceeds the limit of {MAX_PLACES}")
        for what in ("origins", "timings", "accesses", "lapses"):
            if (given := getattr(self, what)) and len(given) != len(self.places):
                raise InputError(f"{len(self.places)} places but {len(given)} {what}")
        for number, lapses in enumerate(self.lapses):
            check_lapses(lapses, f"place {number}")
        for number, (place, timing) in enumerate(zip(self.places, self.timings, strict=False)):
            check_timing(timing, f"place {number}", is_barrier=place.unit == BARRIER)
        # places are in topological order, so one pass finds every place that a path reaches
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
        # a warp that executes nothing would break the bounds that count its first instruction
        if self.has_barriers and self.least() == 0:
            raise InputError("a program needs at least one instruction on every path, not only barriers")

    @classmethod
    def chain(
        cls, letters: str, *, origins: Sequence[InstructionOrigin] = (), assumptions: Sequence[Assumption] = ()
    ) -> "Program":
        """Return the program of one instruction string.

        >>> Program.chain("CLL").letters
        'CLL'
        """
        places = tuple(ProgramPlace(letter, (i + 1,)) for i, letter in enumerate(letters))
        return cls(places, (0,), tuple(origins), tuple(assumptions))

    def assuming(self, assumptions: Iterable[Assumption]) -> "Program":
        """Return the same program under these assumptions."""
        said = tuple(assumptions)
        return self if said == self.assumptions else replace(self, assumptions=said)

    def asking(self, accesses: "tuple[Access | None, ...]") -> "Program":
        """Return the same program with these accesses to DRAM."""
        return self if accesses == self.accesses else replace(self, accesses=accesses)

    def lapsing(self, lapses: tuple[PlaceLapses, ...]) -> "Program":
        """Return the same program with these lapses."""
        return self if lapses == self.lapses else replace(self, lapses=lapses)

    @property
    def has_lapses(self) -> bool:
        """Return whether some place has a lapse or needs a line."""
        return any(lapses != NO_LAPSES for lapses in self.lapses)

    @property
    def lines(self) -> tuple[CacheLine, ...]:
        """Return the lines that some place needs."""
        return longest_windows(line for lapses in self.lapses for line in lapses.lines)

    @property
    def end(self) -> int:
        """Return the number that stands for "finished"."""
        return len(self.places)

    @property
    def is_chain(self) -> bool:
        """Return whether there is only one path."""
        return self.starts == (0,) and all(p.successors == (i + 1,) for i, p in enumerate(self.places))

    @property
    def runs_ahead(self) -> bool:
        """Return whether a warp waits for a result only where it needs it."""
        return bool(self.timings)

    @property
    def letters(self) -> str | None:
        """Return the instruction string of a chain that blocks at every place.

        None means that letters do not say all of it.
        """
        return "".join(place.unit for place in self.places) if self.is_chain and not self.runs_ahead else None

    @property
    def units(self) -> frozenset[str]:
        """Return the unit classes that some place needs."""
        return frozenset(place.unit for place in self.places) - {BARRIER}

    @property
    def has_barriers(self) -> bool:
        """Return whether some place is a barrier."""
        return any(place.unit == BARRIER for place in self.places)

    def most(self, unit: str | None = None) -> int:
        """Return the largest number of instructions (of `unit`, or of any class) on a path; barriers do not count."""
        counts = self.counts(unit, max)
        return max(counts[start] for start in self.starts)

    def least(self, unit: str | None = None) -> int:
        """Return the smallest number of instructions (of `unit`, or of any class) on a path; barriers do not count."""
        counts = self.counts(unit, min)
        return min(counts[start] for start in self.starts)

    def counts(self, unit: str | None, choose: Callable[[Iterable[int]], int]) -> list[int]:
        """Return the most (`max`) or fewest (`min`) instructions on a path, from every place and from the end on."""
        return self.sums(dict.fromkeys(self.units if unit is None else (unit,), 1), choose)

    def sums(self, weights: PlaceWeights, choose: Callable[[Iterable[int]], int]) -> list[int]:
        """Return the largest (`max`) or smallest sum of class weights on a path, from every place, and the end, on."""
        found = [0] * (self.end + 1)
        if isinstance(weights, Mapping):
            weights = [weights.get(place.unit, 0) for place in self.places]
        for number in range(self.end - 1, -1, -1):
            found[number] = weights[number] + choose(found[after] for after in self.places[number].successors)
        return found

    def heaviest(self, weights: PlaceWeights) -> int:
        """Return the largest sum of weights on a path."""
        sums = self.sums(weights, max)
        return max(sums[start] for start in self.starts)

    def lightest(self, weights: PlaceWeights) -> int:
        """Return the smallest sum of weights on a path."""
        sums = self.sums(weights, min)
        return min(sums[start] for start in self.starts)

    def longest_parts(self, cycles: Sequence[int]) -> list[int]:
        """Return the largest sum of cycles on a part of a path without barriers, by the number of barriers before it.

        Args:
            cycles: the cycles of every place; those of a barrier do not count.

        >>> places = [ProgramPlace(unit, (at + 1,)) for at, unit in enumerate("CL|C|")]
        >>> Program(tuple(places)).longest_parts([1, 5, 9, 2, 9])
        [6, 2, 0]
        """
        # `ahead` is the longest way to the next barrier or to the end, which a barrier cuts off with 0
        ahead, is_barrier = [0] * (self.end + 1), [place.unit == BARRIER for place in self.places]
        for at in range(self.end - 1, -1, -1):
            if not is_barrier[at]:
                ahead[at] = cycles[at] + max(ahead[after] for after in self.places[at].successors)
        if not any(is_barrier):
            return [max(ahead[start] for start in self.starts)]
        # a place is reached behind `fewest` to `most` barriers; every number between them may occur on some path
        fewest, most = [self.end] * (self.end + 1), [0] * (self.end + 1)
        for start in self.starts:
            fewest[start] = 0
        for at, place in enumerate(self.places):
            for after in place.successors:
                fewest[after] = min(fewest[after], fewest[at] + is_barrier[at])  # one pass: successors are larger
                most[after] = max(most[after], most[at] + is_barrier[at])
        # a sweep over the number of barriers: a place enters the heap at `fewest` and is dropped once `most` is passed
        begins: list[list[tuple[int, int]]] = [[] for _ in range(most[self.end] + 1)]
        for at in range(self.end + 1):
            begins[fewest[at]].append((-ahead[at], most[at]))
        found, longest = list[int](), list[tuple[int, int]]()
        for barriers, coming in enumerate(begins):
            for part in coming:
                heappush(longest, part)
            while (
                longest[0][1] < barriers
            ):  # the maximum is dropped only when it is out of date: the heap has no other removal
                heappop(longest)
            found.append(-longest[0][0])
        return found

    def __repr__(self) -> str:
        return f"Program({self})"

    def __str__(self) -> str:
        letters = self.letters
        if letters is None and self.is_chain:
            return f"string of {self.end} places that runs ahead"
        if letters is None:
            return f"automaton of {self.end} places" + (" that runs ahead" if self.runs_ahead else "")
        return letters if len(letters) <= 60 else f"{letters[:40]}...{letters[-10:]} ({len(letters)} letters)"


def check_timing(timing: InstructionTiming, where: str, *, is_barrier: bool) -> None:
    """Refuse a timing that no instruction can have.

    Raises:
        InputError: cycles or tokens out of range.
    """
    least = 0 if is_barrier else 1
    cycles = (timing.stall, *timing.latency)
    if len(timing.latency) != 2 or not least <= timing.stall <= MAX_CYCLES_OF_PLACE:
        raise InputError(f"{where}: a stall of {timing.stall} cycles with a latency of {timing.latency}")
    if not least <= timing.latency[0] <= timing.latency[1] <= MAX_CYCLES_OF_PLACE:
        raise InputError(f"{where}: a latency is a range from {least} to {MAX_CYCLES_OF_PLACE}, not {timing.latency}")
    if is_barrier and (any(cycles) or timing.sets):
        raise InputError(f"{where}: a barrier takes no time and sets no token")
    for tokens in (timing.sets, timing.awaits):
        if list(tokens) != sorted(set(tokens)) or any(token < 0 for token in tokens):
            raise InputError(f"{where}: tokens are whole numbers from 0 in increasing order, not {tokens}")
        if len(tokens) > MAX_TOKENS_OF_PLACE:
            raise InputError(f"{where}: {len(tokens)} tokens exceed the limit of {MAX_TOKENS_OF_PLACE}")


def check_lapses(lapses: PlaceLapses, where: str) -> None:
    """Refuse lapses that no place can have.

    Raises:
        InputError: cycles or lines out of range.
    """
    cycles = (lapses.credit, lapses.fence, lapses.misses, *(line.window for line in lapses.lines))
    if not all(0 <= count <= MAX_CYCLES_OF_PLACE for count in cycles):
        raise InputError(f"{where}: lapses and windows take 0..{MAX_CYCLES_OF_PLACE} cycles, not {max(cycles)}")
    if len(lapses.lines) > MAX_LINES_OF_PLACE or lapses.lines != longest_windows(lapses.lines):
        raise InputError(f"{where}: up to {MAX_LINES_OF_PLACE} different lines, in the order of their names")


def merge_groups(groups: Iterable[tuple[Program, int]]) -> tuple[tuple[Program, int], ...]:
    """Return the programs in order of appearance. Equal programs are put together, under all that they assume.

    The one program asks of DRAM what the worst of them asks at each place, and it has lapses that cover all of theirs.
    """
    counts: dict[Program, int] = {}
    merged: dict[Program, Program] = {}
    for program, warps in groups:
        counts[program] = counts.get(program, 0) + warps
        merged[program] = _cover(merged.get(program, program), program)
    return tuple((merged[program], warps) for program, warps in counts.items())


def _cover(one: Program, other: Program) -> Program:
    """Return a program that stands for two that are equal but for what is not compared."""
    notes = dict.fromkeys(one.assumptions) | dict.fromkeys(other.assumptions)
    accesses, lapses = one.accesses, one.lapses
    # one of the two may be empty
    if accesses != other.accesses:
        accesses = tuple(map(Access.worst, zip_longest(accesses, other.accesses)))
    if lapses != other.lapses:
        both = zip_longest(lapses, other.lapses, fillvalue=NO_LAPSES)
        lapses = tuple(mine | its for mine, its in both)
    return one.assuming(notes).asking(accesses).lapsing(lapses)


def merge_neighbours(groups: Iterable[tuple[Program, int]]) -> tuple[tuple[Program, int], ...]:
    """Return the programs in order. Equal programs are put together only where one follows the other.

    >>> c, load = Program.chain("C"), Program.chain("L")
    >>> [(str(program), warps) for program, warps in merge_neighbours([(c, 1), (c, 1), (load, 1), (c, 2)])]
    [('C', 2), ('L', 1), ('C', 2)]
    """
    return tuple(run for _, equal in groupby(groups, key=lambda group: group[0]) for run in merge_groups(equal))
