"""Walks through all states: systems done by hand, and the answers of another program to random ones."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from makespan.deadlines.chains import independent_parts
from makespan.deadlines.exactness import longest_runs
from makespan.deadlines.exploration import StateWalk, _most_urgent, explore, obstacle
from makespan.deadlines.family_states import GridSegment, GridTask, TaskFamily
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
from makespan.host.errors import InputError, UnsupportedError
from tests.deadlines.sets import system_of

TRUTHS = Path(__file__).with_name("truths.jsonl").read_text().splitlines()
"""Systems, and what an explorer in C++ that shares no line with this one has found for them.

First random ones of each kind; then small ones for each of which some bound of the analysis would be below that if it
left out what the `kind` of the line names.
"""

GPU = GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY)


@pytest.mark.parametrize("line", TRUTHS)
def test_another_program_finds_the_same(line: str) -> None:
    known = json.loads(line)
    found = explore(system_of(known))
    assert list(found.response.values()) == known["response"]
    assert list(found.end.values()) == known["end"]


@pytest.mark.parametrize("line", TRUTHS[::4])
def test_a_simulated_schedule_takes_as_long(line: str) -> None:
    """So nothing is found that cannot be, and what goes first among equals may differ from task to task only."""
    known = json.loads(line)
    for task, response in zip(known["tasks"], known["response"], strict=True):
        runs = longest_runs(system_of(known), task["name"], 2000)
        assert response in (run.responses.get(task["name"]) for run in runs)


def on_core(name: str, *segments: JobSegment, period: int, priority: int, wait: HostWait = HostWait.BLOCK) -> GpuTask:
    return GpuTask(name, segments, period, period, priority=priority, core="cpu", wait=wait)


def cpu(wcet: int) -> JobSegment:
    return JobSegment(SegmentKind.CPU, wcet)


def run(wcet: int, place: str = "gpu", delay: int = 0) -> JobSegment:
    return JobSegment(SegmentKind.KERNEL, wcet, place, delay)


def test_a_kernel_that_has_begun_blocks_for_a_tick_less_than_it_takes() -> None:
    urgent, long = (
        one_kernel("urgent", 2, 9, 9, priority=2, partition="gpu"),
        one_kernel("long", 5, 20, 20, priority=1, partition="gpu"),
    )
    assert explore(TaskSet((urgent, long), (GPU,))).response == {"urgent": 2 + 4, "long": 2 + 5}


@pytest.mark.parametrize(("policy", "response"), [(ServerPolicy.EDF, 3), (ServerPolicy.EDF_RELEASE, 4)])
def test_who_sees_only_releases_serves_a_late_one_too_early(policy: ServerPolicy, response: int) -> None:
    a = one_kernel("a", 2, 8, 3, partition="gpu")
    b = one_kernel("b", 1, 2, 5, jitter=2, partition="gpu")
    assert explore(TaskSet((a, b), (GpuPartition("gpu", policy),))).response["a"] == response


def test_cpu_time_after_a_wait_comes_back_to_back_with_the_next_job() -> None:
    """8..10 the end of a job, 12..14 and 15..17 the next one, whose kernel is short: 6 ticks in 10."""
    busy = on_core("busy", cpu(2), run(6), cpu(2), period=12, priority=2)
    other = on_core("other", cpu(4), run(1, "other"), period=40, priority=1)
    task_set = TaskSet((busy, other), (GPU, GpuPartition("other", ServerPolicy.FIFO)))
    assert explore(task_set).response == {"busy": 10, "other": 11}
    assert explore(task_set, is_short=lambda _: False).response["other"] == 9


@pytest.mark.parametrize(("wait", "response"), [(HostWait.BLOCK, 1 + 2), (HostWait.SPIN, 1 + 1 + 3 + 2)])
def test_who_spins_keeps_its_core_from_the_launch_on(wait: HostWait, response: int) -> None:
    urgent = on_core("urgent", cpu(1), run(3, delay=1), period=20, priority=2, wait=wait)
    other = on_core("other", cpu(2), period=20, priority=1)
    assert explore(TaskSet((urgent, other), (GPU,))).response == {"urgent": 5, "other": response}


def test_a_task_waits_for_all_that_start_it() -> None:
    """Both branches run one after the other on the same partition; the join comes after both."""
    tasks = [
        one_kernel(name, wcet, 20, 20, priority=1, partition="gpu")
        for name, wcet in zip("abcd", (1, 2, 3, 4), strict=True)
    ]
    ways = (("a", "b", "d"), ("a", "c", "d"))
    chains = tuple(TaskChain("".join(way), way, ChainStart.DATA) for way in ways)
    found = explore(TaskSet(tuple(tasks), (GPU,), chains))
    assert found.end == {"a": 1, "b": 6, "c": 6, "d": 10}
    assert found.response == {"a": 1, "b": 5, "c": 5, "d": 4}


def longer(task_set: TaskSet, factor: int) -> TaskSet:
    """The same with all times so many times as long: there is more between two arrivals, and blocking is longer."""

    def task_of(task: GpuTask) -> GpuTask:
        segments = tuple(replace(s, wcet=s.wcet * factor, delay=s.delay * factor) for s in task.segments)
        period, deadline, jitter = (time * factor for time in (task.period, task.deadline, task.jitter))
        return replace(task, segments=segments, period=period, deadline=deadline, jitter=jitter)

    return replace(task_set, tasks=tuple(map(task_of, task_set.tasks)))


@pytest.mark.parametrize("factor", [1, 2])
def test_no_response_is_longer_than_on_a_grid(factor: int) -> None:
    """With all times multiples of it, and with times that it rounds."""
    compared = 0
    for line in TRUTHS[factor::5]:
        task_set = longer(system_of(json.loads(line)), factor)
        if any(obstacle(task_set, tasks, grid=2) for tasks in independent_parts(task_set)):
            continue
        on_grid = explore(task_set, grid=2, most_states=300)
        truth = explore(task_set, most_states=1000) if on_grid.response else on_grid
        for name, ticks in on_grid.response.items():
            compared += name in truth.response
            assert truth.response.get(name, 0) <= ticks
            assert truth.end.get(name, 0) <= on_grid.end[name]
    assert compared > 9


def test_a_grid_blocks_for_all_that_a_kernel_takes() -> None:
    urgent = one_kernel("urgent", 20, 90, 90, priority=2, partition="gpu")
    long = one_kernel("long", 50, 200, 200, priority=1, partition="gpu")
    assert explore(TaskSet((urgent, long), (GPU,)), grid=10).response == {"urgent": 20 + 50, "long": 20 + 50}


def test_what_is_preempted_takes_no_longer_for_it() -> None:
    """Twice at most, by a job of `urgent` that may be as short as it likes."""
    urgent = on_core("urgent", cpu(20), period=60, priority=2)
    other = on_core("other", cpu(50), period=200, priority=1)
    assert explore(TaskSet((urgent, other), (GPU,)), grid=10).response == {"urgent": 20, "other": 90}


def test_what_was_preempted_may_seem_to_take_a_step_longer() -> None:
    """Its two pieces of half a step each end on different lines of the grid, and what came between ends on one."""
    core = (SegmentKind.CPU, "cpu")
    course = GridTask(0, (), 1, 0, 9, 9, 0, (GridSegment(core, None, 1, 0, is_short=True),), None)
    family = TaskFamily([course], 9, is_exact=False)
    ((_, _), (arrived, _)) = family.comings(family.start)
    running = next(ticked.local for ticked in family.ticked(arrived, ((0, 0),), 1) if not ticked.ended)
    assert not family.ticked(running, ((0, 0),), 1)
    assert family.slowed(running, core, 0) == running
    assert family.slowed(arrived, core, 2) == arrived
    slowed = family.slowed(running, core, 2)
    again = next(ticked.local for ticked in family.ticked(slowed, ((0, 0),), 1) if not ticked.ended)
    assert not family.ticked(again, ((0, 0),), 1)


def test_a_deadline_that_may_be_later_than_another_one_does_not_hide_it() -> None:
    """0: due in 4..5 steps; 1: in 5; 2: in 5..6; 3: in 6."""
    offers = [(4, 1, 0, (0, 0)), (5, 0, 1, (0, 0)), (5, 1, 2, (0, 0)), (6, 0, 3, (0, 0))]
    assert [number for number, _ in _most_urgent(offers)] == [0, 1, 2]


def test_equal_priorities_on_a_core_need_every_tick() -> None:
    tasks = (on_core("a", cpu(2), period=6, priority=1), on_core("b", cpu(2), period=6, priority=1))
    assert explore(TaskSet(tasks, (GPU,))).response == {"a": 4, "b": 4}
    with pytest.raises(UnsupportedError, match="a and b of core cpu have the same priority: no walk bounds"):
        explore(TaskSet(tasks, (GPU,)), grid=2)


def test_time_slices_are_refused_by_name() -> None:
    sliced = GpuPartition("gpu", ServerPolicy.FIFO, Slices(10, 1))
    task = replace(one_kernel("t", 2, 20, 20, partition="gpu"), context="one")
    with pytest.raises(UnsupportedError, match="partition gpu is time-sliced: its schedules are not explored"):
        explore(TaskSet((task,), (sliced,)))


def test_parts_that_share_nothing_are_walked_through_one_by_one() -> None:
    small = one_kernel("small", 1, 5, 5, priority=1, partition="gpu")
    large = [one_kernel(f"t{n}", 1, 40, 40, jitter=9, priority=n, partition="other") for n in range(3)]
    task_set = TaskSet((large[0], small, *large[1:]), (GPU, GpuPartition("other", ServerPolicy.FIXED_PRIORITY)))
    assert [[task.name for task in part] for part in independent_parts(task_set)] == [["small"], ["t0", "t1", "t2"]]
    found = explore(task_set, most_states=100)
    assert found.response == {"small": 1}
    assert found.states < 500


def test_jobs_that_pile_up_are_no_answer() -> None:
    full = one_kernel("full", 3, 2, 2, priority=1, partition="gpu")
    assert not explore(TaskSet((full,), (GPU,)), most_states=50).response


def test_many_tasks_stop_at_the_first_state() -> None:
    """Any of 2^40 sets of them may arrive at once."""
    tasks = (one_kernel(f"t{n}", 1, 99, 99, priority=n, partition="gpu") for n in range(40))
    assert not explore(TaskSet(tuple(tasks), (GPU,)), most_states=20).response


def test_times_of_more_ticks_than_states_are_allowed_stop_at_once() -> None:
    long = GpuTask("long", (run(10**11), run(1, "other"), run(10**11)), 10**12, 10**12, priority=1)
    task_set = TaskSet((long,), (GPU, GpuPartition("other", ServerPolicy.FIFO)))
    assert explore(task_set).states == 0
    assert explore(task_set, grid=10**11).response["long"] >= 2 * 10**11


def test_there_are_as_many_states_as_is_said_before() -> None:
    """Of tasks by themselves; others only add some."""
    for line in TRUTHS[::9]:
        task_set = system_of(json.loads(line))
        for task in task_set.tasks:
            walk = StateWalk(replace(task_set, tasks=(task,), chains=()), (task,), 1)
            least = walk.least_states()
            walk.run(1000)
            assert least < len(walk.ages)


def test_a_kernel_needs_a_partition() -> None:
    with pytest.raises(InputError, match="task t has no partition: assign it, then explore"):
        explore(TaskSet((one_kernel("t", 1, 2, 2),), (GPU,)))
