"""Checks of what speaks for a claim: its schedule is executed, and its bundle is verified."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from makespan.host.text_file import is_file, read_bytes
from makespan.many.library.claims import BoundClaim
from makespan.verify import Outcome, Refused, digest, execute, parse, verify
from makespan.verify.reading import MOST_BYTES
from makespan.verify.refusal import TooMuchWork


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
