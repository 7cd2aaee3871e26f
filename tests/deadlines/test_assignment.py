"""Kernels find partitions: by heuristics that are proven afterwards, and by an exact search against all assignments."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.deadlines.analysis import analyse
from makespan.deadlines.assignment import Heuristic, _AssignmentModel, assign, assign_exactly
from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
    GpuPartition,
    GpuTask,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.host.errors import InputError
from tests.deadlines.toy import analysis


def _partitions(count: int) -> tuple[GpuPartition, ...]:
    return tuple(GpuPartition(f"sm{number}", ServerPolicy.EDF) for number in range(count))


def _tasks(*times: tuple[int, int]) -> tuple[GpuTask, ...]:
    return tuple(one_kernel(f"t{n}", wcet, deadline, deadline) for n, (wcet, deadline) in enumerate(times))


@st.composite
def task_sets(draw: st.DrawFn) -> TaskSet:
    times = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(2, 20)), min_size=1, max_size=5))
    several = _partitions(draw(st.integers(1, 3)))
    tasks = list(_tasks(*times))
    if len(tasks) > 1 and draw(st.booleans()):
        tasks[-1] = tasks[-1].assigned(several[0].name)
    chains: tuple[TaskChain, ...] = ()
    if len(tasks) > 1 and draw(st.booleans()):
        chains = (TaskChain("c", (tasks[0].name, tasks[1].name), ChainStart.PERIODIC),)
    return TaskSet(tuple(tasks), several, chains)


def _every(task_set: TaskSet) -> list[dict[str, str]]:
    names, places = [t.name for t in task_set.unassigned], [p.name for p in task_set.partitions]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(places, repeat=len(names))]


@settings(max_examples=150, deadline=None)
@given(task_sets())
def test_the_exact_search_finds_an_assignment_whenever_there_is_one(task_set: TaskSet) -> None:
    possible = any(analysis(task_set.assigned(places)).answer is DeadlineAnswer.YES for places in _every(task_set))
    found = assign_exactly(task_set, analysis, heuristics=())
    assert (found.places is not None) == possible
    assert found.is_proven == (not possible)
    if found.places is not None:
        assert analysis(task_set.assigned(found.places)).answer is DeadlineAnswer.YES


@settings(max_examples=100, deadline=None)
@given(task_sets(), st.sampled_from(Heuristic))
def test_what_a_heuristic_finds_is_proven_and_never_more_than_the_exact_search_finds(
    task_set: TaskSet, heuristic: Heuristic
) -> None:
    found = assign(task_set, analysis, heuristic)
    assert not found.is_proven
    if found.places is not None:
        assert analysis(task_set.assigned(found.places)).answer is DeadlineAnswer.YES
        assert assign_exactly(task_set, analysis).places is not None


def test_conflicts_of_three_and_more_exclude_nothing_that_holds() -> None:
    random = Random(20261121)
    for _ in range(25):
        tasks = _tasks(*((random.randint(2, 4), random.randint(7, 12)) for _ in range(7)))
        task_set = TaskSet(tasks, _partitions(2))
        possible = any(analysis(task_set.assigned(places)).answer is DeadlineAnswer.YES for places in _every(task_set))
        found = assign_exactly(task_set, analysis, heuristics=())
        assert (found.places is not None, found.is_proven) == (possible, not possible), tasks


def test_thirds_that_add_up_to_one_fit() -> None:
    task_set = TaskSet(tuple(one_kernel(f"t{n}", 1, 3, 100) for n in range(3)), _partitions(1))
    assert assign_exactly(task_set, analysis).places == {"t0": "sm0", "t1": "sm0", "t2": "sm0"}


def test_a_kernel_that_is_there_already_keeps_its_deadline() -> None:
    there = one_kernel("tight", 5, 100, 6, partition="sm0")
    task_set = TaskSet((there, one_kernel("t", 2, 100, 100)), _partitions(2))
    assert assign(task_set, analysis, Heuristic.FIRST_FIT).places == {"t": "sm1"}
    assert assign_exactly(task_set, analysis).places == {"t": "sm1"}


def test_a_solver_that_ran_out_of_time_proves_nothing() -> None:
    master = _AssignmentModel(TaskSet(_tasks(*((3, 10) for _ in range(40))), _partitions(20)))
    assert master.propose(0.0) is None
    assert not master.is_empty


def test_first_fit_can_miss_what_the_exact_search_finds() -> None:
    tasks = _tasks((4, 10), (4, 10), (3, 10), (3, 10), (3, 10), (3, 10))
    task_set = TaskSet(tasks, _partitions(2))
    assert assign(task_set, analysis, Heuristic.FIRST_FIT).places is None
    found = assign_exactly(task_set, analysis)
    assert found.places is not None
    assert analysis(task_set.assigned(found.places)).answer is DeadlineAnswer.YES


def test_an_impossible_assignment_is_proven_impossible() -> None:
    found = assign_exactly(TaskSet(_tasks((6, 10), (6, 10), (6, 10)), _partitions(2)), analysis)
    assert found.places is None
    assert found.is_proven


def test_out_of_time_is_no_proof() -> None:
    found = assign_exactly(TaskSet(_tasks((6, 10), (6, 10), (6, 10)), _partitions(2)), analysis, seconds=0.0)
    assert found.places is None
    assert not found.is_proven


def test_a_chain_that_forbids_what_every_partition_allows_is_respected() -> None:
    tasks = _tasks((4, 10), (4, 10), (1, 10), (1, 10))
    chains = (TaskChain("c", ("t0", "t1"), ChainStart.PERIODIC),)
    found = assign_exactly(TaskSet(tasks, _partitions(2), chains), analysis)
    assert found.places is not None
    assert found.places["t0"] == found.places["t1"]


def test_a_task_may_fit_only_beside_the_one_that_starts_it() -> None:
    """`b` is blocked by a kernel that has begun, on either partition, unless `a` hands it over there."""
    partitions = tuple(GpuPartition(name, ServerPolicy.FIXED_PRIORITY) for name in ("sm0", "sm1"))
    tasks = (
        one_kernel("a", 1, 20, 20, priority=2),
        one_kernel("b", 1, 20, 1, priority=2),
        *(one_kernel(f"long {name}", 5, 20, 20, priority=1, partition=name) for name in ("sm0", "sm1")),
    )
    task_set = TaskSet(tasks, partitions, (TaskChain("ab", ("a", "b"), ChainStart.DATA),))
    found = assign_exactly(task_set, lambda system: analyse(system, evidence=False), heuristics=())
    assert found.places in [{"a": name, "b": name} for name in ("sm0", "sm1")]
    late = replace(task_set, tasks=(tasks[0], replace(tasks[1], priority=0), *tasks[2:]))
    assert assign_exactly(late, lambda system: analyse(system, evidence=False)).is_proven


def test_the_kernels_of_a_task_go_together() -> None:
    segments = (
        JobSegment(SegmentKind.KERNEL, 3),
        JobSegment(SegmentKind.COPY, 9, "e"),
        JobSegment(SegmentKind.KERNEL, 3),
    )
    task = GpuTask("a", segments, 10, 100)
    task_set = TaskSet((task, *_tasks((5, 10))), _partitions(2), (), (CopyEngine("e", ServerPolicy.FIFO),))
    found = assign_exactly(task_set, analysis)
    assert found.places in [{"a": "sm0", "t0": "sm1"}, {"a": "sm1", "t0": "sm0"}]


def test_worst_fit_spreads_and_best_fit_packs() -> None:
    task_set = TaskSet(_tasks((2, 10), (1, 10)), _partitions(2))
    spread, packed = (assign(task_set, analysis, h).places for h in (Heuristic.WORST_FIT, Heuristic.BEST_FIT))
    assert spread is not None
    assert packed is not None
    assert len(set(spread.values())) == 2
    assert len(set(packed.values())) == 1


@settings(max_examples=60, deadline=None)
@given(task_sets(), st.sampled_from(Heuristic))
def test_the_exact_search_is_never_worse_than_a_heuristic(task_set: TaskSet, heuristic: Heuristic) -> None:
    """Not even without any time of its own."""
    found = assign_exactly(task_set, analysis, seconds=0.0)
    assert found.places is not None or assign(task_set, analysis, heuristic).places is None
    assert found.places is None or found.method.startswith("exact (")


def test_nothing_to_assign_is_an_error() -> None:
    task_set = TaskSet((one_kernel("a", 1, 5, 5, partition="sm0"),), _partitions(1))
    with pytest.raises(InputError, match="every kernel has a partition"):
        assign(task_set, analysis, Heuristic.FIRST_FIT)


def test_twenty_kernels_on_eight_partitions_need_few_questions() -> None:
    task_set = TaskSet(_tasks(*((3 + n % 5, 16) for n in range(20))), _partitions(8))
    found = assign_exactly(task_set, analysis)
    assert found.places is not None
    assert found.questions < 1000


@pytest.mark.parametrize("wcet", [10**14, 10**24])
def test_a_kernel_that_takes_astronomically_long_fits_nowhere(wcet: int) -> None:
    """Its utilisation does not fit into the integers of CP-SAT."""
    free = _tasks((wcet, 1), (wcet, 1), (wcet, 1))
    found = assign_exactly(TaskSet(free, _partitions(2)), analysis)
    assert (found.places, found.is_proven) == (None, True)
    placed = free[0].assigned("sm0")
    assert assign_exactly(TaskSet((placed, *free[1:]), _partitions(2)), analysis).is_proven
