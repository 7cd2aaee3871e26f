"""Random launches of more than one wave: the bound of theorem G against the slowest run that is found.

    python -m benchmarks.gpu_launches --launches 1000 --seed 1
    python -m benchmarks.gpu_launches --launches 200 --seed 1 --kind partitions

Up to 80 SMs, 16 resident blocks and 10,000 blocks of one to four warps of 3 to 12 instructions, on machines of each of
`KINDS` in turn. One JSON line for each kind: launches, median and largest ratio of bound to run; the same of those,
*tight on one SM*, whose closed bound for one full SM is within 1.2 of the slowest run on it; runs longer than their
bound, and with any of these the exit code is 1. A kind's launches depend on the seed alone.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from makespan import Latency, Machine, Program
from makespan.model.gpu import GpuInstance
from makespan.model.machine import UnitClass, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming
from makespan.model.simulate.gpu_run import longest_gpu_run
from makespan.proof.bounds import closed_form
from makespan.proof.bounds.theorem_g import theorem_g

MOST_SMS, MOST_RESIDENT, MOST_BLOCKS, MOST_WARPS = 80, 16, 10_000, 32
TIGHT = 1.2
"""Bound over slowest run on one SM, at most, of what counts as tight there."""


class Launch(NamedTuple):
    """One launch: the bound of the whole GPU and of one SM, each over the slowest run that is found."""

    whole: float
    one_sm: float


def _units(draw: random.Random, *, ports: int = 1, interval: int = 1, latency: int = 1) -> tuple[UnitClass, ...]:
    found = []
    for name in "CLS"[: draw.randint(1, 3)]:
        least = draw.randint(1, latency)
        most = draw.choice((least, min(latency, least * 2)))
        found.append(UnitClass(name, draw.randint(1, ports), draw.randint(1, interval), Latency(least, most)))
    return tuple(found)


def _halves(draw: random.Random, **most: int) -> Machine:
    units = [UnitClass(u.name, u.capacity, u.interval, u.latency, draw.random() < 0.4) for u in _units(draw, **most)]
    assignment = draw.choice(tuple(WarpAssignment))
    return Machine("partitions", tuple(units), 1, partitions=draw.choice((2, 4)), assignment=assignment)


MACHINES: dict[str, Callable[[random.Random], Machine]] = {
    "capacities": lambda draw: Machine("capacities", _units(draw, ports=4)),
    "latencies": lambda draw: Machine("latencies", _units(draw, ports=2, latency=20)),
    "intervals": lambda draw: Machine("intervals", _units(draw, ports=2, interval=8, latency=8)),
    "issue width": lambda draw: Machine("width", _units(draw, ports=2, interval=4, latency=20), draw.choice((1, 1, 2))),
    "partitions": lambda draw: _halves(draw, ports=2, interval=4, latency=20),
    "stall on use": lambda draw: _halves(draw, ports=2, interval=4, latency=20),
    "barriers": lambda draw: Machine("barriers", _units(draw, ports=2, interval=2, latency=10), draw.choice((None, 1))),
}
KINDS = tuple(MACHINES)


def _program(draw: random.Random, kind: str, classes: str) -> Program:
    """A string of 3 to 12 instructions."""
    letters = draw.choices(classes, k=draw.randint(3, 12))
    if kind == "barriers":
        for _ in range(draw.randint(1, 3)):
            letters.insert(draw.randint(1, len(letters)), BARRIER)
    chain = Program.chain("".join(letters))
    if kind != "stall on use":
        return chain
    timings = []
    for at in range(len(letters)):
        least = draw.randint(1, 20)
        awaits = {draw.randrange(4)} if at and draw.random() < 0.6 else set[int]()
        timings.append(
            InstructionTiming(draw.choice((1, 1, 2)), (least, least + draw.choice((0, 10))), (at % 4,), (*awaits,))
        )
    return Program(chain.places, timings=tuple(timings))


def launched(draw: random.Random, kind: str) -> GpuInstance:
    """A launch of more blocks than fit."""
    machine = MACHINES[kind](draw)
    classes = "".join(machine.capacities)
    warps = [draw.randint(1, 4)] if draw.random() < 0.7 else [1, draw.randint(1, 3)]
    block = [(_program(draw, kind, classes), some) for some in warps]
    resident, sms = draw.randint(1, min(MOST_RESIDENT, MOST_WARPS // sum(warps))), draw.randint(1, MOST_SMS)
    blocks = draw.randint(sms * resident + 1, draw.choice((MOST_BLOCKS, 4 * sms * resident)))
    return GpuInstance.of(
        block, blocks, machine, sms=sms, resident=resident, dispatch=draw.choice((0, 0, draw.randint(1, 20)))
    )


def measured(gpu: GpuInstance) -> Launch:
    """Bounds over slowest runs."""
    full = GpuInstance.of(gpu.grid.block, gpu.resident, gpu.machine, sms=1, resident=gpu.resident)
    return Launch(
        theorem_g(gpu).upper / _slowest(gpu),
        closed_form(gpu.sm(gpu.resident)).upper / _slowest(full),
    )


def _slowest(gpu: GpuInstance) -> int:
    if (found := longest_gpu_run(gpu)) is None:
        raise RuntimeError(f"no run ends: {gpu}")
    return found.schedule.makespan


def line(kind: str, launches: list[Launch], seconds: float) -> dict[str, object]:
    """What is printed of a kind."""
    ratios = [launch.whole for launch in launches]
    tight = [launch.whole for launch in launches if launch.one_sm <= TIGHT]
    return {
        "kind": kind,
        "launches": len(ratios),
        "median": round(median(ratios), 2),
        "largest": round(max(ratios), 2),
        "tight on one SM": len(tight),
        "median of tight": round(median(tight), 2) if tight else None,
        "largest of tight": round(max(tight), 2) if tight else None,
        "below": sum(ratio < 1 for ratio in ratios),
        "seconds": round(seconds),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=1_000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append")
    given = parser.parse_args()
    kinds, everything, began = given.kind or KINDS, list[Launch](), time.monotonic()
    for number, kind in enumerate(kinds):
        draw, start = random.Random(f"{given.seed} {kind}"), time.monotonic()
        share = given.launches // len(kinds) + (number < given.launches % len(kinds))
        found = [measured(launched(draw, kind)) for _ in range(share)]
        everything += found
        print(json.dumps(line(kind, found, time.monotonic() - start)), flush=True)
    total = line("all", everything, time.monotonic() - began)
    print(json.dumps(total))
    return int(bool(total["below"]))


if __name__ == "__main__":
    sys.exit(main())
