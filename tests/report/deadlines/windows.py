"""Windows of small schedules for tests of pictures."""

from makespan.deadlines.evidence import ScheduleWindow
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
