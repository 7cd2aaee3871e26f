"""Random task sets that are small enough to be walked through exhaustively, or as large as real ones."""

from dataclasses import replace
from random import Random
from typing import Any

from makespan.deadlines.arrivals import Stream
from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
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
from makespan.deadlines.utilisation import resource_loads

GPU = "gpu"


def partition_of(*tasks: GpuTask, policy: ServerPolicy = ServerPolicy.FIXED_PRIORITY) -> TaskSet:
    return TaskSet(tasks, (GpuPartition(GPU, policy),))


def kernel(
    name: str, wcet: int, period: int, priority: int = 0, deadline: int | None = None, jitter: int = 0
) -> GpuTask:
    deadline = period if deadline is None else deadline
    return one_kernel(name, wcet, period, deadline, jitter=jitter, priority=priority, partition=GPU)


def system_of(known: dict[str, Any]) -> TaskSet:
    """A system whose longest responses another program has found, a line of a file beside this one."""
    tasks, chains = [], []
    for row in known["tasks"]:
        segments = tuple(
            JobSegment(SegmentKind(s["kind"]), s["wcet"], s.get("on"), s.get("delay", 0)) for s in row["segments"]
        )
        core = row.get("core")
        wait = HostWait(row.get("wait", "block")) if core else None
        times = (row["period"], row["deadline"], row.get("jitter", 0))
        tasks.append(GpuTask(row["name"], segments, *times, None, row["priority"], core, wait, row.get("context")))
        ways = ((source, row["name"]) for source in row.get("after", ()))
        chains += [TaskChain(" to ".join(way), way, ChainStart.DATA) for way in ways]
    partitions = (
        GpuPartition(name, ServerPolicy(how))
        if isinstance(how, str)
        else GpuPartition(name, ServerPolicy.FIFO, Slices(*how))
        for name, how in known["partitions"].items()
    )
    engines = (CopyEngine(name, ServerPolicy(policy)) for name, policy in known.get("engines", {}).items())
    return TaskSet(tuple(tasks), tuple(partitions), tuple(chains), tuple(engines))


def small_kernels(random: Random) -> TaskSet:
    """One to three kernels on one partition, with any deadlines, jitter and equal priorities; at most full."""
    while True:
        count = random.choice((1, 2, 2, 2, 3))
        most = 7 if count < 3 else 5
        tasks = []
        for number in range(count):
            period = random.randint(2, most)
            wcet = random.randint(1, min(4 if count < 3 else 2, period))
            jitter = random.choice((0, 0, random.randint(0, 3), random.randint(0, period + 2)) if count < 3 else (0, 1))
            tasks.append(kernel(f"t{number}", wcet, period, random.randint(0, 2), random.randint(1, 12), jitter))
        task_set = partition_of(*tasks, policy=random.choice(list(ServerPolicy)))
        if not any(load.is_overload for load in resource_loads(task_set)):
            return task_set


def small_systems(random: Random, *, is_chained: bool = False) -> TaskSet:
    """Two or three tasks on one or two partitions and cores, some with copies; by data, the first two are a chain."""
    while True:
        partitions = tuple(
            GpuPartition(f"g{number}", random.choice(list(ServerPolicy))) for number in range(random.choice((1, 1, 2)))
        )
        engines = (CopyEngine("e", random.choice(list(ServerPolicy))),)
        count = random.choice((2, 2, 3))
        common = random.randint(4, 9)
        tasks = []
        for number in range(count):
            period = common if is_chained and number < 2 else random.randint(4, 12)
            before, after = (random.randint(0, 2), random.randint(0, 2)) if random.random() < 0.6 else (0, 0)
            task = one_kernel(
                *(f"t{number}", random.randint(1, 3 if count < 3 else 2), period, random.randint(1, period)),
                jitter=random.choice((0, 0, 1, 2)),
                priority=random.choice((number, random.randint(0, 2))),
                before=before,
                after=after,
                core=random.choice(("c", "c", "d")) if before + after else None,
                wait=random.choice(list(HostWait)),
                partition=random.choice(partitions).name,
            )
            copies = (JobSegment(SegmentKind.COPY, 1, "e", random.randint(0, 1)),) * random.choice((0, 0, 1))
            at = random.randint(0, len(task.segments))
            tasks.append(replace(task, segments=(*task.segments[:at], *copies, *task.segments[at:])))
        chains = (TaskChain("chain", ("t0", "t1"), ChainStart.DATA),) if is_chained else ()
        task_set = TaskSet(tuple(tasks), partitions, chains, engines)
        if not any(load.is_overload for load in resource_loads(task_set)):
            return task_set


def streams_of(task_set: TaskSet) -> list[Stream]:
    """Under EDF, deadlines count from the arrival, and jitter is what passes until the kernel is ready."""
    if task_set.partitions[0].policy is ServerPolicy.EDF:
        return [Stream(t.segments[0].wcet, t.period, 0, t.jitter, t.deadline) for t in task_set.tasks]
    return [
        Stream(t.segments[0].wcet, t.period, t.jitter, 0, t.deadline - t.jitter, t.priority or 0)
        for t in task_set.tasks
    ]


def many_kernels(random: Random, count: int, utilisation: float, policy: ServerPolicy) -> TaskSet:
    """Periods of 1 to 100 ms in picoseconds."""
    shares = [random.random() for _ in range(count)]
    tasks = []
    for number, share in enumerate(shares):
        period = int(10 ** random.uniform(9, 11))
        wcet = max(1, int(period * share / sum(shares) * utilisation))
        jitter = random.choice((0, period // 10))
        tasks.append(kernel(f"t{number}", wcet, period, number // 2, jitter=jitter))
    return partition_of(*tasks, policy=policy)
