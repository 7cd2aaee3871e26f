"""Upper bounds that hold for every work-conserving schedule, and a lower bound on the best case."""

from collections.abc import Callable

from makespan.model.instance import Instance
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds.best_case import least_possible
from makespan.proof.bounds.issue_slots import issue_slots
from makespan.proof.bounds.lapses import lapse_proof, lapse_proofs
from makespan.proof.bounds.pairing import pairs
from makespan.proof.bounds.pessimistic import any_units, pessimistic
from makespan.proof.bounds.phases import Phase, phases
from makespan.proof.bounds.theorem_1s import theorem_1s
from makespan.proof.bounds.theorem_e import theorem_e
from makespan.proof.bounds.theorem_f import theorem_f
from makespan.proof.bounds.theorem_l import theorem_l

__all__ = [
    "CLOSED_FORMS",
    "Phase",
    "any_units",
    "closed_form",
    "issue_slots",
    "lapse_proof",
    "lapse_proofs",
    "least_possible",
    "pairs",
    "pessimistic",
    "phases",
    "theorem_1s",
    "theorem_e",
    "theorem_f",
    "theorem_l",
    "tightest",
]

CLOSED_FORMS: tuple[Callable[[Instance], UpperBound | None], ...] = (
    theorem_e,
    theorem_f,
    theorem_l,
    issue_slots,
)
"""All besides M^L + M^C, for which theorem 1S stands on real multiprocessors; each is None for an instance that it does
not know. `verify` has its own of each."""


def closed_form(instance: Instance) -> UpperBound:
    """Return the smallest of all closed-form bounds.

    >>> closed_form(Instance.of("CLLC", warps=8)).upper
    18
    """
    return tightest(instance, pessimistic(instance))


def tightest(instance: Instance, plain: int) -> UpperBound:
    """Return the smallest of M^L + M^C (`plain`) and all others, and of equal ones the one that leans on the least.

    Those that know no promise of a scheduler bound any scheduler, and so this one.
    """
    asked = dict.fromkeys((instance, instance.relaxed))
    evidence = Upper.THEOREM_1S if instance.is_multiprocessor else Upper.PESSIMISTIC
    found = [UpperBound(plain, evidence)]
    found += [bound for one in asked for form in CLOSED_FORMS if (bound := form(one)) is not None]
    return min(found, key=lambda one: one.upper)
