"""Priorities are found whenever some order holds, where that is promised, and what is found is proven elsewhere."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from makespan import Limits as SolverLimits
from makespan.deadlines import priorities
from makespan.deadlines.analysis import is_proven
from makespan.deadlines.assessment import Assessment, assessments
from makespan.deadlines.files import read
from makespan.deadlines.holistic import AnalysisLimits
from makespan.deadlines.priorities import find_priorities
from makespan.deadlines.response import kernel_bounds
from makespan.deadlines.task import (
    ChainStart,
    GpuPartition,
    GpuTask,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.utilisation import resource_loads
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.deadlines.wcet import Solver, execution_times
from makespan.host.errors import InputError
from tests.deadlines.sets import kernel, partition_of, small_systems

FOUND, REFUSED, OPEN = "priorities by Audsley's search", "by this analysis every order", "no priorities were found"


def with_order(task_set: TaskSet, order: tuple[GpuTask, ...]) -> TaskSet:
    rank = {task.name: -at for at, task in enumerate(order)}
    return replace(task_set, tasks=tuple(replace(task, priority=rank[task.name]) for task in task_set.tasks))


def some_order_holds(task_set: TaskSet) -> bool:
    return any(is_proven(with_order(task_set, order)) for order in permutations(task_set.tasks))


def kernels(random: Random) -> TaskSet:
    """Two to four kernels on one partition, some with launches, jitter and deadlines beyond their periods."""
    while True:
        tasks = []
        for number in range(random.choice((2, 3, 3, 4))):
            period = random.randint(4, 20)
            wcet, jitter = random.randint(1, period // 2), random.choice((0, 0, random.randint(0, 6)))
            task = kernel(f"t{number}", wcet, period, 0, random.randint(wcet, period + 8), jitter)
            launched = replace(task.segments[0], delay=random.choice((0, 0, 2)))
            tasks.append(replace(task, segments=(launched,)))
        task_set = partition_of(*tasks)
        if not resource_loads(task_set)[0].is_overload:
            return task_set


def test_a_long_search_says_how_far_it_is() -> None:
    tasks = tuple(one_kernel(name, 1, 9, 9, priority=0, partition="gpu") for name in "abc")
    told: list[str] = []
    find_priorities(TaskSet(tasks, (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY),)), progress=told.append)
    assert told == [f"searching for priorities: {count} of 3 tasks have theirs" for count in range(3)]


def test_kernels_alone_get_an_order_whenever_one_holds() -> None:
    random = Random(5)
    possible = better = 0
    for _ in range(200):
        task_set = kernels(random)
        found = find_priorities(task_set)
        exists = some_order_holds(task_set)
        assert is_proven(found.task_set) == exists
        assert found.notes[0].startswith(FOUND if exists else REFUSED)
        by_deadline = sorted(task_set.tasks, key=lambda task: task.deadline - task.jitter - task.segments[0].delay)
        possible += exists
        better += exists and not is_proven(with_order(task_set, tuple(by_deadline)))
    assert 50 < possible < 150
    assert better > 0


def test_what_only_the_search_likes_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole analysis proves it again; here the search has forgotten that others exist."""
    monkeypatch.setattr(priorities, "kernel_bounds", lambda own, rivals, *rest: kernel_bounds(own, (), *rest))
    task_set = partition_of(kernel("a", 3, 10, deadline=4), kernel("b", 3, 10, deadline=4))
    assert find_priorities(task_set).notes[0].startswith("the search for priorities stopped")


def test_systems_that_depend_on_each_other_get_what_is_proven() -> None:
    random = Random(6)
    found = 0
    for at in range(60):
        task_set = small_systems(random, is_chained=bool(at % 2))
        ranking = find_priorities(task_set)
        if is_proven(ranking.task_set):
            assert not any(note.startswith(REFUSED) for note in ranking.notes)
            found += bool(ranking.notes)
        elif any(note.startswith(REFUSED) for note in ranking.notes):
            assert not some_order_holds(task_set)
    assert found > 3


def cpu(name: str, wcet: int, period: int, deadline: int) -> GpuTask:
    return GpuTask(name, (JobSegment(SegmentKind.CPU, wcet),), period, deadline, priority=0, core="cpu")


def test_what_shares_nothing_is_ranked_by_itself() -> None:
    late, early = kernel("late", 4, 20, deadline=30), kernel("early", 4, 20, deadline=20)
    beside = one_kernel("beside", 1, 5, 5, partition="side")
    partitions = (*partition_of(late).partitions, GpuPartition("side", ServerPolicy.FIFO))
    found = find_priorities(TaskSet((late, cpu("b", 2, 9, 9), early, beside, cpu("a", 2, 8, 8)), partitions))
    assert found.notes == (
        "priorities by Audsley's search, the most urgent first: early, late",
        "priorities by Audsley's search, the most urgent first: a, b",
    )
    assert [task.priority for task in found.task_set.tasks] == [1, 1, 2, None, 2]


def test_a_chain_with_a_deadline_asks_for_more_than_its_tasks() -> None:
    """Then no order is refused for good: another one may make the chain shorter."""
    task_set = partition_of(kernel("a", 4, 10, deadline=4), kernel("b", 4, 10, deadline=4))
    assert find_priorities(task_set).notes[0].startswith(REFUSED)
    for chain in (TaskChain("c", ("a", "b"), ChainStart.PERIODIC, 99), TaskChain("c", ("a", "b"), ChainStart.DATA)):
        assert (
            find_priorities(replace(task_set, chains=(chain,))).notes[0].startswith(OPEN if chain.deadline else FOUND)
        )
    assert (
        find_priorities(replace(task_set, chains=(TaskChain("c", ("a", "b"), ChainStart.PERIODIC),)))
        .notes[0]
        .startswith(REFUSED)
    )


def test_a_search_that_stops_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hard = partition_of(kernel("a", 4, 10, deadline=4), kernel("b", 4, 10, deadline=4))
    assert find_priorities(hard, AnalysisLimits(one=1)).notes == (
        "the search for priorities stopped at its limit, and they go by deadlines: a, b",
    )
    monkeypatch.setattr(priorities, "MOST_QUESTIONS", 0)
    task_set = TaskSet((cpu("a", 3, 10, 4), cpu("b", 3, 10, 4)), ())
    assert find_priorities(task_set).notes == (
        "no priorities were found, by a heuristic, so that others may hold; they go by deadlines: a, b",
    )


FILE = """
priorities = "{priorities}"
[[partition]]
name = "SM0"
policy = "fixed-priority"
"""
ROW = """
[[task]]
name = "{}"
wcet = "{}ms"
evidence = "measured"
period = "{}ms"
deadline = "{}ms"
{}
"""


def described(path: Path, priorities: str, partition: str = 'partition = "SM0"') -> Assessment:
    rows = [("a", 3, 7, 12, partition), ("b", 1, 17, 21, 'partition = "SM0"'), ("c", 6, 12, 15, 'partition = "SM0"')]
    path.write_text(FILE.format(priorities=priorities) + "".join(ROW.format(*row) for row in rows))
    description = read(path)
    wcets = execution_times(description, Solver(SolverLimits))
    *_, found = assessments(description, wcets, assignment=None if partition else "first-fit", with_margins=True)
    return found


def test_a_file_may_leave_the_order_to_the_search(tmp_path: Path) -> None:
    """`c` has an earlier deadline than `b`, but above it the kernels of `a` and `c` leave no time for `b`."""
    found = described(tmp_path / "tasks.toml", "audsley")
    assert found.answer is DeadlineAnswer.YES
    assert [task.priority for task in found.task_set.tasks] == [3, 2, 1]
    assert found.notes[-1] == f"{FOUND}, the most urgent first: a, b, c"
    assert all(margin.holds is not None for margin in found.margins)
    assert described(tmp_path / "tasks.toml", "deadline-monotonic").answer is not DeadlineAnswer.YES
    with pytest.raises(InputError, match='task a has no partition, and priorities = "audsley" needs to know it'):
        described(tmp_path / "tasks.toml", "audsley", partition="")
