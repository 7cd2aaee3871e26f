"""Closed forms against exact values: random small instances of all that they know; a bound below one is reported.

    python -m benchmarks.closed_form --instances 50000 --seed 1
    python -m benchmarks.closed_form --kind barriers --seconds 600
    python -m benchmarks.closed_form --kind slots --kind laps --instances 20000
    python -m benchmarks.closed_form --kind multiprocessor --instances 5000

Each instance is of one of `KINDS`, with one to three classes of one to three ports, equal or different strings or
automata; the measure is the search of all states. Instances that it does not finish in `--patience` seconds are left
out. One JSON line per kind at the end: instances (different ones), bounds that are attained, sharper than the
pessimistic bound, and below the exact value; with any of these last, the exit code is 1.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from typing import NamedTuple

from benchmarks import multiprocessors
from makespan import Instance, Limits, Machine, Program
from makespan.host.errors import InputError
from makespan.model.feature import MULTIPROCESSOR
from makespan.model.machine import Latency, UnitClass
from makespan.model.program import BARRIER, ProgramPlace
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds import CLOSED_FORMS, pessimistic, theorem_1s
from makespan.proof.engines.search import plain, sm_states
from makespan.verify import pessimistic as again
from makespan.verify.proving import RULES
from makespan.verify.rule import ClaimedBound


class Kind(NamedTuple):
    """How large an instance of a kind may be: ports, intervals, latencies, warps, letters; and what it may have."""

    ports: int = 1
    interval: int = 1
    latency: int = 1
    ranges: bool = False
    warps: int = 4
    letters: int = 7
    barriers: bool = False
    automata: bool = False
    short: float = 0.0  # how often a class has the latency 1
    long: int = 0  # the most latency of one class, and twice its least; 0: it is as that of the others
    width: int = 0  # the most issue width; 0: there is none
    whole: bool = False  # a whole multiprocessor, as `benchmarks.multiprocessors` draws them


KINDS = {
    "one port": Kind(warps=6),
    "capacities": Kind(ports=3, warps=6),
    "latencies": Kind(latency=6, letters=6),
    "ranges": Kind(latency=4, ranges=True, warps=3, letters=5),
    "intervals": Kind(interval=5, latency=4, letters=6),
    "all": Kind(ports=3, interval=3, latency=3, ranges=True, warps=4, letters=4),
    "automata": Kind(ports=3, interval=3, latency=3, ranges=True, warps=3, letters=5, automata=True),
    "barriers": Kind(ports=2, interval=4, latency=3, ranges=True, warps=4, letters=5, barriers=True),
    "barriers and automata": Kind(ports=2, interval=3, latency=2, warps=4, letters=5, barriers=True, automata=True),
    "long latencies": Kind(latency=20, short=0.4, letters=9),
    "slots": Kind(ports=4, interval=2, latency=12, warps=4, letters=8, width=2),
    "slots, ranges": Kind(latency=9, ranges=True, warps=3, letters=5, width=1),
    "slot and ports": Kind(interval=4, latency=5, ranges=True, warps=3, letters=5, width=1),
    "laps": Kind(latency=2, long=16, warps=3, letters=24, width=1),
    "multiprocessor": Kind(whole=True, barriers=True, automata=True, ranges=True),
}

OF_THEOREM_E = tuple(name for name, kind in KINDS.items() if not kind.width and not kind.whole)


def machine(draw: random.Random, kind: Kind) -> Machine:
    """Classes C, L and S, or the first of them."""
    units = []
    for name in "CLS"[: draw.choice((1, 2, 2, 2, 3, 3))]:
        least = 1 if kind.short and draw.random() < kind.short else draw.randint(1, kind.latency)
        most = draw.randint(least, kind.latency) if kind.ranges else least
        ports = draw.randint(1, kind.ports)
        units.append(UnitClass(name, ports, draw.randint(1, kind.interval), Latency(least, most)))
    if kind.long:
        latency = draw.randint(kind.long // 2, kind.long)
        units[0] = UnitClass("C", 1, 1, Latency(latency, latency))
    return Machine("random", tuple(units), draw.randint(1, kind.width) if kind.width else None)


def program(draw: random.Random, kind: Kind, units: str) -> Program:
    """A string or, of some kinds, often an automaton in which every place may skip the next one or two."""
    letters = [draw.choice(units) for _ in range(draw.randint(1, kind.letters))]
    if kind.barriers:
        letters = [BARRIER if draw.random() < 0.25 else letter for letter in letters]
    if not kind.automata or draw.random() < 0.3:
        return Program.chain("".join(letters))
    end, places, reached = len(letters), list[ProgramPlace](), {0}
    starts = {0}
    for at, letter in enumerate(letters):
        after = {min(end, at + draw.randint(1, 3)) for _ in range(draw.randint(1, 2))}
        if at not in reached:
            starts.add(at)
        reached |= after
        places.append(ProgramPlace(letter, tuple(sorted(after))))
    return Program(tuple(places), tuple(sorted(starts)))


def instance(draw: random.Random, kind: Kind) -> Instance:
    """Equal warps as often as different ones; with barriers, one block or two."""
    if kind.whole:
        return multiprocessors.instance(draw)
    chosen = machine(draw, kind)
    units = "".join(chosen.capacities)
    warps = draw.randint(1, kind.warps)
    blocks = draw.choice((1, 1, 2)) if kind.barriers and warps % 2 == 0 else 1
    while True:
        try:
            if draw.random() < 0.5:
                return Instance.of(program(draw, kind, units), warps, chosen, blocks=blocks)
            groups = [(program(draw, kind, units), blocks) for _ in range(warps // blocks)]
            return Instance.merged(groups, chosen, blocks=blocks)
        except InputError:  # a program of barriers only
            continue


def judge(one: Instance, patience: float) -> tuple[str, ...]:
    """What there is to count of an instance."""
    search = sm_states if MULTIPROCESSOR & one.features.keys() else plain
    exact = search.solve(one, Limits(patience)).upper
    found = [bound for form in (theorem_1s, *CLOSED_FORMS) if (bound := form(one)) is not None]
    if exact is None or not found:
        return ("left out",)
    outcome = ["instances"]
    upper = min(bound.upper for bound in found)
    checked = all(_again(one, bound) == bound.upper for bound in found)
    if upper < exact or not checked or again.pessimistic(one) != pessimistic(one):
        outcome.append("wrong")
    if upper == exact:
        outcome.append("attained")
    if upper < pessimistic(one):
        outcome.append("sharper")
    for bound in found:
        outcome += [bound.evidence] + [f"{bound.evidence} attained"] * (bound.upper == exact)
    return tuple(outcome)


def _again(one: Instance, bound: UpperBound) -> object:
    """What the checker says of a closed form."""
    claim = ClaimedBound(one, bound.upper, bound.evidence, weights=bound.weights)
    return RULES[Upper(bound.evidence)].prove(claim, lambda _: {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000, help="of all kinds together")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--patience", type=float, default=5.0, help="seconds for one exact value")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, began = random.Random(given.seed), time.monotonic()
    kinds = given.kind or list(KINDS)
    counts = {name: Counter[str]() for name in kinds}
    seen = set[Instance]()
    for number in range(given.instances):
        if time.monotonic() - began > given.seconds:
            break
        name = kinds[number % len(kinds)]
        one = instance(draw, KINDS[name])
        if one in seen:
            counts[name]["repeated"] += 1
            continue
        seen.add(one)
        outcome = judge(one, given.patience)
        counts[name].update(outcome)
        if "wrong" in outcome:
            print(f"wrong: {one!r}", one.groups, one.machine, one.blocks, file=sys.stderr)
    for name, count in counts.items():
        print(json.dumps({"kind": name, **count}))
    return any(count["wrong"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main())
