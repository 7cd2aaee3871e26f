"""Two schedulers that share a group of 32 lanes: how their patterns of single and dual issues mesh.

A pattern is a sequence of issue cycles: 1 is one FFMA on the scheduler's own lanes, 2 is two FFMAs, the second on the
shared lanes, 0 is a cycle without any. A scheduler that does not get the shared lanes loses the cycle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations

from makespan.host.errors import InputError

Pattern = tuple[int, ...]

# The choices of two single issues among four cycles: six FFMAs in four cycles.
PATTERNS: tuple[Pattern, ...] = tuple(sorted(set(permutations((1, 1, 2, 2)))))


class Arbiter(StrEnum):
    """The rule by which one of two schedulers gets the shared lanes when both want them."""

    FIXED = "fixed"  # always the first scheduler of the pair
    ROUND_ROBIN = "round-robin"  # the one that lost last time


@dataclass(frozen=True, slots=True)
class Bubbles:
    """The issue cycles that a block loses if it starts or ends with a dual issue.

    A calibration of published bars, for which the sources give no mechanism.
    """

    start: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        if min(self.start, self.end) < 0:
            raise InputError(f"bubbles are cycles, not {self.start} and {self.end}")

    def of(self, pattern: Pattern) -> int:
        """Return the cycles that are lost in each repetition of `pattern`."""
        return self.start * (pattern[0] == 2) + self.end * (pattern[-1] == 2)


def spell(pattern: Sequence[int]) -> str:
    """Return a pattern as it is written: `1-2-2-1`."""
    return "-".join(map(str, pattern))


def parse_pattern(text: str, *, ranked: bool = False) -> Pattern:
    """Return the pattern that `spell` wrote.

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
    if sum(pattern) > 6:  # a block has seven slots, one of which stays free
        raise InputError(f"pattern {text} has {sum(pattern)} FFMAs; a block holds six and a free slot")
    return pattern
