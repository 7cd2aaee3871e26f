"""How far every engine gets: the most warps, by length of the string, for which it proves the worst case in time.

    python -m benchmarks.backends --seconds 60 --table
    python -m benchmarks.backends --seconds 5 --letters 6,8 --backends cpsat,highs-tightened --horizon certificate

One JSON line for every solve, one per engine with its frontier and, with `--table`, a table for people. An engine gets
more warps of the same random string until it does not finish. Exit code 1 if a proven bound contradicts a known value,
theorem E (one unit each of two classes, three warps or more) or the interval of another engine.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from makespan import Instance, Limits, Machine, replay, solve, strings
from makespan.bounds import pessimistic
from makespan.engines.construct import convoy
from makespan.engines.cpsat import solver as cpsat
from makespan.engines.finding import Finding
from makespan.engines.ilp import solver as ilp
from makespan.result import Bounds
from makespan.schedule import Schedule

FOLDER = Path(__file__).parent.parent / "instruction_strings"
WARPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48)
LETTERS = "6,8,10,12,16,20,22,30,40"

Key = tuple[str, int, tuple[tuple[str, int], ...]]


class Start(NamedTuple):
    """What a model begins from: a proven upper bound and perhaps a schedule."""

    horizon: int
    hint: Schedule | None


Answer = tuple[int, int]
"""Proven lower and upper bounds, in cycles."""

Engine = Callable[[Instance, Limits, str], Answer]


def begin(instance: Instance, limits: Limits, horizon: str) -> Start:
    """The horizon, `pessimistic` or that of the `certificate`, whose time counts."""
    if horizon == "pessimistic":
        return Start(pessimistic(instance), None)
    known = solve(instance, backend="certificate", limits=limits.part(0.5))
    return Start(known.bounds.upper, known.witness)


def backend(name: str) -> Engine:
    """An engine as `solve` runs it."""

    def engine(instance: Instance, limits: Limits, _: str) -> Answer:
        bounds = solve(instance, backend=name, limits=limits).bounds
        return bounds.lower, bounds.upper

    return engine


def by_cpsat(instance: Instance, limits: Limits, horizon: str) -> Answer:
    """CP-SAT by itself."""
    known = begin(instance, limits, horizon)
    found = cpsat.solve(instance, limits, horizon=known.horizon, hint=known.hint)
    return proven(instance, found, known.horizon)


def by_ilp(form: str, solver: str) -> Engine:
    """An integer programme by itself."""

    def engine(instance: Instance, limits: Limits, horizon: str) -> Answer:
        known = begin(instance, limits, horizon)
        found = ilp.solve(instance, limits, horizon=known.horizon, form=form, solver=solver)
        return proven(instance, found, known.horizon)

    return engine


def proven(instance: Instance, found: Finding, horizon: int) -> Answer:
    """The interval of a finding, its witness replayed; the engine's own proof only, so no better than the horizon."""
    lower = 0 if found.witness is None else replay(instance, found.witness)
    return lower, horizon if found.upper is None else found.upper


ENGINES: dict[str, Engine] = {
    **{name: backend(name) for name in ("auto", "certificate", "search")},
    "cpsat": by_cpsat,
    **{f"{solver}-{form}": by_ilp(form, solver) for solver in ("cbc", "highs") for form in ("published", "tightened")},
}


def key_of(instance: Instance) -> Key:
    """What tells two instances of one string apart."""
    return str(instance.groups[0].program.letters), instance.warps, tuple(instance.machine.capacities.items())


def known_answers() -> dict[Key, int]:
    """The worst cases that come with the project."""
    named = [one for file in sorted(FOLDER.glob("*.[jt]*ml*")) for one in strings.read_instances(file)]
    return {key_of(one.instance): one.makespan for one in named if one.makespan is not None and one.instance.identical}


class Referee:
    """Remembers what is proven of every instance, and notes what contradicts it."""

    def __init__(self) -> None:
        self.known = known_answers()
        self.proofs: dict[Key, Bounds] = {}
        self.contradictions: list[str] = []

    def judge(self, name: str, instance: Instance, answer: Answer) -> None:
        """Compare an answer with everything that was known before."""
        key, (lower, upper) = key_of(instance), answer
        before = self.proofs.get(key) or self._first(key, instance)
        if max(lower, before.lower) > min(upper, before.upper):
            claim = f"{name} proves {lower}..{upper}, but {before.lower}..{before.upper} was known: {key}"
            self.contradictions.append(claim)
            return
        self.proofs[key] = Bounds(max(lower, before.lower), min(upper, before.upper))

    def _first(self, key: Key, instance: Instance) -> Bounds:
        worst = self.known.get(key)
        if worst is None and convoy.applies(instance):
            worst = replay(instance, convoy.schedule(instance))
        return Bounds(0, pessimistic(instance)) if worst is None else Bounds(worst, worst)


def frontier(name: str, string: str, machine: Machine, given: argparse.Namespace, referee: Referee) -> int:
    """The most warps in `WARPS` before the first for which the engine does not finish in time; 0 if none."""
    most = 0
    for warps in WARPS:
        instance = Instance.of(string, warps, machine)
        limits = Limits(seconds=given.seconds)
        began = time.monotonic()
        answer = ENGINES[name](instance, limits, given.horizon)
        seconds = time.monotonic() - began
        referee.judge(name, instance, answer)
        figures = {
            "backend": name,
            "string": string,
            "letters": len(string),
            "warps": warps,
            "capacity": given.capacity,
            "lower": answer[0],
            "upper": answer[1],
            "seconds": round(seconds, 2),
        }
        print(json.dumps(figures), flush=True)
        if answer[0] != answer[1]:
            break
        most = warps
    return most


def table(rows: dict[str, list[int]], letters: list[int]) -> str:
    """A Markdown table: one line per engine, one column per length, `-` where not even two warps are proven."""
    lines = [["backend", *(f"I={count}" for count in letters)], ["---"] * (len(letters) + 1)]
    lines += [[name, *(str(most) if most else "-" for most in row)] for name, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="a solve may take")
    parser.add_argument("--capacity", default="C=1,L=1")
    parser.add_argument("--letters", default=LETTERS)
    parser.add_argument("--backends", default=",".join(ENGINES), help="engines, separated by commas")
    parser.add_argument(
        "--horizon", choices=("pessimistic", "certificate"), default="pessimistic", help="of the models"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="end with a table")
    given = parser.parse_args()
    names = given.backends.split(",")
    if unknown := sorted(set(names) - set(ENGINES)):
        parser.error(f"unknown backend {unknown[0]!r}; known: {', '.join(ENGINES)}")
    machine = Machine.of({unit: int(count) for unit, count in (item.split("=") for item in given.capacity.split(","))})
    letters = [int(count) for count in given.letters.split(",")]
    chosen = {n: "".join(random.Random(f"{given.seed} {n}").choices(list(machine.capacities), k=n)) for n in letters}
    solve(Instance.of("CLLC", 2), limits=Limits(seconds=600))  # compiles the search
    referee = Referee()
    rows = {name: [frontier(name, chosen[n], machine, given, referee) for n in letters] for name in names}
    for name, row in rows.items():
        print(json.dumps({"backend": name, "frontier": dict(zip(letters, row, strict=True))}))
    if given.table:
        print(table(rows, letters))
    for contradiction in referee.contradictions:
        print(contradiction, file=sys.stderr)
    return bool(referee.contradictions)


if __name__ == "__main__":
    sys.exit(main())
