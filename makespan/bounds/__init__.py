"""Upper bounds that hold for every work-conserving schedule, and a lower bound on the best case."""

from makespan.bounds.best_case import least_possible
from makespan.bounds.closed_form import closed_form
from makespan.bounds.issue_slots import issue_slots
from makespan.bounds.pairing import pairs
from makespan.bounds.pessimistic import any_units, pessimistic
from makespan.bounds.phases import Phase, phases
from makespan.bounds.theorem_1s import theorem_1s
from makespan.bounds.theorem_e import theorem_e
from makespan.bounds.theorem_f import theorem_f
from makespan.bounds.theorem_l import theorem_l

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
