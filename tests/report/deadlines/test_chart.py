"""The picture of the worst schedule found, as data."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.report.chart import (
    MOST_BARS,
    MOST_LANES,
    MOST_ROWS,
    ChartView,
)
from makespan.deadlines.simulation import JobPlan, Scenario, simulate
from makespan.deadlines.task import (
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskSet,
    one_kernel,
)
from makespan.host.errors import InputError
from makespan.report.gantt.chart import GanttArrow, GanttMark
from tests.report.deadlines.windows import Job, Run, many, pipeline, shown


def test_a_chart_has_what_runs_and_spins_and_what_leads_to_what() -> None:
    """The kernel of b is ready at 4, of a at 5: a ends at 10, which is the arrival of a1, which spins until 15."""
    found = shown(pipeline())
    assert found.resources == ["core cpu0", "copy engine h2d", "partition gpu"]
    assert found.tasks == ["a", "a1", "b"]
    assert set(found.runs) == {
        Run(0, 0, 2, 0, "a#0"),
        Run(1, 2, 5, 0, "a#0"),
        Run(2, 4, 6, 2, "b#0"),
        Run(2, 6, 10, 0, "a#0"),
        Run(2, 10, 15, 1, "a1#0"),
        Run(0, 10, 15, None, "a1#0", is_spin=True),
        Run(0, 15, 16, 1, "a1#0"),
    }
    resources, tasks = found.chart.panels
    assert set(resources.arrows) == {
        GanttArrow((0, 0, 2), (1, 0, 2)),
        GanttArrow((1, 0, 5), (2, 0, 6)),
        GanttArrow((2, 0, 15), (0, 0, 15), is_bold=True),
    }
    assert found.jobs == [
        Job(0, 0, "a#0", 0, 10, ((0, 2), (2, 5), (6, 10))),
        Job(1, 0, "a1#0", 10, 16, ((10, 15), (15, 16))),
        Job(2, 0, "b#0", 4, 6, ((4, 6),)),
    ]
    due = {0: (0, 20), 1: (10, 30), 2: (4, 24)}
    assert set(tasks.marks) == {
        GanttMark(row, at, kind)
        for row, each in due.items()
        for at, kind in zip(each, ("arrival", "deadline"), strict=True)
    }
    assert tasks.arrows == (GanttArrow((0, 0, 10), (1, 0, 10)),)
    assert (found.start, found.end, found.chart.caption) == (0, 30, "")


def test_what_is_preempted_or_spins_leads_nowhere() -> None:
    """The CPU time of a is preempted by b, and then its thread spins for its kernel; c is preempted, too."""
    system = TaskSet(
        (
            one_kernel("a", 6, 50, 50, priority=1, before=3, after=1, partition="gpu", core="cpu0", wait=HostWait.SPIN),
            GpuTask("b", (JobSegment(SegmentKind.CPU, 2),), 50, 50, priority=2, core="cpu0"),
            GpuTask("c", (JobSegment(SegmentKind.CPU, 4),), 50, 50, priority=0, core="cpu0"),
        ),
        (GpuPartition("gpu", ServerPolicy.FIFO),),
    )
    jobs = (
        JobPlan("a", 0, 0, 0, (3, 6, 1)),
        JobPlan("b", 0, 1, 1, (2,)),
        JobPlan("b", 1, 51, 51, (2,)),
        JobPlan("c", 0, 50, 50, (4,)),
    )
    run = simulate(Scenario(system, jobs, ("a", "b", "c"), "by hand"))
    found = shown(ScheduleWindow(run, run.jobs[0], 0, 60))
    of_core = sorted((each for each in found.runs if each.row == 0), key=lambda each: each.start)
    assert [(each.start, each.end, each.name, each.is_spin) for each in of_core] == [
        (0, 1, "a#0", False),
        (1, 3, "b#0", False),
        (3, 5, "a#0", False),
        (5, 11, "a#0", True),
        (11, 12, "a#0", False),
        (50, 51, "c#0", False),
        (51, 53, "b#1", False),
        (53, 56, "c#0", False),
    ]
    assert set(found.chart.panels[0].arrows) == {
        GanttArrow((0, 0, 5), (1, 0, 5)), GanttArrow((1, 0, 11), (0, 0, 11))
    }  # fmt: skip


def test_tasks_that_are_chosen_have_rows_and_what_is_beside_them_has_no_look() -> None:
    found = shown(pipeline(), ChartView(("a",)))
    assert found.tasks == ["a"]
    assert {(each.task, each.name) for each in found.runs if not each.is_spin} == {
        (0, "a#0"),
        (None, "a1#0"),
        (None, "b#0"),
    }
    assert {job.name for job in found.jobs} == {"a#0"}
    assert not found.chart.panels[1].arrows
    assert shown(pipeline(), ChartView(("b",))).resources == ["partition gpu"]


def test_a_part_is_cut_at_both_ends_and_keeps_the_times_of_the_whole() -> None:
    found = shown(pipeline(), ChartView(part=(3, 9)))
    assert (found.start, found.end, found.chart.caption) == (3, 9, "")
    assert set(found.runs) == {Run(0, 3, 5, 0, "a#0"), Run(1, 4, 6, 2, "b#0"), Run(1, 6, 9, 0, "a#0")}
    assert [job.arrival for job in found.jobs] == [0, 4]
    assert {mark.kind for mark in found.chart.panels[1].marks} == {"earlier", "arrival", "later"}
    with pytest.raises(InputError, match="nothing of b is in this part of the schedule"):
        shown(pipeline(), ChartView(("b",), (10, 12)))


def test_of_a_long_window_what_leads_to_the_job_is_shown() -> None:
    found = shown(many(40, 10))
    assert len(found.runs) == MOST_BARS
    assert len(found.tasks) == MOST_ROWS
    assert "t39" in found.tasks
    assert found.start == 400 - MOST_BARS
    assert found.chart.caption == "what is before 280 ms is left out; 16 more have no row (task)"
    assert (max(each.end for each in found.runs), found.end) == (400, 439)
    assert min(each.start for each in found.runs) == found.start
    window = many(40, 10)
    early = replace(window, job=window.run.jobs[149]._replace(arrival=100))
    found = shown(early)
    assert (found.start, found.end) == (150 - MOST_BARS, 150)
    assert found.chart.caption.startswith("what is before 30 ms and after 150 ms is left out")
    assert found.runs[-1].name == f"{early.job.task}#{early.job.number}"


@given(st.integers(1, 30), st.integers(1, 8))
def test_bars_of_a_chart_lie_within_it(tasks: int, jobs: int) -> None:
    found = shown(many(tasks, jobs))
    assert all(found.start <= each.start < each.end <= found.end for each in found.runs)
    assert {each.row for each in found.runs} == set(range(len(found.resources)))
    assert all(job.arrival < job.completion and job.completion > found.start for job in found.jobs)
    assert all(start < end <= job.completion for job in found.jobs for start, end in job.parts)


@given(st.integers(1, 8), st.integers(1, 8))
def test_bars_of_the_model_are_what_the_simulation_ran(tasks: int, jobs: int) -> None:
    window = many(tasks, jobs)
    found = shown(window)
    ran = {(each.start, each.end, f"{each.task}#{each.job}") for each in window.stretches}
    assert {(each.start, each.end, each.name) for each in found.runs} == ran
    assert {(job.arrival, job.completion, job.name) for job in found.jobs} == {
        (job.arrival, job.completion, f"{job.task}#{job.number}") for job in window.jobs
    }


def test_resources_beyond_the_limit_are_counted() -> None:
    hosts = tuple(GpuPartition(f"p{n}", ServerPolicy.FIFO) for n in range(30))
    system = TaskSet(tuple(one_kernel(f"t{n}", 1, 9, 9, partition=f"p{n}") for n in range(30)), hosts)
    jobs = tuple(JobPlan(f"t{n}", 0, 0, 0, (1,)) for n in range(30))
    run = simulate(Scenario(system, jobs, tuple(system.by_name), "beside each other"))
    job = next(job for job in run.jobs if job.task == "t7")
    found = shown(ScheduleWindow(run, job, 0, 1))
    assert len(found.resources) == len(found.runs) == MOST_ROWS
    assert found.chart.caption == "6 more have no row (task); 6 more have no row (core, engine or partition)"
    assert "partition p7" in found.resources
    assert "t7" in found.tasks


def test_of_what_is_shown_nothing_is_missing() -> None:
    system = TaskSet(
        (one_kernel("long", 1000, 2000, 2000, partition="one"), one_kernel("short", 1, 4, 4, partition="two")),
        (GpuPartition("one", ServerPolicy.FIFO), GpuPartition("two", ServerPolicy.FIFO)),
    )
    jobs = [JobPlan("long", 0, 0, 0, (1000,)), *(JobPlan("short", n, 4 * n, 4 * n, (1,)) for n in range(250))]
    run = simulate(Scenario(system, tuple(jobs), ("long", "short"), "beside each other"))
    found = shown(ScheduleWindow(run, run.jobs[-1], 0, 1000))
    assert len(found.runs) == MOST_BARS
    assert found.start == 4 * (250 - MOST_BARS) + 1
    assert [each for each in found.runs if each.row == 0] == [Run(0, found.start, 1000, 0, "long#0")]
    assert sum(each.row == 1 for each in found.runs) == MOST_BARS - 1
    (job,) = [job for job in found.jobs if job.row == 0]
    assert (job.arrival, job.parts) == (0, ((0, 1000),))


def test_jobs_of_a_task_that_overlap_have_lanes_of_their_own() -> None:
    """Two at a time; who comes when one has ended takes its lane."""
    system = TaskSet((one_kernel("a", 4, 2, 20, partition="gpu"),), (GpuPartition("gpu", ServerPolicy.FIFO),))
    arrivals = (0, 2, 4, 10)
    run = simulate(
        Scenario(system, tuple(JobPlan("a", n, t, t, (4,)) for n, t in enumerate(arrivals)), ("a",), "close")
    )
    found = shown(ScheduleWindow(run, run.jobs[0], 0, 20))
    assert found.jobs == [
        Job(0, 0, "a#0", 0, 4, ((0, 4),)),
        Job(0, 1, "a#1", 2, 8, ((4, 8),)),
        Job(0, 0, "a#2", 4, 12, ((8, 12),)),
        Job(0, 1, "a#3", 10, 16, ((12, 16),)),
    ]
    assert [row.lanes for row in found.chart.panels[1].rows] == [2]


def test_of_many_jobs_that_overlap_the_rest_shares_the_last_lane() -> None:
    system = TaskSet((one_kernel("a", 9, 1, 99, partition="gpu"),), (GpuPartition("gpu", ServerPolicy.FIFO),))
    run = simulate(Scenario(system, tuple(JobPlan("a", n, n, n, (9,)) for n in range(9)), ("a",), "close"))
    found = shown(ScheduleWindow(run, run.jobs[0], 0, 99))
    assert [job.lane for job in found.jobs] == [0, 1, 2, *[MOST_LANES - 1] * 6]
