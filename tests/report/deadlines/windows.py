"""Windows of small schedules for tests of pictures, and how to read their charts."""

from fractions import Fraction
from typing import NamedTuple

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.report.chart import ALL, ChartView, window_chart
from makespan.deadlines.simulation import JobPlan, Scenario, simulate
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
from makespan.report.gantt.chart import Gantt, GanttLook

TICK = Fraction(1, 1000)


class Run(NamedTuple):
    """A part of a job on the row of what runs it; the number of its task says its look, None means another task."""

    row: int
    start: int
    end: int
    task: int | None
    name: str
    is_spin: bool = False


class Job(NamedTuple):
    """A job on the row of its task, from its arrival to its end, and when something of it runs."""

    row: int
    lane: int
    name: str
    arrival: int
    completion: int
    parts: tuple[tuple[int, int], ...]


class Shown(NamedTuple):
    """What a chart shows, read from its bars."""

    chart: Gantt
    resources: list[str]
    tasks: list[str]
    runs: list[Run]
    jobs: list[Job]
    start: int
    end: int


def shown(window: ScheduleWindow, view: ChartView = ALL) -> Shown:
    chart = window_chart(window, TICK, view=view)
    resources, tasks = chart.panels
    looks = [GanttLook.numbered(number) for number in range(len(window.run.scenario.task_set.tasks))]
    numbers = {look: number for number, look in reversed([*enumerate(looks)])}
    runs = []
    for bar in resources.bars:
        is_spin = ", spins" in bar.tip
        assert is_spin == (bar.thick < 0.5) == (not bar.texts)
        name = bar.tip.partition(" on ")[0]
        assert is_spin or bar.texts[0] == name
        runs.append(Run(bar.row, bar.start, bar.end, None if is_spin else numbers.get(bar.look), name, is_spin))
    jobs, parts = [], [(bar.tip, bar.start, bar.end) for bar in tasks.bars if bar.texts]
    for bar in tasks.bars:
        if not bar.texts:
            own = tuple((start, end) for tip, start, end in parts if tip == bar.tip)
            jobs.append(Job(bar.row, bar.lane, bar.tip.partition(": ")[0], bar.start, bar.end, own))
    (axis,) = chart.axis
    return Shown(chart, [row.label for row in resources.rows], [row.label for row in tasks.rows], runs, jobs, *axis[:2])


def many(tasks: int, jobs: int) -> ScheduleWindow:
    """So many tasks of so many jobs each, one after another."""
    system = TaskSet(
        tuple(one_kernel(f"t{n}", 1, tasks, tasks, partition="gpu", priority=n) for n in range(tasks)),
        (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY),),
    )
    released = [JobPlan(f"t{n}", k, k * tasks + n, k * tasks + n, (1,)) for k in range(jobs) for n in range(tasks)]
    run = simulate(Scenario(system, tuple(released), tuple(system.by_name), "one after another"))
    return ScheduleWindow(run, run.jobs[-1], 0, tasks * jobs)


def pipeline() -> ScheduleWindow:
    """A task with CPU time, a copy and a kernel starts one that spins on the same core, beside a third one."""
    system = TaskSet(
        (
            GpuTask(
                "a",
                (
                    JobSegment(SegmentKind.CPU, 2),
                    JobSegment(SegmentKind.COPY, 3, "h2d"),
                    JobSegment(SegmentKind.KERNEL, 4, "gpu"),
                ),
                20,
                20,
                priority=2,
                core="cpu0",
                wait=HostWait.BLOCK,
            ),
            one_kernel("a1", 5, 20, 20, priority=1, partition="gpu", after=1, core="cpu0", wait=HostWait.SPIN),
            one_kernel("b", 2, 20, 20, priority=0, partition="gpu"),
        ),
        (GpuPartition("gpu", ServerPolicy.FIFO),),
        (TaskChain("c", ("a", "a1"), ChainStart.DATA),),
        (CopyEngine("h2d", ServerPolicy.FIFO),),
    )
    jobs = (JobPlan("a", 0, 0, 0, (2, 3, 4)), JobPlan("a1", 0, 0, 0, (5, 1)), JobPlan("b", 0, 4, 4, (2,)))
    run = simulate(Scenario(system, jobs, ("a", "a1", "b"), "by hand"))
    return ScheduleWindow(run, next(job for job in run.jobs if job.task == "a1"), 0, 16)
