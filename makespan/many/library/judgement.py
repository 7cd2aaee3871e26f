"""New claims against what is known: which bounds they beat, which they contradict, and what is known then."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from makespan.many.library.claims import Claim
from makespan.many.library.evidence import Proof, Proofs
from makespan.many.library.standing import Standing, standings


class Beaten(NamedTuple):
    """A side of what is known, `lower` or `upper`, that a claim is sharper at."""

    instance: str
    side: str
    known: int
    claim: Claim

    def __str__(self) -> str:
        better = f"{self.side} {getattr(self.claim, self.side)} by {self.claim.who}"
        return f"BEATEN: {self.instance}: {better}, {self.known} was known"


class Contradiction(NamedTuple):
    """Two claims of which one is wrong: a schedule that is longer than none can be."""

    instance: str
    lower: Claim
    upper: Claim

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        return (
            f"CONTRADICTION: {self.instance}: some schedule takes {low.lower} cycles, says {low.who}, and none more"
            f" than {high.upper}, says {high.who} ({high.evidence or 'no evidence named'})"
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What claims come to beside what is known."""

    beaten: tuple[Beaten, ...]
    contradictions: tuple[Contradiction, ...]


def judge(names: Sequence[str], known: Iterable[Claim], new: Iterable[Claim]) -> Judgement:
    """Hold new claims against known ones, and all of them against each other."""
    before, after = standings(names, known), standings(names, new)
    beaten: list[Beaten] = []
    contradictions: list[Contradiction] = []
    for name in names:
        together = Standing(before[name].claims + after[name].claims)
        if together.is_contradiction and together.lower is not None and together.upper is not None:
            contradictions.append(Contradiction(name, together.lower, together.upper))
            continue
        beaten += (Beaten(name, *better) for better in before[name].beaten_by(after[name]))
    return Judgement(tuple(beaten), tuple(contradictions))


def backed(claim: Claim, proofs: Proofs) -> Claim | None:
    """Return the sides of a claim that more than a word stands for; None if there is no such side."""
    lower = claim.lower if proofs.lower is not Proof.WORD else None
    upper = claim.upper if proofs.upper is not Proof.WORD else None
    if lower is None and upper is None:
        return None
    return replace(
        claim,
        lower=lower,
        upper=upper,
        evidence=None if upper is None else claim.evidence,
        bundle=claim.bundle if Proof.BUNDLE in proofs else None,
        schedule=None if lower is None else claim.schedule,
    )


def best(names: Sequence[str], claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return the fewest claims with the best bounds of each instance, in the order of `names`.

    Args:
        claims: those that are known first: of equal ones the first stays.
    """
    found = standings(names, claims)
    return tuple(claim for name in names for claim in found[name].best)
