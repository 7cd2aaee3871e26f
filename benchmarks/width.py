"""How wide the proven interval is, and how long it takes: random strings over size, warps and capacities.

    python -m benchmarks.width --letters 22,100,420 --warps 8,48 --capacity C=2,L=1 --strings 5 --seconds 15
    python -m benchmarks.width --letters 40 --warps 2,8 --machine examples/long_loads.toml --strings 20 --backend auto

One JSON line for every combination: medians over the strings. A width is (upper - lower) / lower.
"""

import argparse
import json
import random
import time
from itertools import product
from statistics import median

from makespan import Instance, Limits, Machine, replay, solve
from makespan.model.machine import find_machine


def measure(
    string: str, warps: int, machine: Machine, seconds: float, backend: str
) -> tuple[float, float, float, bool]:
    """Width, seconds to the first upper bound below M^L + M^C, seconds in all, and whether it is exact."""
    began = time.monotonic()
    first: list[float] = []

    def note(line: str) -> None:
        if line.startswith("certificate") and not first:
            first.append(time.monotonic() - began)

    limits = Limits(seconds=seconds, progress=note)
    result = solve(Instance.of(string, warps, machine), backend=backend, limits=limits)
    assert replay(result.instance, result.witness) == result.bounds.lower <= result.bounds.upper <= result.pessimistic
    total = time.monotonic() - began
    lower, upper = result.bounds.lower, result.bounds.upper
    return (upper - lower) / lower, first[0] if first else total, total, lower == upper


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", default="22,100,420")
    parser.add_argument("--warps", default="8,48")
    parser.add_argument("--capacity", default="C=2,L=1")
    parser.add_argument("--machine", help="instead of --capacity: a shipped machine or a machine file")
    parser.add_argument("--backend", default="certificate")
    parser.add_argument("--strings", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    capacities = {unit: int(count) for unit, count in (item.split("=") for item in given.capacity.split(","))}
    machine = find_machine(given.machine).machine if given.machine else Machine.of(capacities)
    draw = random.Random(given.seed)
    for letters, warps in product(given.letters.split(","), given.warps.split(",")):
        strings = ["".join(draw.choices(list(machine.capacities), k=int(letters))) for _ in range(given.strings)]
        rows = [measure(string, int(warps), machine, given.seconds, given.backend) for string in strings]
        widths, first, total, exact = zip(*rows, strict=True)
        figures = {
            "machine": given.machine or given.capacity,
            "letters": int(letters),
            "warps": int(warps),
            "strings": given.strings,
            "exact": sum(exact),
            "median_width": round(median(widths), 5),
            "largest_width": round(max(widths), 5),
            "median_first_bound_seconds": round(median(first), 2),
            "median_seconds": round(median(total), 2),
        }
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
