"""The verdict on a bundle of one SM or of a whole GPU: which of its claims follow from its evidence."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from makespan.host.errors import BrokenPromiseError
from makespan.model.result import Upper
from makespan.verify import gpu_reading, gpu_witness, instances, lapses, reading, theorem_g
from makespan.verify.gpu_reading import ONE_WAVE, THEOREM_G, GpuBundle
from makespan.verify.lower_bounds import least_makespan, least_makespan_of_gpu, least_with_queues
from makespan.verify.machine_form import has_queues
from makespan.verify.outcome import (
    UNCHECKED,
    UNCHECKED_OF_GPU,
    BundleClaim,
    Interval,
    Outcome,
    Verdict,
    best_case_gaps,
    check_best_case,
    summary,
    within,
    worst_case,
)
from makespan.verify.pessimistic import pessimistic as pessimistic_bound
from makespan.verify.proving import RULES, UpperBoundProver
from makespan.verify.reading import Bundle, SmClaim
from makespan.verify.refusal import ProofBudget, Refused
from makespan.verify.rule import MOST_STATES
from makespan.verify.witness import replay

MOST_PROOFS = 10  # so many proofs of the largest size may be checked
_HOW = {ONE_WAVE: "those of its SMs, which have all blocks from the beginning", THEOREM_G: "theorem G"}
_ProofName = TypeVar("_ProofName", bound=str)


def verify(document: object, *, most_states: int = MOST_STATES) -> Verdict:
    """Check every claim of a bundle.

    Args:
        document: what `parse` returned.
        most_states: how many states may be enumerated where only an enumeration decides.

    Raises:
        BrokenPromiseError: a proof and a schedule contradict each other, a bug of this checker.
    """
    claim: BundleClaim | None = None
    try:
        if gpu_reading.speaks_of(document):
            gpu_bundle = gpu_reading.bundle(document)
            claim = gpu_bundle.claim
            return _verdict_of_gpu(gpu_bundle, most_states).about(gpu_bundle.gpu, gpu_bundle.said)
        bundle = reading.bundle(document)
        claim = bundle.claim
        return _verdict(bundle, most_states).about(bundle.instance, bundle.said)
    except Refused as refusal:
        unchecked = UNCHECKED_OF_GPU if gpu_reading.speaks_of(document) else UNCHECKED
        return Verdict(Outcome.REJECTED, " ".join(str(refusal).split())[:300], claim, unchecked=unchecked)


def execute(instance: object, witness: object, cycles: int) -> None:
    """Execute a schedule alone; it and its instance are written as in a bundle of one SM or of a whole GPU.

    Raises:
        Refused: something is not as in a bundle, breaks a rule of the machine or the dispatcher, is too large, or does
            not take the stated `cycles`.
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


def _verdict(bundle: Bundle, most_states: int) -> Verdict:
    effort = ProofBudget(MOST_PROOFS)
    inner = _verdict_without_lapses(bundle, most_states, effort)
    if bundle.lapses is None:
        return inner
    claim, upper = bundle.claim, lapses.prove(bundle.lapses, effort)
    _check_history(claim)
    gaps = [f"without lapses {inner.reason}"] * (inner.outcome is Outcome.UNPROVEN) + _upper_gaps(claim, upper)
    # a schedule without lapses is one of the machine with them, and no schedule of either falls short of these cycles
    least = least_with_queues if has_queues(bundle.instance) else least_makespan
    shortest = least(bundle.bound.instance), inner.best_case[1] if inner.best_case else claim.lower
    best_case = None if claim.best_case is None else check_best_case(shortest, claim.best_case)
    gaps += best_case_gaps(best_case, claim.best_case)
    how = f"{RULES[Upper(bundle.lapses.evidence)].words} and what lapses add to it"
    proven = f"{worst_case(claim)}, proven by {how}; without lapses {inner.reason}"
    outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
    return Verdict(outcome, "; ".join(gaps) or proven, claim, inner.lower, ((Upper.LAPSES, upper),), best_case)


def _upper_gaps(claim: BundleClaim, upper: int) -> list[str]:
    return [f"upper {claim.upper} reported by {claim.evidence}, re-proved only to {upper}"] * (upper > claim.upper)


def _verdict_without_lapses(bundle: Bundle, most_states: int, effort: ProofBudget) -> Verdict:
    """Return the verdict on the claim about the same warps on schedulers that never lapse."""
    instance, claim = bundle.bound.instance, bundle.without_lapses
    prover = UpperBoundProver(replace(bundle.bound, most_states=most_states, effort=effort))
    lower = replay(instance, bundle.witness)  # cheap claims first
    pessimistic = pessimistic_bound(instance)
    # a real multiprocessor's may be larger: it is the same theorem, with a choice of prices
    if pessimistic != claim.pessimistic and not (pessimistic < claim.pessimistic and instance.is_multiprocessor):
        raise Refused(f"pessimistic is {pessimistic}, not {claim.pessimistic}")
    prover.prove()
    best_case = None if claim.best_case is None else _best_case(prover, claim.best_case, lower)
    upper = prover.upper
    if upper < lower:  # a schedule that occurs refutes a proof: one of the two is wrong, and both are ours
        raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
    _check_history(claim)
    gaps = _upper_gaps(claim, upper) + best_case_gaps(best_case, claim.best_case)
    reason = "; ".join(gaps) or summary(claim, RULES[_best_proof(prover.uppers, claim)].words)
    outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
    return Verdict(outcome, reason, claim, lower, tuple(prover.uppers.items()), best_case)


def _best_case(prover: UpperBoundProver, claimed: Interval, lower: int) -> Interval:
    """Return what is proven of the shortest schedule, with as much work as the claim needs."""
    proven = least_makespan(prover.claim.instance), lower
    if not within(proven, claimed):
        prover.find_shortest()
    if (shortest := prover.shortest) is not None:
        proven = shortest, shortest
    return check_best_case(proven, claimed)


def _best_proof(uppers: Mapping[_ProofName, int], claim: BundleClaim) -> _ProofName:
    """Return the proof that the verdict names: one that suffices, and the one that the claim names first."""
    return min(uppers, key=lambda proof: (uppers[proof] > claim.upper, proof != claim.evidence))


def _check_history(claim: SmClaim) -> None:
    # no step gives up what the one before had proven, and the last one is the result; so all of them enclose it
    for number, (before, after) in enumerate(pairwise(claim.history), start=2):
        if not before.lower <= after.lower <= after.upper <= before.upper:
            raise Refused(f"history: {after.lower}..{after.upper} of step {number} is not within the step before")
    if claim.history:
        last = claim.history[-1]
        if (last.lower, last.upper, last.evidence) != (claim.lower, claim.upper, claim.evidence):
            raise Refused(f"history: it ends with {last.lower}..{last.upper} by {last.evidence}, not with the result")


def _verdict_of_gpu(bundle: GpuBundle, most_states: int) -> Verdict:
    inner = _verdict_of_gpu_without_lapses(bundle, most_states)
    if bundle.asked is bundle.gpu:
        return inner
    gpu, claim = bundle.gpu, bundle.claim
    if claim.evidence == ONE_WAVE:  # that no SM knows of the others was checked for the claim without lapses
        effort = ProofBudget(MOST_PROOFS)
        of_sms = (lapses.bound(gpu.sm(blocks), said.weights, effort) for blocks, said in bundle.sms.items())
        upper = gpu.dispatch + max(of_sms)
    else:
        upper = theorem_g.bound(gpu, bundle.weights)
    gaps = [f"without lapses {inner.reason}"] * (inner.outcome is Outcome.UNPROVEN) + _upper_gaps(claim, upper)
    # a schedule without lapses is one of the GPU with them, and no schedule of either falls short of these cycles
    shortest = least_makespan_of_gpu(bundle.asked), inner.best_case[1] if inner.best_case else claim.lower
    best_case = None if claim.best_case is None else check_best_case(shortest, claim.best_case)
    gaps += best_case_gaps(best_case, claim.best_case)
    outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
    how = f"{_HOW[claim.evidence]} and what lapses add to it"
    reason = "; ".join(gaps) or f"{worst_case(claim)}, proven by {how}; without lapses {inner.reason}"
    return Verdict(outcome, reason, claim, inner.lower, ((claim.evidence, upper),), best_case, UNCHECKED_OF_GPU)


def _verdict_of_gpu_without_lapses(bundle: GpuBundle, most_states: int) -> Verdict:
    """Return the verdict on the claim about the same GPU on schedulers that never lapse."""
    gpu, claim = bundle.asked, bundle.without_lapses
    lower = least_makespan_of_gpu(gpu) if bundle.witness is None else gpu_witness.replay(gpu, bundle.witness)
    if bundle.witness is not None and lower != claim.lower:
        raise Refused(f"the witness takes {lower} cycles, the lower bound says {claim.lower}")
    uppers = {THEOREM_G: theorem_g.bound(gpu, bundle.weights)}
    if claim.evidence == ONE_WAVE:
        uppers[ONE_WAVE] = _one_wave(bundle, most_states)
    if (upper := min(uppers.values())) < lower:
        raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
    gaps = [f"lower {claim.lower} reported without a witness, re-proved only to {lower}"] * (lower < claim.lower)
    gaps += _upper_gaps(claim, upper)
    known = upper if bundle.witness is None else lower
    shortest = known if bundle.shortest is None else min(known, gpu_witness.replay(gpu, bundle.shortest))
    claimed = claim.best_case
    best_case = None if claimed is None else check_best_case((least_makespan_of_gpu(gpu), shortest), claimed)
    gaps += best_case_gaps(best_case, claimed)
    outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
    reason = "; ".join(gaps) or summary(claim, _HOW[_best_proof(uppers, claim)], has_witness=bundle.witness is not None)
    return Verdict(outcome, reason, claim, lower, tuple(uppers.items()), best_case, UNCHECKED_OF_GPU)


def _one_wave(bundle: GpuBundle, most_states: int) -> int:
    """Return the largest bound of an SM with any number of blocks that it may have, each proven by its own evidence."""
    # In one wave no SM knows of the others; a worst case need not grow with the blocks, so all numbers are looked at.
    gpu, claim = bundle.asked, bundle.without_lapses
    if gpu.dram:
        raise Refused(f"{ONE_WAVE} proves nothing where DRAM may be busy: an SM may take longer than its latencies say")
    if gpu.dispatch and max(bundle.sms) > 1:
        raise Refused(f"{ONE_WAVE} proves nothing where blocks of an SM may begin in different cycles")
    claimed = gpu.dispatch + max(said.upper for said in bundle.sms.values())
    if claimed > claim.upper:
        raise Refused(f"upper {claim.upper} reported by {ONE_WAVE}, but an SM may take up to {claimed} cycles")
    effort, longest = ProofBudget(MOST_PROOFS), 0
    for said in bundle.sms.values():
        prover = UpperBoundProver(replace(said, most_states=most_states // len(bundle.sms), effort=effort))
        prover.prove()
        longest = max(longest, prover.upper)
    return gpu.dispatch + longest
