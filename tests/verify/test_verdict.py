"""What follows from the evidence of a bundle, and what does not: one claim changed at a time."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Upper
from makespan.model.simulate.gpu_run import run_gpu
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import solve
from makespan.report.gpu.bundle import _schedule_data as written
from makespan.report.gpu.bundle import gpu_question_data
from makespan.report.result.bundle import result_bundle
from makespan.verify import (
    Outcome,
    Refused,
    Verdict,
    digest,
    lower_bounds,
    outcome,
    partitions,
    verdict,
    verify,
)
from makespan.verify import pessimistic as again
from makespan.verify.refusal import ProofBudget, ProofSteps, TooMuchWork
from tests.oracle import brute_force
from tests.verify.test_gpu import of
from tests.verify.test_multiprocessor import ALONE, SHARED, asked

THREE = Instance.of("CLC", 3)


@cache
def three() -> Result:
    """The shortest schedule takes 6 cycles, the longest 7."""
    assert brute_force(THREE) == Bounds(6, 7)
    return replace(solve(THREE, best_case=True), history=())


def judged(result: Result, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Verdict:
    document = json.loads(json.dumps(result_bundle(result)))
    change(document)
    return verify({**document, "sha256": digest(document)})


# Claims


@pytest.mark.parametrize(("by", "outcome"), [(-1, Outcome.REJECTED), (0, Outcome.ACCEPTED), (1, Outcome.REJECTED)])
def test_the_pessimistic_bound_is_the_number_itself(by: int, outcome: Outcome) -> None:
    found = judged(three(), lambda document: document["result"].update(pessimistic=pessimistic(THREE) + by))
    assert found.outcome is outcome
    assert (found.reason == f"pessimistic is {pessimistic(THREE)}, not {pessimistic(THREE) + by}") == bool(by)


@pytest.mark.parametrize(("by", "outcome"), [(-1, Outcome.REJECTED), (0, Outcome.ACCEPTED), (1, Outcome.ACCEPTED)])
def test_that_of_a_multiprocessor_may_be_larger(by: int, outcome: Outcome) -> None:
    found = solve(asked(SHARED, ("L()C()C(1)", 3)))
    own = again.pessimistic(found.instance)
    assert judged(found, lambda document: document["result"].update(pessimistic=own + by)).outcome is outcome


def test_a_proof_below_a_schedule_is_an_error_of_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "replay", lambda *_: 7)
    assert judged(three()).outcome is Outcome.ACCEPTED
    monkeypatch.setattr(verdict, "replay", lambda *_: 8)
    with pytest.raises(BrokenPromiseError, match=r"^an upper bound of 7 cycles, and a schedule of 8$"):
        judged(replace(three(), best_case=None))


@pytest.mark.parametrize(
    ("best_case", "proven"),
    [((6, 6), (6, 6)), ((5, 6), (6, 6)), ((6, 7), (6, 7)), ((1, 9), (6, 7)), ((5, 5), None), ((7, 7), None)],
)
def test_a_best_case_is_looked_at_as_closely_as_the_claim_needs(
    best_case: tuple[int, int], proven: tuple[int, int] | None
) -> None:
    assert (lower_bounds.least_makespan(THREE), three().bounds.lower) == (6, 7)  # no more is needed for 6..7
    found = judged(replace(three(), best_case=Bounds(*best_case)))
    assert found.outcome is (Outcome.REJECTED if proven is None else Outcome.ACCEPTED)
    assert found.best_case == proven
    assert judged(replace(three(), best_case=None)).best_case is None


def test_a_verdict_names_the_proof_of_the_claim_where_it_suffices() -> None:
    """All states are enumerated for the best case."""
    for evidence, how in ((Upper.THEOREM_E, "theorem E"), (Upper.SEARCH, "enumeration of all states")):
        found = judged(replace(three(), upper_evidence=evidence))
        assert found.reason == (
            f"the worst case is 7 cycles; the witness was executed, the upper bound proven by {how}"
        )


def test_a_reason_is_one_line_of_at_most_300_letters() -> None:
    spaced = judged(three(), lambda document: document["result"].update({"x\n" * 999: 1}))
    assert len(spaced.reason) <= 300
    assert "\n" not in spaced.reason


# A schedule alone


def test_a_schedule_of_a_whole_gpu_is_executed() -> None:
    gpu = of("CL", 5, 1, 2)
    schedule = run_gpu(gpu, "lrr")
    question, document = gpu_question_data(gpu), json.loads(json.dumps(written(gpu, schedule)))
    verdict.execute(question, document, schedule.makespan)
    for by in (-1, 1):
        why = f"^the schedule takes {schedule.makespan} cycles, not {schedule.makespan + by}$"
        with pytest.raises(Refused, match=why):
            verdict.execute(question, document, schedule.makespan + by)
    with pytest.raises(Refused, match=r"^there is no schedule$"):
        verdict.execute(question, None, schedule.makespan)
    with pytest.raises(Refused, match=r"^not a bundle: instance lacks 'machine'$"):
        verdict.execute({"grids": []}, document, 1)
    with pytest.raises(Refused, match=r"^not a bundle: an object was expected$"):
        verdict.execute(None, document, 1)


# Words


def test_the_words_of_a_verdict() -> None:
    claim = outcome.BundleClaim(1, 1, "theorem-e", None)
    assert outcome.summary(claim, "it") == (
        "the worst case is 1 cycle; the witness was executed, the upper bound proven by it"
    )
    assert outcome.summary(replace(claim, upper=2), "it", has_witness=False) == (
        "the worst case is at least 1 and at most 2 cycles; no schedule is shorter, and none is shown, the upper bound"
        " proven by it"
    )
    assert [outcome.interval_text(interval) for interval in ((3, 3), (3, 4))] == ["3", "3..4"]
    inside = [outcome.within((2, 3), outer) for outer in ((2, 3), (1, 4), (3, 4), (1, 2), (4, 5))]
    assert inside == [True, True, False, False, False]
    assert Verdict(Outcome.ACCEPTED, "").upper is None
    assert Verdict(Outcome.ACCEPTED, "", uppers=(("a", 3), ("b", 2), ("c", 4))).upper == 2


# Work


def test_steps_are_counted() -> None:
    work = ProofSteps(3)
    work.spend()
    work.spend(2)
    with pytest.raises(TooMuchWork):
        work.spend()
    ProofSteps(0).spend(0)


def test_what_a_proof_does_not_spend_remains_for_others() -> None:
    """An effort of one proof: after a half of the largest only a half is left, of whatever size the next one is."""
    effort = ProofBudget(1)
    with effort.part(100) as work:
        work.spend(50)
    with effort.part(10) as work:
        assert work.left == 5
        work.spend(5)
    with effort.part(10) as work:
        assert work.left == 0
    with ProofBudget(1).part(3) as work:
        assert work.left == 3
    twice = ProofBudget(2)
    with pytest.raises(TooMuchWork), twice.part(4) as work:
        work.spend(5)
    with twice.part(4) as work:  # no more than what it had is gone
        assert work.left == 4


# Partitions


def crews(numbers: list[int], size: int) -> set[tuple[int, ...]]:
    return set(partitions._spread(numbers, size, ProofSteps(1000)))


def test_all_ways_to_take_so_many_warps() -> None:
    assert crews([2, 1], 2) == {(2, 0), (1, 1)}
    assert crews([1, 1, 1], 1) == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
    assert crews([3], 2) == {(2,)}
    assert list(partitions._spread([2, 2], 2, ProofSteps(1000))) == [(2, 0), (1, 1), (0, 2)]


@pytest.mark.parametrize(
    ("groups", "parts", "warps"),
    [
        ((("C", 3),), 2, {(2,), (1,)}),
        ((("C", 1),), 2, {(1,)}),
        ((("C", 2), ("L", 1)), 2, {(2, 0), (1, 1), (1, 0), (0, 1)}),
        ((("C", 2), ("L", 2)), 2, {(2, 0), (1, 1), (0, 2)}),
        ((("C", 2), ("L", 3)), 4, {(2, 0), (1, 1), (0, 2), (1, 0), (0, 1)}),
    ],
)
def test_partitions_have_as_many_warps_as_any_other_or_one_more(
    groups: tuple[tuple[str, int], ...], parts: int, warps: set[tuple[int, ...]]
) -> None:
    named = [Program.chain(string) for string, _ in groups]
    found = partitions.questions(asked(replace(ALONE, partitions=parts), *groups))
    assert found is not None
    assert {tuple(_warps(each, program) for program in named) for each in found} == warps
    assert all(each.machine.partitions == 1 for each in found)


def _warps(instance: Instance, program: Program) -> int:
    return sum(group.warps for group in instance.groups if group.program == program)


def test_a_machine_of_its_own_has_what_is_in_use() -> None:
    alone = partitions._alone(replace(SHARED, issue_width=1), frozenset("C"))
    assert alone == Machine("shared", SHARED.units[:1], 1)


def test_two_warps_are_proven_pair_by_pair_where_states_are_too_many() -> None:
    """Of two warps of CCL the shortest schedule takes 5 cycles, one more than the instructions of a class."""
    result = solve(Instance.of("CCL", 2), best_case=True)
    assert lower_bounds.least_makespan(result.instance) == 4
    found = verify(result_bundle(result), most_states=1)
    assert (found.outcome, found.best_case) == (Outcome.ACCEPTED, (5, 5))


def test_by_modulo_a_partition_has_the_warps_of_its_numbers() -> None:
    """Warps 0 and 2 are in partition 0; no other has both C and L."""
    modulo = replace(ALONE, assignment=WarpAssignment.MODULO)
    programs = Program.chain("C"), Program.chain("L")
    found = partitions.questions(asked(modulo, ("C", 2), ("L", 1)))
    assert found is not None
    assert [tuple(_warps(each, program) for program in programs) for each in found] == [(1, 1), (1, 0)]
    few = partitions.questions(asked(replace(modulo, partitions=4), ("C", 2)))
    assert few is not None
    assert [each.warps for each in few] == [1]


def test_what_has_something_in_common_is_no_question_of_its_own() -> None:
    for machine in (replace(ALONE, scheduler=SchedulerPromise.FAIR), replace(ALONE, partitions=1)):
        assert partitions.questions(asked(machine, ("C", 2))) is None
    assert partitions.questions(asked(ALONE, ("C|C", 2))) is None
    assert partitions.questions(asked(ALONE, ("C", 2))) is not None
