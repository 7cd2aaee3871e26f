"""One question: these warps on this machine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from makespan.errors import InputError
from makespan.machine import PAPER, Machine
from makespan.program import Program

MAX_WARPS = 65_536
MAX_WARP_INSTRUCTIONS = 5_000_000


@dataclass(frozen=True, slots=True)
class Group:
    """`warps` identical warps; equal warps are interchangeable, which every engine exploits."""

    program: Program
    warps: int

    def __post_init__(self) -> None:
        if isinstance(self.warps, bool) or not isinstance(self.warps, int) or self.warps < 1:
            raise InputError(f"the number of warps must be a whole number from 1, not {self.warps!r}")
        if self.warps > MAX_WARPS:
            raise InputError(f"{self.warps} warps exceed the limit of {MAX_WARPS}")


@dataclass(frozen=True, slots=True)
class Instance:
    """Groups of warps, all different in their programs, that start together on one machine.

    Warps are numbered from 0 in the order of the groups.

    Raises:
        InputError: no warp, a class that the machine lacks, a program in two groups, or sizes past the limits.
    """

    groups: tuple[Group, ...]
    machine: Machine = PAPER

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("an instance needs at least one warp")
        if len({group.program for group in self.groups}) != len(self.groups):
            raise InputError("two groups have the same program: merge them into one")
        known = self.machine.capacities
        if missing := sorted(set().union(*(group.program.units for group in self.groups)) - set(known)):
            have = ", ".join(f"{unit}={capacity}" for unit, capacity in known.items())
            raise InputError(f"machine {self.machine.name!r} ({have}) has no units of class {', '.join(missing)}")
        size = sum(group.warps * group.program.end for group in self.groups)
        if self.warps > MAX_WARPS or size > MAX_WARP_INSTRUCTIONS:
            raise InputError(
                f"{self.warps} warps with {size} instructions in all exceed the limits of"
                f" {MAX_WARPS} warps and {MAX_WARP_INSTRUCTIONS} warp-instructions"
            )

    @classmethod
    def of(cls, program: Program | str, warps: int, machine: Machine = PAPER) -> "Instance":
        """`warps` identical warps of one program or instruction string."""
        chosen = Program.chain(program) if isinstance(program, str) else program
        return cls((Group(chosen, warps),), machine)

    @classmethod
    def merged(cls, groups: Iterable[tuple[Program, int]], machine: Machine = PAPER) -> "Instance":
        """Groups in order of appearance, equal programs put together."""
        counts: dict[Program, int] = {}
        for program, warps in groups:
            counts[program] = counts.get(program, 0) + Group(program, warps).warps
        return cls(tuple(Group(program, warps) for program, warps in counts.items()), machine)

    @property
    def warps(self) -> int:
        """All warps together."""
        return sum(group.warps for group in self.groups)

    @property
    def identical(self) -> bool:
        """Whether all warps run the same program."""
        return len(self.groups) == 1

    def group_of_warp(self) -> tuple[int, ...]:
        """The group number of every warp."""
        return tuple(number for number, group in enumerate(self.groups) for _ in range(group.warps))

    def programs(self) -> Iterator[Program]:
        """The program of every warp, in order."""
        for group in self.groups:
            for _ in range(group.warps):
                yield group.program
