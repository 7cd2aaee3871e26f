"""What exact execution times buy: the fraction of random task sets that is schedulable, over their utilisation.

    python -m benchmarks.schedulability
    python -m benchmarks.schedulability --sets 1000 --plot docs/schedulable_fraction.png --cache kernels.json

Kernels are random instruction strings, or the sample kernels, with 2 to 8 warps on machines (C=1, L=1) and (C=2, L=1).
The execution time of each is bounded twice: by the proven worst-case makespan and by M^L + M^C. Task sets take the
utilisations that UUniFast gives them and kernels at random; periods are such that the utilisation is that by the
*proven* worst cases, deadlines are the periods. The same sets are then analysed with the other bound, under
non-preemptive fixed priorities (rate monotonic) and non-preemptive EDF; both analyses are exact for sporadic tasks.
All points of a panel draw the same kernels and shares, and scale them.

JSON lines: the kernels of each pool, every point with its 95 % interval, and weighted schedulability.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

from benchmarks.schedulable_fraction import EXACT, PESSIMISTIC, Curve, Point, draw_fractions
from benchmarks.task_sets import rate_monotonic, uunifast_discard
from makespan import Instance, Limits, Machine, Program, solve
from makespan.deadlines.holistic import AnalysisLimits, responses
from makespan.deadlines.task import GpuPartition, ServerPolicy, TaskSet, one_kernel
from makespan.kernels import ptx

KERNELS = Path(__file__).parent.parent / "ptx"
SAMPLES = (
    "bitonic", "fft_butterfly", "fir", "histogram", "polynomial", "saxpy_unrolled", "sha256_round", "stencil", "vecadd",
    "warp_reduction",
)  # fmt: skip
WARPS = (2, 4, 8)
MACHINES = {"(1,1)": Machine.of({"C": 1, "L": 1}), "(2,1)": Machine.of({"C": 2, "L": 1})}
POLICIES = {"NP-FP, rate monotonic": ServerPolicy.FIXED_PRIORITY, "NP-EDF": ServerPolicy.EDF}
Given = TypeVar("Given")
Got = TypeVar("Got")
RANDOM, SAMPLE = "random strings", "sample kernels"


@dataclass(frozen=True, slots=True)
class Kernel:
    """Two upper bounds on the execution time of a kernel, and what some schedule takes, in cycles."""

    lower: int
    upper: int
    pessimistic: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Of the task sets."""

    sets: int
    tasks: int
    seed: int


def programs(kind: str, count: int, seed: int) -> Iterator[tuple[Program, int]]:
    """Programs with their numbers of warps: every sample kernel with each of `WARPS`, or `count` random strings."""
    if kind == SAMPLE:
        for name, warps in product(SAMPLES, WARPS):
            yield ptx.program(ptx.read(KERNELS / f"{name}.ptx").kernel(name)), warps
        return
    random = Random(seed)
    for _ in range(count):
        share, length = random.uniform(0.2, 0.8), random.randint(8, 40)
        letters = random.choices("CL", weights=(share, 1 - share), k=length)
        yield Program.chain("".join(letters)), random.choice(WARPS)


def key(instance: Instance) -> str:
    """What says which question was solved."""
    asked = [[group.program.places, group.program.starts, group.warps] for group in instance.groups]
    return hashlib.sha256(json.dumps([asked, instance.machine.capacities]).encode()).hexdigest()


def solved(instance: Instance, seconds: float) -> Kernel:
    """The proven interval and M^L + M^C."""
    result = solve(instance, limits=Limits(seconds=seconds))
    return Kernel(result.bounds.lower, result.bounds.upper, result.pessimistic)


def pool_of(
    asked: Sequence[tuple[Program, int]], machine: Machine, seconds: float, cache: dict[str, list[int]]
) -> tuple[Kernel, ...]:
    """Bounds of all kernels; what the cache knows is not solved again."""
    pool = []
    for number, (program, warps) in enumerate(asked, 1):
        instance = Instance.of(program, warps, machine)
        name = f"{key(instance)} {seconds}"
        if name not in cache:
            print(f"solving kernel {number} of {len(asked)}, {program.end} places, {warps} warps", file=sys.stderr)
            kernel = solved(instance, seconds)
            cache[name] = [kernel.lower, kernel.upper, kernel.pessimistic]
        pool.append(Kernel(*cache[name]))
    return tuple(pool)


def drawn(pool: Sequence[Kernel], utilisation: Fraction, tasks: int, random: Random) -> dict[str, TaskSet]:
    """One task set twice, by proven and by pessimistic execution times, with equal periods; a tick is a cycle."""
    kernels = random.sample(pool, tasks)
    shares = uunifast_discard(random, tasks, utilisation)
    periods = [ceil(kernel.upper / share) for kernel, share in zip(kernels, shares, strict=True)]
    made = rate_monotonic(
        [
            one_kernel(f"t{number}", kernel.upper, period, period, partition="gpu")
            for number, (kernel, period) in enumerate(zip(kernels, periods, strict=True))
        ]
    )
    worse = tuple(
        replace(task, segments=(replace(task.segments[0], wcet=kernel.pessimistic),))
        for task, kernel in zip(made, kernels, strict=True)
    )
    gpu = (GpuPartition("gpu", ServerPolicy.FIXED_PRIORITY),)
    return {EXACT: TaskSet(made, gpu), PESSIMISTIC: TaskSet(worse, gpu)}


def is_schedulable(task_set: TaskSet, policy: ServerPolicy) -> bool:
    """Whether every deadline is proven."""
    found = responses(replace(task_set, partitions=(GpuPartition("gpu", policy),)), AnalysisLimits()).of
    return all((bound := found[task.name]) is not None and bound.total <= task.deadline for task in task_set.tasks)


def point(pool: Sequence[Kernel], settings: Settings, utilisation: Fraction) -> dict[tuple[str, str], Point]:
    """For each policy and way to bound execution times, how many of the task sets of this utilisation pass."""
    counts = dict.fromkeys(product(POLICIES, (EXACT, PESSIMISTIC)), 0)
    for number in range(settings.sets):
        sets = drawn(pool, utilisation, settings.tasks, Random(f"{settings.seed} {number}"))
        for policy, times in counts:
            counts[policy, times] += is_schedulable(sets[times], POLICIES[policy])
    return {which: Point(float(utilisation), count, settings.sets) for which, count in counts.items()}


def curves(panel: str, pool: Sequence[Kernel], settings: Settings, steps: int, jobs: int) -> list[Curve]:
    """All points of a panel, on several processes."""
    utilisations = [Fraction(step, steps) for step in range(1, steps)]
    points = []
    for found in spread(partial(point, pool, settings), utilisations, jobs):
        points.append(found)
        print(f"{panel}: {len(points)} of {len(utilisations)} utilisations", file=sys.stderr)
    return [Curve(panel, *which, tuple(found[which] for found in points)) for which in points[0]]


def spread(function: Callable[[Given], Got], values: Sequence[Given], jobs: int) -> Iterator[Got]:
    """Values of a function in order, by so many processes."""
    if jobs == 1:
        yield from map(function, values)
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(function, values)


def describe(panel: str, pool: Sequence[Kernel]) -> dict[str, object]:
    """How far M^L + M^C is above the proven worst case in a pool."""
    ratios = sorted(kernel.pessimistic / kernel.upper for kernel in pool)
    return {
        "panel": panel,
        "kernels": len(pool),
        "exact": sum(kernel.lower == kernel.upper for kernel in pool),
        "shortest": min(kernel.upper for kernel in pool),
        "longest": max(kernel.upper for kernel in pool),
        "pessimistic_over_proven": [round(ratio, 3) for ratio in (ratios[0], median(ratios), ratios[-1])],
    }


def rows(curve: Curve) -> Iterator[dict[str, object]]:
    """The points of a curve, then what they say together."""
    names = {"panel": curve.panel, "policy": curve.policy, "execution_times": curve.times}
    for at in curve.points:
        interval = [round(end, 4) for end in at.interval]
        numbers = {"utilisation": at.utilisation, "sets": at.sets, "schedulable": round(at.fraction, 4)}
        yield {**names, **numbers, "interval": interval}
    yield {**names, "weighted_schedulability": round(curve.weighted, 4)}


def read_cache(path: Path | None) -> dict[str, list[int]]:
    """What an earlier run has solved."""
    found: Mapping[str, list[int]] = json.loads(path.read_text()) if path is not None and path.exists() else {}
    return dict(found)


def main() -> None:
    """Read the command line, solve, draw, analyse, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100, help="task sets at each utilisation")
    parser.add_argument("--tasks", type=int, default=5, help="of a task set")
    parser.add_argument("--kernels", type=int, default=40, help="random strings in the pool")
    parser.add_argument("--steps", type=int, default=20, help="utilisations 1/STEPS, 2/STEPS and so on below 1")
    parser.add_argument("--seconds", type=float, default=1.0, help="limit for solving one kernel")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--cache", type=Path, help="keep the bounds of kernels in this JSON file")
    parser.add_argument("--plot", type=Path, help="write the picture (.png, .svg or .pdf)")
    given = parser.parse_args()
    settings = Settings(given.sets, given.tasks, given.seed)
    cache = read_cache(given.cache)
    found: list[Curve] = []
    for kind, (name, machine) in product((RANDOM, SAMPLE), MACHINES.items()):
        panel = f"{kind}, machine {name}"
        pool = pool_of(list(programs(kind, given.kernels, given.seed)), machine, given.seconds, cache)
        if given.cache is not None:
            given.cache.write_text(json.dumps(cache))
        print(json.dumps(describe(panel, pool)), flush=True)
        drawn_curves = curves(panel, pool, settings, given.steps, given.jobs)
        found += drawn_curves
        for row in (row for curve in drawn_curves for row in rows(curve)):
            print(json.dumps(row), flush=True)
    if given.plot is not None:
        title = f"{given.tasks} kernel tasks on one GPU: what proven worst cases buy"
        draw_fractions(found, given.plot, title=title)


if __name__ == "__main__":
    main()
