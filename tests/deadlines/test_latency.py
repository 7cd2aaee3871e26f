"""Reaction and age of chains, against schedules made by hand."""

from makespan.deadlines.simulation import JobPlan, Scenario, SimulatedRun, simulate
from makespan.deadlines.task import ChainStart, GpuPartition, GpuTask, ServerPolicy, TaskChain, TaskSet, one_kernel
from tests.deadlines.latency import Latency, latency

TASKS = (
    one_kernel("a", 2, 10, 10, offset=0, priority=2, partition="gpu"),
    one_kernel("b", 3, 10, 10, offset=1, priority=1, partition="gpu"),
)
PARTITIONS = (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY),)


def run(*chains: TaskChain, tasks: tuple[GpuTask, ...] = TASKS, jobs: tuple[JobPlan, ...] = ()) -> SimulatedRun:
    task_set = TaskSet(tasks, PARTITIONS, chains)
    return simulate(Scenario(task_set, jobs, tuple(task_set.by_name), "by hand"))


def timed(name: str, offset: int, wcet: int, count: int) -> tuple[JobPlan, ...]:
    return tuple(JobPlan(name, k, offset + 10 * k, offset + 10 * k, (wcet,)) for k in range(count))


def test_with_timers_data_waits_for_the_next_reader() -> None:
    """a ends at 2, 12, 22; b arrives at 1, 11, 21 and sees what a read at 0 from 11 on, and ends at 15 and 25."""
    chain = TaskChain("ab", ("a", "b"), ChainStart.PERIODIC)
    done = run(chain, jobs=(*timed("a", 0, 2, 4), *timed("b", 1, 3, 4)))
    assert [job.completion for job in done.jobs if job.task == "b"] == [5, 15, 25, 35]
    # a change just after 0 is read at 10 and shown at 25; what was read at 0 is in use from 15 to 25
    assert latency(done, chain) == Latency(reaction=25, age=25)


def test_one_task_samples_and_answers() -> None:
    chain = TaskChain("a", ("a",), ChainStart.PERIODIC)
    assert latency(run(chain, jobs=timed("a", 0, 2, 3), tasks=TASKS[:1]), chain) == Latency(12, 12)


def test_by_data_every_job_goes_through() -> None:
    tasks = (TASKS[0], one_kernel("b", 3, 10, 10, jitter=4, priority=1, partition="gpu"))
    chain = TaskChain("ab", ("a", "b"), ChainStart.DATA)
    started = (JobPlan("b", 0, 0, 0, (3,)), JobPlan("b", 1, 0, 4, (3,)), JobPlan("b", 2, 0, 0, (1,)))
    done = run(chain, tasks=tasks, jobs=(*timed("a", 0, 2, 3), *started))
    assert [(j.arrival, j.release, j.completion) for j in done.jobs if j.task == "b"] == [
        (2, 2, 5),
        (12, 16, 19),
        (22, 22, 23),
    ]
    assert latency(done, chain) == Latency(reaction=9, age=19)


def test_after_the_last_job_of_a_writer_nothing_is_measured() -> None:
    chain = TaskChain("ab", ("a", "b"), ChainStart.PERIODIC)
    done = run(chain, jobs=(*timed("a", 0, 2, 4), *timed("b", 1, 3, 9)))
    assert latency(done, chain) == Latency(reaction=25, age=25)


def test_one_output_is_not_replaced() -> None:
    chain = TaskChain("ab", ("a", "b"), ChainStart.PERIODIC)
    assert latency(run(chain, jobs=(*timed("a", 0, 2, 2), *timed("b", 1, 3, 2))), chain) == Latency(None, None)
