"""The verdict of the checker: the claim of a bundle, and what was proven again."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from makespan.model.assumptions import Assumption
from makespan.verify.conditions import of_bundle, of_instance
from makespan.verify.refusal import Refused

Interval = tuple[int, int]

UNCHECKED = (
    "other assumptions", "interrupted", "seconds", "backend", "versions", "the machine's name",
    "when, by whom and how the steps of the history were found",
)  # fmt: skip  # what a result says and no bundle can prove

UNCHECKED_OF_GPU = ("other assumptions", "interrupted", "seconds", "versions", "the machine's name")


@dataclass(frozen=True, slots=True)
class BundleClaim:
    """The numbers that a result claims, in cycles; `best_case` is an interval."""

    lower: int
    upper: int
    evidence: str
    best_case: Interval | None


class Outcome(StrEnum):
    """The outcome of a check; `unproven` means that nothing is wrong, but not all could be re-proved within limits."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The claim of a bundle and what was proven again, in cycles.

    Args:
        reason: one line: what is proven, or why not.
        claim: what the result says; None when it could not be read.
        lower: makespan of the witness, executed anew, or of a whole GPU without one what no schedule falls short of;
            None when there is no evidence.
        uppers: the upper bounds that were proven again, by the name of their proof.
        best_case: interval of the shortest schedule that was proven again; None when nothing is claimed about it.
        unchecked: what the result says besides.
        subject: which warps on which machine, or which blocks on which SMs, the number is about.
        conditions: those that follow from the instance; they were checked.
        said: the conditions that are the word of the bundle; None where an older bundle says them in no known way.
    """

    outcome: Outcome
    reason: str
    claim: BundleClaim | None = None
    lower: int | None = None
    uppers: tuple[tuple[str, int], ...] = ()
    best_case: Interval | None = None
    unchecked: tuple[str, ...] = UNCHECKED
    subject: str = ""
    conditions: tuple[str, ...] = ()
    said: tuple[str, ...] | None = ()

    def about(self, subject: object, said: Iterable[Assumption] | None) -> "Verdict":
        """Return the same verdict about this subject, under what the result assumes."""
        printable = "".join(letter if letter.isprintable() else "?" for letter in str(subject))
        if said is None:
            return replace(self, subject=printable, said=None)
        notes = tuple(said)
        return replace(self, subject=printable, conditions=of_instance(notes), said=of_bundle(notes))

    @property
    def upper(self) -> int | None:
        """Return the smallest upper bound that was proven again."""
        return min((value for _, value in self.uppers), default=None)

    def __str__(self) -> str:
        under = f" {', '.join(self.conditions)}" if self.conditions else ""
        return f"{self.outcome}{under}: {self.reason}"


def within(inner: Interval, outer: Interval) -> bool:
    """Return whether one interval lies in the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def interval_text(interval: Interval) -> str:
    """Return an interval in words; a single number if it is one."""
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}..{interval[1]}"


def cycles(count: int) -> str:
    """Return a number of cycles in words."""
    return f"{count} cycle" if count == 1 else f"{count} cycles"


def best_case_gaps(proven: Interval | None, claimed: Interval | None) -> list[str]:
    """Return a list of the sentence that too little was proven of the best case; an empty one if all was."""
    if not proven or not claimed or within(proven, claimed):
        return []
    return [f"best case {interval_text(claimed)} reported, re-proved only to {interval_text(proven)}"]


def check_best_case(proven: Interval, claimed: Interval) -> Interval:
    """Return what was proven of the best case.

    Raises:
        Refused: it excludes all that is claimed.
    """
    if claimed[1] < proven[0] or claimed[0] > proven[1]:
        raise Refused(f"best case {interval_text(claimed)} is wrong: it is {interval_text(proven)}")
    return proven


def summary(claim: BundleClaim, how: str, *, has_witness: bool = True) -> str:
    """Return a sentence on a claim that was proven again, and by what; `how` names the proof of the upper bound."""
    executed = "the witness was executed" if has_witness else "no schedule is shorter, and none is shown"
    return f"{worst_case(claim)}; {executed}, the upper bound proven by {how}"


def worst_case(claim: BundleClaim) -> str:
    """Return the claim about the worst case in words."""
    worst = cycles(claim.upper)
    if claim.lower != claim.upper:
        worst = f"at least {claim.lower} and at most {worst}"
    return f"the worst case is {worst}"
