"""The verdict on a bundle of one SM: which of its claims follow from its evidence."""

from itertools import pairwise

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.verify import bounds, gpu_reading, gpu_verdict, gpu_witness, instances, lower_bounds, reading
from makespan.verify.outcome import Interval, Outcome, Verdict, best_case_gaps, check_best_case, summary, within
from makespan.verify.proving import MOST_STATES, PROOFS, UpperBoundProver
from makespan.verify.reading import Bundle, SmClaim
from makespan.verify.refusal import ProofBudget, Refused
from makespan.verify.witness import replay

MOST_PROOFS = 10  # so many proofs of the largest size may be checked


def verify(document: object, *, most_states: int = MOST_STATES) -> Verdict:
    """Check every claim of a bundle.

    Args:
        document: what `parse` returned.
        most_states: how many states may be enumerated where only an enumeration decides.

    Raises:
        BrokenPromiseError: a proof and a schedule contradict each other, a bug of this checker.
    """
    if gpu_verdict.speaks_of(document):
        return gpu_verdict.verify(document, most_states)
    claim = None
    try:
        bundle = reading.bundle(document)
        claim = bundle.claim
        return _BundleCheck(bundle, most_states).verdict().about(bundle.instance, bundle.said)
    except Refused as refusal:
        return Verdict(Outcome.REJECTED, " ".join(str(refusal).split())[:300], claim)


def execute(instance: object, witness: object, cycles: int) -> None:
    """Execute a schedule alone; it and its instance are written as in a bundle of one SM or of a whole GPU.

    Raises:
        Refused: something is not as in a bundle, breaks a rule of the machine or the dispatcher, is too large, or does
            not take so many `cycles`.
    """
    if isinstance(instance, dict) and "grids" in instance:
        gpu = gpu_reading.instance(instance)
        written = gpu_reading.schedule(witness, "witness", gpu)
        if written is None:
            raise Refused("there is no schedule")
        if (found := gpu_witness.replay(gpu, written)) != cycles:
            raise Refused(f"the schedule takes {found} cycles, not {cycles}")
        return
    question = instances.instance(instance)
    replay(question, reading.witness(witness, question, cycles))


class _BundleCheck:
    """The check of a bundle, claim by claim."""

    def __init__(self, bundle: Bundle, most_states: int) -> None:
        self.instance: Instance = bundle.instance
        self.claim: SmClaim = bundle.claim
        self.bundle = bundle
        self.prover = UpperBoundProver(
            bundle.instance,
            bundle.claim.upper,
            bundle.claim.evidence,
            bundle.certificate,
            bundle.weights,
            bundle.phases,
            bundle.partitions,
            best_case=bundle.claim.best_case is not None,
            most_states=most_states,
            effort=ProofBudget(MOST_PROOFS),
        )

    def verdict(self) -> Verdict:
        """Return the verdict; cheap claims are checked first."""
        claim, prover = self.claim, self.prover
        lower = replay(self.instance, self.bundle.witness)
        pessimistic = bounds.pessimistic(self.instance)
        # a real multiprocessor's may be larger: it is the same theorem, with a choice of prices
        if pessimistic != claim.pessimistic and not (pessimistic < claim.pessimistic and self.prover.is_multiprocessor):
            raise Refused(f"pessimistic is {pessimistic}, not {claim.pessimistic}")
        prover.prove()
        best_case = self._best_case(lower)
        upper = prover.upper
        if upper < lower:  # a schedule that occurs refutes a proof: one of the two is wrong, and both are ours
            raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
        _check_history(claim)
        unproven = f"upper {claim.upper} reported by {claim.evidence}, re-proved only to {upper}"
        gaps = [unproven] * (upper > claim.upper) + best_case_gaps(best_case, claim.best_case)
        outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
        uppers = tuple(prover.uppers.items())
        return Verdict(outcome, "; ".join(gaps) or self._summary(), claim, lower, uppers, best_case)

    def _best_case(self, lower: int) -> Interval | None:
        """Return what is proven of the shortest schedule, with as much work as the claim needs."""
        claimed = self.claim.best_case
        if claimed is None:
            return None
        proven = lower_bounds.least_makespan(self.instance), lower
        if not within(proven, claimed):
            self.prover.two_warps()
            self.prover.enumerate()
        if (shortest := self.prover.shortest) is not None:
            proven = shortest, shortest
        return check_best_case(proven, claimed)

    def _summary(self) -> str:
        uppers, claim = self.prover.uppers, self.claim
        name = min(uppers, key=lambda proof: (uppers[proof] > claim.upper, proof != claim.evidence))
        return summary(claim, PROOFS[name])


def _check_history(claim: SmClaim) -> None:
    # no step gives up what the one before had proven, and the last one is the result; so all of them enclose it
    for number, (before, after) in enumerate(pairwise(claim.history), start=2):
        if not before.lower <= after.lower <= after.upper <= before.upper:
            raise Refused(f"history: {after.lower}..{after.upper} of step {number} is not within the step before")
    if claim.history:
        last = claim.history[-1]
        if (last.lower, last.upper, last.evidence) != (claim.lower, claim.upper, claim.evidence):
            raise Refused(f"history: it ends with {last.lower}..{last.upper} by {last.evidence}, not with the result")
