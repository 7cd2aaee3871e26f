"""Conditions of a result that its instance decides, and that nothing else in the result may change."""

from dataclasses import replace

import pytest

from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.instance import Group, Instance
from makespan.model.lapses import PlaceLapses
from makespan.model.machine import PAPER, UnitQueue
from makespan.model.program import Program
from makespan.model.strings import parse_string
from makespan.verify import conditions
from makespan.verify.refusal import Refused
from tests.lapsing import behind, never_lapsing


def test_a_result_says_which_queues_are_left_out() -> None:
    queued = replace(PAPER, queues=(UnitQueue("memory", ("L",), 4, blocks=True),))
    for letters, is_whole_gpu in (("C|L", False), ("CL", True)):
        instance = Instance.of(never_lapsing(Program.chain(letters)), 2, queued)
        notes = instance.assumed(start_together=not is_whole_gpu)
        conditions.check(notes, queued, [instance], is_whole_gpu=is_whole_gpu)
        assert conditions.of_instance(notes)[1] == "although queues before memory are left out"
        kept = [note for note in notes if note.kind is not AssumptionKind.QUEUES]
        with pytest.raises(Refused, match="queues that are left out does not follow"):
            conditions.check(kept, queued, [instance], is_whole_gpu=is_whole_gpu)
        with pytest.raises(Refused, match="queues that are left out does not follow"):
            conditions.check(notes, queued, [Instance.of(never_lapsing(Program.chain("CL")), 2, queued)])


def test_latencies_that_a_string_states_are_not_those_of_its_machine() -> None:
    instance = Instance((Group(parse_string("L()@5C(1)", PAPER), 2),), PAPER)
    conditions.check(
        [Assumption(AssumptionKind.UNSTATED_LATENCY, "latencies are those of the string")], PAPER, [instance]
    )
    with pytest.raises(Refused, match="what is said of latencies does not follow"):
        conditions.check([Assumption(AssumptionKind.MACHINE, "latencies are those of the machine")], PAPER, [instance])


def test_a_result_says_whether_schedulers_lapse() -> None:
    program = Program.chain("CL")
    lapsing = Instance.of(program.lapsing((PlaceLapses(), PlaceLapses(misses=1))), 2)
    queued = behind((UnitQueue("memory", ("L",), 4, blocks=True),), Instance.of(program, 2))
    for instance in (lapsing, queued):
        notes = instance.assumptions
        conditions.check(notes, instance.machine, [instance])
        assert conditions.of_instance(notes)[0] == "on the SM as it is known"
        with pytest.raises(Refused, match="what is said of lapses does not follow"):
            conditions.check(
                [note for note in notes if note.kind is not AssumptionKind.LAPSES], instance.machine, [instance]
            )
        with pytest.raises(Refused, match="what is said of lapses does not follow"):
            conditions.check(notes, PAPER, [Instance.of(program.lapsing((PlaceLapses(),) * 2), 2)])
