"""The sharpest upper bound that follows from the instance alone, without a search."""

from collections.abc import Callable

from makespan.bounds.issue_slots import issue_slots
from makespan.bounds.pessimistic import pessimistic
from makespan.bounds.theorem_e import theorem_e
from makespan.bounds.theorem_f import theorem_f
from makespan.bounds.theorem_l import theorem_l
from makespan.instance import Instance
from makespan.result import Upper, UpperBound

CLOSED_FORMS: tuple[Callable[[Instance], UpperBound | None], ...] = (theorem_e, theorem_f, theorem_l, issue_slots)
"""All besides M^L + M^C; each is None for an instance that it does not know. `verify.bounds` has its own of each."""


def closed_form(instance: Instance) -> UpperBound:
    """The smallest of all; among equal ones the one that leans on the fewest rules of the machine.

    Those that know no promise of a scheduler bound any scheduler, and so this one.

    >>> closed_form(Instance.of("CLLC", warps=8)).upper
    18
    """
    asked = dict.fromkeys((instance, instance.relaxed))
    found = (form(one) for one in asked for form in CLOSED_FORMS)
    first = UpperBound(pessimistic(instance), Upper.PESSIMISTIC)
    return min((first, *(one for one in found if one is not None)), key=lambda one: one.upper)
