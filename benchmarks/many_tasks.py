"""How long task sets of a hundred tasks take, on one to four partitions, in every mode of the analysis.

    python -m benchmarks.many_tasks
    python -m benchmarks.many_tasks --tasks 100 --load 0.9 --mode "segments, chains"

Periods are log-uniform in 10..200 ms, the same within a chain by data; deadlines are the periods; shares of each
partition's load are random, priorities deadline monotonic. One JSON line for each policy and mode: bounds, tasks that
are proven to be in time, tasks for which the analysis stopped at its limit, and seconds of CPU. A bound is none below
what the task takes alone. A set depends on policy, mode, load and number of tasks only.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from random import Random
from time import process_time
from typing import NamedTuple

from makespan.deadlines.holistic import AnalysisLimits, responses
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
)

CORES = 4


class Mode(NamedTuple):
    """What tasks have besides kernels."""

    partitions: int = 4
    has_chains: bool = False
    has_cpu: bool = False
    has_copies: bool = False
    wait: HostWait = HostWait.BLOCK


MODES = {
    "one partition": Mode(partitions=1),
    "kernels": Mode(),
    "chains": Mode(has_chains=True),
    "CPU time": Mode(has_cpu=True),
    "spin": Mode(has_cpu=True, wait=HostWait.SPIN),
    "segments": Mode(has_cpu=True, has_copies=True),
    "segments, chains": Mode(has_chains=True, has_cpu=True, has_copies=True),
    "segments, chains, spin": Mode(has_chains=True, has_cpu=True, has_copies=True, wait=HostWait.SPIN),
}
POLICIES = (ServerPolicy.FIXED_PRIORITY, ServerPolicy.EDF, ServerPolicy.FIFO)


def task_set(policy: ServerPolicy, mode: str, load: float, count: int) -> TaskSet:
    """Tasks of random periods in microseconds, `load` on every partition and at most half of it on every core."""
    random, has = Random(f"{policy} {mode} {load} {count}"), MODES[mode]
    heads, at = list[int](), 0
    while at < count:
        heads.append(at)
        at += random.randint(3, 5) if has.has_chains else 1
    groups = [range(*ends) for ends in pairwise((*heads, count))]
    periods = [round(10 ** random.uniform(4, 5.3)) for _ in groups]
    shares = [random.random() for _ in range(count)]
    tasks = list[GpuTask]()
    for group, period in zip(groups, periods, strict=True):
        for number in group:
            here = sum(shares[number % has.partitions :: has.partitions])
            segments = _segments(
                has,
                max(1, round(load * period * shares[number] / here)),
                f"p{number % has.partitions}",
                max(1, round(load * period * CORES / count / 4)),
            )
            jitter = period // 20 if random.random() < 0.3 and number == group[0] else 0
            core, wait = (f"cpu{number % CORES}", has.wait) if has.has_cpu else (None, None)
            tasks.append(GpuTask(f"t{number}", segments, period, period, jitter=jitter, core=core, wait=wait))
    ranks = {task.name: -rank for rank, task in enumerate(sorted(tasks, key=lambda task: task.deadline))}
    return TaskSet(
        tuple(replace(task, priority=ranks[task.name]) for task in tasks),
        tuple(GpuPartition(f"p{number}", policy) for number in range(has.partitions)),
        tuple(TaskChain(f"c{g[0]}", tuple(f"t{n}" for n in g), ChainStart.DATA) for g in groups if len(g) > 1),
        tuple(CopyEngine(name, ServerPolicy.FIFO) for name in ("h2d", "d2h")) if has.has_copies else (),
    )


def _segments(has: Mode, kernel: int, partition: str, cpu: int) -> tuple[JobSegment, ...]:
    found = [JobSegment(SegmentKind.KERNEL, kernel, partition)]
    if has.has_copies:
        down, up = (JobSegment(SegmentKind.COPY, max(1, kernel // 10), name) for name in ("h2d", "d2h"))
        found = [down, *found, up]
    if has.has_cpu:
        found = [JobSegment(SegmentKind.CPU, cpu), *found, JobSegment(SegmentKind.CPU, cpu)]
    return tuple(found)


def measured(policy: ServerPolicy, mode: str, load: float, count: int) -> dict[str, object]:
    """One row of the table.

    Raises:
        RuntimeError: a bound below what the task takes alone.
    """
    system = task_set(policy, mode, load, count)
    begin = process_time()
    found = responses(system, AnalysisLimits())
    seconds = process_time() - begin
    bounds = {task: bound for task in system.tasks if (bound := found.of[task.name]) is not None}
    if wrong := [task.name for task, bound in bounds.items() if bound.total < sum(s.wcet for s in task.segments)]:
        raise RuntimeError(f"a bound is below what the task takes alone: {', '.join(wrong)}")
    return {
        "policy": policy,
        "mode": mode,
        "load": load,
        "tasks": count,
        "bounds": len(bounds),
        "in time": sum(bound.total <= task.deadline for task, bound in bounds.items()),
        "stopped": len(found.stopped),
        "cpu seconds": round(seconds, 2),
    }


def main(arguments: Sequence[str]) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--load", type=float, action="append", help="of each partition; default 0.5 and 0.9")
    parser.add_argument("--mode", choices=MODES, action="append")
    asked = parser.parse_args(arguments)
    for mode, load, policy in product(asked.mode or MODES, asked.load or (0.5, 0.9), POLICIES):
        print(json.dumps(measured(policy, mode, load, asked.tasks)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
