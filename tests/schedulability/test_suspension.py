"""Bounds of tasks that wait for kernels between their CPU times, against exhaustive search."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.errors import InputError
from makespan.schedulability import holistic, suspension
from makespan.schedulability.arrivals import OutOfStepsError, Steps
from makespan.schedulability.holistic import APART, OBLIVIOUS, TOGETHER, Limits, Responses, responses
from makespan.schedulability.suspension import Rival, oblivious, stretch, workload
from makespan.schedulability.task import Partition, Policy, Task, TaskSet
from tests.schedulability.exhaustive import worst
from tests.schedulability.sets import small_systems

LIMITS = Limits()


def proven(task_set: TaskSet) -> Responses:
    return responses(task_set, LIMITS)


def check(task_set: TaskSet, *, is_short: bool, most_states: int = 2500) -> int:
    """How many bounds were compared with the truth; none is below it."""
    found = [proven(task_set).of[task.name] for task in task_set.tasks]
    truth = worst(task_set, is_short=is_short, most_states=most_states) if any(found) else None
    if truth is None:
        return 0
    for response, total, end in zip(found, truth.response, truth.end, strict=True):
        if response is not None:
            assert response.total >= total
            assert response.end >= end
            assert sum(ticks for _, ticks in response.parts) == response.total
    return sum(response is not None for response in found)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_schedule_takes_longer_than_the_bounds(random: Random, is_short: bool) -> None:
    check(small_systems(random), is_short=is_short)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=80, deadline=None)
def test_no_schedule_of_chains_takes_longer_than_the_bounds(random: Random, is_short: bool) -> None:
    check(small_systems(random, is_chained=True), is_short=is_short)


def test_random_systems_are_worth_the_comparison() -> None:
    random = Random(2)
    assert sum(check(small_systems(random), is_short=False) for _ in range(40)) > 40


def on_core(name: str, times: tuple[int, int, int], period: int, priority: int, partition: str) -> Task:
    before, wcet, after = times
    task = Task(name, wcet, period, period, priority=priority, before=before, after=after, core="cpu")
    return replace(task, partition=partition)


def own_partitions(*tasks: Task) -> TaskSet:
    """Every task has its partition, so that only the core is shared."""
    names = dict.fromkeys(task.partition or "" for task in tasks)
    return TaskSet(tasks, tuple(Partition(name, Policy.FIFO) for name in names))


def system(*rows: tuple[int, int, int, int]) -> TaskSet:
    """Before, kernel, after and period of each task, the most urgent one first, all on one core."""
    return own_partitions(
        *(on_core(f"t{at}", times, period, -at, f"g{at}") for at, (*times, period) in enumerate(rows))  # type: ignore[arg-type]
    )


def totals(task_set: TaskSet) -> tuple[int | None, ...]:
    return tuple(None if response is None else response.total for response in proven(task_set).of.values())


def arrivals_only(rival: Rival, length: int) -> int:
    """What a job that never waits could take: wrong for tasks with kernels."""
    return -(-(length + rival.jitter) // rival.period) * (rival.before + rival.after)


def wait_as_jitter(rival: Rival, length: int) -> int:
    """The longest wait as the jitter of the second stretch: the classic mistake."""
    first = -(-(length + rival.jitter) // rival.period) * rival.before
    return first + -(-(length + rival.kernel) // rival.period) * rival.after


def test_cpu_time_after_a_wait_comes_back_to_back_with_the_next_job() -> None:
    """8..10 the end of a job, 12..14 and 15..17 the next one, whose kernel is short: 6 ticks in 10."""
    task_set = system((2, 6, 2, 12), (4, 1, 0, 40))
    truth = worst(task_set, is_short=True)
    assert truth is not None
    assert truth.response == totals(task_set) == (10, 11)


@pytest.mark.parametrize(
    ("wrong", "rows", "claimed", "least", "ours"),
    [
        (arrivals_only, ((2, 6, 2, 12), (4, 1, 0, 40)), 9, 11, 11),
        (arrivals_only, ((1, 1, 0, 2), (1, 2, 2, 9), (1, 1, 0, 35)), 9, 13, 21),
        (arrivals_only, ((1, 1, 0, 2), (1, 1, 3, 14), (3, 1, 0, 38)), 15, 21, 23),
        (wait_as_jitter, ((1, 1, 0, 3), (3, 1, 3, 16), (4, 1, 0, 30)), 16, 20, 25),
    ],
)
def test_wrong_jitter_claims_less_than_what_happens(
    wrong: Callable[[Rival, int], int],
    rows: tuple[tuple[int, int, int, int], ...],
    claimed: int,
    least: int,
    ours: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task_set = system(*rows)
    truth = worst(task_set, is_short=True)
    assert truth is not None
    assert truth.response[-1] == least
    assert totals(task_set)[-1] == ours
    monkeypatch.setattr(suspension, "workload", wrong)
    assert totals(task_set)[-1] == claimed


def test_workload_is_the_most_that_fits_any_window() -> None:
    """Jobs that end as late as the first may and as early as the others can, at every distance."""
    rival = Rival(period=10, before=2, after=3, jitter=0, ready=2, kernel=3, end=8)
    for length in range(40):
        best = 0
        for gap in range(3 + 1):  # the wait of the first job; the others' waits are 0
            for start in range(10):
                pieces = [(0, 2), (2 + gap, 5 + gap)]
                pieces += [(10 * k, 10 * k + 5) for k in range(1, 6)]
                inside = sum(max(0, min(b, start + length) - max(a, start)) for a, b in pieces)
                best = max(best, inside)
        assert best <= workload(rival, length) <= 5 * (length // 10 + 2)


def test_each_way_can_be_the_best() -> None:
    found: set[str] = set()
    random = Random(7)
    while not found >= {APART, TOGETHER}:
        found |= {response.way or "" for response in proven(small_systems(random)).of.values() if response is not None}
    oblivious_best = system((2, 1, 3, 13), (2, 2, 3, 24), (1, 3, 1, 54))
    response = proven(oblivious_best).of["t2"]
    assert response is not None
    assert (response.way, response.total) == (OBLIVIOUS, 24)


def test_waiting_as_cpu_time_needs_different_priorities() -> None:
    """With equal ones, an earlier job of the same task may still run in the window."""
    task_set = system((2, 1, 3, 13), (2, 2, 3, 24), (1, 3, 1, 54))
    levelled = replace(task_set, tasks=tuple(replace(task, priority=0) for task in task_set.tasks))
    assert all(response is None or response.way != OBLIVIOUS for response in proven(levelled).of.values())


def test_a_core_at_its_limit_has_no_bound_for_the_least_urgent() -> None:
    tasks = own_partitions(on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (1, 1, 3), 20, 1, "b"))
    found = proven(tasks).of
    assert found["a"] is not None
    assert found["b"] is None
    assert oblivious(3, [Rival(6, 3, 2, 0, 3, 1, 6)], 20, Steps(1000)) is None


def test_what_needs_a_bound_that_does_not_exist_has_none() -> None:
    """`b` may run late without end, and `c` waits for its kernels; `a` does not."""
    a, b = on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (1, 1, 3), 20, 1, "b")
    c, d = Task("c", 1, 100, 100, partition="b"), Task("d", 1, 100, 100, partition="a")
    found = proven(own_partitions(a, b, c, d))
    assert [name for name, response in found.of.items() if response is None] == ["b", "c"]
    assert found.lost == {"b": "b", "c": "b"}


def test_kernels_that_come_first_are_ready_in_time_whatever_follows() -> None:
    """Nothing bounds the jobs of `b`, but its kernels wait for nothing: so `c` has a bound."""
    a, b = on_core("a", (3, 1, 2), 6, 2, "a"), on_core("b", (0, 1, 5), 20, 1, "b")
    c = Task("c", 1, 100, 100, partition="b")
    assert totals(own_partitions(a, b, c)) == (6, None, 2)


def test_deadlines_beyond_the_period_are_refused_with_cpu_time() -> None:
    late = replace(on_core("late", (1, 2, 1), 10, 1, "a"), deadline=11)
    with pytest.raises(InputError, match="task late has CPU time and a deadline longer than its period: no"):
        proven(own_partitions(late))


def test_unassigned_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="task t has no partition: assign it, then analyse"):
        proven(TaskSet((Task("t", 1, 10, 10),), (Partition("g", Policy.FIFO),)))


def test_limits_stop_windows_on_cores() -> None:
    with pytest.raises(OutOfStepsError):
        stretch(10**6, [Rival(10, 5, 4, 0, 5, 1, 10)], 10**9, Steps(10))
    stopped = responses(system((2, 6, 2, 12), (4, 1, 0, 40)), Limits(total=3))
    assert stopped.stopped
    assert set(stopped.of.values()) == {None}


def test_a_job_that_may_end_after_the_next_arrival_has_a_bound() -> None:
    """`late` takes longer than its period if `hog` comes twice: then its next job waits for it, too."""
    tasks = (
        Task("hog", 1, 10, 10, jitter=2, priority=2, before=6, core="c", partition="h"),
        Task("late", 1, 10, 10, priority=1, before=3, core="c", partition="g"),
    )
    task_set = TaskSet(tasks, (Partition("g", Policy.FIFO), Partition("h", Policy.FIFO)))
    truth = worst(task_set, is_short=True)
    assert truth is not None
    assert truth.response == (9, 16)
    assert totals(task_set) == (9, 19)


def test_jobs_that_overlap_never_take_longer_than_the_bounds() -> None:
    """Cores so full that many tasks have bounds beyond their periods."""
    random = Random(3)
    overlapping = 0
    for _ in range(150):
        tasks = []
        for number in range(2):
            period, times = random.randint(3, 8), random.choice(((1, 0), (0, 1), (2, 0), (1, 1), (2, 1), (3, 0)))
            task = on_core(f"t{number}", (times[0], 1, times[1]), period, number, random.choice("gh"))
            tasks.append(replace(task, jitter=random.choice((0, 1, 3))))
        task_set = own_partitions(*tasks)
        found = proven(task_set).of
        late = {task.name for task in tasks if (r := found[task.name]) is not None and r.end > task.period}
        truth = worst(task_set, is_short=True, most_states=1200) if late else None
        for name, longest in zip(found, () if truth is None else truth.response, strict=False):
            response = found[name]
            assert response is None or response.total >= longest
            overlapping += name in late
    assert overlapping > 20


def test_without_earlier_jobs_the_bounds_would_be_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holistic._System, "_pending", lambda self, task: 0)
    with pytest.raises(AssertionError):
        test_jobs_that_overlap_never_take_longer_than_the_bounds()
