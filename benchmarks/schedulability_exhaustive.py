"""Bounds on responses against the definition: all schedules of random small task sets; a bound below one is reported.

    python -m benchmarks.schedulability_exhaustive --systems 300 --seed 1
    python -m benchmarks.schedulability_exhaustive --systems 1000 --kind joins --kind spin

Two to four tasks of each of `KINDS`, on one to three partitions with any policies; the load of every partition, copy
engine and core is at most 1, with what threads spin at least. Each system is walked through tick by tick
(`makespan.deadlines.exploration`); one that reaches too many states is left out, and so is one in which responses
grow without end. A system depends on the seed, its kind and its number only.

No bound may be below the longest response, or the longest time from the event at the head of its data; none that is
said to be exact may be another. One JSON line per kind at the end: tasks, those that are in time in all schedules, and
of these the undecided ones, whose bound is beyond the deadline; bounds that are attained, and bound over truth in the
mean and at most; and what is wrong. With any of these last, the exit code is 1. Ctrl-C ends it with what is known.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random
from statistics import fmean
from typing import NamedTuple

from makespan.deadlines.analysis import analyse
from makespan.deadlines.exploration import explore
from makespan.deadlines.holistic import AnalysisLimits, Response, responses
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

MOST_STATES = 10_000
INTERRUPTED = 130

Shape = tuple[tuple[int, ...], ...]
"""Of each task the numbers of those whose data it waits for."""

ALONE: tuple[Shape, ...] = (((),) * 2, ((),) * 2, ((),) * 3)
CHAINS: tuple[Shape, ...] = (((), (0,)), ((), (0,), ()), ((), (0,), (1,)), ((), (0,), (1,), ()))
JOINS: tuple[Shape, ...] = (
    *(((), (0,), (0,)), ((), (0,), (0,), ()), ((), (0,), (0, 1)), ((), (0,), (0, 1), ())),
    *(((), (0,), (0,), (1, 2)), ((), (0,), (0,), (0, 2)), ((), (0,), (0, 1), (2,)), ((), (0,), (0,), (0, 1, 2))),
    *(((), (0,), (0,), (1,)), ((), (0,), (0,), (0,)), ((), (0,), (1,), (1,)), ((), (0,), (1,), (0, 2))),
)


class Recipe(NamedTuple):
    """What a system may have besides kernels: chances, from which the choice is, and longest times in ticks."""

    shapes: tuple[Shape, ...] = ALONE
    partitions: tuple[int, ...] = (1, 1, 2)
    periods: tuple[int, int] = (4, 12)
    kernel: int = 3
    around: float = 0  # of CPU time before the kernel, and of some after it
    several: float = 0  # of one to four segments of all kinds instead
    bare: float = 0  # of CPU time alone instead
    spin: float = 0
    delays: tuple[int, ...] = (0,)  # of each launch
    jitter: tuple[int, ...] = (0, 0, 0, 1, 2)
    beyond: tuple[int, ...] = (0, 0, 0, 6)  # from the period to the longest deadline
    load: Fraction = Fraction(0)  # of some resource, at least


LINKED = Recipe(CHAINS, (1, 2, 3), (4, 14), kernel=5, jitter=(0, 0, 0, 0, 1, 2), beyond=(0,), load=Fraction(3, 10))
KINDS = {
    "kernels": Recipe((*ALONE, ((),) * 3, ((),) * 4), (1, 1, 1, 2), (3, 12), kernel=4, jitter=(0, 0, 0, 1, 2, 5, 8)),
    "CPU time": Recipe(around=0.6, bare=0.15),
    "chains": LINKED,
    "chains, CPU time": LINKED._replace(kernel=4, around=0.6),
    "joins": Recipe(JOINS, (1, 2, 2, 3), (6, 16), kernel=4, around=0.2, jitter=(0, 0, 0, 0, 1)),
    "segments": Recipe(periods=(5, 14), several=1, jitter=(0, 0, 0, 1)),
    "spin": Recipe(periods=(5, 14), around=0.7, several=0.3, bare=0.2, spin=0.7, jitter=(0, 0, 0, 1)),
    "launch delays": Recipe(around=0.4, delays=(0, 1, 1, 2), jitter=(0, 0, 0, 1)),
    "mixed": Recipe(
        shapes=(*ALONE, *CHAINS[:3], *JOINS[:5:2]),
        partitions=(1, 2),
        periods=(6, 14),
        around=0.6,
        several=0.4,
        bare=0.1,
        spin=0.5,
        delays=(0, 0, 1),
    ),
}


class Compared(NamedTuple):
    """A task's proven times, and the longest that there are; in ticks."""

    deadline: int
    bound: Response | None
    is_exact: bool
    response: int
    end: int

    @property
    def is_in_time(self) -> bool:
        return self.response <= self.deadline

    @property
    def is_undecided(self) -> bool:
        return self.is_in_time and (self.bound is None or self.bound.total > self.deadline)

    @property
    def faults(self) -> Iterator[str]:
        """What is claimed and not true."""
        if self.bound is None:
            return
        if self.bound.total < self.response or self.bound.end < self.end:
            yield f"bounds {self.bound.total} and {self.bound.end}, and schedules of {self.response} and {self.end}"
        if self.is_exact and self.bound.total != self.response:
            yield f"{self.bound.total} is said to be exact, and no schedule takes longer than {self.response}"


def system(draw: Random, recipe: Recipe) -> TaskSet:
    """A task set with no resource loaded too much, and one as much as the recipe says."""
    while True:
        shape, common = draw.choice(recipe.shapes), draw.randint(*recipe.periods)
        partitions = tuple(
            GpuPartition(f"gpu{n}", draw.choice(list(ServerPolicy))) for n in range(draw.choice(recipe.partitions))
        )
        engines = tuple(CopyEngine(f"copy{n}", draw.choice(list(ServerPolicy))) for n in range(draw.choice((1, 1, 2))))
        places = {SegmentKind.KERNEL: [p.name for p in partitions], SegmentKind.COPY: [e.name for e in engines]}
        tasks = []
        for number, rank in enumerate(draw.sample(range(1, len(shape) + 1), len(shape))):
            is_linked = shape[number] or any(number in sources for sources in shape)
            period = common if is_linked else draw.randint(*recipe.periods)
            segments = tuple(_segments(draw, recipe, places))
            tasks.append(_task(draw, recipe, f"t{number}", segments, period, rank))
        if recipe.load <= max(demands(tasks).values()) <= 1 and all(_length(t.segments) <= 2 * t.period for t in tasks):
            ways = [(f"t{source}", f"t{number}") for number, sources in enumerate(shape) for source in sources]
            chains = tuple(TaskChain(" to ".join(way), way, ChainStart.DATA) for way in ways)
            return TaskSet(tuple(tasks), partitions, chains, engines)


def _segments(draw: Random, recipe: Recipe, places: Mapping[SegmentKind, Sequence[str]]) -> Iterator[JobSegment]:
    kinds = [SegmentKind.CPU]
    if draw.random() < recipe.several:
        kinds = draw.choices(
            (SegmentKind.CPU, SegmentKind.KERNEL, SegmentKind.KERNEL, SegmentKind.COPY),
            k=draw.choice((1, 2, 2, 3, 3, 4)),
        )
    elif draw.random() >= recipe.bare:
        before, after = ([SegmentKind.CPU] * (draw.random() < recipe.around) for _ in range(2))
        kinds = [*before, SegmentKind.KERNEL, *after]
    for kind in kinds:
        if kind is SegmentKind.CPU:
            yield JobSegment(kind, draw.randint(1, 2))
        else:
            most = recipe.kernel if kind is SegmentKind.KERNEL else 2
            yield JobSegment(kind, draw.randint(1, most), draw.choice(places[kind]), draw.choice(recipe.delays))


def _task(draw: Random, recipe: Recipe, name: str, segments: tuple[JobSegment, ...], period: int, rank: int) -> GpuTask:
    """A task that one in five times may have the priority of another."""
    spins, least = draw.random() < recipe.spin, _length(segments)
    needs_core = spins or any(segment.kind is SegmentKind.CPU for segment in segments)
    return GpuTask(
        name,
        segments,
        period,
        draw.randint(min(least, period), max(least, period + draw.choice(recipe.beyond))),
        draw.choice(recipe.jitter),
        priority=rank if draw.random() < 0.8 else draw.randint(1, 2),
        core=draw.choice(("cpu0", "cpu0", "cpu0", "cpu1")) if needs_core else None,
        wait=HostWait.SPIN if spins else HostWait.BLOCK,
    )


def _length(segments: Sequence[JobSegment]) -> int:
    return sum(segment.wcet for segment in segments)


def demands(tasks: list[GpuTask]) -> dict[str, Fraction]:
    """What tasks demand of every resource; a thread that spins does so at least while its copies and kernels run."""
    found = defaultdict[str, Fraction](Fraction)
    for task in tasks:
        for segment in task.segments:
            share = Fraction(segment.wcet, task.period)
            if segment.resource is not None:
                found[segment.resource] += share
            if task.core is not None and (segment.kind is SegmentKind.CPU or task.spins):
                found[task.core] += share
    return found


def compared(task_set: TaskSet, most_states: int = MOST_STATES) -> dict[str, Compared] | None:
    """Each task by its name; None where there are too many states."""
    truth = explore(task_set, most_states=most_states)
    if len(truth.response) < len(task_set.tasks):
        return None
    bounds = responses(task_set, AnalysisLimits()).of
    claimed = analyse(task_set, evidence=False).tasks
    return {
        task.name: Compared(
            task.deadline, bounds[task.name], verdict.is_exact, truth.response[task.name], truth.end[task.name]
        )
        for task, verdict in zip(task_set.tasks, claimed, strict=True)
    }


class Tally:
    """What has been found of a kind."""

    def __init__(self) -> None:
        self.systems = self.left_out = self.wrong = 0
        self.tasks: list[Compared] = []

    def add(self, task_set: TaskSet) -> None:
        tasks = compared(task_set)
        if tasks is None:
            self.left_out += 1
            return
        self.systems += 1
        self.tasks += tasks.values()
        for name, task in tasks.items():
            for fault in task.faults:
                self.wrong += 1
                print(f"wrong: {name}: {fault}: {task_set!r}", file=sys.stderr)

    @property
    def row(self) -> dict[str, object]:
        ratios = [task.bound.total / task.response for task in self.tasks if task.bound is not None]
        counts = Counter[str]()
        for task in self.tasks:
            has_bound = task.bound is not None
            counts.update({"in time": task.is_in_time, "undecided": task.is_undecided, "no bound": not has_bound})
            counts.update({"claimed exact": has_bound and task.is_exact})
        share = counts["undecided"] / counts["in time"] if counts["in time"] else None
        return {
            "systems": self.systems,
            "left out": self.left_out,
            "tasks": len(self.tasks),
            **counts,
            "undecided share": None if share is None else round(share, 4),
            "attained": ratios.count(1),
            "mean ratio": round(fmean(ratios), 3) if ratios else None,
            "largest ratio": round(max(ratios), 3) if ratios else None,
            "wrong": self.wrong,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=100, help="of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    tallies = {name: Tally() for name in given.kind or KINDS}
    code = 0
    try:
        for name, tally in tallies.items():
            for number in range(given.systems):
                if number % 25 == 0:
                    print(f"{name}: {number} of {given.systems} systems", file=sys.stderr)
                tally.add(system(Random(f"{given.seed} {name} {number}"), KINDS[name]))
    except KeyboardInterrupt:
        print("interrupted: what is known so far", file=sys.stderr)
        code = INTERRUPTED
    for name, tally in tallies.items():
        print(json.dumps({"kind": name, **tally.row}))
    return 1 if any(tally.wrong for tally in tallies.values()) else code


if __name__ == "__main__":
    sys.exit(main())
