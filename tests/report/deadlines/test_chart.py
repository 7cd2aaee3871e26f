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
    Arrow,
    ChartView,
    Handover,
    JobSpan,
    TaskBar,
    window_chart,
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
from tests.report.deadlines.windows import many, pipeline


def test_a_chart_has_what_runs_and_spins_and_what_leads_to_what() -> None:
    """The kernel of b is ready at 4, of a at 5: a ends at 10, which is the arrival of a1, which spins until 15."""
    shown = window_chart(pipeline())
    assert shown.resources == ("core cpu0", "copy engine h2d", "partition gpu")
    assert shown.tasks == ("a", "a1", "b")
    assert set(shown.bars) == {
        TaskBar(0, 0, 2, 0, "a#0"),
        TaskBar(1, 2, 5, 0, "a#0"),
        TaskBar(2, 4, 6, 2, "b#0"),
        TaskBar(2, 6, 10, 0, "a#0"),
        TaskBar(2, 10, 15, 1, "a1#0"),
        TaskBar(0, 10, 15, 1, "a1#0", is_spin=True),
        TaskBar(0, 15, 16, 1, "a1#0"),
    }
    assert set(shown.arrows) == {
        Arrow(0, 2, 1, 2, is_of_job=False),
        Arrow(1, 5, 2, 6, is_of_job=False),
        Arrow(2, 15, 0, 15, is_of_job=True),
    }
    assert set(shown.spans) == {
        JobSpan(0, 0, 0, 0, 20, 10, is_late=False, parts=((0, 2), (2, 5), (6, 10))),
        JobSpan(1, 1, 0, 10, 30, 16, is_late=False, parts=((10, 15), (15, 16))),
        JobSpan(2, 2, 0, 4, 24, 6, is_late=False, parts=((4, 6),)),
    }
    assert shown.handovers == (Handover(0, 1),)
    assert (shown.start, shown.end, shown.cut, shown.left_out) == (0, 30, (), (0, 0))


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
    shown = window_chart(ScheduleWindow(run, run.jobs[0], 0, 60))
    assert [(bar.start, bar.end, bar.label, bar.is_spin) for bar in sorted(shown.bars) if bar.row == 0] == [
        (0, 1, "a#0", False),
        (1, 3, "b#0", False),
        (3, 5, "a#0", False),
        (5, 11, "a#0", True),
        (11, 12, "a#0", False),
        (50, 51, "c#0", False),
        (51, 53, "b#1", False),
        (53, 56, "c#0", False),
    ]
    assert set(shown.arrows) == {Arrow(0, 5, 1, 5, is_of_job=False), Arrow(1, 11, 0, 11, is_of_job=False)}


def test_tasks_that_are_chosen_have_rows_and_what_is_beside_them_has_no_look() -> None:
    shown = window_chart(pipeline(), ChartView(("a",)))
    assert shown.tasks == ("a",)
    assert {(bar.task, bar.label) for bar in shown.bars} == {(0, "a#0"), (None, "a1#0"), (None, "b#0")}
    assert {span.task for span in shown.spans} == {0}
    assert not shown.handovers
    assert window_chart(pipeline(), ChartView(("b",))).resources == ("partition gpu",)


def test_a_part_is_cut_at_both_ends_and_keeps_the_times_of_the_whole() -> None:
    shown = window_chart(pipeline(), ChartView(part=(3, 9)))
    assert (shown.start, shown.end, shown.cut) == (3, 9, ())
    assert set(shown.bars) == {TaskBar(0, 3, 5, 0, "a#0"), TaskBar(1, 4, 6, 2, "b#0"), TaskBar(1, 6, 9, 0, "a#0")}
    assert [span.arrival for span in shown.spans] == [0, 4]
    with pytest.raises(InputError, match="nothing of b is in this part of the schedule"):
        window_chart(pipeline(), ChartView(("b",), (10, 12)))


def test_of_a_long_window_what_leads_to_the_job_is_shown() -> None:
    shown = window_chart(many(40, 10))
    assert len(shown.bars) == MOST_BARS
    assert len(shown.tasks) == MOST_ROWS
    assert "t39" in shown.tasks
    assert (shown.start, shown.cut, shown.left_out) == (400 - MOST_BARS, ("before",), (40 - MOST_ROWS, 0))
    assert (max(bar.end for bar in shown.bars), shown.end) == (400, 439)
    assert min(bar.start for bar in shown.bars) == shown.start
    window = many(40, 10)
    early = replace(window, job=window.run.jobs[149]._replace(arrival=100))
    shown = window_chart(early)
    assert (shown.start, shown.end, shown.cut) == (150 - MOST_BARS, 150, ("before", "after"))
    assert shown.bars[-1].label == f"{early.job.task}#{early.job.number}"


@given(st.integers(1, 30), st.integers(1, 8))
def test_bars_of_a_chart_lie_within_it(tasks: int, jobs: int) -> None:
    shown = window_chart(many(tasks, jobs))
    assert all(shown.start <= bar.start < bar.end <= shown.end for bar in shown.bars)
    assert {bar.row for bar in shown.bars} == set(range(len(shown.resources)))
    assert all(span.arrival < span.completion and span.completion > shown.start for span in shown.spans)
    assert all(start < end <= span.completion for span in shown.spans for start, end in span.parts)


def test_resources_beyond_the_limit_are_counted() -> None:
    hosts = tuple(GpuPartition(f"p{n}", ServerPolicy.FIFO) for n in range(30))
    system = TaskSet(tuple(one_kernel(f"t{n}", 1, 9, 9, partition=f"p{n}") for n in range(30)), hosts)
    jobs = tuple(JobPlan(f"t{n}", 0, 0, 0, (1,)) for n in range(30))
    run = simulate(Scenario(system, jobs, tuple(system.by_name), "beside each other"))
    job = next(job for job in run.jobs if job.task == "t7")
    shown = window_chart(ScheduleWindow(run, job, 0, 1))
    assert (len(shown.resources), shown.left_out) == (MOST_ROWS, (30 - MOST_ROWS, 30 - MOST_ROWS))
    assert "partition p7" in shown.resources
    assert "t7" in shown.tasks
    assert len(shown.bars) == MOST_ROWS


def test_of_what_is_shown_nothing_is_missing() -> None:
    system = TaskSet(
        (one_kernel("long", 1000, 2000, 2000, partition="one"), one_kernel("short", 1, 4, 4, partition="two")),
        (GpuPartition("one", ServerPolicy.FIFO), GpuPartition("two", ServerPolicy.FIFO)),
    )
    jobs = [JobPlan("long", 0, 0, 0, (1000,)), *(JobPlan("short", n, 4 * n, 4 * n, (1,)) for n in range(250))]
    run = simulate(Scenario(system, tuple(jobs), ("long", "short"), "beside each other"))
    shown = window_chart(ScheduleWindow(run, run.jobs[-1], 0, 1000))
    assert len(shown.bars) == MOST_BARS
    assert shown.start == 4 * (250 - MOST_BARS) + 1
    assert [bar for bar in shown.bars if bar.row == 0] == [TaskBar(0, shown.start, 1000, 0, "long#0")]
    assert sum(bar.row == 1 for bar in shown.bars) == MOST_BARS - 1
    (span,) = [span for span in shown.spans if span.row == 0]
    assert (span.arrival, span.parts) == (0, ((0, 1000),))


def test_jobs_of_a_task_that_overlap_have_lanes_of_their_own() -> None:
    """Two at a time; who comes when one has ended takes its lane."""
    system = TaskSet((one_kernel("a", 4, 2, 20, partition="gpu"),), (GpuPartition("gpu", ServerPolicy.FIFO),))
    arrivals = (0, 2, 4, 10)
    run = simulate(
        Scenario(system, tuple(JobPlan("a", n, t, t, (4,)) for n, t in enumerate(arrivals)), ("a",), "close")
    )
    spans = window_chart(ScheduleWindow(run, run.jobs[0], 0, 20)).spans
    assert [(span.number, span.arrival, span.completion, span.lane, span.parts) for span in spans] == [
        (0, 0, 4, 0, ((0, 4),)),
        (1, 2, 8, 1, ((4, 8),)),
        (2, 4, 12, 0, ((8, 12),)),
        (3, 10, 16, 1, ((12, 16),)),
    ]
    assert {span.lanes for span in spans} == {2}


def test_of_many_jobs_that_overlap_the_rest_shares_the_last_lane() -> None:
    system = TaskSet((one_kernel("a", 9, 1, 99, partition="gpu"),), (GpuPartition("gpu", ServerPolicy.FIFO),))
    run = simulate(Scenario(system, tuple(JobPlan("a", n, n, n, (9,)) for n in range(9)), ("a",), "close"))
    spans = window_chart(ScheduleWindow(run, run.jobs[0], 0, 99)).spans
    assert [span.lane for span in spans] == [0, 1, 2, *[MOST_LANES - 1] * 6]
