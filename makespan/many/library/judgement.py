"""Claims about the instances of a library: their evidence, the best of them, and new ones held against known ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from makespan.host.text_file import is_file, read_bytes
from makespan.many.library.claims import BoundClaim
from makespan.verify import Outcome, Refused, digest, execute, parse, verify
from makespan.verify.reading import MOST_BYTES
from makespan.verify.refusal import TooMuchWork

# What speaks for a claim


class ClaimEvidence(StrEnum):
    """The kinds of evidence for a bound; `word` means that only the claimant says so."""

    WORD = "word"
    SCHEDULE = "schedule"
    BUNDLE = "bundle"


class ClaimProofs(NamedTuple):
    """The evidence for the two bounds of a claim."""

    lower: ClaimEvidence = ClaimEvidence.WORD
    upper: ClaimEvidence = ClaimEvidence.WORD


def check_claim(claim: BoundClaim, question: Mapping[str, Any], bundles: Path | None) -> ClaimProofs:
    """Return the evidence that holds for a claim about `question`, an instance as in a bundle.

    Args:
        bundles: a folder with bundles as `DIGEST.json`; one that is not there proves nothing.

    Raises:
        Refused: the claim is about another question, or its evidence does not prove it.
        InputError: a bundle that cannot be read.
    """
    # The digest ties the claim to the question: a changed instance must not inherit old bounds.
    if claim.digest != digest(dict(question)):
        raise Refused(
            f"about another question: its digest is {claim.digest:.12}..., not {digest(dict(question)):.12}..."
        )
    if claim.lower is not None and claim.upper is not None and claim.lower > claim.upper:
        raise Refused(f"lower {claim.lower} exceeds upper {claim.upper}")
    found = ClaimProofs()
    if claim.schedule is not None and claim.lower is not None:
        try:  # a schedule that takes so long is a lower bound of the worst case
            execute(question, claim.schedule, claim.lower)
        except TooMuchWork:
            raise Refused("the schedule is too large for this checker") from None
        found = ClaimProofs(lower=ClaimEvidence.SCHEDULE)
    path = None if bundles is None or claim.bundle is None else bundles / f"{claim.bundle}.json"
    return found if path is None or not is_file(path) else _of_bundle(path, claim, found)


def _of_bundle(path: Path, claim: BoundClaim, found: ClaimProofs) -> ClaimProofs:
    document: Any = parse(read_bytes(path, "bundle", MOST_BYTES))
    verdict = verify(document)
    if verdict.outcome is Outcome.REJECTED:
        raise Refused(f"{path}: {verdict.reason}")
    if document["sha256"] != claim.bundle or digest(document["instance"]) != claim.digest:
        raise Refused(f"{path}: this bundle is another one, or about another question")
    # A bundle proves a bound of a claim if its own is at least as sharp.
    if claim.lower is not None and verdict.lower is not None and verdict.lower >= claim.lower:
        found = found._replace(lower=ClaimEvidence.BUNDLE)
    if claim.upper is not None and verdict.upper is not None and verdict.upper <= claim.upper:
        found = found._replace(upper=ClaimEvidence.BUNDLE)
    return found


# All claims about an instance


@dataclass(frozen=True)
class InstanceStanding:
    """All claims about one instance, in the order in which they were made; the first of equal ones counts."""

    claims: tuple[BoundClaim, ...]

    @cached_property
    def lower(self) -> BoundClaim | None:
        """Return the claim with the largest lower bound."""
        # `max` keeps the first of equal ones, who made the claim first.
        return max(
            (claim for claim in self.claims if claim.lower is not None),
            key=lambda claim: claim.lower or 0,
            default=None,
        )

    @cached_property
    def upper(self) -> BoundClaim | None:
        """Return the claim with the smallest upper bound."""
        found = [claim for claim in self.claims if claim.upper is not None]
        return min(found, key=lambda claim: claim.upper or 0, default=None)

    @property
    def interval(self) -> tuple[int | None, int | None]:
        """Return the best known bounds, in cycles; None where there is none."""
        lower, upper = self.lower, self.upper
        return None if lower is None else lower.lower, None if upper is None else upper.upper

    @property
    def is_contradiction(self) -> bool:
        """Return whether two claims exclude each other, so that one of them is wrong."""
        lower, upper = self.interval
        return lower is not None and upper is not None and lower > upper

    @property
    def is_solved(self) -> bool:
        """Return whether the worst case is known."""
        lower, upper = self.interval
        return lower is not None and lower == upper

    @property
    def gap(self) -> float | None:
        """Return how far the upper bound is above the lower one, in percent of it."""
        lower, upper = self.interval
        return None if lower is None or upper is None else 100 * (upper - lower) / lower

    @property
    def best(self) -> tuple[BoundClaim, ...]:
        """Return the claims with the best known bounds, at most one for each side."""
        return tuple(claim for claim in self.claims if claim is self.lower or claim is self.upper)

    def beaten_by(self, other: "InstanceStanding") -> Iterator[tuple[str, int, BoundClaim]]:
        """Yield the bounds, `lower` or `upper`, that another standing improves: with what is known, and the claim."""
        low, high = other.lower, other.upper
        if low and self.lower and (low.lower or 0) > (known := self.lower.lower or 0):
            yield "lower", known, low
        if high and self.upper and (high.upper or 0) < (known := self.upper.upper or 0):
            yield "upper", known, high


def standings(names: Sequence[str], claims: Iterable[BoundClaim]) -> Mapping[str, InstanceStanding]:
    """Return the claims about each of these instances; claims about others are left out."""
    found: dict[str, list[BoundClaim]] = {name: [] for name in names}
    for claim in claims:
        if claim.instance in found:
            found[claim.instance].append(claim)
    return {name: InstanceStanding(tuple(about)) for name, about in found.items()}


# New claims and known ones


class BeatenBound(NamedTuple):
    """A known bound, `lower` or `upper`, that a new claim improves."""

    instance: str
    side: str
    known: int
    claim: BoundClaim

    def __str__(self) -> str:
        better = f"{self.side} {getattr(self.claim, self.side)} by {self.claim.who}"
        return f"BEATEN: {self.instance}: {better}, {self.known} was known"


class ClaimContradiction(NamedTuple):
    """Two claims that exclude each other: a schedule is longer than the upper bound."""

    instance: str
    lower: BoundClaim
    upper: BoundClaim

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        return (
            f"CONTRADICTION: {self.instance}: some schedule takes {low.lower} cycles, says {low.who}, and none more"
            f" than {high.upper}, says {high.who} ({high.evidence or 'no evidence named'})"
        )


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """The bounds that new claims improve, and the claims that exclude each other."""

    beaten: tuple[BeatenBound, ...]
    contradictions: tuple[ClaimContradiction, ...]


def judge_claims(names: Sequence[str], known: Iterable[BoundClaim], new: Iterable[BoundClaim]) -> ClaimJudgement:
    """Hold new claims against known ones, and all of them against each other."""
    before, after = standings(names, known), standings(names, new)
    beaten: list[BeatenBound] = []
    contradictions: list[ClaimContradiction] = []
    for name in names:
        together = InstanceStanding(before[name].claims + after[name].claims)
        # Where one claim must be wrong, no bound is called beaten.
        if together.is_contradiction and together.lower is not None and together.upper is not None:
            contradictions.append(ClaimContradiction(name, together.lower, together.upper))
            continue
        beaten += (BeatenBound(name, *better) for better in before[name].beaten_by(after[name]))
    return ClaimJudgement(tuple(beaten), tuple(contradictions))


def backed_claim(claim: BoundClaim, proofs: ClaimProofs) -> BoundClaim | None:
    """Return a claim with the bounds for which there is more than a word; None if there is no such bound."""
    lower = claim.lower if proofs.lower is not ClaimEvidence.WORD else None
    upper = claim.upper if proofs.upper is not ClaimEvidence.WORD else None
    if lower is None and upper is None:
        return None
    return replace(
        claim,
        lower=lower,
        upper=upper,
        evidence=None if upper is None else claim.evidence,
        bundle=claim.bundle if ClaimEvidence.BUNDLE in proofs else None,
        schedule=None if lower is None else claim.schedule,
    )


def best_claims(names: Sequence[str], claims: Iterable[BoundClaim]) -> tuple[BoundClaim, ...]:
    """Return the fewest claims with the best bounds of each instance, in the order of `names`.

    Args:
        claims: those that are known first: of equal ones the first stays.
    """
    found = standings(names, claims)  # one claim may have both best bounds
    return tuple(claim for name in names for claim in found[name].best)
