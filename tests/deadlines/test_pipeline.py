"""Two small systems by hand, whose bounds are what some schedule takes: a pipeline, and a thread that waits."""

import pytest

from makespan.deadlines.exploration import explore
from makespan.deadlines.holistic import AnalysisLimits, responses
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

TIMES = {"camera": 2, "isp": 4, "dnn": 7}


def pipeline(places: str, cpu: int, policy: ServerPolicy) -> TaskSet:
    """In milliseconds, every 20 of them; CPU time before the first kernel and after the last."""
    tasks: list[GpuTask] = []
    for (name, kernel), place in zip(TIMES.items(), places, strict=True):
        before, after = cpu * (name == "camera"), cpu * (name == "dnn")
        core = "cpu" if before or after else None
        task = one_kernel(
            *(name, kernel, 20, 20),
            priority=len(tasks),
            before=before,
            after=after,
            core=core,
            wait=HostWait.BLOCK,
            partition=place,
        )
        tasks.append(task)
    partitions = tuple(GpuPartition(place, policy) for place in dict.fromkeys(places))
    return TaskSet(tuple(tasks), partitions, (TaskChain("frame", tuple(TIMES), ChainStart.DATA),))


@pytest.mark.parametrize("policy", [ServerPolicy.FIXED_PRIORITY, ServerPolicy.FIFO, ServerPolicy.EDF])
@pytest.mark.parametrize("places", ["aaa", "abb", "aab", "abc"])
@pytest.mark.parametrize(("cpu", "totals", "ends"), [(0, (2, 4, 7), (2, 6, 13)), (1, (3, 4, 8), (3, 7, 15))])
def test_what_a_pipeline_takes_alone_is_its_bound(
    places: str, policy: ServerPolicy, cpu: int, totals: tuple[int, ...], ends: tuple[int, ...]
) -> None:
    """A frame is through before the next one comes."""
    task_set = pipeline(places, cpu, policy)
    truth, proven = explore(task_set), responses(task_set, AnalysisLimits()).of
    assert tuple(truth.response.values()) == totals
    assert tuple(truth.end.values()) == ends
    assert [bound and (bound.total, bound.end) for bound in proven.values()] == list(zip(totals, ends, strict=True))


@pytest.mark.parametrize(("wait", "response"), [(HostWait.BLOCK, 8), (HostWait.SPIN, 16)])
def test_what_a_thread_that_spins_costs_others(wait: HostWait, response: int) -> None:
    """1 + 5 + 1 + 1 where `hp` blocks; where it spins, its 10 ticks are all on the core."""
    hp = one_kernel("hp", 8, 20, 20, priority=2, before=1, after=1, core="cpu", wait=wait, partition="a")
    lp = one_kernel("lp", 1, 24, 12, priority=1, before=5, core="cpu", wait=wait, partition="b")
    task_set = TaskSet((hp, lp), (GpuPartition("a", ServerPolicy.FIFO), GpuPartition("b", ServerPolicy.FIFO)))
    proven = responses(task_set, AnalysisLimits()).of
    assert [bound and bound.total for bound in proven.values()] == [10, response]
    assert tuple(explore(task_set).response.values()) == (10, response)
