"""Theorem F against exact values: random small instances in one issue slot, and all schedules of a fair scheduler.

    python -m benchmarks.fair_scheduler --instances 20000 --seed 1

2 to 5 warps, one to three classes with latencies of 1 to 7 cycles, some of them ranges, equal or different strings and
automata; the measure is the definition, walked through. One JSON line at the end: instances (different ones), bounds
that are attained, sharper than the pessimistic bound, and below the exact value, and how far the bounds are above it in
the mean, in percent; with any bound below, the exit code is 1.
"""

import argparse
import json
import random
import sys
from collections import Counter

from makespan import Instance, Machine, Program
from makespan.model.machine import Latency, SchedulerPromise, UnitClass
from makespan.model.program import ProgramPlace
from makespan.model.simulate.semantics import next_states, start_states
from makespan.proof.bounds import pessimistic, theorem_f
from makespan.verify import fair as checker

SIZES = ((2, 6, 7, False), (2, 4, 4, True), (3, 4, 5, False), (3, 2, 2, True), (4, 3, 4, False), (5, 2, 5, False))
"""Warps, and at most so many letters and cycles of latency; whether latencies may be ranges."""


def drawn(draw: random.Random, warps: int, letters: int, latency: int, ranges: bool) -> Instance:
    """Equal warps as often as different ones; often with one class that is far more frequent than the others."""
    count = draw.choice((1, 2, 2, 3))
    least = [draw.randint(1, latency) for _ in range(count)]
    spans = [Latency(one, one + draw.choice((0, 0, 1, 2)) * ranges) for one in least]
    units = tuple(UnitClass(name, 1, 1, span) for name, span in zip("CLS", spans, strict=False))
    names = "CLS"[:count]

    def program() -> Program:
        end = draw.randint(1, letters)
        string = [draw.choice(names + "C" * draw.choice((0, 4))) for _ in range(end)]
        after: list[tuple[int, ...]] = [(at + 1,) for at in range(end)]
        if end > 2 and draw.random() < 0.2:
            skipping = draw.randrange(end - 1)
            after[skipping] = (skipping + 1, skipping + 2)
        return Program(tuple(map(ProgramPlace, string, after)))

    crew = [program()] * warps if draw.random() < 0.5 else [program() for _ in range(warps)]
    machine = Machine("partition", units, issue_width=1, scheduler=SchedulerPromise.FAIR)
    return Instance.merged([(one, 1) for one in crew], machine)


def exact(instance: Instance) -> int:
    """Cycles until no schedule is still going; equal states of a cycle are walked once."""
    frontier, cycles = set(start_states(instance)), -1
    while frontier:
        cycles += 1
        frontier = {after for state in frontier for after in next_states(instance, state)}
    return cycles


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, counts, seen = random.Random(given.seed), Counter[str](), set[Instance]()
    above = {"theorem F": 0.0, "M^L + M^C": 0.0}
    while len(seen) < given.instances:
        one = drawn(draw, *SIZES[len(seen) % len(SIZES)])
        if one in seen:
            continue
        seen.add(one)
        truth, found, old = exact(one), theorem_f(one), pessimistic(one)
        bound = old if found is None else min(found.upper, old)
        counts["attained"] += bound == truth
        counts["sharper"] += bound < old
        if found is None or found.upper < truth or checker.theorem_f(one) != found.upper:
            counts["wrong"] += 1
            print(f"wrong: {one!r}", one.groups, one.machine, file=sys.stderr)
        above["theorem F"] += 100 * (bound - truth) / truth
        above["M^L + M^C"] += 100 * (old - truth) / truth
    percent = {name: round(total / len(seen), 2) for name, total in above.items()}
    print(json.dumps({"instances": len(seen), **counts, "percent above": percent}))
    return bool(counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
