"""How wide the proven interval is, and how long it takes: random strings over size, warps and capacities.

    python -m benchmarks.width --letters 420 --warps 48 --capacity C=2,L=1 --strings 50 --seconds 15

One JSON line per string, then one with the median. Widths are (upper - lower) / lower.
"""

import argparse
import json
import random
import statistics
import time

from makespan import Instance, Limits, Machine, replay, solve


def measure(string: str, warps: int, machine: Machine, seconds: float) -> dict[str, object]:
    """Solve one instance with certificates and witnesses; note when the first certificate came."""
    began = time.monotonic()
    first: list[float] = []

    def note(line: str) -> None:
        if line.startswith("certificate") and not first:
            first.append(time.monotonic() - began)

    instance = Instance.of(string, warps, machine)
    result = solve(instance, backend="certificate", limits=Limits(seconds=seconds, progress=note))
    assert replay(instance, result.witness) == result.bounds.lower <= result.bounds.upper <= result.pessimistic
    lower, upper = result.bounds.lower, result.bounds.upper
    return {
        "letters": len(string),
        "warps": warps,
        "capacity": machine.capacities,
        "lower": lower,
        "upper": upper,
        "pessimistic": result.pessimistic,
        "width": (upper - lower) / lower,
        "first_certificate_seconds": first[0] if first else None,
        "seconds": time.monotonic() - began,
    }


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=420)
    parser.add_argument("--warps", type=int, default=48)
    parser.add_argument("--capacity", default="C=2,L=1")
    parser.add_argument("--strings", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    pairs = (item.split("=") for item in given.capacity.split(","))
    machine = Machine.of({unit: int(count) for unit, count in pairs})
    draw = random.Random(given.seed)
    rows = []
    for _ in range(given.strings):
        string = "".join(draw.choice(list(machine.capacities)) for _ in range(given.letters))
        rows.append(measure(string, given.warps, machine, given.seconds))
        print(json.dumps(rows[-1]), flush=True)
    widths = [float(str(row["width"])) for row in rows]
    print(json.dumps({"median_width": statistics.median(widths), "largest_width": max(widths), **vars(given)}))


if __name__ == "__main__":
    main()
