"""Upper bounds that hold for every work-conserving schedule, and a lower bound on the best case."""

from makespan.bounds.best_case import least_possible
from makespan.bounds.pairing import pairs, theorem_a
from makespan.bounds.pessimistic import any_units, pessimistic
from makespan.bounds.phases import Phase, phases

__all__ = ["Phase", "any_units", "least_possible", "pairs", "pessimistic", "phases", "theorem_a"]
