"""The simulator follows hand-made schedules tick by tick, and a plain simulation that advances one tick at a time."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.errors import InputError
from makespan.schedulability.simulation import Job, Phase, Run, Scenario, Segment, simulate
from makespan.schedulability.task import Partition, Policy, Task, TaskSet

FP, EDF, RELEASE, FIFO = Policy


def gpu_task(name: str, wcet: int, *, priority: int = 0, deadline: int = 100, jitter: int = 0) -> Task:
    return Task(name, wcet, 100, deadline, jitter=jitter, priority=priority, partition="gpu")


def on_gpu(policy: Policy, *tasks: Task) -> TaskSet:
    return TaskSet(tasks, (Partition("gpu", policy),))


def run(task_set: TaskSet, *jobs: tuple[str, int], order: str | None = None) -> Run:
    """First jobs of tasks, released as they arrive, that take as long as they may."""
    made = []
    for name, arrival in jobs:
        task = task_set.by_name[name]
        made.append(Job(name, 0, arrival, arrival, task.before, task.wcet, task.after))
    return simulate(Scenario(task_set, tuple(made), tuple(order or task_set.by_name), "by hand"))


def shown(segments: Iterable[Segment]) -> list[str]:
    return [f"{s.resource}: {s.task} {s.start}..{s.end}" for s in segments]


def test_a_kernel_that_runs_is_not_preempted_and_then_the_most_urgent_goes_first() -> None:
    task_set = on_gpu(FP, gpu_task("a", 3, priority=3), gpu_task("b", 4, priority=2), gpu_task("c", 5, priority=1))
    done = run(task_set, ("c", 0), ("b", 1), ("a", 4))
    assert shown(done.segments) == ["partition gpu: c 0..5", "partition gpu: a 5..8", "partition gpu: b 8..12"]
    assert done.responses == {"a": 4, "b": 11, "c": 5}


def test_a_release_at_the_end_of_a_kernel_is_there_for_the_choice() -> None:
    task_set = on_gpu(FP, gpu_task("a", 3, priority=3), gpu_task("b", 4, priority=2), gpu_task("c", 5, priority=1))
    assert shown(run(task_set, ("c", 0), ("b", 1), ("a", 5)).segments)[1] == "partition gpu: a 5..8"


def test_edf_goes_by_arrival_plus_deadline() -> None:
    """A job that is released late is no less urgent for that."""
    task_set = on_gpu(EDF, gpu_task("a", 3, deadline=20, jitter=9), gpu_task("b", 3, deadline=12), gpu_task("c", 8))
    jobs = (Job("a", 0, 0, 6, 0, 3, 0), Job("b", 0, 7, 7, 0, 3, 0), Job("c", 0, 0, 0, 0, 8, 0))
    done = simulate(Scenario(task_set, jobs, ("b", "a", "c"), "by hand"))
    assert [segment.task for segment in done.segments] == ["c", "b", "a"]  # 19 before 20
    done = simulate(Scenario(task_set, (jobs[0], Job("b", 0, 9, 9, 0, 3, 0), jobs[2]), ("b", "a", "c"), "by hand"))
    assert [segment.task for segment in done.segments] == ["c", "a", "b"]  # 20 before 21


def test_edf_by_releases_goes_by_release_plus_deadline_less_jitter() -> None:
    early, late = gpu_task("a", 3, deadline=20, jitter=9), gpu_task("b", 3, deadline=12)
    task_set = on_gpu(RELEASE, early, late, gpu_task("c", 2, deadline=100))
    done = run(task_set, ("c", 0), ("a", 1), ("b", 1))
    assert [segment.task for segment in done.segments] == ["c", "a", "b"]  # 12 before 13
    task_set = on_gpu(RELEASE, gpu_task("a", 3, deadline=20, jitter=7), late, gpu_task("c", 2))
    done = run(task_set, ("c", 0), ("a", 1), ("b", 1))
    assert [segment.task for segment in done.segments] == ["c", "b", "a"]  # 13 before 14


def test_fifo_goes_by_the_instant_at_which_a_kernel_is_ready() -> None:
    behind = Task("a", 3, 100, 100, priority=1, before=4, core="0", partition="gpu")
    first = Task("b", 3, 100, 100, priority=1, partition="gpu")
    task_set = on_gpu(FIFO, behind, first, gpu_task("c", 9))
    done = run(task_set, ("c", 0), ("a", 0), ("b", 3), order="cab")
    assert [segment.task for segment in done.segments if segment.phase is Phase.KERNEL] == ["c", "b", "a"]
    done = run(task_set, ("c", 0), ("a", 0), ("b", 5), order="cab")
    assert [segment.task for segment in done.segments if segment.phase is Phase.KERNEL] == ["c", "a", "b"]


def test_the_order_decides_among_equals() -> None:
    task_set = on_gpu(FIFO, gpu_task("a", 3), gpu_task("b", 4))
    assert [s.task for s in run(task_set, ("a", 0), ("b", 0), order="ba").segments] == ["b", "a"]
    assert [s.task for s in run(task_set, ("a", 0), ("b", 0), order="ab").segments] == ["a", "b"]


def test_a_core_preempts_and_a_job_goes_from_cpu_to_gpu_to_cpu() -> None:
    urgent = Task("u", 4, 100, 100, priority=2, before=2, after=1, core="0", partition="left")
    other = Task("o", 3, 100, 100, priority=1, before=5, after=4, core="0", partition="right")
    task_set = TaskSet((urgent, other), (Partition("left", FP), Partition("right", FP)))
    done = run(task_set, ("o", 0), ("u", 1))
    assert shown(done.segments) == [
        "core 0: o 0..1",
        "core 0: u 1..3",
        "core 0: o 3..7",
        "partition left: u 3..7",
        "core 0: u 7..8",
        "partition right: o 7..10",
        "core 0: o 10..14",
    ]
    assert done.responses == {"u": 7, "o": 14}


def test_two_jobs_of_a_task_keep_their_order_where_they_meet() -> None:
    task = Task("t", 9, 5, 20, priority=1, before=2, after=3, core="0", partition="gpu")
    jobs = (Job("t", 0, 0, 0, 2, 9, 3), Job("t", 1, 5, 5, 2, 4, 3), Job("t", 2, 10, 10, 2, 1, 3))
    done = simulate(Scenario(on_gpu(FP, task), jobs, ("t",), "by hand"))
    assert [(s.phase.value, s.job, s.start, s.end) for s in done.segments] == [
        ("before", 0, 0, 2),
        ("before", 1, 5, 7),
        ("kernel", 0, 2, 11),
        ("before", 2, 10, 11),
        ("after", 0, 11, 14),
        ("kernel", 1, 11, 15),
        ("before", 2, 14, 15),
        ("kernel", 2, 15, 16),
        ("after", 1, 15, 18),
        ("after", 2, 18, 21),
    ]
    assert [job.response for job in done.jobs] == [14, 13, 11]


def test_what_is_late_is_said() -> None:
    done = run(on_gpu(FIFO, gpu_task("a", 6, deadline=9), gpu_task("b", 4, deadline=9)), ("a", 0), ("b", 0))
    assert [(job.task, job.slack, job.is_late) for job in done.jobs] == [("a", 3, False), ("b", -1, True)]
    assert done.late == (done.tightest(),)
    assert done.tightest("a") == done.jobs[0]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ((Job("x", 0, 0, 0, 0, 1, 0),), "there is no task x"),
        ((Job("a", 1, 0, 0, 0, 1, 0),), "job 1 of task a is not the next one"),
        ((Job("a", 0, 0, 0, 0, 1, 0), Job("a", 1, 99, 99, 0, 1, 0)), "job 1 of task a arrives too early, at 99"),
        ((Job("a", 0, 4, 3, 0, 1, 0),), "arrives at 4 and is released at 3"),
        ((Job("a", 0, 4, 7, 0, 1, 0),), "arrives at 4 and is released at 7"),
        ((Job("a", 0, 0, 0, 0, 7, 0),), "runs for 7 ticks as kernel, and at most 6 are allowed"),
        ((Job("a", 0, 0, 0, 0, 0, 0),), "runs for 0 ticks as kernel"),
        ((Job("a", 0, 0, 0, 1, 6, 0),), "runs for 1 ticks as before, and at most 0 are allowed"),
        ((Job("p", 0, 3, 3, 0, 1, 0),), "arrives at 3, and the task is strictly periodic"),
    ],
)
def test_an_illegal_scenario_is_refused(jobs: tuple[Job, ...], message: str) -> None:
    strict = Task("p", 2, 100, 100, offset=2, priority=0, partition="gpu")
    task_set = on_gpu(FP, gpu_task("a", 6, jitter=2), strict)
    with pytest.raises(InputError, match=message):
        Scenario(task_set, jobs, ("a", "p"), "by hand")


def test_a_task_without_a_partition_is_refused() -> None:
    task_set = TaskSet((Task("a", 1, 2, 2),), (Partition("gpu", EDF),))
    with pytest.raises(InputError, match="task a has no partition"):
        Scenario(task_set, (), ("a",), "by hand")


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Up to four tasks on up to two partitions and two cores, up to four jobs each."""
    ticks = st.integers(0, 4)
    partitions = tuple(Partition(name, draw(st.sampled_from(Policy))) for name in "gh"[: draw(st.integers(1, 2))])
    tasks, jobs = [], []
    for name in "abcd"[: draw(st.integers(1, 4))]:
        before, wcet, after, jitter = draw(ticks), 1 + draw(ticks), draw(ticks), draw(ticks)
        tasks.append(
            Task(
                name,
                wcet,
                draw(st.integers(1, 9)),
                draw(st.integers(1, 20)),
                jitter=jitter,
                priority=draw(st.integers(0, 2)),
                before=before,
                after=after,
                core=draw(st.sampled_from("01")),
                partition=draw(st.sampled_from(partitions)).name,
            )
        )
        arrival, release = draw(ticks), 0
        for number in range(draw(st.integers(0, 4))):
            release = max(release, arrival + draw(st.integers(0, jitter)))
            parts = [draw(st.integers(min(1, most), most)) for most in (before, wcet, after)]
            jobs.append(Job(name, number, arrival, release, *parts))
            arrival += tasks[-1].period + draw(ticks)
    order = tuple(draw(st.permutations([task.name for task in tasks])))
    return Scenario(TaskSet(tuple(tasks), partitions), tuple(jobs), order, "drawn")


def tick_by_tick(scenario: Scenario) -> dict[tuple[str, int], int]:
    """When each job ends, by looking at every tick: slow, and written down anew from the model."""
    tasks, policies = scenario.task_set.by_name, {p.name: p.policy for p in scenario.task_set.partitions}
    left = {job: [job.before, job.kernel, job.after] for job in scenario.jobs}
    ready_since: dict[Job, int] = {}
    running: dict[str, Job | None] = dict.fromkeys(policies)
    ends: dict[tuple[str, int], int] = {}
    now = 0

    def urgency(policy: Policy, job: Job) -> int:
        task = tasks[job.task]
        due = {EDF: job.arrival + task.deadline, RELEASE: job.release + task.deadline - task.jitter}
        return {**due, FP: -(task.priority or 0), FIFO: ready_since[job]}[policy]

    while len(ends) < len(scenario.jobs):
        for job, parts in left.items():
            if job.release <= now and parts[0] == 0:
                ready_since.setdefault(job, now)
        for partition, policy in policies.items():
            waiting = [
                job
                for job, parts in left.items()
                if tasks[job.task].partition == partition and job in ready_since and parts[1]
            ]
            if running[partition] is None and waiting:
                running[partition] = min(
                    waiting, key=lambda j: (urgency(policy, j), scenario.order.index(j.task), j.number)
                )
        chosen = []
        for core in scenario.task_set.cores:
            waiting = [
                job
                for job, parts in left.items()
                if tasks[job.task].core == core and job.release <= now and (parts[0] or (parts[1] == 0 and parts[2]))
            ]
            if waiting:
                chosen.append(
                    min(waiting, key=lambda j: (-(tasks[j.task].priority or 0), scenario.order.index(j.task), j.number))
                )
        for job in chosen:
            left[job][0 if left[job][0] else 2] -= 1
        for partition, kernel in running.items():
            if kernel is not None:
                left[kernel][1] -= 1
                running[partition] = kernel if left[kernel][1] else None
        now += 1
        for job, parts in left.items():
            if not any(parts):
                ends.setdefault((job.task, job.number), now)
    return ends


@given(scenarios())
def test_events_agree_with_looking_at_every_tick(scenario: Scenario) -> None:
    done = simulate(scenario)
    assert {(job.task, job.number): job.completion for job in done.jobs} == tick_by_tick(scenario)


@given(scenarios())
def test_segments_are_what_the_jobs_ask_for(scenario: Scenario) -> None:
    segments = simulate(scenario).segments
    for job in scenario.jobs:
        for phase, ticks in zip(Phase, (job.before, job.kernel, job.after), strict=True):
            own = [s for s in segments if (s.task, s.job, s.phase) == (job.task, job.number, phase)]
            assert sum(s.end - s.start for s in own) == ticks
            assert phase is not Phase.KERNEL or len(own) == 1
    for resource in {segment.resource for segment in segments}:
        there = sorted((s.start, s.end) for s in segments if s.resource == resource)
        assert all(start < end for start, end in there)
        assert all(end <= start for (_, end), (start, _) in pairwise(there))
