"""Certificates of theorem H against exact values: random small instances; one below the worst case is reported.

    python -m benchmarks.certificates --instances 60000 --levels 1 --processes 2 --seconds 7200

The instances are those of `benchmarks.closed_form`; each gets the certificates of one level or more, which the checker
judges, too. One JSON line per kind at the end: instances (different ones), certificates, how many are attained, and how
many are below the exact value for the engine or the checker; with any of these last, the exit code is 1.
"""

import argparse
import json
import multiprocessing
import random
import sys
import time
from collections import Counter
from functools import partial
from itertools import cycle, islice

from benchmarks.closed_form import KINDS, instance
from makespan import Instance, Limits
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.search import plain
from makespan.verify import potential as checker

KNOWN = ("one port", "capacities", "latencies", "ranges", "intervals", "all", "automata", "slots", "slots, ranges")


def judge(one: Instance, levels: int, patience: float) -> Counter[str]:
    """What there is to count of an instance and its first certificates."""
    exact = plain.solve(one, Limits(patience)).upper
    findings = improve.improve(one, Limits(60))
    certificates = (found.certificate for found in findings if found.certificate is not None)
    found = list(islice(certificates, levels))
    if exact is None or not found:
        return Counter(("left out",))
    outcome = Counter({"instances": 1, "certificates": len(found)})
    for certificate in found:
        outcome["attained"] += certificate.upper == exact
        outcome["wrong"] += (
            certificate.upper < exact or not exact <= checker.bound(one, certificate) <= certificate.upper
        )
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000, help="of all kinds together")
    parser.add_argument("--levels", type=int, default=5, help="how many certificates of an instance, coarse ones first")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--patience", type=float, default=5.0, help="seconds for one exact value")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, began = random.Random(given.seed), time.monotonic()
    drawn = ((instance(draw, KINDS[name]), name) for name in islice(cycle(KNOWN), given.instances))
    names = dict(drawn)  # equal instances once
    counts = {name: Counter[str]() for name in KNOWN}
    judged = partial(judge, levels=given.levels, patience=given.patience)
    with multiprocessing.Pool(given.processes) as pool:
        for (one, name), outcome in zip(names.items(), pool.imap(judged, names, chunksize=8), strict=True):
            counts[name].update(outcome)
            if outcome["wrong"]:
                print(f"wrong: {one!r}", one.groups, one.machine, file=sys.stderr)
            if time.monotonic() - began > given.seconds:
                break
    for name, count in counts.items():
        print(json.dumps({"kind": name, **count}))
    return any(count["wrong"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main())
