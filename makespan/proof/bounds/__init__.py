"""Upper bounds that hold for every work-conserving schedule, and a lower bound on the best case."""

from makespan.proof.bounds.best_case import least_possible
from makespan.proof.bounds.closed_form import closed_form
from makespan.proof.bounds.issue_slots import issue_slots
from makespan.proof.bounds.pairing import pairs
from makespan.proof.bounds.pessimistic import any_units, pessimistic
from makespan.proof.bounds.phases import Phase, phases
from makespan.proof.bounds.theorem_1s import theorem_1s
from makespan.proof.bounds.theorem_e import theorem_e
from makespan.proof.bounds.theorem_f import theorem_f
from makespan.proof.bounds.theorem_l import theorem_l

__all__ = [
    "Phase",
    "any_units",
    "closed_form",
    "issue_slots",
    "least_possible",
    "pairs",
    "pessimistic",
    "phases",
    "theorem_1s",
    "theorem_e",
    "theorem_f",
    "theorem_l",
]
