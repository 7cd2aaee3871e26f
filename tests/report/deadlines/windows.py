"""Windows of small schedules for tests of pictures."""

from makespan.deadlines.evidence import Window
from makespan.deadlines.simulation import Job, Scenario, simulate
from makespan.deadlines.task import (
    Activation,
    Chain,
    CopyEngine,
    Kind,
    Partition,
    Policy,
    Segment,
    Task,
    TaskSet,
    Wait,
    one_kernel,
)


def many(tasks: int, jobs: int) -> Window:
    """So many tasks of so many jobs each, one after another."""
    system = TaskSet(
        tuple(one_kernel(f"t{n}", 1, tasks, tasks, partition="gpu", priority=n) for n in range(tasks)),
        (Partition("gpu", Policy.FIXED_PRIORITY),),
    )
    released = [Job(f"t{n}", k, k * tasks + n, k * tasks + n, (1,)) for k in range(jobs) for n in range(tasks)]
    run = simulate(Scenario(system, tuple(released), tuple(system.by_name), "one after another"))
    return Window(run, run.jobs[-1], 0, tasks * jobs)


def pipeline() -> Window:
    """A task with CPU time, a copy and a kernel starts one that spins on the same core, beside a third one."""
    system = TaskSet(
        (
            Task(
                "a",
                (Segment(Kind.CPU, 2), Segment(Kind.COPY, 3, "h2d"), Segment(Kind.KERNEL, 4, "gpu")),
                20,
                20,
                priority=2,
                core="cpu0",
                wait=Wait.BLOCK,
            ),
            one_kernel("a1", 5, 20, 20, priority=1, partition="gpu", after=1, core="cpu0", wait=Wait.SPIN),
            one_kernel("b", 2, 20, 20, priority=0, partition="gpu"),
        ),
        (Partition("gpu", Policy.FIFO),),
        (Chain("c", ("a", "a1"), Activation.DATA),),
        (CopyEngine("h2d", Policy.FIFO),),
    )
    jobs = (Job("a", 0, 0, 0, (2, 3, 4)), Job("a1", 0, 0, 0, (5, 1)), Job("b", 0, 4, 4, (2,)))
    run = simulate(Scenario(system, jobs, ("a", "a1", "b"), "by hand"))
    return Window(run, next(job for job in run.jobs if job.task == "a1"), 0, 16)
