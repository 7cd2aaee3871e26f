"""What a checker says: the claim, and what was proven again."""

from dataclasses import dataclass
from enum import StrEnum

Interval = tuple[int, int]

UNCHECKED = (
    "assumptions", "interrupted", "seconds", "backend", "versions", "the machine's name",
    "when, by whom and how the steps of the history were found",
)  # fmt: skip
"""What a result says and no bundle can prove."""

UNCHECKED_OF_GPU = ("assumptions", "interrupted", "seconds", "versions", "the machine's name")
"""The same of a whole GPU."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a result says, in cycles; `best_case` is an interval."""

    lower: int
    upper: int
    evidence: str
    best_case: Interval | None


class Outcome(StrEnum):
    """`unproven`: nothing is wrong, but not every claim could be re-proved within the limits."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bundle claims and what was proven again, in cycles.

    Args:
        reason: one line: what is proven, or why not.
        claim: what the result says; None when it could not be read.
        lower: makespan of the witness, executed anew, or of a whole GPU without one what no schedule falls short of;
            None when there is no evidence.
        uppers: the upper bounds that were proven again, by the name of their proof.
        best_case: interval of the shortest schedule that was proven again; None when nothing is claimed about it.
        unchecked: what the result says besides.
    """

    outcome: Outcome
    reason: str
    claim: Claim | None = None
    lower: int | None = None
    uppers: tuple[tuple[str, int], ...] = ()
    best_case: Interval | None = None
    unchecked: tuple[str, ...] = UNCHECKED

    @property
    def upper(self) -> int | None:
        """The smallest upper bound that was proven again."""
        return min((value for _, value in self.uppers), default=None)

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


def within(inner: Interval, outer: Interval) -> bool:
    """Whether one interval lies in the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def interval_text(interval: Interval) -> str:
    """In words."""
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}..{interval[1]}"


def cycles(count: int) -> str:
    """In words."""
    return f"{count} cycle" if count == 1 else f"{count} cycles"


def summary(claim: Claim, how: str, *, has_witness: bool = True) -> str:
    """What a claim that was proven again says, and how it was."""
    worst = cycles(claim.upper)
    if claim.lower != claim.upper:
        worst = f"at least {claim.lower} and at most {worst}"
    executed = "the witness was executed" if has_witness else "no schedule is shorter, and none is shown"
    return f"the worst case is {worst}; {executed}, the upper bound proven by {how}"
