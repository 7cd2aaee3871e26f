"""How far certificates alone are above the exact values of the reference instances with three warps or more.

    python -m benchmarks.tightness --every 1

One JSON line per capacity pair. No certificate may be below the exact value.
"""

import argparse
import json
from collections import defaultdict
from itertools import islice
from pathlib import Path

from makespan import Limits
from makespan.model import strings
from makespan.proof.engines.certificate import improve

REFERENCE = Path(__file__).parent.parent / "instruction_strings" / "reference.jsonl"


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=10, help="take every N-th instance")
    parser.add_argument("--file", type=Path, default=REFERENCE, help="instances with known worst cases")
    given = parser.parse_args()
    ratios: dict[str, list[float]] = defaultdict(list)
    for named in strings.read_instances(given.file)[:: given.every]:
        if named.instance.warps >= 3 and named.makespan is not None:
            findings = improve.improve(named.instance, Limits(seconds=600))
            uppers = [found.upper for found in islice((f for f in findings if f.upper is not None), 2)]
            upper = min(bound for bound in uppers if bound is not None)
            assert upper >= named.makespan, named
            capacity = ",".join(f"{unit}={count}" for unit, count in named.instance.machine.capacities.items())
            ratios[capacity].append(upper / named.makespan)
    for capacity, found_ratios in sorted(ratios.items()):
        figures = {
            "capacity": capacity,
            "instances": len(found_ratios),
            "mean_upper_over_exact": round(sum(found_ratios) / len(found_ratios), 5),
            "tight": sum(ratio == 1 for ratio in found_ratios),
            "largest": round(max(found_ratios), 4),
        }
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
