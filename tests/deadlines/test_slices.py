"""Contexts that take a partition in turn: the bound against hand calculations, simulations and a published system."""

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import Limits
from makespan.deadlines import files
from makespan.deadlines.assessment import assessments
from makespan.deadlines.description import SlicesEntry
from makespan.deadlines.evidence import find_miss, worst_runs
from makespan.deadlines.holistic import AnalysisLimits as Additions
from makespan.deadlines.holistic import responses
from makespan.deadlines.simulation import JobPlan, Scenario, SimulatedRun, simulate
from makespan.deadlines.task import (
    ChainStart,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    Slices,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.wcet import Solver, execution_times
from makespan.host.errors import InputError
from tests.deadlines.sets import system_of

GPU = "GPU"

TRUTHS = Path(__file__).with_name("slices.jsonl").read_text().splitlines()
"""Random systems, and what an explorer in C++ has found for them that lets contexts begin turns in every order that the
rules allow, with switches of every length."""


def in_turn(slices: Slices, *tasks: GpuTask, chains: tuple[TaskChain, ...] = ()) -> TaskSet:
    return TaskSet(tasks, (GpuPartition(GPU, ServerPolicy.FIFO, slices=slices),), chains)


def kernel(name: str, wcet: int, period: int, context: str | None = None, jitter: int = 0) -> GpuTask:
    segments = (JobSegment(SegmentKind.KERNEL, wcet, GPU),)
    return GpuTask(name, segments, period, period, jitter, priority=0, context=name if context is None else context)


def bounds(task_set: TaskSet) -> dict[str, int | None]:
    found = responses(task_set, Additions()).of
    return {name: None if response is None else response.total for name, response in found.items()}


def run_of(task_set: TaskSet, order: Sequence[str], *jobs: tuple[str, int, int]) -> SimulatedRun:
    """Jobs (task, arrival, ticks of the kernel); among equals `order` decides."""
    numbers: dict[str, int] = {}
    found = []
    for name, arrival, ticks in jobs:
        number = numbers[name] = numbers.get(name, -1) + 1
        found.append(JobPlan(name, number, arrival, arrival, (ticks,)))
    return simulate(Scenario(task_set, tuple(found), tuple(order), "by hand"))


@given(st.integers(1, 4), st.integers(0, 3), st.integers(1, 4), st.integers(1, 3))
def test_equal_kernels_end_after_all_their_slices_with_a_switch_each(length: int, switch: int, n: int, k: int) -> None:
    """Wang, Liu, Wong and Kim 2024, equation 15: the last of n + 1 kernels of k slices each ends after all of them."""
    slices, work = Slices(length, switch), k * length
    law = (n + 1) * k * (length + switch)
    names = "abcde"[: n + 1]
    task_set = in_turn(slices, *(kernel(name, work, 1000 * law) for name in names))
    assert set(bounds(task_set).values()) == {law}
    at = 500 * law
    jobs = [(names[-1], 0, 1), *((name, 2 * at, work) for name in names)]
    assert run_of(task_set, names, *jobs).responses[names[-1]] == law


def test_a_kernel_waits_for_no_more_than_others_ask_for() -> None:
    """Ten slices would let the other one in ten times: it has one kernel of two ticks, in one turn."""
    task_set = in_turn(Slices(2, 1), kernel("long", 20, 1000), kernel("short", 2, 1000))
    assert bounds(task_set) == {"long": 20 + 10 * 1 + 2 + 1, "short": 2 + 1 + 2 + 1}


def test_others_may_come_while_a_kernel_waits() -> None:
    """In x = 20 + 10 * 1 + 6 * 3 = 48 ticks: ceil((x + 6 - 3) / 9) = 6 of the other one, which ends after 6 ticks."""
    assert bounds(in_turn(Slices(2, 1), kernel("long", 20, 1000), kernel("short", 2, 9)))["long"] == 48


def test_jobs_of_a_context_may_wait_for_those_before() -> None:
    """A job takes 12 ticks beside the other one and they come every 10: more and more of them are left over."""
    task_set = in_turn(Slices(1, 1), kernel("mine", 3, 10), kernel("other", 30, 1000))
    run = run_of(task_set, ("other", "mine"), ("other", 0, 30), *(("mine", 10 * number, 3) for number in range(20)))
    found = bounds(task_set)["mine"]
    assert found is not None
    assert found >= run.responses["mine"] > 3 + 3 * 3


def test_what_another_context_does_may_be_unknown() -> None:
    """An overloaded process delays others by a slice and two switches for each of their slices, and has no bound."""
    found = bounds(in_turn(Slices(2, 1), kernel("mine", 3, 100), kernel("greedy", 9, 5)))
    assert found == {"mine": 3 + 2 * (2 + 1 + 1), "greedy": None}


def test_another_context_whose_thread_spins_without_a_bound_takes_its_turns() -> None:
    """One kernel of it at most waits at an instant, but others follow while a kernel waits."""
    cpu, gpu = JobSegment(SegmentKind.CPU, 4), JobSegment(SegmentKind.KERNEL, 9, GPU)
    starved = GpuTask("starved", (cpu, gpu), 20, 20, 0, None, 1, "c", HostWait.SPIN, "p")
    hog = GpuTask("hog", (JobSegment(SegmentKind.CPU, 20),), 20, 20, 0, None, 2, "c")
    found = bounds(in_turn(Slices(2, 1), kernel("mine", 3, 100), starved, hog))
    assert found == {"mine": 3 + 2 * (2 + 1 + 1), "starved": None, "hog": 20}


def test_one_context_alone_is_first_in_first_out() -> None:
    tasks = [kernel("a", 3, 20, "p"), kernel("b", 4, 20, "p")]
    plain = TaskSet(tuple(tasks), (GpuPartition(GPU, ServerPolicy.FIFO),))
    assert bounds(in_turn(Slices(1, 5), *tasks)) == bounds(plain) == {"a": 7, "b": 7}


def test_a_turn_ends_with_the_work_of_its_context_and_is_resumed_in_the_next() -> None:
    task_set = in_turn(Slices(3, 1), kernel("a", 5, 100), kernel("b", 1, 100))
    run = run_of(task_set, "ab", ("a", 0, 5), ("b", 1, 1))
    assert [(s.task, s.start, s.end) for s in run.stretches] == [("a", 0, 3), ("b", 4, 5), ("a", 6, 8)]


def test_a_kernel_of_the_same_context_goes_on_in_the_turn() -> None:
    task_set = in_turn(Slices(4, 1), kernel("a", 2, 100, "p"), kernel("b", 3, 100, "p"), kernel("c", 1, 100))
    run = run_of(task_set, "abc", ("a", 0, 2), ("b", 0, 3), ("c", 0, 1))
    assert [(s.task, s.start, s.end) for s in run.stretches] == [("a", 0, 2), ("b", 2, 4), ("c", 5, 6), ("b", 7, 8)]


@pytest.mark.parametrize("line", TRUTHS)
def test_another_program_finds_no_longer_response(line: str) -> None:
    known = json.loads(line)
    found = responses(system_of(known), Additions()).of
    for task, response, end in zip(known["tasks"], known["response"], known["end"], strict=True):
        bound = found[task["name"]]
        assert bound is not None
        assert response <= bound.total
        assert end <= bound.end


@given(st.integers(0, 10**6))
def test_no_simulated_job_ends_after_its_bound(seed: int) -> None:
    random = Random(seed)
    task_set = small_system(random)
    found = responses(task_set, Additions()).of
    name = random.choice(task_set.tasks).name
    for run in islice(worst_runs(task_set, name, most_jobs=30), 6):
        for job in run.jobs:
            response = found[job.task]
            assert response is None or job.response <= response.total


def small_system(random: Random) -> TaskSet:
    """Two to four tasks of two or three processes, some with CPU time, several kernels, or data of the one before."""
    count = random.randint(2, 4)
    is_chained, common = random.random() < 0.4, random.randint(12, 40)
    tasks = []
    for number in range(count):
        core = random.choice((None, "c0", "c0"))
        parts = [JobSegment(SegmentKind.KERNEL, random.randint(1, 5), GPU) for _ in range(random.choice((1, 1, 2)))]
        if core is not None:
            parts = [JobSegment(SegmentKind.CPU, random.randint(1, 2)), *parts, JobSegment(SegmentKind.CPU, 1)]
        period = common if is_chained and number < 2 else random.randint(12, 40)
        wait = None if core is None else random.choice(tuple(HostWait))
        context = f"p{number if number < 2 else random.randrange(3)}"
        jitter = random.choice((0, 0, 3))
        tasks.append(
            GpuTask(f"t{number}", tuple(parts), period, period, jitter, None, number, core, wait, context),
        )
    chains = (TaskChain("data", ("t0", "t1"), ChainStart.DATA),) if is_chained else ()
    return in_turn(Slices(random.randint(1, 3), random.randint(0, 2)), *tasks, chains=chains)


def test_turns_without_number_are_not_simulated() -> None:
    """A bound takes no longer for shorter slices, but a schedule has as many stretches as turns."""
    tasks = (kernel("a", 10**9, 10**10), kernel("b", 10**9, 10**10))
    finest = in_turn(Slices(1), *tasks)
    assert bounds(finest) == {"a": 2 * 10**9, "b": 2 * 10**9}
    assert find_miss(finest, "a") is None
    with pytest.raises(InputError, match="1000000000 turns of contexts exceed the limit of 1000000 in a simulation"):
        run_of(finest, "ab", ("a", 0, 10**9))


# What makes no sense


def test_a_kernel_on_a_time_sliced_partition_needs_a_context() -> None:
    with pytest.raises(InputError, match="task a has no context, and partition GPU is time-sliced"):
        in_turn(Slices(2), one_kernel("a", 1, 9, 9, partition=GPU))


def test_within_a_context_it_is_first_in_first_out() -> None:
    with pytest.raises(InputError, match="partition GPU is time-sliced: within a context it is fifo"):
        GpuPartition(GPU, ServerPolicy.EDF, slices=Slices(2))


@pytest.mark.parametrize(
    ("length", "switch", "what"), [(0, 1, "slice"), (1, -1, "switch of contexts"), (True, 0, "slice")]
)
def test_slices_are_whole_ticks(length: int, switch: int, what: str) -> None:
    with pytest.raises(InputError, match=f"a {what} must be"):
        Slices(length, switch)


# Files

TASK = """
[[task]]
name = "a"
wcet = "2ms"
evidence = "by hand"
period = "9ms"
deadline = "9ms"
partition = "GPU"
"""
SLICED = 'name = "GPU"\npolicy = "time-sliced"\nslice = "1ms"\nswitch = "200us"\nswitch_evidence = "measured"\n'


def written(folder: Path, partition: str, task: str = TASK + 'context = "p"\n') -> Path:
    path = folder / "tasks.toml"
    path.write_text(f"[[partition]]\n{partition}{task}")
    return path


def test_a_file_says_how_long_turns_and_switches_are(tmp_path: Path) -> None:
    description = files.read(written(tmp_path, SLICED))
    (entry,) = description.partitions
    assert entry.slices == SlicesEntry(Fraction(1, 1000), Fraction(1, 5000), "measured")
    assert description.tasks[0].context == "p"


def test_an_assessment_says_who_vouches_for_turns(tmp_path: Path) -> None:
    description = files.read(written(tmp_path, SLICED))
    *_, found = assessments(description, execution_times(description, Solver(Limits)))
    assert "partitions and cores serve only these tasks: nothing else runs on them" in found.notes
    (turns,) = (
        note for note in found.notes if note.startswith("contexts that have work take partition GPU in turn, each")
    )
    assert "each for 1 ms or until it has none left, and every process that uses the GPU" in turns
    assert (
        "a switch of contexts on partition GPU takes at most 200 us, for which the user vouches: measured"
        in found.notes
    )
    mixed = written(tmp_path, SLICED + '[[partition]]\nname = "h"\npolicy = "fifo"\n')
    description = files.read(mixed)
    *_, found = assessments(description, execution_times(description, Solver(Limits)))
    assert any(note.startswith("a partition serves one kernel at a time, to its end") for note in found.notes)


@pytest.mark.parametrize(
    ("partition", "task", "message"),
    [
        (SLICED, TASK, "task a has no context, and partition GPU is time-sliced: say of which process it is"),
        (SLICED.replace('slice = "1ms"\n', ""), TASK, "partition GPU is time-sliced and has no slice: say how long"),
        (SLICED.replace('switch = "200us"\n', ""), TASK, "partition GPU is time-sliced and has no switch: say how"),
        (SLICED.replace("1ms", "0ms"), TASK, "partition GPU: slice must be more than zero"),
        (SLICED.replace("switch_e", "e"), TASK, "partition GPU: unknown key 'evidence'"),
        (SLICED.rsplit("switch_e", 1)[0], TASK, "partition GPU: who vouches for this switch"),
        (
            SLICED.replace("time-sliced", "fifo"),
            TASK,
            'partition GPU: slice has no effect without policy = "time-sliced"',
        ),
        (
            SLICED.replace("time-sliced", "turns"),
            TASK,
            "policy must be one of fixed-priority, .*, not 'turns'",
        ),
        ('name = "GPU"\n', TASK, "partition GPU has no policy: give one of fixed-priority, .*, time-sliced"),
        ('name = "GPU"\npolicy = "rr"\n', TASK, "policy must be one of fixed-priority, .*, time-sliced, not 'rr'"),
    ],
)
def test_what_a_time_sliced_partition_lacks_is_said(tmp_path: Path, partition: str, task: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        files.read(written(tmp_path, partition, task))


def test_a_csv_file_has_no_room_for_slices(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text(
        "name,wcet,evidence,period,deadline,partition,policy,context\na,1ms,by hand,9ms,9ms,GPU,time-sliced,p\n"
    )
    with pytest.raises(InputError, match=r"tasks\.csv:2: partition GPU is time-sliced: of how long a slice"):
        files.read(path)


def test_a_context_without_a_kernel_has_no_effect(tmp_path: Path) -> None:
    alone = (
        '[[task]]\nname = "a"\nperiod = "9ms"\ndeadline = "9ms"\npriority = 1\ncore = "c"\ncpu = "1ms"\ncontext = "p"\n'
    )
    with pytest.raises(InputError, match="task a: context has no effect, for it has no kernel"):
        files.read(written(tmp_path, SLICED, alone))
