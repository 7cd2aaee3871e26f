"""Every engine on the same random small instances; any disagreement is reported, and makes the exit code 1.

    python -m benchmarks.crosscheck --instances 2000 --seconds 8
    python -m benchmarks.crosscheck --file instruction_strings/reference.jsonl --instances 200 --seconds 5
    python -m benchmarks.crosscheck --general 1000 --seed 1
    python -m benchmarks.crosscheck --multiprocessors 1000 --seed 1

Strings and automata of up to five instructions on a path, up to three warps in one or two groups, three pairs of
capacities; or so many instances of a file, evenly spread. The plain search or, for a file, the value that it tells is
the measure: an engine that calls its answer exact must give the same value, and no proven bound may be on the wrong
side of it. The integer programmes take equal strings only.

With --general, up to four warps on machines with up to three classes, latencies up to 6 and ranges of them, intervals
up to 4 and issue widths up to 3. The measure are the shortest and the longest way through all states that the
definition of the machine reaches, enumerated here; where they are too many, another instance is drawn. Every witness
must be between these two, and so must the run of every scheduling policy.

With --multiprocessors, the same on machines with partitions, shared ports and resources, where warps may run ahead and
wait at barriers (`benchmarks.multiprocessors`).

One JSON line per engine at the end: instances tried, finished, and in disagreement.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks import multiprocessors
from benchmarks.frontier import by_highs
from makespan import Group, Instance, Limits, Machine, Program, replay
from makespan.host.errors import UnsupportedError
from makespan.model.machine import Latency, UnitClass
from makespan.model.program import ProgramPlace
from makespan.model.result import Bounds
from makespan.model.simulate import POLICIES, Choices, run
from makespan.model.simulate.semantics import SmState, has_finished, next_states, start_states
from makespan.model.strings import read_instances
from makespan.proof.bounds import closed_form, least_possible, pessimistic
from makespan.proof.engines import solve
from makespan.proof.engines.cpsat.solver import solve as cpsat
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.ilp.solver import solve as ilp
from makespan.proof.engines.search.choose import solve as packed
from makespan.proof.engines.search.plain import solve as plain
from makespan.proof.engines.search.sm_states import solve as whole

MACHINES = tuple(Machine.of({"C": c, "L": l}) for c, l in ((1, 1), (2, 1), (2, 2)))  # noqa: E741
MOST_INSTRUCTIONS, MOST_WARPS = 5, 3
MOST_STEPS = 10_000
"""That the definition may take on a general machine, from all states together."""

CHOICES = (Choices(), Choices("least", "shortest"), Choices("random", "random", seed=1))
"""Latencies and paths with which every policy runs."""


class Question(NamedTuple):
    """An instance with its worst case and, if it is known, its best case, in cycles."""

    instance: Instance
    worst: int
    best: int | None = None


Engine = Callable[[Instance, Limits], Finding]


def by_result(backend: str) -> Engine:
    """The whole of `solve` with one backend."""

    def run(instance: Instance, limits: Limits) -> Finding:
        result = solve(instance, backend=backend, best_case=True, limits=limits)
        return Finding(result.witness, result.bounds.upper, result.upper_evidence, best_case=result.best_case)

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
    "cpsat": alone(cpsat),
    "ilp published, cbc": alone(ilp, form="published"),
    "ilp tightened, cbc": alone(ilp, form="tightened"),
    "ilp tightened, highs": alone(by_highs, form="tightened"),
}

GENERAL = {"plain search": plain, **ENGINES}


def bounds(instance: Instance, _: Limits) -> Finding:
    """What follows from the instance alone."""
    upper = closed_form(instance)
    return Finding(None, upper.upper, upper.evidence, best_case=Bounds(least_possible(instance), upper.upper))


MULTIPROCESSORS: dict[str, Engine] = {
    "search": whole,
    "bounds": bounds,
    "auto": by_result("auto"),
}


def program(draw: random.Random, classes: str = "CL", most: int = MOST_INSTRUCTIONS) -> Program:
    """A string, or an automaton in which every place is reached."""
    length = draw.randint(1, most)
    letters = "".join(draw.choices(classes, k=length))
    if draw.random() < 0.5:
        return Program.chain(letters)
    places, starts, reached = [], {0}, {0}
    for at, letter in enumerate(letters):
        after = {draw.randint(at + 1, length) for _ in range(draw.randint(1, 2))}
        places.append(ProgramPlace(letter, tuple(sorted(after))))
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


def machine(draw: random.Random) -> Machine:
    """Each of intervals, latencies, ranges of latencies and the issue width in some machines only."""
    units = []
    for name in "CLS"[: draw.randint(1, 3)]:
        least = draw.randint(1, draw.choice((1, 3, 6)))
        most = draw.choice((least, draw.randint(least, 6)))
        units.append(UnitClass(name, draw.randint(1, 2), draw.randint(1, draw.choice((1, 4))), Latency(least, most)))
    return Machine("general", tuple(units), draw.choice((None, 1, 2, 3)))


def general_instances(draw: random.Random) -> Iterator[Instance]:
    """Without end; with many warps the programs are short, for most would have too many states otherwise."""
    while True:
        chosen, warps = machine(draw), draw.randint(1, 4)
        classes = "".join(chosen.capacities)
        kinds = [program(draw, classes, MOST_INSTRUCTIONS + 2 - warps) for _ in range(draw.choice((1, 1, 2)))]
        yield Instance.merged([(draw.choice(kinds), 1) for _ in range(warps)], chosen)


def extremes(instance: Instance) -> Bounds | None:
    """Cycles of the shortest and the longest schedule, from all states; None where they are too many."""
    known: dict[SmState, tuple[int, int]] = {}
    reached: dict[SmState, set[SmState]] = {}
    ahead, left = list(start_states(instance)), MOST_STEPS
    while ahead:
        state = ahead[-1]
        if state not in reached:
            following = list(islice(next_states(instance, state), left + 1))
            reached[state], left = set(following), left - len(following)
        if left < 0:
            return None
        after = reached[state]
        if unknown := after - known.keys():
            ahead += unknown
            continue
        ahead.pop()
        if state not in known:
            ways = [known[one] for one in after]
            ended = has_finished(instance, state)
            known[state] = (0, 0) if ended else (1 + min(s for s, _ in ways), 1 + max(l for _, l in ways))  # noqa: E741
    ways = [known[begin] for begin in start_states(instance)]
    return Bounds(min(shortest for shortest, _ in ways), max(longest for _, longest in ways))


def small_enough(instances: Iterator[Instance], count: int) -> Iterator[Question]:
    """The first ones, so many, that the definition takes."""
    pairs = ((instance, extremes(instance)) for instance in instances)
    small = (Question(instance, found.upper, found.lower) for instance, found in pairs if found is not None)
    return islice(small, count)


def judged(question: Question, found: Finding) -> str:
    """`agrees`, `open` (within limits, not finished) or what is wrong."""
    if found.witness is not None and (wrong := misplaced(question, replay(question.instance, found.witness))):
        return f"a schedule of {wrong}"
    if found.upper is not None and found.upper < question.worst:
        return f"an upper bound of {found.upper} cycles, and the worst case is {question.worst}"
    best, claimed = question.best, found.best_case
    if best is not None and claimed is not None and not claimed.lower <= best <= claimed.upper:
        return f"a best case of {claimed} cycles, and it is {best}"
    lower = found.witness.makespan if found.witness is not None else 0
    return "agrees" if found.upper == question.worst == lower else "open"


def misplaced(question: Question, cycles: int) -> str | None:
    """What is wrong with a schedule of so many cycles."""
    if cycles > question.worst:
        return f"{cycles} cycles, and the worst case is {question.worst}"
    if question.best is not None and cycles < question.best:
        return f"{cycles} cycles, and the best case is {question.best}"
    return None


def policies_judged(question: Question) -> str:
    """Whether the runs of all scheduling policies are between best and worst case."""
    for choices in CHOICES:
        for policy in POLICIES:
            schedule = run(question.instance, policy, choices)
            if wrong := misplaced(question, replay(question.instance, schedule)):
                return f"a run of {policy} with {choices} of {wrong}"
    return "agrees"


def described(instance: Instance) -> str:
    """What makes a failure repeatable."""

    def group(item: Group) -> str:
        shape = item.program.starts, item.program.places, item.program.timings
        return f"{item.warps} x {item.program.letters or shape}"

    machine = f"{' '.join(map(repr, instance.machine.units))} width {instance.machine.issue_width}"
    if instance.machine.partitions > 1 or instance.machine.resources:
        machine += (
            f" partitions {instance.machine.partitions} {instance.machine.assignment} {instance.machine.resources}"
        )
    return f"{machine}: {'; '.join(map(group, instance.groups))}"


def asked(given: argparse.Namespace) -> Iterator[Question]:
    """What the command line asks for."""
    draw = random.Random(given.seed)
    if given.general is not None:
        yield from small_enough(general_instances(draw), given.general)
    elif given.multiprocessors is not None:
        yield from small_enough(iter(lambda: multiprocessors.instance(draw), None), given.multiprocessors)
    elif given.file is None:
        for instance in instances(given.instances, draw):
            truth = plain(instance, Limits(600)).upper
            assert truth is not None
            yield Question(instance, truth)
    else:
        named = read_instances(given.file)
        for known in named[:: max(1, len(named) // given.instances)][: given.instances]:
            assert known.makespan is not None
            yield Question(known.instance, known.makespan)


def main() -> int:
    """Read the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--general", type=int, metavar="N", help="so many instances on general machines instead")
    parser.add_argument("--multiprocessors", type=int, metavar="N", help="so many on whole multiprocessors instead")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each engine on each instance")
    parser.add_argument("--engines", help="a,b,... of those that the output names, with / for a comma in a name")
    parser.add_argument("--file", type=Path, help="instances with known worst cases")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    served = ENGINES if given.general is None else GENERAL
    served = served if given.multiprocessors is None else MULTIPROCESSORS
    names = list(served) if given.engines is None else [name.replace("/", ", ") for name in given.engines.split(",")]

    def by_engine(engine: Engine) -> Callable[[Question], str]:
        return lambda question: judged(question, engine(question.instance, Limits(given.seconds)))

    checks = {name: by_engine(served[name]) for name in names}
    if given.general is not None:
        checks["policies"] = policies_judged
    counts = {name: Counter[str]() for name in checks}
    seconds = dict.fromkeys(checks, 0.0)
    wrong = 0
    for question in asked(given):
        for name, check in checks.items():
            began = time.monotonic()
            try:
                verdict = check(question)
            except UnsupportedError:
                counts[name]["not served"] += 1
                continue
            except Exception as error:  # noqa: BLE001 - also a disagreement, and the others go on
                verdict = f"an exception, {error!r}"
            finally:
                seconds[name] += time.monotonic() - began
            counts[name][verdict if verdict in ("agrees", "open") else "wrong"] += 1
            if verdict not in ("agrees", "open"):
                wrong += 1
                print(f"{name}: {verdict}: {described(question.instance)}", file=sys.stderr, flush=True)
    for name, count in counts.items():
        print(json.dumps({"engine": name, **count, "seconds": round(seconds[name], 1)}), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
