"""The verdict on a bundle of a whole GPU: which of its claims follow from its evidence."""

from typing import Any, TypeGuard

from makespan.host.errors import BrokenPromiseError
from makespan.verify import gpu_reading, theorem_g
from makespan.verify.gpu_reading import ONE_WAVE, THEOREM_G, GpuBundle
from makespan.verify.gpu_witness import replay
from makespan.verify.lower_bounds import least_makespan_of_gpu
from makespan.verify.outcome import (
    UNCHECKED_OF_GPU,
    BundleClaim,
    Interval,
    Outcome,
    Verdict,
    best_case_gaps,
    check_best_case,
    summary,
)
from makespan.verify.proving import UpperBoundProver
from makespan.verify.refusal import ProofBudget, Refused

MOST_PROOFS = 10  # of the largest size
_HOW = {ONE_WAVE: "those of its SMs, which have all blocks from the beginning", THEOREM_G: "theorem G"}


def speaks_of(document: object) -> TypeGuard[dict[str, Any]]:
    """Return whether it is a bundle of a whole GPU, of any version."""
    schema = document.get("schema") if isinstance(document, dict) else None
    return isinstance(schema, str) and schema.startswith("makespan.gpu-bundle/")


def verify(document: dict[str, Any], most_states: int) -> Verdict:
    """Check every claim of a bundle of a whole GPU.

    Raises:
        BrokenPromiseError: a proof and a schedule contradict each other, a bug of this checker.
    """
    claim = None
    try:
        bundle = gpu_reading.bundle(document)
        claim = bundle.claim
        return _verdict(bundle, most_states).about(bundle.gpu, bundle.said)
    except Refused as refusal:
        reason = " ".join(str(refusal).split())[:300]
        return Verdict(Outcome.REJECTED, reason, claim, unchecked=UNCHECKED_OF_GPU)


def _verdict(bundle: GpuBundle, most_states: int) -> Verdict:
    gpu, claim = bundle.gpu, bundle.claim
    lower = least_makespan_of_gpu(gpu) if bundle.witness is None else replay(gpu, bundle.witness)
    if bundle.witness is not None and lower != claim.lower:
        raise Refused(f"the witness takes {lower} cycles, the lower bound says {claim.lower}")
    uppers = {THEOREM_G: theorem_g.bound(gpu, bundle.weights)}
    if claim.evidence == ONE_WAVE:
        uppers[ONE_WAVE] = _one_wave(bundle, most_states)
    if (upper := min(uppers.values())) < lower:
        raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
    gaps = []
    if lower < claim.lower:
        gaps.append(f"lower {claim.lower} reported without a witness, re-proved only to {lower}")
    if upper > claim.upper:
        gaps.append(f"upper {claim.upper} reported by {claim.evidence}, re-proved only to {upper}")
    lengths = [upper if bundle.witness is None else lower]
    if bundle.shortest is not None:
        lengths.append(replay(gpu, bundle.shortest))
    best_case = _best_case(bundle, min(lengths))
    gaps += best_case_gaps(best_case, claim.best_case)
    outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
    reason = "; ".join(gaps) or summary(claim, _HOW[_name(uppers, claim)], has_witness=bundle.witness is not None)
    return Verdict(outcome, reason, claim, lower, tuple(uppers.items()), best_case, UNCHECKED_OF_GPU)


def _name(uppers: dict[str, int], claim: BundleClaim) -> str:
    """Return the proof that the verdict names."""
    return min(uppers, key=lambda proof: (uppers[proof] > claim.upper, proof != claim.evidence))


def _one_wave(bundle: GpuBundle, most_states: int) -> int:
    """Return the largest bound of an SM with any number of blocks that it may have, each proven by its own evidence.

    In one wave no SM knows of the others; a worst case need not grow with the blocks, so all numbers are looked at.
    """
    gpu, claim = bundle.gpu, bundle.claim
    if gpu.dram:
        raise Refused(f"{ONE_WAVE} proves nothing where DRAM may be busy: an SM may take longer than its latencies say")
    if gpu.dispatch and max(bundle.sms) > 1:
        raise Refused(f"{ONE_WAVE} proves nothing where blocks of an SM may begin in different cycles")
    claimed = gpu.dispatch + max(said.upper for said in bundle.sms.values())
    if claimed > claim.upper:
        raise Refused(f"upper {claim.upper} reported by {ONE_WAVE}, but an SM may take up to {claimed} cycles")
    effort, longest = ProofBudget(MOST_PROOFS), 0
    for said in bundle.sms.values():
        prover = UpperBoundProver(*said, most_states=most_states // len(bundle.sms), effort=effort)
        prover.prove()
        longest = max(longest, prover.upper)
    return gpu.dispatch + longest


def _best_case(bundle: GpuBundle, some: int) -> Interval | None:
    """Return what is proven of the shortest schedule, where `some` schedule takes no more than so many cycles."""
    claimed = bundle.claim.best_case
    return None if claimed is None else check_best_case((least_makespan_of_gpu(bundle.gpu), some), claimed)
