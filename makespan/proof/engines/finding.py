"""What one engine contributes: any of a witness, an upper bound, and the best case."""

from dataclasses import dataclass

from makespan.model.certificate import Certificate, Weights
from makespan.model.result import Bounds
from makespan.model.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Finding:
    """Parts of an answer; what an engine could not prove in time is None.

    Args:
        witness: a schedule; its length is a lower bound on the worst case once it has been replayed.
        upper: a proven upper bound on the worst case, in cycles.
        evidence: what proves `upper`: an `Upper`, or the name of the engine where nobody else can prove it again.
        certificate: the potentials that prove `upper`, where these do.
        weights: of pairs, where these do.
        best_case: proven interval of the shortest schedule.
    """

    witness: Schedule | None = None
    upper: int | None = None
    evidence: str | None = None
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    best_case: Bounds | None = None
