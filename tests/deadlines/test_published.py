"""Numbers from papers, books and other programs, to the digit.

Continuous time in a source and whole ticks here differ by one tick of blocking: a kernel that is less urgent must have
started before the window, one tick at least. Where events may lie between ticks there is no difference.
`docs/schedulability_theory.md` has the proof.
"""

from dataclasses import replace

import pytest

from makespan.deadlines.analysis import analyse
from makespan.deadlines.arrivals import StepBudget, StepFunction, least_fixed_point
from makespan.deadlines.exploration import explore
from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet
from makespan.deadlines.verdict import DeadlineAnswer, Miss
from makespan.deadlines.workload import PeriodicWork
from tests.deadlines.sets import kernel, partition_of


def responses(task_set: TaskSet) -> list[int | None]:
    return [task.response for task in analyse(task_set, evidence=False).tasks]


def preemptive(rows: list[tuple[int, int, int]], at: int, blocking: int = 0) -> int | None:
    """The classic response time from the release, blocking as if it were execution time.

    Rows of execution time, period and release jitter, most urgent first.
    """
    cpu, period, _ = rows[at]
    tasks = [
        GpuTask(f"t{number}", (JobSegment(SegmentKind.CPU, ticks),), every, 10**7, jitter, priority=-number, core="cpu")
        for number, (ticks, every, jitter) in enumerate([*rows[:at], (cpu + blocking, period, 0)])
    ]
    return responses(TaskSet(tuple(tasks), ()))[at]


def test_can_messages_of_davis_burns_bril_and_lukkien() -> None:
    """Real-Time Systems 35(3), 2007, the example of the flaw: three messages of 125 bits at 125 kbit/s, 1 ms each.

    Messages A, B and C every 2.5, 3.5 and 3.5 ms with deadlines 2.5, 3.25 and 3.25 ms. The analysis of 1994 looks at
    the first instance of C and finds 3 ms; its second instance takes 3.5 ms. One bit is 8 us: ticks of 4 us here.
    """
    a, b, c = (250, 625, 625), (250, 875, 813), (250, 875, 812)
    task_set = partition_of(
        *(kernel(n, wcet, t, p, d) for n, (wcet, t, d), p in zip("abc", (a, b, c), (3, 2, 1), strict=True))
    )
    millisecond = 250
    assert responses(task_set) == [2 * millisecond - 1, 3 * millisecond - 1, 35 * millisecond // 10]
    in_continuous_time = replace(task_set.finer(2), unit=2)
    assert responses(in_continuous_time) == [4 * millisecond, 6 * millisecond, 7 * millisecond]  # of half the length
    verdict = analyse(task_set).tasks[2]
    assert verdict.answer is DeadlineAnswer.NO
    assert isinstance(verdict.miss, Miss)
    assert verdict.miss.completion - verdict.miss.arrival == 35 * millisecond // 10
    first_only = partition_of(kernel("a", 10, 25, 3), kernel("b", 10, 35, 2), kernel("c", 10, 70, 1))
    assert responses(first_only)[2] == 30
    small = partition_of(kernel("a", 2, 5, 3), kernel("b", 2, 7, 2), kernel("c", 2, 7, 1))
    assert responses(small) == list(explore(small).response.values()) == [3, 5, 7]


def test_controller_of_audsley_and_others() -> None:
    """Software Engineering Journal 8(5), 1993, table 3: execution time, period, blocking, jitter and response in us."""
    table = [
        (51, 1000, 0, 0, 51),
        (3000, 2000000, 300, 0, 3504),
        (2000, 25000, 600, 0, 5906),
        (5000, 25000, 900, 0, 11512),
        (1000, 40000, 1350, 0, 13064),
        (3000, 50000, 1350, 0, 16217),
        (5000, 50000, 750, 0, 20821),
        (8000, 59000, 750, 0, 36637),
        (9000, 80000, 1350, 0, 47798),
        (2000, 80000, 450, 0, 48949),
        (5000, 100000, 1050, 0, 99150),
        (1000, 200000, 450, 1000, 99550),
        (3000, 200000, 450, 0, 140641),
        (1000, 200000, 450, 0, 141692),
        (1000, 200000, 1350, 0, 143694),
        (3000, 1000000, 0, 0, 145446),
        (1000, 1000000, 0, 0, 146497),
        (1000, 1000000, 0, 0, 147548),
    ]
    rows = [(cpu, period, jitter) for cpu, period, _, jitter, _ in table]
    assert [preemptive(rows, at, row[2]) for at, row in enumerate(table)] == [row[4] for row in table]


def test_process_set_of_burns_and_wellings() -> None:
    """Real-Time Systems and Programming Languages, 3rd edition 2001, on response times: responses 3, 6 and 20."""
    rows = [(3, 7, 0), (3, 12, 0), (5, 20, 0)]
    assert [preemptive(rows, at) for at in range(3)] == [3, 6, 20]


def test_first_example_of_response_time_analysis() -> None:
    """The quick start of the Python package 0.1.1: fixed priorities with preemption 8, FIFO 7."""
    assert preemptive([(1, 5, 0), (6, 10, 0)], 1) == 8
    fifo = partition_of(kernel("t1", 1, 5, deadline=5), kernel("t2", 6, 10, deadline=9), policy=ServerPolicy.FIFO)
    assert responses(fifo) == list(explore(fifo).response.values()) == [7, 7]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(79, 120, 100), (11, 34, 100), (1, 190, 100)], [91, 91, 91]),
        ([(79, 120, 50), (11, 34, 100), (1, 190, 120)], [89, 90, 121]),
        ([(5, 20, 29), (10, 20, 30)], [14, 15]),
    ],
)
def test_edf_examples_of_the_rust_library(rows: list[tuple[int, int, int]], expected: list[int]) -> None:
    """`response-time-analysis` 0.3.2 by MPI-SWS, src/edf/tests.rs: execution time, period and deadline.

    The third is the one that an earlier bound missed by a tick.
    """
    tasks = [kernel(f"t{at}", wcet, period, 0, deadline) for at, (wcet, period, deadline) in enumerate(rows)]
    assert responses(partition_of(*tasks, policy=ServerPolicy.EDF)) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(20, 70), (20, 80), (35, 200)], [54, 74, 75]),
        ([(10, 20), (20, 50), (30, 200)], [39, 79, None]),
    ],
)
def test_fixed_priority_examples_of_the_rust_library(rows: list[tuple[int, int]], expected: list[int | None]) -> None:
    """`response-time-analysis` 0.3.2 by MPI-SWS, src/fixed_priority/tests.rs; the second is an overload."""
    tasks = [kernel(f"t{at}", wcet, period, -at) for at, (wcet, period) in enumerate(rows)]
    assert responses(partition_of(*tasks)) == expected


def test_suspension_of_chen_and_others() -> None:
    """Real-Time Systems 55(1), 2019, on the wrong jitter: (C, S, T) of (1, 0, 2), (5, 5, 20) and C = 1 below both.

    With the suspension time of 5 as jitter the third would take 12; with R - C = 15 it is 22, and that is approached: a
    job of the second one that arrives at -20 suspends itself whenever the core is free for it, until it has done so for
    5 by -10; it runs in every second tick of -10..0, and its next job in those of 0..10, without a wait. The third one
    arrives at -10 and runs at 11 only.
    """

    def group(cpu: int, period: int, jitter: int) -> StepFunction:
        return PeriodicWork(period, ((cpu, jitter),), (cpu, jitter), ()).stairs

    def longest(cpu: int, *groups: StepFunction) -> int:
        return least_fixed_point(lambda w: cpu + sum(g.at(w) for g in groups), cpu, 1, StepBudget(1000))

    top = group(1, 2, 0)
    second = longest(5 + 5, top)
    assert second == 20
    assert longest(1, top, group(5, 20, second - 5)) == 22
    assert longest(1, top, group(5, 20, 5)) == 12
