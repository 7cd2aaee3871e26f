"""A scheduler that promises to be fair: who keeps the promise, and bundles that rest on it, also forged."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.multiprocessors import program
from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.bounds import theorem_f
from makespan.proof.engines import Limits, solve
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, sm_execution, verify, witness
from makespan.verify.fair import theorem_f as checked_theorem_f
from makespan.verify.refusal import Refused
from tests.forgery import Document, forged, set_bounds
from tests.oracle import brute_force, obeys
from tests.strategies import general_barrier_instances, general_instances, runs

UNITS = UnitClass("C", 1, latency=Latency(2, 2)), UnitClass("L", 1, latency=Latency(5, 5))
PARTITION = Machine("partition", UNITS, issue_width=1, scheduler=SchedulerPromise.FAIR)
FOUR = Instance.of("CCCLC", 4, PARTITION)


def fair(instance: Instance) -> Instance:
    return replace(instance, machine=replace(instance.machine, scheduler=SchedulerPromise.FAIR))


def accepts(instance: Instance, schedule: Schedule) -> bool:
    """Whether a schedule passes replay, the checker and the definition, which are of one mind."""
    if obeys(instance, schedule):
        assert replay(instance, schedule) == witness.replay(instance, schedule) == schedule.makespan
        return True
    with pytest.raises(InvalidScheduleError, match="the scheduler is not fair"):
        replay(instance, schedule)
    with pytest.raises(Refused, match="is passed over by a scheduler that is fair"):
        witness.replay(instance, schedule)
    return False


# The promise


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_schedules_of_any_scheduler_are_told_from_those_of_a_fair_one_by_everybody_alike(data: st.DataObject) -> None:
    instance = data.draw(general_instances(most_warps=4, most=4) | general_barrier_instances(most_warps=4))
    accepts(fair(instance), data.draw(runs(instance)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_definition_makes_fair_schedules(data: st.DataObject) -> None:
    instance = fair(data.draw(general_instances(most_warps=4, most=4)))
    assert accepts(instance, data.draw(runs(instance)))


@pytest.mark.parametrize(
    ("cycles", "kept"),
    [
        ([[0], [1], [2], [0], [1], [2], []], True),
        ([[0], [1], [0], [2], [1], [2], []], False),  # 0 goes before 2, which was ready and never issued
        ([[0], [1], [2], [1], [0], [2], []], False),  # 1 goes before 0
    ],
)
def test_the_promise_by_hand(cycles: list[list[int]], kept: bool) -> None:
    three = Instance.of("CC", 3, PARTITION)
    assert replay(three.relaxed, Schedule.of_chains(three, cycles)) == len(cycles)
    assert accepts(three, Schedule.of_chains(three, cycles)) is kept


MIXED = Instance.merged([(Program.chain("CC"), 3), (Program.chain("LC"), 1)], PARTITION)
LEAST_RECENT_FIRST = Schedule.of_chains(MIXED, [[3], [0], [1], [2], [0], [3], [1], [2], []])
"""In cycle 5 warp 3 goes first, which was ready in cycle 5 and issued in 0, before warp 1 with 4 and 2."""


def test_one_that_was_ready_later_may_go_first_if_it_issued_earlier() -> None:
    assert accepts(MIXED, LEAST_RECENT_FIRST)
    assert accepts(MIXED, Schedule.of_chains(MIXED, [[3], [0], [1], [2], [0], [1], [3], [2], []]))
    assert not accepts(MIXED, Schedule.of_chains(MIXED, [[3], [0], [1], [2], [0], [2], [1], [3], []]))


def test_in_one_slot_a_warp_may_not_go_before_one_of_another_class() -> None:
    """Warp 0 goes on with L in cycle 2, where warp 2 has waited for C from the start."""
    groups = [(Program.chain("CL"), 1), (Program.chain("CC"), 2)]
    both = Instance.merged(groups, PARTITION)
    assert not accepts(both, Schedule.of_chains(both, [[0], [1], [0], [2], [1], [2], []]))
    assert accepts(both, Schedule.of_chains(both, [[0], [1], [2], [0], [1], [2], [], []]))


def test_it_may_where_the_port_of_the_other_class_is_held() -> None:
    held = replace(PARTITION, units=(UnitClass("C", 1, 3, Latency(2, 2)), UNITS[1]))
    both = Instance.merged([(Program.chain("CL"), 1), (Program.chain("C"), 1)], held)
    assert accepts(both, Schedule.of_chains(both, [[0], [], [0], [1], [], [], []]))


@pytest.mark.parametrize("latency", [2, 3])
def test_of_two_that_go_only_the_one_that_was_ready_later_has_to_have_issued_earlier(latency: int) -> None:
    """Warp 2 is ready since cycle 5, and issued in 1; warp 0 since 6, in 0; warp 4 since 4 or 5, in 2."""
    spans = {"L": 6, "M": 4, "N": 4, "S": 1, "T": latency}
    held = UnitClass("C", 2, interval=2)
    units = (held, *(UnitClass(name, 1, latency=Latency(cycles, cycles)) for name, cycles in spans.items()))
    warps = [(Program.chain(string), count) for string, count in (("LC", 1), ("MC", 2), ("NC", 1), ("SSTC", 1))]
    five = Instance.merged(warps, Machine("two ports", units, scheduler=SchedulerPromise.FAIR))
    assert accepts(five, Schedule.of_chains(five, [[0, 1, 3, 4], [2, 4], [4], [], [1, 3], [], [0, 4], [], [2]]))


# Results


def result(instance: Instance = FOUR, **given: object) -> Result:
    return solve(instance, limits=Limits(20), **given)  # type: ignore[arg-type]


def test_a_result_says_its_promise_and_its_bundle_is_accepted() -> None:
    found = result()
    assert found.upper_evidence is Upper.THEOREM_F
    assert found.bounds.upper < found.pessimistic == 13 + 3 * 5
    assert found.bounds.lower <= brute_force(FOUR).upper <= found.bounds.upper
    assert str(found).startswith("bounded for a fair scheduler: the worst case is at least")
    assert any("work-conserving and fair (no warp goes before" in str(note) for note in found.assumptions)
    verdict = verify(json.loads(json.dumps(result_bundle(found))))
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert verdict.reason.endswith("proven by theorem F")
    assert dict(verdict.uppers)[Upper.THEOREM_F] == found.bounds.upper


def test_engines_bound_any_scheduler_and_their_witnesses_count_only_if_they_are_fair() -> None:
    wide = fair(Instance.of("CLLC", 3))
    found, truth = result(wide, best_case=True), brute_force(wide)
    assert found.bounds.lower <= truth.upper <= found.bounds.upper <= brute_force(wide.relaxed).upper
    assert found.best_case is not None
    assert found.best_case.lower <= truth.lower <= found.best_case.upper
    verdict = verify(result_bundle(found))
    assert verdict.outcome is Outcome.ACCEPTED, verdict


@given(general_instances(most_warps=3, most=3) | general_barrier_instances(most_warps=3, most=3))
@settings(max_examples=25, deadline=None)
def test_results_of_all_machines_enclose_the_truth(instance: Instance) -> None:
    found, truth = solve(fair(instance), backend="certificate", best_case=True), brute_force(fair(instance))
    assert found.bounds.lower <= truth.upper <= found.bounds.upper
    assert found.best_case is not None
    assert found.best_case.lower <= truth.lower <= found.best_case.upper
    assert verify(result_bundle(found)).outcome is Outcome.ACCEPTED


def test_exact_where_both_meet() -> None:
    found = result(Instance.of("CCCC", 4, PARTITION))
    assert found.bounds == Bounds(8 + 3 + 3 * 2, 8 + 3 + 3 * 2)
    assert str(found) == "exact for a fair scheduler: the worst case is 17 cycles"


def test_what_any_scheduler_can_do_does_not_refute_a_claim() -> None:
    """All states are enumerated for a best case that nothing else proves; a fair scheduler takes no longest one."""
    found = result(best_case=True)
    best = found.bounds.lower
    checked = verify(forged(result_bundle(found), lambda document: document["result"].update(best_case=best)))
    assert checked.outcome is Outcome.UNPROVEN
    assert checked.reason.startswith(f"best case {best} reported, re-proved only to")
    assert dict(checked.uppers)[Upper.SEARCH] > found.bounds.upper == checked.upper


def promise_dropped(document: Document) -> None:
    del document["instance"]["machine"]["scheduler"]


def promise_dropped_everywhere(document: Document) -> None:
    promise_dropped(document)
    del document["result"]["scheduler"]


def slots_added(document: Document) -> None:
    document["instance"]["machine"]["issue_width"] = document["result"]["issue_width"] = 2


def unfair_witness(document: Document) -> None:
    found = solve(FOUR.relaxed, limits=Limits(20))
    assert found.bounds.lower > document["result"]["lower"]
    document["witness"] = result_bundle(found)["witness"]
    set_bounds(document, found.bounds.lower, max(found.bounds.lower, document["result"]["upper"]))


def upper_lowered(document: Document) -> None:
    set_bounds(document, document["result"]["lower"], document["result"]["upper"] - 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (promise_dropped, "result has the unknown key 'scheduler'"),
        (promise_dropped_everywhere, "what the scheduler promises does not follow from the instance"),
        (slots_added, "witness: cycle .* is left out although all that it needs is free"),
        (unfair_witness, "warp . is passed over by a scheduler that is fair"),
        (upper_lowered, "reported by theorem-f, which proves only"),
        (
            lambda d: d["instance"]["machine"].update(scheduler="any"),
            "the promise of the scheduler is not known: 'any'",
        ),
        (lambda d: d["instance"]["machine"].update(scheduler=[]), "the promise of the scheduler is not known"),
        (lambda d: d["result"].update(scheduler="kind"), "scheduler does not follow from the instance"),
        (lambda d: d["result"].pop("scheduler"), "result lacks 'scheduler'"),
    ],
)
def test_a_forged_promise_is_rejected(change: Callable[[Document], None], why: str) -> None:
    checked = verify(forged(result_bundle(result()), change))
    assert checked.outcome is Outcome.REJECTED
    assert re.search(why, checked.reason), checked


def test_too_many_warps_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes is compared with those that were ready before it."""
    monkeypatch.setattr(sm_execution, "MOST_COMPARISONS", 0)
    with pytest.raises(Refused, match="too many warps wait"):
        witness.replay(MIXED, LEAST_RECENT_FIRST)


def test_the_bound_of_the_checker_is_that_of_the_engines() -> None:
    """Whatever class is last, where no class is cheap, and where a premise fails."""
    draw, applies = random.Random(27), Counter[bool]()
    for _ in range(1000):
        units = []
        for name in "ABCD":
            least = draw.randint(1, 6)
            interval = draw.choice((1,) * 9 + (2,))
            units.append(
                UnitClass(name, draw.choice((1, 2)), interval, Latency(least, least + draw.choice((0, 0, 1, 4))))
            )
        promise, width = draw.choice(
            [(SchedulerPromise.FAIR, 1)] * 8 + [(SchedulerPromise.ANY, 1), (SchedulerPromise.FAIR, 2)]
        )
        machine = Machine("drawn", tuple(units), width, scheduler=promise)
        barriers, used = draw.random() < 0.2, draw.choice(("A", "AB", "BC", "ABCD"))
        programs = (program(draw, used, 6, barriers=barriers, runs_ahead=False) for _ in range(draw.choice((1, 2))))
        instance = Instance.merged([(one, draw.randint(1, 4)) for one in programs], machine)
        found = theorem_f(instance)
        assert checked_theorem_f(instance) == (found and found.upper), instance
        applies[found is not None] += 1
    assert min(applies.values()) > 200


def test_where_paths_end_in_different_classes_the_least_is_spared() -> None:
    machine = replace(PARTITION, units=(UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 3))))
    loads = ProgramPlace("L", (1,)), ProgramPlace("L", (2,)), ProgramPlace("L", (3, 4))
    instance = Instance.merged(
        [(Program((*loads, ProgramPlace("C", (5,)), ProgramPlace("L", (5,))), (0,)), 5)], machine
    )
    found = theorem_f(instance)
    assert found is not None
    assert checked_theorem_f(instance) == found.upper == 26
