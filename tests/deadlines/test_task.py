"""Tasks, partitions, chains: what is refused, and what task sets say of themselves."""

from dataclasses import replace
from typing import Any

import pytest

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

NO_PRIORITY = (
    ': give every task a priority, or priorities = "rate-monotonic" or "deadline-monotonic" at the top'
    " (--priorities for CSV)"
)
GPU = GpuPartition("gpu", ServerPolicy.FIFO)
RANKED = GpuPartition("ranked", ServerPolicy.FIXED_PRIORITY)
CPU, COPY, KERNEL = (
    JobSegment(SegmentKind.CPU, 1),
    JobSegment(SegmentKind.COPY, 2, "h2d"),
    JobSegment(SegmentKind.KERNEL, 3, "gpu"),
)


def task(name: str = "a", **changes: Any) -> GpuTask:
    return one_kernel(**{"name": name, "wcet": 2, "period": 10, "deadline": 10, "partition": "gpu", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"period": 0}, "period of task a must be at least 1 and at most 1e100 ticks, not 0"),
        ({"period": -1}, "period of task a must be at least 1 and at most 1e100 ticks, not -1"),
        ({"wcet": 0}, "execution time of task a must be at least 1 and at most 1e100 ticks, not 0"),
        ({"deadline": 0}, "deadline of task a must be at least 1 and at most 1e100 ticks, not 0"),
        ({"jitter": -1}, "jitter of task a must be at least 0 and at most 1e100 ticks, not -1"),
        ({"offset": -1}, "offset of task a must be at least 0 and at most 1e100 ticks, not -1"),
        ({"period": 10**101}, "period of task a must be at least 1 and at most 1e100 ticks, not a number of 336 bits"),
        ({"wcet": 1.5}, "execution time of task a must be a whole number of ticks, not 1.5"),
        ({"wcet": True}, "execution time of task a must be a whole number of ticks, not True"),
        ({"priority": 1.5}, "priority of task a must be a whole number, not 1.5"),
        ({"before": 1}, "task a has CPU time and no core: say which core runs it"),
        ({"core": "cpu0"}, "task a has a core: say what its thread does while it waits, block or spin"),
        ({"attained": 3}, "task a cannot take 3 ticks, and 2 at most"),
        ({"attained": -1}, "attained time of task a must be at least 0 and at most 1e100 ticks, not -1"),
        ({"name": ""}, "the name of a task must be 1..80 printable characters, not ''"),
        ({"name": "a\n"}, r"the name of a task must be 1..80 printable characters, not 'a\n'"),
    ],
)
def test_a_task_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        task(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ((), "a job of task a has 1..100 segments, not 0"),
        ((KERNEL,) * 101, "a job of task a has 1..100 segments, not 101"),
        ((CPU, COPY, KERNEL), "task a has CPU time and no core: say which core runs it"),
        ((JobSegment(SegmentKind.CPU, 0),), "CPU time of task a must be at least 1 and at most 1e100 ticks, not 0"),
        ((JobSegment(SegmentKind.CPU, 1, "gpu"),), "CPU time of task a is on its core, and nobody launches it"),
        ((JobSegment(SegmentKind.CPU, 1, delay=1),), "CPU time of task a is on its core, and nobody launches it"),
        ((JobSegment(SegmentKind.COPY, 1),), "a copy of task a has no engine: say which copy engine serves it"),
        (
            (JobSegment(SegmentKind.KERNEL, 1, delay=-1),),
            "launch delay of task a must be at least 0 and at most 1e100 ticks, not -1",
        ),
    ],
)
def test_segments_out_of_range_are_refused(segments: tuple[JobSegment, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        GpuTask("a", segments, 10, 10)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b", "a"), None), "chain c is cyclic: it comes back to task a; a chain visits a task once"),
        (((), None), "chain c has no task"),
        ((("a",), 0), "deadline of chain c must be 1..1e100 ticks, not 0"),
    ],
)
def test_a_chain_out_of_range_is_refused(arguments: tuple[tuple[str, ...], int | None], message: str) -> None:
    names, deadline = arguments
    with pytest.raises(InputError) as caught:
        TaskChain("c", names, ChainStart.PERIODIC, deadline)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("tasks", "partitions", "chains", "message"),
    [
        ((), (GPU,), (), "a task set has 1..1000 tasks, not 0"),
        ((task(),), (), (), "task a runs on an unknown partition gpu; there is none"),
        ((task(), task()), (GPU,), (), "two tasks are named a; names must differ"),
        ((task(),), (GPU, GPU), (), "two partitions or copy engines are named gpu; names must differ"),
        ((task(partition="sm9"),), (GPU,), (), "task a runs on an unknown partition sm9; there are gpu"),
        (
            (task(partition="ranked"),),
            (RANKED,),
            (),
            "task a has no priority, and partition ranked schedules by priorities" + NO_PRIORITY,
        ),
        (
            (task(core="cpu0", before=1, wait=HostWait.SPIN),),
            (GPU,),
            (),
            "task a has no priority, and core cpu0 schedules by priorities" + NO_PRIORITY,
        ),
        ((GpuTask("a", (COPY,), 9, 9),), (GPU,), (), "task a runs on an unknown copy engine h2d; there is none"),
        ((GpuTask("a", (KERNEL,), 9, 9),), (RANKED,), (), "task a runs on an unknown partition gpu; there are ranked"),
        (
            (task(),),
            (GPU,),
            (TaskChain("c", ("a", "b"), ChainStart.DATA),),
            "chain c names an unknown task b",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tasks: tuple[GpuTask, ...], partitions: tuple[GpuPartition, ...], chains: tuple[TaskChain, ...], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        TaskSet(tasks, partitions, chains)
    assert str(caught.value) == message


def test_a_partition_needs_a_policy_that_is_one() -> None:
    with pytest.raises(
        InputError, match="policy of gpu must be one of fixed-priority, edf, edf-release, fifo, not 'fifo'"
    ):
        GpuPartition("gpu", "fifo")  # type: ignore[arg-type]


def test_a_task_set_says_what_runs_where() -> None:
    placed, open_ = task(), task("b", partition=None)
    ranked = task("c", core="cpu0", after=1, priority=1, wait=HostWait.BLOCK)
    system = TaskSet((placed, open_, ranked), (GPU, RANKED))
    assert system.on("gpu") == (placed, ranked)
    assert system.unassigned == (open_,)
    assert system.cores == {"cpu0": (ranked,)}
    assert system.by_name["b"] is open_
    assert system.assigned({"b": "gpu"}).on("gpu")[1].name == "b"
    assert ranked.cpu == 1
    assert not ranked.spins


def test_a_name_is_either_a_partition_or_a_copy_engine() -> None:
    with pytest.raises(InputError, match="are named gpu; names must differ"):
        TaskSet((task(),), (GPU,), (), (CopyEngine("gpu", ServerPolicy.FIFO),))


def test_a_task_says_what_its_jobs_do() -> None:
    several = GpuTask(
        "a", (CPU, COPY, KERNEL, replace(KERNEL, resource=None), COPY, CPU), 90, 90, core="c", wait=HostWait.SPIN
    )
    assert [len(several.of(kind)) for kind in SegmentKind] == [2, 2, 2]
    assert several.of(SegmentKind.CPU, SegmentKind.COPY) == (CPU, COPY, COPY, CPU)
    assert several.on("gpu") == (KERNEL,)
    assert (several.cpu, several.spins, several.is_unassigned) == (2, True, True)
    placed = several.assigned("other")
    assert [segment.resource for segment in placed.segments] == [None, "h2d", "gpu", "other", "h2d", None]
    assert not placed.is_unassigned


@pytest.mark.parametrize(
    ("segment", "known", "is_vouched_for"),
    [
        (JobSegment(SegmentKind.KERNEL, 5, "gpu"), 5, True),
        (JobSegment(SegmentKind.KERNEL, 5, "gpu", attained=5), 5, False),
        (JobSegment(SegmentKind.KERNEL, 5, "gpu", attained=0), 0, False),
        (JobSegment(SegmentKind.KERNEL, 5, "gpu", attained=4, is_shown=False), 4, True),
        (JobSegment(SegmentKind.KERNEL, 5, "gpu", delay=1, attained=5), 5, True),
    ],
)
def test_a_segment_says_what_is_known_of_its_time(segment: JobSegment, known: int, is_vouched_for: bool) -> None:
    assert (segment.known, segment.is_vouched_for) == (known, is_vouched_for)
    assert GpuTask("a", (segment,), 10, 10).is_vouched_for == is_vouched_for


def test_the_commonest_task_leaves_out_what_takes_no_time() -> None:
    assert [s.kind for s in task(before=1, after=2, core="c", wait=HostWait.BLOCK).segments] == [
        SegmentKind.CPU, SegmentKind.KERNEL, SegmentKind.CPU
    ]  # fmt: skip
    assert task().segments == (JobSegment(SegmentKind.KERNEL, 2, "gpu"),)
