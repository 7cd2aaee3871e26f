"""`solve` for schedulers that lapse: its number, its words, and what it makes of a deadline."""

from dataclasses import replace

import pytest

from makespan import Instance, Limits, Machine, Program, solve
from makespan.host.errors import BrokenPromiseError
from makespan.many.study.comparison import PointResult
from makespan.model.deadline import Deadline, DeadlineOutcome
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import UnitClass, UnitQueue
from makespan.model.result import Anomaly, Bounds, Result, Status, Step, Upper
from makespan.model.simulate import Choices, replay
from makespan.proof.policy_gap import enclosing, runs
from makespan.report.result.bundle import result_bundle
from makespan.report.result.text import bound_rows, deadline_verdict, picture_subtitle, result_report
from makespan.verify import Outcome, verify
from tests.lapsing import behind

PLAIN = Program.chain("CLLCLL")
LATE = PlaceLapses(credit=1, misses=2, lines=(CacheLine("code 0", 5),))
LAPSING = Instance.of(PLAIN.lapsing((LATE,) * 6), 3)
WITHOUT = Instance.of(PLAIN, 3)
# theorem 1' 18; 3 warps with 6 credits; one line of 5 cycles; 6 misses of 2 cycles of the last warp
UPPER = 18 + 18 + 5 + 12


@pytest.fixture(scope="module")
def result() -> Result:
    return solve(LAPSING, best_case=True)


def test_the_upper_bound_is_the_sum_and_the_schedule_is_one_without_lapses(result: Result) -> None:
    plain = solve(WITHOUT)
    assert plain.status is Status.EXACT
    assert result.bounds == Bounds(plain.bounds.lower, UPPER)
    assert (result.status, result.upper_evidence) == (Status.BOUNDED, Upper.LAPSES)
    assert result.instance is LAPSING
    assert result.lapses is not None
    assert tuple(result.lapses)[1:] == (18, 5, 12)
    assert result.without_lapses is not None
    assert result.without_lapses.bounds == plain.bounds
    assert result.without_lapses.witness == result.witness
    assert (result.certificate, result.weights, result.phases, result.partitions) == (None, (), (), ())


def test_the_history_knows_the_upper_bound_from_the_beginning(result: Result) -> None:
    steps: list[Step] = []
    solved = solve(LAPSING, limits=Limits(improved=steps.append))
    assert {(step.upper, step.evidence) for step in (*steps, *result.history, *solved.history)} == {(UPPER, "lapses")}
    assert steps
    lowers = [step.lower for step in result.history]
    assert lowers == sorted(set(lowers))
    assert lowers[-1] == result.bounds.lower


def test_a_lapse_may_end_a_schedule_earlier_than_each_work_conserving_one(result: Result) -> None:
    """A scheduler that issues nothing for a cycle may spread warps, so the best case without lapses is no lower end."""
    inner = result.without_lapses
    assert inner is not None
    assert inner.best_case == Bounds(13, 13)
    assert result.best_case == Bounds(12, 13)  # 12 instructions L need the one port of L for a cycle each


def test_the_verdict_says_both_numbers_and_is_never_exact(result: Result) -> None:
    where = "on the SM as it is known, if every instruction takes one cycle"
    verdict = f"bounded {where}: the worst case is at least 14 and at most 53 cycles; without lapses it is exactly 14"
    assert str(result) == verdict
    assert picture_subtitle(result).startswith("a schedule without lapses of 14 cycles; at most 53 are proven with")
    assert Bounds(14, 53).verdict([], without_lapses=Bounds(14, 16)).endswith("; without lapses it is at most 16")
    stopped = replace(result, interrupted=True)
    assert str(stopped) == f"{verdict} (interrupted)"


def test_the_report_adds_up_to_the_bound(result: Result) -> None:
    rows = {name: value for name, value, _ in bound_rows(result)}
    assert [rows[name] for name in ("at least", "at most", "without lapses")] == ["14", "53", "14"]
    parts = [int(rows[name]) for name in ("theorem 1'", "+ lapses", "+ late lines", "+ misses")]
    assert parts == [18, 18, 5, 12]
    assert sum(parts) == UPPER
    numbered = [line for line in result_report(result).splitlines() if line.split("  ")[0] in rows]
    assert len(numbered) == len(rows)
    # all numbers end in one column
    ends = {line.index(f" {value}  ") + len(value) for line, value in zip(numbered, rows.values(), strict=True)}
    assert len(ends) == 1


def test_the_pessimistic_bound_has_the_lapses_and_outlasts_what_it_did(result: Result) -> None:
    assert result.pessimistic == UPPER
    assert result.robust_against == tuple(Anomaly)
    paired = solve(Instance.of(Program.chain("CLLC").lapsing((PlaceLapses(credit=1),) * 4), 8))
    assert paired.lapses is not None
    assert paired.lapses.base.evidence is Upper.THEOREM_E
    assert paired.pessimistic == 32 + 32 > paired.bounds.upper == 18 + 32
    assert paired.robust_against == ()


@pytest.mark.parametrize(
    ("cycles", "outcome"),
    [(13, DeadlineOutcome.MISSED), (14, DeadlineOutcome.UNDECIDED), (52, DeadlineOutcome.UNDECIDED), (53, "met")],
)
def test_a_deadline_is_met_only_if_it_is_met_with_lapses(result: Result, cycles: int, outcome: str) -> None:
    assert Deadline(cycles).outcome(result.bounds) == outcome
    said = deadline_verdict(Deadline(cycles), result.bounds, result.caveats)
    assert said.startswith(f"deadline {outcome} on the SM as it is known, if every instruction takes one cycle: ")


def test_places_that_are_known_not_to_lapse_change_nothing() -> None:
    none, plain = solve(Instance.of(PLAIN.lapsing((PlaceLapses(),) * 6), 3)), solve(WITHOUT)
    assert replace(none, seconds=0.0, history=()) == replace(plain, seconds=0.0, history=())
    assert (none.lapses, none.without_lapses) == (None, None)
    assert str(none) == "exact if every instruction takes one cycle: the worst case is 14 cycles"


def test_a_backend_is_asked_without_lapses() -> None:
    result = solve(LAPSING, backend="search")
    assert (result.backend, result.bounds) == ("search", Bounds(14, UPPER))


def test_barriers_and_partitions_are_solved_apart_only_without_lapses() -> None:
    two = Machine("two schedulers", (UnitClass("C", 1),), issue_width=1, partitions=2)
    whole = solve(Instance.of(Program.chain("CC").lapsing((PlaceLapses(fence=4),) * 2), 4, two))
    assert (whole.bounds, whole.upper_evidence) == (Bounds(4, 4 + 4 * 8), Upper.LAPSES)
    assert whole.without_lapses is not None
    assert whole.without_lapses.bounds == Bounds(4, 4)
    phased = solve(Instance.of(Program.chain("C|L").lapsing((PlaceLapses(credit=1),) * 3), 2))
    assert (phased.bounds, phased.phases) == (Bounds(4, 4 + 2 * 3), ())
    assert phased.without_lapses is not None
    assert phased.without_lapses.phases


def test_queues_alone_leave_an_interval_of_theorem_1q() -> None:
    queues = (UnitQueue("memory", ("L",), 4, blocks=True),)
    alone, barrier = (behind(queues, Instance.of(string, 2, Machine.of({"L": 1}))) for string in ("LL", "L|L"))
    found = solve(alone)
    # alone 2 cycles, 2 of the other warp, and 2 of its own accesses once more
    assert (found.bounds, found.upper_evidence) == (Bounds(4, 6), Upper.LAPSES)
    assert found.without_lapses is not None
    assert found.without_lapses.bounds == Bounds(4, 4)
    rows = [(name, cycles) for name, cycles, _ in bound_rows(found)]
    assert ("theorem 1Q", "6") in rows
    assert verify(result_bundle(found)).outcome is Outcome.ACCEPTED
    assert ("theorem 1'", "4") in [(name, cycles) for name, cycles, _ in bound_rows(solve(barrier))]


def test_runs_of_policies_never_lapse_and_lengthen_the_witness_of_both_results(result: Result) -> None:
    schedules = runs(LAPSING, Choices())
    assert {replay(WITHOUT, schedule) for schedule in schedules.values()} <= {13, 14}
    inner = result.without_lapses
    assert inner is not None
    first = min(schedules.values(), key=lambda schedule: schedule.makespan)
    # as if engines had found no schedule that is longer than the shortest of the policies
    weak = replace(inner, witness=first, bounds=Bounds(first.makespan, 14), best_case=None)
    open_ = Bounds(first.makespan, UPPER)
    gap = enclosing(replace(result, witness=first, bounds=open_, best_case=None, without_lapses=weak), schedules)
    longest = max(schedule.makespan for schedule in schedules.values())
    assert first.makespan < longest
    assert gap.result.bounds == Bounds(longest, UPPER)
    assert gap.result.without_lapses is not None
    assert gap.result.without_lapses.bounds == Bounds(longest, 14)
    assert gap.result.without_lapses.witness == gap.result.witness
    assert gap.result.history[-1][2:] == (longest, UPPER, "lapses")
    rows = {row.name: (row.lower, row.upper, row.remark) for row in gap.rows()}
    assert rows["without lapses"] == (longest, 14, "every work-conserving scheduler; at most 14 by theorem-e")
    worst = f"every work-conserving scheduler with known lapses; at most {UPPER} by lapses"
    assert rows["worst case"] == (longest, UPPER, worst)
    with pytest.raises(BrokenPromiseError, match="outside of"):
        enclosing(replace(result, without_lapses=replace(weak, bounds=Bounds(13, 13))), schedules)


def test_a_comparison_says_what_proves_the_ends_of_the_best_case(result: Result) -> None:
    point = PointResult.of(result)
    assert (point.worst, point.upper_evidence, point.pessimistic) == (Bounds(14, UPPER), "lapses", UPPER)
    assert point.best_case is not None
    assert point.best_case.bounds == Bounds(12, 13)
    assert (point.best_case.lower_evidence, point.best_case.upper_evidence) == ("least-possible", "schedule")
