"""What no test notices: `python -m tests.mutants makespan/verify --sample 500`, see tests/README.md."""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from random import Random
from typing import Any, cast

from numba.core import config

from tests.mutants import child
from tests.mutants.operators import Mutant, mutants
from tests.mutants.reach import learned

LIBRARIES = (
    "highspy", "jinja2", "lark", "matplotlib.pyplot", "msgspec", "networkx", "numba.np.arrayobj",
    "ortools.linear_solver.python.model_builder_helper", "ortools.sat.python.cp_model", "pulp",
)  # fmt: skip
"""What takes long to load, and is loaded once."""
TESTS = "verify", "bounds", "simulate", "engines", "gpu"
OUTCOMES = "killed", "limit", "survived", "unreached"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Run tests on mutants of a package.")
    parser.add_argument("package", help="a folder, relative to this one, such as makespan/verify")
    parser.add_argument(
        "--file", action="append", help="only of this file of it, such as makespan/verify/fair.py; repeatable"
    )
    parser.add_argument("--tests", action="append", help="a folder or file of tests; repeatable")
    parser.add_argument("--sample", type=int, help="so many mutants, instead of all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--seconds", type=float, default=inf, help="of tests for each mutant, cheapest first")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"), help="a line for each; it goes on there")
    parser.add_argument("--again", action="store_true", help="run those again that have survived before")
    parser.add_argument("--plain", action="store_true", help="of the modules *_compiled.py, without the compiler")
    given = parser.parse_args()
    for library in LIBRARIES:
        import_module(library)
    cast(Any, config).DISABLE_JIT = given.plain
    package = given.package.strip("/")
    sources = [str(path) for path in sorted(Path(package).rglob("*.py")) if ("_compiled" in path.name) is given.plain]
    kept = Path(tempfile.gettempdir()) / f"reach-{package.replace('/', '-')}{'-plain' * given.plain}.json"
    reach = learned(kept, sources, given.tests or [package, *(f"tests/{name}" for name in TESTS)])
    drawn = [mutant for file in given.file or sources for mutant in mutants(file)]
    if given.sample is not None:
        drawn = Random(given.seed).sample(drawn, min(given.sample, len(drawn)))
    done = _read(given.results)
    waiting = [m for m in drawn if str(m) not in done or (given.again and done[str(m)][0] in OUTCOMES[2:])]
    print(f"{len(drawn)} mutants, {len(waiting)} to run, {len(reach.seconds)} tests", flush=True)
    kills = Counter(by for _, by in done.values())
    reaching = partial(reach.tests, kills=kills, most=given.seconds)

    def attempt(some: list[Mutant], noticed: child.Noticed) -> None:
        with given.results.open("a") as results:
            for mutant, outcome, by in _run(some, reaching, noticed, given.jobs):
                done[str(mutant)] = outcome, by
                kills[by] += 1
                print(json.dumps({"mutant": str(mutant), "outcome": outcome, "by": by}), file=results, flush=True)

    attempt([mutant for mutant in waiting if not mutant.in_function], child.imported)
    if inside := [mutant for mutant in waiting if mutant.in_function]:
        child.collected(reach.seconds, sorted({mutant.file for mutant in inside}), partial(attempt, inside))
    _report({mutant: done[str(mutant)][0] for mutant in drawn})


def _read(results: Path) -> dict[str, tuple[str, str]]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {each["mutant"]: (each["outcome"], each["by"]) for each in map(json.loads, lines)}


def _run(
    waiting: list[Mutant], reaching: Callable[[Mutant], dict[str, float]], noticed: child.Noticed, jobs: int
) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with its outcome and what noticed it."""
    running: dict[int, Mutant] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, rest = Path(name), waiting[::-1]
        while rest or running:
            if rest and len(running) < jobs:
                mutant = rest.pop()
                if tests := reaching(mutant):
                    running[child.fork(folder, partial(_tried, mutant, tests, noticed))] = mutant
                else:
                    yield mutant, "unreached", ""
            else:
                pid, answer = child.reap(folder)
                outcome = "limit" if answer is None else "killed" if answer["by"] else "survived"
                yield running.pop(pid), outcome, answer["by"] if answer else ""


def _tried(mutant: Mutant, tests: dict[str, float], noticed: child.Noticed) -> dict[str, str]:
    mutant.apply()
    return noticed(mutant.file, mutant.tree, tests)


def _report(outcomes: dict[Mutant, str]) -> None:
    rows = {file: Counter(o for m, o in outcomes.items() if m.file == file) for file in {m.file: 0 for m in outcomes}}
    rows["all"] = Counter(outcomes.values())
    print(f"{'':40} {'mutants':>9}" + "".join(f" {name:>9}" for name in OUTCOMES))
    for file, row in rows.items():
        print(f"{file:40} {row.total():>9}" + "".join(f" {row[name]:>9}" for name in OUTCOMES))
    for mutant, outcome in outcomes.items():
        if outcome in OUTCOMES[2:]:
            print(f"{outcome}: {mutant}")


if __name__ == "__main__":
    main()
