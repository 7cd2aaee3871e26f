"""Critical instants and the search find the misses that there are, and nothing that the model forbids."""

from itertools import islice, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.evidence import find_late_run, find_miss, worst_runs, worst_window
from makespan.deadlines.scenarios import critical_scenarios, hyperperiod, periodic_scenario, vary_scenario
from makespan.deadlines.simulation import CompletedJob, JobPlan, Scenario, SimulatedRun, simulate
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

FP, EDF, FIFO = ServerPolicy.FIXED_PRIORITY, ServerPolicy.EDF, ServerPolicy.FIFO


def one_partition(policy: ServerPolicy, *tasks: GpuTask) -> TaskSet:
    return TaskSet(tasks, (GpuPartition("gpu", policy),))


def task(name: str, wcet: int, period: int, deadline: int | None = None, **more: int) -> GpuTask:
    given = {"priority": 100 - period, **more}
    return one_kernel(name, wcet, period, deadline or period, partition="gpu", **given)  # type: ignore[arg-type]


def davis_2007() -> TaskSet:
    """Davis, Burns, Bril and Lukkien, Real-Time Systems 35(3), 2007, section 3.2, in quarters of a millisecond."""
    tasks = (
        task("A", 4, 10, 10, priority=3),
        task("B", 4, 14, 13, priority=2),
        task("C", 4, 14, 13, priority=1),
    )
    return one_partition(FP, *tasks)


def test_the_second_job_of_a_busy_window_can_be_the_worst() -> None:
    """The paper: C's first job takes 3 ms, its second 3.5 ms and is late."""
    run = simulate(next(iter(critical_scenarios(davis_2007(), "C"))))
    assert [job.response for job in run.jobs if job.task == "C"][:2] == [12, 14]
    miss = find_miss(davis_2007(), "C")
    assert miss is not None
    assert miss.completion - miss.arrival == 14
    assert miss.scenario == "common release (attempt 1, seed 0)"
    assert find_miss(davis_2007(), "A") is None


def test_a_less_urgent_kernel_blocks_by_all_but_one_tick() -> None:
    task_set = one_partition(FP, task("urgent", 2, 20, 10), task("middle", 3, 30), task("long", 9, 40))
    miss = find_miss(task_set, "urgent")
    assert miss is None  # 8 + 2 = 10
    task_set = one_partition(FP, task("urgent", 2, 20, 9), task("middle", 3, 30), task("long", 9, 40))
    miss = find_miss(task_set, "urgent")
    assert miss is not None
    assert miss.completion - miss.arrival == 10
    assert miss.scenario == "common release, one tick after the kernel of long has begun (attempt 2, seed 0)"


def test_under_edf_a_later_release_can_be_worse_than_the_common_one() -> None:
    """Brute force over all phases: 10; the common release, even with blocking, gives less."""
    task_set = one_partition(EDF, task("a", 2, 5, 5), task("b", 3, 9, 8), task("c", 2, 12, 12))
    names = {}
    for run in islice(worst_runs(task_set, "c"), 40):
        names[run.scenario.words] = run.responses["c"]
    later = {words: response for words, response in names.items() if "ticks later" in words}
    assert max(later.values()) >= names["common release"]


def test_jitter_makes_jobs_meet() -> None:
    alone = one_partition(FP, task("a", 2, 10, priority=2), task("b", 4, 40, 8, priority=1))
    assert find_miss(alone, "b") is None
    jittery = one_partition(FP, task("a", 2, 10, priority=2, jitter=8), task("b", 4, 40, 7, priority=1))
    miss = find_miss(jittery, "b")
    assert miss is not None
    assert miss.completion - miss.arrival == 8  # two jobs of a, then b
    assert miss.scenario == "common release, as late as jitter allows (attempt 1, seed 0)"


def test_fifo_waits_for_everybody_once() -> None:
    task_set = one_partition(FIFO, task("a", 2, 40, 8), task("b", 3, 40), task("c", 4, 40))
    miss = find_miss(task_set, "a")
    assert miss is not None
    assert miss.completion - miss.arrival == 9


def test_offsets_are_kept() -> None:
    apart = one_partition(FP, task("a", 4, 10, 5, offset=0), task("b", 4, 10, 5, offset=5))
    assert find_miss(apart, "a") is None
    assert find_miss(apart, "b") is None
    assert find_miss(one_partition(FP, task("a", 4, 10, 5), task("b", 4, 10, 5)), "b") is not None


def test_the_hyperperiod_is_walked_through_or_cut_with_a_word() -> None:
    task_set = one_partition(EDF, task("a", 1, 4), task("b", 1, 6))
    assert hyperperiod(task_set) == 12
    scenario = periodic_scenario(task_set)
    assert [(job.task, job.arrival) for job in scenario.jobs] == [("a", 0), ("a", 4), ("a", 8), ("b", 0), ("b", 6)]
    assert scenario.words == "synchronous periodic release, the hyperperiod of 12 ticks"
    far = one_partition(EDF, task("a", 1, 10**12 + 1), task("b", 1, 10**12))
    scenario = periodic_scenario(far, most_jobs=10)
    assert scenario.words.startswith(
        f"synchronous periodic release, the hyperperiod of {10**12 * (10**12 + 1)} ticks cut at"
    )
    assert len(scenario.jobs) <= 12
    shifted = one_partition(EDF, task("a", 1, 4, offset=3), task("b", 1, 6, offset=0))
    assert periodic_scenario(shifted).words == "periodic from the offsets, two hyperperiods of 12 ticks"
    assert max(job.arrival for job in periodic_scenario(shifted).jobs) == 24


def test_evidence_is_reproducible() -> None:
    jitter = {"jitter": 3}
    task_set = one_partition(EDF, task("a", 2, 7, **jitter), task("b", 3, 11, **jitter), task("c", 4, 13))
    for name in "abc":
        assert find_miss(task_set, name, seed=3) == find_miss(task_set, name, seed=3)
        run, miss = find_late_run(task_set, name, seed=3), find_miss(task_set, name, seed=3)
        assert (run is None) == (miss is None)
        if run is not None and miss is not None:
            assert simulate(run.scenario) == run
            late = [(job.arrival, job.completion) for job in run.late if job.task == name]
            assert late[0] == (miss.arrival, miss.completion)


def test_the_search_goes_on_where_critical_instants_find_nothing() -> None:
    """b is late only if a's CPU part is short, so that two kernels meet: an anomaly that full times do not show."""
    a = one_kernel("a", 4, 40, 40, priority=2, before=6, core="0", wait=HostWait.BLOCK, partition="gpu", offset=0)
    b = one_kernel("b", 3, 40, 5, priority=1, partition="gpu", offset=2)
    task_set = one_partition(FP, a, b)
    assert simulate(periodic_scenario(task_set)).responses["b"] == 3
    miss = find_miss(task_set, "b")
    assert miss is not None
    assert not miss.scenario.startswith(("periodic", "common"))


def test_the_search_varies_the_worst_that_it_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    parents: list[CompletedJob] = []

    def noted(run: SimulatedRun, job: CompletedJob, random: Random, words: str) -> Scenario:
        parents.append(job)
        return vary_scenario(run, job, random, words)

    monkeypatch.setattr("makespan.deadlines.evidence.vary_scenario", noted)
    task_set = one_partition(EDF, task("a", 2, 7, jitter=3), task("b", 3, 11, jitter=9), task("c", 2, 13))
    worst: CompletedJob | None = None
    for run in islice(worst_runs(task_set, "b"), 60):
        job = run.tightest("b")
        assert job is not None
        if run.scenario.words.startswith("found by search"):
            assert parents[-1] == worst
        worst = job if worst is None or job.slack <= worst.slack else worst
    assert len(parents) > 10


def test_the_window_shows_why() -> None:
    task_set = one_partition(FP, task("u", 2, 20, 10), task("m", 3, 30), task("long", 9, 40))
    window = worst_window(task_set, names=("u",))
    assert (window.job.task, window.job.response, window.job.slack) == ("u", 10, 0)
    assert [(s.task, s.end - s.start) for s in window.stretches if s.start < window.job.completion] == [
        ("long", 9),
        ("u", 2),
    ]
    assert window.end == window.job.deadline
    assert window.start == window.stretches[0].start
    assert {job.task for job in window.jobs} >= {"u", "long"}


def test_the_window_of_all_tasks_holds_the_least_slack() -> None:
    window = worst_window(davis_2007())
    assert (window.job.task, window.job.number, window.job.slack) == ("C", 1, -1)
    assert window.start == 1  # with the common release, not with that of the second job
    assert window.end == window.job.completion


def test_the_window_of_a_job_that_data_starts_shows_its_whole_activation() -> None:
    tasks = (one_kernel("first", 4, 20, 20, partition="gpu"), one_kernel("second", 3, 20, 20, partition="side"))
    partitions = (GpuPartition("gpu", FIFO), GpuPartition("side", FIFO))
    window = worst_window(
        TaskSet(tasks, partitions, (TaskChain("both", ("first", "second"), ChainStart.DATA),)), names=("second",)
    )
    assert [(s.task, s.start - window.start, s.end - window.start) for s in window.stretches][:2] == [
        ("first", 0, 4),
        ("second", 4, 7),
    ]


def test_a_task_without_a_partition_is_refused() -> None:
    nowhere = TaskSet((one_kernel("a", 1, 4, 4),), (GpuPartition("gpu", FIFO),))
    with pytest.raises(InputError, match="task a has no partition"):
        periodic_scenario(nowhere)


def test_a_job_that_data_starts_is_late_from_its_arrival() -> None:
    tasks = (task("first", 2, 20, priority=3), task("second", 3, 20, 7, priority=1), task("other", 5, 20, priority=2))
    task_set = TaskSet(tasks, (GpuPartition("gpu", FP),), (TaskChain("both", ("first", "second"), ChainStart.DATA),))
    miss = find_miss(task_set, "second")
    assert miss is not None
    assert miss.completion - miss.arrival == 8


def worst_by_all_phases(task_set: TaskSet, name: str) -> int:
    """The longest response over all phases, strictly periodic, full times, the task last among equals."""
    first, *others = task_set.tasks
    worst = 0
    until = 2 * hyperperiod(task_set)
    order = (*(other for other in task_set.by_name if other != name), name)
    for phases in product(*(range(task.period) for task in others)):
        jobs = [
            JobPlan(task.name, number, arrival, arrival, (task.segments[0].wcet,))
            for task, phase in zip(task_set.tasks, (first.period, *phases), strict=True)
            for number, arrival in enumerate(range(phase, until, task.period))
        ]
        worst = max(worst, simulate(Scenario(task_set, tuple(jobs), order, "")).responses[name])
    return worst


@pytest.mark.parametrize("policy", ServerPolicy)
@pytest.mark.parametrize(
    "rows",
    [
        ((1, 3, 3), (1, 4, 6), (2, 6, 5)),
        ((1, 4, 2), (2, 6, 6), (2, 8, 12)),
        ((2, 4, 4), (1, 6, 9), (2, 8, 7)),
        ((1, 4, 8), (3, 6, 9), (2, 8, 10)),
    ],
)
def test_critical_instants_are_no_better_than_any_phase(
    policy: ServerPolicy, rows: tuple[tuple[int, int, int], ...]
) -> None:
    task_set = one_partition(policy, *(task(name, *row) for name, row in zip("abc", rows, strict=True)))
    for name in task_set.by_name:
        found = max(run.responses[name] for run in islice(worst_runs(task_set, name, most_jobs=60), 40))
        assert found >= worst_by_all_phases(task_set, name)


@given(st.integers(0, 10**6), st.sampled_from(ServerPolicy), st.sampled_from(ServerPolicy))
def test_whatever_the_search_tries_is_legal(seed: int, one: ServerPolicy, other: ServerPolicy) -> None:
    """An illegal scenario raises; so it is enough to look."""
    random = Random(seed)
    common = random.randint(3, 20)
    ways = ("ab", "ac", "bd", "cd")[: random.choice((0, 0, 1, 2, 4))]
    chains = tuple(TaskChain(way, tuple(way), ChainStart.DATA) for way in ways)
    servers: dict[SegmentKind, tuple[str | None, ...]] = {
        SegmentKind.CPU: (None,),
        SegmentKind.COPY: ("e",),
        SegmentKind.KERNEL: ("g", "h"),
    }
    tasks = []
    for name in "abcd":
        is_in = any(name in way for way in ways)
        is_started = any(name in way[1:] for way in ways)
        kinds = [random.choice(list(SegmentKind)) for _ in range(random.randint(1, 3))]
        tasks.append(
            GpuTask(
                name,
                tuple(
                    JobSegment(
                        kind,
                        random.randint(1, 5),
                        random.choice(servers[kind]),
                        random.choice((0, 2)) * (kind != "cpu"),
                    )
                    for kind in kinds
                ),
                period := common if is_in else random.randint(3, 20),
                random.randint(1, 30),
                jitter=random.randint(0, 2 * period),
                offset=None if is_started else random.choice((None, None, random.randint(0, 9))),
                priority=random.randint(0, 3),
                core=random.choice("01"),
                wait=random.choice(list(HostWait)),
            )
        )
    task_set = TaskSet(
        tuple(tasks), (GpuPartition("g", one), GpuPartition("h", other)), chains, (CopyEngine("e", one),)
    )
    for run in islice(worst_runs(task_set, random.choice("abcd"), seed=seed, most_jobs=40), 12):
        assert {job.task for job in run.jobs} == set("abcd")
