"""The simulator follows hand-made schedules tick by tick, and a plain simulation that advances one tick at a time."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.simulation import JobPlan, Scenario, ServiceStretch, SimulatedRun, simulate
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
from makespan.host.errors import InputError

FP, EDF, RELEASE, FIFO = ServerPolicy


def gpu_task(name: str, wcet: int, *, priority: int = 0, deadline: int = 100, jitter: int = 0) -> GpuTask:
    return one_kernel(name, wcet, 100, deadline, jitter=jitter, priority=priority, partition="gpu")


def on_gpu(policy: ServerPolicy, *tasks: GpuTask) -> TaskSet:
    return TaskSet(tasks, (GpuPartition("gpu", policy),), engines=(CopyEngine("e", FIFO),))


def run(task_set: TaskSet, *jobs: tuple[str, int], order: str | None = None) -> SimulatedRun:
    """First jobs of tasks, released as they arrive, that take as long as they may."""
    made = []
    for name, arrival in jobs:
        times = tuple(segment.wcet for segment in task_set.by_name[name].segments)
        made.append(JobPlan(name, 0, arrival, arrival, times))
    return simulate(Scenario(task_set, tuple(made), tuple(order or task_set.by_name), "by hand"))


def shown(stretches: Iterable[ServiceStretch]) -> list[str]:
    return [f"{s.resource}: {s.task} {s.start}..{s.end}" for s in stretches]


def test_a_kernel_that_runs_is_not_preempted_and_then_the_most_urgent_goes_first() -> None:
    task_set = on_gpu(FP, gpu_task("a", 3, priority=3), gpu_task("b", 4, priority=2), gpu_task("c", 5, priority=1))
    done = run(task_set, ("c", 0), ("b", 1), ("a", 4))
    assert shown(done.stretches) == ["partition gpu: c 0..5", "partition gpu: a 5..8", "partition gpu: b 8..12"]
    assert done.responses == {"a": 4, "b": 11, "c": 5}


def test_a_release_at_the_end_of_a_kernel_is_there_for_the_choice() -> None:
    task_set = on_gpu(FP, gpu_task("a", 3, priority=3), gpu_task("b", 4, priority=2), gpu_task("c", 5, priority=1))
    assert shown(run(task_set, ("c", 0), ("b", 1), ("a", 5)).stretches)[1] == "partition gpu: a 5..8"


def test_edf_goes_by_arrival_plus_deadline() -> None:
    """A job that is released late is no less urgent for that."""
    task_set = on_gpu(EDF, gpu_task("a", 3, deadline=20, jitter=9), gpu_task("b", 3, deadline=12), gpu_task("c", 10))
    jobs = (JobPlan("a", 0, 0, 6, (3,)), JobPlan("b", 0, 7, 7, (3,)), JobPlan("c", 0, 0, 0, (10,)))
    done = simulate(Scenario(task_set, jobs, ("b", "a", "c"), "by hand"))
    assert [s.task for s in done.stretches] == ["c", "b", "a"]  # 19 before 20
    done = simulate(Scenario(task_set, (jobs[0], JobPlan("b", 0, 9, 9, (3,)), jobs[2]), ("b", "a", "c"), "by hand"))
    assert [s.task for s in done.stretches] == ["c", "a", "b"]  # 20 before 21


def test_edf_by_releases_goes_by_release_plus_deadline_less_jitter() -> None:
    early, late = gpu_task("a", 3, deadline=20, jitter=9), gpu_task("b", 3, deadline=12)
    task_set = on_gpu(RELEASE, early, late, gpu_task("c", 2, deadline=100))
    done = run(task_set, ("c", 0), ("a", 1), ("b", 1))
    assert [s.task for s in done.stretches] == ["c", "a", "b"]  # 12 before 13
    task_set = on_gpu(RELEASE, gpu_task("a", 3, deadline=20, jitter=7), late, gpu_task("c", 2))
    done = run(task_set, ("c", 0), ("a", 1), ("b", 1))
    assert [s.task for s in done.stretches] == ["c", "b", "a"]  # 13 before 14


def test_fifo_goes_by_the_instant_at_which_a_kernel_is_ready() -> None:
    behind = one_kernel("a", 3, 100, 100, priority=1, before=4, core="0", wait=HostWait.BLOCK, partition="gpu")
    first = one_kernel("b", 3, 100, 100, priority=1, partition="gpu")
    task_set = on_gpu(FIFO, behind, first, gpu_task("c", 9))
    done = run(task_set, ("c", 0), ("a", 0), ("b", 3), order="cab")
    assert [s.task for s in done.stretches if s.kind is SegmentKind.KERNEL] == ["c", "b", "a"]
    done = run(task_set, ("c", 0), ("a", 0), ("b", 5), order="cab")
    assert [s.task for s in done.stretches if s.kind is SegmentKind.KERNEL] == ["c", "a", "b"]


def test_the_order_decides_among_equals() -> None:
    task_set = on_gpu(FIFO, gpu_task("a", 3), gpu_task("b", 4))
    assert [s.task for s in run(task_set, ("a", 0), ("b", 0), order="ba").stretches] == ["b", "a"]
    assert [s.task for s in run(task_set, ("a", 0), ("b", 0), order="ab").stretches] == ["a", "b"]


def test_a_core_preempts_and_a_job_goes_from_cpu_to_gpu_to_cpu() -> None:
    urgent = one_kernel(
        "u", 4, 100, 100, priority=2, before=2, after=1, core="0", wait=HostWait.BLOCK, partition="left"
    )
    other = one_kernel(
        "o", 3, 100, 100, priority=1, before=5, after=4, core="0", wait=HostWait.BLOCK, partition="right"
    )
    task_set = TaskSet((urgent, other), (GpuPartition("left", FP), GpuPartition("right", FP)))
    done = run(task_set, ("o", 0), ("u", 1))
    assert shown(done.stretches) == [
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
    task = one_kernel("t", 9, 5, 20, priority=1, before=2, after=3, core="0", wait=HostWait.BLOCK, partition="gpu")
    jobs = (JobPlan("t", 0, 0, 0, (2, 9, 3)), JobPlan("t", 1, 5, 5, (2, 4, 3)), JobPlan("t", 2, 10, 10, (2, 1, 3)))
    done = simulate(Scenario(on_gpu(FP, task), jobs, ("t",), "by hand"))
    assert [(s.index, s.job, s.start, s.end) for s in done.stretches] == [
        (0, 0, 0, 2),
        (0, 1, 5, 7),
        (1, 0, 2, 11),
        (0, 2, 10, 11),
        (2, 0, 11, 14),
        (1, 1, 11, 15),
        (0, 2, 14, 15),
        (1, 2, 15, 16),
        (2, 1, 15, 18),
        (2, 2, 18, 21),
    ]
    assert [job.response for job in done.jobs] == [14, 13, 11]


def on_core(name: str, *segments: JobSegment, priority: int, wait: HostWait = HostWait.BLOCK) -> GpuTask:
    return GpuTask(name, segments, 100, 100, priority=priority, core="0", wait=wait)


def gpu(wcet: int, delay: int = 0) -> JobSegment:
    return JobSegment(SegmentKind.KERNEL, wcet, "gpu", delay)


def cpu(wcet: int) -> JobSegment:
    return JobSegment(SegmentKind.CPU, wcet)


@pytest.mark.parametrize(("wait", "other"), [(HostWait.SPIN, ["core 0: o 4..6"]), (HostWait.BLOCK, ["core 0: o 0..2"])])
def test_a_thread_that_spins_keeps_its_core_from_the_less_urgent(wait: HostWait, other: list[str]) -> None:
    task_set = on_gpu(FIFO, on_core("u", gpu(3), cpu(1), priority=2, wait=wait), on_core("o", cpu(2), priority=1))
    done = run(task_set, ("u", 0), ("o", 0))
    assert shown(s for s in done.stretches if s.task == "o") == other
    assert done.responses["u"] == 4


def test_a_thread_that_spins_is_preempted_while_its_kernel_goes_on() -> None:
    spinner, urgent = on_core("s", gpu(4), priority=1, wait=HostWait.SPIN), on_core("u", cpu(2), priority=2)
    done = run(on_gpu(FIFO, spinner, urgent), ("s", 0), ("u", 1))
    assert [(s.resource, s.task, s.start, s.end, s.is_spin) for s in done.stretches] == [
        ("core 0", "s", 0, 1, True),
        ("core 0", "u", 1, 3, False),
        ("partition gpu", "s", 0, 4, False),
        ("core 0", "s", 3, 4, True),
    ]


def test_a_thread_spins_through_launch_and_waiting() -> None:
    """The kernel is ready at 2 and waits until 5 for that of b; a spins from its release on."""
    spinner, other = on_core("a", gpu(1, delay=2), priority=2, wait=HostWait.SPIN), on_core("o", cpu(1), priority=1)
    task_set = on_gpu(FIFO, spinner, other, gpu_task("b", 5))
    jobs = (JobPlan("a", 0, 0, 0, (1,), (2,)), JobPlan("o", 0, 0, 0, (1,)), JobPlan("b", 0, 0, 0, (5,)))
    done = simulate(Scenario(task_set, jobs, ("b", "a", "o"), "by hand"))
    assert shown(done.stretches) == [
        "partition gpu: b 0..5",
        "core 0: a 0..6",
        "partition gpu: a 5..6",
        "core 0: o 6..7",
    ]


def test_a_copy_engine_copies_while_a_kernel_runs_and_one_at_a_time() -> None:
    copies = (JobSegment(SegmentKind.COPY, 2, "e"), gpu(3), JobSegment(SegmentKind.COPY, 1, "e"))
    tasks = (GpuTask("a", copies, 100, 100), GpuTask("b", copies, 100, 100))
    done = run(on_gpu(FIFO, *tasks), ("a", 0), ("b", 0))
    assert shown(done.stretches) == [
        "copy engine e: a 0..2",
        "copy engine e: b 2..4",
        "partition gpu: a 2..5",
        "copy engine e: a 5..6",
        "partition gpu: b 5..8",
        "copy engine e: b 8..9",
    ]


def test_a_task_that_several_start_waits_for_the_last_of_them() -> None:
    """a ends at 1 and starts b, until 5, and c, until 3; d arrives at 5 and is released two ticks later."""
    sizes = {"a": 1, "b": 4, "c": 2, "d": 3}
    tasks = [one_kernel(name, wcet, 100, 100, partition=name, jitter=9) for name, wcet in sizes.items()]
    chains = tuple(TaskChain(way, tuple(way), ChainStart.DATA) for way in ("abd", "acd"))
    task_set = TaskSet(tuple(tasks), tuple(GpuPartition(name, FIFO) for name in sizes), chains)
    jobs = tuple(JobPlan(name, 0, 0, 2 if name == "d" else 0, (wcet,)) for name, wcet in sizes.items())
    last = simulate(Scenario(task_set, jobs, ("d", "c", "b", "a"), "by hand")).jobs[-1]
    assert (last.task, last.arrival, last.release, last.completion) == ("d", 5, 7, 10)


@pytest.mark.parametrize(("arrival", "order"), [(2, "fx"), (0, "xf")])
def test_under_edf_a_job_that_data_starts_is_due_from_its_own_arrival(arrival: int, order: str) -> None:
    """f arrives at 3 and is due at 8; x is due 7 ticks after its arrival; both wait until 4."""
    tasks = (gpu_task("z", 4), gpu_task("f", 1, deadline=5), gpu_task("x", 1, deadline=7))
    head = one_kernel("h", 3, 100, 100, partition="side")
    chain = TaskChain("hf", ("h", "f"), ChainStart.DATA)
    task_set = TaskSet((*tasks, head), (GpuPartition("gpu", EDF), GpuPartition("side", EDF)), (chain,))
    done = simulate(
        Scenario(
            task_set,
            (
                JobPlan("z", 0, 0, 0, (4,)),
                JobPlan("f", 0, 0, 0, (1,)),
                JobPlan("x", 0, arrival, arrival, (1,)),
                JobPlan("h", 0, 0, 0, (3,)),
            ),
            ("z", *reversed(order), "h"),
            "by hand",
        )
    )
    assert [s.task for s in done.stretches if s.task in order] == list(order)


def test_a_segment_is_not_ready_before_that_of_the_job_before() -> None:
    task_set = on_gpu(FIFO, GpuTask("t", (gpu(2, delay=3),), 1, 100, jitter=1), gpu_task("o", 1))
    jobs = (JobPlan("t", 0, 0, 1, (2,), (3,)), JobPlan("t", 1, 1, 1, (2,), (0,)), JobPlan("o", 0, 3, 3, (1,)))
    done = simulate(Scenario(task_set, jobs, ("t", "o"), "by hand"))
    assert [(s.task, s.job, s.start) for s in done.stretches] == [("o", 0, 3), ("t", 0, 4), ("t", 1, 6)]


@pytest.mark.parametrize(
    ("policy", "order"), [(FP, [(0, 0), (0, 2), (1, 0), (1, 2)]), (FIFO, [(0, 0), (1, 0), (0, 2), (1, 2)])]
)
def test_the_earlier_job_goes_first_unless_the_later_is_ready_first_in_a_fifo(
    policy: ServerPolicy, order: list[tuple[int, int]]
) -> None:
    """The copy of the first job ends at 4, when another kernel still runs; the second job has been ready since 3."""
    task = GpuTask("t", (gpu(2), JobSegment(SegmentKind.COPY, 2, "e"), gpu(1)), 3, 100, priority=1)
    task_set = on_gpu(policy, task, gpu_task("o", 3, priority=2))
    jobs = (
        *(JobPlan("t", number, 3 * number, 3 * number, (2, 2, 1)) for number in (0, 1)),
        JobPlan("o", 0, 2, 2, (3,)),
    )
    done = simulate(Scenario(task_set, jobs, ("t", "o"), "by hand"))
    assert [(s.job, s.index) for s in done.stretches if (s.task, s.kind) == ("t", SegmentKind.KERNEL)] == order


def test_what_is_late_is_said() -> None:
    done = run(on_gpu(FIFO, gpu_task("a", 6, deadline=9), gpu_task("b", 4, deadline=9)), ("a", 0), ("b", 0))
    assert [(job.task, job.slack, job.is_late) for job in done.jobs] == [("a", 3, False), ("b", -1, True)]
    assert done.late == (done.tightest(),)
    assert done.tightest("a") == done.jobs[0]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ((JobPlan("x", 0, 0, 0, (1,)),), "there is no task x"),
        ((JobPlan("a", 1, 0, 0, (1,)),), "job 1 of task a is not the next one"),
        ((JobPlan("a", 0, 0, 0, (1,)), JobPlan("a", 1, 99, 99, (1,))), "job 1 of task a arrives too early, at 99"),
        ((JobPlan("a", 0, 4, 3, (1,)),), "arrives at 4 and is released at 3"),
        ((JobPlan("a", 0, 4, 7, (1,)),), "arrives at 4 and is released at 7"),
        ((JobPlan("a", 0, 0, 0, (7,)),), "segment 1 of job 0 of task a runs for 7 ticks, and 1..6 are allowed"),
        ((JobPlan("a", 0, 0, 0, (0,)),), "runs for 0 ticks, and 1..6 are allowed"),
        ((JobPlan("a", 0, 0, 0, (1, 6)),), "has 1 segments, not 2 times and 1 delays"),
        (
            (JobPlan("a", 0, 0, 0, (6,), (1,)),),
            "segment 1 of job 0 of task a is launched in 1 ticks, and 0..0 are allowed",
        ),
        ((JobPlan("d", 0, 1, 1, (1,)),), "job 0 of task d is started by data of p, with a delay of 0..0 ticks"),
        ((JobPlan("d", 0, 0, 0, (1,)),), "data starts 0 jobs of task d, not 1"),
        ((JobPlan("p", 0, 2, 2, (1,)),), "data starts 1 jobs of task d, not 0"),
        ((JobPlan("p", 0, 3, 3, (1,)),), "arrives at 3, and the task is strictly periodic"),
    ],
)
def test_an_illegal_scenario_is_refused(jobs: tuple[JobPlan, ...], message: str) -> None:
    strict = one_kernel("p", 2, 100, 100, offset=2, priority=0, partition="gpu")
    task_set = on_gpu(FP, gpu_task("a", 6, jitter=2), strict, gpu_task("d", 1))
    task_set = replace(task_set, chains=(TaskChain("pd", ("p", "d"), ChainStart.DATA),))
    with pytest.raises(InputError, match=message):
        Scenario(task_set, jobs, ("a", "p", "d"), "by hand")


def test_a_task_without_a_partition_is_refused() -> None:
    task_set = TaskSet((one_kernel("a", 1, 2, 2),), (GpuPartition("gpu", EDF),))
    with pytest.raises(InputError, match="task a has no partition"):
        Scenario(task_set, (), ("a",), "by hand")


FAMILIES = ((), ("ab",), ("abc",), ("ab", "ac"), ("abd", "acd"), ("ab", "cd"), ("abc", "ac"))
"""Which tasks start which by data."""


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Four tasks of up to three segments, some in families, on up to two partitions, an engine and two cores."""
    few, name_of = st.integers(0, 3), "abcd"
    partitions = tuple(
        GpuPartition(name, draw(st.sampled_from(ServerPolicy))) for name in "gh"[: draw(st.integers(1, 2))]
    )
    engines = (CopyEngine("e", draw(st.sampled_from(ServerPolicy))),)
    ways = draw(st.sampled_from(FAMILIES))
    chains = tuple(TaskChain(way, tuple(way), ChainStart.DATA) for way in ways)
    common, count = draw(st.integers(1, 12)), draw(few)
    tasks, jobs = [], []
    for name in name_of:
        is_in = any(name in way for way in ways)
        segments = []
        for _ in range(draw(st.integers(1, 3))):
            kind, wcet = draw(st.sampled_from(SegmentKind)), draw(st.integers(1, 4))
            places: dict[SegmentKind, tuple[str | None, ...]] = {
                SegmentKind.CPU: (None,),
                SegmentKind.COPY: ("e",),
                SegmentKind.KERNEL: tuple(p.name for p in partitions),
            }
            delay = 0 if kind is SegmentKind.CPU else draw(st.sampled_from((0, 0, 2)))
            segments.append(JobSegment(kind, wcet, draw(st.sampled_from(places[kind])), delay))
        task = GpuTask(
            name,
            tuple(segments),
            common if is_in else draw(st.integers(1, 9)),
            draw(st.integers(1, 20)),
            jitter=draw(st.sampled_from((0, 0, 1, 4))),
            priority=draw(st.integers(0, 2)),
            core=draw(st.sampled_from("01")),
            wait=draw(st.sampled_from(HostWait)),
        )
        tasks.append(task)
        is_started = any(name in way[1:] for way in ways)
        arrival, release = 0 if is_started else draw(few), 0
        for number in range(count if is_in else draw(few)):
            wait = draw(st.integers(0, task.jitter))
            release = wait if is_started else max(release, arrival + wait)
            times = tuple(draw(st.integers(1, segment.wcet)) for segment in segments)
            delays = tuple(draw(st.integers(0, segment.delay)) for segment in segments)
            jobs.append(JobPlan(name, number, arrival, release, times, delays))
            arrival += 0 if is_started else task.period + draw(few)
    order = tuple(draw(st.permutations(name_of)))
    return Scenario(TaskSet(tuple(tasks), partitions, chains, engines), tuple(jobs), order, "drawn")


class Walker:
    """A job in a simulation that looks at every tick; `left` counts its own segment, `since` when that is ready."""

    def __init__(self, job: JobPlan, task: GpuTask) -> None:
        self.job, self.task = job, task
        self.arrival: int | None = None
        self.release = self.since = self.index = -1
        self.left = 0
        self.end: int | None = None

    @property
    def segment(self) -> JobSegment:
        return self.task.segments[self.index]

    def is_at(self, kind: SegmentKind, resource: str | None, now: int) -> bool:
        """Whether its segment is ready there."""
        is_there = self.index >= 0 and self.end is None and self.segment.kind is kind and self.since <= now
        return is_there and (self.segment.resource if kind is not SegmentKind.CPU else self.task.core) == resource


def tick_by_tick(scenario: Scenario) -> dict[tuple[str, int], int]:
    """When each job ends, by looking at every tick: slow, and written down anew from the model."""
    task_set, order = scenario.task_set, scenario.order
    walkers = {(job.task, job.number): Walker(job, task_set.by_name[job.task]) for job in scenario.jobs}
    sources = {
        name: [way.tasks[way.tasks.index(name) - 1] for way in task_set.chains if name in way.tasks[1:]]
        for name in order
    }
    running: dict[str, Walker] = {}
    now = 0

    def earlier(w: Walker) -> list[Walker]:
        return [walkers[w.job.task, number] for number in range(w.job.number)]

    def enter(w: Walker, index: int) -> None:
        w.index, w.left = index, w.job.times[index]
        w.since = max([now + w.job.delays[index], *(e.since for e in earlier(w) if e.end is None and e.index == index)])

    def arrive() -> None:
        for (name, number), w in sorted(walkers.items(), key=lambda item: item[0][1]):
            if w.arrival is None:
                before = [walkers[source, number].end for source in sources[name]]
                w.arrival = now if before and None not in before else None if before else w.job.arrival
                if w.arrival is not None:
                    release = w.job.release + (now if before else 0)
                    w.release = max([release, *(e.release for e in earlier(w))])
            if w.arrival is not None and w.release <= now and w.index < 0:
                enter(w, 0)

    def urgency(policy: ServerPolicy, w: Walker) -> int:
        due = (w.arrival or 0) + w.task.deadline
        return {
            FP: -(w.task.priority or 0),
            EDF: due,
            RELEASE: w.release + w.task.deadline - w.task.jitter,
            FIFO: w.since,
        }[policy]

    def first(policy: ServerPolicy, some: list[Walker]) -> Walker:
        return min(some, key=lambda w: (urgency(policy, w), order.index(w.job.task), w.job.number))

    while any(w.end is None for w in walkers.values()):
        arrive()
        for server in task_set.servers:
            kind = SegmentKind.COPY if isinstance(server, CopyEngine) else SegmentKind.KERNEL
            waiting = [w for w in walkers.values() if w.is_at(kind, server.name, now)]
            if server.name not in running and waiting:
                running[server.name] = first(server.policy, waiting)
        at_work = list(running.values())
        for core in task_set.cores:
            waiting = [w for w in walkers.values() if w.is_at(SegmentKind.CPU, core, now)]
            spinning = [
                w
                for w in walkers.values()
                if w.task.core == core and w.task.wait is HostWait.SPIN and w.index >= 0 and w.end is None
                if w.segment.kind is not SegmentKind.CPU
            ]
            if waiting and (chosen := first(FP, waiting + spinning)) in waiting:
                at_work.append(chosen)
        now += 1
        for w in at_work:
            w.left -= 1
        running = {name: w for name, w in running.items() if w.left}
        for w in at_work:
            if not w.left and w.index + 1 < len(w.task.segments):
                enter(w, w.index + 1)
            elif not w.left:
                w.end = now
    return {key: w.end or 0 for key, w in walkers.items()}


@given(scenarios())
def test_events_agree_with_looking_at_every_tick(scenario: Scenario) -> None:
    done = simulate(scenario)
    assert {(job.task, job.number): job.completion for job in done.jobs} == tick_by_tick(scenario)


@given(scenarios())
def test_stretches_are_what_the_jobs_ask_for(scenario: Scenario) -> None:
    stretches = simulate(scenario).stretches
    for job in scenario.jobs:
        for index, ticks in enumerate(job.times):
            own = [s for s in stretches if (s.task, s.job, s.index) == (job.task, job.number, index)]
            work = [s for s in own if not s.is_spin]
            assert sum(s.end - s.start for s in work) == ticks
            assert {s.kind for s in own} == {scenario.task_set.by_name[job.task].segments[index].kind}
            if work[0].kind is not SegmentKind.CPU:
                assert len(work) == 1
                assert all(s.end <= work[0].end for s in own)
    for resource in {stretch.resource for stretch in stretches}:
        there = sorted((s.start, s.end) for s in stretches if s.resource == resource)
        assert all(start < end for start, end in there)
        assert all(end <= start for (_, end), (start, _) in pairwise(there))
