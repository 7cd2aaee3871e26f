"""New claims held against known ones: which bounds they beat, which they contradict, and what is known then."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from makespan.many.library.claims import BoundClaim
from makespan.many.library.evidence import ClaimEvidence, ClaimProofs
from makespan.many.library.standing import InstanceStanding, standings


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
