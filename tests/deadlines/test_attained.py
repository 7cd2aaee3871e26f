"""Nothing is refuted with a time that nobody has shown a kernel to take; what rests on given times says so."""

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest

from makespan.deadlines.analysis import analyse, is_proven
from makespan.deadlines.assessment import Assessment, assessments
from makespan.deadlines.description import (
    Description,
    ExecutionTime,
    GivenTime,
    PartitionEntry,
    ServedEntry,
    TaskEntry,
    task_set,
)
from makespan.deadlines.evidence import attainable, find_late_run, find_miss, worst_runs, worst_window
from makespan.deadlines.report.text import report, verdict
from makespan.deadlines.sensitivity import execution_factor
from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.deadlines.wcet import Wcet
from makespan.deadlines.wcet import WcetGround as Known
from makespan.host.errors import InputError
from tests.deadlines.sets import GPU, kernel, partition_of

FIFO = GpuPartition("gpu", ServerPolicy.FIFO)


def timed(task: GpuTask, attained: int, *, is_shown: bool = True) -> GpuTask:
    """The task, whose kernel is shown to run so long."""
    segments = (replace(segment, attained=attained, is_shown=is_shown) for segment in task.segments)
    return replace(task, segments=tuple(segments))


def alone(wcet: int, deadline: int, attained: int | None) -> TaskSet:
    return partition_of(one_kernel("k", wcet, 1000, deadline, priority=0, partition=GPU, attained=attained))


def test_a_deadline_within_the_proven_interval_is_undecided() -> None:
    found = analyse(alone(859, 830, 812))
    assert (found.answer, found.tasks[0].miss, found.tasks[0].response) == (DeadlineAnswer.UNKNOWN, None, 859)
    assert (found.tasks[0].is_exact, found.tasks[0].is_attained) == (True, False)


def test_a_deadline_below_the_proven_interval_is_refuted_whatever_the_user_says() -> None:
    found = analyse(alone(859, 800, 812))
    miss = found.tasks[0].miss
    assert miss is not None
    assert (found.answer, miss.completion - miss.arrival, found.supposes) == (DeadlineAnswer.NO, 812, ())
    assert analyse(alone(812, 800, 812)).tasks[0].is_attained


def test_a_given_time_refutes_on_the_condition_that_it_is_attained() -> None:
    found = analyse(alone(859, 830, None))
    assert (found.answer, found.supposes, found.tasks[0].is_attained) == (DeadlineAnswer.NO, ("k",), False)


def test_a_path_that_no_input_need_lead_to_refutes_on_the_same_condition() -> None:
    one_path = alone(859, 800, 859)
    several = replace(one_path, tasks=tuple(timed(task, 859, is_shown=False) for task in one_path.tasks))
    found = analyse(several)
    assert (found.answer, found.supposes, found.tasks[0].is_attained) == (DeadlineAnswer.NO, ("k",), False)
    assert analyse(one_path).supposes == ()
    overload = partition_of(*(timed(kernel(name, 6, 10), 6, is_shown=False) for name in "ab"))
    assert analyse(overload).supposes == ("a", "b")


def test_overload_by_upper_bounds_is_no_evidence() -> None:
    tasks = [timed(kernel(name, 6, 10), 4) for name in "ab"]
    found = analyse(partition_of(*tasks))
    assert (found.answer, found.loads[0].is_overload, found.loads[0].is_refuted) == (
        DeadlineAnswer.UNKNOWN,
        True,
        False,
    )
    found = analyse(partition_of(*(timed(task, 6) for task in tasks)))
    assert (found.answer, found.loads[0].is_refuted, found.supposes) == (DeadlineAnswer.NO, True, ())


def test_the_least_condition_is_said() -> None:
    """One task is late with times that are shown, the other only with a given one."""
    shown = timed(kernel("shown", 5, 100, deadline=4), 5)
    given = one_kernel("given", 5, 100, 4, partition="side")
    found = analyse(TaskSet((shown, given), (FIFO, GpuPartition("side", ServerPolicy.FIFO))))
    assert [task.answer for task in found.tasks] == [DeadlineAnswer.NO, DeadlineAnswer.NO]
    assert found.supposes == ()


def test_every_kernel_of_a_late_schedule_takes_what_it_is_shown_to_take() -> None:
    """Not even less: that a kernel can be quicker is nothing that a worst case shows."""
    tasks = (timed(kernel("a", 5, 20, 2), 3), kernel("b", 4, 20, 1, deadline=5))
    task_set = partition_of(*tasks)
    run = find_late_run(task_set, "b")
    assert run is not None
    assert {job.times for job in run.scenario.jobs if job.task == "a"} == {(3,)}
    system = attainable(task_set, "b")
    assert system is not None
    for other in islice(worst_runs(system, "b"), 40):
        assert {job.times for job in other.scenario.jobs if job.task == "a"} == {(3,)}


def test_tasks_without_a_time_in_whole_ticks_do_not_arrive() -> None:
    late, unknown = kernel("late", 4, 20, 1, deadline=5), timed(kernel("unknown", 3, 20, 2), 0)
    assert find_miss(partition_of(late, kernel("unknown", 3, 20, 2)), "late") is not None
    assert find_miss(partition_of(late, unknown), "late") is None
    assert find_miss(partition_of(late, unknown), "unknown") is None
    assert find_miss(partition_of(replace(late, deadline=3), unknown), "late") is not None
    assert find_miss(partition_of(replace(late, deadline=3), replace(unknown, offset=1)), "late") is None


def test_what_data_of_such_a_task_starts_does_not_arrive_either() -> None:
    tasks = (timed(kernel("head", 2, 20), 0), kernel("next", 3, 20, deadline=2), kernel("late", 9, 20, 0, 8))
    task_set = replace(partition_of(*tasks), chains=(TaskChain("c", ("head", "next"), ChainStart.DATA),))
    assert find_miss(task_set, "next") is None
    system = attainable(task_set, "late")
    assert system is not None
    assert ([task.name for task in system.tasks], system.chains) == (["late"], ())


def test_a_copy_whose_time_nobody_knows_keeps_a_task_and_all_its_family_away() -> None:
    """The engine is what `late` shares with `joined`, which waits for two."""
    copy = (JobSegment(SegmentKind.COPY, 3, "e", attained=0),)
    tasks = (
        GpuTask("late", (JobSegment(SegmentKind.COPY, 4, "e"),), 20, 3),
        *(one_kernel(name, 1, 20, 20, partition="gpu") for name in ("head", "one")),
        GpuTask("other", copy, 20, 20),
        GpuTask("joined", (JobSegment(SegmentKind.COPY, 2, "e"),), 20, 20),
    )
    chains = tuple(TaskChain(name, ("head", name, "joined"), ChainStart.DATA) for name in ("one", "other"))
    system = attainable(TaskSet(tasks, (FIFO,), chains, (CopyEngine("e", ServerPolicy.FIFO),)), "late")
    assert system is not None
    assert ([task.name for task in system.tasks], system.partitions, system.chains) == (["late"], (), ())


def test_a_launch_is_given() -> None:
    """The kernel is shown to take 3 ticks, and nobody has shown that a launch takes one."""
    late = GpuTask("late", (JobSegment(SegmentKind.KERNEL, 3, "gpu", 1, attained=3),), 20, 3)
    assert analyse(TaskSet((late,), (FIFO,))).supposes == ("late",)


def test_only_what_a_task_meets_is_simulated() -> None:
    """The condition names nobody whose kernels and CPU time are elsewhere."""
    tasks = (
        kernel("late", 4, 20, 1, deadline=3),
        one_kernel("far", 1, 9, 9, partition="side"),
        one_kernel("by core", 1, 20, 20, before=1, core="cpu", wait=HostWait.BLOCK, priority=1, partition="third"),
        one_kernel("late's core", 1, 20, 20, before=1, core="cpu", wait=HostWait.BLOCK, priority=2, partition="gpu"),
    )
    places = (FIFO, GpuPartition("side", ServerPolicy.FIFO), GpuPartition("third", ServerPolicy.FIFO))
    miss = find_miss(TaskSet(tasks, places), "late")
    assert miss is not None
    assert miss.supposes == ("late", "by core", "late's core")


def with_a_given(name: str, **changed: Any) -> TaskSet:
    """Two kernels with times that are shown, of which `low` makes `late` late, and one whose time is given."""
    late = timed(kernel("late", 3, 20, 2, deadline=4), 3)
    return partition_of(late, timed(kernel("low", 5, 20, 1), 5), replace(kernel(name, 2, 20), **changed))


def test_a_task_without_which_the_job_is_late_as_well_is_no_condition() -> None:
    found = analyse(with_a_given("aside"))
    miss = found.tasks[0].miss
    assert miss is not None
    assert (found.answer, found.supposes, miss.supposes) == (DeadlineAnswer.NO, (), ())
    assert "tasks left out whose times nobody has shown" in miss.scenario
    run = find_late_run(with_a_given("aside"), "late")
    assert run is not None
    assert {job.task for job in run.jobs} == {"late", "low"}
    assert any(job.completion - job.arrival == miss.completion - miss.arrival for job in run.late)


def test_a_task_that_must_arrive_is_a_condition() -> None:
    assert analyse(with_a_given("periodic", offset=0)).supposes == ("periodic",)


def test_a_task_without_which_the_job_is_in_time_is_a_condition() -> None:
    tasks = (timed(kernel("late", 3, 20, 2, deadline=4), 3), kernel("low", 5, 20, 1))
    assert analyse(partition_of(*tasks)).supposes == ("low",)


def test_what_a_given_task_starts_stays_away_with_it() -> None:
    """Without its head, the task that is started by data may not arrive either."""
    late, low, given = with_a_given("head").tasks
    chain = TaskChain("c", ("head", "low"), ChainStart.DATA)
    assert analyse(replace(partition_of(late, low, given), chains=(chain,))).supposes == ("head",)


def test_what_starts_a_given_task_stays_away_with_it() -> None:
    late, low, given = with_a_given("given").tasks
    head = timed(kernel("head", 1, 20), 1)
    chain = TaskChain("c", ("head", "given"), ChainStart.DATA)
    assert analyse(replace(partition_of(late, low, head, given), chains=(chain,))).supposes == ()


def test_cpu_times_are_given() -> None:
    task = one_kernel("t", 5, 20, 6, priority=1, before=2, core="cpu", wait=HostWait.BLOCK, partition="gpu", attained=5)
    assert analyse(TaskSet((task,), (FIFO,))).supposes == ("t",)


def test_an_attained_time_is_no_longer_than_the_bound() -> None:
    with pytest.raises(InputError, match="task k cannot take 4 ticks, and 3 at most"):
        alone(3, 5, 4)


# Descriptions and reports


def described(partition: str | None = "gpu", deadline: int = 5) -> Description:
    served = ServedEntry(SegmentKind.KERNEL, GivenTime(Fraction(6), "x"), partition)
    entry = TaskEntry("k", (served,), Fraction(9), Fraction(deadline))
    return Description("k.toml", (entry,), (PartitionEntry(FIFO),))


def test_what_is_attained_is_counted_exactly() -> None:
    for at_least in (Fraction(1, 7), Fraction(1, 3), None):
        ticks, tick = task_set(described(), {"k": ExecutionTime(Fraction(1, 3), at_least)})
        assert ticks.tasks[0].segments[0].attained == (None if at_least is None else at_least / tick)


def assessed(
    low: int, high: int, deadline: int, *, partition: str | None = "gpu", kind: Known = Known.PROVEN
) -> Assessment:
    least = Fraction(low) if kind is Known.PROVEN else None
    wcet = Wcet(Fraction(high), None, kind, "of the test", least)
    way = None if partition is not None else "first-fit"
    *_, found = assessments(described(partition, deadline), {"k": wcet}, assignment=way)
    return found


def test_the_report_says_attained_only_of_what_is_shown_to_be() -> None:
    exact, bounded, given = assessed(4, 4, 5), assessed(3, 4, 5), assessed(4, 4, 5, kind=Known.GIVEN)
    assert "  k: kernel 4 s, attained\n" in report(exact)
    for found in (bounded, given):
        assert "  k: kernel 4 s, attained if execution times are\n" in report(found)


def test_the_verdict_says_what_it_supposes() -> None:
    assert verdict(assessed(6, 6, 5)) == "not schedulable: a legal schedule is too late for k"
    assert verdict(assessed(4, 6, 5)) == "undecided: no proof for k"
    given = verdict(assessed(6, 6, 5, kind=Known.GIVEN))
    assert given == "not schedulable if execution times are attained: a legal schedule is too late for k"


def test_an_assignment_is_refused_only_for_demand_that_is_shown() -> None:
    assert verdict(assessed(8, 10, 9, partition=None)) == "undecided: no assignment was found by first-fit"
    shown = verdict(assessed(10, 10, 9, partition=None))
    assert shown == "not schedulable: all partitions together are asked for 111.2 %, more than there is"


def test_a_margin_is_refuted_only_by_times_that_are_shown() -> None:
    loose, tight, given = (execution_factor(alone(100, 200, low), analyse, is_proven) for low in (50, 100, None))
    assert [margin.holds for margin in (loose, tight, given)] == [2, 2, 2]
    assert [margin.refuted for margin in (loose, tight, given)] == [False, True, True]
    assert [margin.supposes for margin in (loose, tight, given)] == [(), (), ("k",)]


def test_a_picture_shows_times_that_are_attained() -> None:
    assert worst_window(alone(859, 830, 812)).job.response == 812
    with pytest.raises(InputError, match="nobody knows a time that runs of these kernels take"):
        worst_window(alone(859, 830, 0))
