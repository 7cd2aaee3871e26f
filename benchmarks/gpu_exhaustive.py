"""Theorem G against the definition: all schedules of random tiny GPUs; a bound below the longest one is reported.

    python -m benchmarks.gpu_exhaustive --instances 5000 --seed 1
    python -m benchmarks.gpu_exhaustive --instances 500 --kind partitions

One to three SMs with one to four warps at a time, of one or two programs, and one block more than there is room for, a
few more, or one wave. Each is of one of `KINDS`; an instance that reaches too many states is left out. No bound
may be below the longest schedule; none that spares nothing may say that the last block is dispatched before it is in
some schedule; and no schedule may be shorter than the lower bound of the best case.

One JSON line per kind at the end: instances, bounds that are attained, upper bound over longest schedule in the mean
and at most, and what is wrong; with any of these last, the exit code is 1.
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from benchmarks import multiprocessors
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.simulate.gpu_semantics import GpuState, has_finished, next_states, start_states
from makespan.proof.bounds.best_case import least_possible_gpu
from makespan.proof.bounds.theorem_g import theorem_g

MOST_STATES = 500

SHAPES = (
    *((1, 1, 1), (1, 1, 2), (1, 1, 3), (2, 1, 1), (2, 1, 2), (3, 1, 1)),
    *((1, 2, 1), (1, 2, 1), (1, 2, 2), (1, 2, 2), (1, 3, 1), (1, 3, 1), (2, 2, 1)),
)
"""Warps of a block, blocks that an SM has room for, and SMs."""


class Kind(NamedTuple):
    """What an instance may have besides equal warps that block, with one or two ports of a class."""

    latency: int = 1
    interval: int = 1
    width: bool = False
    ahead: bool = False
    barriers: bool = False
    whole: bool = False  # a whole multiprocessor, as `benchmarks.multiprocessors` draws them
    dispatch: int = 0
    dram: int = 0  # cycles in which DRAM is busy, at most
    grids: bool = False  # two or three of them, whose blocks take different shares of two resources of an SM


KINDS = {
    "basic": Kind(),
    "dispatch": Kind(latency=2, dispatch=2),
    "latencies": Kind(latency=3),
    "intervals": Kind(latency=2, interval=3),
    "width": Kind(latency=2, width=True),
    "ahead": Kind(latency=2, interval=2, width=True, ahead=True),
    "barriers": Kind(latency=2, barriers=True),
    "multiprocessor": Kind(whole=True, ahead=True),
    "all": Kind(whole=True, ahead=True, barriers=True, dispatch=1),
    "grids": Kind(latency=2, interval=2, barriers=True, grids=True),
    "grids of all": Kind(whole=True, ahead=True, barriers=True, dispatch=1, grids=True),
    "DRAM": Kind(latency=3, dram=3),
    "DRAM and barriers": Kind(latency=3, interval=2, ahead=True, barriers=True, dram=3),
    "DRAM of all": Kind(whole=True, ahead=True, barriers=True, dispatch=1, dram=2),
    "DRAM and grids": Kind(latency=2, ahead=True, barriers=True, grids=True, dram=2),
}


class Truth(NamedTuple):
    """Of all schedules, in cycles: the shortest, the longest, and the latest in which a block gets its room."""

    shortest: int
    longest: int
    dispatched: int


def machine(draw: random.Random, kind: Kind) -> Machine:
    """Two or three classes."""
    if kind.whole:
        chosen = multiprocessors.machine(draw)
        return replace(chosen, partitions=min(chosen.partitions, 2))
    units = []
    for name in "CLS"[: draw.choice((2, 2, 3))]:
        least = draw.randint(1, kind.latency)
        latency = Latency(least, least + (kind.latency > 1 and draw.random() < 0.3))
        units.append(UnitClass(name, draw.choice((1, 1, 2)), draw.randint(1, kind.interval), latency))
    return Machine("random", tuple(units), draw.choice((1, 1, 2)) if kind.width else None)


def instance(draw: random.Random, kind: Kind) -> GpuInstance:
    """A small GPU, as a rule with a few more blocks than slots."""
    chosen = machine(draw, kind)
    if kind.grids:
        return shared(draw, chosen, kind)
    warps, resident, sms = draw.choice(SHAPES)
    slots, classes = sms * resident, "".join(unit.name for unit in chosen.units)
    most = {1: 5, 2: 4}.get(warps * resident, 3) - (sms > 1)
    programs = [
        multiprocessors.program(
            draw, classes, most, barriers=kind.barriers, runs_ahead=kind.ahead and draw.random() < 0.6
        )
        for _ in range(draw.choice((1, 1, 1, 2)))
    ]
    block = Counter(draw.choice(programs) for _ in range(warps))
    blocks = draw.choice((slots + 1, slots + 1, slots + 2, draw.randint(1, slots + 3)))
    dispatch = draw.randint(0, kind.dispatch)
    gpu = GpuInstance.of(block.items(), blocks, chosen, sms=sms, resident=resident, dispatch=dispatch)
    return with_dram(draw, gpu, kind)


def with_dram(draw: random.Random, gpu: GpuInstance, kind: Kind) -> GpuInstance:
    """The same, with DRAM that may be busy where the kind has any."""
    return replace(gpu, dram=draw.randint(1, kind.dram)) if kind.dram else gpu


def shared(draw: random.Random, chosen: Machine, kind: Kind) -> GpuInstance:
    """Two or three grids of one to three blocks, which mostly do not fit at once."""
    room, classes, grids = (draw.randint(1, 3), draw.randint(2, 6)), "".join(unit.name for unit in chosen.units), []
    for _ in range(draw.choice((2, 2, 2, 3))):
        ahead = kind.ahead and draw.random() < 0.6
        program = multiprocessors.program(draw, classes, 3, barriers=kind.barriers, runs_ahead=ahead)
        takes = draw.randint(1, room[0]), draw.randint(0, room[1])
        grids.append(Grid(((program, draw.choice((1, 1, 2))),), draw.choice((1, 1, 2, 3)), takes))
    gpu = GpuInstance(tuple(grids), chosen, draw.choice((1, 1, 2)), room, draw.randint(0, kind.dispatch))
    return with_dram(draw, gpu, kind)


def walk(gpu: GpuInstance, most_states: int = MOST_STATES) -> Truth | None:
    """All schedules, cycle by cycle; None where they reach too many states."""
    frontier, cycles, lengths, dispatched, reached = set(start_states(gpu)), 0, list[int](), 0, 0
    while frontier:
        cycles += 1
        after = set[GpuState]()
        for state in frontier:
            following = set(next_states(gpu, state))
            after |= following
            dispatched = cycles if any(one.left < state.left for one in following) else dispatched
            if reached + len(after) > most_states:
                return None
        reached += len(after)
        frontier = {state for state in after if not has_finished(state)}
        if len(frontier) < len(after):
            lengths.append(cycles)
    return Truth(lengths[0], lengths[-1], dispatched)


def judge(gpu: GpuInstance, truth: Truth) -> list[str]:
    """What is claimed of a GPU and is not true."""
    proven, least = theorem_g(gpu), least_possible_gpu(gpu)
    found = []
    if proven.upper < truth.longest:
        found.append(f"{proven.upper} cycles by {proven.counting}, and a schedule of {truth.longest}")
    if not proven.spared and proven.dispatched + proven.dram < truth.dispatched:
        found.append(f"dispatched by {proven.dispatched}, and in a schedule in {truth.dispatched}")
    if least > truth.shortest:
        found.append(f"{least} cycles at least, and a schedule of {truth.shortest}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=500, help="of all kinds together")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, kinds = random.Random(given.seed), given.kind or list(KINDS)
    counts, ratios = {name: Counter[str]() for name in kinds}, defaultdict[str, list[float]](list)
    for number in range(given.instances):
        name = kinds[number % len(kinds)]
        gpu = instance(draw, KINDS[name])
        truth = walk(gpu)
        if truth is None:
            counts[name]["left out"] += 1
            continue
        faults, ratio = judge(gpu, truth), theorem_g(gpu).upper / truth.longest
        counts[name].update(instances=1, attained=ratio == 1, wrong=bool(faults))
        ratios[name].append(ratio)
        for fault in faults:
            print(f"wrong: {fault}: {gpu!r}", file=sys.stderr)
    for name, count in counts.items():
        mean, most = (round(of(ratios[name]), 3) for of in (fmean, max)) if ratios[name] else (None, None)
        print(json.dumps({"kind": name, **count, "mean ratio": mean, "largest ratio": most}))
    return any(count["wrong"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main())
