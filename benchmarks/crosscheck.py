"""Every engine on the same random small instances; any disagreement is reported, and makes the exit code 1.

    python -m benchmarks.crosscheck --instances 2000 --seconds 8
    python -m benchmarks.crosscheck --file instruction_strings/reference.jsonl --instances 200 --seconds 5

Strings and automata of up to five instructions on a path, up to three warps in one or two groups, three pairs of
capacities; or so many instances of a file, evenly spread. The plain search or, for a file, the value that it tells is
the measure: an engine that calls its answer exact must give the same value, and no
proven bound may be on the wrong side of it. The integer programmes take equal strings only. One JSON line per engine
at the end: instances tried, finished, and in disagreement.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from makespan import Group, Instance, Limits, Machine, Program, replay
from makespan.bounds import pessimistic
from makespan.errors import UnsupportedError
from makespan.program import Place
from makespan.solve import solve
from makespan.solve.cpsat import solve as cpsat
from makespan.solve.finding import Finding
from makespan.solve.ilp import solve as ilp
from makespan.solve.packed import solve as packed
from makespan.solve.search import solve as plain
from makespan.strings import read_instances

MACHINES = tuple(Machine.of({"C": c, "L": l}) for c, l in ((1, 1), (2, 1), (2, 2)))  # noqa: E741
MOST_INSTRUCTIONS, MOST_WARPS = 5, 3

Engine = Callable[[Instance, Limits], Finding]


def by_result(backend: str) -> Engine:
    """The whole of `solve` with one backend."""

    def run(instance: Instance, limits: Limits) -> Finding:
        result = solve(instance, backend=backend, limits=limits)
        return Finding(result.witness, result.bounds.upper, result.upper_evidence)

    return run


def alone(engine: Callable[..., Finding], **options: str) -> Engine:
    """An engine that only knows the pessimistic bound."""

    def run(instance: Instance, limits: Limits) -> Finding:
        return engine(instance, limits, horizon=pessimistic(instance), **options)

    return run


def packed_alone(instance: Instance, limits: Limits) -> Finding:
    """The packed search without a certificate or a schedule to begin with."""
    return packed(instance, limits, certificate=None, incumbent=0)


ENGINES: dict[str, Engine] = {
    "auto": by_result("auto"),
    "certificate": by_result("certificate"),
    "packed search": packed_alone,
    "cpsat, done": alone(cpsat, form="done"),
    "cpsat, counts": alone(cpsat, form="counts"),
    "ilp published, cbc": alone(ilp, form="published"),
    "ilp tightened, cbc": alone(ilp, form="tightened"),
    "ilp tightened, highs": alone(ilp, form="tightened", solver="highs"),
}


def program(draw: random.Random) -> Program:
    """A string, or an automaton in which every place is reached."""
    length = draw.randint(1, MOST_INSTRUCTIONS)
    letters = "".join(draw.choices("CL", k=length))
    if draw.random() < 0.5:
        return Program.chain(letters)
    places, starts, reached = [], {0}, {0}
    for at, letter in enumerate(letters):
        after = {draw.randint(at + 1, length) for _ in range(draw.randint(1, 2))}
        places.append(Place(letter, tuple(sorted(after))))
        if at not in reached:
            starts.add(at)
        reached |= after
    return Program(tuple(places), tuple(sorted(starts)))


def instances(count: int, draw: random.Random) -> Iterator[Instance]:
    """So many, the capacities in turn."""
    for number in range(count):
        warps = draw.randint(1, MOST_WARPS)
        kinds = [program(draw) for _ in range(draw.choice((1, 1, 2)))]
        yield Instance.merged([(draw.choice(kinds), 1) for _ in range(warps)], MACHINES[number % len(MACHINES)])


def judged(instance: Instance, truth: int, found: Finding) -> str:
    """`agrees`, `open` (within limits, not finished) or what is wrong."""
    lower = replay(instance, found.witness) if found.witness is not None else 0
    if lower > truth:
        return f"a schedule of {lower} cycles, and the worst case is {truth}"
    if found.upper is not None and found.upper < truth:
        return f"an upper bound of {found.upper} cycles, and the worst case is {truth}"
    return "agrees" if found.upper == truth == lower else "open"


def described(instance: Instance) -> str:
    """What makes a failure repeatable."""

    def group(item: Group) -> str:
        return f"{item.warps} x {item.program.letters or (item.program.starts, item.program.places)}"

    return f"{instance.machine.capacities}: {'; '.join(map(group, instance.groups))}"


def main() -> int:
    """Read the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each engine on each instance")
    parser.add_argument("--engines", default=",".join(name.replace(", ", "/") for name in ENGINES))
    parser.add_argument("--file", type=Path, help="instances with known worst cases")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = {name: ENGINES[name] for name in (part.replace("/", ", ") for part in given.engines.split(","))}
    counts = {name: Counter[str]() for name in chosen}
    seconds = dict.fromkeys(chosen, 0.0)
    wrong = 0
    if given.file is None:
        drawn = instances(given.instances, random.Random(given.seed))
        questions = ((instance, plain(instance, Limits(600)).upper) for instance in drawn)
    else:
        named = read_instances(given.file)
        spread = named[:: max(1, len(named) // given.instances)][: given.instances]
        questions = ((known.instance, known.makespan) for known in spread)
    for instance, truth in questions:
        assert truth is not None
        for name, engine in chosen.items():
            began = time.monotonic()
            try:
                verdict = judged(instance, truth, engine(instance, Limits(given.seconds)))
            except UnsupportedError:
                counts[name]["not served"] += 1
                continue
            finally:
                seconds[name] += time.monotonic() - began
            counts[name][verdict if verdict in ("agrees", "open") else "wrong"] += 1
            if verdict not in ("agrees", "open"):
                wrong += 1
                print(f"{name}: {verdict}: {described(instance)}", file=sys.stderr, flush=True)
    for name, count in counts.items():
        print(json.dumps({"engine": name, **count, "seconds": round(seconds[name], 1)}), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
