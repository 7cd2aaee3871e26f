"""No simulated response is longer than the analysed bound: random systems against an adversary, seed printed.

MAKESPAN_SEED repeats a campaign.
"""

import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice, pairwise
from random import Random

import pytest

from benchmarks.task_sets import deadline_monotonic, rate_monotonic, uunifast
from makespan.deadlines.analysis import analyse
from makespan.deadlines.evidence import worst_runs
from makespan.deadlines.simulation import SimulatedRun
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
from makespan.deadlines.verdict import DeadlineAnswer, TaskSetVerdict
from tests.deadlines.latency import latency

QUICK, LONG = 40, 20_000
TRIES, MOST_JOBS = 12, 40
SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)


def drawn_system(random: Random) -> TaskSet:
    """One to three partitions of one to five tasks; small numbers, so that much falls on the same tick."""
    partitions = tuple(
        GpuPartition(name, random.choice(tuple(ServerPolicy))) for name in "ghk"[: random.choice((1, 1, 2, 3))]
    )
    engines = (CopyEngine("e", random.choice(tuple(ServerPolicy))),) if random.random() < 0.2 else ()
    with_cpu, most_delay = random.random() < 0.3, random.choice((0, 0, 0, 2))
    tasks: list[GpuTask] = []
    for partition in partitions:
        count = random.randint(1, 5 if len(partitions) == 1 else 3)
        shares = uunifast(random, count, Fraction(random.choice((40, 60, 80, 90, 95, 100)), 100))
        for share in shares:
            period = random.choice((random.randint(2, 12), random.randint(5, 40), random.choice((6, 8, 12, 24))))
            delay = random.randint(0, most_delay)
            segments = [JobSegment(SegmentKind.KERNEL, max(1, int(share * period)), partition.name, delay)]
            around(random, segments, max(1, period // 6), with_cpu=with_cpu, with_copies=bool(engines))
            tasks.append(drawn_task(random, f"t{len(tasks)}", period, segments))
    ranked = random.choice((rate_monotonic, deadline_monotonic))(tasks)
    if random.random() < 0.3:
        ranked = tuple(replace(task, priority=random.randint(1, 3)) for task in ranked)
    ranked, chains = drawn_chains(random, ranked)
    return TaskSet(ranked, partitions, chains, engines)


def drawn_chains(random: Random, tasks: Sequence[GpuTask]) -> tuple[tuple[GpuTask, ...], tuple[TaskChain, ...]]:
    """Sometimes a chain of two or three tasks, or two that join; those that data starts get the period of the first."""
    if len(tasks) < 2 or random.random() < 0.7:
        return tuple(tasks), ()
    names = [task.name for task in random.sample(list(tasks), random.randint(2, min(4, len(tasks))))]
    if random.random() < 0.5:
        return tuple(tasks), (TaskChain("c", tuple(names[:3]), ChainStart.PERIODIC),)
    period = next(task.period for task in tasks if task.name == names[0])
    same = {"period": period, "offset": None}
    changed = (replace(task, **same, deadline=min(task.deadline, period)) for task in tasks)  # type: ignore[arg-type]
    made = tuple(new if new.name in names[1:] else task for new, task in zip(changed, tasks, strict=True))
    ways = (names[:3],) if len(names) < 4 else ((names[0], names[1], names[3]), (names[0], names[2], names[3]))
    return made, tuple(TaskChain(f"c{at}", tuple(way), ChainStart.DATA) for at, way in enumerate(ways))


def around(random: Random, segments: list[JobSegment], most: int, *, with_cpu: bool, with_copies: bool) -> None:
    """Sometimes copies and CPU time before and after a kernel."""
    for is_after in (False, True):
        if with_copies and random.random() < 0.4:
            segments.insert(is_after * len(segments), JobSegment(SegmentKind.COPY, random.randint(1, most), "e"))
        if with_cpu and random.random() < 0.6:
            segments.insert(is_after * len(segments), JobSegment(SegmentKind.CPU, random.randint(1, most)))


def drawn_task(random: Random, name: str, period: int, segments: Sequence[JobSegment]) -> GpuTask:
    """Deadlines below and beyond the period, jitter up to two periods, offsets in some; threads block or spin."""
    cpu = any(segment.kind is SegmentKind.CPU for segment in segments)
    return GpuTask(
        name,
        tuple(segments),
        period,
        random.choice((period, random.randint(1, period), random.randint(period, 3 * period))),
        jitter=random.choice((0, 0, random.randint(0, period // 2), random.randint(0, 2 * period))),
        offset=random.randint(0, period) if random.random() < 0.1 else None,
        core=random.choice("01") if cpu else None,
        wait=random.choice(tuple(HostWait)),
    )


@dataclass
class Found:
    """The worst that adversaries find: of each task the response, of each chain the latency, each with its scenario."""

    responses: dict[str, tuple[int, str]] = field(default_factory=dict)
    reactions: dict[str, tuple[int, str]] = field(default_factory=dict)
    ages: dict[str, tuple[int, str]] = field(default_factory=dict)

    def look(self, run: SimulatedRun) -> None:
        words = run.scenario.words
        for name, response in run.responses.items():
            _keep(self.responses, name, response, words)
        for chain in run.scenario.task_set.chains:
            if all(_is_periodic(run, name) for name in chain.tasks if name not in run.scenario.starts):
                seen = latency(run, chain)
                _keep(self.reactions, chain.name, seen.reaction, words)
                _keep(self.ages, chain.name, seen.age, words)


def _keep(worst: dict[str, tuple[int, str]], name: str, value: int | None, words: str) -> None:
    if value is not None and (name not in worst or value > worst[name][0]):
        worst[name] = value, words


def _is_periodic(run: SimulatedRun, name: str) -> bool:
    arrivals = [job.arrival for job in run.scenario.jobs if job.task == name]
    return {later - earlier for earlier, later in pairwise(arrivals)} <= {run.scenario.task_set.by_name[name].period}


def worst(task_set: TaskSet, seed: int) -> Found:
    found = Found()
    for name in task_set.by_name:
        for run in islice(worst_runs(task_set, name, seed=seed, most_jobs=MOST_JOBS), TRIES):
            found.look(run)
    return found


def contradictions(verdict: TaskSetVerdict, found: Found) -> list[str]:
    """What simulated schedules say against an analysis."""
    bounds = {task.task: task.response for task in verdict.tasks}
    said = _beyond("response", found.responses, bounds)
    said += _beyond("reaction", found.reactions, {chain.chain: chain.reaction for chain in verdict.chains})
    said += _beyond("age", found.ages, {chain.chain: chain.age for chain in verdict.chains})
    for task in verdict.tasks:
        response, words = found.responses[task.task]
        if response > verdict.tasks_analysed.by_name[task.task].deadline and task.answer is DeadlineAnswer.YES:
            said.append(f"{task.task}: proven, and late in {words}")
    return said


def _beyond(what: str, seen: Mapping[str, tuple[int, str]], bounds: Mapping[str, int | None]) -> list[str]:
    return [
        f"{name}: {what} {value} > bound {bound} in {words}"
        for name, (value, words) in seen.items()
        if (bound := bounds[name]) is not None and value > bound
    ]


def campaign(seed: int, systems: int) -> Counter[str]:
    """Check systems; how many bounds there were, and how many of them a simulation attains."""
    print(f"MAKESPAN_SEED={seed}")
    random = Random(seed)
    counts: Counter[str] = Counter()
    for number in range(systems):
        task_set = drawn_system(random)
        verdict = analyse(task_set, evidence=False)
        found = worst(task_set, seed)
        said = contradictions(verdict, found)
        assert not said, (number, said, task_set)
        for task in verdict.tasks:
            kind = "exact bounds" if task.is_exact else "other bounds"
            counts[kind] += task.response is not None
            counts[f"{kind} attained"] += task.response == found.responses[task.task][0]
        counts["bounds on chains"] += sum(chain.reaction is not None for chain in verdict.chains)
    return counts


def test_no_simulated_response_is_longer_than_the_bound() -> None:
    counts = campaign(1, QUICK)
    assert counts["exact bounds attained"] > 0.8 * counts["exact bounds"] > QUICK // 2


@pytest.mark.soak
def test_twenty_thousand_systems() -> None:
    print(campaign(SEED, LONG))
