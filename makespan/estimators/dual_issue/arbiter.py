"""Two schedulers that share a group of 32 lanes: how their patterns of single and dual issues mesh.

A pattern is a sequence of issue cycles: 1 is one FFMA on the scheduler's own lanes, 2 is two FFMAs, the second on the
shared lanes, 0 is a cycle without any. A scheduler that does not get the shared lanes loses the cycle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations

from makespan.errors import InputError

Pattern = tuple[int, ...]

GROUPS_PER_PAIR = 3
"""Two schedulers with a group of lanes each, and the shared group: FFMAs of a pair per cycle at most."""
PATTERNS: tuple[Pattern, ...] = tuple(sorted(set(permutations((1, 1, 2, 2)))))
"""The choices of two single issues among four cycles: six FFMAs in four cycles."""


class Arbiter(StrEnum):
    """Who gets the shared lanes when both schedulers want them."""

    FIXED = "fixed"
    """always the first scheduler of the pair"""
    ROUND_ROBIN = "round-robin"
    """the one that lost last time"""


@dataclass(frozen=True, slots=True)
class Bubbles:
    """Issue cycles lost per block, if it starts or ends with a dual issue.

    A calibration of published bars, for which the sources give no mechanism.
    """

    start: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        if min(self.start, self.end) < 0:
            raise InputError(f"bubbles are cycles, not {self.start} and {self.end}")

    def of(self, pattern: Pattern) -> int:
        """Cycles lost per repetition of `pattern`."""
        return self.start * (pattern[0] == 2) + self.end * (pattern[-1] == 2)


@dataclass(frozen=True, slots=True)
class Meshing:
    """Two schedulers with one pattern.

    Args:
        efficiency: FFMAs executed, of the most that the lanes could.
        lost: issue cycles that each scheduler lost to the other.
    """

    efficiency: float
    lost: tuple[int, int]


def mesh(pattern: Pattern, *, cycles: int, arbiter: Arbiter = Arbiter.FIXED, bubbles: Bubbles | None = None) -> Meshing:
    """Execute a pattern on both schedulers of a pair, cycle by cycle."""
    slots = (*pattern, *[0] * (bubbles or Bubbles()).of(pattern))
    at, lost, executed, loser = [0, 0], [0, 0], 0, 1
    for _ in range(cycles):
        now = [slots[place % len(slots)] for place in at]
        waits = loser if now == [2, 2] else None
        for scheduler, issued in enumerate(now):
            if scheduler == waits:
                lost[scheduler] += 1
            else:
                executed += issued
                at[scheduler] += 1
        if waits is not None and arbiter is Arbiter.ROUND_ROBIN:
            loser = 1 - loser
    return Meshing(executed / (GROUPS_PER_PAIR * cycles), (lost[0], lost[1]))


def meshed_efficiency(pattern: Pattern, bubbles: Bubbles) -> float:
    """What `mesh` tends to with a fixed winner, for patterns of two single and two dual issues."""
    return 2 * sum(pattern) / (GROUPS_PER_PAIR * (len(pattern) + bubbles.of(pattern)))


def spell(pattern: Sequence[int]) -> str:
    """A pattern as it is written: `1-2-2-1`."""
    return "-".join(map(str, pattern))


def parse_pattern(text: str, *, ranked: bool = False) -> Pattern:
    """The pattern that `spell` wrote.

    Args:
        ranked: whether it must be one of the six of the ranking.

    Raises:
        InputError: other text, or another pattern.
    """
    parts = text.split("-")
    if not 1 <= len(parts) <= 6 or not set(parts) <= {"1", "2"}:
        raise InputError(f"{text!r} is no pattern of single and dual issues; write such as 1-2-2-1")
    pattern = tuple(map(int, parts))
    if ranked and sorted(pattern) != [1, 1, 2, 2]:
        raise InputError(f"pattern {text} is not in the ranking, which has two 1s and two 2s")
    if sum(pattern) > 6:
        raise InputError(f"pattern {text} has {sum(pattern)} FFMAs; a block holds six and a free slot")
    return pattern
