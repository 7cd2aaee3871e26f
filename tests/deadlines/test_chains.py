"""Chains: what they may not be, and bounds that no simulated schedule exceeds."""

from dataclasses import replace
from random import Random

import pytest

from makespan.deadlines.analysis import SAMPLED, TRIGGERED, analyse
from makespan.deadlines.chains import heads, predecessors, sampled_latency
from makespan.deadlines.scenarios import random_scenario
from makespan.deadlines.simulation import simulate
from makespan.deadlines.task import (
    ChainStart,
    GpuPartition,
    GpuTask,
    HostWait,
    ServerPolicy,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.deadlines.verdict import ChainVerdict, DeadlineAnswer
from makespan.host.errors import InputError
from tests.deadlines.latency import latency
from tests.deadlines.sets import kernel, partition_of

A, B, C = kernel("a", 2, 20, 3), kernel("b", 3, 20, 2), kernel("c", 1, 20, 1)


def by_data(*names: str, name: str = "data", deadline: int | None = None) -> TaskChain:
    return TaskChain(name, names, ChainStart.DATA, deadline)


def sampled(*names: str, deadline: int | None = None) -> TaskChain:
    return TaskChain("timers", names, ChainStart.PERIODIC, deadline)


def chained(
    *chains: TaskChain, tasks: tuple[GpuTask, ...] = (A, B, C), policy: ServerPolicy = ServerPolicy.FIXED_PRIORITY
) -> TaskSet:
    return replace(partition_of(*tasks, policy=policy), chains=chains)


def test_heads_come_before_those_that_they_start() -> None:
    """Chains that join each other are one graph; what several of them say is said once."""
    found = predecessors(chained(by_data("b", "c", name="late"), by_data("a", "b", name="early"), sampled("a")))
    assert list(found.items()) == [("b", ("a",)), ("c", ("b",))]
    several = chained(by_data("a", "c"), by_data("a", "b", "c", name="2"), by_data("b", "c", name="3"))
    assert predecessors(several) == {"b": ("a",), "c": ("a", "b")}
    assert heads(predecessors(several)) == {"b": "a", "c": "a"}


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        (
            (by_data("a", "c"), by_data("b", "c", name="2")),
            "task c waits for data that go back to a and to b, which arrive by themselves: let one",
        ),
        ((by_data("a", "b"), by_data("b", "a", name="2")), "task b is in a circle of tasks that start each other"),
        ((by_data("a", "b"), sampled("c", "b")), "task b has a timer in chain timers, but data of a starts it"),
    ],
)
def test_contradictions_are_refused(chains: tuple[TaskChain, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        analyse(chained(*chains))


def test_a_follower_has_the_period_of_its_head_and_no_offset() -> None:
    slow = kernel("b", 3, 21, 2)
    with pytest.raises(InputError, match="task b has another period than a, which starts it by data: make them equal"):
        analyse(chained(by_data("a", "b"), tasks=(A, slow)))
    fixed = replace(B, offset=3)
    with pytest.raises(InputError, match="task b has an offset, but data of a starts it: remove one of them"):
        analyse(chained(by_data("a", "b"), tasks=(A, fixed)))


def test_timers_add_a_period_and_a_response_each() -> None:
    """Responses 2 + 2 of blocking, 3 + 2 and 1 + 5; periods of 20."""
    assert sampled_latency((A, B, C), (4, 5, 6)) == 75
    verdict = analyse(chained(sampled("a", "b", "c", deadline=75)))
    assert [task.response for task in verdict.tasks] == [4, 5, 6]
    assert verdict.chains == (ChainVerdict("timers", 75, 75, DeadlineAnswer.YES, SAMPLED),)
    assert analyse(chained(sampled("a", "b", "c", deadline=74))).answer is DeadlineAnswer.UNKNOWN


def test_tasks_of_one_activation_do_not_wait_for_each_other() -> None:
    """None of them is there before the one before it has ended, and all are over when the next activation comes."""
    verdict = analyse(chained(by_data("a", "b", "c", deadline=6)))
    assert [task.response for task in verdict.tasks] == [2, 3, 1]
    assert verdict.chains == (ChainVerdict("data", 6, None, DeadlineAnswer.YES, TRIGGERED),)
    assert not any(task.is_exact for task in verdict.tasks)
    periodic = chained(by_data("a", "b", "c", deadline=5), tasks=(replace(A, offset=0), B, C))
    assert analyse(periodic, evidence=False).chains == (ChainVerdict("data", 6, 26, DeadlineAnswer.UNKNOWN, TRIGGERED),)


def test_others_delay_a_chain_once_and_not_every_task_of_it() -> None:
    """`d` may have begun when `a` comes, but not between `a`, `b` and `c`, which hand over; `e` comes once."""
    tasks = (A, B, C, kernel("d", 4, 30, 0), kernel("e", 1, 15, 5))
    verdict = analyse(chained(by_data("a", "b", "c"), tasks=tasks))
    assert [task.response for task in verdict.tasks] == [6, 4, 2, 11, 4]
    assert verdict.chains[0].reaction == 3 + 2 + 1 + 3 + 1


def test_a_join_waits_for_the_last_of_its_sources() -> None:
    """`b` and `c` come at once, with equal priorities; `d` after both."""
    tasks = (A, replace(B, priority=1), C, kernel("d", 2, 20, 0))
    verdict = analyse(chained(by_data("a", "b", "d"), by_data("a", "c", "d", name="2"), tasks=tasks))
    assert [task.response for task in verdict.tasks] == [2, 4, 4, 2]
    assert [chain.reaction for chain in verdict.chains] == [8, 8]


def test_a_chain_without_a_deadline_is_only_computed() -> None:
    verdict = analyse(chained(sampled("c")))
    assert verdict.chains[0].reaction == 26
    assert verdict.answer is DeadlineAnswer.YES


def test_a_chain_with_a_task_without_a_bound_has_none() -> None:
    tasks = (A, kernel("b", 19, 20, 2), C)
    verdict = analyse(chained(sampled("a", "b"), by_data("a", "c"), tasks=tasks), evidence=False)
    assert [(chain.reaction, chain.age, chain.answer) for chain in verdict.chains] == [
        (None, None, DeadlineAnswer.UNKNOWN)
    ] * 2


def test_a_circle_of_waits_that_never_settles_has_no_bound() -> None:
    """a waits for d, which c makes late, which waits for b, which a makes late: each round by half as much again."""
    tasks = (
        one_kernel("a", 39, 100, 100, priority=1, partition="g"),
        one_kernel("d", 60, 100, 100, priority=2, partition="g"),
        one_kernel("c", 39, 100, 100, priority=1, partition="h"),
        one_kernel("b", 60, 100, 100, priority=2, partition="h"),
    )
    partitions = (GpuPartition("g", ServerPolicy.FIXED_PRIORITY), GpuPartition("h", ServerPolicy.FIXED_PRIORITY))
    verdict = analyse(TaskSet(tasks, partitions, (by_data("a", "b"), by_data("c", "d", name="2"))), evidence=False)
    assert [task.response for task in verdict.tasks] == [None] * 4
    growing = "no bound: it grows beyond 10 times the longest period, deadline or jitter"
    assert sorted({task.method for task in verdict.tasks}) == [
        growing,
        "no bound: the task depends on a, which has none",
    ]
    assert verdict.answer is DeadlineAnswer.UNKNOWN


def random_chain(random: Random, activation: ChainStart) -> TaskSet:
    partitions = tuple(GpuPartition(name, random.choice(list(ServerPolicy))) for name in ("g", "h"))
    common = random.randint(10, 30)
    tasks = []
    for at in range(4):
        is_follower = activation is ChainStart.DATA and at in (1, 2)
        period = common if activation is ChainStart.DATA and at < 3 else random.randint(10, 30)
        tasks.append(
            one_kernel(
                *(f"t{at}", random.randint(1, 3), period, period),
                jitter=random.choice((0, 0, random.randint(0, 5))),
                offset=None if is_follower else random.randint(0, 30),
                priority=random.randint(0, 3),
                before=random.choice((0, 0, 1)),
                after=random.choice((0, 0, 1)),
                core=random.choice("cd"),
                wait=random.choice(list(HostWait)),
                partition=random.choice("gh"),
            )
        )
    return TaskSet(tuple(tasks), partitions, (TaskChain("chain", ("t0", "t1", "t2"), activation),))


@pytest.mark.parametrize("activation", ChainStart)
def test_no_simulated_schedule_is_slower(activation: ChainStart) -> None:
    random = Random(3)
    compared = closest = 0
    for _ in range(60):
        task_set = random_chain(random, activation)
        verdict = analyse(task_set, evidence=False).chains[0]
        if verdict.reaction is None:
            continue
        for attempt in range(4):
            seen = latency(simulate(random_scenario(task_set, random, 150, f"attempt {attempt}")), task_set.chains[0])
            if seen.reaction is not None:
                assert seen.reaction <= verdict.reaction
                compared += 1
                closest = max(closest, 100 * seen.reaction // verdict.reaction)
            if seen.age is not None and verdict.age is not None:
                assert seen.age <= verdict.age
    assert compared > 100
    assert closest >= 70
