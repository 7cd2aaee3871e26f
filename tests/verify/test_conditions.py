"""Conditions of a result that its instance decides, and that nothing else in the result may change."""

import pytest

from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.instance import Group, Instance
from makespan.model.machine import PAPER
from makespan.model.strings import parse_string
from makespan.verify import conditions
from makespan.verify.refusal import Refused


def test_latencies_that_a_string_states_are_not_those_of_its_machine() -> None:
    instance = Instance((Group(parse_string("L()@5C(1)", PAPER), 2),), PAPER)
    conditions.check(
        [Assumption(AssumptionKind.UNSTATED_LATENCY, "latencies are those of the string")], PAPER, [instance]
    )
    with pytest.raises(Refused, match="what is said of latencies does not follow"):
        conditions.check([Assumption(AssumptionKind.MACHINE, "latencies are those of the machine")], PAPER, [instance])
